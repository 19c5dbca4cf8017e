"""Tables of reports, read from JSON and written as grids."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Self

from pipelines.pages import Column, Grid
from pipelines.reports.page.columns import cell_kind, figure, likely_unit, write_heading
from pipelines.reports.page.fields import Fields, as_day
from pipelines.vocabulary.errors import build_pointer


@dataclass(frozen=True)
class Table:
    """A table of the aggregate report: `units` by column, in the order declared, and its rows. `account_names` maps
    the ids of accounts to the names that cells show in their place.
    """

    id: str
    name: str
    is_series: bool
    units: Mapping[str, str]
    rows: tuple[Fields, ...]
    account_names: Mapping[str, str] = field(default_factory=dict)
    places: tuple[str, ...] = ()  # report and JSON Pointer of each row, if its figures can be explained

    @classmethod
    def read(cls, table: Fields, account_names: Mapping[str, str]) -> Self:
        declared = {str(column.text("name")): column.text("unit") or "" for column in table.children("columns")}
        rows = table.children("values")
        named = table.text("id") or ""
        return cls(
            id=named,
            name=table.text("name") or write_heading(named),
            is_series=table.text("type") == "time_series",
            units=declared or {name: "" for row in rows[:1] for name in row},
            rows=rows,
            account_names=account_names,
            places=place_items(f"aggregate/tables/{named}/values", rows),
        )

    def select_rows(self, holds: Callable[[Fields], bool]) -> "Table":
        chosen = [holds(row) for row in self.rows]
        return replace(self, rows=tuple(compress(self.rows, chosen)), places=tuple(compress(self.places, chosen)))

    def grid(self, caption: str | None = None, columns: Sequence[str] = ()) -> Grid:
        """Return a grid of these columns, or of all, each written by its unit."""
        shown = [name for name in columns if name in self.units] or list(self.units)
        rows = [[self._cell(row, name) for name in shown] for row in self.rows]
        heads = [Column(write_heading(name), cell_kind(self.units[name], name)) for name in shown]
        places = [
            [self._place(row, place, name) for name in shown]
            for row, place in zip(self.rows, self.places, strict=False)
        ]
        return Grid.of(caption or self.name, heads, rows, newest=self.is_series, places=places)

    def _place(self, row: Fields, place: str, name: str) -> str | None:
        """Return the place of a number; other cells aren't explained."""
        is_number = cell_kind(self.units[name], name) == "number" and row.number(name) is not None
        return place + build_pointer([name]) if is_number else None

    def _cell(self, row: Fields, name: str) -> str:
        if (
            name.lower().endswith("accountid")
            and (account_name := self.account_names.get(row.text(name) or "")) is not None
        ):
            return account_name
        return figure(row.raw(name), self.units[name], name)


def place_items(of_list: str, items: Sequence[Fields]) -> tuple[str, ...]:
    """Return the places of a list's items, such as `completeness/accounts/0`, by that of the list."""
    return tuple(f"{of_list}/{nth}" for nth in range(len(items)))


NO_TABLE = Table("", "", is_series=False, units={}, rows=())


def undeclared_grid(
    members: Fields, name: str, account_names: Mapping[str, str], report: str | None = None
) -> Grid | None:
    """Return a grid of a member without declared columns: an object as names and values, a list of objects as rows.

    Args:
        report: the kind of the report whose member it is, if the member's figures can be explained.
    """
    facts, rows = members.child(name), members.children(name)
    if facts:
        pairs = [
            (write_heading(each), figure(facts.raw(each), likely_unit(facts.raw(each), each), each)) for each in facts
        ]
        explained = [
            (None, f"{report}/{name}/{each}" if report and facts.number(each) is not None else None) for each in facts
        ]
        return Grid.of(write_heading(name), ("What", Column("Figure", "number")), pairs, places=explained)
    if not any(rows):
        return None
    columns = dict.fromkeys(column for row in rows for column in row)
    units = {column: _unit_of(rows, column) for column in columns}
    places = place_items(f"{report}/{name}", rows) if report else ()
    return Table(name, write_heading(name), False, units, rows, account_names, places).grid()


def _unit_of(rows: Sequence[Fields], column: str) -> str:
    """Guess a column's unit by its figures. Without figures it holds days if all its values are days, else text."""
    figures = [row.raw(column) for row in rows if row.number(column) is not None]
    if not figures:
        stated = [value for row in rows if (value := row.raw(column)) is not None]
        are_days = bool(stated) and all(as_day(value) for value in stated)
        return "month" if column == "month" else "date" if are_days else "text"
    return next((unit for each in figures if (unit := likely_unit(each, column))), "count")
