"""Tables that know where their figures come from.

A table lists rows, told apart by its keys. Its figures are of two kinds. A `Total` is summed over the rows of a
`Source`: `part` says what one of them contributes. A `Derived` follows from other columns of its row. Both are declared
once and read twice: summed for everybody, and taken apart for the one who asks where a figure comes from.

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
from pipelines.figures.lineage import Constant, Formula, Sum, Trace, below, contributions, no_figure
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.vocabulary.printing import RATIO, SCORE

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
    "month": pl.Date(),  # its first day
    "boolean": pl.Boolean(),
    "text": pl.String(),
}
NUMBERS = ("AUD", "AUD days", "AUD squared", "count", "days", "ratio", "points", "probability")


@dataclass(frozen=True)
class Column:
    """`unit` is one of UNITS; `meaning` says what stands there, for whoever reads the report."""

    name: str
    unit: str
    meaning: str = field(default="", kw_only=True)

    @property
    def is_number(self) -> bool:
        return self.unit in NUMBERS


@dataclass(frozen=True)
class Total(Column):
    """The sum of `part` over a source's rows; 0 where there are none.

    `complete`: one row whose part is null makes the total null, and no rows do, too (balances that must all be known).
    """

    part: pl.Expr
    complete: bool = False

    def contributed(self) -> pl.Expr:
        """What a row contributes, in the total's unit."""
        return self.part.cast(UNITS[self.unit]).alias(self.name)

    def summed(self) -> pl.Expr:
        """The total of what rows have `contributed`, and of what others have summed before."""
        parts = pl.col(self.name)
        return pl.when(parts.is_not_null().all() & (pl.len() > 0)).then(parts.sum()) if self.complete else parts.sum()


@dataclass(frozen=True)
class Derived(Column):
    """What follows from other columns of the row, `of`, by the expression `value`; `words` say how."""

    of: tuple[str, ...]
    value: pl.Expr
    words: str


@dataclass(frozen=True)
class Source:
    """Rows that totals are summed over.

    `rows`: facts → `customer_number`, the keys in `by` (all of the table's when None), `transaction_id` of the row
    that contributes, and what the totals' parts read. A transaction may stand in it several times.
    `summed`: the same, already summed: `customer_number`, the keys, and each total by its name. It is for what can be
    had faster than row by row, and must come to the same.
    """

    rows: Callable[[Facts], pl.LazyFrame]
    totals: tuple[Total, ...]
    by: tuple[str, ...] | None = None
    summed: Callable[[Facts], pl.LazyFrame] | None = None


