"""`tidemark synthetic`: write the synthetic portfolio as files or PDF statements, or send it to a client day by day.

Files need no service. Seeding goes through the API with a key of its own, and only in a sandbox environment, because
synthetic businesses must not be mixed with real ones.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, Any, Protocol, TypeVar
from uuid import UUID

import polars as pl
import pyarrow.parquet as pq
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from api.core.commands import ids
from api.core.commands.console import AsJson, complaint, err, opened_store, print_record
from api.core.commands.files import as_csv
from api.service.commands.lender import Lender, issue_key_for, last_day
from pipelines.synthetic import Business, Part, Person, frames, people, portfolio, submissions
from pipelines.synthetic.pdf import EVERY_LAYOUT, LAYOUTS, statement_pdf
from storage.core.settings import Environment, Settings

synthetic = typer.Typer(
    help="The synthetic portfolio: businesses, their statements and the truth.", no_args_is_help=True
)

_Thing = TypeVar("_Thing")
CUSTOMERS_PER_PIECE = 20  # held in memory before they are written


class Format(StrEnum):
    CSV = "csv"
    PARQUET = "parquet"
    JSON = "json"


class PartOf(StrEnum):
    TRAIN = "train"
    TEST = "test"


Customers = Annotated[int, typer.Option(help="Number of businesses.", min=1, max=1_000_000)]
Months = Annotated[int, typer.Option(help="Number of months of each business.", min=1, max=36)]
Seed = Annotated[int, typer.Option(help="The same seed gives the same portfolio.")]
Until = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Last day. Default: yesterday.")]


@synthetic.command("generate")
def generate(
    customers: Customers = 100,
    months: Months = 12,
    seed: Seed = 1,
    until: Until = None,
    faults: Annotated[bool, typer.Option(help="Inject gaps and re-submissions.")] = False,
    out: Annotated[Path, typer.Option(help="Folder to write to; it must be new or empty.")] = Path("synthetic"),
    format_: Annotated[Format, typer.Option("--format", help="Format of the transactions.")] = Format.CSV,
    part: Annotated[PartOf | None, typer.Option(help="Only businesses for training, or for testing.")] = None,
    lookalikes: Annotated[bool, typer.Option(help="Make many honest lookalikes of trouble and window dressing.")] = (
        False
    ),
    as_people: Annotated[bool, typer.Option("--people", help="Personal accounts instead of businesses.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a portfolio: transactions with their labels, customers with outcomes, accounts and facilities.

    `tidemark categories train --labels` reads labels.csv. JSON is one object a
    line. Some brands and banks are held out: businesses for training never
    have them, and businesses for testing have them where possible.

    Each business applies for credit on a day (applied_on), and its statements
    end then or a few days later. Some sound businesses have rows that look like
    trouble or like window dressing (lookalike); with --lookalikes each kind
    of them occurs in at least a tenth of the businesses.

    With --people, the customers are people with a personal account each, and
    incomes.csv says who pays them regularly, and of what kind the income is.
    They have no facilities, outcomes, faults or lookalikes.

    Example: tidemark synthetic generate --customers 500 --months 12 --seed 7 --out portfolio
    """
    if as_people and (faults or lookalikes):
        raise complaint("people have neither faults nor lookalikes: leave out --people, or --faults and --lookalikes")
    _must_be_empty(out)
    wanted: Part | None = None if part is None else part.value
    last = last_day() if until is None else until.date()
    made: Iterator[Business | Person] = (
        people(customers, months, seed, last, wanted)
        if as_people
        else portfolio(customers, months, seed, last, faults, wanted, lookalikes)
    )
    with ExitStack() as files:
        folder = _Folder(out, format_, _OF_PERSON if as_people else _OF_BUSINESS, files)
        for piece in _in_pieces(_with_progress(made, customers, show=not as_json)):
            folder.write(piece)
    print_record({"folder": str(out), **folder.summary}, as_json=as_json)


@synthetic.command("statements")
def statements(
    layout: Annotated[list[str] | None, typer.Option(help="A bank's layout. Can be repeated. Default: all.")] = None,
    files: Annotated[int, typer.Option(help="Number of files of each layout.", min=1, max=10_000)] = 1,
    seed: Seed = 1,
    pages: Annotated[int | None, typer.Option(help="Pages of each file. Default: varies.", min=1, max=1_000)] = None,
    out: Annotated[Path, typer.Option(help="Folder to write to; it must be new or empty.")] = Path("statements"),
    as_json: AsJson = False,
) -> None:
    """Write bank statements as PDF files, and the truth about each as JSON.

    They look like statements of Australian banks, with rows of the synthetic
    portfolio. In the JSON, "accounts" has the details of the account, and
    "shown" lists those that the statement prints.

    Example: tidemark synthetic statements --layout westpac --layout nab --files 5 --out statements
    """
    _must_be_empty(out)
    names = layout or list(LAYOUTS)
    if unknown := set(names) - set(EVERY_LAYOUT):
        raise complaint(f"unknown layout {', '.join(sorted(unknown))}; choose from {', '.join(EVERY_LAYOUT)}")
    out.mkdir(parents=True, exist_ok=True)
    wanted = [(name, number) for name in names for number in range(seed, seed + files)]
    rows = 0
    for name, number in _with_progress(iter(wanted), len(wanted), show=not as_json):
        made = statement_pdf(name, number, pages=pages)
        (out / f"{name}-{number}.pdf").write_bytes(made.content)
        (out / f"{name}-{number}.json").write_text(json.dumps(made.truth(), indent=2) + "\n", "utf-8")
        rows += len(made.rows)
    print_record({"folder": str(out), "statements": len(wanted), "transactions": rows}, as_json=as_json)


