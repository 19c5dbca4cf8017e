"""Across accounts: accounts and facilities that are mentioned but weren't supplied, and what was supplied twice."""

import polars as pl

from pipelines.figures import words
from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.agreement import select_agreeing
from pipelines.figures.facts import Facts
from pipelines.figures.mentions import mentions
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.sent_again import rows_sent_again
from pipelines.figures.tables import Column, Derived, Source, Table, Total
from pipelines.reports.completeness.accounts import add_account_id
from pipelines.reports.completeness.cached import cached
from pipelines.reports.completeness.coverage import is_one_sided, steps
from pipelines.vocabulary.report_values import ratio

MUCH_ONE_SIDED = "0.05"  # of turnover; our judgement, like the next two
MIN_SAME_DAYS = 5  # before two accounts count as similar; our judgement
BSB_DIGITS = 6
JOINED_FROM = 11  # digits: a number sent without a BSB that has as many may begin with it
_MENTIONED = ("maskedNumber", "name")
_PAIR = ("accountId", "otherAccountId")


@cached
def mentioning_rows(facts: Facts) -> pl.LazyFrame:
    """Return rows that mention an account that was not supplied, with the account's masked number and name."""
    usual_name = pl.col("name").drop_nulls().sort().mode(maintain_order=True).first()
    account = (BY_CUSTOMER, "masked_number", "place")
    return (
        mentions(facts)
        .lazy()
        .select(
            BY_CUSTOMER,
            "transaction_id",
            "account_id",
            "date",
            "money_in",
            "money_out",
            "bank",
            is_one_sided=is_one_sided(),
            maskedNumber="masked_number",
            name=usual_name.over(account),
        )
    )


def mentioned_accounts(facts: Facts) -> pl.LazyFrame:
    dates, bank = pl.col("date"), pl.col("bank").drop_nulls().sort().mode(maintain_order=True).first()
    by_account = mentioning_rows(facts).group_by(BY_CUSTOMER, *_MENTIONED)
    return by_account.agg(bankName=bank, firstDate=dates.min(), lastDate=dates.max())


MENTIONED = Table(
    id="mentionedAccounts",
    name="Accounts that transfers mention but nobody supplied",
    hierarchy="account",
    type="summary",
    is_usually_empty=True,
    keys=(Column("maskedNumber", "text"), Column("name", "text")),
    details=(Column("bankName", "text"), Column("firstDate", "date"), Column("lastDate", "date")),
    listed=mentioned_accounts,
    sources=(
        Source(
            mentioning_rows,
            (
                Total("transferCount", "count", pl.lit(1)),
                Total("totalIn", "AUD", pl.col("money_in")),
                Total("totalOut", "AUD", pl.col("money_out")),
            ),
        ),
    ),
    order=("maskedNumber", "name"),
)


@cached
def unshared_repayments(facts: Facts) -> pl.LazyFrame:
    """Return repayments to a named lender whose loan or card account was not supplied."""
    owed = facts.accounts.lazy().filter(pl.col("account_type").is_in(("loan", "credit_card")))
    folded = {"folded": pl.col("lender").str.to_lowercase()}
    shared = owed.select(BY_CUSTOMER, lender="bank_name").drop_nulls().with_columns(**folded)
    return (
        facts.rows.lazy()
        .filter(words.is_debt_service(), pl.col("counterparty_name").is_not_null(), pl.col("is_external"))
        .select(BY_CUSTOMER, "transaction_id", "date", "money_out", lender="counterparty_name")
        .with_columns(**folded)
        .join(shared, on=[BY_CUSTOMER, "folded"], how="anti")
    )


def unshared_lenders(facts: Facts) -> pl.LazyFrame:
    dates = pl.col("date")
    by_lender = unshared_repayments(facts).group_by(BY_CUSTOMER, "lender")
    return by_lender.agg(firstDate=dates.min(), lastDate=dates.max())


LENDERS = Table(
    id="unsharedLenders",
    name="Lenders that were repaid but whose facility nobody shared",
    hierarchy="lender",
    type="summary",
    is_usually_empty=True,
    keys=(Column("lender", "text"),),
    details=(Column("firstDate", "date"), Column("lastDate", "date")),
    listed=unshared_lenders,
    sources=(
        Source(
            unshared_repayments,
            (Total("repaymentCount", "count", pl.lit(1)), Total("totalRepaid", "AUD", pl.col("money_out"))),
        ),
    ),
    order=("lender",),
)


@cached
def same_days(facts: Facts) -> pl.LazyFrame:
    """Return days on which two accounts of a customer have equal numbers of rows and equal sums in and out.

    `accountId` is the smaller id of the pair, `otherAccountId` the larger; `transaction_id` is of a row of the first.
    """
    same = [BY_CUSTOMER, "day", "rows", "moved_in", "moved_out"]
    days = steps(facts).select(*same, "accountId", "transaction_id")
    several = facts.accounts.lazy().group_by(BY_CUSTOMER).len().filter(pl.col("len") > 1)
    compared = days.join(several, on=BY_CUSTOMER, how="semi")
    other = compared.select(*same, otherAccountId="accountId")
    return compared.join(other, on=same, how="inner").filter(pl.col("accountId") < pl.col("otherAccountId"))


