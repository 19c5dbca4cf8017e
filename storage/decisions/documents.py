"""PDF statements as evidence of how complete a customer's data are: those that a version of the data stands on."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import polars as pl
from sqlalchemy import select

from pipelines.figures.context import STATEMENTS
from storage.core.database import AnyRow, Reading
from storage.core.models import Flow, JobStatus, jobs, statement_files, statements

_ENDED = (JobStatus.COMPLETED, JobStatus.COMPLETED_WITH_ERRORS)


def behind(r: Reading, versions: Mapping[int, int]) -> pl.DataFrame:
    """The customers' statements in schema STATEMENTS; of a file that was sent twice, once.

    Args:
        versions: customer number → data version. A statement counts from the version on that its rows made; where it
            held nothing new, from the one that follows: so a version's evidence never changes.
    """
    made_by = _submissions(r, versions)
    files = statement_files.c
    query = (
        select(statements, files.file_name, files.signals, files.sha256)
        .join(statement_files, files.file_id == statements.c.file_id)
        .where(statements.c.customer_number.in_(list(versions)))
        .order_by(statements.c.customer_number, statements.c.extracted_at, statements.c.position)
    )
    distinct: dict[tuple[Any, ...], AnyRow] = {}
    for row in r.execute(query):
        if row.job_id in made_by:
            distinct.setdefault(
                (row.customer_number, row.sha256, row.account_id, row.first_page, row.period_start), row
            )
    return pl.DataFrame([_as_evidence(row) for row in distinct.values()], schema=STATEMENTS, orient="row")


def _submissions(r: Reading, versions: Mapping[int, int]) -> set[Any]:
    """Ids of the jobs that brought PDFs and stand behind the versions."""
    query = select(jobs.c.job_id, jobs.c.customer_number, jobs.c.retracts, jobs.c.data_version, jobs.c.enriched_rows)
    ended: list[AnyRow] = list(
        r.execute(
            query.where(
                jobs.c.customer_number.in_(list(versions)),
                jobs.c.flow.in_((Flow.EXTRACTION, Flow.RETRACTION)),
                jobs.c.status.in_(_ENDED),
            )
        )
    )
    brought = {row.job_id: bool(row.enriched_rows) for row in ended if row.retracts is None}
    return set(brought) - set(_too_late(ended, brought, versions)) - set(_retracted(ended, brought, versions))


def _too_late(ended: Iterable[AnyRow], brought: Mapping[Any, bool], versions: Mapping[int, int]) -> Iterable[Any]:
    return (row.job_id for row in ended if row.job_id in brought and not _stands(row, brought[row.job_id], versions))


def _retracted(ended: Iterable[AnyRow], brought: Mapping[Any, bool], versions: Mapping[int, int]) -> Iterable[Any]:
    return (row.retracts for row in ended if row.retracts in brought and _stands(row, brought[row.retracts], versions))


def _stands(row: AnyRow, made_a_version: bool, versions: Mapping[int, int]) -> bool:
    """Whether a job counts in the version of its customer: what it made or, where it made none, what came after it."""
    first = (row.data_version or 0) + (0 if made_a_version else 1)
    return first <= versions[row.customer_number]


def _as_evidence(row: AnyRow) -> tuple[Any, ...]:
    return (
        row.customer_number,
        row.statement_id.bytes,
        row.account_id.bytes,
        row.file_name,
        row.kind,
        row.verdict,
        row.period_start,
        row.period_end,
        _money(row.opening_balance),
        _money(row.closing_balance),
        [{name: signal.get(name) for name in ("code", "severity", "message", "page")} for signal in row.signals or ()],
    )


def _money(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)
