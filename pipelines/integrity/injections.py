"""Detect money that arrives just before the application, and borrowed money: both raise balances without any trade."""

from collections.abc import Sequence
from functools import cache

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity.candidates import MONTH, RECENT, candidates, is_institution
from pipelines.vocabulary.plans import collect

# All our judgement.
LAST_DAYS = 12  # before the last row
MIN_SHARE = 0.1  # the total of one source, as a share of a usual month's receipts
UNUSUAL = 2  # times the most that the same source brought in any earlier period of LAST_DAYS
MIN_OF_PARTY = 2  # receipts
ROUND = 50_00  # cents: sums that people choose are often multiples of it, invoices rarely
STACKING_DAYS = 60
LENDERS = 2
STACKED_SHARE = 0.15  # the total of all loans, as a share of a usual month's receipts
PAID_OFF = 0.5  # share of the borrowed money that went to lenders; from this share on, it is a refinancing
SPENT, SPENT_DAYS = 0.8, 10  # least share of a loan that one payment spends within so many days, as for a machine
FIRST_REPAYMENT_DAYS = 35  # from the receipt, at most
MIN_REPAYMENTS = 4  # fewer show no rhythm
LONGEST_PERIOD, GRACE_DAYS = 15, 3  # days between repayments: daily to fortnightly
MIN_INSTALMENTS, MAX_INSTALMENTS = 4, 200  # the receipt divided by one repayment
MAX_REPAID = 1.6  # times the receipt, in total
LOAN_SHARE = 0.10  # least size of the receipt, as a share of a usual month's receipts
# Category groups of payments that repay no disguised loan.
NOT_REPAYMENTS = ("tax", "debt_service", "distress", "transfer", "payroll", "premises", "high_risk")
_PRIVATE = ("owner_contribution", "director_loan_in")
_LASTING = r"(?i)\b(capital|equity|shares?|subscri|invest)"


def sourced_receipts(facts: Facts) -> pl.DataFrame:
    """Return receipts of private, cash or unnamed money, each with its `source` and its `period`, of customers who have
    some in the last period.

    Periods have LAST_DAYS days; the last one is 0.
    """
    received = facts.cached(candidates).lazy().filter(pl.col("cents") > 0)
    period = pl.col("age") // LAST_DAYS
    return (
        received.filter(~pl.col("is_transfer").fill_null(value=False))
        .select(BY_CUSTOMER, "transaction_id", "party", "size", "usual", source=_source(), period=period)
        .drop_nulls("source")
        .filter((pl.col("period") == 0).any().over(BY_CUSTOMER))
        .pipe(collect)
    )


def injected_receipts(facts: Facts) -> pl.LazyFrame:
    """Return private, cash and unnamed receipts of the last days, if their source or payer brought in far less before.

    A customer may be a private person, so a single receipt from one payer proves nothing.
    """
    receipts = facts.cached(sourced_receipts).lazy()
    named = receipts.filter(pl.col("party").is_not_null())
    found = [
        _unusual_receipts(receipts, (BY_CUSTOMER, "source"), fewest=1),
        _unusual_receipts(named, (BY_CUSTOMER, "source", "party"), fewest=MIN_OF_PARTY),
    ]
    return pl.concat(found).unique("transaction_id", keep="first", maintain_order=True)


def _unusual_receipts(receipts: pl.LazyFrame, keys: Sequence[str], fewest: int) -> pl.LazyFrame:
    """Return the last days' receipts of each group with equal `keys`, if they are unusual.

    They are if there are at least `fewest`, if they are large (MIN_SHARE), and if they are far more than in any
    earlier period (UNUSUAL).
    """
    is_last = pl.col("period") == 0
    unusual = (
        receipts.group_by(*keys, "period")
        .agg(pl.col("size").sum(), pl.col("usual").first(), rows=pl.len())
        .group_by(keys)
        .agg(
            pl.col("usual").first(),
            rows=pl.col("rows").filter(is_last).sum(),
            last=pl.col("size").filter(is_last).sum(),
            most=pl.col("size").filter(~is_last).max().fill_null(0),
        )
        .filter(
            pl.col("rows") >= fewest,
            pl.col("last") >= MIN_SHARE * pl.col("usual"),
            pl.col("last") >= UNUSUAL * pl.col("most"),
        )
    )
    return (
        receipts.filter(is_last)
        .join(unusual, on=keys, how="semi", maintain_order="left")
        .select(BY_CUSTOMER, "transaction_id", about="source", cents="size")
    )


