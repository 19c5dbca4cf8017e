"""`tidemark analyse`: the three reports of bank exports, without a service. Nothing is stored.

Rows are validated, enriched and reported as in the service, but in memory.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import msgspec
import polars as pl
import typer
from rich.markup import escape
from rich.table import Table as RichTable

from api.core.commands.console import AsJson, complaint, now, out, print_json, print_records
from api.core.commands.expecting import Expects, describe_expected
from api.enrichment.commands.options import RulesOption, read_rules
from api.intake.commands.exports import (
    ColumnsFileOption,
    ColumnsOption,
    CurrencyOption,
    ExportFile,
    RejectedRow,
    SaveColumnsOption,
    describe_other_lines,
    no_rows,
    open_exports,
    show_indented,
    show_refused,
    unreadable_rows,
)
from api.reports.commands.report_output import hide_marks, in_currency, save, show
from pipelines.enrichment.enrichment import enrich
from pipelines.enrichment.knowledge import CUSTOMERS, Knowledge
from pipelines.enrichment.own_rules import OwnRules
from pipelines.figures.context import INTAKE, ClientPortfolio, Context
from pipelines.figures.facts import Facts
from pipelines.intake.currencies import CURRENCY
from pipelines.intake.exports import (
    Basis,
    InOneCurrency,
    Statement,
    Submitted,
    as_submission,
    in_one_currency,
    name_accounts,
    statement_number,
)
from pipelines.intake.rows import validate
from pipelines.pages import Grid, Note
from pipelines.pages.wording import dollars, percent, plain, quantity
from pipelines.reports import REPORTS
from pipelines.reports.page import About, page
from pipelines.reports.page.details import driver_details
from pipelines.reports.page.fields import Fields
from pipelines.reports.page.sections import Chosen, Plan, sections
from pipelines.reports.page.tables import Table
from pipelines.reports.report_view import ReportView
from pipelines.risk_models.expecting import decide_expected_evidence
from pipelines.scorecards.expected import Expected
from pipelines.vocabulary.report_status import ReportStatus
from pipelines.vocabulary.report_values import ratio
from pipelines.vocabulary.schemas import TRANSACTIONS, current, posted
from storage.core.logs import printable
from storage.core.settings import Settings

REFUSED, OTHER_CURRENCY, DUPLICATE = "refused", "in another currency", "already known from another file"
MAX_LINES = 8  # lines of a table; --html and --json have them all
MAX_MONTHS = 12  # months of a table, likewise
_EXCERPTS = (
    Plan(
        "monthly",
        "Month by month",
        (Chosen("monthly_cash_flow", ("month", "moneyIn", "moneyOut", "net", "revenue", "closingBalance")),),
        "No months yet.",
    ),
    Plan(
        "counterparties",
        "Largest counterparties",
        (Chosen("top_counterparties", ("name", "amount", "share", "transactionCount"), split="direction"),),
        "No counterparties were recognised.",
    ),
    Plan(
        "recurring",
        "Recurring payments",
        (Chosen("recurring_commitments", ("counterparty", "category", "direction", "period", "usualAmount")),),
        "No recurring payments were found.",
    ),
    Plan(
        "facilities",
        "Debt",
        (Chosen("facilities", ("lenderName", "product", "status", "repaidTotal", "lastRepaymentDate")),),
        "No lenders were recognised.",
    ),
    Plan("dishonours", "Dishonours", (Chosen("dishonours"),), "No payment bounced."),
)


@dataclass(frozen=True)
class _Analysed:
    """The result of all files.

    `used` counts the rows of each statement that the reports use; `unused` counts the others, by reason. `expected`:
    the evidence that is expected of every customer.
    """

    facts: Facts
    expected: Expected
    customers: Mapping[int, str | None]
    files: Sequence[ExportFile]
    statements: Sequence[tuple[ExportFile, Statement]]
    money: InOneCurrency
    refused: Sequence[RejectedRow]
    used: Mapping[int, int]
    unused: Mapping[str, Mapping[int, int]]


def analyse(
    files: Annotated[list[Path], typer.Argument(help="Bank exports in CSV, or JSON of this API.")],
    html: Annotated[Path | None, typer.Option(help="Write the reports to this file as an HTML page.")] = None,
    as_of: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="Day of the reports; later rows are ignored. Default: today."),
    ] = None,
    customer: Annotated[str | None, typer.Option(help="Only this customer, if the files have several.")] = None,
    name: Annotated[
        str | None, typer.Option(help="The business's name. Payments to and from it are its own transfers.")
    ] = None,
    one_account: Annotated[
        bool, typer.Option("--one-account", help="Treat all files that name no account as one account.")
    ] = False,
    currency: CurrencyOption = None,
    columns: ColumnsOption = None,
    columns_file: ColumnsFileOption = None,
    save_columns: SaveColumnsOption = None,
    rules: RulesOption = None,
    expects: Expects = None,
    as_json: AsJson = False,
) -> None:
    """Show the reports of bank exports. Needs no server, and stores nothing.

    Reads CSV as banks export it, with or without a heading; CSV with the
    columns customer, account, date, description, amount and balance; and JSON
    of the API. Files of one account may overlap. All amounts are in one
    currency, which the files state or --currency gives. Evidence that is
    expected but missing earns no points in the rating.

    Example: tidemark analyse cheque.csv card.csv --html harbour.html
    """
    settings = Settings()
    own_rules = None if rules is None else read_rules(rules)
    today = now().astimezone(settings.zone).date() if as_of is None else as_of.date()
    opened = open_exports(files, columns, columns_file, save_columns, customer)
    all_statements = _name_statements(opened, one_account=one_account)
    statements = _select_customer(all_statements, customer)
    enriched = _enrich([each for _, each in statements], currency, settings.timezone, name, own_rules)
    if expects is None:
        expects = _decide_expected(enriched, [each for _, each in all_statements], settings.timezone, today, own_rules)
    analysed = _analyse(opened, statements, enriched, today, expects)
    if analysed.facts.rows.is_empty():
        show_refused(out, analysed.refused)
        raise complaint(f"no row of these files could be used for reports as of {today}")
    if len(analysed.customers) > 1 and (html is not None or name is not None):
        raise complaint(
            f"--html and --name are for one customer: choose one of {len(analysed.customers):,} with --customer"
        )
    if html is not None:
        written = page(
            _compute_bundle(analysed, next(iter(analysed.customers))), _describe_customer(analysed, name, settings.zone)
        )
        save(in_currency(written, analysed.money.currency), html, None)
    if as_json:
        print_json(_as_json(analysed))
    elif len(analysed.customers) > 1:
        _print_files(analysed)
        print_records(_summarise_customers(analysed), as_json=False, empty="")
    else:
        _print_files(analysed)
        bundle = _compute_bundle(analysed, next(iter(analysed.customers)))
        _print_reports(bundle, _describe_customer(analysed, name, settings.zone), analysed.money.currency)


def _name_statements(files: Sequence[ExportFile], *, one_account: bool) -> list[tuple[ExportFile, Statement]]:
    """Return the statements of all files. Those that name no account get the name of their file."""
    found = [(file, statement) for file in files for statement in file.contents.statements]
    stems = Counter(file.path.stem for file in files)
    names = [file.path.stem if stems[file.path.stem] == 1 else str(file.path) for file, _ in found]
    if one_account:
        names = names[:1] * len(names)
    named = name_accounts([(name, statement) for name, (_, statement) in zip(names, found, strict=True)])
    return [(file, statement) for (file, _), statement in zip(found, named, strict=True)]


def _select_customer(
    statements: list[tuple[ExportFile, Statement]], customer: str | None
) -> list[tuple[ExportFile, Statement]]:
    if customer is None:
        return statements
    found = [(file, statement) for file, statement in statements if statement.customer == customer]
    if not found:
        raise complaint(f"no file names a customer {customer}")
    return found


@dataclass(frozen=True)
class _Enriched:
    """Statements in one currency, and their rows: schema TRANSACTIONS, the rejected ones, and the duplicates."""

    money: InOneCurrency
    sent: Submitted
    known: pl.DataFrame  # schema CUSTOMERS
    transactions: pl.DataFrame
    rejected: pl.DataFrame
    duplicates: pl.DataFrame


def _enrich(
    statements: Sequence[Statement], currency: str | None, timezone: str, name: str | None, own_rules: OwnRules | None
) -> _Enriched:
    """Validate, match and enrich the statements in one currency, as the service does."""
    money = in_one_currency(statements, currency)
    sent = as_submission(money.statements, now())
    validated = validate(sent.rows, timezone)
    accepted, rejected = pl.collect_all([validated.accepted, validated.rejected])
    named = [(number, name, None) for number in sent.customers if name is not None]
    known = pl.DataFrame(named, schema=CUSTOMERS, orient="row")
    knowledge = Knowledge(customers=known, lists=None if own_rules is None else own_rules.lists)
    enriched = enrich(pl.DataFrame(schema=TRANSACTIONS), accepted, knowledge=knowledge)
    transactions, duplicates = pl.collect_all([enriched.transactions, enriched.duplicates])
    return _Enriched(money, sent, known, transactions, rejected, duplicates)


def _decide_expected(
    enriched: _Enriched, statements: Sequence[Statement], timezone: str, today: date, own_rules: OwnRules | None
) -> Expected:
    """Decide from all customers of the files (`statements`), so that --customer changes no rating."""
    if len(statements) > len(enriched.money.statements):
        enriched = _enrich(statements, enriched.money.currency, timezone, None, own_rules)
    return decide_expected_evidence(Facts(enriched.transactions, today))


def _analyse(
    files: Sequence[ExportFile],
    statements: Sequence[tuple[ExportFile, Statement]],
    enriched: _Enriched,
    today: date,
    expected: Expected,
) -> _Analysed:
    money, sent, transactions = enriched.money, enriched.sent, enriched.transactions
    intake = _count_intake(sent.rows, enriched.rejected, enriched.duplicates)
    portfolio = ClientPortfolio(frozenset(sent.customers), expected=expected)
    facts = Facts(transactions, today, Context([portfolio], customers=enriched.known, intake=intake))
    in_file = [(file, each) for (file, _), each in zip(statements, money.statements, strict=True)]
    return _Analysed(
        facts=facts,
        expected=expected,
        customers=sent.customers,
        files=files,
        statements=in_file,
        money=money,
        refused=[
            *unreadable_rows(files),
            *_in_other_currency(in_file, money),
            *_describe_rejected(in_file, enriched.rejected),
        ],
        used=_by_statement(transactions.filter(posted(), pl.col("date") <= today)),
        unused=_count_unused(money, enriched.rejected, enriched.duplicates, transactions, today),
    )


def _by_statement(rows: pl.DataFrame) -> Mapping[int, int]:
    return Counter(map(statement_number, rows["job_id"]))


def _count_unused(
    money: InOneCurrency, rejected: pl.DataFrame, duplicates: pl.DataFrame, transactions: pl.DataFrame, today: date
) -> Mapping[str, Mapping[int, int]]:
    """Count the rows of each statement that the reports don't use, by reason. Each row has one reason."""
    is_pending, is_current = pl.col("status") == "pending", current()
    return {
        REFUSED: _by_statement(rejected),
        OTHER_CURRENCY: {number: each.height for number, each in enumerate(money.refused)},
        DUPLICATE: _by_statement(duplicates),
        "replaced by a later row": _by_statement(transactions.filter(~is_current)),
        "not posted yet (pending or authorised)": _by_statement(transactions.filter(is_current, is_pending)),
        f"after {today}": _by_statement(transactions.filter(is_current, ~is_pending, pl.col("date") > today)),
    }


