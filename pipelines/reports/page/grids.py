"""Tables for people: headings, and cells that are already words."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from pipelines.reports.page.fields import Fields
from pipelines.reports.page.wording import cell_kind, figure, heading, likely_unit

MOST_ROWS = 400  # in one table of the page; the report itself holds them all


@dataclass(frozen=True)
class Column:
    """`kind` says how its cells are set: `number`, `short` (never broken), `text`, or `prose` for sentences."""

    heading: str
    kind: str = "text"


@dataclass(frozen=True)
class Grid:
    """A table as shown; `left_out` counts rows beyond MOST_ROWS, the earliest ones of a time series."""

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
        """Of each row its head, and its other cells, each after its kind."""
        kinds = [column.kind for column in self.columns[1:]]
        return ((row[0], zip(kinds, row[1:], strict=True)) for row in self.rows)


@dataclass(frozen=True)
class Table:
    """A table of the aggregate report: `units` by column, in the order declared, and its rows. `called`: what people
    call the accounts whose ids stand in it.
    """

    id: str
    name: str
    is_series: bool
    units: Mapping[str, str]
    rows: tuple[Fields, ...]
    called: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, table: Fields, called: Mapping[str, str]) -> Self:
        declared = {str(column.text("name")): column.text("unit") or "" for column in table.many("columns")}
        rows = table.many("values")
        named = table.text("id") or ""
        return cls(
            id=named,
            name=table.text("name") or heading(named),
            is_series=table.text("type") == "time_series",
            units=declared or {name: "" for row in rows[:1] for name in row},
            rows=rows,
            called=called,
        )

    def where(self, holds: Callable[[Fields], bool]) -> "Table":
        return replace(self, rows=tuple(row for row in self.rows if holds(row)))

    def grid(self, caption: str | None = None, columns: Sequence[str] = ()) -> Grid:
        """The table with these of its columns, or with all, each written by its unit."""
        shown = [name for name in columns if name in self.units] or list(self.units)
        rows = [[self._cell(row, name) for name in shown] for row in self.rows]
        heads = [Column(heading(name), cell_kind(self.units[name], name)) for name in shown]
        return Grid.of(caption or self.name, heads, rows, newest=self.is_series)

    def _cell(self, row: Fields, name: str) -> str:
        if name.lower().endswith("accountid") and (called := self.called.get(row.text(name) or "")) is not None:
            return called
        return figure(row.raw(name), self.units[name], name)


NO_TABLE = Table("", "", is_series=False, units={}, rows=())


def loose_grid(members: Fields, name: str, called: Mapping[str, str]) -> Grid | None:
    """A member that is no declared table: an object as names and values, a list of objects as a table, else None."""
    facts, rows = members.one(name), [row for row in members.many(name) if row]
    if facts:
        pairs = [(heading(each), figure(facts.raw(each), likely_unit(facts.raw(each), each), each)) for each in facts]
        return Grid.of(heading(name), (Column("What"), Column("Figure", "number")), pairs)
    if not rows:
        return None
    columns = dict.fromkeys(column for row in rows for column in row)
    units = {column: _unit_of(rows, column) for column in columns}
    return Table(name, heading(name), is_series=False, units=units, rows=tuple(rows), called=called).grid()


def _unit_of(rows: Sequence[Fields], column: str) -> str:
    """What the figures of a column are likely to be; other columns are texts, or dates by their looks."""
    figures = [row.raw(column) for row in rows if row.number(column) is not None]
    if not figures:
        return "month" if column == "month" else "text"
    return next((unit for each in figures if (unit := likely_unit(each, column))), "count")
