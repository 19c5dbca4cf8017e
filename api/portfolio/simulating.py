"""What is sent as a simulation, as what the work needs; and what came of it, as answers and as a page."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from api.core.answers import encode
from api.core.schemas.rules import MAX_FAULTS
from api.monitoring.rulesets import sound
from api.monitoring.schemas import Read
from api.portfolio.backtesting import numbers_of
from api.portfolio.schemas.simulations import EARLIEST, MOST_MONTHS, USUAL_MONTHS, SentSimulation
from pipelines.decisions.canonical import canonical
from pipelines.monitoring import Checked, Listed, Ruleset, checked
from pipelines.monitoring.page import About, page
from pipelines.pages.wording import counted, day
from pipelines.vocabulary.errors import Fault, InvalidRequest
from storage.core.database import Reading
from storage.core.lake import Lake
from storage.core.paging import Page
from storage.monitoring import simulations
from storage.monitoring.rulesets import StoredRuleset
from storage.monitoring.simulations import Firings, Request, Simulation

UNKNOWN_CUSTOMER = "Simulation.UnknownCustomer"
REFUSES = (
    *("Simulation.DayToCome", "Simulation.InvalidDays", "Simulation.TooManyDays", UNKNOWN_CUSTOMER),
    *("Ruleset.Invalid", "Ruleset.UnknownCustomer"),
)
SHOWN_ON_THE_PAGE = 100


def asked(r: Reading, stored: StoredRuleset, sent: SentSimulation, today: date) -> Request:
    """What is asked about the ruleset.

    Raises:
        InvalidRequest: what is asked for makes no sense.
    """
    first, last = _days(sent, today)
    only = None if sent.customer_ids is None else tuple(sent.customer_ids)
    _require_known(r, stored, only or (), UNKNOWN_CUSTOMER, "/customerIds")
    ruleset = None if sent.document is None else sound(_within(checked(sent.document), "/document"))
    if ruleset is not None and isinstance(ruleset.applies_to, Listed):
        where = "/document/appliesTo/customers"
        _require_known(r, stored, ruleset.applies_to.customers, "Ruleset.UnknownCustomer", where)
    return Request(first, last, only, None if ruleset is None else canonical(ruleset))


def _days(sent: SentSimulation, today: date) -> tuple[date, date]:
    last = sent.to or today
    if min(last, sent.from_ or last) < EARLIEST:
        raise InvalidRequest("Simulation.InvalidDays", f"No day before {EARLIEST} is simulated.")
    first = sent.from_ or _months_before(last, USUAL_MONTHS) + timedelta(days=1)
    if last > today:
        raise InvalidRequest("Simulation.DayToCome", "The last day is later than today.")
    if first > last:
        raise InvalidRequest("Simulation.InvalidDays", "The first day is later than the last.")
    if first <= _months_before(last, MOST_MONTHS):
        raise InvalidRequest("Simulation.TooManyDays", f"At most {MOST_MONTHS} months are simulated.")
    return first, last


def _months_before(last: date, months: int) -> date:
    """The same day of an earlier month, or that month's last."""
    count = last.year * 12 + last.month - 1 - months
    end = date((count + 1) // 12, (count + 1) % 12 + 1, 1) - timedelta(days=1)
    return end.replace(day=min(last.day, end.day))


def _within(found: Checked, pointer: str) -> Checked:
    """The same, its faults pointing into the request."""
    faults = [replace(each, pointer=f"{pointer}{each.pointer}") for each in found.faults]
    return replace(found, faults=faults)


def _require_known(r: Reading, stored: StoredRuleset, ids: Sequence[UUID], code: str, pointer: str) -> None:
    known = numbers_of(r, stored.client_id, ids)
    faults = [
        Fault(f"{pointer}/{nth}", code, "There is no customer with this id.")
        for nth, each in enumerate(ids)
        if each not in known
    ]
    if faults:
        raise InvalidRequest(code, "Some customers are not known.", tuple(faults[:MAX_FAULTS]))


# What came of it


def shown(simulation: Simulation) -> dict[str, Any]:
    """As a list shows it."""
    of = simulation.request
    return {
        "jobId": simulation.job_id,
        "status": simulation.status,
        "rulesetId": simulation.ruleset_id,
        "version": simulation.version,
        "ofDocument": of.document is not None,
        "from": of.first,
        "to": of.last,
        "customersNamed": None if of.customers is None else len(of.customers),
        "customersTotal": simulation.customers_total,
        "customersDone": simulation.customers_done,
        "customersFailed": simulation.customers_failed,
        "dateCreated": simulation.created_at,
        "createdBy": simulation.created_by,
    }


_read = msgspec.json.Decoder(list[Read]).decode


def firings(lake: Lake, of: Firings, page_: Page | None) -> Iterator[list[dict[str, Any]]]:
    """As the API lists them, some rows at a time."""
    for frame in simulations.listed(lake, of, page_):
        yield [_firing(row) for row in frame.to_dicts()]


def as_json(slices: Iterator[list[dict[str, Any]]]) -> Iterator[bytes]:
    return (b",".join(map(encode, rows)) for rows in slices)


def _firing(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "customerId": UUID(bytes=row["customer_id"]),
        "date": row["date"],
        "code": row["rule"],
        "values": _read(row["read"]),
    }


def as_page(lake: Lake, simulation: Simulation, ruleset: Ruleset, result: Mapping[str, Any], of: Firings) -> str:
    """The page of a simulation that is done, with the first of its firings."""
    first = [row for rows in firings(lake, of, Page(1, SHOWN_ON_THE_PAGE)) for row in rows]
    about = About(ruleset.name, tuple(_facts(simulation)), tuple(_notices(simulation, ruleset)))
    return page(result, about, [json.loads(encode(row), parse_float=Decimal) for row in first])


def _facts(simulation: Simulation) -> Iterator[tuple[str, str]]:
    of = simulation.request
    yield "From", day(of.first)
    yield "To", day(of.last)
    yield "Ruleset", "a document sent along" if of.document is not None else f"version {simulation.version}"
    yield "Asked for on", day(simulation.created_at.date())
    if of.customers is not None:
        yield "Only", counted(len(of.customers), "customer") + " by id"


def _notices(simulation: Simulation, ruleset: Ruleset) -> Iterator[str]:
    yield (
        "Each day is looked at with the transactions dated up to it, of all that are held today, and with what "
        "enrichment says of them today."
    )
    if ruleset.attributes:
        yield "Attributes are as they were on each day; before one was first set, as it is now."
    if simulation.customers_failed:
        failed = counted(simulation.customers_failed, "customer")
        yield f"{failed} left out: their data could not be read or computed."
