"""Bank exports that a command reads: options for their columns and currency, and messages about their lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from api.core.commands.console import complaint
from api.core.commands.files import text_of, write
from pipelines.intake.exports import CODES, Contents, Layout, parse_layout, read
from pipelines.pages.wording import quantity
from pipelines.vocabulary.errors import InvalidRequest
from storage.core.logs import printable

MAX_BYTES = 1024**3  # of a file; reading it takes about twenty times as much memory
MAX_FAULTS = 10  # rejected rows shown; --json has them all
MAX_LINES = 5  # line numbers shown for each reason


def to_currency(text: str | None) -> str | None:
    """Parse a currency code of ISO 4217.

    Raises:
        typer.BadParameter: The text is not one.
    """
    if text is not None and text.upper() not in CODES:
        raise typer.BadParameter(f"{printable(text)} is not a currency code of ISO 4217")
    return None if text is None else text.upper()


ColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="ROLE=NUMBER,…",
        help="The columns, if they are not recognised, such as date=1, amount=-3, currency=GBP. The first column is 1. "
        "A minus inverts the signs of amounts, a plus keeps them.",
    ),
]
ColumnsFileOption = Annotated[Path | None, typer.Option(help="Read the columns from a file of --save-columns.")]
SaveColumnsOption = Annotated[Path | None, typer.Option(help="Write the recognised or given columns to this file.")]


CurrencyOption = Annotated[
    str | None,
    typer.Option(
        callback=to_currency, help="Currency of the amounts, such as NZD, if the files state none or several."
    ),
]


@dataclass(frozen=True)
class ExportFile:
    path: Path
    contents: Contents


@dataclass(frozen=True)
class RejectedRow:
    """An invalid row of a file, with the reason."""

    file: str
    line: int
    field: str
    code: str
    message: str


def open_exports(
    paths: Sequence[Path],
    columns: str | None,
    columns_file: Path | None,
    save_columns: Path | None,
    customer: str | None = None,
) -> list[ExportFile]:
    """Read files with the given columns, and save the columns if requested. A failure exits with one line.

    Args:
        customer: notes on signs are about this customer's rows only; None: all rows.
    """
    layout = _layout(columns, columns_file)
    files = [_open_export(path, layout, customer) for path in paths]
    if save_columns is not None:
        _save(files, save_columns)
    return files


def _layout(columns: str | None, file: Path | None) -> Layout | None:
    if columns is not None and file is not None:
        raise typer.BadParameter("--columns and --columns-file exclude each other")
    text = columns if file is None else text_of(file)
    if text is None:
        return None
    try:
        return parse_layout(text)
    except InvalidRequest as error:
        raise complaint(f"{'--columns' if file is None else file} {error.detail}") from None


def _open_export(path: Path, layout: Layout | None, customer: str | None) -> ExportFile:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise complaint(f"{path} is larger than {MAX_BYTES:,} bytes")
        return ExportFile(path, read(str(path), path.read_bytes(), layout, customer))
    except OSError as error:
        raise complaint(f"{path} can't be read: {error.strerror}") from None


def _save(files: Sequence[ExportFile], target: Path) -> None:
    layouts = {str(file.contents.layout) for file in files if file.contents.layout is not None}
    if len(layouts) != 1:
        raise complaint("--save-columns is for files with the same columns: name one")
    write(target, f"# Columns of {files[0].path.name}, for --columns-file\n{layouts.pop()}\n".encode())


def unreadable_rows(files: Sequence[ExportFile]) -> Iterator[RejectedRow]:
    """Yield the rows that could not be read."""
    for file in files:
        for line, field, code, message in file.contents.refused.iter_rows():
            yield RejectedRow(str(file.path), line, field, code, message)


def no_rows(contents: Contents) -> list[dict[str, Any]]:
    """Return the lines that are not transactions: their count and numbers for each reason."""
    groups = contents.no_rows.partition_by("reason", as_dict=True, maintain_order=True)
    return [
        {"reason": reason, "count": lines.height, "lines": lines["line"].to_list()}
        for (reason,), lines in groups.items()
    ]


def show_refused(console: Console, refused: Sequence[RejectedRow], most: int | None = MAX_FAULTS) -> None:
    """Print the first rejected rows, and how many more there are; all of them if `most` is None."""
    for row in refused[:most]:
        show_indented(console, f"{row.file}, line {row.line}: {row.message}", "red")
    if most is not None and len(refused) > most:
        show_indented(console, f"and {len(refused) - most:,} more: --json lists them all", "red")


def show_indented(console: Console, line: str, style: str) -> None:
    """Print a line below a file's heading, wrapped between words."""
    console.print(Padding(f"[{style}]{escape(printable(line))}[/]", (0, 0, 0, 2)), highlight=False)


def describe_other_lines(contents: Contents) -> str:
    """Describe the lines that are not rows, as `1 heading, 2 blank, 1 with only a balance (line 9)`."""
    headings = contents.headings
    parts = [quantity(headings, "heading")] if headings else []
    for each in no_rows(contents):
        shown = ", ".join(map(str, each["lines"][:MAX_LINES])) + (" …" if each["count"] > MAX_LINES else "")
        where = "" if each["reason"] == "blank" else f" ({'line' if each['count'] == 1 else 'lines'} {shown})"
        parts.append(f"{each['count']:,} {each['reason']}{where}")
    return ", ".join(parts)
