"""Evaluations as they are requested and shown."""

from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from api.core.schemas.common import Counts, Paging, Received, View
from api.core.schemas.rules import (
    Parameter,
    Rule,
    choice_parameter,
    flag_parameter,
    flag_rule,
    masked_text,
    moment_parameter,
    number,
    one_of,
    or_null,
    required_text,
    text,
)
from api.customers.schemas.attributes import MAX_TEXT
from api.decisions.schemas.policies import ProductView
from pipelines.decisions import INDETERMINATE, OUTCOMES
from pipelines.decisions.numbers import LARGEST
from pipelines.metrics.definition import Format
from storage.core.paging import MAX_COUNTED
from storage.decisions.policies import MAX_VERSIONS

MAX_GRID = 50  # values on an axis
MAX_REASON, MAX_PERSON = 2_000, 200  # characters
VALUE: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "maxLength": MAX_TEXT},
        {"type": "number", "exclusiveMinimum": -LARGEST, "exclusiveMaximum": LARGEST},
        {"type": "boolean"},
    ]
}
_OR_NULL = {"anyOf": [*VALUE["anyOf"], {"type": "null"}]}
_Inputs = Annotated[dict[str, Any] | None, Field(json_schema_extra={"additionalProperties": VALUE})]
_Overrides = Annotated[dict[str, Any] | None, Field(json_schema_extra={"additionalProperties": _OR_NULL})]


def _axis_values(given: Any) -> list[Any]:
    if not isinstance(given, list) or not 1 <= len(given) <= MAX_GRID:
        raise ValueError
    return given


class SentEvaluation(Received):
    inputs: _Inputs = Field(
        None, description="One value for each input that the policy declares. Decimals are numbers or text."
    )
    attribute_overrides: _Overrides = Field(
        None,
        description="Attribute values for a what-if (null: not set). Stored attributes do not change.",
    )
    what_if: Annotated[
        bool, flag_rule("whatIf", "DecisionPolicy.InvalidWhatIf", "true: a what-if, also without overrides.")
    ] = False
    version: Annotated[
        int | None,
        Rule(
            or_null(number(1, MAX_VERSIONS)),
            "DecisionPolicy.InvalidVersion",
            "version must be the number of one of the policy's versions.",
            {
                "type": ["integer", "null"],
                "minimum": 1,
                "maximum": MAX_VERSIONS,
                "description": "Version of the policy; the published one by default. Any other makes this a what-if.",
            },
        ),
    ] = None


