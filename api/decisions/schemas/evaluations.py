"""Evaluations as they are asked for and shown."""

from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from api.core.schemas.common import Counts, Paging, Received, View
from api.core.schemas.rules import Parameter, Rule, one_of, text
from api.customers.schemas.attributes import MAX_TEXT
from pipelines.decisions import INDETERMINATE, OUTCOMES
from pipelines.decisions.numbers import LARGEST
from pipelines.intake.masking import mask_text
from pipelines.vocabulary.strict_json import Number
from storage.decisions.policies import MOST_VERSIONS

MOST_GRID = 50  # values on an axis
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


def _version(given: Any) -> int:
    if (
        type(given) is not Number
        or not given.isascii()
        or not given.isdecimal()
        or len(given) > len(str(MOST_VERSIONS))
    ):
        raise ValueError
    if not 1 <= int(given) <= MOST_VERSIONS:
        raise ValueError
    return int(given)


def _optional_version(given: Any) -> int | None:
    return None if given is None else _version(given)


def _axis_values(given: Any) -> list[Any]:
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_GRID:
        raise ValueError
    return given


class SentEvaluation(Received):
    inputs: _Inputs = Field(
        None, description="One value for each input that the policy declares. Decimals as numbers or texts."
    )
    attribute_overrides: _Overrides = Field(
        None,
        description="Attributes as if they were these (null: not set), for a what-if. What is stored stays as it is.",
    )
    version: Annotated[
        int | None,
        Rule(
            _optional_version,
            "DecisionPolicy.InvalidVersion",
            "version is the number of one of the policy's versions.",
            {
                "type": ["integer", "null"],
                "minimum": 1,
                "maximum": MOST_VERSIONS,
                "description": "Version of the policy, the published one by default. By another it is a what-if.",
            },
        ),
    ] = None