@cache
def _source() -> pl.Expr:
    """Return a receipt's source: `cash`, `private` or `unnamed`; null for other sources and for lasting capital."""
    is_round = pl.col("size") % ROUND == 0
    cash = (pl.col("category") == "cash_deposit") | pl.col("flags").list.contains("cash")
    person = pl.col("counterparty_kind").cast(pl.String) == "person"
    private = pl.col("category").is_in(_PRIVATE) | (person & is_round)
    # A text that names nobody may still say what the money is: a grant, a claim, a sale.
    unnamed = ~pl.col("description").str.contains(r"\p{L}") & is_round & (pl.col("category") == "unknown_credit")
    return (
        pl.when(pl.col("description").str.contains(_LASTING))
        .then(None)
        .when(cash.fill_null(value=False))
        .then(pl.lit("cash"))
        .when(unnamed)
        .then(pl.lit("unnamed"))
        .when(private.fill_null(value=False) & is_round)
        .then(pl.lit("private"))
    )


def new_loans(facts: Facts) -> pl.DataFrame:
    """Return loans paid out in the last STACKING_DAYS by lenders who have no earlier rows, each with its `lender`."""
    lender = pl.coalesce("counterparty_lender_id", "party", "name")
    return (
        facts.cached(candidates)
        .lazy()
        .filter(pl.col("age").max().over(BY_CUSTOMER, lender) < STACKING_DAYS, pl.col("cents") > 0)
        .filter(pl.col("category_group") == "debt_inflow", pl.col("category") != "director_loan_in")
        .select(BY_CUSTOMER, "transaction_id", "date", "size", "usual", lender=lender)
        .pipe(collect)
    )


def stacked_loans(facts: Facts) -> pl.LazyFrame:
    """Return loans that several new lenders paid out in the last STACKING_DAYS, unless they replaced other loans.

    A loan that bought something at once doesn't count: its money doesn't make the balance look better.
    """
    rows = facts.cached(candidates).lazy()
    loans = facts.cached(new_loans).lazy().join(_spent_loans(facts), on="transaction_id", how="anti")
    repayments = rows.filter(
        pl.col("age") < STACKING_DAYS, pl.col("category_group") == "debt_service", pl.col("cents") < 0
    )
    repaid = repayments.group_by(BY_CUSTOMER).agg(repaid=pl.col("size").sum())
    stacks = (
        loans.group_by(BY_CUSTOMER)
        .agg(pl.col("usual").first(), lenders=pl.col("lender").n_unique(), funded=pl.col("size").sum())
        .join(repaid, on=BY_CUSTOMER, how="left", validate="1:1")
        .filter(
            pl.col("lenders") >= LENDERS,
            pl.col("funded") >= STACKED_SHARE * pl.col("usual"),
            pl.col("repaid").fill_null(0) < PAID_OFF * pl.col("funded"),
        )
    )
    about = pl.lit(None, pl.String)
    return loans.join(stacks, on=BY_CUSTOMER, how="semi").select(
        BY_CUSTOMER, "transaction_id", about=about, cents="size"
    )


def _spent_loans(facts: Facts) -> pl.LazyFrame:
    """Return `transaction_id` of new loans that one payment spent."""
    payments = facts.cached(candidates).lazy().filter("is_payment", pl.col("age") < STACKING_DAYS)
    spent = payments.select(BY_CUSTOMER, spent_on="date", spent="size")
    days = (pl.col("spent_on") - pl.col("date")).dt.total_days()
    return (
        facts.cached(new_loans)
        .lazy()
        .join(spent, on=BY_CUSTOMER)
        .filter(days.is_between(0, SPENT_DAYS), pl.col("spent").is_between(SPENT * pl.col("size"), pl.col("size")))
        .select("transaction_id")
        .unique()
    )


