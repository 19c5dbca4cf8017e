"""Simulations as they are asked for and shown."""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import Field

from api.core.schemas.common import Counts, Received, View
from api.core.schemas.jobs import EXAMPLE_SIMULATION_JOB
from api.core.schemas.rules import Rule, day, identifier
from api.monitoring.schemas import EXAMPLE_DOCUMENT, EXAMPLE_ID, EXAMPLE_MATCH, EXAMPLE_RULES, ReadValueView
from api.webhooks.schemas import EXAMPLE_CUSTOMER
from pipelines.monitoring.ruleset import Severity
from pipelines.monitoring.simulation import MOST_CUSTOMERS, MOST_FIRINGS
from storage.core.models import JobStatus

MOST_NAMED = 100_000  # customers by id
MOST_MONTHS, USUAL_MONTHS = 24, 12
EARLIEST = date(1970, 1, 1)  # of the days that may be asked for

_DAY: dict[str, Any] = {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}
_CODES = [rule["code"] for rule in EXAMPLE_RULES]
_COUNTS: dict[str, Any] = {
    "fired": 41,
    "customers": 38,
    "daysObserved": 419_000,
    "daysHeld": 6_120,
    "daysUnknown": 2_410,
    "causes": [{"kind": "metric", "name": "revenue_90d", "cause": "stale", "days": 2_410}],
}
_NEVER: dict[str, Any] = dict.fromkeys(_COUNTS, 0) | {"causes": []}
EXAMPLE_SHORT: dict[str, Any] = {
    "jobId": EXAMPLE_SIMULATION_JOB["jobId"],
    "status": "Completed",
    "rulesetId": EXAMPLE_ID,
    "version": 2,
    "ofDocument": False,
    "from": "2025-07-02",
    "to": "2026-07-01",
    "customersNamed": None,
    "customersTotal": 1200,
    "customersDone": 1200,
    "customersFailed": 0,
    "dateCreated": "2026-07-01T02:15:00Z",
    "createdBy": "7d1e2a3b-59c4-4f6e-8a0b-1c2d3e4f5a6b",
}
EXAMPLE_RESULT: dict[str, Any] = {
    "customers": 1200,
    "customersFired": 38,
    "events": 40,
    "firings": 41,
    "firingsListed": 41,
    "atSwitchOn": {
        "customers": 6,
        "rules": [{"code": code, "customers": 6 - 6 * nth} for nth, code in enumerate(_CODES)],
    },
    "rules": [
        {**{name: rule[name] for name in ("code", "message", "severity")}, **counts}
        for rule, counts in zip(EXAMPLE_RULES, (_COUNTS, _NEVER), strict=True)
    ],
    "months": [
        {
            "month": "2025-07-01",
            "events": 9,
            "customers": 9,
            "rules": [{"code": _CODES[0], **_COUNTS, "fired": 9, "customers": 9}, {"code": _CODES[1], **_NEVER}],
        }
    ],
    "byCustomer": [
        {
            "customerId": EXAMPLE_CUSTOMER,
            "events": 2,
            "lastFired": "2026-03-14",
            "rules": [{"code": _CODES[0], "fired": 2}],
        }
    ],
}
EXAMPLE_FIRING: dict[str, Any] = {
    "customerId": EXAMPLE_CUSTOMER,
    "date": "2026-03-14",
    "code": _CODES[0],
    "values": EXAMPLE_MATCH["rules"][0]["values"],
}


def _or_null(parse: Callable[[Any], object]) -> Callable[[Any], object]:
    return lambda given: None if given is None else parse(given)


def _identifiers(given: Any) -> list[UUID]:
    """1 to MOST_NAMED, none twice."""
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_NAMED:
        raise ValueError
    found = [identifier(each) for each in given]
    if len(set(found)) != len(found):
        raise ValueError
    return found


