"""Detect texts that contradict the rhythm of their rows: instalments that are described as monthly bills.

A forger who gives a lender's instalments other texts can't change their amounts and days. Subscriptions, phones and the
bank's own fees are charged once a month; the same sum every day, week or fortnight is how loans are repaid.
"""

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity.candidates import MONTH, SMALLEST, SMALLEST_SHARE, YEAR, usual_month
from pipelines.integrity.injections import GRACE_DAYS, LONGEST_PERIOD
from pipelines.vocabulary.plans import collect

# Both our judgement.
BILLED_MONTHLY = ("software", "telecommunications", "bank_fees")
MIN_INSTALMENTS = 6
_STREAM = (*BY_ACCOUNT, "size")


def frequent_bills(facts: Facts) -> pl.DataFrame:
    """Return equal payments for what is billed by the month that recur at least every LONGEST_PERIOD days.

    A month of them must be as large as a single row must be to matter (`candidates`). Columns: `customer_number,
    account_id, date, transaction_id, size` (cents).
    """
    gaps = pl.col("date").diff().dt.total_days()
    paid = (
        facts.rows.lazy()
        .filter(pl.col("amount") < 0, pl.col("age") < YEAR, pl.col("category").is_in(BILLED_MONTHLY))
        .select(*BY_ACCOUNT, "date", "transaction_id", size=(-pl.col("amount")).to_physical().cast(pl.Int64))
        .filter(pl.len().over(_STREAM) >= MIN_INSTALMENTS)  # early: the rhythm below costs time per stream
        .pipe(collect)
    )
    if paid.is_empty():  # true for most customers, and the query below takes time even on an empty frame
        return paid
    streams = (
        paid.lazy()
        .sort(*_STREAM, "date")
        .group_by(_STREAM, maintain_order=True)
        .agg(mean=gaps.mean(), longest=gaps.max())
        .join(facts.cached(usual_month).lazy(), on=BY_CUSTOMER, how="left", validate="m:1")
        .with_columns(monthly=pl.col("size") * MONTH / pl.col("mean"))
        .filter(
            pl.col("mean").is_between(1, LONGEST_PERIOD),
            pl.col("longest") <= 2 * pl.col("mean") + GRACE_DAYS,
            pl.col("monthly") >= SMALLEST,
            pl.col("monthly") * SMALLEST_SHARE >= pl.col("usual"),
        )
    )
    return paid.lazy().join(streams, on=_STREAM, how="semi", maintain_order="left").pipe(collect)


def reworded_instalments(facts: Facts) -> pl.LazyFrame:
    """Return the rows of `frequent_bills`."""
    found = facts.cached(frequent_bills).lazy()
    return found.select(BY_CUSTOMER, "transaction_id", about=pl.lit(None, pl.String), cents="size")
