"""Windows as pairs of edges. An edge is a day for each customer; a window ends on the day before its second edge.

A few edges serve all windows. Rows are sorted by customer and day, so an edge is also an index among them, and
the sum over any window is the difference of two running totals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.metrics.definition import Days, Months, Window
from pipelines.vocabulary.plans import AS_WRITTEN


@dataclass(frozen=True)
class Edge:
    """`day`: `back` days before the day after the customer's last row. `month`: `back` calendar months before the end
    of the last complete one, but not before the beginning of the first. `start`: the beginning of all history.
    """

    kind: Literal["day", "month", "start"]
    back: int = 0


def list_edges(edges: Sequence[Edge]) -> pl.DataFrame:
    """Return the edges as a frame, for `dates`."""
    return pl.DataFrame({"kind": [edge.kind for edge in edges], "back": [edge.back for edge in edges]}, schema=_EDGES)


def dates(edges: pl.DataFrame, periods: pl.DataFrame) -> pl.DataFrame:
    """Return `customer` (its `place`) and `date`: all customers for the first edge, then for the second …"""
    return edges.join(periods, how="cross", maintain_order="left_right").select(customer="place", date=_DATE)


def _date() -> pl.Expr:
    kind, end = pl.col("kind"), pl.col("months_end")
    month = end.dt.year() * 12 + end.dt.month() - 1 - pl.col("back")
    first_of_month = pl.date(month // 12, month % 12 + 1, 1)
    earliest = pl.min_horizontal("months_start", "months_end")
    return (
        pl.when(kind == "day")
        .then(pl.col("data_through") + pl.duration(days=1 - pl.col("back")))
        .when(kind == "month")
        .then(pl.max_horizontal(first_of_month, earliest))
        .otherwise("first_date")
    )


_EDGES = pl.Schema({"kind": pl.String(), "back": pl.Int32()})
_DATE = _date()


def edges(window: Window) -> tuple[Edge, Edge]:
    """Return the edge of the window's first row, and the edge after its last row."""
    match window:
        case Days(days=days, offset=offset):
            return Edge("day", offset + days), Edge("day", offset)
        case Months(months=months, offset=offset):
            return Edge("month", offset + months), Edge("month", offset)
        case None:
            return Edge("start"), Edge("day", 0)


def month_edges(window: Months) -> list[Edge]:
    """Return the edges of the window's months, the latest first."""
    return [Edge("month", back) for back in range(window.offset, window.offset + window.months + 1)]


def periods(facts: Facts) -> pl.DataFrame:
    """Return `Facts.history` of the customers with rows, in their order, with more columns.

    `place` (among the customers of `Facts.shared_rows`), `days` from first to last row, `days_behind` (days from the
    last row to the day of computing), and of the complete calendar months `months_start` (first day of the first),
    `months_end` (first day after the last) and `complete_months` (how many).
    """
    dated = facts.history.lazy().with_columns(days_behind=facts.days_behind, place=facts.place, **_SPANS)
    return dated.with_columns(_COMPLETE_MONTHS).collect(engine="in-memory", optimizations=AS_WRITTEN)


def _complete_months() -> pl.Expr:
    start, end = pl.col("months_start"), pl.col("months_end")
    between = (end.dt.year() - start.dt.year()) * 12 + end.dt.month().cast(pl.Int32) - start.dt.month()
    return between.clip(lower_bound=0).cast(pl.Int64).alias("complete_months")


_COMPLETE_MONTHS = _complete_months()
_SPANS = {
    "days": (pl.col("data_through") - pl.col("first_date")).dt.total_days() + 1,
    "months_start": (pl.col("first_date") - pl.duration(days=1)).dt.truncate("1mo").dt.offset_by("1mo"),
    "months_end": (pl.col("data_through") + pl.duration(days=1)).dt.truncate("1mo"),
}
