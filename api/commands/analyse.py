"""`tidemark analyse`: the three reports from files that people have, without a service and without a trace.

What the service would do with the same rows is done here in memory: validate, enrich, report.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl
import typer
from rich.markup import escape
from rich.table import Table as RichTable

from api.commands.console import AsJson, complaint, now, out, print_json, print_records
from api.commands.report_output import save, show
from pipelines.enrich.enrichment import enrich
from pipelines.enrich.knowledge import CUSTOMERS, Knowledge
from pipelines.figures.context import INTAKE, Context
from pipelines.figures.facts import Facts
from pipelines.figures.printing import ratio
from pipelines.intake.exports import Contents, Statement, read, statement_number, submitted, told_apart
from pipelines.intake.rows import validate
from pipelines.report_view import ReportStatus, ReportView
from pipelines.reports import REPORTS
from pipelines.reports.page import About, page
from pipelines.reports.page.details import driver_details
from pipelines.reports.page.fields import Fields
from pipelines.reports.page.grids import Grid, Table
from pipelines.reports.page.sections import Chosen, Plan, sections
from pipelines.reports.page.wording import counted, dollars, plain
from pipelines.schemas import TRANSACTIONS
from storage.logs import printable
from storage.settings import Settings

MOST_BYTES = 1024**3  # of a file, which takes some twenty times that in memory
MOST_LINES = 8  # of a table; --html and --json have them all
MOST_MONTHS = 12  # likewise
MOST_FAULTS = 10  # shown of the rows refused; --json has them all
_EXCERPTS = (
    Plan(
        "monthly",
        "Month by month",
        (
            Chosen(
                "monthly_cash_flow",
                ("month", "moneyIn", "moneyOut", "net", "revenue", "closingBalance"),
            ),
        ),
        "No months yet.",
    ),
    Plan(
        "counterparties",
        "Whom money came from and went to",
        (Chosen("top_counterparties", ("name", "amount", "share", "transactionCount"), split="direction"),),
        "No counterparties were recognised.",
    ),
    Plan(
        "recurring",
        "What recurs",
        (
            Chosen(
                "recurring_commitments",
                ("counterparty", "category", "direction", "period", "usualAmount"),
            ),
        ),
        "Nothing was found that recurs.",
    ),
    Plan(
        "facilities",
        "Debt",
        (
            Chosen(
                "facilities",
                ("lenderName", "product", "status", "repaidTotal", "lastRepaymentDate"),
            ),
        ),
        "No lenders were recognised.",
    ),
    Plan("dishonours", "Dishonours", (Chosen("dishonours"),), "No payment bounced."),
)


@dataclass(frozen=True)
class _File:
    path: Path
    contents: Contents


@dataclass(frozen=True)
class _Row:
    """A row of a file that was refused."""

    file: str
    line: int
    field: str
    code: str
    message: str


@dataclass(frozen=True)
class _Analysed:
    """What came of all files. `duplicates`: by statement, how many of its rows an earlier one has."""

    facts: Facts
    customers: Mapping[int, str | None]
    statements: Sequence[tuple[_File, Statement]]
    refused: Sequence[_Row]
    duplicates: Mapping[int, int]


def analyse(
    files: Annotated[list[Path], typer.Argument(help="Exports as CSV, or JSON of this API.")],
    html: Annotated[Path | None, typer.Option(help="Write the reports to this file as a page.")] = None,
    as_of: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="The day to look from; later rows don't count. Default: today."),
    ] = None,
    customer: Annotated[str | None, typer.Option(help="Of files with several customers, this one.")] = None,
    name: Annotated[
        str | None, typer.Option(help="The business's own name: payments to and from it are then its own transfers.")
    ] = None,
    one_account: Annotated[
        bool, typer.Option("--one-account", help="Files that don't name their account are all of the same.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the reports of bank exports: no service needed, nothing kept.

    Reads CSV as banks export it, with or without a heading, CSV with the
    columns customer, account, date, description, amount and balance, and JSON
    as the API takes and gives it. Files of one account may overlap.

    Example: tidemark analyse cheque.csv card.csv --html harbour.html
    """
    settings = Settings()
    today = now().astimezone(settings.zone).date() if as_of is None else as_of.date()
    opened = [_opened(path) for path in files]
    statements = _of_customer(_statements(opened, one_account=one_account), customer)
    analysed = _analysed(opened, statements, settings.timezone, today, name)
    if analysed.facts.rows.is_empty():
        _tell_refused(analysed.refused)
        raise complaint(f"no row of these files could be used for reports as of {today}")
    if len(analysed.customers) > 1 and (html is not None or name is not None):
        raise complaint(
            f"--html and --name are for one customer: choose one of {len(analysed.customers):,} with --customer"
        )
    if html is not None:
        save(page(_bundle(analysed, next(iter(analysed.customers))), _about(analysed, name)), html, None)
    if as_json:
        print_json(_as_json(analysed))
    elif len(analysed.customers) > 1:
        _tell_files(analysed)
        print_records(_summary(analysed), as_json=False, empty="")
    else:
        _tell_files(analysed)
        _tell_reports(_bundle(analysed, next(iter(analysed.customers))), _about(analysed, name))


