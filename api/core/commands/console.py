"""How commands speak: a table for people, JSON for scripts, one clear line on failure."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
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

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]

_json = msgspec.json.Encoder(decimal_format="number")


@contextmanager
def opened_store() -> Iterator["Store"]:
    """Open the store that the environment's settings name, for one command."""
    # SQLAlchemy and the tables take half a second to import: commands on files do without.
    from storage.core.store import Store  # noqa: PLC0415

    store = Store.open(Settings())
    try:
        yield store
    finally:
        store.close()


def complaint(line: str) -> typer.Exit:
    """Say what went wrong on standard error, and end with status 1."""
    err.print(f"tidemark: {line}", markup=False, highlight=False, soft_wrap=True)
    return typer.Exit(1)


def now() -> datetime:
    return datetime.now(UTC)


def duration(text: str) -> timedelta:
    """`30s`, `15m`, `12h`, `90d`.

    Raises:
        typer.BadParameter: anything else.
    """
    try:
        return settings.duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def since(text: str) -> datetime:
    """A time with its offset, as ISO 8601 has it, or how long ago: `30m`, `12h`, `7d`.

    Raises:
        typer.BadParameter: anything else.
    """
    try:
        return moment(text) if "T" in text else now() - settings.duration(text)
    except ValueError as error:
        raise typer.BadParameter("write 2026-07-01T06:00:00Z, or how long ago: 30m, 12h, 7d") from error


def print_json(value: object) -> None:
    """One JSON document on standard output, never wrapped."""
    typer.echo(_json.encode(value))


def print_records(
    records: Sequence[Mapping[str, Any]], *, as_json: bool, empty: str, columns: Sequence[str] | None = None
) -> None:
    """Records with the same keys as a table, or as a JSON array. `columns`: what of them a table shows; None: all."""
    if as_json:
        print_json(list(records))
    elif records:
        out.print(_table([{name: record[name] for name in columns or record} for record in records]))
    else:
        out.print(empty)


def print_record(record: Mapping[str, Any], *, as_json: bool) -> None:
    """One record as `name  value` lines, or as a JSON object."""
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