def _count_intake(rows: pl.LazyFrame, rejected: pl.DataFrame, duplicates: pl.DataFrame) -> pl.DataFrame:
    """Count each customer's rejected and duplicate rows. Schema INTAKE."""
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


def _in_other_currency(
    statements: Sequence[tuple[ExportFile, Statement]], money: InOneCurrency
) -> Iterator[RejectedRow]:
    for (file, _), refused in zip(statements, money.refused, strict=True):
        for line, field, code, message in refused.iter_rows():
            yield RejectedRow(str(file.path), line, field, code, message)


def _describe_rejected(
    statements: Sequence[tuple[ExportFile, Statement]], rejected: pl.DataFrame
) -> Iterator[RejectedRow]:
    for job, position, field, code, message in rejected.iter_rows():
        file, statement = statements[statement_number(job)]
        yield RejectedRow(str(file.path), statement.lines[position], field, code, message)


def _describe_customer(analysed: _Analysed, name: str | None, zone: ZoneInfo) -> About:
    of_file = next(iter(analysed.customers.values()))
    return About(name=name or of_file, reference=of_file if name else None, zone=zone)


def _compute_bundle(analysed: _Analysed, number: int) -> dict[str, ReportView]:
    """Compute a customer's three reports, as the service shows them."""
    facts = analysed.facts.of_customer(number)
    through = facts.rows["date"].max()
    return {
        kind: ReportView(
            ReportStatus.READY,
            generated_at=now(),
            as_of=facts.as_of,
            data_through=through if isinstance(through, date) else None,
            report_version=report.version,
            data_json=hide_marks(report.compute(facts)["data"][0], analysed.money.currency),
        )
        for kind, report in REPORTS.items()
    }