def _opened(path: Path) -> _File:
    """A file's contents, or one line on why there are none."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise complaint(f"{path} is larger than {MOST_BYTES:,} bytes")
        return _File(path, read(str(path), path.read_bytes()))
    except OSError as error:
        raise complaint(f"{path} can't be read: {error.strerror}") from None


def _statements(files: Sequence[_File], *, one_account: bool) -> list[tuple[_File, Statement]]:
    """All files' statements; those that don't say of which account they are bear a file's name."""
    each = [(file, statement) for file in files for statement in file.contents.statements]
    stems = Counter(file.path.stem for file in files)
    names = [file.path.stem if stems[file.path.stem] == 1 else str(file.path) for file, _ in each]
    if one_account:
        names = names[:1] * len(names)
    apart = told_apart([(name, statement) for name, (_, statement) in zip(names, each, strict=True)])
    return [(file, statement) for (file, _), statement in zip(each, apart, strict=True)]


def _of_customer(statements: list[tuple[_File, Statement]], customer: str | None) -> list[tuple[_File, Statement]]:
    if customer is None:
        return statements
    found = [(file, statement) for file, statement in statements if statement.customer == customer]
    if not found:
        raise complaint(f"no file names a customer {customer}")
    return found


def _analysed(
    files: Sequence[_File], statements: Sequence[tuple[_File, Statement]], timezone: str, today: date, name: str | None
) -> _Analysed:
    """Statements validated, matched against each other and enriched, as the service does it."""
    sent = submitted([statement for _, statement in statements], now())
    validated = validate(sent.rows, timezone)
    accepted, rejected = pl.collect_all([validated.accepted, validated.rejected])
    named = [(number, name, None) for number in sent.customers if name is not None]
    known = pl.DataFrame(named, schema=CUSTOMERS, orient="row")
    enriched = enrich(pl.DataFrame(schema=TRANSACTIONS), accepted, knowledge=Knowledge(customers=known))
    transactions, duplicates = pl.collect_all([enriched.transactions, enriched.duplicates])
    repeated = Counter(map(statement_number, duplicates["job_id"]))
    of_intake = _intake(sent.rows, rejected, duplicates)
    return _Analysed(
        facts=Facts(transactions, today, Context(customers=known, intake=of_intake)),
        customers=sent.customers,
        statements=statements,
        refused=[*_unread(files), *_rejected(statements, rejected)],
        duplicates=repeated,
    )


def _intake(rows: pl.LazyFrame, rejected: pl.DataFrame, duplicates: pl.DataFrame) -> pl.DataFrame:
    """Schema INTAKE: of each customer's rows, how many were refused and how many stood twice."""
    owners = rows.select("job_id", "customer_number").unique()
    parts = {"rejected": rejected, "duplicates": duplicates}
    counts = (frame.lazy().group_by("job_id").agg(pl.len().alias(name)) for name, frame in parts.items())
    return (
        pl.concat([owners, *(owners.join(each, on="job_id", validate="1:1") for each in counts)], how="diagonal")
        .group_by("customer_number")
        .agg(pl.col(name).sum().cast(INTAKE[name]) for name in parts)
        .select(INTAKE.names())
        .sort("customer_number")
        .collect()
    )


