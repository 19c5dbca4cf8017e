"""Provisional revenue: a substitute for revenue where texts are not expected.

Without texts, nobody knows what a credit is for. Takings have sizes that recur from month to month; loans, refunds and
sales of assets come once. So a credit counts as revenue if credits of its size (within a factor of two) came in at
least half of the customer's months. Reports mark figures that depend on it as provisional.

Where texts are not expected, they don't count even if somebody sent them. Only categories that the client stated by a
correction or rule remain.
"""

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.vocabulary.plans import collect

MIN_MONTHS = 0.5  # share of the months; our judgement
STATED = ("client_rule", "correction")


def with_provisional_revenue(facts: Facts) -> Facts:
    """Return the same facts with credits of recurring sizes as revenue."""
    return Facts(_replace_categories(facts), facts.as_of, facts.context)


def _replace_categories(facts: Facts) -> pl.DataFrame:
    is_stated = pl.col("category_source").is_in(STATED).fill_null(value=False)
    is_credit = (pl.col("amount") > 0) & ~pl.col("is_transfer").fill_null(value=False)
    steady = pl.col("transaction_id").is_in(_recurring_credits(facts)["transaction_id"].implode())
    group = pl.when(is_credit & steady).then(pl.lit("revenue")).otherwise(pl.lit("unknown"))
    unknown = pl.when(pl.col("amount") > 0).then(pl.lit("unknown_credit")).otherwise(pl.lit("unknown_debit"))
    blank = ("counterparty_group", "counterparty_lender_id", "counterparty_name", "series_id", "facility_id")
    return facts.transactions.with_columns(
        category_group=pl.when(is_stated).then("category_group").otherwise(group),
        category=pl.when(is_stated).then("category").otherwise(unknown),
        flags=pl.when(is_stated).then("flags"),
        **{name: pl.when(is_stated).then(name) for name in blank},
    )


def _recurring_credits(facts: Facts) -> pl.DataFrame:
    """Return the `transaction_id` of credits whose size recurs."""
    months = pl.col("month").n_unique()
    size = pl.col("amount").cast(pl.Float64).log(2).floor()  # powers of two: sizes within a factor of two
    credits_ = facts.rows.lazy().filter(pl.col("amount") > 0, ~pl.col("is_transfer").fill_null(value=False))
    seen = facts.rows.lazy().group_by(BY_CUSTOMER).agg(months_seen=months)
    return (
        credits_.select(BY_CUSTOMER, "transaction_id", "month", size=size)
        .with_columns(months=months.over(BY_CUSTOMER, "size"))
        .join(seen, on=BY_CUSTOMER, how="left", validate="m:1")
        .filter(pl.col("months") >= MIN_MONTHS * pl.col("months_seen"))
        .select("transaction_id")
        .pipe(collect)
    )
