"""Find the rows of statements in one request that another, overlapping statement of it already holds.

The rows of the better document are retained: a statement's before a listing's, a listing's before those of an interim
one, and those of the earlier period. Rows are matched as enrichment matches those of separate submissions
(`enrichment.matching.alignment`), but only on days that both documents cover.
"""

from collections.abc import Sequence
from datetime import date
from uuid import UUID

import polars as pl

from pipelines.enrichment.matching.alignment import match_rows
from pipelines.enrichment.matching.matching import select_unpaired
from pipelines.enrichment.wording.text import matching_text
from pipelines.intake.pdf.page.result import Kind, Statement
from pipelines.vocabulary.schemas import ACCEPTED, TRANSACTIONS

_RANKS = tuple(Kind)  # the best first
_MATCHED = (
    *("job_id", "received_seq", "position", "account_id", "statement_id"),
    *("date", "amount", "balance", "status", "transaction_id"),
)
_LINES = pl.Schema({**{name: TRANSACTIONS[name] for name in _MATCHED}, "text": pl.String(), "sent_id": pl.String()})


def repeats_within(statements: Sequence[tuple[UUID, Statement]]) -> list[frozenset[int]]:
    """Return, for each statement, its entries (from 0) that a better one of the same account already holds.

    Args:
        statements: each with its account's id.
    """
    found = [frozenset[int]()] * len(statements)
    retained = pl.DataFrame(schema=_LINES)
    stated: list[tuple[bytes, date, date]] = []
    for rank, (place, (account_id, statement)) in enumerate(_best_first(statements)):
        lines = _lines(account_id.bytes, statement, rank)
        pairs = match_rows(retained.pipe(_same_account, lines), lines.filter(_within(stated)))
        found[place] = frozenset(pairs["position"])
        retained = pl.concat([retained, select_unpaired(lines, pairs)])
        stated += _covered_days(account_id.bytes, statement, lines)
    return found


def _best_first(statements: Sequence[tuple[UUID, Statement]]) -> list[tuple[int, tuple[UUID, Statement]]]:
    def rank(placed: tuple[int, tuple[UUID, Statement]]) -> tuple[int, date, int]:
        place, (_, statement) = placed
        return _RANKS.index(statement.kind), statement.period_start or _first_date(statement), place

    return sorted(enumerate(statements), key=rank)


def _first_date(statement: Statement) -> date:
    return min((entry.date for entry in statement.entries), default=date.max)


def _lines(account_id: bytes, statement: Statement, rank: int) -> pl.DataFrame:
    """Return a statement's entries as rows of a separate submission."""
    facts = ("date", "amount", "balance", "description")
    entries = {name: [getattr(entry, name) for entry in statement.entries] for name in facts}
    return (
        pl.DataFrame(entries, schema={name: ACCEPTED[name] for name in facts})
        .with_columns(
            received_seq=pl.lit(rank, pl.Int64),
            position=pl.int_range(pl.len(), dtype=pl.UInt32),
            account_id=pl.lit(account_id),
            statement_id=pl.lit(rank.to_bytes(16)),
            status=pl.lit("posted", ACCEPTED["status"]),
            text=matching_text(pl.col("description")),
        )
        .match_to_schema(_LINES, missing_columns="insert", extra_columns="ignore")
    )


def _same_account(retained: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
    return retained.join(lines, on="account_id", how="semi")


def _covered_days(account_id: bytes, statement: Statement, lines: pl.DataFrame) -> list[tuple[bytes, date, date]]:
    """Return the days that a statement covers: its period, and the days of its entries."""
    days = [*lines["date"], *(day for day in (statement.period_start, statement.period_end) if day)]
    return [(account_id, min(days), max(days))] if days else []


def _within(stated: Sequence[tuple[bytes, date, date]]) -> pl.Expr:
    """Match rows on days that another statement also covers."""
    covered = [
        (pl.col("account_id") == account) & pl.col("date").is_between(first, last) for account, first, last in stated
    ]
    return pl.any_horizontal(pl.lit(value=False), *covered)
