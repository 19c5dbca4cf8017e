"""Output of commands: a table for people, TSV and JSON for scripts, one line for a failure."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import msgspec
import typer
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from api.core.schemas.rules import moment
from storage.core import settings
from storage.core.logs import printable
from storage.core.settings import Settings

if TYPE_CHECKING:
    from storage.core.store import Store

out = Console()
err = Console(stderr=True)

RECORDS_AT_ONCE = 10_000  # some megabytes; our judgement
SHOWN_DIGITS = 8  # of an id in a table; of 10,000 ids, two start alike in one list of 90
GAP = 2  # between columns
NOTHING = "–"
NAME_WIDTH = 18  # of a record's names, at least
WHOLE_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]

_json = msgspec.json.Encoder(decimal_format="number")


@contextmanager
def opened_store() -> Iterator["Store"]:
    """Open the store of the environment's settings for one command."""
    # SQLAlchemy and the tables take half a second to import; commands on files do not need them.
    from storage.core.store import Store  # noqa: PLC0415

    store = Store.open(Settings())
    try:
        yield store
    finally:
        store.close()


def complaint(line: str) -> typer.Exit:
    """Print an error on standard error, and return the exception that exits with status 1."""
    err.print(f"tidemark: {line}", markup=False, highlight=False, soft_wrap=True)
    return typer.Exit(1)


def warn(line: str) -> None:
    """Print a warning on standard error."""
    err.print(f"tidemark: warning: {line}", style="bold yellow", markup=False, highlight=False, soft_wrap=True)


def now() -> datetime:
    return datetime.now(UTC)


def duration(text: str) -> timedelta:
    """Parse a duration: `30s`, `15m`, `12h`, `90d`.

    Raises:
        typer.BadParameter: The text is anything else.
    """
    try:
        return settings.duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def since(text: str) -> datetime:
    """Parse an ISO 8601 date-time with its offset, or a time ago: `30m`, `12h`, `7d`.

    Raises:
        typer.BadParameter: The text is anything else.
    """
    try:
        return moment(text) if "T" in text else now() - settings.duration(text)
    except ValueError as error:
        raise typer.BadParameter("write 2026-07-01T06:00:00Z, or how long ago: 30m, 12h, 7d") from error


def print_json(value: object) -> None:
    """Print one JSON document on standard output, on one line."""
    typer.echo(_json.encode(value))


def print_records(
    records: Iterable[Mapping[str, Any]], *, as_json: bool, empty: str, columns: Sequence[str] | None = None
) -> None:
    """Print records with the same keys: as a JSON array, on a terminal as a table of `columns`, elsewhere as TSV.

    Without `columns`, the table has all. Without a terminal, `empty` goes to standard error. Records may come
    one by one: at most RECORDS_AT_ONCE are in memory. Longer lists are printed as several tables.
    """
    parts = _parts(records)
    first = next(parts, [])
    if as_json:
        _print_array(first, parts)
    elif not first:
        (out if out.is_terminal else err).print(empty)
    elif out.is_terminal:
        for part in chain([first], parts):
            out.print(_fitting(part, columns or list(first[0])), highlight=False)
    else:
        _print_tsv(chain.from_iterable(chain([first], parts)), list(first[0]))


def _print_array(first: Sequence[Mapping[str, Any]], others: Iterable[Sequence[Mapping[str, Any]]]) -> None:
    """Print the records of all parts as one JSON array, on one line."""
    typer.echo(_json.encode(first)[:-1], nl=False)
    for part in others:
        typer.echo(b"," + _json.encode(part)[1:-1], nl=False)
    typer.echo("]")


def _parts(records: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    remaining = iter(records)
    while part := list(islice(remaining, RECORDS_AT_ONCE)):
        yield part


def print_record(record: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a record as a JSON object, or as lines of `name  value`."""
    if as_json:
        print_json(record)
        return
    width = max(NAME_WIDTH, *map(len, record))
    for name, value in record.items():
        out.print(f"[dim]{name:>{width}}[/]  {escape(_text(value))}", highlight=False, soft_wrap=True)


def _print_tsv(records: Iterable[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Print a line of names, and one for each record: whole ids, times in ISO 8601, nothing for a missing value."""
    typer.echo("\t".join(names))
    for record in records:
        typer.echo("\t".join(_field(record[name]) for name in names))


def _field(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%SZ}"
    return _plain_text(value, _field)


def _fitting(records: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> RenderableType:
    """Return a table as wide as the terminal at most, in which no word, id or date is broken.

    Columns without any value are left out. If the table is still too wide, each record is a group of lines instead.
    """
    all_cells = {name: [_cell(record[name]) for record in records] for name in columns}
    cells = {name: column for name, column in all_cells.items() if {*column} != {NOTHING}} or all_cells
    widths = _widths([[_heading(name), *column] for name, column in cells.items()], out.width)
    if widths is None:
        return Group(*(_lines(dict(zip(cells, row, strict=True))) for row in zip(*cells.values(), strict=True)))
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name, width in zip(cells, widths, strict=True):
        table.add_column(_heading(name), width=width)
    for row in zip(*cells.values(), strict=True):
        table.add_row(*map(Text, row))
    return table


def _widths(columns: Sequence[Sequence[str]], available: int) -> list[int] | None:
    """Return widths of columns that together fit into `available`, or None if that would break a word."""
    fewest = [max(cell_len(word) for text in column for word in text.split(" ")) for column in columns]
    widths = [max(map(cell_len, column)) for column in columns]
    excess = sum(widths) + GAP * (len(widths) - 1) - available
    while excess > 0:
        at = max(range(len(widths)), key=lambda n: (widths[n] > fewest[n], widths[n]))
        if widths[at] == fewest[at]:
            return None
        widths[at] -= 1
        excess -= 1
    return widths


def _lines(cells: Mapping[str, str]) -> RenderableType:
    """Return a line for each column of a record, and an empty line."""
    grid = Table.grid(padding=(0, GAP, 0, 0))
    grid.add_column(style="dim", justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, cell in cells.items():
        grid.add_row(name, Text(cell))
    return Padding(grid, (0, 0, 1, 0))


def _heading(name: str) -> str:
    """Return a name as words, between which it may be wrapped: `date created` for `dateCreated`."""
    return re.sub("(?<=[a-z])([A-Z])", lambda letter: f" {letter[0].lower()}", name)


def _cell(value: object) -> str:
    """Return what a table shows of a value. Of an id, these are the first digits, which commands accept."""
    if isinstance(value, (str, UUID)) and WHOLE_ID.fullmatch(str(value)):
        return str(value)[:SHOWN_DIGITS]
    return _text(value) if isinstance(value, datetime) else _plain_text(value, _cell) or NOTHING


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%SZ}"
    return _plain_text(value, _text) or NOTHING


def _plain_text(value: object, part: Callable[[object], str]) -> str:
    """Return a value as one line; `part` formats the items of lists and mappings."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return " ".join(map(part, value))
    if isinstance(value, Mapping):
        return " ".join(f"{name}={part(each)}" for name, each in value.items())
    return printable(str(value))
