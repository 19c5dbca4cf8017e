"""Identity: who holds the accounts, and whether the revenue banked agrees with the sales declared for tax.

An account belongs to the customer, or to a related party, if the account's name contains every word of that party's
name except legal forms (PTY, LTD) and other generic words. A name that states only the kind of account is `unnamed`.
Other accounts are `somebody_else`'s, or of unknown holders (null) if neither the customer's name nor a related party's
is known.

G1 of a business activity statement (total sales of the quarter, GST included) is given as the attribute `basG1-2026Q1`:
calendar year and quarter, so this one is for 1 January to 31 March 2026; the value is AUD. It is compared with the
revenue banked in that quarter. Quarters that the rows cover only in part are marked (`isCovered` false) and raise no
reason.
"""

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Column, Derived, Source, Table, Total
from pipelines.reports.completeness.accounts import reported_accounts
from pipelines.reports.completeness.cached import cached
from pipelines.vocabulary.report_values import ratio

BAS_G1 = r"^basG1-(\d{4})Q([1-4])$"
_AUD = r"^-?\d{1,13}(?:\.\d{1,2})?$"
# Words that state the kind of company or account, not its holder.
_GENERIC_WORDS = (
    *("PTY", "LTD", "LIMITED", "PROPRIETARY", "INC", "THE", "AND", "TRUST", "TRUSTEE", "ATF", "FOR", "OF", "TA"),
    *("BUSINESS", "TRANSACTION", "ACCOUNT", "EVERYDAY", "ONLINE", "SAVER", "SAVINGS", "CREDIT", "CARD", "TAX", "LOAN"),
    *("PROVISION", "CHEQUE", "DEPOSIT", "TERM", "CASH", "MANAGEMENT", "SOCIETY", "BANK", "OFFSET", "WORKING"),
)


def _identifying_words(name: str) -> pl.Expr:
    """Return the words of a name that identify somebody."""
    spelled = pl.col(name).str.to_uppercase().str.replace_all(r"['’.]", "").str.extract_all(r"[\p{L}\p{N}]+")
    return spelled.list.set_difference(pl.lit([*_GENERIC_WORDS]))


@cached
def account_holders(facts: Facts) -> pl.LazyFrame:
    """Return accounts with a name: `accountId`, `accountName`, and the holder (`belongsTo`)."""
    context = facts.context
    parties = pl.concat(
        [
            context.customers.lazy().select(BY_CUSTOMER, "name", order=1, party=pl.lit("customer")),
            context.related_parties.lazy().select(BY_CUSTOMER, "name", order=2, party=pl.lit("related_party")),
        ]
    ).with_columns(party_words=_identifying_words("name"))
    accounts = reported_accounts(facts).drop_nulls("accountName")
    accounts = accounts.with_columns(account_words=_identifying_words("accountName"))
    party, account = pl.col("party_words"), pl.col("account_words")
    names_party = (party.list.set_difference(account).list.len() == 0) & (party.list.len() > 0)
    holders = (
        accounts.join(parties, on=BY_CUSTOMER, how="inner")
        .filter(names_party)
        .sort(*BY_ACCOUNT, "order")
        .group_by(BY_ACCOUNT, maintain_order=True)
        .agg(pl.col("party").first())
    )
    with_known_name = parties.drop_nulls("name").select(BY_CUSTOMER, is_known=pl.lit(value=True)).unique()
    belongs_to = (
        pl.when(pl.col("party").is_not_null())
        .then("party")
        .when(account.list.len() == 0)
        .then(pl.lit("unnamed"))
        .when("is_known")
        .then(pl.lit("somebody_else"))
    )
    return (
        accounts.join(holders, on=BY_ACCOUNT, how="left", validate="1:1")
        .join(with_known_name, on=BY_CUSTOMER, how="left", validate="m:1")
        .select(BY_CUSTOMER, "accountId", "accountName", belongsTo=belongs_to)
    )


HOLDERS = Table(
    id="accountHolders",
    name="Whose accounts these are",
    hierarchy="account",
    type="summary",
    keys=(Column("accountId", "text"),),
    details=(Column("accountName", "text"), Column("belongsTo", "text")),
    listed=account_holders,
    sources=(),
    order=("accountId",),
)


@cached
def declared_quarters(facts: Facts) -> pl.LazyFrame:
    """Return quarters with a declared G1: `quarter`, its first and last day, `declaredG1`, and `isCovered` by rows."""
    if facts.context.attributes.is_empty():
        return BAS.no_rows
    year_and_quarter, amount = pl.col("name").str.extract_groups(BAS_G1), pl.col("value").str.strip_chars()
    first = pl.date(pl.col("year"), pl.col("nth") * 3 - 2, 1)
    return (
        facts.context.attributes.lazy()
        .filter(pl.col("name").str.contains(BAS_G1), amount.str.contains(_AUD))
        .select(
            BY_CUSTOMER,
            quarter=pl.col("name").str.strip_prefix("basG1-"),
            year=year_and_quarter.struct[0].cast(pl.Int32),
            nth=year_and_quarter.struct[1].cast(pl.Int32),
            declaredG1=amount.cast(pl.Decimal(38, 2)),
        )
        .with_columns(firstDate=first, lastDate=first.dt.offset_by("3mo").dt.offset_by("-1d"))
        .join(facts.history.lazy(), on=BY_CUSTOMER, how="inner", validate="m:1")
        .filter(pl.col("lastDate") >= pl.col("first_date"), pl.col("firstDate") <= pl.col("data_through"))
        .select(
            BY_CUSTOMER,
            "quarter",
            "firstDate",
            "lastDate",
            "declaredG1",
            isCovered=(pl.col("firstDate") >= pl.col("first_date")) & (pl.col("lastDate") <= pl.col("data_through")),
        )
    )


def banked_revenue(facts: Facts) -> pl.LazyFrame:
    rows = facts.rows.lazy().filter("is_revenue").select(BY_CUSTOMER, "transaction_id", "date", "amount")
    quarters = declared_quarters(facts).select(BY_CUSTOMER, "quarter", "firstDate", "lastDate")
    return rows.join(quarters, on=BY_CUSTOMER, how="inner").filter(pl.col("date").is_between("firstDate", "lastDate"))


BAS = Table(
    id="basQuarters",
    name="Sales declared for tax and revenue banked",
    hierarchy="customer",
    type="time_series",
    is_usually_empty=True,
    keys=(Column("quarter", "text"),),
    details=(
        Column("firstDate", "date"),
        Column("lastDate", "date"),
        Column("isCovered", "boolean"),
        Column("declaredG1", "AUD"),
    ),
    listed=declared_quarters,
    sources=(Source(banked_revenue, (Total("bankedRevenue", "AUD", pl.col("amount")),)),),
    derived=(
        Derived(
            "variance",
            "AUD",
            ("bankedRevenue", "declaredG1"),
            pl.col("bankedRevenue") - pl.col("declaredG1"),
            "bankedRevenue − declaredG1",
        ),
        Derived(
            "varianceShare",
            "ratio",
            ("variance", "declaredG1"),
            ratio(pl.col("variance"), pl.col("declaredG1")),
            "variance / declaredG1",
        ),
    ),
    order=("quarter",),
)
