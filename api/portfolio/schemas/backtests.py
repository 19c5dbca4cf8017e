"""Backtests as they are requested and shown."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, WithJsonSchema

from api.core.schemas.common import Counts, Paging, Received, View
from api.core.schemas.rules import (
    ListItem,
    Rule,
    choice_parameter,
    day,
    distinct,
    flag_rule,
    identifier,
    identifiers_or_null,
    number,
    one_of,
    or_null,
)
from api.customers.schemas.attributes import VALUE_SCHEMAS
from api.decisions.schemas.evaluations import VALUE as INPUT_VALUE
from pipelines.decisions import INDETERMINATE, OUTCOMES
from pipelines.decisions.backtest import LIMITS_CHANGED, OUTCOME_CHANGED
from storage.core.models import JobStatus
from storage.decisions.backtests import MAX_DAYS, Against, Knowledge
from storage.decisions.policies import MAX_VERSIONS

MAX_NAMED = 100_000  # customers by id, and known outcomes
MAX_ATTRIBUTES = 20
PUBLISHED = "published"
Outcome = Literal["proceed", "conditional", "blocked", "indeterminate"]
ALL_OUTCOMES = [*OUTCOMES, INDETERMINATE]
Value = Annotated[Any, WithJsonSchema({"anyOf": list(VALUE_SCHEMAS)})]
Share = Annotated[Decimal, WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})]
Amount = Annotated[Decimal, WithJsonSchema({"type": "number"})]
_version = number(1, MAX_VERSIONS)
_BEFORE, _AFTER = "By `against`, which the tested version is compared with.", "By the tested version."


def _against(given: Any) -> int | str:
    return _version(given) if type(given) is not str else one_of(PUBLISHED, Against.RECORDED, Against.CHALLENGER)(given)


class SentOutcome(Received):
    """The known outcome of a customer."""

    customer_id: Annotated[
        UUID,
        Rule(
            identifier, "Backtest.InvalidCustomer", "customerId must be one UUID.", {"type": "string", "format": "uuid"}
        ),
    ]
    defaulted: Annotated[
        bool, flag_rule("defaulted", "Backtest.InvalidDefaulted", "By the client's own definition of default.")
    ]


class SentBacktest(Received):
    version: Annotated[
        int | None,
        Rule(
            or_null(_version),
            "DecisionPolicy.InvalidVersion",
            f"version must be a whole number from 1 to {MAX_VERSIONS:,}.",
            {
                "anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_VERSIONS}, {"type": "null"}],
                "description": "The version to test. Default: the newest.",
            },
        ),
    ] = None
    against: Annotated[
        int | str,
        Rule(
            _against,
            "Backtest.InvalidAgainst",
            "against must be a version's number, published, recorded or challenger.",
            {
                "anyOf": [
                    {"type": "integer", "minimum": 1, "maximum": MAX_VERSIONS},
                    {"enum": [PUBLISHED, Against.RECORDED.value, Against.CHALLENGER.value]},
                ],
                "description": "What to compare with: another version; `published` (default), the published version; "
                "`recorded`, each customer's last evaluation by the end of the day, with its inputs; or `challenger`, "
                "the evaluations beside which this version decided as the challenger.",
            },
        ),
    ] = PUBLISHED
    as_of: Annotated[
        list[date] | None,
        Rule(
            or_null(distinct(day, MAX_DAYS)),
            "Backtest.InvalidAsOf",
            f"asOf must be a list of 1 to {MAX_DAYS} different dates.",
            {
                "anyOf": [
                    {
                        "type": "array",
                        "items": {"type": "string", "format": "date"},
                        "minItems": 1,
                        "maxItems": MAX_DAYS,
                        "uniqueItems": True,
                    },
                    {"type": "null"},
                ],
                "description": "Days to decide as of, each on the transactions up to that day. Default: today.",
            },
        ),
    ] = None
    knowledge: Annotated[
        str,
        Rule(
            one_of(*Knowledge),
            "Backtest.InvalidKnowledge",
            "knowledge must be now or then.",
            {
                "type": "string",
                "enum": [each.value for each in Knowledge],
                "description": "now (default): all transactions and attributes that are stored now. "
                "then: those that were stored by the end of the day.",
            },
        ),
    ] = Knowledge.NOW
    inputs: Annotated[dict[str, Any] | None, Field(json_schema_extra={"additionalProperties": INPUT_VALUE})] = Field(
        None,
        description="One value for each input that the versions declare, the same for all customers. Optional against "
        "recorded decisions, where they supply inputs that were not given then.",
    )
    customer_ids: Annotated[
        list[UUID] | None,
        identifiers_or_null(
            "customerIds",
            "Backtest.InvalidCustomers",
            MAX_NAMED,
            "Only these customers. Default: the whole portfolio.",
        ),
    ] = None
    attributes: Annotated[
        dict[str, Any] | None,
        Field(
            max_length=MAX_ATTRIBUTES,
            json_schema_extra={"additionalProperties": {"anyOf": list(VALUE_SCHEMAS)}},
        ),
    ] = Field(None, description="Only customers whose attributes have these values now.")
    outcomes: list[Annotated[SentOutcome, ListItem()]] | None = Field(
        None, max_length=MAX_NAMED, description="Known outcomes of customers, at most one each."
    )


class BacktestView(View):
    """The request and the progress of a backtest."""

    job_id: UUID = Field(description="Id of the job, and of the backtest.")
    status: JobStatus = Field(description="CompletedWithErrors: some customers were left out.")
    version: int = Field(description="The tested version: `after` in the results.")
    against: Against = Field(description="What it is compared with: `before` in the results.")
    against_version: int | None = Field(description="Number of the other version; null unless compared with a version.")
    as_of: Sequence[date] = Field(description="Days as of which customers are decided on, earliest first.")
    knowledge: Knowledge = Field(description="now: data as stored now; then: as stored by the end of each day.")
    inputs: dict[str, Value] = Field(description="By name: values that are the same for all customers.")
    attributes: dict[str, Value] | None = Field(
        description="Only customers with these attribute values; null: no such filter."
    )
    customers_named: int | None = Field(description="Number of customers in the request; null: the whole portfolio.")
    knows_outcomes: bool = Field(description="Whether the request gave known outcomes.")
    customers_total: int | None = Field(description="Null until the job has started.")
    customers_done: int = Field(description="Customers evaluated so far.")
    customers_failed: int = Field(description="Customers left out because their data could not be read or computed.")
    date_created: datetime
    created_by: str = Field(description="Id of the user or the API key.")


class CountedView(View):
    customers: int = Field(description="Customers with this outcome or transition.")
    judged: int = Field(description="Customers whose outcome is known.")
    defaulted: int = Field(description="Judged customers that defaulted.")
    bad_rate: Share | None = Field(description="Share of judged customers that defaulted.")


class OutcomeView(View):
    outcome: Outcome
    before: CountedView = Field(description=_BEFORE)
    after: CountedView = Field(description=_AFTER)


class SumView(View):
    known: int = Field(description="Customers whose limit is known.")
    amount: Amount = Field(description="Sum of the limits in AUD.")


class LimitSumView(View):
    product: str = Field(description="Slug of the product.")
    before: SumView = Field(description=_BEFORE)
    after: SumView = Field(description=_AFTER)


class TransitionView(CountedView):
    before: Outcome = Field(description=_BEFORE)
    after: Outcome = Field(description=_AFTER)
    limits_changed: int = Field(description="Customers with any limit that differs.")
    limits: Sequence[LimitSumView] = Field(description="Sums of the limits that are known on both sides.")


class TotalView(View):
    customers: int = Field(description="Customers with a limit, 0 and indeterminate ones included.")
    offered: int = Field(description="Customers with a limit above 0.")
    indeterminate: int = Field(description="Customers whose limit is indeterminate.")
    amount: Amount = Field(description="Sum of the known limits, in AUD.")
    mean_offered: Amount | None = Field(description="Mean of the limits above 0, in AUD; null if there are none.")


class BandView(View):
    up_to: int | None = Field(description="Upper bound in AUD, inclusive. 0: nothing is offered; null: indeterminate.")
    before: int = Field(description="Customers whose limit is in the band.")
    after: int = Field(description="Customers whose limit is in the band.")


class ProductLimitsView(View):
    product: str = Field(description="Slug of the product.")
    before: TotalView | None = Field(description="Null if that version has no limit for the product.")
    after: TotalView | None = Field(description="Null if that version has no limit for the product.")
    bands: Sequence[BandView] = Field(
        description="From the lowest limits to the highest, then indeterminate ones; bands without customers are "
        "left out."
    )


class StepCountView(View):
    step: str = Field(description="Name of the step.")
    reached: int = Field(description="Customers whom no earlier step decided.")
    decided: int = Field(description="Customers whom it decided.")
    undecidable: int = Field(description="Customers for whom it could not be decided.")


class PolicyRuleCountView(View):
    step: str = Field(description="Name of the rule's step.")
    code: str = Field(description="Code of the rule.")
    matched: int = Field(description="Customers who match the rule, whether or not its step was reached.")
    decisive: int = Field(description="Customers whose outcome it decided.")
    undecidable: int = Field(
        description="Customers for whom it could not be decided, whether or not its step was reached."
    )


class CauseView(View):
    about: str | None = Field(description="The product whose limit is indeterminate; null: the verdict.")
    operator: str = Field(description="metric, attribute, input, or the calculation that failed.")
    name: str | None = Field(description="Name of the metric, attribute or input.")
    cause: str = Field(description="Why the value is unavailable.")
    customers: int = Field(description="Customers for whom it is unavailable.")


class StepsView(View):
    before: Sequence[StepCountView] | None = Field(description="Null for recorded evaluations, and without steps.")
    after: Sequence[StepCountView] | None = Field(description="Null without steps.")


class RulesView(View):
    before: Sequence[PolicyRuleCountView] | None = Field(
        description="Null for recorded evaluations, and without steps."
    )
    after: Sequence[PolicyRuleCountView] | None = Field(description="Null without steps.")


class CausesView(View):
    before: Sequence[CauseView] | None = Field(description="Null for recorded evaluations.")
    after: Sequence[CauseView] | None = Field(description="Why outcomes or limits are indeterminate.")


class ChangingRuleView(View):
    code: str | None = Field(description="Null: the steps differ, not the result of a deciding rule.")
    customers: int = Field(description="Customers whose outcome changes because of it.")


class BacktestDayView(View):
    """The comparison as of one day."""

    as_of: date = Field(description="The day as of which customers were decided on.")
    customers: int = Field(description="Customers compared.")
    outcome_changed: int = Field(description="Customers whose outcome differs.")
    limits_changed: int = Field(description="Customers with any limit that differs.")
    outcomes: Sequence[OutcomeView] = Field(description="All four, also those without customers.")
    transitions: Sequence[TransitionView] = Field(description="Customers by outcome before and after.")
    limits: Sequence[ProductLimitsView] = Field(description="One for each product for which either side has limits.")
    steps: StepsView = Field(description="How many customers each step decided.")
    rules: RulesView = Field(description="How many customers match each rule.")
    changed_by: Sequence[ChangingRuleView] = Field(description="Rules by which outcomes differ.")
    causes: CausesView = Field(description="Why outcomes or limits are indeterminate.")


class RuleCoverageView(View):
    """Counts of decisions: one for each customer and day."""

    step: str = Field(description="Name of the rule's step.")
    code: str = Field(description="Code of the rule.")
    reached: int = Field(description="Decisions that reached its step, because no earlier step decided.")
    matched: int = Field(description="Decisions whose customer matches it, whether or not its step was reached.")
    decisive: int = Field(description="Decisions that it decided.")
    undecidable: int = Field(description="Decisions for which it could not be decided, whether or not reached.")


class CoverageView(View):
    """Which rules of a version were reached, and which decided, over all days of a backtest."""

    decisions: int = Field(description="Customers decided on, added up over the days.")
    by_default: int = Field(description="Decisions that no step decided: the default outcome.")
    rules: Sequence[RuleCoverageView] = Field(description="In the order of steps, then of codes.")
    never_reached: Sequence[str] = Field(description="Codes of rules whose step no decision reached.")
    never_matched: Sequence[str] = Field(description="Codes of rules that no customer matches.")


class CoverageSidesView(View):
    before: CoverageView | None = Field(description="Null for recorded evaluations, and without steps.")
    after: CoverageView | None = Field(description="Null without steps.")


class BacktestResultView(BacktestView):
    days: Sequence[BacktestDayView] | None = Field(description="Null until the job has completed.")
    coverage: CoverageSidesView | None = Field(description="Null until the job has completed.")


class PolicyCoverageView(View):
    """The coverage of a version by the newest finished backtest in which it decided."""

    version: int
    backtest_id: UUID | None = Field(description="Null: no backtest of this version has finished.")
    as_of: Sequence[date] = Field(description="Days of the backtest.")
    coverage: CoverageView | None = Field(description="Null without a backtest, and without steps.")


class BacktestListView(Counts):
    backtests: Sequence[BacktestView] = Field(description="Newest first.")


class LimitPairView(View):
    product: str = Field(description="Slug of the product.")
    before: Amount | None = Field(description="AUD; null: indeterminate, or the version has no limit for the product.")
    after: Amount | None = Field(description="AUD; null: indeterminate, or the version has no limit for the product.")


class ChangedCustomerView(View):
    customer_id: UUID
    as_of: date = Field(description="The day as of which the customer was decided on.")
    change: Literal["outcome", "limits"] = Field(description="limits: the outcome is the same.")
    before: Outcome = Field(description=_BEFORE)
    after: Outcome = Field(description=_AFTER)
    before_step: str | None = Field(description="Step that decided; null: none, so the default outcome.")
    after_step: str | None = Field(description="Step that decided; null: none, so the default outcome.")
    before_rules: Sequence[str] = Field(description="Codes of rules; ? marks one that could not be decided.")
    after_rules: Sequence[str] = Field(description="Codes of rules; ? marks one that could not be decided.")
    changed_by: Sequence[str] = Field(
        description="Codes of deciding rules whose result differs; empty if the outcome is the same."
    )
    limits: Sequence[LimitPairView] = Field(description="Limits of all products.")
    defaulted: bool | None = Field(description="The known outcome; null if the request gave none.")


class ChangedListView(Counts):
    customers: Sequence[ChangedCustomerView] = Field(description="One for each customer and day with a difference.")


class ChangesQuery(Paging):
    change: Annotated[
        str | None,
        choice_parameter(
            "change",
            "Backtest.InvalidChange",
            (OUTCOME_CHANGED, LIMITS_CHANGED),
            "Only customers whose outcome changes, or whose limits alone change.",
        ),
    ] = None