def _object(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ValueError
    return given


def _day(name: str, means: str) -> Rule:
    return Rule(
        _or_null(day),
        "Simulation.InvalidDay",
        f"{name} is a date, YYYY-MM-DD.",
        {**_DAY, "description": means},
    )


class SentSimulation(Received):
    EXAMPLE: ClassVar = {"from": "2025-07-02", "to": "2026-07-01"}

    from_: Annotated[
        date | None,
        _day("from", f"The first day that is looked at. Default: {USUAL_MONTHS} months before the last one ends."),
    ] = Field(None, alias="from")
    to: Annotated[
        date | None, _day("to", f"The last day, at most {MOST_MONTHS} months after the first. Default: today.")
    ] = None
    customer_ids: Annotated[
        list[UUID] | None,
        Rule(
            _or_null(_identifiers),
            "Simulation.InvalidCustomers",
            f"customerIds is a list of 1 to {MOST_NAMED:,} different UUIDs.",
            {
                "anyOf": [
                    {
                        "type": "array",
                        "items": {"type": "string", "format": "uuid"},
                        "minItems": 1,
                        "maxItems": MOST_NAMED,
                    },
                    {"type": "null"},
                ],
                "description": "Only these customers. Default: all that the ruleset applies to.",
            },
        ),
    ] = None
    document: Annotated[
        dict[str, Any] | None,
        Rule(
            _or_null(_object),
            "Simulation.InvalidDocument",
            "document is a ruleset's document.",
            {
                "anyOf": [{"type": "object"}, {"type": "null"}],
                "description": "What the ruleset might say instead: this is simulated, and kept with the simulation "
                f'alone. Its slug doesn\'t count. Such as `{{"slug": "{EXAMPLE_DOCUMENT["slug"]}", …}}`.',
            },
        ),
    ] = None


class SimulationView(View):
    """What was asked for, and how far it has come."""

    EXAMPLE: ClassVar = EXAMPLE_SHORT

    job_id: UUID = Field(description="Of the job that does the work; the simulation's id.")
    status: JobStatus
    ruleset_id: UUID
    version: int = Field(description="The ruleset's when it was asked for.")
    of_document: bool = Field(description="A document that was sent along was simulated, not the version.")
    from_: date = Field(serialization_alias="from")
    to: date
    customers_named: int | None = Field(description="How many customers were named; null: all.")
    customers_total: int | None = Field(description="Null until it has begun.")
    customers_done: int
    customers_failed: int = Field(description="Left out, because their data could not be read or computed.")
    date_created: datetime
    created_by: str


class SimulatedCauseView(View):
    kind: str = Field(description="metric or attribute.")
    name: str
    cause: str
    days: int = Field(description="Customers' days on which it was the cause, or one of them.")


class SimulatedCountsView(View):
    """Of a rule. Days are customers' days: what holds for two customers for a week holds on 14."""

    code: str
    fired: int
    customers: int = Field(description="For whom it fired.")
    days_observed: int
    days_held: int = Field(description="On which the condition was true.")
    days_unknown: int = Field(description="On which it was unknown; the rule stays as it is, and never fires.")
    causes: Sequence[SimulatedCauseView]


class SimulatedRuleView(SimulatedCountsView):
    message: str
    severity: Severity


class SimulatedMonthView(View):
    month: date = Field(description="Its first day.")
    events: int = Field(description="Rules that fire for one customer on one day make one event.")
    customers: int = Field(description="For whom any rule fired.")
    rules: Sequence[SimulatedCountsView]


class StartingRuleView(View):
    code: str
    customers: int


class SwitchOnView(View):
    """Who would be told of on the first day, when it is switched on."""

    customers: int
    rules: Sequence[StartingRuleView]


class FiredRuleView(View):
    code: str
    fired: int


class SimulatedCustomerView(View):
    customer_id: UUID
    events: int
    last_fired: date
    rules: Sequence[FiredRuleView]


class SimulatedView(View):
    customers: int = Field(description="On whom the ruleset was tried: whom it applies to, unmuted, on any day.")
    customers_fired: int
    events: int
    firings: int
    firings_listed: int = Field(description=f"How many of them are listed one by one: the first {MOST_FIRINGS:,}.")
    at_switch_on: SwitchOnView
    rules: Sequence[SimulatedRuleView]
    months: Sequence[SimulatedMonthView]
    by_customer: Sequence[SimulatedCustomerView] = Field(
        description=f"The {MOST_CUSTOMERS:,} with the most events, these first."
    )


class SimulationResultView(SimulationView):
    EXAMPLE: ClassVar = EXAMPLE_SHORT | {"result": EXAMPLE_RESULT}

    result: SimulatedView | None = Field(description="Null until it is done.")


class SimulationListView(Counts):
    EXAMPLE: ClassVar = {"simulations": [EXAMPLE_SHORT], **Counts.EXAMPLE}

    simulations: Sequence[SimulationView]


class FiringView(View):
    EXAMPLE: ClassVar = EXAMPLE_FIRING

    customer_id: UUID
    date: date
    code: str
    values: Sequence[ReadValueView] = Field(description="What the rule's condition read that day.")


class FiringListView(Counts):
    EXAMPLE: ClassVar = {"firings": [EXAMPLE_FIRING], **Counts.EXAMPLE}

    firings: Sequence[FiringView]
