"""Statements of one request that overlap: which of their rows another one of them holds already.

The surer document stands: a statement before a listing, a listing before an interim one, the earlier period before the
later. Rows are matched as enrichment matches those of separate submissions (`enrich.alignment`), but only on days of
which both documents tell: what lies beyond is nobody else's.
"""

from collections.abc import Sequence
from datetime import date
from uuid import UUID

import polars as pl

from pipelines.enrichment.matching.alignment import match_rows
from pipelines.enrichment.matching.matching import unpaired
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
    """Of each statement, which of its entries (from 0) a surer one of the same account holds already.

    Args:
        statements: each with the id of its account.
    """
    found = [frozenset[int]()] * len(statements)
    retained = pl.DataFrame(schema=_LINES)
    stated: list[tuple[bytes, date, date]] = []
    for rank, (place, (account_id, statement)) in enumerate(_surest_first(statements)):
        lines = _lines(account_id.bytes, statement, rank)
        pairs = match_rows(retained.pipe(_of_account, lines), lines.filter(_within(stated)))
        found[place] = frozenset(pairs["position"])
        retained = pl.concat([retained, unpaired(lines, pairs)])
        stated += _stated_days(account_id.bytes, statement, lines)
    return found


def _surest_first(statements: Sequence[tuple[UUID, Statement]]) -> list[tuple[int, tuple[UUID, Statement]]]:
    def rank(placed: tuple[int, tuple[UUID, Statement]]) -> tuple[int, date, int]:
        place, (_, statement) = placed
        return _RANKS.index(statement.kind), statement.period_start or _first_date(statement), place

    return sorted(enumerate(statements), key=rank)


def _first_date(statement: Statement) -> date:
    return min((entry.date for entry in statement.entries), default=date.max)


def _lines(account_id: bytes, statement: Statement, rank: int) -> pl.DataFrame:
    """Its entries as rows of a submission of their own."""
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


def _of_account(retained: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
    return retained.join(lines, on="account_id", how="semi")


def _stated_days(account_id: bytes, statement: Statement, lines: pl.DataFrame) -> list[tuple[bytes, date, date]]:
    """From when to when a statement tells of its account: its period, and its entries' days."""
    days = [*lines["date"], *(day for day in (statement.period_start, statement.period_end) if day)]
    return [(account_id, min(days), max(days))] if days else []


def _within(stated: Sequence[tuple[bytes, date, date]]) -> pl.Expr:
    """Rows on days of which another statement tells, too."""
    each = [
        (pl.col("account_id") == account) & pl.col("date").is_between(first, last) for account, first, last in stated
    ]
    return pl.any_horizontal(pl.lit(value=False), *each)
