"""`tidemark statements extract`: read PDF statements without a service. Nothing is stored.

As in the service, each file is read in a child process with limits, several at a time.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl
import typer
from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

import isolation
from api.core.commands.console import AsJson, err, out, print_json
from api.core.commands.files import as_csv, content_of, folder_at, write
from api.intake.commands.exports import to_currency
from pipelines.intake.currencies import CURRENCY, UNKNOWN
from pipelines.intake.masking import mask_text
from pipelines.intake.pdf.page.result import Entry, Extraction, Reason, Refusal, Signal, Statement, Verdict
from pipelines.intake.statement_rows import in_currency
from pipelines.pages.wording import quantity
from pipelines.vocabulary.errors import Unprocessable
from storage.core.logs import printable

statements = typer.Typer(help="Bank statements as PDF files.", no_args_is_help=True)

COLUMNS = (
    "file", "bank", "account_name", "bsb", "account_number", "account_type",
    "date", "value_date", "description", "amount", "balance", "currency", "balance_printed", "proved", "page",
    "verdict",
)  # fmt: skip
CARD = "credit_card"

_COLOURS = {Verdict.RECONCILED: "green", Verdict.UNRECONCILED: "red"}


@dataclass(frozen=True)
class _File:
    path: Path
    content: bytes
    password: str | None
    extraction: Extraction


@statements.command("extract")
def extract(
    files: Annotated[list[Path], typer.Argument(help="PDF statements as issued by the bank.")],
    password_file: Annotated[
        Path | None, typer.Option(help="File whose first line is the password. Default: ask when needed.")
    ] = None,
    currency: Annotated[
        str | None,
        typer.Option(
            callback=to_currency,
            help="Currency (ISO 4217) of statements that state none. Those in another one are refused.",
        ),
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the rows as CSV.")] = False,
    as_json: AsJson = False,
    explain: Annotated[
        Path | None, typer.Option(help="Draw each page to this folder, with the recognised words, columns and rows.")
    ] = None,
) -> None:
    """Read PDF statements, and check their rows against the balances. Needs no server.

    Nothing is stored. `tidemark analyse` reads the CSV. Exit status 1 means
    that at least one file was refused; the others were read.

    Example: tidemark statements extract march.pdf april.pdf --csv > rows.csv
    """
    if as_csv and as_json:
        raise typer.BadParameter("--csv and --json exclude each other")
    password = None if password_file is None else _first_line(password_file)
    read = [_read_with_password(file) for file in _read([(path, content_of(path)) for path in files], password)]
    if currency is not None:
        read = [replace(file, extraction=_select_currency(file.extraction, currency)) for file in read]
    if explain is not None:
        _draw(read, explain)
    if as_json:
        print_json([_as_json(file) for file in read])
    elif as_csv:
        typer.echo(_as_csv(read), nl=False)
    else:
        for file in read:
            _print(file)
    if refused := [file for file in read if file.extraction.refusal is not None]:
        if as_csv:
            _complain(refused)
        raise typer.Exit(1)


def _select_currency(extraction: Extraction, currency: str) -> Extraction:
    """Keep the statements in this currency. It is assumed for those that name none and, unless it is AUD, for those
    whose currency is unknown, because that is never AUD.
    """
    is_open = {None, UNKNOWN} if currency != CURRENCY else {None}
    named = tuple(
        replace(each, currency=currency) if each.currency in is_open else each for each in extraction.statements
    )
    return in_currency(replace(extraction, statements=named), currency)


def _first_line(path: Path) -> str:
    try:
        return content_of(path).decode().partition("\n")[0].removesuffix("\r")
    except UnicodeDecodeError:
        raise Unprocessable("File.NotText", f"{path} is not text in UTF-8.") from None


def _read(files: Sequence[tuple[Path, bytes]], password: str | None) -> list[_File]:
    """Read all files, as many at a time as there are processors."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("pages"))
    with (
        Progress(*columns, console=err, disable=not err.is_terminal, transient=True) as progress,
        ThreadPoolExecutor(os.cpu_count()) as threads,
    ):
        bars = [progress.add_task(_escape(path.name), total=None) for path, _ in files]
        described = [lambda done, total, bar=bar: progress.update(bar, completed=done, total=total) for bar in bars]
        paths, contents = [path for path, _ in files], [content for _, content in files]
        found = threads.map(
            isolation.extract, contents, [password] * len(files), [isolation.LIMITS] * len(files), described
        )
        return [
            _File(path, content, password, each) for path, content, each in zip(paths, contents, found, strict=True)
        ]


def _read_with_password(file: _File) -> _File:
    """Ask for the password of an encrypted file on a terminal, and read the file again."""
    if file.extraction.refusal is not Refusal.ENCRYPTED or not _is_interactive():
        return file
    password = typer.prompt(f"Password of {printable(str(file.path))}", hide_input=True, err=True)
    return replace(file, password=password, extraction=isolation.extract(file.content, password))


def _is_interactive() -> bool:
    return sys.stdin.isatty()


def _draw(files: Sequence[_File], folder: Path) -> None:
    """Write a picture of each page that can be drawn."""
    folder = folder_at(folder)
    for name, file in zip(_names(files), files, strict=True):
        count = 0
        for page, png in isolation.draw_explained_pages(file.content, file.password):
            write(folder / f"{name}-{page:03}.png", png)
            count += 1
        missing = f" of {file.extraction.pages}" if count < file.extraction.pages else ""
        err.print(f"drawn: {file.path}: {count}{missing} pages", markup=False, highlight=False, soft_wrap=True)


