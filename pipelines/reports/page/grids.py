"""Tables for people: headings, and cells as formatted texts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from pipelines.reports.page.fields import Fields
from pipelines.reports.page.wording import cell_kind, figure, heading, likely_unit

MOST_ROWS = 400  # in one table of the page, our judgement; the report itself has all rows


@dataclass(frozen=True)
class Column:
    """`kind` is the CSS class of its cells: `number`, `short` (never wrapped), `text`, or `prose` for sentences."""

    heading: str
    kind: str = "text"


@dataclass(frozen=True)
class Grid:
    """A table as shown; `left_out` counts the rows beyond MOST_ROWS, in a time series the earliest ones."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0

    @classmethod
    def of(
        cls, caption: str, columns: Sequence[Column], rows: Sequence[Sequence[str]], *, newest: bool = False
    ) -> Self:
        retained = rows[-MOST_ROWS:] if newest else rows[:MOST_ROWS]
        return cls(caption, tuple(columns), tuple(map(tuple, retained)), len(rows) - len(retained))

    @property
    def lines(self) -> Iterator[tuple[str, Iterable[tuple[str, str]]]]:
        """Each row's first cell, and its other cells with their kinds."""
        kinds = [column.kind for column in self.columns[1:]]
        return ((row[0], zip(kinds, row[1:], strict=True)) for row in self.rows)


@dataclass(frozen=True)
class Table:
    """A table of the aggregate report: `units` by column in the order declared, rows, and `account_names` by id."""

    id: str
    name: str
    is_series: bool
    units: Mapping[str, str]
    rows: tuple[Fields, ...]
    account_names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, table: Fields, account_names: Mapping[str, str]) -> Self:
        declared = {str(column.text("name")): column.text("unit") or "" for column in table.many("columns")}
        rows = table.many("values")
        table_id = table.text("id") or ""
        return cls(
            id=table_id,
            name=table.text("name") or heading(table_id),
            is_series=table.text("type") == "time_series",
            units=declared or {name: "" for row in rows[:1] for name in row},
            rows=rows,
            account_names=account_names,
        )

    def where(self, holds: Callable[[Fields], bool]) -> "Table":
        return replace(self, rows=tuple(row for row in self.rows if holds(row)))

    def grid(self, caption: str | None = None, columns: Sequence[str] = ()) -> Grid:
        """Return the table with the given columns that it has, or with all, each value formatted by its unit."""
        shown = [name for name in columns if name in self.units] or list(self.units)
        rows = [[self._cell(row, name) for name in shown] for row in self.rows]
        heads = [Column(heading(name), cell_kind(self.units[name], name)) for name in shown]
        return Grid.of(caption or self.name, heads, rows, newest=self.is_series)

    def _cell(self, row: Fields, name: str) -> str:
        is_account = name.lower().endswith("accountid")
        if is_account and (known := self.account_names.get(row.text(name) or "")) is not None:
            return known
        return figure(row.raw(name), self.units[name], name)


NO_TABLE = Table("", "", is_series=False, units={}, rows=())


def loose_grid(members: Fields, name: str, account_names: Mapping[str, str]) -> Grid | None:
    """Return a member that is no declared table as a grid: an object as names and values, a list of objects as rows.

    None for any other member.
    """
    facts, rows = members.one(name), [row for row in members.many(name) if row]
    if facts:
        pairs = [(heading(each), figure(facts.raw(each), likely_unit(facts.raw(each), each), each)) for each in facts]
        return Grid.of(heading(name), (Column("What"), Column("Figure", "number")), pairs)
    if not rows:
        return None
    columns = dict.fromkeys(column for row in rows for column in row)
    units = {column: _likely_unit(rows, column) for column in columns}
    table = Table(name, heading(name), is_series=False, units=units, rows=tuple(rows), account_names=account_names)
    return table.grid()


def _likely_unit(rows: Sequence[Fields], column: str) -> str:
    """Guess the unit of a column's figures. A column without figures is text; dates are known by their form."""
    figures = [row.raw(column) for row in rows if row.number(column) is not None]
    if not figures:
        return "month" if column == "month" else "text"
    return next((unit for each in figures if (unit := likely_unit(each, column))), "count")