@dataclass(frozen=True)
class Table:
    """`hierarchy`: what a row is about (`customer`, `category`, `account` …); `type`: `time_series` or `summary`.

    `listed` gives the rows: `customer_number`, the keys and the `told` columns (names, dates, marks), one row each;
    without it, the rows are the groups of the first source. `order` is a total key of a customer's rows; `hidden`
    columns are there to derive from, and not shown. `meaning` says what the table tells, and its rules.
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
    meaning: str = ""

    @cached_property
    def totals(self) -> tuple[Total, ...]:
        return tuple(total for source in self.sources for total in source.totals)

    @cached_property
    def stated(self) -> tuple[Column, ...]:
        """What is known of a row before anything is summed."""
        return (*self.keys, *self.details)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns shown."""
        each = (*self.stated, *self.totals, *self.derived)
        return tuple(column for column in each if column.name not in self.hidden)

    @cached_property
    def row_keys(self) -> tuple[str, ...]:
        return tuple(key.name for key in self.keys)

    def rows(self, facts: Facts) -> pl.LazyFrame:
        """All customers' rows: `customer_number` and every column, hidden ones too."""
        summed = [self._summed(source, facts) for source in self.sources]
        first = self.listed(facts) if self.listed else summed.pop(0)
        by = [self.by(source) for source in self.sources[len(self.sources) - len(summed) :]]
        joined = reduce(beside, zip(summed, by, strict=True), first)
        return reduce(pl.LazyFrame.with_columns, self._filled_and_derived, joined)

    @cached_property
    def _filled_and_derived(self) -> tuple[list[pl.Expr], ...]:
        """What is put to the sums, in steps: each derived column after those that it follows from."""
        filled = [pl.col(total.name).fill_null(0) for total in self.totals if not total.complete]
        steps: list[list[pl.Expr]] = [filled]
        made_in: dict[str, int] = {}
        for each in self.derived:
            step = made_in[each.name] = 1 + max((made_in.get(of, 0) for of in each.of), default=0)
            steps += [[] for _ in range(step + 1 - len(steps))]
            steps[step].append(_as_unit(each.value, each))
        return tuple(steps)

    def lines(self, facts: Facts) -> pl.LazyFrame:
        """All customers' rows in their order: `customer_number`, and `line`, the row as the text of a JSON object."""
        return self.printed(self.rows(facts))

    def printed(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The same, of `rows` that were made before."""
        return self.ordered(rows).select(BY_CUSTOMER, *self._shown).select(BY_CUSTOMER, self._line)

    def ordered(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Rows that were made before, as they are printed: customer by customer, in the table's order."""
        descending = [self.descending] * len(self.order) if isinstance(self.descending, bool) else [*self.descending]
        return rows.sort(BY_CUSTOMER, *self.order, descending=[False, *descending])

    @cached_property
    def _shown(self) -> list[pl.Expr]:
        return [_as_unit(pl.col(column.name), column) for column in self.columns]

    @cached_property
    def _line(self) -> pl.Expr:
        return object_text({column.name: UNITS[column.unit] for column in self.columns}).alias("line")

    def explain(self, facts: Facts, row: Mapping[str, Any], path: Sequence[str]) -> Trace:
        """Where a column of a row comes from; further names go to the inputs of a formula.

        Args:
            facts: of the one customer.
            row: as printed; its keys say which it is.
            path: the column's name, and inputs below it.

        Raises:
            NotFound: there is no such figure.
        """
        name, *inputs = path
        return below(self._trace(facts, row, name), inputs)

    def _trace(self, facts: Facts, row: Mapping[str, Any], name: str) -> Trace:
        for total in self.totals:
            if total.name == name:
                return Sum(contributions(self.contributing(total, facts, row), total.contributed()))
        for each in self.derived:
            if each.name == name:
                inputs = {of: self._input(facts, row, of) for of in each.of}
                return Formula(each.words, inputs, partial(self._again, each))
        if any(column.name == name and column.is_number for column in self.stated):
            return Formula("stated with the row", {"value": row[name]}, lambda values: values["value"])
        raise no_figure([self.id, name])

    def _input(self, facts: Facts, row: Mapping[str, Any], name: str) -> Trace | Constant:
        if any(column.name == name for column in self.stated):
            constant: Constant = row[name] if name in row else self._hidden(facts, row, name)
            return constant
        traced = self._trace(facts, row, name)
        if isinstance(traced, Sum) and row.get(name, 0) is None:
            return None
        return traced

    def _hidden(self, facts: Facts, row: Mapping[str, Any], name: str) -> Constant:
        """What is told of the row but not shown."""
        details = (
            (self.listed or self.rows)(facts)
            .filter(self._same(row, self.row_keys))
            .select(name)
            .collect(engine="in-memory")
        )
        constant: Constant = details.item()
        return constant

    def _same(self, row: Mapping[str, Any], keys: Sequence[str]) -> pl.Expr:
        """The rows with the keys of this one, which may have been read from JSON."""
        same = (pl.col(key).eq_missing(_literal(row[key], self._unit_of(key))) for key in keys)
        return pl.all_horizontal(pl.lit(value=True), *same)

    def _again(self, each: Derived, values: Mapping[str, Constant]) -> Constant:
        """The derived figure, computed from its inputs alone."""
        columns = [_literal(values[name], self._unit_of(name)).alias(name) for name in each.of]
        again: Constant = pl.select(columns).select(_as_unit(each.value, each)).item()
        return again

    def rests_on(self, name: str) -> tuple[Total, ...]:
        """The sums that a column is made of, each once: itself, or those that it follows from; none where it is stated
        with the row.
        """
        of = next((each.of for each in self.derived if each.name == name), ())
        behind = (total for each in of for total in self.rests_on(each))
        own = (total for total in self.totals if total.name == name)
        return tuple({total.name: total for total in (*own, *behind)}.values())

    def contributing(self, total: Total, facts: Facts, row: Mapping[str, Any]) -> pl.LazyFrame:
        """The rows of its source that a total of this row, as printed, is summed over."""
        source = next(each for each in self.sources if any(total is one for one in each.totals))
        return source.rows(facts).filter(self._same(row, self.by(source)))

    def _summed(self, source: Source, facts: Facts) -> pl.LazyFrame:
        if source.summed:
            return source.summed(facts)
        return summed(source.rows(facts), self.by(source), source.totals)

    def by(self, source: Source) -> tuple[str, ...]:
        """The keys that a source's rows are grouped by."""
        return self.row_keys if source.by is None else source.by

    def _unit_of(self, name: str) -> pl.DataType:
        each = (*self.stated, *self.totals, *self.derived)
        return next(UNITS[column.unit] for column in each if column.name == name)

    def as_data(self) -> dict[str, object]:
        """What is printed beside the values."""
        columns = [{"name": column.name, "unit": column.unit} for column in self.columns]
        return {"id": self.id, "name": self.name, "hierarchy": self.hierarchy, "type": self.type, "columns": columns}


def summed(rows: pl.LazyFrame, by: Sequence[str], totals: Sequence[Total]) -> pl.LazyFrame:
    """The totals of each customer's rows by these keys."""
    keys = (BY_CUSTOMER, *by)
    parts = rows.select(*keys, *(total.contributed() for total in totals))
    return parts.group_by(keys).agg(total.summed() for total in totals)


def beside(rows: pl.LazyFrame, summed: tuple[pl.LazyFrame, tuple[str, ...]]) -> pl.LazyFrame:
    """Rows of a table, and beside each what was summed by these keys."""
    frame, by = summed
    return rows.join(frame, on=(BY_CUSTOMER, *by), how="left", validate="m:1", nulls_equal=True)


def _as_unit(value: pl.Expr, column: Column) -> pl.Expr:
    return value.cast(UNITS[column.unit]).alias(column.name)


def _literal(value: Constant, kind: pl.DataType) -> pl.Expr:
    """A value of a row, as computed or as read from JSON."""
    day = kind == pl.Date() and isinstance(value, str)
    return pl.lit(date.fromisoformat(value) if day else value).cast(kind)