def _names(files: Sequence[_File]) -> Iterator[str]:
    """Yield the prefix of each file's pictures: its own name, numbered if two files have the same."""
    count = Counter(file.path.stem for file in files)
    for number, file in enumerate(files, start=1):
        yield file.path.stem if count[file.path.stem] == 1 else f"{number}-{file.path.stem}"


def _as_json(file: _File) -> dict[str, Any]:
    found = replace(file.extraction, statements=tuple(map(_mask, file.extraction.statements)))
    plain = msgspec.to_builtins(found, builtin_types=(Decimal,))
    return {"file": str(file.path), **_camel(plain)}


def _camel(value: Any) -> Any:
    """Return a value with its names in camelCase, as in the API."""
    if isinstance(value, Mapping):
        return {_camel_name(name): _camel(each) for name, each in value.items()}
    return [_camel(each) for each in value] if isinstance(value, (list, tuple)) else value


def _camel_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _as_csv(files: Sequence[_File]) -> str:
    rows = [
        _row(file, statement, entry)
        for file in files
        for statement in map(_mask, file.extraction.statements)
        for entry in statement.entries
    ]
    return as_csv(pl.DataFrame(rows, schema=COLUMNS, orient="row", infer_schema_length=None))


def _row(file: _File, statement: Statement, entry: Entry) -> list[object]:
    return [
        str(file.path),
        statement.bank_name,
        statement.account_name,
        statement.bsb,
        statement.account_number,
        statement.account_type,
        entry.date,
        entry.value_date,
        entry.description,
        entry.amount,
        entry.balance,
        entry.currency or statement.currency,
        "yes" if entry.balance_printed else "no",
        "yes" if entry.proved else "no",
        entry.boxes[0].page if entry.boxes else None,
        statement.verdict,
    ]


def _mask(statement: Statement) -> Statement:
    """Mask card and tax file numbers in a statement. An account number is only masked for a card."""
    number = _last_digits(statement) if statement.account_type == CARD else statement.account_number
    entries = tuple(replace(entry, description=mask_text(entry.description)) for entry in statement.entries)
    return replace(statement, account_number=number, entries=entries)


def _last_digits(statement: Statement) -> str | None:
    number = statement.account_number
    return f"xxxx{number[-4:]}" if number else None


def _print(file: _File) -> None:
    found = file.extraction
    pages = quantity(found.pages, "page") if found.pages else ""
    out.print(f"[bold]{_escape(str(file.path))}[/]  [dim]{pages}[/]", highlight=False)
    if found.refusal is not None:
        out.print(f"  [red]{found.refusal}[/]  {_escape(found.message or '')}", highlight=False)
    elif found.message is not None:
        out.print(f"  [yellow]{_escape(found.message)}[/]", highlight=False)
    for statement in found.statements:
        out.print(Padding(_facts(statement), (1, 2), expand=False))
        _print_all(statement.reasons)
    if found.signals:
        out.print("  [dim]Signals for the lender:[/]", highlight=False)
        _print_all(found.signals)
    out.print()


def _facts(statement: Statement) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    colour = _COLOURS.get(statement.verdict, "yellow")
    for name, value in _describe_statement(statement).items():
        shown = _escape(value) if value else "–"
        table.add_row(f"[dim]{name}[/]", f"[{colour}]{shown}[/]" if name == "Verdict" else shown)
    return table


def _describe_statement(statement: Statement) -> Mapping[str, str | None]:
    period = (f"{day:%-d %b %Y}" if day else "?" for day in (statement.period_start, statement.period_end))
    return {
        "Bank": statement.bank_name,
        "Account": statement.account_name,
        "BSB": statement.bsb and f"{statement.bsb[:3]}-{statement.bsb[3:]}",
        "Number": _last_digits(statement),
        "Type": statement.account_type and statement.account_type.replace("_", " "),
        "Document": statement.kind + (", read by OCR" if statement.read_by_ocr else ""),
        "Period": " to ".join(period) if statement.period_start or statement.period_end else None,
        "Currency": statement.currency or f"{CURRENCY}, assumed: the statement names none",
        "Opening balance": _money(statement.opening_balance),
        "Closing balance": _money(statement.closing_balance),
        "Rows": _proved_of(statement),
        "Verdict": statement.verdict.replace("_", " "),
    }


def _money(amount: Decimal | None) -> str | None:
    """Format an amount without its currency, which is on a line of its own."""
    return None if amount is None else f"{amount:,.2f}"


def _proved_of(statement: Statement) -> str:
    """Return the number of rows and, if not all, how many the balances prove."""
    count, proved = len(statement.entries), sum(entry.proved for entry in statement.entries)
    return f"{count:,}" if proved == count else f"{count:,}, of which {proved:,} are proved by balances"


def _print_all(findings: Sequence[Reason | Signal]) -> None:
    for each in findings:
        page = f"page {each.page}: " if each.page else ""
        weight = f" [dim]({each.severity})[/]" if isinstance(each, Signal) else ""
        out.print(f"  • {page}{_escape(each.message)}{weight}", highlight=False)


def _complain(files: Sequence[_File]) -> None:
    """Report refused files on standard error, as the rows on standard output do not mention them."""
    for file in files:
        line = f"tidemark: {file.path}: {file.extraction.refusal}: {file.extraction.message}"
        err.print(printable(line), markup=False, highlight=False, soft_wrap=True)


def _escape(text: str) -> str:
    return escape(printable(text))
