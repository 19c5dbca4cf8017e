"""Aggregates over one sum per month.

Sums stay in whole cents until the last step, so that the order of rows or months can't change the result.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import polars as pl

from pipelines.metrics.definition import SIDES, Months, Transactions
from pipelines.metrics.outcome import INSUFFICIENT_HISTORY, LARGEST, SCALE, cause_where, fractions
from pipelines.metrics.running import WIDE, Between, sum_of_measure
from pipelines.metrics.windows import month_edges

_ONE = 10**SCALE


def sums(definition: Transactions) -> list[Between]:
    """Return what to sum for each month of the window, the latest first."""
    assert isinstance(definition.window, Months)
    each, at = sum_of_measure(definition.where, definition.measure), month_edges(definition.window)
    return [(each, older, newer) for newer, older in pairwise(at)]


def outcomes(definitions: Sequence[Transactions]) -> Callable[[pl.Series, pl.Series], pl.LazyFrame]:
    """Return a function that computes FRACTION of all customers for the first metric, then for the second …

    Its arguments: the months' sums, in the order of the function `sums`, and each customer's complete months.
    """
    metrics = pl.DataFrame([_parameters(nth, each) for nth, each in enumerate(definitions)], schema=_PARAMETERS)
    months = metrics.with_columns(back=pl.int_ranges("months")).explode("back")
    is_complete, aggregates = pl.col("back") + pl.col("offset") < pl.col("complete_months"), _aggregates()
    outcome = _outcome(list(dict.fromkeys(each.aggregate for each in definitions)))

    def compute(sums: pl.Series, complete_months: pl.Series) -> pl.LazyFrame:
        customers = complete_months.rename("complete_months").cast(pl.Int64).to_frame().with_row_index("customer")
        each = months.lazy().join(customers.lazy(), how="cross", maintain_order="left_right")
        # Incomplete months stay, without their sum: so every metric has a group, in order, for every customer.
        counted = each.with_columns(cents=pl.when(is_complete).then(sums * pl.col("sign")))
        return outcome(counted.group_by("metric", "customer", maintain_order=True).agg(aggregates))

    return compute


_PARAMETERS = pl.Schema(
    {
        "metric": pl.Int64(),
        "aggregate": pl.String(),
        "months": pl.Int64(),
        "offset": pl.Int64(),
        "sign": WIDE,
        "below": WIDE,
    }
)


def _parameters(nth: int, definition: Transactions) -> dict[str, object]:
    assert isinstance(definition.window, Months)
    return {
        "metric": nth,
        "aggregate": definition.aggregate,
        "months": definition.window.months,
        "offset": definition.window.offset,
        "sign": -1 if SIDES.get(definition.measure) == "debit" else 1,
        "below": int((definition.below or 0) * _ONE),
    }


def _aggregates() -> tuple[pl.Expr, ...]:
    cents, count, total = pl.col("cents"), pl.col("cents").count().cast(WIDE), pl.col("cents").sum()
    ordered, last = cents.drop_nulls().sort(), pl.col("cents").count().cast(pl.Int64) - 1
    twice_median = ordered.get(last // 2, null_on_oob=True) + ordered.get((last + 1) // 2, null_on_oob=True)
    deviation = (count * cents - total).cast(pl.Float64)
    return (
        pl.col("aggregate").first(),
        count.alias("count"),
        total.alias("total"),
        (cents * pl.col("back")).sum().alias("weighted"),
        cents.min().alias("lowest"),
        twice_median.alias("twice_median"),
        # The squares of `count` times each deviation. Sorted, because a sum of floats depends on the order.
        (deviation * deviation).sort().sum().alias("squares"),
        (cents * 2 * _ONE < twice_median * pl.col("below").first()).sum().alias("weak"),
    )


def _outcome(wanted: Sequence[str]) -> Callable[[pl.LazyFrame], pl.LazyFrame]:
    """Return FRACTION of each metric by its aggregate.

    Slope: least squares, with the months numbered 0, 1, 2 … from the latest backwards, is
    (6 (n − 1) Σy − 12 Σxy) / (n (n² − 1)). Volatility: √(squares / (n − 1)) / Σy, where `squares` sums
    (n × deviation)².
    """
    count, total = pl.col("count"), pl.col("total")
    increase = 6 * (count - 1) * total - 12 * pl.col("weighted")
    spread = (pl.col("squares") / (count - 1).cast(pl.Float64)).sqrt()
    relative = pl.when((count > 1) & (total > 0)).then(spread / total.cast(pl.Float64))
    volatility = pl.when(relative < LARGEST / _ONE).then((relative * _ONE).round()).cast(WIDE)
    cents = {
        "monthly_mean": (total, 100 * count),
        "monthly_median": (pl.col("twice_median"), pl.lit(200, WIDE)),
        "monthly_min": (pl.col("lowest"), pl.lit(100, WIDE)),
        "monthly_slope": (increase, 100 * count * (count * count - 1)),
        "monthly_volatility": (volatility, pl.when(total > 0).then(_ONE).otherwise(total)),
        "monthly_share_below": (pl.col("weak"), count),
    }
    top, bottom = (pl.coalesce(_value_if_aggregate(name, cents[name][nth]) for name in wanted) for nth in (0, 1))
    least = pl.when(pl.col("aggregate").is_in(["monthly_slope", "monthly_volatility"])).then(2).otherwise(1)
    cause = cause_where(INSUFFICIENT_HISTORY, count < least)
    return lambda months: fractions(months, top, bottom, cause)


def _value_if_aggregate(aggregate: str, value: pl.Expr) -> pl.Expr:
    return pl.when(pl.col("aggregate") == aggregate).then(value.cast(WIDE))
