"""Tables that know where their figures come from.

A table has rows with keys. Its figures are of two kinds. A `Total` is summed over the rows of a `Source`: `part` says
what one row contributes. A `Derived` is computed from other columns of its row. Both are declared once and used twice:
to compute the table for all customers, and to explain one figure.

    Table(
        id="monthly_cash_flow", ..., keys=(Column("month", "month"),),
        sources=(Source(rows_by_month, (Total("moneyIn", "AUD", pl.col("money_in")), ...)),),
        derived=(Derived("net", "AUD", ("moneyIn", "moneyOut"), pl.col("moneyIn") - pl.col("moneyOut"), "in − out"),),
    )
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, partial, reduce
from typing import Any

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.json_text import object_text
from pipelines.figures.lineage import Constant, Formula, Sum, Trace, contributions, find_input, no_figure
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.report_values import RATIO, SCORE

UNITS: Mapping[str, pl.DataType] = {
    "AUD": pl.Decimal(38, 2),
    "AUD days": pl.Decimal(38, 2),  # balances times the days they were held
    "AUD squared": pl.Decimal(38, 4),
    "count": pl.Int64(),
    "days": pl.Int64(),
    "ratio": RATIO,
    "points": SCORE,
    "probability": pl.Decimal(38, 10),
    "date": pl.Date(),
    "month": pl.Date(),  # the month's first day
    "boolean": pl.Boolean(),
    "text": pl.String(),
}
NO_LINES = pl.DataFrame(schema={BY_CUSTOMER: pl.Int64(), "line": pl.String()})
NUMBERS = ("AUD", "AUD days", "AUD squared", "count", "days", "ratio", "points", "probability")


@dataclass(frozen=True)
class Column:
    """`unit` is one of UNITS; `meaning` describes the column to readers of the report."""

    name: str
    unit: str
    meaning: str = field(default="", kw_only=True)

    @property
    def is_number(self) -> bool:
        return self.unit in NUMBERS


@dataclass(frozen=True)
class Total(Column):
    """The sum of `part` over a source's rows; 0 where there are none.

    `complete`: the total is null if the part of any row is null or there are no rows, for balances that must all be
    known.
    """

    part: pl.Expr
    complete: bool = False

    @cached_property
    def contribution(self) -> pl.Expr:
        """Return what a row contributes, in the total's unit."""
        return self.part.cast(UNITS[self.unit]).alias(self.name)

    @cached_property
    def summed(self) -> pl.Expr:
        """Return the sum of what rows contribute, or of sums computed before."""
        parts = pl.col(self.name)
        return pl.when(parts.is_not_null().all() & (pl.len() > 0)).then(parts.sum()) if self.complete else parts.sum()


@dataclass(frozen=True)
class Derived(Column):
    """A figure computed from the row's columns `inputs` by the expression `value`; `words` describe the computation."""

    inputs: tuple[str, ...]
    value: pl.Expr
    words: str


@dataclass(frozen=True)
class Source:
    """Rows that totals are summed over.

    `rows`: facts → `customer_number`, `keys` (all of the table's when None), `transaction_id` of the row
    that contributes, and the columns that the totals' parts read. A transaction may occur several times.
    `summed`: the same totals, already summed: `customer_number`, the keys, and each total by its name. Use it where a
    sum is faster than row by row; the result must be equal.
    `is_listed`: the table's `listed` has the summed totals already.
    """

    rows: Callable[[Facts], pl.LazyFrame]
    totals: tuple[Total, ...]
    keys: tuple[str, ...] | None = None
    summed: Callable[[Facts], pl.LazyFrame] | None = None
    is_listed: bool = False


