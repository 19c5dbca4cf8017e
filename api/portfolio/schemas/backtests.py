"""Backtests as they are asked for and shown."""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, WithJsonSchema

from api.core.schemas.common import Counts, Paging, Received, View
from api.core.schemas.rules import OneOfMany, Parameter, Rule, day, identifier, one_of, whole
from api.customers.schemas.attributes import VALUE_SCHEMAS
from api.decisions.schemas.evaluations import VALUE as INPUT_VALUE
from pipelines.decisions import INDETERMINATE, OUTCOMES
from pipelines.decisions.backtest import LIMITS_CHANGED, OUTCOME_CHANGED
from pipelines.vocabulary.strict_json import Number
from storage.core.models import JobStatus
from storage.decisions.backtests import MOST_DAYS, Against, Knowledge
from storage.decisions.policies import MOST_VERSIONS

MOST_NAMED = 100_000  # customers by id, and known outcomes
MOST_ATTRIBUTES = 20
PUBLISHED = "published"
Outcome = Literal["proceed", "conditional", "blocked", "indeterminate"]
ALL_OUTCOMES = [*OUTCOMES, INDETERMINATE]
Value = Annotated[Any, WithJsonSchema({"anyOf": list(VALUE_SCHEMAS)})]
Share = Annotated[Decimal, WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})]
Amount = Annotated[Decimal, WithJsonSchema({"type": "number"})]


def _number(given: Any) -> int:
    if type(given) is not Number:
        raise ValueError
    return whole(1, MOST_VERSIONS)(given)


def _against(given: Any) -> int | str:
    return one_of(PUBLISHED, Against.RECORDED, Against.CHALLENGER)(given) if type(given) is str else _number(given)


def _list(parse: Callable[[Any], object], most: int) -> Callable[[Any], object]:
    """1 to `most`, none twice; null: absent."""

    def read(given: Any) -> object:
        if given is None:
            return None
        if not isinstance(given, list) or not 1 <= len(given) <= most:
            raise ValueError
        read_ = [parse(each) for each in given]
        if len(set(read_)) != len(read_):
            raise ValueError
        return read_

    return read


def _flag(given: Any) -> bool:
    if type(given) is not bool:
        raise ValueError
    return given


class SentOutcome(Received):
    """What became of a customer."""

    customer_id: Annotated[
        UUID,
        Rule(identifier, "Backtest.InvalidCustomer", "customerId is one UUID.", {"type": "string", "format": "uuid"}),
    ]
    defaulted: Annotated[
        bool, Rule(_flag, "Backtest.InvalidDefaulted", "defaulted is true or false.", {"type": "boolean"})
    ]


class SentBacktest(Received):
    version: Annotated[
        int | None,
        Rule(
            lambda given: None if given is None else _number(given),
            "DecisionPolicy.InvalidVersion",
            f"version is a whole number from 1 to {MOST_VERSIONS:,}.",
            {
                "anyOf": [{"type": "integer", "minimum": 1, "maximum": MOST_VERSIONS}, {"type": "null"}],
                "description": "The version that is looked at. Null or left out: the newest.",
            },
        ),
    ] = None
    against: Annotated[
        int | str,
        Rule(
            _against,
            "Backtest.InvalidAgainst",
            "against is a version's number, published, recorded or challenger.",
            {
                "anyOf": [
                    {"type": "integer", "minimum": 1, "maximum": MOST_VERSIONS},
                    {"enum": [PUBLISHED, Against.RECORDED.value, Against.CHALLENGER.value]},
                ],
                "description": "What it is compared with: another version, the published one (default); `recorded`, "
                "each customer's last evaluation that was answered by the day's end, with the inputs that it was "
                "given; or `challenger`, of these evaluations those that the version was shadow-run on, with what the "
                "shadow run made of them.",
            },
        ),
    ] = PUBLISHED
    as_of: Annotated[
        list[date] | None,
        Rule(
            _list(day, MOST_DAYS),
            "Backtest.InvalidAsOf",
            f"asOf is a list of 1 to {MOST_DAYS} different dates.",
            {
                "anyOf": [
                    {
                        "type": "array",
                        "items": {"type": "string", "format": "date"},
                        "minItems": 1,
                        "maxItems": MOST_DAYS,
                        "uniqueItems": True,
                    },
                    {"type": "null"},
                ],
                "description": "Days as of which it is decided, each on transactions dated up to it. Default: today.",
            },
        ),
    ] = None
    knowledge: Annotated[
        str,
        Rule(
            one_of(*Knowledge),
            "Backtest.InvalidKnowledge",
            "knowledge is now or then.",
            {
                "type": "string",
                "enum": [each.value for each in Knowledge],
                "description": "now (default): all transactions held by now, and attributes as they are now. "
                "then: what had been received, and attributes as they were set, by the end of the day.",
            },
        ),
    ] = Knowledge.NOW
    inputs: Annotated[dict[str, Any] | None, Field(json_schema_extra={"additionalProperties": INPUT_VALUE})] = Field(
        None,
        description="One value for each input that the versions declare, the same for all customers. Against recorded "
        "decisions these stand in for inputs that were not given then, and may be left out.",
    )
    customer_ids: Annotated[
        list[UUID] | None,
        Rule(
            _list(identifier, MOST_NAMED),
            "Backtest.InvalidCustomers",
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
                "description": "Only these customers. Default: the whole portfolio.",
            },
        ),
    ] = None
    attributes: Annotated[
        dict[str, Any] | None,
        Field(
            max_length=MOST_ATTRIBUTES,
            json_schema_extra={"additionalProperties": {"anyOf": list(VALUE_SCHEMAS)}},
        ),
    ] = Field(None, description="Only customers whose attributes have these values now.")
    outcomes: list[Annotated[SentOutcome, OneOfMany()]] | None = Field(
        None, max_length=MOST_NAMED, description="Known outcomes: what became of customers, each at most once."
    )


