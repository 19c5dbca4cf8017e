"""Reports as last computed, and their current status.

The status is never stored. It is derived on reading, from versions and unfinished jobs, so that a refresh that ends
late can't mark an old report as ready.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import or_, select

from pipelines.reports.report_view import ReportView
from pipelines.vocabulary.report_status import ReportStatus
from storage.core.database import AnyRow, Reading, Writing, insert_into
from storage.core.models import REPORT_KINDS, reports
from storage.customers import customers, summaries
from storage.customers.customers import Customer
from storage.jobs import batches
from storage.jobs.jobs import has_unfinished_change


@dataclass(frozen=True)
class NewReport:
    """A new report for one customer, computed from one version of its data."""

    customer_number: int
    data_version: int
    data_json: str
    data_through: date | None


def read_bundle(r: Reading, customer: Customer) -> dict[str, ReportView]:
    """Return the three reports of a customer by kind. `customer` must have been read in the same transaction."""
    rows = {row.kind: row for row in r.execute(select(reports).where(reports.c.customer_number == customer.number))}
    unfinished = has_unfinished_change(r, customer.number)
    return {kind: _view(rows.get(kind), customer, unfinished) for kind in REPORT_KINDS}


def _view(row: AnyRow | None, customer: Customer, unfinished: bool) -> ReportView:
    if row is None or row.data is None:
        return ReportView(ReportStatus.PENDING, failed=row is not None and row.failed)
    is_stale = row.failed or unfinished or row.data_version != customer.data_version
    return ReportView(
        status=ReportStatus.STALE if is_stale else ReportStatus.READY,
        failed=row.failed,
        generated_at=row.generated_at,
        as_of=row.as_of,
        data_through=row.data_through,
        data_version=row.data_version,
        report_version=row.report_version,
        data_json=row.data,
    )


def save(
    w: Writing, token: int, kind: str, version: int, computed: Sequence[NewReport], as_of: date, now: datetime
) -> None:
    """Store reports of one kind for a batch's customers. A stored report of newer data is not replaced.

    Raises:
        Superseded: the batch is no longer open.
    """
    batches.require_open(w, token)
    shared = {"kind": kind, "report_version": version, "as_of": as_of, "generated_at": now, "failed": False}
    _store(w, kind, [{**_values(report), **shared} for report in computed])


def save_failures(w: Writing, token: int, kind: str, customer_numbers: Iterable[int]) -> None:
    """Mark the latest attempt at a kind of report as failed. The last good report remains.

    Raises:
        Superseded: the batch is no longer open.
    """
    batches.require_open(w, token)
    _store(w, kind, [{"customer_number": number, "kind": kind, "failed": True} for number in customer_numbers])


def find_failures(r: Reading, customer_numbers: Iterable[int]) -> dict[int, list[str]]:
    """Return the kinds of report that failed at their latest attempt, in order of REPORT_KINDS, by customer number."""
    query = select(reports.c.customer_number, reports.c.kind).where(
        reports.c.customer_number.in_(list(customer_numbers)), reports.c.failed.is_(True)
    )
    failed: defaultdict[int, list[str]] = defaultdict(list)
    for row in sorted(r.execute(query), key=lambda row: REPORT_KINDS.index(row.kind)):
        failed[row.customer_number].append(row.kind)
    return failed


def _values(report: NewReport) -> dict[str, Any]:
    return {
        "customer_number": report.customer_number,
        "data": report.data_json,
        "data_version": report.data_version,
        "data_through": report.data_through,
    }


def _store(w: Writing, kind: str, rows: Sequence[Mapping[str, Any]]) -> None:
    numbers = [row["customer_number"] for row in rows]
    customers.lock_all(w, numbers)
    _upsert(w, rows)
    summaries.refresh(w, numbers, summaries.REPORT_COLUMNS[kind])


def _upsert(w: Writing, rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        return
    statement = insert_into(w, reports)
    new = {name: statement.excluded[name] for name in rows[0] if name not in ("customer_number", "kind")}
    key = [reports.c.customer_number, reports.c.kind]
    newer = None
    if "data_version" in new:
        newer = or_(reports.c.data_version.is_(None), reports.c.data_version <= new["data_version"])
    w.execute(statement.on_conflict_do_update(index_elements=key, set_=new, where=newer), rows)
