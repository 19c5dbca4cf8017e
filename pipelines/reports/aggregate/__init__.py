"""Aggregate: the customer's money in tables.

Own transfers are neither income nor cost: `moneyIn`, `moneyOut`, `net` and their counts leave them out; they are shown
as `transfersIn` and `transfersOut` (in the category table: rows marked `ownTransfer`). Outgoing money is
reported as a positive amount; `net` is in minus out. `revenue` is net of refunds and chargebacks. A month that the
history does not cover fully is marked `partial`; a month without rows is listed with zeros.

Each table is declared in the module of its subject and listed once, in TABLES.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

import polars as pl

from pipelines.figures import unreconciled
from pipelines.figures.facts import Facts
from pipelines.figures.json_text import join_pieces
from pipelines.figures.lineage import Trace, no_figure
from pipelines.figures.tables import Table
from pipelines.reports.aggregate.accounts import ACCOUNTS, OWN_TRANSFERS
from pipelines.reports.aggregate.cash_flow import ACCOUNT_CASH_FLOW, CASH_FLOW
from pipelines.reports.aggregate.categories import CATEGORIES, CATEGORY_SUMMARY, PROFIT_AND_LOSS
from pipelines.reports.aggregate.commitments import DISHONOURS_TABLE, FACILITIES_TABLE, RECURRING
from pipelines.reports.aggregate.counterparties import REVENUE_CONCENTRATION, TOP_COUNTERPARTIES
from pipelines.reports.aggregate.days import DAILY_BALANCE, DAY_OF_MONTH_PROFILE, WEEKDAY_PROFILE
from pipelines.reports.aggregate.gst import GST_REVENUE
from pipelines.reports.aggregate.income import REGULAR_INCOME
from pipelines.reports.aggregate.revenue import EXCLUDED_RECEIPTS, REVENUE_SOURCES
from pipelines.reports.aggregate.super_obligations import SUPER_OBLIGATIONS
from pipelines.reports.aggregate.tax_obligations import TAX_OBLIGATIONS
from pipelines.reports.aggregate.windows import FINANCIAL_YEAR, QUARTERS, ROLLING_WINDOWS, SEASONALITY
from pipelines.vocabulary.plans import PUSHDOWNS

VERSION = 10
TABLES: Sequence[Table] = (
    CASH_FLOW,
    ACCOUNT_CASH_FLOW,
    ACCOUNTS,
    OWN_TRANSFERS,
    DAILY_BALANCE,
    ROLLING_WINDOWS,
    PROFIT_AND_LOSS,
    CATEGORIES,
    CATEGORY_SUMMARY,
    REVENUE_SOURCES,
    EXCLUDED_RECEIPTS,
    REVENUE_CONCENTRATION,
    TOP_COUNTERPARTIES,
    RECURRING,
    REGULAR_INCOME,
    FACILITIES_TABLE,
    DISHONOURS_TABLE,
    SEASONALITY,
    FINANCIAL_YEAR,
    QUARTERS,
    SUPER_OBLIGATIONS,
    TAX_OBLIGATIONS,
    GST_REVENUE,
    WEEKDAY_PROFILE,
    DAY_OF_MONTH_PROFILE,
)


def aggregate_report(facts: Facts) -> pl.DataFrame:
    """Compute the report of every customer: `customer_number, data`.

    `data` has `tables`, each with its rows (none without posted rows), and `unreconciled` (`figures.unreconciled`).
    """
    rows = [table.rows(facts) for table in TABLES]
    if unreconciled.has_unreconciled_rows(facts):  # then rows are read twice
        rows = [frame.lazy() for frame in pl.collect_all(rows, engine="in-memory", optimizations=PUSHDOWNS)]
    line_frames = [table.lines_of(frame) for table, frame in zip(TABLES, rows, strict=True)]
    lines = pl.collect_all(line_frames, engine="in-memory", optimizations=PUSHDOWNS)
    pieces: Iterator[str | pl.DataFrame] = chain.from_iterable(zip(_OPENINGS, lines, strict=True))
    with_places = ((table, frame, f"/tables/{table.id}/values/{{}}") for table, frame in zip(TABLES, rows, strict=True))
    shares = unreconciled.section(facts, unreconciled.share_lines(facts, with_places))
    return join_pieces(facts.customers, [*pieces, "]}],", *shares, "}"])


def compute_table(facts: Facts, path: tuple[str, ...]) -> Mapping[str, Any] | None:
    """Return one customer's report with the rows of a single table: that of the figure at `path`.

    That suffices to explain the figure, and all tables together take many times as long. None: it is in no table.
    """
    match path:
        case ("tables", named, *_):
            chosen = (named in (table.id, str(index)) for index, table in enumerate(TABLES))
            rows = (
                _read_rows(facts, table) if is_chosen else [] for table, is_chosen in zip(TABLES, chosen, strict=True)
            )
            return {"tables": [{"values": each} for each in rows]}
    return None


def _read_rows(facts: Facts, table: Table) -> list[Any]:
    """Return a table's rows as they are reported, with numbers as decimals."""
    lines = table.lines(facts).collect(engine="in-memory", optimizations=PUSHDOWNS)
    rows: list[Any] = json.loads(f"[{','.join(lines['line'])}]", parse_float=Decimal)
    return rows


def _opening(table: Table) -> str:
    """Return the table's JSON up to its first row."""
    about = json.dumps(table.as_data(), ensure_ascii=False, separators=(",", ":"))
    return about.removesuffix("}") + ',"values":['


_OPENINGS = ('{"tables":[' + _opening(TABLES[0]), *("]}," + _opening(table) for table in TABLES[1:]))


def explain_aggregate(facts: Facts, data: Mapping[str, Any], path: tuple[str, ...]) -> Trace:
    """Explain the figure at `/tables/ID/values/N/COLUMN`. The table's index works in place of its id.

    Raises:
        NotFound: there is no such figure.
    """
    match path:
        case ("unreconciled", *inside):
            return unreconciled.explain_section(
                facts, data["unreconciled"], inside, lambda figure: unreconciled.explain(facts, *_locate(data, figure))
            )
    table, row, column = _locate(data, path)
    return table.explain(facts, row, column)


def _locate(data: Mapping[str, Any], path: tuple[str, ...]) -> tuple[Table, Mapping[str, Any], Sequence[str]]:
    """Return the table, the row as reported, and the rest of the path: the column and inputs below it.

    Raises:
        NotFound: there is no such row.
    """
    match path:
        case ("tables", named, "values", nth, *column) if column:
            for index, table in enumerate(TABLES):
                values = data["tables"][index]["values"]
                if named in (table.id, str(index)) and nth.isdecimal() and int(nth) < len(values):
                    return table, values[int(nth)], column
    raise no_figure(path)
