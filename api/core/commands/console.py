"""Output of commands: a table for people, JSON for scripts, one line for a failure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from api.core.schemas.rules import moment
from storage.core import settings
from storage.core.logs import printable
from storage.core.settings import Settings

if TYPE_CHECKING:
    from storage.core.store import Store

out = Console()
err = Console(stderr=True)

RECORDS_AT_ONCE = 10_000  # some megabytes; our judgement

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
    """Print records with the same keys as a JSON array, or as a table of `columns` (all by default).

    Records may come one by one: at most RECORDS_AT_ONCE are in memory. Longer lists are printed as several tables.
    """
    parts = _parts(records)
    first = next(parts, [])
    if as_json:
        _print_array(first, parts)
    elif first:
        for part in chain([first], parts):
            out.print(_table([{name: record[name] for name in columns or record} for record in part]))
    else:
        out.print(empty)


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
    for name, value in record.items():
        out.print(f"[dim]{name:>18}[/]  {_text(value)}", highlight=False, soft_wrap=True)


def _table(records: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in records[0]:
        table.add_column(name, overflow="fold")
    for record in records:
        table.add_row(*(_text(value) for value in record.values()))
    return table


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%SZ}"
    if isinstance(value, (list, tuple)):
        return " ".join(map(_text, value)) or "–"
    if isinstance(value, Mapping):
        return " ".join(f"{name}={_text(each)}" for name, each in value.items()) or "–"
    return escape(printable(str(value)))