@synthetic.command("seed")
def seed_(
    client: Annotated[UUID, typer.Option(parser=ids.CLIENT, metavar="ID", help="The client that gets the customers.")],
    customers: Customers = 5,
    months: Months = 6,
    seed: Seed = 1,
    days: Annotated[int, typer.Option(help="Number of last days that are sent one by one.", min=0, max=366)] = 0,
    until: Until = None,
    url: Annotated[str, typer.Option(help="Address of the service.", envvar="TIDEMARK_BASE_URL")] = (
        "http://127.0.0.1:8000"
    ),
    as_json: AsJson = False,
) -> None:
    """Send synthetic customers to a client: first their history, then the last days one by one.

    Each customer's history is sent up to a start date. Then the new rows of
    each day are sent as a new submission, as from a live bank feed.

    Example: tidemark synthetic seed --client 2f0c… --customers 5 --months 6 --days 30
    """
    if Settings().environment is not Environment.SANDBOX:
        raise complaint("synthetic customers are refused in production: set TIDEMARK_ENVIRONMENT=sandbox")
    with opened_store() as store:
        lender = Lender(url, issue_key_for(store, client))
    last = last_day() if until is None else until.date()
    feed = _Feed(lender, list(portfolio(customers, months, seed, last)))
    feed.send_history(last - timedelta(days=days))
    for _ in _with_progress(iter(range(days)), days, show=not as_json):
        feed.send_next_day()
    print_record(
        {"clientId": client, "customers": customers, "transactions": feed.rows, "through": feed.today},
        as_json=as_json,
    )


class _Feed:
    """A client's customers, and the last day whose rows the service has received."""

    def __init__(self, lender: Lender, businesses: list[Business]) -> None:
        self._lender = lender
        self._customers = [(lender.create(business)["customerId"], business) for business in businesses]
        self.rows = 0
        self.today = date.min

    def send_history(self, today: date) -> None:
        """Send everything up to a day."""
        self._send(None, today)

    def send_next_day(self) -> None:
        self._send(self.today, self.today + timedelta(days=1))

    def _send(self, after: date | None, through: date) -> None:
        jobs: list[str] = []
        for customer_id, business in self._customers:
            jobs += self._lender.submit(customer_id, submissions(business, after, through))
        self.rows += sum(job["enrichedCount"] for job in self._lender.wait_for_jobs(jobs))
        self.today = through


class _Writer(Protocol):
    def write(self, rows: pl.DataFrame) -> None: ...


@dataclass
class _Csv:
    """Appends rows. The header is written first."""

    sink: IO[bytes]
    _begun: bool = field(default=False, init=False)

    def write(self, rows: pl.DataFrame) -> None:
        self.sink.write(as_csv(rows, heading=not self._begun).encode())
        self._begun = True


@dataclass
class _Json:
    sink: IO[bytes]

    def write(self, rows: pl.DataFrame) -> None:
        rows.write_ndjson(self.sink)


@dataclass
class _Parquet:
    """Writes a row group for each piece."""

    path: Path
    files: ExitStack
    _open: Any = field(default=None, init=False)

    def write(self, rows: pl.DataFrame) -> None:
        table = rows.to_arrow()
        if self._open is None:
            self._open = self.files.enter_context(pq.ParquetWriter(self.path, table.schema, compression="zstd"))
        self._open.write_table(table)


# How each table beside the transactions is made of a customer and its number.
_Tables = Mapping[str, Callable[[int, Any], pl.DataFrame]]
_OF_BUSINESS: _Tables = {
    "customers": frames.customer,
    "accounts": frames.accounts,
    "facilities": frames.facilities,
}
_OF_PERSON: _Tables = {"customers": frames.person, "accounts": frames.accounts, "incomes": frames.incomes}


class _Folder:
    """Writes the files of a portfolio, piece by piece, and counts their rows."""

    def __init__(self, out: Path, format_: Format, tables: _Tables, files: ExitStack) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self.summary: Counter[str] = Counter()
        self._transactions = _transactions_writer(out, format_, files)
        self._tables = tables
        self._files = {
            name: _Csv(files.enter_context((out / f"{name}.csv").open("wb"))) for name in ("labels", *tables)
        }

    def write(self, piece: list[tuple[int, Business | Person]]) -> None:
        rows = pl.concat(frames.transactions(number, customer) for number, customer in piece)
        self._transactions.write(rows)
        self._files["labels"].write(frames.training_labels(rows))
        self.summary["transactions"] += rows.height
        for name, make in self._tables.items():
            table = pl.concat(make(*each) for each in piece)
            self._files[name].write(table)
            self.summary[name] += table.height
            if "defaults" in table.columns:
                self.summary["defaults"] += int(table["defaults"].sum())


def _transactions_writer(out: Path, format_: Format, files: ExitStack) -> _Writer:
    if format_ is Format.PARQUET:
        return _Parquet(out / "transactions.parquet", files)
    if format_ is Format.JSON:
        return _Json(files.enter_context((out / "transactions.jsonl").open("wb")))
    return _Csv(files.enter_context((out / "transactions.csv").open("wb")))


def _must_be_empty(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise complaint(f"{out} is not an empty folder: choose another with --out")


def _in_pieces(customers: Iterator[Business | Person]) -> Iterator[list[tuple[int, Business | Person]]]:
    piece: list[tuple[int, Business | Person]] = []
    for numbered in enumerate(customers):
        piece.append(numbered)
        if len(piece) == CUSTOMERS_PER_PIECE:
            yield piece
            piece = []
    if piece:
        yield piece


def _with_progress(things: Iterator[_Thing], total: int, *, show: bool) -> Iterator[_Thing]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, disable=not show, transient=True) as progress:
        task = progress.add_task("portfolio", total=total)
        for thing in things:
            yield thing
            progress.advance(task)
