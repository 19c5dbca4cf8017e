"""Completeness: is this all of the customer's money, and how reliable is the data?

    completenessScore  = 90 × (worth of the last 365 days) / 365 + 10 × (worth of the 730 days before) / 730
    totalMissingness   = share of the last 365 days that no account documents

A day has the worth that the account with the best evidence gives it: 1 proven, 0.85 proven but open, 0.7 plausible, 0
unseen (`coverage`); a quarter of that for an account that isn't used for trading (savings, card, loan). A year shows
every season and every tax quarter; the two years before it add a little. Days are counted back from the day before
`as_of`, because that day isn't over. So missing days at the end (an old statement) cost exactly as much as missing days
in the middle. If either were cheaper, the score would reward removing them.

Removing data never raises the score. No day gains worth when

- whole accounts are left out, whatever they contain;
- an account's balances are left out;
- any rows are removed from an account without balances, or from one whose balances all hold;
- whole days are removed from any account whose rows all carry balances,

provided that balances are checked again and the removed rows don't cancel to zero (which balances can't reveal). This
is why the best account decides and not a mean: leaving the worse account out would raise a mean. An account that nobody
mentions can be left out unnoticed, so its own gaps can't lower the score either; they are listed. A mentioned account
that is missing does lower the score: a proven day with a transfer whose other side is missing is open and worth less,
but still no less than without the transfer, whose removal breaks the balance. If a day has already lost some of its
rows, losing the rest can move the break into the next step.

The members are tables, declared in the modules of this package: each figure is a sum over transactions or computed from
others of its row, so that each can be explained.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import polars as pl

from pipelines.figures import unreconciled
from pipelines.figures.facts import Facts
from pipelines.figures.json_text import join_pieces, json_objects
from pipelines.figures.lineage import Trace, no_figure
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import NO_LINES, Table
from pipelines.reports.completeness.accounts import ACCOUNTS, COVERAGE
from pipelines.reports.completeness.across import LENDERS, MENTIONED, REPEATED, SIMILAR, TRANSFERS
from pipelines.reports.completeness.documents import DOCUMENTS, REPLACED, SIGNALS, STATEMENTS
from pipelines.reports.completeness.effects import EFFECTS, listed_effects
from pipelines.reports.completeness.gaps import GAPS
from pipelines.reports.completeness.identity import BAS, HOLDERS
from pipelines.reports.completeness.quality import QUALITY
from pipelines.reports.completeness.reasons import PREFIX, REASONS, reasons
from pipelines.reports.completeness.reconciliation import BY_ACCOUNTS, BY_MONTHS, BY_SUBMISSIONS
from pipelines.reports.completeness.resolved_days import ALL
from pipelines.reports.completeness.score import FRESHNESS, SUMMARY
from pipelines.vocabulary.plans import PUSHDOWNS, collect

VERSION = 17
TABLES: Sequence[Table] = (
    *(SUMMARY, FRESHNESS, ACCOUNTS, GAPS, COVERAGE, BY_ACCOUNTS, BY_MONTHS, BY_SUBMISSIONS),
    *(
        MENTIONED,
        LENDERS,
        SIMILAR,
        REPEATED,
        TRANSFERS,
        HOLDERS,
        BAS,
        QUALITY,
        DOCUMENTS,
        STATEMENTS,
        SIGNALS,
        REPLACED,
    ),
)


def completeness_report(facts: Facts) -> pl.DataFrame:
    """Compute the report of every customer: `customer_number, data`.

    `data` has a member for each of TABLES, by its id, `reasons`, `resolvedTogether` (the `completenessScore` and the
    `effect` if all reasons were resolved; null without rows) and `unreconciled` (`figures.unreconciled`). A table
    without keys is an object, any other a list. A customer without posted rows has score 0, missingness 1,
    empty lists and the reason `Completeness.NoTransactions`.
    """
    every = (*TABLES, EFFECTS)
    frames = pl.collect_all([table.rows(facts) for table in every], engine="in-memory", optimizations=PUSHDOWNS)
    rows = {table.id: frame for table, frame in zip(every, frames, strict=True)}
    details = reasons(rows)
    listed = [table for table in TABLES if rows[table.id].height]  # formatting nothing takes time, too
    line_frames = [table.lines_of(rows[table.id].lazy()) for table in listed]
    lines = pl.collect_all(line_frames, engine="in-memory", optimizations=PUSHDOWNS)
    by_table = {table.id: each for table, each in zip(listed, lines, strict=True)}
    pieces: list[str | pl.DataFrame] = []
    for place, table in enumerate(TABLES):
        opened, closed = ("[", "],") if table.keys else ("", ",")
        pieces += [("" if place else "{") + f'"{table.id}":' + opened, by_table.get(table.id, NO_LINES), closed]
    found = details.select(BY_CUSTOMER, line=json_objects(details.select(REASONS)))
    together = facts.customers.join(rows[EFFECTS.id].filter(pl.col("code") == ALL), on=BY_CUSTOMER, how="left")
    resolved = together.select(BY_CUSTOMER, line=json_objects(together.select("completenessScore", "effect")))
    with_places = ((table, rows[table.id].lazy(), f"/{table.id}{'/{}' if table.keys else ''}") for table in TABLES)
    shares = unreconciled.section(facts, unreconciled.share_lines(facts, with_places))
    return join_pieces(
        facts.customers, [*pieces, '"reasons":[', found, '],"resolvedTogether":', resolved, ",", *shares, "}"]
    )


def explain_completeness(facts: Facts, data: Mapping[str, Any], path: tuple[str, ...]) -> Trace:
    """Explain the figure at `/MEMBER/FIGURE` or `/MEMBER/N/FIGURE`, of tables, reasons and `resolvedTogether`.

    Raises:
        NotFound: there is no such figure.
    """
    match path:
        case ("unreconciled", *inside):
            return unreconciled.explain_section(
                facts, data["unreconciled"], inside, lambda figure: unreconciled.explain(facts, *_locate(data, figure))
            )
        case ("resolvedTogether", name, *inside) if data["resolvedTogether"].get(name) is not None:
            return _effect(facts, ALL, None, (name, *inside))
        case ("reasons", nth, "effect", *inside) if nth.isdecimal() and int(nth) < len(data["reasons"]):
            reason = data["reasons"][int(nth)]
            return _effect(facts, reason["code"].removeprefix(PREFIX), reason["subject"], ("effect", *inside))
    table, row, column = _locate(data, path)
    return table.explain(facts, row, column)


def _effect(facts: Facts, code: str, subject: str | None, path: Sequence[str]) -> Trace:
    """Explain a column of EFFECTS. A reason that it doesn't list has no effect: it adds no unseen days either."""
    key = {"code": code, "subject": subject}
    unseen = listed_effects(facts).filter(pl.col("code") == code).select("unseenWorth").pipe(collect)
    return EFFECTS.explain(facts, {**key, "unseenWorth": unseen.to_series().max() or Decimal(0)}, path)


def _locate(data: Mapping[str, Any], path: tuple[str, ...]) -> tuple[Table, Mapping[str, Any], Sequence[str]]:
    """Return the table, the row as reported, and the rest of the path: the column and inputs below it.

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