def _unread(files: Sequence[_File]) -> Iterator[_Row]:
    for file in files:
        for line, field, code, message in file.contents.refused.iter_rows():
            yield _Row(str(file.path), line, field, code, message)


def _rejected(statements: Sequence[tuple[_File, Statement]], rejected: pl.DataFrame) -> Iterator[_Row]:
    for job, position, field, code, message in rejected.iter_rows():
        file, statement = statements[statement_number(job)]
        yield _Row(str(file.path), statement.lines[position], field, code, message)


def _about(analysed: _Analysed, name: str | None) -> About:
    of_file = next(iter(analysed.customers.values()))
    return About(name=name or of_file, reference=of_file if name else None)


def _bundle(analysed: _Analysed, number: int) -> dict[str, ReportView]:
    """A customer's three reports, as the service serves them."""
    facts = analysed.facts.of_customer(number)
    through = facts.rows["date"].max()
    return {
        kind: ReportView(
            ReportStatus.READY,
            generated_at=now(),
            as_of=facts.as_of,
            data_through=through if isinstance(through, date) else None,
            report_version=report.version,
            data_json=report.compute(facts)["data"][0],
        )
        for kind, report in REPORTS.items()
    }


def _as_json(analysed: _Analysed) -> dict[str, Any]:
    """The reports' data byte for byte; of several customers, as a list."""
    reports = [
        {kind: msgspec.Raw((view.data_json or "null").encode()) for kind, view in _bundle(analysed, number).items()}
        for number in analysed.customers
    ]
    about_rows = {"rejected": analysed.refused, "files": [*_files(analysed)]}
    if len(reports) == 1:
        return {**reports[0], **about_rows}
    named = [{"customer": name, **each} for name, each in zip(analysed.customers.values(), reports, strict=True)]
    return {"customers": named, **about_rows}


def _files(analysed: _Analysed) -> Iterator[dict[str, Any]]:
    """Each file: its accounts, what became of its rows, and how it was understood."""
    refused = Counter(row.file for row in analysed.refused)
    paths = dict.fromkeys(file.path for file, _ in analysed.statements)
    for path in paths:
        own = [
            (number, file, statement)
            for number, (file, statement) in enumerate(analysed.statements)
            if file.path == path
        ]
        yield {
            "file": str(path),
            "accounts": [_account(statement) for _, _, statement in own],
            "rows": sum(statement.rows.height for _, _, statement in own),
            "duplicates": sum(analysed.duplicates.get(number, 0) for number, _, _ in own),
            "rejected": refused[str(path)],
            "notes": own[0][1].contents.notes,
        }


def _account(statement: Statement) -> dict[str, Any]:
    number = "".join((statement.account_number or "").split())
    return {
        "account": statement.account_name or statement.bank_name,
        "accountNumberMasked": f"xxxx{number[-4:]}" if len(number) > 4 else None,
        "rows": statement.rows.height,
    }


def _summary(analysed: _Analysed) -> list[dict[str, Any]]:
    """A line for each customer."""
    facts = analysed.facts
    completeness, risk = (
        dict(REPORTS[kind].compute(facts).select("customer_number", "data").iter_rows())
        for kind in ("completeness", "risk")
    )
    return [
        {
            "customer": name if name is not None else "–",
            "rows": rows,
            "months": months,
            "completeness": plain(Fields.of_json(completeness.get(number)).one("summary").number("completenessScore")),
            "rating": Fields.of_json(risk.get(number)).text("rating") or "–",
            "revenue a month": dollars(revenue),
        }
        for number, (name, rows, months, revenue) in _sizes(analysed).items()
    ]