class SentAxis(Received):
    """A number of the policy and the values to try. Exactly one of `metric`, `attribute` and `input` names it."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": [name]} for name in ("metric", "attribute", "input")],
        }
    )
    metric: str | None = Field(None, description="Slug of a metric.")
    attribute: str | None = Field(None, description="Name of an attribute.")
    input: str | None = Field(None, description="Name of an input.")
    values: Annotated[
        list[Any],
        Rule(
            _axis_values,
            "DecisionPolicy.InvalidGrid",
            f"values must be a list of 1 to {MAX_GRID} decimals.",
            {
                "type": "array",
                "items": {"type": ["number", "string"]},
                "minItems": 1,
                "maxItems": MAX_GRID,
                "description": "Decimals.",
            },
        ),
    ]

    @property
    def leaf(self) -> tuple[str, str] | None:
        """The kind and the name of the number, or None unless exactly one is named."""
        given = [(kind, name) for kind in ("metric", "attribute", "input") if (name := getattr(self, kind)) is not None]
        return given[0] if len(given) == 1 else None


class SentGrid(Received):
    across: SentAxis = Field(description="The number whose values are the columns.")
    down: SentAxis = Field(description="The number whose values are the rows.")


class SentSensitivity(SentEvaluation):
    grid: SentGrid | None = Field(None, description="Outcomes and limits for every pair of values of two numbers.")


class SentOverride(Received):
    outcome: Annotated[
        str,
        Rule(
            one_of(*OUTCOMES),
            "Evaluation.InvalidOutcome",
            f"outcome must be one of {', '.join(OUTCOMES)}.",
            {"enum": list(OUTCOMES), "description": "The outcome that was decided instead."},
        ),
    ]
    reason: Annotated[
        str,
        required_text(
            "reason", "Evaluation.InvalidReason", MAX_REASON, "Why it is decided otherwise.", parse=masked_text
        ),
    ]
    decided_by: Annotated[
        str,
        required_text("decidedBy", "Evaluation.InvalidPerson", MAX_PERSON, "Who decided.", parse=masked_text),
    ]


class EvaluationPaging(Paging):
    policy: Annotated[
        str | None,
        Parameter(
            text(100),
            "Evaluation.InvalidPolicy",
            "policy must be the slug of a decision policy, given once.",
            {
                "type": "string",
                "minLength": 1,
                "maxLength": 100,
                "description": "Only evaluations by the policy with this slug.",
            },
        ),
    ] = None


class EvaluationsQuery(EvaluationPaging):
    outcome: Annotated[
        str | None,
        choice_parameter(
            "outcome", "Evaluation.InvalidOutcome", (*OUTCOMES, INDETERMINATE), "Only with this outcome, as evaluated."
        ),
    ] = None
    created_after: Annotated[
        datetime | None, moment_parameter("createdAfter", "Evaluation.InvalidDate", "Only those made after this time.")
    ] = None
    created_before: Annotated[
        datetime | None,
        moment_parameter("createdBefore", "Evaluation.InvalidDate", "Only those made before this time."),
    ] = None
    decisions_only: Annotated[
        bool, flag_parameter("decisionsOnly", "Evaluation.InvalidDecisionsOnly", "Only decisions, no what-ifs.")
    ] = False


# What is shown

Outcome = Literal["proceed", "conditional", "blocked", "indeterminate"]


class MatchedRuleView(View):
    code: str = Field(description="Code of the rule, or of the default reason.")
    message: str = Field(description="Message for the lender.")
    customer_message: str = Field(description="Message for the customer.")
    metric_ids: list[UUID] = Field(description="Metrics that its condition reads.")


class ReasonView(View):
    """A reason why the policy cannot be decided."""

    code: str = Field(description="Stable: programs should branch on this.")
    message: str = Field(description="What is unavailable, for people.")
    metric_ids: list[UUID] = Field(description="The metrics that are unavailable; empty for an attribute or an input.")
    cause: str = Field(description="Why the value is unavailable.")
    name: str | None = Field(description="Name of the metric, attribute or input.")
    settle: str = Field(description="What would resolve this.")


class VerdictView(View):
    outcome: Outcome = Field(description="indeterminate: it depends on something that is unavailable.")
    recommended_actions: list[str] = Field(description="Of all matched rules in the deciding step.")
    reasons: list[ReasonView] = Field(description=f"Why the outcome is {INDETERMINATE}; otherwise empty.")
    matched_rules: list[MatchedRuleView] = Field(description="By rank, 1 first; without a match, the default reason.")
    principal_reasons: list[str] = Field(description="At most four, in the words for the customer.")


class CapView(View):
    """A cap of a limit, in the policy's words."""

    code: str = Field(description="As in the policy's document.")
    message: str = Field(description="Why the limit is not higher, for the lender.")


class ComputedLimitView(View):
    kind: Literal["computed"] = Field(description="computed: the amount is known.")
    product_id: UUID
    amount: float = Field(description="AUD; 0 if nothing is offered.")
    capped: bool = Field(description="Whether a cap reduced the amount.")
    uncapped_amount: float | None = Field(None, description="AUD before the cap, if one applied.")
    capped_by: CapView | None = Field(None, description="The cap that applied: the lowest; of equal ones, the first.")


class IndeterminateLimitView(View):
    kind: Literal["indeterminate"] = Field(
        description="indeterminate: the amount depends on something that is unavailable."
    )
    product_id: UUID
    reasons: list[ReasonView] = Field(description="What is unavailable, and what would resolve it.")


class IndicatorView(View):
    kind: Literal["reading"]
    metric_id: UUID
    value: float = Field(description="In the metric's unit.")
    format: Format = Field(description="How people read the value: as percent, 0.12 is 12 %.")


class NamedMetricView(View):
    metric_id: UUID
    name: str


class AttributeReadView(View):
    name: str
    value: Any = Field(description="Null: unavailable.")
    source: Literal["stored", "overridden"] = Field(
        description="overridden: given in the request, for this evaluation only."
    )


class EvaluationView(View):
    verdict: VerdictView = Field(description="The outcome, with its reasons.")
    computed_limits: list[ComputedLimitView | IndeterminateLimitView] = Field(
        description="One for each limit of the policy, in the document's order."
    )
    products: list[ProductView] = Field(description="Products that `computedLimits` names by id.")
    indicators: list[IndicatorView] = Field(
        description="Readings that the policy shows with the verdict; unavailable ones are left out."
    )
    metrics: list[NamedMetricView] = Field(description="Names of the metrics that the response mentions by id.")
    attributes: list[AttributeReadView] = Field(description="Every attribute that the decision read.")
    evaluation_id: UUID
    policy_version: int = Field(description="Version of the policy that decided.")
    data_version: int = Field(description="Version of the customer's transactions that was evaluated.")
    pending_jobs: list[UUID] = Field(description="Unfinished jobs that may change these transactions.")
    what_if: bool = Field(
        description="True if requested, with overrides, or by a version that is not published: no decision."
    )


