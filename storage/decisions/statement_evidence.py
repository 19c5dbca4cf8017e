"""PDF statements that a version of a customer's data is based on, as evidence of how complete the data are."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import polars as pl
from sqlalchemy import select

from pipelines.enrichment.matching.replacements import REPLACES_EARLIER
from pipelines.figures.context import STATEMENTS
from storage.core.database import AnyRow, Reading
from storage.core.models import Flow, JobStatus, jobs, statement_files, statements

_ENDED = (JobStatus.COMPLETED, JobStatus.COMPLETED_WITH_ERRORS)


def read_evidence(r: Reading, versions: Mapping[int, int]) -> pl.DataFrame:
    """Return the customers' statements in schema STATEMENTS. A file that was sent twice counts once.

    Args:
        versions: customer number → data version. A statement counts from the version that its rows created. If it
            neither had new rows nor replaced any, it counts from the next version, so that the evidence of a version
            never changes.
    """
    submissions = _submissions_behind(r, versions)
    files = statement_files.c
    query = (
        select(statements, files.file_name, files.signals, files.sha256)
        .join(statement_files, files.file_id == statements.c.file_id)
        .where(statements.c.customer_number.in_(list(versions)))
        .order_by(statements.c.customer_number, statements.c.extracted_at, statements.c.position)
    )
    distinct: dict[tuple[Any, ...], AnyRow] = {}
    for row in r.execute(query):
        if row.job_id in submissions:
            distinct.setdefault(
                (row.customer_number, row.sha256, row.account_id, row.first_page, row.period_start), row
            )
    return pl.DataFrame([_as_evidence(row) for row in distinct.values()], schema=STATEMENTS, orient="row")


def _submissions_behind(r: Reading, versions: Mapping[int, int]) -> set[Any]:
    """Return the ids of the jobs with PDFs that the versions are based on."""
    names = ("job_id", "customer_number", "retracts", "data_version", "enriched_rows", "warnings")
    query = select(*(jobs.c[name] for name in names))
    ended: list[AnyRow] = list(
        r.execute(
            query.where(
                jobs.c.customer_number.in_(list(versions)),
                jobs.c.flow.in_((Flow.EXTRACTION, Flow.RETRACTION)),
                jobs.c.status.in_(_ENDED),
            )
        )
    )
    changed = {row.job_id: _changed_rows(row) for row in ended if row.retracts is None}
    return set(changed) - set(_later_than(ended, changed, versions)) - set(_retracted_ids(ended, changed, versions))


def _changed_rows(row: AnyRow) -> bool:
    """Return whether a submission had new rows, or replaced some: a statement may only lack rows of an earlier one."""
    return bool(row.enriched_rows) or any(warning["code"] == REPLACES_EARLIER for warning in row.warnings)


def _later_than(ended: Iterable[AnyRow], changed: Mapping[Any, bool], versions: Mapping[int, int]) -> Iterable[Any]:
    """Return the ids of submissions that count only in later versions."""
    selected = (row for row in ended if row.job_id in changed)
    return (row.job_id for row in selected if not _counts_in_version(row, changed[row.job_id], versions))


def _retracted_ids(ended: Iterable[AnyRow], changed: Mapping[Any, bool], versions: Mapping[int, int]) -> Iterable[Any]:
    retractions = (row for row in ended if row.retracts in changed)
    return (row.retracts for row in retractions if _counts_in_version(row, changed[row.retracts], versions))


def _counts_in_version(row: AnyRow, made_a_version: bool, versions: Mapping[int, int]) -> bool:
    """Return whether a job counts in its customer's version: from the version that it created, or else the next."""
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
