"""Running totals: a Boolean column for each filter, and a running total over all rows for each filter and measure.

The sum of a customer's rows in a window is the total at the window's end minus the total at its beginning. So a window
costs two look-ups per customer, and another metric over rows already totalled costs next to nothing.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics.definition import Measure, Where, Window
from pipelines.metrics.outcome import Places, rows_at
from pipelines.metrics.rows import conditions, with_direction
from pipelines.metrics.windows import Edge, dates, edges, list_edges

CENTS, WIDE = pl.Int64(), pl.Int128()
_CENTS_BITS = 62  # totals below 2**62 cents fit CENTS, with room for the difference of two


@dataclass(frozen=True)
class Counted:
    """Rows that meet `where`, its direction stated, and the column to sum: `cents`, `size` (without sign) or `ones`."""

    where: Where
    column: str


def sum_of_measure(where: Where, measure: Measure) -> Counted:
    """Sum the measure of matching rows."""
    columns = {"rows": "ones", "size": "size"}
    return Counted(with_direction(where, measure), columns.get(measure, "cents"))


def number_of_rows(where: Where, measure: Measure) -> Counted:
    """Count matching rows."""
    return Counted(with_direction(where, measure), "ones")


Between = tuple[Counted, Edge, Edge]  # what to count, the first edge, and the edge after the last row
Spans = tuple[Places, Places]  # places among the totals at edges: before the first row, and after the last


class Layout:
    """What to mark and total, for any customers. It is made once for a set of metrics, because making it takes longer
    than using it for one customer.
    """

    def __init__(self, totalled: Iterable[Between], marked: Iterable[tuple[Where, Window]]) -> None:
        """Lay out columns.

        Args:
            totalled: everything that `spans` will be asked for.
            marked: filters, their direction stated, and windows whose rows will be asked for.
        """
        totalled, marked = list(totalled), list(marked)
        filters = [each.where for each, _, _ in totalled] + [where for where, _ in marked]
        windows = dict.fromkeys(window for _, window in marked)
        at = [edge for _, *both in totalled for edge in both] + [edge for window in windows for edge in edges(window)]
        self.filters = tuple(dict.fromkeys(filters))
        self.totals = tuple(dict.fromkeys(each for each, _, _ in totalled))
        self.edges = tuple(dict.fromkeys(at))
        self.edge_table = list_edges(self.edges)
        self._marks = {where: f"mark_{nth}" for nth, where in enumerate(self.filters)}
        self._windows = {window: f"inside_{nth}" for nth, window in enumerate(windows)}
        self._edge_places = {edge: nth for nth, edge in enumerate(self.edges)}
        self.windows = {name: self._places_of(window) for window, name in self._windows.items()}
        self._total_places = {each: nth * len(self.edges) for nth, each in enumerate(self.totals)}
        self.conditions, self.marks = self._mark()
        self.running: Mapping[pl.DataType, Sequence[pl.Expr]] = {
            total_type: [self._running_total(each, total_type) for each in self.totals] for total_type in _TYPES
        }

    def mark(self, where: Where) -> str:
        """Return the column that says which rows meet the filter."""
        return self._marks[where]

    def column_of_window(self, window: Window) -> str:
        """Return the column that says which rows lie in their customer's window."""
        return self._windows[window]

    def spans(self, each: Sequence[Between]) -> Spans:
        """Return what `Running.sums_between` takes."""
        since = [self._total_places[counted] + self._edge_places[edge] for counted, edge, _ in each]
        until = [self._total_places[counted] + self._edge_places[edge] for counted, _, edge in each]
        return np.array(since, np.int64), np.array(until, np.int64)

    def _places_of(self, window: Window) -> list[int]:
        return [self._edge_places[edge] for edge in edges(window)]

    def _mark(self) -> tuple[dict[str, pl.Expr], list[pl.Expr]]:
        """Return columns of conditions, and the filters' marks made of them.

        A condition that several filters share is computed once.
        """
        shared: dict[Hashable, str] = {}
        columns: dict[str, pl.Expr] = {}
        marks: list[pl.Expr] = []
        for where, mark in self._marks.items():
            names = []
            for key, condition in conditions(where):
                if key not in shared:
                    shared[key] = f"condition_{len(shared)}"
                    columns[shared[key]] = condition
                names.append(shared[key])
            marks.append((pl.all_horizontal(names) if names else pl.repeat(value=True, n=pl.len())).alias(mark))
        return columns, marks

    def _running_total(self, each: Counted, total_type: pl.DataType) -> pl.Expr:
        is_met = pl.col(self.mark(each.where))
        if each.column == "ones":
            # The sum of Booleans has its own type: see `_total_type`.
            return is_met.cum_sum().cast(total_type)
        return pl.when(is_met).then(each.column).otherwise(0).cum_sum()


