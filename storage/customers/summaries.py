"""Summaries of customers: what a list of customers shows, in one row for each customer, so that lists are fast.

A summary is derived from other tables (`_DERIVED`). Whoever changes those tables calls `refresh` in the same
transaction, so a summary always agrees with them. `find_differing` checks this.

**Why concurrent transactions leave no stale summary.** `refresh` first locks the rows, then computes them in a second
statement, which sees everything that earlier holders of the lock committed. Rows are locked in the order of their
numbers, to avoid deadlocks. The commit of a batch refreshes twice. It can't deadlock with the storing of reports,
because both lock their customers before any summary.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, Float, Update, and_, bindparam, case, cast, func, insert, or_, select, update

from pipelines.vocabulary.report_status import ReportStatus
from storage.core.database import Database, Reading, Writing
from storage.core.json_member import json_member
from storage.core.models import (
    REPORT_KINDS,
    customer_summaries,
    customers,
    decision_overrides,
    evaluations,
    reports,
    work_items,
)

SLICE: Final = 2_000  # customers in one statement
_ROW = customer_summaries.c


def _correlated_value(value: ColumnElement[Any], *condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return select(value).where(*condition).correlate(customer_summaries).scalar_subquery()


def _select_of_reports(value: ColumnElement[Any], *condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return _correlated_value(value, reports.c.customer_number == _ROW.customer_number, *condition)


def _report_member(kind: str, path: str) -> ColumnElement[str]:
    return _select_of_reports(json_member(reports.c.data, path), reports.c.kind == kind)


def _report_status() -> ColumnElement[str]:
    data_version = _correlated_value(customers.c.data_version, customers.c.number == _ROW.customer_number)
    is_ready = and_(reports.c.data_version == data_version, reports.c.failed.is_(False))
    return case(
        (_select_of_reports(func.count(reports.c.data_version)) == 0, ReportStatus.PENDING),
        (_select_of_reports(func.count(), is_ready) == len(REPORT_KINDS), ReportStatus.READY),
        else_=ReportStatus.STALE,
    )


def _select_of_last_decision(value: ColumnElement[Any]) -> ColumnElement[Any]:
    decisions = (
        evaluations.c.customer_number == _ROW.customer_number,
        evaluations.c.what_if.is_(False),
        evaluations.c.shadow_of.is_(None),
    )
    last = select(value).where(*decisions).order_by(evaluations.c.number.desc()).limit(1)
    return last.correlate(customer_summaries).scalar_subquery()


def _outcome() -> ColumnElement[str]:
    overrides = select(decision_overrides.c.outcome).where(
        decision_overrides.c.evaluation_id == evaluations.c.evaluation_id
    )
    last = overrides.order_by(decision_overrides.c.number.desc()).limit(1).correlate(evaluations).scalar_subquery()
    return _select_of_last_decision(func.coalesce(last, evaluations.c.outcome))


# An alert whose snooze has ended counts as open only after `items.end_snoozes` has run: no summary depends on the time.
_OPEN_ALERT: Final = (
    work_items.c.kind == "alert",
    work_items.c.state == "open",
    work_items.c.snoozed_until.is_(None),
)
_DERIVED: Final[Mapping[str, ColumnElement[Any]]] = {
    "rating": _report_member("risk", "rating"),
    "risk_value": cast(_report_member("risk", "value"), Float),
    "calibration": _report_member("risk", "calibration"),
    "completeness_score": cast(_report_member("completeness", "summary.completenessScore"), Float),
    "completeness_tier": _report_member("completeness", "summary.completenessTier"),
    "report_status": _report_status(),
    "data_through": _select_of_reports(func.max(reports.c.data_through)),
    "evaluation_number": _select_of_last_decision(evaluations.c.number),
    "outcome": _outcome(),
    "open_alerts": _correlated_value(func.count(), work_items.c.customer_number == _ROW.customer_number, *_OPEN_ALERT),
}
REPORT_COLUMNS: Final = {
    "risk": ("rating", "risk_value", "calibration", "report_status", "data_through"),
    "completeness": ("completeness_score", "completeness_tier", "report_status", "data_through"),
    "aggregate": ("report_status", "data_through"),
}
DATA_COLUMNS: Final = ("report_status",)
DECISION_COLUMNS: Final = ("evaluation_number", "outcome")
ALERT_COLUMNS: Final = ("open_alerts",)


def add(w: Writing, customer_numbers: Collection[int]) -> None:
    """Add the summaries of new customers."""
    selected = customers.c.number.in_(customer_numbers)
    query = select(customers.c.number, customers.c.client_id, customers.c.name, customers.c.abn, customers.c.reference)
    rows = [
        {"customer_number": number, "client_id": client_id, **_texts(*texts)}
        for number, client_id, *texts in w.execute(query.where(selected).order_by(customers.c.number))
    ]
    w.execute(insert(customer_summaries).values(report_status=ReportStatus.PENDING, open_alerts=0), rows)


def _texts(name: str | None, abn: str, reference: str | None) -> dict[str, str | None]:
    text = "\n".join(each for each in (name, abn, reference) if each is not None)
    return {"name_key": None if name is None else name.casefold(), "search_text": text.casefold()}


def refresh(w: Writing, customer_numbers: Iterable[int], columns: Sequence[str]) -> None:
    """Compute these columns of the customers' summaries again."""
    derive = _build_update(tuple(columns))
    for slice_ in _slices(sorted(customer_numbers)):
        w.execute(_LOCK, {"numbers": slice_})
        w.execute(derive, {"numbers": slice_})


_SELECTED: Final = _ROW.customer_number.in_(bindparam("numbers", expanding=True))
_LOCK: Final = select(_ROW.customer_number).where(_SELECTED).order_by(_ROW.customer_number).with_for_update()


@cache
def _build_update(columns: Sequence[str]) -> Update:
    """Return the statement that computes these columns. Building it takes several times as long as executing it."""
    return update(customer_summaries).where(_SELECTED).values({name: _DERIVED[name] for name in columns})


def find_differing(r: Reading, customer_numbers: Sequence[int]) -> list[int]:
    """Return those of the customers whose summary is missing, or differs from the tables that it is derived from."""
    texts = (_ROW.name_key, _ROW.search_text, customers.c.name, customers.c.abn, customers.c.reference)
    differs = or_(*(_ROW[name].is_distinct_from(value) for name, value in _DERIVED.items()))
    query = select(customers.c.number, differs, *texts).join(customer_summaries, isouter=True)
    rows = r.execute(query.where(customers.c.number.in_(customer_numbers)).order_by(customers.c.number))
    return [
        number
        for number, is_different, name_key, search_text, *texts in rows
        if is_different or {"name_key": name_key, "search_text": search_text} != _texts(*texts)
    ]


def find_all_differing(db: Database) -> Iterator[int]:
    """Yield the numbers of all customers whose summary differs. Each SLICE of customers has a snapshot of its own."""
    last = 0
    while True:
        with db.reading() as r:
            query = select(customers.c.number).where(customers.c.number > last).order_by(customers.c.number)
            numbers = r.execute(query.limit(SLICE)).scalars().all()
            yield from find_differing(r, numbers)
        if len(numbers) < SLICE:
            return
        last = numbers[-1]


def _slices(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    return (numbers[start : start + SLICE] for start in range(0, len(numbers), SLICE))