def _as_json(analysed: _Analysed) -> dict[str, Any]:
    """Return the reports' data as computed, apart from units in another currency; a list for several customers."""
    computed = {kind: dict(report.compute(analysed.facts).iter_rows()) for kind, report in REPORTS.items()}
    reports = [
        {
            kind: msgspec.Raw(_with_units(texts.get(number, "null"), analysed.money.currency).encode())
            for kind, texts in computed.items()
        }
        for number in analysed.customers
    ]
    money = {"currency": analysed.money.currency, "currencyBasis": analysed.money.basis}
    about_rows = {
        **money,
        "expects": analysed.expected.names,
        "rejected": analysed.refused,
        "files": [*_describe_files(analysed)],
    }
    if len(reports) == 1:
        return {**reports[0], **about_rows}
    named = [{"customer": name, **each} for name, each in zip(analysed.customers.values(), reports, strict=True)]
    return {"customers": named, **about_rows}


def _with_units(data_json: str, currency: str) -> str:
    if currency == CURRENCY:
        return data_json
    units = re.sub(r'("unit":\s*")AUD\b', rf"\g<1>{currency}", hide_marks(data_json, currency))
    return in_currency(units, currency)


def _describe_files(analysed: _Analysed) -> Iterator[dict[str, Any]]:
    """Yield, for each file, its accounts, the counts of its lines, and how it was read."""
    for file in analysed.files:
        contents = file.contents
        own = [number for number, (source, _) in enumerate(analysed.statements) if source is file]
        rows = sum(each.rows.height for each in contents.statements) + contents.refused.height
        used = sum(analysed.used.get(number, 0) for number in own)
        unused = {why: sum(counts.get(number, 0) for number in own) for why, counts in analysed.unused.items()}
        unused[REFUSED] += contents.refused.height
        unused["of other customers"] = rows - used - sum(unused.values())
        yield {
            "file": str(file.path),
            "accounts": [_describe_account(analysed.statements[number][1]) for number in own],
            "lines": contents.lines,
            "headings": contents.headings,
            "noRows": no_rows(contents),
            "rows": rows,
            "used": used,
            "duplicates": unused[DUPLICATE],
            "rejected": unused[REFUSED] + unused[OTHER_CURRENCY],
            "unused": {why: count for why, count in unused.items() if count},
            "signs": contents.signs,
            "columns": None if contents.layout is None else str(contents.layout),
            "notes": contents.notes,
        }