class Running:
    """Customers' rows, marked and totalled as a layout says, at the edges of its windows.

    `marked`: the rows, in their order, with `customer` (index among the customers), `row` (index among the
    rows), `cents`, `size`, and a Boolean column per filter (`Layout.mark`) and per window (`Layout.column_of_window`).
    """

    def __init__(self, layout: Layout, rows: pl.DataFrame, periods: pl.DataFrame) -> None:
        """Mark and total the rows.

        Args:
            rows: of `Facts.rows`, sorted by customer and day.
            periods: of customers whose `place` is among those of the rows; if the layout marks rows, of exactly the
                rows' customers, in the same order.
        """
        self.customers = periods.height
        self._layout = layout
        self._total_type = _total_type(rows)
        marked_rows = self._mark(rows)
        self._places = self._count_rows_before_edges(marked_rows, periods)
        self._at_edges = self._total(marked_rows)
        self.marked = self._mark_windows(marked_rows)

    def sums_between(self, spans: Spans) -> pl.Series:
        """Return the sums between edges: all customers' for the first, then all for the second …"""
        since, until = (self._at_edges[rows_at(places, self.customers)] for places in spans)
        return (until - since).cast(WIDE)

    def _mark(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Add row and customer numbers, cents, size and the filters' marks."""
        cents = pl.col("amount").to_physical().cast(self._total_type)
        frame = rows.with_columns(
            pl.int_range(pl.len()).alias("row"),
            pl.col(BY_CUSTOMER).rle_id().cast(pl.Int64).alias("customer"),
            cents.alias("cents"),
            cents.abs().alias("size"),
            **self._layout.conditions,
        )
        plain = frame.columns[: frame.width - len(self._layout.conditions)]
        return frame.select(*plain, *self._layout.marks)

    def _mark_windows(self, marked: pl.DataFrame) -> pl.DataFrame:
        row, customer = pl.col("row"), pl.col("customer")
        inside = []
        for name, both in self._layout.windows.items():
            older, newer = (pl.lit(self._places_at(edge)).gather(customer) for edge in both)
            inside.append(((row >= older) & (row < newer)).alias(name))
        return marked.with_columns(inside)

    def _places_at(self, place: int) -> pl.Series:
        return self._places.slice(place * self.customers, self.customers)

    def _count_rows_before_edges(self, marked: pl.DataFrame, periods: pl.DataFrame) -> pl.Series:
        """Return how many rows of all customers lie before each edge.

        Rows are sorted by customer and day, so both together are one sorted number that can be searched.
        """
        keys = dates(self._layout.edge_table, periods).select(key=_key(pl.col("customer"), pl.col("date")))["key"]
        rows = marked.select(key=_key(pl.col("customer"), pl.col("date")))["key"].set_sorted()
        return rows.search_sorted(keys, side="left").cast(pl.Int64)

    def _total(self, marked: pl.DataFrame) -> pl.Series:
        """Return all totals at all edges: for the first total all edges, for each of them all customers."""
        before = pl.lit((self._places - 1).set(self._places == 0, None))
        running = self._layout.running[self._total_type]
        totals = (each.gather(before).alias(str(nth)) for nth, each in enumerate(running))
        none = pl.Series([], dtype=self._total_type)
        return pl.concat([none, *marked.select(totals).get_columns()]).fill_null(0)


def _key(customer: pl.Expr, day: pl.Expr) -> pl.Expr:
    # One number that sorts by customer, then by day: days since 1970 fit into 32 bits.
    return customer * 2**32 + day.to_physical()


_TYPES = (CENTS, WIDE)


def _total_type(rows: pl.DataFrame) -> pl.DataType:
    """Return the one type of all running totals, wide enough for the sum of all rows.

    Counts of rows have it too, because totals are concatenated, and that requires equal types.
    """
    return CENTS if int(rows["amount"].abs().sum() * 100) < 2**_CENTS_BITS else WIDE
