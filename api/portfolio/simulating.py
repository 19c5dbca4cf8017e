"""Turn a sent simulation into a portfolio job, and the job's result into responses and a page."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from api.http.responses import encode
from api.monitoring.rulesets import require_valid
from api.monitoring.schemas import ReadValue
from api.portfolio import portfolio_jobs
from api.portfolio.portfolio_jobs import SHOWN_ON_THE_PAGE, first_rows, require_known
from api.portfolio.schemas.simulations import EARLIEST, MAX_MONTHS, USUAL_MONTHS, SentSimulation
from pipelines.decisions.canonical import canonical
from pipelines.monitoring import CheckedRuleset, Listed, Ruleset, check_document
from pipelines.monitoring.page import About, page
from pipelines.pages.wording import day, quantity, title
from pipelines.vocabulary.errors import InvalidRequest
from storage.core.database import Reading
from storage.core.store import Store
from storage.customers import customers
from storage.monitoring.rulesets import StoredRuleset
from storage.monitoring.simulations import Request
from storage.portfolio.portfolio_jobs import SIMULATION, Listing, NewPortfolioJob, PortfolioJob

UNKNOWN_CUSTOMER = "Simulation.UnknownCustomer"
REFUSES = (
    *("Simulation.DayToCome", "Simulation.InvalidDays", "Simulation.TooManyDays", UNKNOWN_CUSTOMER),
    *("Ruleset.Invalid", "Ruleset.UnknownCustomer"),
)


def new_job(r: Reading, stored: StoredRuleset, sent: SentSimulation, today: date) -> NewPortfolioJob:
    """Return the job of a sent simulation of the ruleset.

    Raises:
        InvalidRequest: wrong days, an unknown customer, or a document with faults.
    """
    first, last = _days(sent, today)
    only = None if sent.customer_ids is None else tuple(sent.customer_ids)
    require_known(r, stored.client_id, only or (), UNKNOWN_CUSTOMER, "/customerIds/{nth}")
    ruleset = None if sent.document is None else require_valid(_point_into(check_document(sent.document), "/document"))
    if ruleset is not None and isinstance(ruleset.applies_to, Listed):
        where = "/document/appliesTo/customers/{nth}"
        require_known(r, stored.client_id, ruleset.applies_to.customers, "Ruleset.UnknownCustomer", where)
    request = Request(first, last, only, None if ruleset is None else canonical(ruleset))
    return NewPortfolioJob(SIMULATION, stored.client_id, stored.ruleset_id, stored.version, request.as_json())


def _days(sent: SentSimulation, today: date) -> tuple[date, date]:
    last = sent.to or today
    if min(last, sent.from_ or last) < EARLIEST:
        raise InvalidRequest("Simulation.InvalidDays", f"No day before {EARLIEST} is simulated.")
    first = sent.from_ or _months_before(last, USUAL_MONTHS) + timedelta(days=1)
    if last > today:
        raise InvalidRequest("Simulation.DayToCome", "The last day is later than today.")
    if first > last:
        raise InvalidRequest("Simulation.InvalidDays", "The first day is later than the last.")
    if first <= _months_before(last, MAX_MONTHS):
        raise InvalidRequest("Simulation.TooManyDays", f"At most {MAX_MONTHS} months are simulated.")
    return first, last


def _months_before(last: date, months: int) -> date:
    """Return the same day of an earlier month, or that month's last day if it is shorter."""
    count = last.year * 12 + last.month - 1 - months
    end = date((count + 1) // 12, (count + 1) % 12 + 1, 1) - timedelta(days=1)
    return end.replace(day=min(last.day, end.day))


def _point_into(document: CheckedRuleset, pointer: str) -> CheckedRuleset:
    """Prefix the pointers of the document's faults with its place in the request."""
    faults = [replace(each, pointer=f"{pointer}{each.pointer}") for each in document.faults]
    return replace(document, faults=faults)


# Results


def describe(job: PortfolioJob) -> dict[str, Any]:
    """Return the public fields that a simulation has in lists."""
    request = Request.from_json(job.request)
    return portfolio_jobs.describe(job, request.customers) | {
        "rulesetId": job.subject_id,
        "ofDocument": request.document is not None,
        "from": request.first,
        "to": request.last,
    }


_decode_values = msgspec.json.Decoder(list[ReadValue]).decode


def describe_firing(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the public fields of a firing, from a row of the lake."""
    return {
        "customerId": UUID(bytes=row["customer_id"]),
        "date": row["date"],
        "code": row["rule"],
        "values": _decode_values(row["read"]),
    }


def render_page(store: Store, job: PortfolioJob, ruleset: Ruleset, result: Mapping[str, Any], firings: Listing) -> str:
    """Return the page of a finished simulation, with the first of its firings."""
    first = first_rows(store.lake, firings, SHOWN_ON_THE_PAGE, describe_firing)
    shown = {row["customerId"] for row in first} | {UUID(each["customerId"]) for each in result["byCustomer"]}
    with store.db.reading() as r:
        names = customers.find_names(r, job.client_id, shown)
    about = About(
        ruleset.name,
        tuple(_facts(job, store.settings.zone)),
        tuple(_notices(job, ruleset)),
        dict(_titles(ruleset)),
        {str(customer_id): name for customer_id, name in names.items()},
    )
    return page(result, about, [json.loads(encode(row), parse_float=Decimal) for row in first])


def _titles(ruleset: Ruleset) -> Iterator[tuple[str, str]]:
    """Yield the name and the title of each value that the ruleset can read."""
    for slug, metric in ruleset.every_metric.items():
        yield slug, metric.name
    for attribute in ruleset.attributes:
        yield attribute.name, title(attribute.name, attribute.format)


def _facts(job: PortfolioJob, zone: ZoneInfo) -> Iterator[tuple[str, str]]:
    request = Request.from_json(job.request)
    yield "From", day(request.first)
    yield "To", day(request.last)
    yield "Ruleset", "the document in the request" if request.document is not None else f"version {job.version}"
    yield "Requested on", day(job.created_at.astimezone(zone).date())
    if request.customers is not None:
        yield "Only", quantity(len(request.customers), "customer") + " by id"


def _notices(job: PortfolioJob, ruleset: Ruleset) -> Iterator[str]:
    yield (
        "Each day is evaluated with the transactions that are stored today and dated up to that day, and with today's "
        "enrichment."
    )
    if ruleset.attributes:
        yield "Attributes have the values of each day. Before an attribute was first set, today's value is used."
    if job.customers_failed:
        yield f"{quantity(job.customers_failed, 'customer')} left out: their data could not be read or computed."