def _describe_account(statement: Statement) -> dict[str, Any]:
    number = "".join((statement.account_number or "").split())
    return {
        "account": statement.account_name or statement.bank_name,
        "accountNumberMasked": f"xxxx{number[-4:]}" if len(number) > 4 else None,
        "rows": statement.rows.height,
    }


def _summarise_customers(analysed: _Analysed) -> list[dict[str, Any]]:
    """Return a line for each customer."""
    facts = analysed.facts
    completeness, risk = (
        {number: Fields.of_json(text) for number, text in REPORTS[kind].compute(facts).iter_rows()}
        for kind in ("completeness", "risk")
    )
    return [
        {
            "customer": name if name is not None else "–",
            "rows": rows,
            "months": months,
            "completeness": plain(completeness.get(number, _NONE).child("summary").number("completenessScore")),
            "unreconciled": percent(
                completeness.get(number, _NONE).child("unreconciled").number("shareOfAmount") or None
            ),
            "rating": risk.get(number, _NONE).text("rating") or "–",
            "revenue a month": in_currency(dollars(revenue), analysed.money.currency),
        }
        for number, (name, rows, months, revenue) in _measure_customers(analysed).items()
    ]


_NONE = Fields(None)  # for a customer without usable rows


def _measure_customers(analysed: _Analysed) -> dict[int, tuple[str | None, int, int, Any]]:
    """Return by customer: name, posted rows, calendar months from first to last, and monthly revenue."""
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