def _sizes(analysed: _Analysed) -> dict[int, tuple[str | None, int, int, Any]]:
    """By customer: name, posted rows, calendar months from the first to the last, and revenue a month in AUD."""
    month = pl.col("date").dt.year().cast(pl.Int64) * 12 + pl.col("date").dt.month()
    sizes = (
        analysed.facts.rows.group_by("customer_number")
        .agg(
            rows=pl.len(),
            months=month.max() - month.min() + 1,
            revenue=pl.col("amount").filter("is_revenue").sum(),
        )
        .select("customer_number", "rows", "months", ratio(pl.col("revenue"), pl.col("months")))
    )
    found = {number: (rows, months, revenue) for number, rows, months, revenue in sizes.iter_rows()}
    return {number: (name, *found.get(number, (0, 0, None))) for number, name in analysed.customers.items()}


def _tell_files(analysed: _Analysed) -> None:
    for file in _files(analysed):
        accounts = counted(len(file["accounts"]), "account")
        counts = [f"{counted(file['rows'], 'row')} of {accounts}"]
        counts += [f"{file[name]:,} {word}" for name, word in _COUNTS.items() if file[name]]
        out.print(f"[dim]{_shown(file['file'])}: {', '.join(counts)}[/]", highlight=False, soft_wrap=True)
        for note in file["notes"]:
            out.print(f"  [yellow]{_shown(note)}[/]", highlight=False, soft_wrap=True)
    _tell_refused(analysed.refused)
    out.print()


_COUNTS = {"duplicates": "already known from another file", "rejected": "refused"}


def _tell_refused(refused: Sequence[_Row]) -> None:
    for row in refused[:MOST_FAULTS]:
        out.print(f"  [red]{_shown(row.file)}, line {row.line}: {_shown(row.message)}[/]", highlight=False)
    if len(refused) > MOST_FAULTS:
        out.print(f"  [red]and {len(refused) - MOST_FAULTS:,} more: --json lists them all[/]", highlight=False)


def _tell_reports(bundle: Mapping[str, ReportView], whom: About) -> None:
    """What a credit analyst looks at first; the page and the JSON have it all."""
    show(bundle, whom)
    out.print()
    data = {kind: Fields.of_json(view.data_json) for kind, view in bundle.items()}
    if (drivers := _costliest(data["risk"])) is not None:
        _print_grid(drivers, ("Driver", "Reading", "Points"))
    tables = {table.id: table for each in data["aggregate"].many("tables") if (table := Table.read(each, {}))}
    for section in sections(_EXCERPTS, tables):
        if not section.grids:
            out.print(f"[bold]{section.title}[/]  {section.none}\n", highlight=False)
        for grid in section.grids:
            _print_grid(grid)


def _costliest(risk: Fields) -> Grid | None:
    """The drivers that lose points, most first."""
    lost = [(each, (each.number("maxPoints") or 0) - (each.number("points") or 0)) for each in risk.many("drivers")]
    costly = sorted((each for each in lost if each[1] > 0), key=lambda each: each[1], reverse=True)
    grid = driver_details([driver for driver, _ in costly])
    return None if grid is None else replace(grid, caption="What costs points of the risk rating")


def _print_grid(grid: Grid, columns: Sequence[str] = ()) -> None:
    """The grid's first lines, or of months the last."""
    kept = [place for place, each in enumerate(grid.columns) if not columns or each.heading in columns]
    table = RichTable(box=None, header_style="dim", pad_edge=False, title=grid.caption, title_justify="left")
    table.title_style = "bold"
    for place in kept:
        column = grid.columns[place]
        words = column.kind in ("text", "prose")
        table.add_column(column.heading, justify="right" if column.kind == "number" else "left", no_wrap=not words)
    is_series = bool(grid.columns) and grid.columns[0].heading == "Month"
    rows = grid.rows[-MOST_MONTHS:] if is_series else grid.rows[:MOST_LINES]
    for row in rows:
        table.add_row(*(_shown(row[place]) for place in kept))
    more = len(grid.rows) - len(rows) + grid.left_out
    out.print(table)
    out.print(f"[dim]and {more:,} {'earlier' if is_series else 'more'}[/]\n" if more else "", highlight=False)


def _shown(text: str) -> str:
    return escape(printable(text))
