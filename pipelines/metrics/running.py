"""Running totals: a Boolean column for each filter, and a running total over all rows for each filter and measure.

The sum of a customer's rows in a window is the total at the window's end minus the total at its beginning. So a window
costs two look-ups per customer, and another metric over rows already totalled costs next to nothing.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics.definition import Measure, Where, Window
from pipelines.metrics.rows import conditions, with_direction
from pipelines.metrics.windows import Edge, dates, edges

CENTS, WIDE = pl.Int64(), pl.Int128()
_CENTS_BITS = 62  # totals below 2**62 cents fit CENTS, with room for the difference of two


@dataclass(frozen=True)
class Counted:
    """Rows that meet `where`, its direction stated, and the column to sum: `cents`, `size` (without sign) or `ones`."""

    where: Where
    column: str


def measured(where: Where, measure: Measure) -> Counted:
    """Sum the measure of matching rows."""
    columns = {"rows": "ones", "size": "size"}
    return Counted(with_direction(where, measure), columns.get(measure, "cents"))


def number_of_rows(where: Where, measure: Measure) -> Counted:
    """Count matching rows."""
    return Counted(with_direction(where, measure), "ones")


Between = tuple[Counted, Edge, Edge]  # what to count, the first edge, and the edge after the last row


class Running:
    """Customers' rows, marked and totalled for given filters and measures, at the edges of given windows.

    `marked`: the rows, in their order, with `customer` (index among the customers), `row` (index among the
    rows), `cents`, `size`, and a Boolean column per filter (`mark`) and per window (`inside`).
    """

    def __init__(
        self,
        rows: pl.DataFrame,
        periods: pl.DataFrame,
        totalled: Iterable[Between],
        marked: Iterable[tuple[Where, Window]],
    ) -> None:
        """Mark and total the rows.

        Args:
            rows: of `Facts.rows`, sorted by customer and day.
            periods: of customers whose `place` is among those of the rows; if `marked` is not empty, of exactly the
                rows' customers, in the same order.
            totalled: everything that `between` will be asked for.
            marked: filters, their direction stated, and windows whose rows will be asked for.
        """
        totalled, marked = list(totalled), list(marked)
        filters = [each.where for each, _, _ in totalled] + [where for where, _ in marked]
        windows = dict.fromkeys(window for _, window in marked)
        at = [edge for _, *both in totalled for edge in both] + [edge for window in windows for edge in edges(window)]
        self.customers = periods.height
        self._total_type = _total_type(rows)
        self._marks = {where: f"mark_{nth}" for nth, where in enumerate(dict.fromkeys(filters))}
        self._windows = {window: f"inside_{nth}" for nth, window in enumerate(windows)}
        self._totals = {each: f"total_{nth}" for nth, each in enumerate(dict.fromkeys(each for each, _, _ in totalled))}
        self._edges = {edge: nth for nth, edge in enumerate(dict.fromkeys(at))}
        marked_rows = self._mark(rows)
        self._places = self._place(marked_rows, periods)
        self._at_edges = self._total(marked_rows)
        self.marked = self._mark_windows(marked_rows)

    def mark(self, where: Where) -> str:
        """Return the column that says which rows meet the filter."""
        return self._marks[where]

    def inside(self, window: Window) -> str:
        """Return the column that says which rows lie in their customer's window."""
        return self._windows[window]

    def between(self, each: Sequence[Between]) -> pl.Series:
        """Return the sums between edges: all customers' for the first, then all for the second …"""
        if not each:
            return pl.Series([], dtype=WIDE)
        until = [self._at(counted, edge) for counted, _, edge in each]
        since = [self._at(counted, edge) for counted, edge, _ in each]
        return (pl.concat(until) - pl.concat(since)).cast(WIDE)

    def _at(self, counted: Counted, edge: Edge) -> pl.Series:
        return self._of_edge(self._at_edges[counted], edge)

    def _of_edge(self, values: pl.Series, edge: Edge) -> pl.Series:
        return values.slice(self._edges[edge] * self.customers, self.customers)

    def _mark(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Add row and customer numbers, cents, size and the filters' marks.

        A condition that several filters share is computed once.
        """
        shared: dict[Hashable, str] = {}
        columns: list[pl.Expr] = []
        marks: list[pl.Expr] = []
        for where, mark in self._marks.items():
            names = []
            for key, condition in conditions(where):
                if key not in shared:
                    shared[key] = f"condition_{len(shared)}"
                    columns.append(condition.alias(shared[key]))
                names.append(shared[key])
            marks.append((pl.all_horizontal(names) if names else pl.repeat(value=True, n=rows.height)).alias(mark))
        cents = pl.col("amount").to_physical().cast(self._total_type)
        frame = rows.with_columns(
            pl.int_range(pl.len()).alias("row"),
            pl.col(BY_CUSTOMER).rle_id().cast(pl.Int64).alias("customer"),
            cents.alias("cents"),
            cents.abs().alias("size"),
            *columns,
        )
        return frame.with_columns(marks).drop(shared.values())

    def _mark_windows(self, marked: pl.DataFrame) -> pl.DataFrame:
        row, customer = pl.col("row"), pl.col("customer")
        inside = []
        for window, name in self._windows.items():
            older, newer = (pl.lit(self._of_edge(self._places, edge)).gather(customer) for edge in edges(window))
            inside.append(((row >= older) & (row < newer)).alias(name))
        return marked.with_columns(inside)

    def _place(self, marked: pl.DataFrame, periods: pl.DataFrame) -> pl.Series:
        """Return how many rows of all customers lie before each edge.

        Rows are sorted by customer and day, so both together are one sorted number that can be searched.
        """
        keys = dates(list(self._edges), periods).select(key=_key(pl.col("customer"), pl.col("date")))["key"]
        rows = marked.select(key=_key(pl.col("customer"), pl.col("date")))["key"].set_sorted()
        return rows.search_sorted(keys, side="left").cast(pl.Int64)

    def _total(self, marked: pl.DataFrame) -> dict[Counted, pl.Series]:
        before = (self._places - 1).set(self._places == 0, None)
        totals = (self._running(each).gather(before).alias(name) for each, name in self._totals.items())
        at_edges = marked.select(totals).fill_null(0)
        return {each: at_edges[name] for each, name in self._totals.items()}

    def _running(self, each: Counted) -> pl.Expr:
        is_met = pl.col(self.mark(each.where))
        if each.column == "ones":
            # The sum of Booleans has its own type: see `_total_type`.
            return is_met.cum_sum().cast(self._total_type)
        return pl.when(is_met).then(each.column).otherwise(0).cum_sum()


def _key(customer: pl.Expr, day: pl.Expr) -> pl.Expr:
    return customer * 2**32 + day.to_physical()
    # One number that sorts by customer, then by day: days since 1970 fit into 32 bits.


def _total_type(rows: pl.DataFrame) -> pl.DataType:
    """Return the one type of all running totals, wide enough for the sum of all rows.

    Numbers of rows have it too, because totals are concatenated, which converts nothing.
    """
    return CENTS if int(rows["amount"].abs().sum() * 100) < 2**_CENTS_BITS else WIDE
