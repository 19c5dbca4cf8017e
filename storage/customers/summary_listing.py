"""List and search a client's customers by their summaries.

A page of a million customers costs about as much as a page of a thousand. Few matches are found by the index of facets
and then sorted; many are read from an index that has their order already. A page that is found by its number skips all
matches before it; one that is found by a place in the order doesn't.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from itertools import product
from typing import Any, Final, TypeAlias
from uuid import UUID

from sqlalchemy import ColumnElement, Text, and_, bindparam, literal_column, select

from pipelines.decisions import INDETERMINATE, OUTCOMES
from pipelines.vocabulary.report_status import ReportStatus
from storage.core.database import AnySelect, Reading, read_values
from storage.core.index_choice import without_index
from storage.core.models import FACETS, SUBMISSIONS, customer_summaries, customers, evaluations, jobs, policies
from storage.core.paging import MAX_COUNTED, Page, Paged, count_some
from storage.core.text_search import contains, filter_by_part
from storage.customers.customers import Customer

SLICE: Final = 1_000  # customers in one statement
RATINGS: Final = ("A", "B", "C", "D", "E")

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


Value: TypeAlias = str | float | date | None


@dataclass(frozen=True)
class Place:
    """A place in an order: the value and the number of the customer before it."""

    value: Value
    customer_number: int


@dataclass(frozen=True)
class Order:
    key: Sort = Sort.CREATED
    descending: bool = False

    @property
    def value(self) -> ColumnElement[Any]:
        return _ROW[_SORTED_BY[self.key]]

    def terms(self) -> list[ColumnElement[object]]:
        """Return the terms of ORDER BY, as an index has them. Equal values are in order of creation."""
        value, number = self.value, _ROW.customer_number
        in_order = number.desc() if self.descending else number.asc()
        if self.key is Sort.CREATED:
            return [in_order]
        return [value.desc().nulls_last() if self.descending else value.asc().nulls_first(), in_order]

    def ranges_after(self, place: Place) -> list[ColumnElement[bool]]:
        """Return the conditions of what follows a place: ranges of the index, one after the other."""
        value, number = self.value, _ROW.customer_number
        follows = number < place.customer_number if self.descending else number > place.customer_number
        if self.key is Sort.CREATED:
            return [follows]
        with_same = and_(value == place.value, follows)  # is null, for a customer without the value
        if self.descending:
            return [with_same] if place.value is None else [with_same, value < place.value, value.is_(None)]
        return [with_same, value.is_not(None) if place.value is None else value > place.value]

    def sort(self, places: Iterable[Place]) -> list[Place]:
        return sorted(places, key=self._rank, reverse=self.descending)

    def follows(self, place: Place, other: Place) -> bool:
        rank, other_rank = self._rank(place), self._rank(other)
        return rank < other_rank if self.descending else rank > other_rank

    def _rank(self, place: Place) -> tuple[Any, ...]:
        is_by_value = self.key is not Sort.CREATED and place.value is not None
        return is_by_value, place.value if is_by_value else None, place.customer_number


@dataclass(frozen=True)
class Filter:
    """Which customers are listed. Conditions that are None don't apply."""

    part: str | None = None  # of the name, the ABN or the reference
    rating: str | None = None
    outcome: str | None = None
    report_status: ReportStatus | None = None
    with_alerts: bool | None = None

    def conditions(self, column: Callable[[str], ColumnElement[Any]]) -> list[ColumnElement[bool]]:
        """Return all conditions but that on the part, for a query that doesn't use the index of facets."""
        equal = {"rating": self.rating, "outcome": self.outcome, "report_status": self.report_status}
        chosen = [column(name) == value for name, value in equal.items() if value is not None]
        if self.with_alerts is not None:
            chosen.append(column("open_alerts") > 0 if self.with_alerts else column("open_alerts") == 0)
        return chosen

    def facets(self) -> list[ColumnElement[bool]]:
        """Return the same conditions for the index of facets, which holds combinations of values: those that fit."""
        alerts = None if self.with_alerts is None else _ALERTS[self.with_alerts]
        values = (self.rating, self.outcome, self.report_status, alerts)
        if all(value is None for value in values):
            return []
        chosen = (every if value is None else (value,) for value, every in zip(values, _FACETS, strict=True))
        facets = [f"{rating} {outcome} {status}{alerts}" for rating, outcome, status, alerts in product(*chosen)]
        return [literal_column(FACETS, Text).in_(bindparam("facets", facets, expanding=True))]


