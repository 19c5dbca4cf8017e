"""A decision policy as a document: which rules decide, which limits are offered, and what they read.

It is data, not a program: numbers and conditions are objects of one key, and no text in it is ever evaluated as code.
Decimals are written as text, so that no digit is lost. Unknown fields are refused.

    steps:
      - name: Knock-outs
        outcome: blocked
        match: any
        rules:
          - code: DISHONOURS
            message: Three or more dishonours in 180 days.
            customerMessage: Payments from your account were returned unpaid.
            condition: {atLeast: [{metric: dishonours_180d}, "3"]}

`docs/how-to/policies.md` explains the parts; `check` finds faults that a schema can't; `plan` prepares it for
evaluation.

The docstrings of these models are the descriptions in `docs/reference/policy.schema.json`, which authors see in their
editors.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, Self, TypeAlias
from uuid import UUID, uuid5

from pydantic import Discriminator, Field, Tag, model_validator

from pipelines.metrics.definition import NAMESPACE, Format, Metric, Slug, Strict

CONSTANT = r"-?[0-9]{1,15}(\.[0-9]{1,8})?"
CENTS = r"[0-9]{1,15}(\.[0-9]{1,2})?"
SOME_CENTS = r"([1-9][0-9]{0,14}(\.[0-9]{1,2})?|0\.(0[1-9]|[1-9][0-9]?))"  # at least one cent
NAME = r"[A-Za-z][A-Za-z0-9_.-]{0,63}"  # of an attribute or an input
POLICY_SLUG = r"[a-z0-9][a-z0-9-]{0,62}"
RESERVED_SLUGS = ("schema",)  # `/decision-policies/schema` is a route of its own
MAX_OPERANDS = 20  # our judgement, as all lengths below

Kind = Literal["string", "decimal", "boolean"]
Outcome = Literal["proceed", "conditional", "blocked"]
INDETERMINATE = "indeterminate"
OUTCOMES: tuple[Outcome, ...] = ("proceed", "conditional", "blocked")

Name: TypeAlias = Annotated[str, Field(pattern=f"^{NAME}$")]
Title: TypeAlias = Annotated[str, Field(min_length=1, max_length=100)]
Sentence: TypeAlias = Annotated[str, Field(min_length=1, max_length=500)]
Code: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")]
Constant: TypeAlias = Annotated[str, Field(pattern=f"^{CONSTANT}$")]
Cents: TypeAlias = Annotated[str, Field(pattern=f"^{CENTS}$")]
SomeCents: TypeAlias = Annotated[str, Field(pattern=f"^{SOME_CENTS}$")]


# References


class MetricRef(Strict):
    metric: Slug


class AttributeRef(Strict):
    attribute: Name


class InputRef(Strict):
    input: Name


Reference: TypeAlias = MetricRef | AttributeRef | InputRef


class Operation(Strict):
    """An object of one key: the operator. Its value holds the operands."""

    @property
    def operator(self) -> str:
        return next(iter(type(self).model_fields))

    @property
    def operands(self) -> Any:
        return getattr(self, self.operator)


CONSTANT_FORM = "a decimal as text"  # can't be mistaken for a key


def _form(given: object) -> str:
    """Return which form an object has: the name of its one key."""
    if isinstance(given, Strict):
        field = type(given).model_fields
        name = next(iter(field))
        return field[name].alias or name
    if isinstance(given, dict):
        return str(next(iter(given))) if len(given) == 1 else "an object of one key"
    return CONSTANT_FORM


# Numbers: exact decimals of eight places, see `numbers`


class Add(Operation):
    add: "Operands"


class Subtract(Operation):
    """The first number, less each of the others."""

    subtract: "Operands"


class Multiply(Operation):
    multiply: "Operands"


class Divide(Operation):
    divide: "TwoNumbers"


class Min(Operation):
    """The least number; unknown while any of them is unknown."""

    min: "Operands"


class Max(Operation):
    max: "Operands"


class Band(Strict):
    below: Constant
    value: "Number"


class Tiered(Strict):
    """The value of the first band whose bound is above `of`, else `otherwise`. Bounds must increase."""

    of: "Number"
    bands: Annotated[tuple[Band, ...], Field(min_length=1, max_length=MAX_OPERANDS)]
    otherwise: "Number"


class Tiers(Strict):
    tiers: Tiered


Number: TypeAlias = Annotated[
    Annotated[Constant, Tag(CONSTANT_FORM)]
    | Annotated[MetricRef, Tag("metric")]
    | Annotated[AttributeRef, Tag("attribute")]
    | Annotated[InputRef, Tag("input")]
    | Annotated[Add, Tag("add")]
    | Annotated[Subtract, Tag("subtract")]
    | Annotated[Multiply, Tag("multiply")]
    | Annotated[Divide, Tag("divide")]
    | Annotated[Min, Tag("min")]
    | Annotated[Max, Tag("max")]
    | Annotated[Tiers, Tag("tiers")],
    Discriminator(_form),
]
Operands: TypeAlias = Annotated[tuple[Number, ...], Field(min_length=2, max_length=MAX_OPERANDS)]
TwoNumbers: TypeAlias = tuple[Number, Number]


# Conditions: true, false or unknown


class AtLeast(Operation):
    at_least: TwoNumbers


class AtMost(Operation):
    at_most: TwoNumbers


class MoreThan(Operation):
    more_than: TwoNumbers


class LessThan(Operation):
    less_than: TwoNumbers


class Equals(Operation):
    equals: TwoNumbers


class Differs(Operation):
    differs: TwoNumbers


class Between(Operation):
    """The first number lies between the second and the third, both included."""

    between: tuple[Number, Number, Number]


TextRef: TypeAlias = Annotated[
    Annotated[AttributeRef, Tag("attribute")] | Annotated[InputRef, Tag("input")], Discriminator(_form)
]
AnyRef: TypeAlias = Annotated[
    Annotated[MetricRef, Tag("metric")] | Annotated[AttributeRef, Tag("attribute")] | Annotated[InputRef, Tag("input")],
    Discriminator(_form),
]


class Membership(Strict):
    of: TextRef
    texts: Annotated[tuple[Annotated[str, Field(max_length=1_000)], ...], Field(min_length=1, max_length=200)]


class OneOf(Strict):
    """A text equals one of those listed exactly."""

    one_of: Membership


class IsTrue(Strict):
    is_true: TextRef


class IsKnown(Strict):
    """Whether a reference has a value. This condition itself is never unknown."""

    is_known: AnyRef


class AllOf(Operation):
    all: "Conditions"


class AnyOf(Operation):
    any: "Conditions"


class Not(Strict):
    not_: Annotated["Condition", Field(alias="not")]


Condition: TypeAlias = Annotated[
    Annotated[AtLeast, Tag("atLeast")]
    | Annotated[AtMost, Tag("atMost")]
    | Annotated[MoreThan, Tag("moreThan")]
    | Annotated[LessThan, Tag("lessThan")]
    | Annotated[Equals, Tag("equals")]
    | Annotated[Differs, Tag("differs")]
    | Annotated[Between, Tag("between")]
    | Annotated[OneOf, Tag("oneOf")]
    | Annotated[IsTrue, Tag("isTrue")]
    | Annotated[IsKnown, Tag("isKnown")]
    | Annotated[AllOf, Tag("all")]
    | Annotated[AnyOf, Tag("any")]
    | Annotated[Not, Tag("not")],
    Discriminator(_form),
]
Conditions: TypeAlias = Annotated[tuple[Condition, ...], Field(min_length=1, max_length=50)]


# The policy


class Declared(Strict):
    """A value from outside. `format`: how people read and type a number; the value itself stays as it is, so that 12 %
    is 0.12.
    """

    name: Name
    kind: Kind
    meaning: Annotated[str, Field(max_length=500)] = ""
    personal: bool = False  # about a person rather than the business
    format: Format | None = None

    @model_validator(mode="after")
    def _formats_a_number(self) -> Self:
        if self.format is not None and self.kind != "decimal":
            raise ValueError("only a number has a `format`: its `kind` is decimal")
        return self


class DeclaredInput(Declared):
    """A value that each evaluation request must supply."""


class DeclaredAttribute(Declared):
    """A stored fact about the customer. A stored value of another kind counts as unavailable."""


class Reason(Strict):
    """The reason for an outcome, for the lender's staff and for the customer."""

    code: Code
    message: Sentence
    customer_message: Sentence
    recommended_actions: Annotated[tuple[Sentence, ...], Field(max_length=20)] = ()