def disguised_loans(facts: Facts) -> pl.LazyFrame:
    """Return receipts that look like loans, and their repayments.

    Such a receipt is large, its payer's only one, and followed by a stream of payments to other parties
    (`payment_streams`). A stream belongs to the latest receipt before it, and a receipt has one stream.
    """
    rows = facts.cached(candidates).lazy()
    is_single = pl.col("party").is_null() | (pl.len().over(BY_CUSTOMER, "party") == 1)
    receipts = rows.filter("is_receipt", pl.col("age") < RECENT).filter(
        is_single, pl.col("size") >= LOAN_SHARE * pl.col("usual")
    )
    received = receipts.select(BY_CUSTOMER, "transaction_id", "date", "name", "is_revenue", lent="size", payer="party")
    days = (pl.col("first") - pl.col("date")).dt.total_days()
    instalments = pl.col("lent") / pl.col("size")
    streams = facts.cached(payment_streams).lazy()
    pairs = received.join(streams, on=BY_CUSTOMER).filter(
        days.is_between(1, FIRST_REPAYMENT_DAYS),
        instalments.is_between(MIN_INSTALMENTS, MAX_INSTALMENTS),
        pl.col("size") * pl.col("times") <= MAX_REPAID * pl.col("lent"),
    )
    stream = [BY_CUSTOMER, "first", "size"]
    matched = (
        pairs.filter(~pl.col("parties").list.contains(pl.col("payer"), nulls_equal=True))
        .join(_collected_by_payer(pairs), on=stream, how="anti")
        .sort(BY_CUSTOMER, "date", "first", "transaction_id", "size")
        .unique(stream, keep="last", maintain_order=True)
        .unique("transaction_id", keep="first", maintain_order=True)
    )
    lent = matched.select(BY_CUSTOMER, "transaction_id", about="name", cents="lent")
    repaid = matched.select(BY_CUSTOMER, transaction_id="rows", about="name", cents=pl.lit(0, pl.Int64))
    return pl.concat([lent, repaid.explode("transaction_id")])


def _collected_by_payer(pairs: pl.LazyFrame) -> pl.LazyFrame:
    """Return the pairs whose payer collects the stream under a name that a bank may have cut, if the receipt isn't
    revenue: a loan that nothing disguises.
    """
    payer, payee = pl.col("payer"), pl.col("parties")
    is_cut = payer.str.starts_with(payee) | payee.str.starts_with(payer)
    return pairs.filter(~pl.col("is_revenue")).explode("parties").filter(is_cut)


def payment_streams(facts: Facts) -> pl.DataFrame:
    """Return streams: equal payments at regular intervals, to one or several payees who were not paid before.

    Columns: `customer_number`; `size` of each payment; `first`, the day of the first one; `times`, how many there are;
    `rows`, their transaction ids; and `parties`, their payees.
    """
    size = (-pl.col("amount")).to_physical().cast(pl.Int64)
    gaps, stream = pl.col("date").diff().dt.total_days(), (BY_CUSTOMER, "size")
    regular = (
        facts.rows.lazy()
        .filter(pl.col("amount") < 0, pl.col("is_external"), pl.col("age") < RECENT + MONTH)
        .filter(~is_institution(), ~pl.col("category_group").is_in(NOT_REPAYMENTS))
        .select(BY_CUSTOMER, "transaction_id", "date", size=size, party="counterparty_group")
        .filter(pl.len().over(stream) >= MIN_REPAYMENTS)  # early: the rhythm below costs time per stream
        .group_by(stream, maintain_order=True)
        .agg(
            first=pl.col("date").first(),
            times=pl.len(),
            mean=gaps.mean(),
            longest=gaps.max(),
            rows="transaction_id",
            parties=pl.col("party").unique(maintain_order=True),
        )
        .filter(pl.col("mean").is_between(1, LONGEST_PERIOD), pl.col("longest") <= 2 * pl.col("mean") + GRACE_DAYS)
        .select(*stream, "first", "times", "rows", "parties")
        .pipe(collect)
    )
    if regular.is_empty():  # true for many customers
        return regular
    paid = facts.rows.lazy().filter(pl.col("amount") < 0, pl.col("age") >= MONTH)
    before = paid.group_by(BY_CUSTOMER, parties="counterparty_group").agg(earliest=pl.col("date").min())
    known = (
        regular.lazy()
        .select(*stream, "first", "parties")
        .explode("parties")
        .join(before, on=[BY_CUSTOMER, "parties"], validate="m:1")
        .filter(pl.col("earliest") < pl.col("first"))
    )
    return regular.lazy().join(known, on=stream, how="anti", maintain_order="left").pipe(collect)