_ALERTS: Final = ("", " alerts")
_FACETS: Final = (("", *RATINGS), ("", *OUTCOMES, INDETERMINATE), tuple(ReportStatus), _ALERTS)
_BY_FACETS: Final = "INDEXED BY ix_customer_summaries_facets"  # SQLite 3.40 would read one that has all columns


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


def find(r: Reading, client_id: UUID, wanted: Filter, order: Order) -> Paged[Summary]:
    """Return summaries of all wanted customers of the client."""
    numbers = r.execute(_select_found(r, client_id, wanted).order_by(*order.terms())).scalars().all()
    return Paged(_read_summaries(r, numbers), len(numbers), None)


def find_page(
    r: Reading, client_id: UUID, wanted: Filter, order: Order, page: Page, after: Place | None = None
) -> tuple[Paged[Summary], Place | None]:
    """Return a page, and the place of its last customer, or None if no others follow.

    Args:
        after: the place after which the page begins, whatever its number.
    """
    found = _select_found(r, client_id, wanted)
    counted = _read_places(r, found.limit(MAX_COUNTED + 1), order)
    if len(counted) > MAX_COUNTED:
        following = _walk(r, client_id, wanted, order, page, after)
    else:
        following = [place for place in order.sort(counted) if after is None or order.follows(place, after)]
        following = following[0 if after else page.offset :]
    shown = following[: page.count]
    summaries = _read_summaries(r, [place.customer_number for place in shown])
    paged = Paged(summaries, min(len(counted), MAX_COUNTED), page, len(counted) > MAX_COUNTED)
    return paged, shown[-1] if len(following) > page.count else None


def _read_places(r: Reading, query: AnySelect, order: Order) -> list[Place]:
    return [Place(value, number) for number, value in r.execute(query.add_columns(order.value))]


def _walk(
    r: Reading, client_id: UUID, wanted: Filter, order: Order, page: Page, after: Place | None
) -> Sequence[Place]:
    """Read the places of a page, and one more, in their order: fast if many customers are wanted."""

    def column(name: str) -> ColumnElement[Any]:
        # With the index of another order, SQLite would sort all matches, of which a page needs only the first.
        return _ROW[name] if name == _SORTED_BY[order.key] else without_index(r, _ROW[name])

    conditions = [_ROW.client_id == client_id, *wanted.conditions(column)]
    if wanted.part is not None:
        conditions.append(contains(r, customer_summaries, wanted.part))
    in_order = select(_ROW.customer_number).where(*conditions).order_by(*order.terms())
    ranges = [in_order.offset(page.offset)]
    if after is not None:
        ranges = [in_order.where(each) for each in order.ranges_after(after)]
    found = list[Place]()
    for each in ranges:
        found += _read_places(r, each.limit(page.count + 1 - len(found)), order)
    return found


def _select_found(r: Reading, client_id: UUID, wanted: Filter) -> AnySelect:
    """Return a query of the wanted customers' numbers that is fast if they are few.

    If few customers have the other values, each is compared with the part. Otherwise, the index of parts is searched.
    """
    of_client = select(_ROW.customer_number).where(_ROW.client_id == client_id)
    facets = wanted.facets()
    filtered = of_client.where(*facets).with_hint(customer_summaries, _BY_FACETS, "sqlite") if facets else of_client
    if wanted.part is None:
        return filtered
    if facets and count_some(r, filtered) <= MAX_COUNTED:
        return filtered.where(contains(r, customer_summaries, wanted.part))
    return filter_by_part(
        r,
        of_client.where(*wanted.conditions(lambda name: without_index(r, _ROW[name]))),
        customer_summaries,
        wanted.part,
    )


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
    table.c[name]
    for name in Summary.__dataclass_fields__
    for table in (customers, customer_summaries)
    if name in table.c
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
