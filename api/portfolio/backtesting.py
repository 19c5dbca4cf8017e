"""What is sent as a backtest, as what the work needs; and what came of it, as answers and as a page."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any
from uuid import UUID

import polars as pl

from api.core.answers import encode
from api.core.schemas.rules import MAX_FAULTS
from api.customers.schemas.attributes import plain_value
from api.decisions import deciding
from api.portfolio.schemas.backtests import PUBLISHED, SentBacktest
from pipelines.decisions import Value, kinds
from pipelines.decisions.backtest import KNOWN_OUTCOMES
from pipelines.decisions.backtest.page import About, page
from pipelines.pages.wording import counted, day
from pipelines.vocabulary.errors import Fault, InvalidRequest
from storage.core.database import Reading
from storage.core.lake import Lake
from storage.core.paging import Page
from storage.customers import customers
from storage.decisions import backtests, policies
from storage.decisions.backtests import Against, Backtest, Knowledge, Part, Request
from storage.decisions.policies import PolicyVersion, StoredPolicy

UNKNOWN_CUSTOMER = "Backtest.UnknownCustomer"
SHOWN_ON_THE_PAGE = 100
IDS_AT_ONCE = 10_000
REFUSED = (UNKNOWN_CUSTOMER, "Backtest.DayToCome", "DecisionPolicy.MissingInputs", "DecisionPolicy.UnknownInputs")
_ALSO = ("DecisionPolicy.InvalidInputs", "Backtest.InvalidFilter", "Backtest.SameVersion", "Backtest.CustomerTwice")
REFUSES = (*REFUSED, *_ALSO)


def asked(r: Reading, policy: StoredPolicy, sent: SentBacktest, today: date) -> tuple[PolicyVersion, Request]:
    """The version that is looked at, and what is asked about it.

    Raises:
        NotFound: there is no such version.
        InvalidRequest: what is asked for makes no sense.
    """
    version = policies.newest(r, policy) if sent.version is None else policies.version(r, policy, sent.version)
    other = _other(r, policy, sent)
    days = tuple(sorted(sent.as_of or [today]))
    if days[-1] > today:
        raise InvalidRequest("Backtest.DayToCome", "A day is later than today.")
    if other is not None and other.version == version.version:
        raise InvalidRequest("Backtest.SameVersion", "A version is compared with another one.")
    against = Against.VERSION if other is not None else Against(str(sent.against))
    only = None if sent.customer_ids is None else tuple(sent.customer_ids)
    _require_known(r, policy.client_id, only or (), "/customerIds/{nth}")
    return version, Request(
        against,
        None if other is None else other.version,
        days,
        Knowledge(sent.knowledge),
        _inputs(version, other, sent),
        only,
        _attributes(sent.attributes),
    )


def _other(r: Reading, policy: StoredPolicy, sent: SentBacktest) -> PolicyVersion | None:
    if sent.against in (Against.RECORDED, Against.CHALLENGER):
        return None
    return policies.version(r, policy, None if sent.against == PUBLISHED else int(sent.against))


def _inputs(version: PolicyVersion, other: PolicyVersion | None, sent: SentBacktest) -> Mapping[str, Value]:
    """Recorded decisions bring their own."""
    given = sent.inputs or {}
    declared = kinds(version.policy.declared_inputs)
    if other is None:
        return deciding.read_inputs({name: kind for name, kind in declared.items() if name in given}, given)
    others = kinds(other.policy.declared_inputs)
    if any(declared.get(name, kind) != kind for name, kind in others.items()):
        raise InvalidRequest("DecisionPolicy.InvalidInputs", "The two versions declare an input with different kinds.")
    return deciding.read_inputs(others | declared, given)


def _attributes(sent: Mapping[str, Any] | None) -> Mapping[str, Value] | None:
    try:
        return None if sent is None else {name: plain_value(value) for name, value in sent.items()}
    except ValueError:
        raise InvalidRequest("Backtest.InvalidFilter", "A value to filter by is no attribute's value.") from None


def known_outcomes(r: Reading, client_id: UUID, sent: SentBacktest) -> pl.DataFrame | None:
    """KNOWN_OUTCOMES.

    Raises:
        InvalidRequest: a customer is unknown, or there twice.
    """
    if not sent.outcomes:
        return None
    ids = [each.customer_id for each in sent.outcomes]
    if len(set(ids)) < len(ids):
        raise InvalidRequest("Backtest.CustomerTwice", "A customer has one outcome.")
    numbers = _require_known(r, client_id, ids, "/outcomes/{nth}/customerId")
    columns = {
        "customer_number": [numbers[each] for each in ids],
        "defaulted": [each.defaulted for each in sent.outcomes],
    }
    return pl.DataFrame(columns, schema=KNOWN_OUTCOMES)


def _require_known(r: Reading, client_id: UUID, ids: Sequence[UUID], pointer: str) -> Mapping[UUID, int]:
    known = numbers_of(r, client_id, ids)
    faults = [
        Fault(pointer.format(nth=nth), UNKNOWN_CUSTOMER, "There is no customer with this id.")
        for nth, each in enumerate(ids)
        if each not in known
    ]
    if faults:
        raise InvalidRequest(UNKNOWN_CUSTOMER, "Some customers are not known.", tuple(faults[:MAX_FAULTS]))
    return known


def numbers_of(r: Reading, client_id: UUID, ids: Sequence[UUID]) -> Mapping[UUID, int]:
    """Of those that are the client's own, however many."""
    slices = (ids[start : start + IDS_AT_ONCE] for start in range(0, len(ids), IDS_AT_ONCE))
    return {id_: number for some in slices for id_, number in customers.numbers(r, client_id, some).items()}