def _print_files(analysed: _Analysed) -> None:
    money = analysed.money
    out.print(f"[bold]Amounts in {money.currency}[/] [dim]({_BASES[money.basis]})[/]", highlight=False)
    if money.currency != CURRENCY:
        show_indented(out, "Rules, thresholds and points are made for Australia and for AUD.", "yellow")
    for each, file in zip(_describe_files(analysed), analysed.files, strict=True):
        accounts = quantity(len(each["accounts"]), "account")
        used = f"{each['used']:,} of {quantity(each['rows'], 'row')} used"
        out.print(f"[bold]{_escape(each['file'])}[/]: {used}, {accounts}, signs {each['signs']}", highlight=False)
        if each["unused"]:
            parts = (f"{count:,} {why}" for why, count in each["unused"].items())
            show_indented(out, f"not used: {', '.join(parts)}", "yellow")
        if apart := describe_other_lines(file.contents):
            show_indented(out, f"no rows: {apart}", "dim")
        for note in each["notes"]:
            show_indented(out, note, "yellow")
    show_refused(out, analysed.refused)
    out.print(f"[bold]Expected evidence[/]: {describe_expected(analysed.expected)}\n", highlight=False)


_BASES = {
    Basis.STATED: "as stated by the files or their columns",
    Basis.DECLARED: "as given by --currency",
    Basis.ASSUMED: "assumed, because the files state none; use --currency for another",
}


def _print_reports(bundle: Mapping[str, ReportView], about: About, currency: str) -> None:
    """Print what a credit analyst reads first. The page and the JSON are complete."""
    show(bundle, about, currency)
    out.print()
    data = {kind: Fields.of_json(view.data_json) for kind, view in bundle.items()}
    if (drivers := _costliest(data["risk"])) is not None:
        _print_grid(drivers, currency, ("Driver", "Reading", "Points", "Verified"))
    tables = {table.id: table for each in data["aggregate"].children("tables") if (table := Table.read(each, {}))}
    for section in sections(_EXCERPTS, tables):
        for part in section.parts:
            if isinstance(part, Grid):
                _print_grid(part, currency)
            elif isinstance(part, Note):
                out.print(f"[bold]{section.title}[/]  {part.says}\n", highlight=False)


def _costliest(risk: Fields) -> Grid | None:
    """Return the drivers that cost points, most first."""
    missing = [
        (each, (each.number("maxPoints") or 0) - (each.number("points") or 0)) for each in risk.children("drivers")
    ]
    costly = sorted((each for each in missing if each[1] > 0), key=lambda each: each[1], reverse=True)
    grid = driver_details([driver for driver, _ in costly])
    return None if grid is None else replace(grid, caption="What costs points of the risk rating")


def _print_grid(grid: Grid, currency: str, columns: Sequence[str] = ()) -> None:
    """Print the first lines of a grid, or the last ones of a grid of months."""
    shown = [place for place, each in enumerate(grid.columns) if not columns or each.heading in columns]
    table = RichTable(box=None, header_style="dim", pad_edge=False, title=grid.caption, title_justify="left")
    table.title_style = "bold"
    is_series = bool(grid.columns) and grid.columns[0].heading == "Month"
    rows = grid.rows[-MAX_MONTHS:] if is_series else grid.rows[:MAX_LINES]
    cells = [[_escape(in_currency(row[place], currency, mark="")) for place in shown] for row in rows]
    # Only headings and words may wrap. Figures are never cut, even if the table gets wider than the terminal.
    needed = 0
    for number, column in enumerate(grid.columns[place] for place in shown):
        longest = 1 if column.kind in ("text", "prose") else max((len(row[number]) for row in cells), default=1)
        justify = "right" if column.kind == "number" else "left"
        table.add_column(column.heading, justify=justify, min_width=longest, overflow="fold")
        needed += longest + 2
    for row in cells:
        table.add_row(*row)
    more = len(grid.rows) - len(rows) + grid.left_out
    out.print(table, width=max(out.width, needed), crop=False)
    out.print(f"[dim]and {more:,} {'earlier' if is_series else 'more'}[/]\n" if more else "", highlight=False)


def _escape(text: str) -> str:
    return escape(printable(text))