class ChangeView(View):
    value: float = Field(description="The value of the number.")
    outcome: Outcome = Field(description="The outcome with this value.")


class SensitivityView(View):
    kind: Literal["metric", "attribute", "input"]
    name: str = Field(description="Slug of the metric, or name of the attribute or the input.")
    metric_id: UUID | None = Field(description="Null unless it is a metric.")
    value: float | None = Field(description="Null: unavailable.")
    below: ChangeView | None = Field(
        description="The nearest lower value with another outcome. Steps: 1 for counts, 0.01 for money, 0.0001 for "
        "other metrics, 0.00000001 for attributes and inputs."
    )
    above: ChangeView | None = Field(description="The nearest higher value with another outcome.")
    nearest: ChangeView | None = Field(
        description="The nearer of the two; if the number is unavailable, the first of `changes`."
    )
    changes: list[ChangeView] = Field(
        description="For an unavailable number: each other outcome that its value alone could bring about, with the "
        "value nearest to zero that brings it about; nearest first. Empty if there is none, for example because other "
        "numbers are unavailable too. Always empty for a number that has a value."
    )
    suggestions: list[ChangeView] = Field(
        description="Changes that the lender or the applicant can aim at, rounded as people would write them; nearest "
        "first. Empty for a number about a year that is over, and for one that changes only with time."
    )
    complete: bool = Field(
        description="True: all changes are listed. False: the search was stopped, and there may be more."
    )


class AxisView(View):
    kind: Literal["metric", "attribute", "input"]
    name: str = Field(description="Slug of the metric, or name of the attribute or the input.")
    values: list[float] = Field(description="In the order of the request.")


class GridLimitView(View):
    product_id: UUID
    amounts: list[list[float | None]] = Field(description="Null: indeterminate.")


class GridView(View):
    """Outcomes and limits: a row for each value of `down`, a column for each value of `across`."""

    across: AxisView = Field(description="The columns.")
    down: AxisView = Field(description="The rows.")
    outcomes: list[list[Outcome]] = Field(description="By value of `down`, then of `across`.")
    limits: list[GridLimitView] = Field(description="The same for the limit of each product.")


class SensitivitiesView(View):
    outcome: Outcome = Field(description="With the actual values.")
    policy_version: int = Field(description="Version of the policy that was evaluated.")
    data_version: int = Field(description="Version of the customer's transactions that was evaluated.")
    sensitivities: list[SensitivityView] = Field(
        description="One for each number that the policy reads, in the document's order."
    )
    grid: GridView | None = Field(description="Null if none was requested.")


class EvaluationSummaryView(View):
    evaluation_id: UUID
    customer_id: UUID
    slug: str = Field(description="The policy's.")
    policy_name: str = Field(description="Name of the policy's version that decided.")
    policy_version: int = Field(validation_alias="version", description="Version of the policy that decided.")
    at: datetime = Field(description="When it was evaluated.")
    who: str = Field(description="Id of the user or the API key, or `operator`.")
    outcome: Outcome = Field(description="As evaluated.")
    overridden_outcome: Outcome | None = Field(description="The latest override; null if there is none.")
    what_if: bool = Field(description="Whether it was only a trial: no decision.")
    data_version: int = Field(description="Version of the customer's transactions that was evaluated.")
    as_of: date = Field(description="Business day of the evaluation.")


class EvaluationListView(Counts):
    evaluations: list[EvaluationSummaryView] = Field(description="Newest first.")


class AllEvaluationsView(EvaluationListView):
    has_more: bool = Field(
        description=f"Whether there are more than `totalCount`. On pages, only {MAX_COUNTED:,} are counted."
    )


class DecisionOverrideView(View):
    """A decision by a person that overrides the evaluation's outcome."""

    outcome: Outcome = Field(description="The outcome that applies instead.")
    reason: str = Field(description="Why it was decided otherwise, in a person's words.")
    decided_by: str = Field(description="Name of the person who decided.")
    at: datetime = Field(description="When it was recorded; the person may have decided earlier.")
    who: str = Field(description="Id of the user or the API key.")


class RecordedEvaluationView(EvaluationSummaryView):
    shadow_of: UUID | None = Field(description="The evaluation for which this challenger evaluation was run.")
    shadows: list[UUID] = Field(description="A challenger's evaluations of the same case.")
    overrides: list[DecisionOverrideView] = Field(description="Oldest first; the last one applies.")
    sha256: str = Field(description="SHA-256 of the record's bytes as in this response.")
    record: Any = Field(
        description="Everything the evaluation read, with causes; the versions of policy, metrics, data and engine; "
        "the trace: each rule's comparisons of values with thresholds; and the response."
    )