# What came of it


def shown(backtest: Backtest) -> dict[str, Any]:
    """As a list shows it."""
    asked_ = backtest.request
    return {
        "jobId": backtest.job_id,
        "status": backtest.status,
        "version": backtest.version,
        "against": asked_.against,
        "againstVersion": asked_.other_version,
        "asOf": asked_.days,
        "knowledge": asked_.knowledge,
        "inputs": asked_.inputs,
        "attributes": asked_.attributes,
        "customersNamed": None if asked_.customers is None else len(asked_.customers),
        "knowsOutcomes": backtest.knows_outcomes,
        "customersTotal": backtest.customers_total,
        "customersDone": backtest.customers_done,
        "customersFailed": backtest.customers_failed,
        "dateCreated": backtest.created_at,
        "createdBy": backtest.created_by,
    }


def changes(
    lake: Lake, parts: Sequence[Part], change: str | None, page_: Page | None
) -> Iterator[list[dict[str, Any]]]:
    """The swap set, as the API lists it, some rows at a time."""
    for frame in backtests.changed(lake, parts, change, page_):
        yield [_changed(row) for row in frame.to_dicts()]


def as_json(slices: Iterator[list[dict[str, Any]]]) -> Iterator[bytes]:
    return (b",".join(map(encode, rows)) for rows in slices)


def _changed(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "customerId": UUID(bytes=row["customer_id"]),
        "asOf": row["as_of"],
        "change": row["change"],
        "before": row["before"],
        "after": row["after"],
        "beforeStep": row["before_step"],
        "afterStep": row["after_step"],
        "beforeRules": row["before_rules"],
        "afterRules": row["after_rules"],
        "changedBy": row["changed_by"],
        "limits": row["limits"],
        "defaulted": row["defaulted"],
    }


def as_page(lake: Lake, backtest: Backtest, name: str, days: Sequence[Any], parts: Sequence[Part]) -> str:
    """The page of a backtest that is done, with the first of its swap set."""
    first = [row for rows in changes(lake, parts, None, Page(1, SHOWN_ON_THE_PAGE)) for row in rows]
    return page(days, _about(backtest, name), first, sum(part.changed(None) for part in parts))


def sides(backtest: Backtest) -> tuple[str, str]:
    """What is compared, in words: before and after."""
    asked_ = backtest.request
    before = {
        Against.VERSION: f"version {asked_.other_version}",
        Against.RECORDED: "what was decided",
        Against.CHALLENGER: "what was decided",
    }[asked_.against]
    return before, f"{'challenger, ' if asked_.against is Against.CHALLENGER else ''}version {backtest.version}"


def _about(backtest: Backtest, name: str) -> About:
    return About(name, *sides(backtest), tuple(_facts(backtest)), tuple(_notices(backtest)))


def _facts(backtest: Backtest) -> Iterator[tuple[str, str]]:
    asked_ = backtest.request
    yield "As of", ", ".join(map(day, asked_.days))
    yield "Asked for on", day(backtest.created_at.date())
    then = "what had been received, and set, by each day" if asked_.knowledge is Knowledge.THEN else "all held by now"
    yield "Transactions and attributes", then
    if asked_.customers is not None:
        yield "Only", counted(len(asked_.customers), "customer") + " by id"
    for attribute, value in (asked_.attributes or {}).items():
        yield f"Only with {attribute}", str(value)
    for each, value in asked_.inputs.items():
        yield f"Input {each}", str(value)


def _notices(backtest: Backtest) -> Iterator[str]:
    if backtest.customers_failed:
        yield f"{counted(backtest.customers_failed, 'customer')} left out: their data could not be read or computed."
    if backtest.request.against is not Against.VERSION:
        yield "Only customers with a recorded decision are compared, each by the last one answered by the day's end."