class Rule(Reason):
    """A condition, and the reason it gives. `onUnavailable`: what an unknown condition counts as.

    `customerMessage`: the reason as the customer may read it. A step's rules are ranked by `rank` (1 weighs most), then
    by their order.
    """

    condition: Condition
    on_unavailable: Literal["indeterminate", "matched", "notMatched"] = "indeterminate"
    rank: Annotated[int, Field(ge=1, le=100)] = 100

    @property
    def when_unknown(self) -> bool | None:
        """What an unknown condition counts as. None: it stays unknown."""
        return {"matched": True, "notMatched": False, "indeterminate": None}[self.on_unavailable]


class Step(Strict):
    name: Title
    outcome: Outcome
    match: Literal["any", "all"] = "any"
    rules: Annotated[tuple[Rule, ...], Field(min_length=1, max_length=100)]


class Product(Strict):
    slug: Slug
    name: Title

    @property
    def id(self) -> UUID:
        return uuid5(NAMESPACE, f"product/{self.slug}")


class Cap(Strict):
    """An upper bound of a limit. `ignore`: an unknown cap is left out, which is lenient and gives a warning."""

    code: Code
    message: Sentence
    value: Number
    on_unavailable: Literal["indeterminate", "ignore"] = "indeterminate"


class Limit(Strict):
    """How much of a product is offered, in AUD: `amount`, but at least zero and at most the lowest cap, rounded down to
    a multiple of `roundDownTo`; 0 if that is less than `minimum`, or if the outcome is not in `outcomes`.
    """

    product: Slug
    outcomes: Annotated[tuple[Outcome, ...], Field(min_length=1, max_length=3)] = ("proceed", "conditional")
    amount: Number
    caps: Annotated[tuple[Cap, ...], Field(max_length=20)] = ()
    round_down_to: SomeCents = "0.01"
    minimum: Cents = "0"


