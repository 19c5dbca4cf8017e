"""Detect texts that contradict the rhythm of their rows: instalments that are described as monthly bills.

A forger who gives a lender's instalments other texts can't change their amounts and days. Subscriptions, phones and the
bank's own fees are charged once a month; the same sum every day, week or fortnight is how loans are repaid. Monthly
instalments have the rhythm of a bill. They show only if the texts contradict each other: if the same sum goes to one
payee in one month and to another in the next, or to a payee who is paid a fraction of it for its software as well.
"""

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity.candidates import MONTH, SMALLEST, SMALLEST_SHARE, usual_month
from pipelines.integrity.injections import GRACE_DAYS, LONGEST_PERIOD
from pipelines.vocabulary.plans import collect

# All our judgement.
SOFTWARE = "software"
BILLED_MONTHLY = (SOFTWARE, "telecommunications", "bank_fees", "platform_fees")  # the last also with every sale
MIN_INSTALMENTS = 6
LONGEST_MONTH = 35  # days between monthly payments, on average
MAX_OF_PAYEE = 0.75  # share of one payee; beyond it, other names may be mistakes of the enrichment
TIMES_DEARER = 5  # than the payee's other bills: a payee's plans for small businesses differ less
_STREAM = (*BY_ACCOUNT, "size")


def odd_bills(facts: Facts) -> pl.DataFrame:
    """Return equal payments for what is billed by the month that are paid like instalments.

    They recur at least every LONGEST_PERIOD days; or monthly, to changing payees or to one whose other bills are far
    lower. A month of them must be as large as a single row must be to matter (`candidates`). Columns:
    `customer_number, account_id, date, transaction_id, size` (cents), `party` and `is_billed`.
    """
    is_billed = pl.col("category").is_in(BILLED_MONTHLY).fill_null(value=False)
    paid = (
        facts.rows.lazy()
        .filter(pl.col("amount") < 0)
        .select(
            *(*BY_ACCOUNT, "date", "transaction_id"),
            size=(-pl.col("amount")).to_physical().cast(pl.Int64),
            party="counterparty_group",
            is_billed=is_billed,
        )
        # Early: the rhythm below costs time per stream. A few texts of a stream may belong to other categories.
        .filter(pl.len().over(_STREAM) >= MIN_INSTALMENTS, pl.col("is_billed").mean().over(_STREAM) > 0.5)
        .pipe(collect)
    )
    if paid.is_empty():  # true for most customers, and the query below takes time even on an empty frame
        return paid
    gaps, known = pl.col("date").diff().dt.total_days(), pl.col("party").is_not_null()
    mean, monthly = pl.col("mean"), pl.col("monthly")
    changes = (known.sum() >= MIN_INSTALMENTS) & (pl.col("of_party").filter(known).max() <= MAX_OF_PAYEE * known.sum())
    streams = (
        paid.lazy()
        .sort(*_STREAM, "date")
        .with_columns(of_party=pl.len().over(*_STREAM, "party"))
        .group_by(_STREAM, maintain_order=True)
        .agg(mean=gaps.mean(), longest=gaps.max(), changes=changes)
        .join(facts.cached(usual_month).lazy(), on=BY_CUSTOMER, how="left", validate="m:1")
        .with_columns(monthly=pl.col("size") * MONTH / mean)
        .filter(
            mean.is_between(1, LONGEST_MONTH),
            pl.col("longest") <= 2 * mean + GRACE_DAYS,
            monthly >= SMALLEST,
            monthly * SMALLEST_SHARE >= pl.col("usual"),
        )
        .pipe(collect)
    )
    if streams.is_empty():  # true for most customers, too
        return paid.clear()
    is_dear = (pl.col("size") >= TIMES_DEARER * pl.col("usual_bill")).fill_null(value=False)
    odd = (
        streams.lazy()
        .join(_usual_bills(facts, paid), on=_STREAM, how="left", validate="1:1")
        .filter((mean <= LONGEST_PERIOD) | pl.col("changes") | is_dear)
    )
    return paid.lazy().join(odd, on=_STREAM, how="semi", maintain_order="left").pipe(collect)


def _usual_bills(facts: Facts, paid: pl.DataFrame) -> pl.LazyFrame:
    """Return `usual_bill` by `_STREAM`: the median (cents) of what its payees are paid for software besides it.

    Without MIN_INSTALMENTS such payments there is none.
    """
    bills = facts.rows.lazy().filter(pl.col("amount") < 0, pl.col("category") == SOFTWARE)
    other = bills.select(
        BY_CUSTOMER, party="counterparty_group", other=(-pl.col("amount")).to_physical().cast(pl.Int64)
    )
    return (
        paid.lazy()
        .select(*_STREAM, "party")
        .unique()
        .join(other, on=[BY_CUSTOMER, "party"], how="inner")
        .filter(pl.col("other") != pl.col("size"))
        .group_by(_STREAM)
        .agg(pl.len(), usual_bill=pl.col("other").median())
        .filter(pl.col("len") >= MIN_INSTALMENTS)
        .drop("len")
    )


def reworded_instalments(facts: Facts) -> pl.LazyFrame:
    """Return the rows of `odd_bills`."""
    found = facts.cached(odd_bills).lazy()
    return found.select(BY_CUSTOMER, "transaction_id", about=pl.lit(None, pl.String), cents="size")
