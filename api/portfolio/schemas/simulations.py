"""Simulations as they are requested and shown."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from api.core.schemas.common import Counts, Received, View
from api.core.schemas.rules import Rule, day, identifiers_or_null, or_null
from api.monitoring.schemas import ReadValueView
from pipelines.monitoring.ruleset import Severity
from pipelines.monitoring.simulation import MAX_CUSTOMERS, MAX_FIRINGS
from storage.core.models import JobStatus

MAX_NAMED = 100_000  # customers by id
MAX_MONTHS, USUAL_MONTHS = 24, 12
EARLIEST = date(1970, 1, 1)  # the earliest day that may be requested

_DAY: dict[str, Any] = {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}


def _object(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ValueError
    return given


def _day(name: str, means: str) -> Rule:
    return Rule(
        or_null(day),
        "Simulation.InvalidDay",
        f"{name} must be a date, YYYY-MM-DD.",
        {**_DAY, "description": means},
    )


class SentSimulation(Received):
    from_: Annotated[
        date | None,
        _day("from", f"The first day. By default {USUAL_MONTHS} months up to `to` are simulated."),
    ] = Field(None, alias="from")
    to: Annotated[
        date | None,
        _day("to", f"The last day, at most {MAX_MONTHS} months after the first. Default: today."),
    ] = None
    customer_ids: Annotated[
        list[UUID] | None,
        identifiers_or_null(
            "customerIds",
            "Simulation.InvalidCustomers",
            MAX_NAMED,
            "Only these customers. Default: all that the ruleset applies to.",
        ),
    ] = None
    document: Annotated[
        dict[str, Any] | None,
        Rule(
            or_null(_object),
            "Simulation.InvalidDocument",
            "document must be a ruleset's document.",
            {
                "anyOf": [{"type": "object"}, {"type": "null"}],
                "description": "A draft of the ruleset to simulate instead. It is stored with the simulation only; its "
                'slug is ignored. Example: `{"slug": "after-the-loan", …}`.',
            },
        ),
    ] = None


class SimulationView(View):
    """The request and the progress of a simulation."""

    job_id: UUID = Field(description="Id of the job, and of the simulation.")
    status: JobStatus = Field(description="CompletedWithErrors: some customers were left out.")
    ruleset_id: UUID
    version: int = Field(description="Version of the ruleset at the time of the request.")
    of_document: bool = Field(description="Whether the request's document was simulated instead of the version.")
    from_: date = Field(serialization_alias="from", description="First day.")
    to: date = Field(description="Last day.")
    customers_named: int | None = Field(description="Number of customers in the request; null: all.")
    customers_total: int | None = Field(description="Null until the job has started.")
    customers_done: int = Field(description="Customers simulated so far.")
    customers_failed: int = Field(description="Customers left out because their data could not be read or computed.")
    date_created: datetime
    created_by: str = Field(description="Id of the user or the API key.")


class SimulatedCauseView(View):
    kind: str = Field(description="metric or attribute.")
    name: str = Field(description="Slug of the metric, or name of the attribute.")
    cause: str = Field(description="Why the value is unavailable.")
    days: int = Field(description="Customer days on which it was a cause.")


class SimulatedCountsView(View):
    """Counts of a rule. Days are customer days: two customers for a week count as 14."""

    code: str = Field(description="Code of the rule.")
    fired: int = Field(description="How often it fired.")
    customers: int = Field(description="Customers for whom it fired.")
    days_observed: int = Field(description="Customer days on which it was evaluated.")
    days_held: int = Field(description="Customer days on which the condition was true.")
    days_unknown: int = Field(description="Customer days on which it was unknown: the rule did not fire or reset.")
    causes: Sequence[SimulatedCauseView] = Field(description="Why the condition was unknown.")


class SimulatedRuleView(SimulatedCountsView):
    message: str = Field(description="What the rule detects, for the lender.")
    severity: Severity = Field(description="As the ruleset states it; it has no effect on the simulation.")


class SimulatedMonthView(View):
    month: date = Field(description="First day of the month.")
    events: int = Field(description="Events; all rules that fire for a customer on a day are one.")
    customers: int = Field(description="Customers for whom any rule fired.")
    rules: Sequence[SimulatedCountsView] = Field(description="All rules, in the ruleset's order.")


class StartingRuleView(View):
    code: str = Field(description="Code of the rule.")
    customers: int = Field(description="Customers for whom the rule would fire.")


class SwitchOnView(View):
    """Customers for whom rules would fire on the first day, when the ruleset is switched on."""

    customers: int = Field(description="Customers for whom any rule would fire.")
    rules: Sequence[StartingRuleView] = Field(description="All rules, in the ruleset's order.")


class FiredRuleView(View):
    code: str = Field(description="Code of the rule.")
    fired: int = Field(description="How often it fired.")


class SimulatedCustomerView(View):
    customer_id: UUID
    events: int = Field(description="Days on which any rule fired.")
    last_fired: date = Field(description="The last day on which any rule fired.")
    rules: Sequence[FiredRuleView] = Field(description="Rules that fired for the customer, by code.")


class SimulatedView(View):
    customers: int = Field(description="Customers to whom the ruleset applied, unmuted, on any day.")
    customers_fired: int = Field(description="Customers for whom any rule fired.")
    events: int = Field(description="Events; all rules that fire for a customer on a day are one.")
    firings: int = Field(description="How often rules fired.")
    firings_listed: int = Field(description=f"Number of firings that are listed: the first {MAX_FIRINGS:,}.")
    at_switch_on: SwitchOnView = Field(description="Rules that would fire on the first day.")
    rules: Sequence[SimulatedRuleView] = Field(description="All rules, in the ruleset's order.")
    months: Sequence[SimulatedMonthView] = Field(description="All months that the simulation covers, earliest first.")
    by_customer: Sequence[SimulatedCustomerView] = Field(
        description=f"The {MAX_CUSTOMERS:,} customers with the most events, most first."
    )


class SimulationResultView(SimulationView):
    result: SimulatedView | None = Field(description="Null until the job has completed.")


class SimulationListView(Counts):
    simulations: Sequence[SimulationView] = Field(description="Newest first.")


class FiringView(View):
    customer_id: UUID
    date: Annotated[date, Field(description="The day on which it fired.")]
    code: str = Field(description="Code of the rule.")
    values: Sequence[ReadValueView] = Field(description="The values that the condition read that day.")


class FiringListView(Counts):
    firings: Sequence[FiringView] = Field(description="By customer, then by day.")