@cached
def similar_accounts(facts: Facts) -> pl.LazyFrame:
    """Return pairs of a customer's accounts with the same number under another BSB or name, or with similar days."""
    pair = [BY_CUSTOMER, *_PAIR]
    both = [
        _same_numbers(facts).with_columns(sameNumber=pl.lit(value=True)),
        _same_periods(facts).with_columns(sameNumber=pl.lit(value=False)),
    ]
    return pl.concat(both).group_by(pair).agg(pl.col("sameNumber").any())


def _same_numbers(facts: Facts) -> pl.LazyFrame:
    """Return pairs of accounts whose numbers may be two spellings of one: with or without leading zeros, the BSB in its
    own field, before the number, or left out. Masked numbers don't count: two different cards may look the same.
    """
    number = pl.col("account_number").str.replace_all(r"[\s-]", "").str.to_uppercase()
    with_bsb = pl.col("bsb").str.replace_all(r"\D", "") + number
    is_joined = pl.col("bsb").is_null() & number.str.contains(rf"^\d{{{JOINED_FROM},}}$")
    without_bsb = pl.when(is_joined).then(number.str.tail(number.str.len_chars() - BSB_DIGITS))
    spellings = pl.concat_list(each.str.strip_chars_start("0") for each in (number, with_bsb, without_bsb))
    spelled = (
        facts.accounts.lazy()
        .filter(~pl.col("account_number").str.contains("[xX*]"))
        .select(*BY_ACCOUNT, spelling=spellings)
        .pipe(add_account_id, facts)
        .select(BY_CUSTOMER, "accountId", "spelling")
        .explode("spelling")
        .filter(pl.col("spelling") != "")
    )
    other = spelled.rename({"accountId": "otherAccountId"})
    pairs = spelled.join(other, on=[BY_CUSTOMER, "spelling"]).filter(pl.col("accountId") < pl.col("otherAccountId"))
    return pairs.select(BY_CUSTOMER, *_PAIR).unique()


def _same_periods(facts: Facts) -> pl.LazyFrame:
    """Return pairs of accounts that agree on many of the days with rows in the period that both cover."""
    pair, day = [BY_CUSTOMER, *_PAIR], pl.col("day")
    agreeing = same_days(facts).group_by(pair).agg(same=pl.len()).filter(pl.col("same") >= MIN_SAME_DAYS)
    days = steps(facts).select(BY_CUSTOMER, side="accountId", date="day")
    periods = steps(facts).group_by(BY_CUSTOMER, side="accountId").agg(first=day.min(), last=day.max())
    return select_agreeing(agreeing, [BY_CUSTOMER], _PAIR, days, periods).select(pair)


SIMILAR = Table(
    id="similarAccounts",
    name="Accounts that look the same",
    hierarchy="account",
    type="summary",
    is_usually_empty=True,
    keys=(Column("accountId", "text"), Column("otherAccountId", "text")),
    details=(Column("sameNumber", "boolean"),),
    listed=similar_accounts,
    sources=(Source(same_days, (Total("sameDays", "days", pl.lit(1)),)),),
    order=("accountId", "otherAccountId"),
)


def repeated_days(facts: Facts) -> pl.LazyFrame:
    """Return the days of accounts with rows that were sent again, and a `transaction_id` of these rows."""
    days = facts.cached(rows_sent_again).lazy().group_by(*BY_ACCOUNT, "date")
    return days.agg(pl.col("transaction_id").min()).pipe(add_account_id, facts)


REPEATED = Table(
    id="repeatedSubmissions",
    name="Accounts with rows that were sent again",
    hierarchy="account",
    type="summary",
    is_usually_empty=True,
    keys=(Column("accountId", "text"),),
    sources=(Source(repeated_days, (Total("sameDays", "days", pl.lit(1)),)),),
    order=("accountId",),
)


def turnover(facts: Facts) -> pl.LazyFrame:
    """Return all rows; `moved` is their amount without its sign."""
    return facts.rows.lazy().select(
        BY_CUSTOMER, "transaction_id", moved=pl.col("money_in") + pl.col("money_out"), one_sided=is_one_sided()
    )


TRANSFERS = Table(
    id="transfers",
    name="One-sided transfers",
    hierarchy="customer",
    type="summary",
    keys=(),
    listed=lambda facts: facts.customers.lazy(),
    sources=(
        Source(
            turnover,
            (
                Total("oneSidedCount", "count", pl.when("one_sided").then(pl.lit(1))),
                Total("oneSidedTotal", "AUD", pl.when("one_sided").then("moved")),
                Total("turnover", "AUD", pl.col("moved")),
            ),
        ),
    ),
    derived=(
        Derived(
            "oneSidedShare",
            "ratio",
            ("oneSidedTotal", "turnover"),
            ratio(pl.col("oneSidedTotal"), pl.col("turnover")),
            "oneSidedTotal / turnover",
        ),
    ),
    order=(),
)