class Indicator(Strict):
    """A metric's value that is published with the verdict. `format`: if left out, the metric's own."""

    metric: Slug
    format: Format | None = None


class Policy(Strict):
    slug: Annotated[str, Field(pattern=f"^{POLICY_SLUG}$")]
    name: Title
    notes: Annotated[str, Field(max_length=5_000)] = ""
    default_outcome: Outcome
    default_reason: Reason | None = None  # given when no step matches; required unless the default is `proceed`
    declared_inputs: Annotated[tuple[DeclaredInput, ...], Field(max_length=50)] = ()
    attributes: Annotated[tuple[DeclaredAttribute, ...], Field(max_length=100)] = ()
    metrics: Annotated[tuple[Metric, ...], Field(max_length=100)] = ()
    products: Annotated[tuple[Product, ...], Field(max_length=20)] = ()
    steps: Annotated[tuple[Step, ...], Field(max_length=50)] = ()
    limits: Annotated[tuple[Limit, ...], Field(max_length=20)] = ()
    indicators: Annotated[tuple[Indicator, ...], Field(max_length=50)] = ()

    def metric_id(self, metric: Metric) -> UUID:
        """Return the registry's id of a metric, or for the policy's own metric an id unique to this policy."""
        return self.own_metric_ids.get(metric.slug) or metric.id

    @cached_property
    def own_metric_ids(self) -> Mapping[str, UUID]:
        """The ids of the policy's own metrics, by slug."""
        return {each.slug: uuid5(NAMESPACE, f"{self.slug}/{each.slug}") for each in self.metrics}


def kinds_by_name(declared: Sequence[Declared]) -> dict[str, Kind]:
    return {each.name: each.kind for each in declared}


for _recursive in (Add, Subtract, Multiply, Divide, Min, Max, Band, Tiered, Tiers, AllOf, AnyOf, Not, Rule, Cap, Limit):
    _recursive.model_rebuild()