@dataclass(frozen=True)
class Table:
    """`hierarchy`: what a row is about (`customer`, `category`, `account` …); `type`: `time_series` or `summary`.

    `listed` gives the rows: `customer_number`, the keys and the `details` columns (names, dates, marks), one row each;
    without it, the rows are the groups of the first source. `order` sorts a customer's rows and must have no ties;
    `hidden` columns are inputs of derived ones and not shown. `meaning` describes the table and its rules.
    `is_usually_empty`: most customers have no rows, so their sums are planned only if there are rows.
    """

    id: str
    name: str
    hierarchy: str
    type: str
    keys: tuple[Column, ...]
    sources: tuple[Source, ...]
    order: tuple[str, ...]
    details: tuple[Column, ...] = ()
    derived: tuple[Derived, ...] = ()
    listed: Callable[[Facts], pl.LazyFrame] | None = None
    hidden: tuple[str, ...] = ()
    descending: tuple[bool, ...] | bool = False
    is_usually_empty: bool = False
    meaning: str = ""

    @cached_property
    def totals(self) -> tuple[Total, ...]:
        return tuple(total for source in self.sources for total in source.totals)

    @cached_property
    def stated_columns(self) -> tuple[Column, ...]:
        """Columns that are known before anything is summed."""
        return (*self.keys, *self.details)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns shown."""
        every = (*self.stated_columns, *self.totals, *self.derived)
        return tuple(column for column in every if column.name not in self.hidden)

    @cached_property
    def row_keys(self) -> tuple[str, ...]:
        return tuple(key.name for key in self.keys)

    def rows(self, facts: Facts) -> pl.LazyFrame:
        """Return all customers' rows: `customer_number` and every column, hidden ones too."""
        sources = [source for source in self.sources if not source.is_listed]
        listed = self.listed(facts) if self.listed else self._sum_source(sources.pop(0), facts)
        if self.is_usually_empty:
            first = listed.pipe(collect)
            listed = first.lazy()
            if first.is_empty():
                return listed.with_columns(self._null_sums)
        summed = ((self._sum_source(source, facts), self.keys_of(source)) for source in sources)
        joined = reduce(join_by_keys, summed, listed)
        return reduce(pl.LazyFrame.with_columns, self._filled_and_derived, joined)

    @cached_property
    def no_rows(self) -> pl.LazyFrame:
        """No rows, as `listed` returns them when it is known in advance that there are none."""
        return pl.LazyFrame(
            schema={BY_CUSTOMER: pl.Int64(), **{column.name: UNITS[column.unit] for column in self.stated_columns}}
        )

    @cached_property
    def _null_sums(self) -> list[pl.Expr]:
        return [pl.lit(None, UNITS[column.unit]).alias(column.name) for column in (*self.totals, *self.derived)]

    @cached_property
    def _filled_and_derived(self) -> tuple[list[pl.Expr], ...]:
        """Columns to add to the sums, in steps: each derived column comes after those that it is computed from."""
        filled = [pl.col(total.name).fill_null(0) for total in self.totals if not total.complete]
        steps: list[list[pl.Expr]] = [filled]
        step_of: dict[str, int] = {}
        for derived in self.derived:
            step = step_of[derived.name] = 1 + max((step_of.get(name, 0) for name in derived.inputs), default=0)
            steps += [[] for _ in range(step + 1 - len(steps))]
            steps[step].append(_as_unit(derived.value, derived))
        return tuple(steps)

    def lines(self, facts: Facts) -> pl.LazyFrame:
        """Return `customer_number, line` of all customers in order, where `line` is a row's JSON text."""
        return self.lines_of(self.rows(facts))

    def lines_of(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Return `lines` of computed rows."""
        return self.sort_rows(rows).select(BY_CUSTOMER, self._line)

    def sort_rows(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Sort computed rows as they are reported: customer by customer, in the table's order."""
        descending = [self.descending] * len(self.order) if isinstance(self.descending, bool) else [*self.descending]
        return rows.sort(BY_CUSTOMER, *self.order, descending=[False, *descending])

    @cached_property
    def _line(self) -> pl.Expr:
        return object_text({column.name: UNITS[column.unit] for column in self.columns}).alias("line")

    def explain(self, facts: Facts, row: Mapping[str, Any], path: Sequence[str]) -> Trace:
        """Explain where a column of a row comes from.

        Args:
            facts: of the one customer.
            row: as reported; its keys identify it.
            path: the column's name, then names of inputs below it.

        Raises:
            NotFound: there is no such figure.
        """
        name, *inputs = path
        return find_input(self._trace(facts, row, name), inputs)

    def _trace(self, facts: Facts, row: Mapping[str, Any], name: str) -> Trace:
        for total in self.totals:
            if total.name == name:
                return Sum(contributions(self.contributing_rows(total, facts, row), total.contribution))
        for derived in self.derived:
            if derived.name == name:
                inputs = {each: self._input(facts, row, each) for each in derived.inputs}
                return Formula(derived.words, inputs, partial(self._recompute, derived))
        if any(column.name == name and column.is_number for column in self.stated_columns):
            return Formula("stated with the row", {"value": row[name]}, lambda values: values["value"])
        raise no_figure([self.id, name])

    def _input(self, facts: Facts, row: Mapping[str, Any], name: str) -> Trace | Constant:
        if any(column.name == name for column in self.stated_columns):
            constant: Constant = row[name] if name in row else self._read_hidden(facts, row, name)
            return constant
        traced = self._trace(facts, row, name)
        if isinstance(traced, Sum) and row.get(name, 0) is None:
            return None
        return traced

    def _read_hidden(self, facts: Facts, row: Mapping[str, Any], name: str) -> Constant:
        """Return the value of a stated column that is not shown."""
        details = (
            (self.listed or self.rows)(facts).filter(self._has_same_keys(row, self.row_keys)).select(name).pipe(collect)
        )
        constant: Constant = details.item()
        return constant

    def _has_same_keys(self, row: Mapping[str, Any], keys: Sequence[str]) -> pl.Expr:
        """Match rows with the same keys as this one, which may have been read from JSON."""
        same = (pl.col(key).eq_missing(_literal(row[key], self._unit_of(key))) for key in keys)
        return pl.all_horizontal(pl.lit(value=True), *same)

    def _recompute(self, derived: Derived, values: Mapping[str, Constant]) -> Constant:
        """Return the derived figure, computed from its inputs alone."""
        columns = [_literal(values[name], self._unit_of(name)).alias(name) for name in derived.inputs]
        recomputed: Constant = pl.select(columns).select(_as_unit(derived.value, derived)).item()
        return recomputed

    def totals_behind(self, name: str) -> tuple[Total, ...]:
        """Return the totals that a column is made of, each once: itself or its inputs'; none for a stated column."""
        inputs = next((derived.inputs for derived in self.derived if derived.name == name), ())
        behind = (total for each in inputs for total in self.totals_behind(each))
        own = (total for total in self.totals if total.name == name)
        return tuple({total.name: total for total in (*own, *behind)}.values())

    def contributing_rows(self, total: Total, facts: Facts, row: Mapping[str, Any]) -> pl.LazyFrame:
        """Return the source rows that a total of this reported row is summed over."""
        source = next(source for source in self.sources if any(total is own for own in source.totals))
        return source.rows(facts).filter(self._has_same_keys(row, self.keys_of(source)))

    def _sum_source(self, source: Source, facts: Facts) -> pl.LazyFrame:
        if source.summed:
            return source.summed(facts)
        return sum_totals(source.rows(facts), self.keys_of(source), source.totals)

    def keys_of(self, source: Source) -> tuple[str, ...]:
        """Return the keys that a source's rows are grouped by."""
        return self.row_keys if source.keys is None else source.keys

    def _unit_of(self, name: str) -> pl.DataType:
        every = (*self.stated_columns, *self.totals, *self.derived)
        return next(UNITS[column.unit] for column in every if column.name == name)

    def as_data(self) -> dict[str, object]:
        """Return what is reported beside the values: the table's description and columns."""
        columns = [{"name": column.name, "unit": column.unit} for column in self.columns]
        return {"id": self.id, "name": self.name, "hierarchy": self.hierarchy, "type": self.type, "columns": columns}


def sum_totals(rows: pl.LazyFrame, keys: Sequence[str], totals: Sequence[Total]) -> pl.LazyFrame:
    """Sum the totals of each customer's rows by these keys."""
    all_keys = (BY_CUSTOMER, *keys)
    parts = rows.select(*all_keys, *(total.contribution for total in totals))
    return parts.group_by(all_keys).agg(total.summed for total in totals)


def join_by_keys(rows: pl.LazyFrame, summed: tuple[pl.LazyFrame, tuple[str, ...]]) -> pl.LazyFrame:
    """Join a table's rows with sums by these keys."""
    frame, keys = summed
    return rows.join(frame, on=(BY_CUSTOMER, *keys), how="left", validate="m:1", nulls_equal=True)


def _as_unit(value: pl.Expr, column: Column) -> pl.Expr:
    return value.cast(UNITS[column.unit]).alias(column.name)


def _literal(value: Constant, kind: pl.DataType) -> pl.Expr:
    """Return a row's value, as computed or as read from JSON, as an expression."""
    day = kind == pl.Date() and isinstance(value, str)
    return pl.lit(date.fromisoformat(value) if day else value).cast(kind)