class BacktestView(View):
    """What was asked for, and how far it has come."""

    job_id: UUID = Field(description="Of the job that does the work.")
    status: JobStatus
    version: int
    against: Against
    against_version: int | None
    as_of: Sequence[date]
    knowledge: Knowledge
    inputs: dict[str, Value]
    attributes: dict[str, Value] | None
    customers_named: int | None = Field(description="How many customers were named; null: the whole portfolio.")
    knows_outcomes: bool
    customers_total: int | None = Field(description="Null until it has begun.")
    customers_done: int
    customers_failed: int = Field(description="Left out, because their data could not be read or computed.")
    date_created: datetime
    created_by: str


class CountedView(View):
    customers: int
    judged: int = Field(description="Customers whose outcome is known.")
    defaulted: int
    bad_rate: Share | None = Field(description="Defaulted of those judged.")


class OutcomeView(View):
    outcome: Outcome
    before: CountedView
    after: CountedView


class SumView(View):
    known: int = Field(description="Customers whose limit could be told.")
    amount: Amount = Field(description="AUD in all.")


class LimitSumView(View):
    product: str
    before: SumView
    after: SumView


class TransitionView(CountedView):
    before: Outcome
    after: Outcome
    limits_changed: int
    limits: Sequence[LimitSumView]


class TotalView(View):
    customers: int
    offered: int = Field(description="Customers with more than nothing.")
    indeterminate: int
    amount: Amount
    mean_offered: Amount | None


class BandView(View):
    up_to: int | None = Field(description="AUD, included; 0: nothing is offered; null: indeterminate.")
    before: int
    after: int


class ProductLimitsView(View):
    product: str
    before: TotalView | None = Field(description="Null where that side doesn't price the product.")
    after: TotalView | None
    bands: Sequence[BandView]


class StepCountView(View):
    step: str
    reached: int
    decided: int
    undecidable: int


class RuleCountView(View):
    step: str
    code: str
    matched: int = Field(description="Customers of whom the rule holds, whether or not its step was reached.")
    decisive: int = Field(description="Customers whose step it decided.")
    undecidable: int


class CauseView(View):
    about: str | None = Field(description="The product whose limit could not be told; null: the verdict.")
    operator: str = Field(description="metric, attribute, input, or the calculation that came to nothing.")
    name: str | None = Field(description="Of the metric, attribute or input.")
    cause: str
    customers: int


class StepsView(View):
    before: Sequence[StepCountView] | None = Field(description="Null for what was recorded, and without steps.")
    after: Sequence[StepCountView] | None


class RulesView(View):
    before: Sequence[RuleCountView] | None = Field(description="Null for what was recorded, and without steps.")
    after: Sequence[RuleCountView] | None


class CausesView(View):
    before: Sequence[CauseView] | None
    after: Sequence[CauseView] | None


class ChangingRuleView(View):
    code: str | None = Field(description="Null: no deciding rule's own result differs; the steps do.")
    customers: int = Field(description="Whose outcome changes with it.")


class BacktestDayView(View):
    """As of one day."""

    as_of: date
    customers: int
    outcome_changed: int
    limits_changed: int
    outcomes: Sequence[OutcomeView]
    transitions: Sequence[TransitionView]
    limits: Sequence[ProductLimitsView]
    steps: StepsView
    rules: RulesView
    changed_by: Sequence[ChangingRuleView]
    causes: CausesView


class BacktestResultView(BacktestView):
    days: Sequence[BacktestDayView] | None = Field(description="Null until it is done.")


class BacktestListView(Counts):
    backtests: Sequence[BacktestView]


class LimitPairView(View):
    product: str
    before: Amount | None
    after: Amount | None


class ChangedCustomerView(View):
    customer_id: UUID
    as_of: date
    change: Literal["outcome", "limits"]
    before: Outcome
    after: Outcome
    before_step: str | None
    after_step: str | None
    before_rules: Sequence[str] = Field(description="Codes; one that could not be decided ends in ?.")
    after_rules: Sequence[str]
    changed_by: Sequence[str]
    limits: Sequence[LimitPairView]
    defaulted: bool | None


class ChangedListView(Counts):
    customers: Sequence[ChangedCustomerView]


class WhichChanges(Paging):
    change: Annotated[
        str | None,
        Parameter(
            one_of(OUTCOME_CHANGED, LIMITS_CHANGED),
            "Backtest.InvalidChange",
            "change must be outcome or limits, given once.",
            {
                "type": "string",
                "enum": [OUTCOME_CHANGED, LIMITS_CHANGED],
                "description": "Only who changes in outcome, or in limits alone.",
            },
        ),
    ] = None
