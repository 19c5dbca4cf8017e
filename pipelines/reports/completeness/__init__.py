"""Completeness: is this all of the customer's money, and how far can it be relied on?

    completenessScore  = 90 × (what the last 365 days are worth) / 365 + 10 × (the 730 days before) / 730
    totalMissingness   = share of the last 365 days that no account tells anything of

A day is worth what the account that documents it best makes of it: 1 proven, 0.85 proven but open, 0.7 plausible, 0
unseen (`coverage`); of an account that isn't traded through (savings, card, loan) a quarter of that. A year shows every
season and every tax quarter; the two years before it add a little. The days count back from the day before `as_of`,
for that one isn't over. So a missing end (an old statement) costs exactly what a missing middle costs: a score in which
either were cheaper would reward whoever cuts it out.

Removing data never raises the score. No day gains worth when

- whole accounts are left out, whatever stands in them;
- an account's balances are left out;
- any rows are removed from an account without balances, or from one whose balances all hold;
- whole days are removed from any account whose rows all carry balances,

the balances being checked again, and what was removed not cancelling to zero (which balances can't see). That is why
the best account decides and no mean does: whoever left the worse account out would raise a mean. An account that
nobody mentions can be left out unnoticed, so its own gaps can't lower the score either; they are listed. A mentioned
account that is missing does lower it: a proven day with a transfer whose other side isn't there is open, worth less,
and still worth no less than with the transfer removed, which breaks the balance. Where a day has lost some of its
rows before, losing the rest can move the break into the next step.

The members are tables, declared in the modules of this package: each figure is a sum over transactions or follows from
others of its row, so that each can be explained.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from pipelines.figures import unreconciled
from pipelines.figures.facts import Facts
from pipelines.figures.json_text import json_objects, laid_together
from pipelines.figures.lineage import Trace, no_figure
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Table
from pipelines.reports.completeness.accounts import ACCOUNTS, COVERAGE
from pipelines.reports.completeness.across import LENDERS, MENTIONED, SIMILAR, TRANSFERS
from pipelines.reports.completeness.documents import DOCUMENTS, SIGNALS, STATEMENTS
from pipelines.reports.completeness.gaps import GAPS
from pipelines.reports.completeness.identity import BAS, HOLDERS
from pipelines.reports.completeness.quality import QUALITY
from pipelines.reports.completeness.reasons import REASONS, reasons
from pipelines.reports.completeness.reconciliation import BY_ACCOUNTS, BY_MONTHS, BY_SUBMISSIONS
from pipelines.reports.completeness.score import FRESHNESS, SUMMARY

VERSION = 4
TABLES: Sequence[Table] = (
    *(SUMMARY, FRESHNESS, ACCOUNTS, GAPS, COVERAGE, BY_ACCOUNTS, BY_MONTHS, BY_SUBMISSIONS),
    *(MENTIONED, LENDERS, SIMILAR, TRANSFERS, HOLDERS, BAS, QUALITY, DOCUMENTS, STATEMENTS, SIGNALS),
)


def completeness_report(facts: Facts) -> pl.DataFrame:
    """Facts → one row per customer: `data`, with a member for each of TABLES, by its id, `reasons`, and `unreconciled`
    (`figures.unreconciled`).

    A table without keys is an object, any other a list. A customer without posted rows has score 0, missingness 1,
    empty lists and the reason `Completeness.NoTransactions`.
    """
    made = pl.collect_all([table.rows(facts) for table in TABLES], engine="in-memory")
    rows = {table.id: frame for table, frame in zip(TABLES, made, strict=True)}
    details = reasons(rows).collect(engine="in-memory")
    lines = pl.collect_all([table.printed(rows[table.id].lazy()) for table in TABLES], engine="in-memory")
    pieces: list[str | pl.DataFrame] = []
    for place, (table, each) in enumerate(zip(TABLES, lines, strict=True)):
        opened, closed = ("[", "],") if table.keys else ("", ",")
        pieces += [("" if place else "{") + f'"{table.id}":' + opened, each, closed]
    listed = details.select(BY_CUSTOMER, line=json_objects(details.select(REASONS)))
    placed = ((table, rows[table.id].lazy(), f"/{table.id}{'/{}' if table.keys else ''}") for table in TABLES)
    resting = unreconciled.section(facts, unreconciled.of_tables(facts, placed))
    return laid_together(facts.customers, [*pieces, '"reasons":[', listed, "],", *resting, "}"])


def explain_completeness(facts: Facts, data: Mapping[str, Any], path: tuple[str, ...]) -> Trace:
    """`/MEMBER/FIGURE` or `/MEMBER/N/FIGURE`: where that figure comes from.

    Raises:
        NotFound: there is no such figure.
    """
    match path:
        case ("unreconciled", *inside):
            return unreconciled.explain_section(
                facts, data["unreconciled"], inside, lambda figure: unreconciled.explain(facts, *_placed(data, figure))
            )
    table, row, column = _placed(data, path)
    return table.explain(facts, row, column)


def _placed(data: Mapping[str, Any], path: tuple[str, ...]) -> tuple[Table, Mapping[str, Any], Sequence[str]]:
    """The table, the row as printed, and the column with what is asked for below it.

    Raises:
        NotFound: there is no such row.
    """
    tables = {table.id: table for table in TABLES}
    match path:
        case (member, *inside) if member in tables and not tables[member].keys and inside:
            return tables[member], data[member], inside
        case (member, nth, *inside) if member in tables and nth.isdecimal() and int(nth) < len(data[member]) and inside:
            return tables[member], data[member][int(nth)], inside
    raise no_figure(path)