class SentAxis(Received):
    """Exactly one of `metric`, `attribute` and `input` names the leaf."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": [name]} for name in ("metric", "attribute", "input")],
        }
    )
    metric: str | None = Field(None, description="Slug.")
    attribute: str | None = Field(None, description="Name.")
    input: str | None = Field(None, description="Name.")
    values: Annotated[
        list[Any],
        Rule(
            _axis_values,
            "DecisionPolicy.InvalidGrid",
            f"values is a list of 1 to {MOST_GRID} decimals.",
            {
                "type": "array",
                "items": {"type": ["number", "string"]},
                "minItems": 1,
                "maxItems": MOST_GRID,
                "description": "Decimals.",
            },
        ),
    ]

    @property
    def leaf(self) -> tuple[str, str] | None:
        """Its sort and its name."""
        given = [(sort, name) for sort in ("metric", "attribute", "input") if (name := getattr(self, sort)) is not None]
        return given[0] if len(given) == 1 else None


class SentGrid(Received):
    across: SentAxis
    down: SentAxis


class SentSensitivity(SentEvaluation):
    grid: SentGrid | None = Field(None, description="Outcomes and limits for all values of two numbers.")


class SentOverride(Received):
    outcome: Annotated[
        str,
        Rule(
            one_of(*OUTCOMES),
            "Evaluation.InvalidOutcome",
            f"outcome is one of {', '.join(OUTCOMES)}.",
            {"enum": list(OUTCOMES), "description": "What was decided instead."},
        ),
    ]
    reason: Annotated[
        str,
        Rule(
            lambda given: mask_text(text(MAX_REASON)(given)),
            "Evaluation.InvalidReason",
            f"reason is text of 1 to {MAX_REASON:,} characters.",
            {"type": "string", "minLength": 1, "maxLength": MAX_REASON},
        ),
    ]
    decided_by: Annotated[
        str,
        Rule(
            lambda given: mask_text(text(MAX_PERSON)(given)),
            "Evaluation.InvalidPerson",
            f"decidedBy is text of 1 to {MAX_PERSON} characters.",
            {"type": "string", "minLength": 1, "maxLength": MAX_PERSON, "description": "Who decided."},
        ),
    ]


class EvaluationPaging(Paging):
    policy: Annotated[
        str | None,
        Parameter(
            text(100),
            "Evaluation.InvalidPolicy",
            "policy is the slug of a decision policy, given once.",
            {"type": "string", "maxLength": 100, "description": "Slug of a policy: only its evaluations."},
        ),
    ] = None


# What is shown

Outcome = Literal["proceed", "conditional", "blocked", "indeterminate"]


class MatchedRuleView(View):
    code: str
    message: str
    customer_message: str = Field(description="As the customer may read it.")
    metric_ids: list[UUID]


class ReasonView(View):
    """Something that keeps the policy from being decided."""

    code: str
    message: str
    metric_ids: list[UUID]
    cause: str
    name: str | None = Field(description="The metric's, attribute's or input's own name.")
    settle: str = Field(description="What would settle it.")


class VerdictView(View):
    outcome: Outcome
    recommended_actions: list[str] = Field(description="Of every matched rule in the deciding step.")
    reasons: list[ReasonView] = Field(description=f"Why the outcome is {INDETERMINATE}; else empty.")
    matched_rules: list[MatchedRuleView] = Field(description="The weightiest first; or the default's reason.")
    principal_reasons: list[str] = Field(description="At most four, worded for the customer.")


class ComputedLimitView(View):
    kind: Literal["computed"]
    product_id: UUID
    amount: float = Field(description="AUD; 0 where nothing is offered.")
    capped: bool
    uncapped_amount: float | None = Field(None, description="Before the ceiling, where one applied.")


class IndeterminateLimitView(View):
    kind: Literal["indeterminate"]
    product_id: UUID
    reasons: list[ReasonView]


class ProductView(View):
    product_id: UUID
    slug: str
    name: str


class IndicatorView(View):
    kind: Literal["reading"]
    metric_id: UUID
    value: float
    format: str


class NamedMetricView(View):
    metric_id: UUID
    name: str


class AttributeReadView(View):
    name: str
    value: Any = Field(description="Null: not available.")
    source: Literal["stored", "overridden"]


class EvaluationView(View):
    verdict: VerdictView
    computed_limits: list[ComputedLimitView | IndeterminateLimitView]
    products: list[ProductView]
    indicators: list[IndicatorView]
    metrics: list[NamedMetricView]
    attributes: list[AttributeReadView]
    evaluation_id: UUID
    policy_version: int
    data_version: int = Field(description="Of the customer's transactions that were looked at.")
    pending_jobs: list[UUID] = Field(description="Jobs that have yet to end and may change these transactions.")
    what_if: bool = Field(description="With overrides, or by a version that didn't decide: nothing that was decided.")


class ChangeView(View):
    value: float
    outcome: Outcome


class SensitivityView(View):
    kind: Literal["metric", "attribute", "input"]
    name: str
    metric_id: UUID | None
    value: float | None = Field(description="Null: unavailable.")
    below: ChangeView | None = Field(
        description="The nearest value below at which the outcome is another. Metrics that count move by ones, sums of "
        "money by cents, others by 0.0001; attributes and inputs by 0.00000001."
    )
    above: ChangeView | None = Field(description="The nearest value above.")
    nearest: ChangeView | None = Field(
        description="The nearer one of both; where there is no value, the first of `changes`."
    )
    changes: list[ChangeView] = Field(
        description="Of a number that is unavailable, what it would have to be: for each other outcome that it can "
        "bring about alone, the value nearest to zero at which it does, the nearest first. Empty: none, as when "
        "others are missing, too. Of a number that has a value: empty."
    )
    complete: bool = Field(
        description="False: the search was given up, and there may be changes all the same. True: what isn't told "
        "isn't there."
    )


class AxisView(View):
    kind: Literal["metric", "attribute", "input"]
    name: str
    values: list[float]


class GridLimitView(View):
    product_id: UUID
    amounts: list[list[float | None]] = Field(description="Null: indeterminate.")


class GridView(View):
    """Rows are the values `down`, columns the values `across`."""

    across: AxisView
    down: AxisView
    outcomes: list[list[Outcome]]
    limits: list[GridLimitView]


class SensitivitiesView(View):
    outcome: Outcome
    policy_version: int
    data_version: int
    sensitivities: list[SensitivityView]
    grid: GridView | None


class EvaluationSummaryView(View):
    evaluation_id: UUID
    customer_id: UUID
    slug: str
    policy_version: int = Field(validation_alias="version")
    at: datetime
    who: str = Field(description="Id of the API key, or the operator.")
    outcome: Outcome
    overridden_outcome: Outcome | None = Field(description="What somebody decided instead, the last one; null: nobody.")
    what_if: bool
    data_version: int
    as_of: date


class EvaluationListView(Counts):
    evaluations: list[EvaluationSummaryView]


class DecisionOverrideView(View):
    """What somebody decided instead."""

    outcome: Outcome
    reason: str
    decided_by: str
    at: datetime
    who: str = Field(description="Id of the API key.")


class RecordedEvaluationView(EvaluationSummaryView):
    shadow_of: UUID | None = Field(description="The evaluation beside which this challenger's was run.")
    shadows: list[UUID] = Field(description="Evaluations by a challenger beside this one.")
    overrides: list[DecisionOverrideView] = Field(description="In their order; the last one holds.")
    sha256: str = Field(description="Of the record's bytes, as they stand in this answer.")
    record: Any = Field(
        description="All that the evaluation read, with causes; policy, metrics, data and engine; the trace: which "
        "rule read which value against which threshold; and the answer."
    )
