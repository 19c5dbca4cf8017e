"""List and search a client's customers by their summaries.

A page of a million customers costs about as much as a page of a thousand: a few matches are sorted, and many are read
from an index that has their order. `count_some` finds out whether they are few or many.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from sqlalchemy import ColumnElement, select
from sqlalchemy.sql.selectable import FromClause

from pipelines.vocabulary.report_status import ReportStatus
from storage.core.database import AnySelect, Reading, read_values
from storage.core.models import SUBMISSIONS, customer_summaries, customers, evaluations, jobs, policies
from storage.core.paging import MOST_COUNTED, Page, Paged, count_some, limit_to_page
from storage.core.text_search import contains, filter_by_part
from storage.customers.customers import Customer

SLICE: Final = 1_000  # customers in one statement

_ROW = customer_summaries.c


class Sort(StrEnum):
    """What customers are sorted by; those without it come first."""

    CREATED = "created"
    NAME = "name"
    RATING = "rating"
    RISK_VALUE = "riskValue"
    COMPLETENESS = "completeness"
    DATA_THROUGH = "dataThrough"
    OPEN_ALERTS = "openAlerts"


_SORTED_BY: Final = {
    Sort.CREATED: "customer_number",
    Sort.NAME: "name_key",
    Sort.RATING: "rating",
    Sort.RISK_VALUE: "risk_value",
    Sort.COMPLETENESS: "completeness_score",
    Sort.DATA_THROUGH: "data_through",
    Sort.OPEN_ALERTS: "open_alerts",
}


@dataclass(frozen=True)
class Order:
    by: Sort = Sort.CREATED
    descending: bool = False

    def terms(self, of: FromClause = customer_summaries) -> list[ColumnElement[object]]:
        """Return the terms of ORDER BY, as an index has them. Customers with the same value follow their creation."""
        value, number = of.c[_SORTED_BY[self.by]], of.c.customer_number
        in_order = number.desc() if self.descending else number.asc()
        if self.by is Sort.CREATED:
            return [in_order]
        return [value.desc().nulls_last() if self.descending else value.asc().nulls_first(), in_order]


@dataclass(frozen=True)
class Filter:
    """Which customers are listed. Conditions that are None don't apply."""

    part: str | None = None  # of the name, the ABN or the reference
    rating: str | None = None
    outcome: str | None = None
    report_status: ReportStatus | None = None
    with_alerts: bool | None = None

    @property
    def conditions(self) -> list[ColumnElement[bool]]:
        equal = {"rating": self.rating, "outcome": self.outcome, "report_status": self.report_status}
        chosen = [_ROW[name] == value for name, value in equal.items() if value is not None]
        if self.with_alerts is not None:
            chosen.append(_ROW.open_alerts > 0 if self.with_alerts else _ROW.open_alerts == 0)
        return chosen


@dataclass(frozen=True)
class Summary:
    """A customer's summary. What isn't known yet is None."""

    number: int
    customer_id: UUID
    abn: str
    abn_checksum_valid: bool
    name: str | None
    reference: str | None
    state: str | None
    created_at: datetime
    enriched_rows: int
    rating: str | None
    risk_value: float | None
    calibration: str | None
    completeness_score: float | None
    completeness_tier: str | None
    report_status: ReportStatus  # apart from unfinished jobs
    data_through: date | None
    outcome: str | None  # of the last decision, or of its last override
    open_alerts: int
    evaluation_id: UUID | None  # of the last decision, as the next two
    decided_at: datetime | None
    slug: str | None  # the policy's
    last_submission_at: datetime | None


def find(r: Reading, client_id: UUID, wanted: Filter, order: Order, page: Page | None = None) -> Paged[Summary]:
    """Return summaries of the client's customers."""
    conditions = [_ROW.client_id == client_id, *wanted.conditions]
    found = select(customer_summaries).where(*conditions)
    if wanted.part is not None:
        found = filter_by_part(r, found, customer_summaries, wanted.part)
    if page is None:
        numbers = r.execute(found.with_only_columns(_ROW.customer_number).order_by(*order.terms())).scalars().all()
        return Paged(_read_summaries(r, numbers), len(numbers), page)
    total = count_some(r, found.with_only_columns(_ROW.customer_number))
    if total <= MOST_COUNTED:
        few = found.limit(MOST_COUNTED).subquery()
        chosen = select(few.c.customer_number).order_by(*order.terms(few))
    else:
        part = () if wanted.part is None else (contains(r, customer_summaries, wanted.part),)
        chosen = select(_ROW.customer_number).where(*conditions, *part).order_by(*order.terms())
    numbers = r.execute(limit_to_page(chosen, page)).scalars().all()
    return Paged(_read_summaries(r, numbers), min(total, MOST_COUNTED), page, total > MOST_COUNTED)


def get(r: Reading, customer: Customer) -> Summary:
    [summary] = _read_summaries(r, [customer.number])
    return summary


def _read_summaries(r: Reading, numbers: Sequence[int]) -> list[Summary]:
    """Return the summaries of these customers, in this order."""
    found = dict[int, Summary]()
    for start in range(0, len(numbers), SLICE):
        for row in r.execute(_SHOWN.where(customers.c.number.in_(numbers[start : start + SLICE]))):
            found[row.number] = Summary(**read_values(row, report_status=ReportStatus(row.report_status)))
    return [found[number] for number in numbers]


_LAST_SUBMISSION = (
    select(jobs.c.created_at)
    .where(jobs.c.customer_number == customers.c.number, jobs.c.flow.in_(SUBMISSIONS))
    .order_by(jobs.c.received_seq.desc())
    .limit(1)
    .correlate(customers)
    .scalar_subquery()
)
_STORED = [
    of.c[name] for name in Summary.__dataclass_fields__ for of in (customers, customer_summaries) if name in of.c
]
_SHOWN: AnySelect = (
    select(
        *_STORED,
        evaluations.c.evaluation_id,
        evaluations.c.at.label("decided_at"),
        policies.c.slug,
        _LAST_SUBMISSION.label("last_submission_at"),
    )
    .join_from(customers, customer_summaries)
    .join(evaluations, evaluations.c.number == _ROW.evaluation_number, isouter=True)
    .join(policies, policies.c.policy_id == evaluations.c.policy_id, isouter=True)
)
