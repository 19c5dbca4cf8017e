"""Decision policies as they are sent and shown. What a document may say, `pipelines.decisions.policy` has."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from api.core.schemas.common import DEFAULT_COUNT, MAX_COUNT, Counts, PageParameter, Received, View
from api.core.schemas.rules import OneOfMany, Parameter, Rule, one_of, text, whole
from api.metrics.schemas import EXAMPLE_METRIC
from pipelines.decisions import Plan, Policy, metric_of, planned
from pipelines.metrics import Metric
from pipelines.vocabulary.strict_json import Number
from storage.core.models import PolicyState
from storage.core.paging import Page
from storage.decisions.policies import MOST_VERSIONS, Challenger, PolicyVersion, StoredPolicy

MOST_ACKNOWLEDGED = 1_000
EXAMPLE_SLUG = "overdraft-review"
EXAMPLE_PRODUCT: dict[str, Any] = {"slug": "overdraft", "name": "Overdraft"}
EXAMPLE_INPUT: dict[str, Any] = {
    "name": "requestedAmount",
    "kind": "decimal",
    "meaning": "What the applicant asks for, in AUD.",
    "personal": False,
}
EXAMPLE_STEPS: list[dict[str, Any]] = [
    {
        "name": "Knock-outs",
        "outcome": "blocked",
        "match": "any",
        "rules": [
            {
                "code": "DEBT_SERVICE",
                "message": "More than 35 % of revenue goes into the service of debt.",
                "customerMessage": "Repayments take up a large part of your revenue already.",
                "condition": {"moreThan": [{"metric": EXAMPLE_METRIC["slug"]}, "0.35"]},
                "recommendedActions": [],
                "onUnavailable": "indeterminate",
                "rank": 100,
            }
        ],
    }
]
EXAMPLE_LIMITS: list[dict[str, Any]] = [
    {
        "product": "overdraft",
        "outcomes": ["proceed"],
        "amount": {"min": [{"input": "requestedAmount"}, "20000"]},
        "caps": [],
        "roundDownTo": "100",
        "minimum": "1000",
    }
]
EXAMPLE_INDICATORS: list[dict[str, Any]] = [{"metric": EXAMPLE_METRIC["slug"], "format": "percent"}]
EXAMPLE_DOCUMENT: dict[str, Any] = {
    "name": "Overdraft review",
    "notes": "Whether an overdraft is prolonged.",
    "defaultOutcome": "proceed",
    "declaredInputs": [EXAMPLE_INPUT],
    "products": [EXAMPLE_PRODUCT],
    "steps": EXAMPLE_STEPS,
    "limits": EXAMPLE_LIMITS,
    "indicators": EXAMPLE_INDICATORS,
}
EXAMPLE_ID = "5b0d7c86-0a3e-4b64-8a1c-3f1e2d4c5b6a"
EXAMPLE_PUT_PRODUCT = {"productId": "9f3c2b1a-7d6e-5f4a-8b3c-2d1e0f9a8b7c", **EXAMPLE_PRODUCT}
EXAMPLE_METRIC_USED: dict[str, Any] = {
    **{name: EXAMPLE_METRIC[name] for name in ("metricId", "slug", "name", "meaning", "unit", "format")},
    "isOwn": False,
}
EXAMPLE_POLICY: dict[str, Any] = {
    "policyId": EXAMPLE_ID,
    "name": EXAMPLE_DOCUMENT["name"],
    "slug": EXAMPLE_SLUG,
    "notes": EXAMPLE_DOCUMENT["notes"],
    "declaredInputs": [EXAMPLE_INPUT],
    "defaultOutcome": "proceed",
    "isArchived": False,
    "version": 3,
    "challenger": {"version": 4, "percent": 10},
    "attributes": [],
    "metrics": [EXAMPLE_METRIC_USED],
    "products": [EXAMPLE_PUT_PRODUCT],
    "steps": EXAMPLE_STEPS,
    "limits": EXAMPLE_LIMITS,
    "indicators": EXAMPLE_INDICATORS,
}
EXAMPLE_WARNING: dict[str, Any] = {
    "pointer": "/limits/0/caps/0/onUnavailable",
    "code": "DecisionPolicy.LenientCap",
    "message": "The cap counts for nothing while it is unknown: less data, a higher limit.",
}
EXAMPLE_VERSION: dict[str, Any] = {
    "version": 3,
    "state": "published",
    "fingerprint": "b1946ac92492d2347c6235b4d2611184b1946ac92492d2347c6235b4d2611184",
    "acknowledged": [EXAMPLE_WARNING],
    "dateCreated": "2026-07-01T02:15:00Z",
    "createdBy": "7d1e2a3b-59c4-4f6e-8a0b-1c2d3e4f5a6b",
    "datePublished": "2026-07-02T00:30:00Z",
    "publishedBy": "7d1e2a3b-59c4-4f6e-8a0b-1c2d3e4f5a6b",
    "dateRetired": None,
}
INVALID_VERSION = "DecisionPolicy.InvalidVersion"


class SentAcknowledgement(Received):
    """A warning that the author accepts."""

    code: Annotated[
        str,
        Rule(
            text(100),
            "DecisionPolicy.InvalidAcknowledgement",
            "An acknowledgement has the code and the pointer of a warning, each as text.",
            {"type": "string", "minLength": 1, "maxLength": 100},
        ),
    ]
    pointer: Annotated[
        str,
        Rule(
            text(1_000),
            "DecisionPolicy.InvalidAcknowledgement",
            "An acknowledgement has the code and the pointer of a warning, each as text.",
            {"type": "string", "minLength": 1, "maxLength": 1_000},
        ),
    ]


_KINDS = {"defaultReason": "object"}


def _with_document(schema: dict[str, Any]) -> None:
    """The document's fields, told from outside: what stands in them is in a schema of its own."""
    for name, field in Policy.model_fields.items():
        alias = field.alias or name
        kind = _KINDS.get(alias) or ("string" if isinstance(EXAMPLE_DOCUMENT.get(alias, []), str) else "array")
        schema["properties"][alias] = {"type": kind, "description": "See `/v1/decision-policies/schema`."}
    schema["properties"]["slug"] = {"type": "string", "description": "The path's; it may be left out."}
    schema["required"] = ["name", "defaultOutcome"]
    schema["additionalProperties"] = False


class SentPolicy(Received):
    """A policy's document, as the JSON Schema at `/v1/decision-policies/schema` has it, and warnings to acknowledge.
    Unknown fields are refused.
    """

    EXAMPLE: ClassVar = EXAMPLE_DOCUMENT
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="allow",
        frozen=True,
        json_schema_extra=_with_document,
    )

    acknowledge: list[Annotated[SentAcknowledgement, OneOfMany()]] = Field(
        default=list[SentAcknowledgement](),
        max_length=MOST_ACKNOWLEDGED,
        description="Warnings that an earlier answer named, by code and pointer.",
    )

    def document(self, slug: str) -> dict[str, Any]:
        return {"slug": slug} | (self.model_extra or {})

    def acknowledged(self) -> set[tuple[str, str]]:
        return {(each.code, each.pointer) for each in self.acknowledge}


def _version_rule(says: str, description: str) -> Rule:
    return Rule(
        _number(MOST_VERSIONS),
        INVALID_VERSION,
        says,
        {"type": "integer", "minimum": 1, "maximum": MOST_VERSIONS, "description": description},
    )


def _number(highest: int) -> Any:
    """A JSON number that is whole, from 1."""
    parse = whole(1, highest)

    def read(given: Any) -> int:
        if not isinstance(given, Number):
            raise ValueError
        return parse(given)

    return read


class SentPublication(Received):
    EXAMPLE: ClassVar = {"version": 2}

    version: Annotated[
        int | None,
        Rule(
            lambda given: None if given is None else _number(MOST_VERSIONS)(given),
            INVALID_VERSION,
            f"version is a whole number from 1 to {MOST_VERSIONS:,}.",
            {
                "anyOf": [{"type": "integer", "minimum": 1, "maximum": MOST_VERSIONS}, {"type": "null"}],
                "description": "Null or left out: the newest.",
            },
        ),
    ] = None


class SentChallenger(Received):
    EXAMPLE: ClassVar = {"version": 2, "percent": 10}

    version: Annotated[
        int, _version_rule(f"version is a whole number from 1 to {MOST_VERSIONS:,}.", "A draft of the policy.")
    ]
    percent: Annotated[
        int,
        Rule(
            _number(100),
            "DecisionPolicy.InvalidPercent",
            "percent is a whole number from 1 to 100.",
            {"type": "integer", "minimum": 1, "maximum": 100, "description": "Share of the evaluations."},
        ),
    ]


class PolicyPaging(Received):
    """The policy list's own: without a page everything is returned, as page 1."""

    page: PageParameter = None
    page_size: Annotated[
        int,
        Parameter(
            whole(1, MAX_COUNT),
            "Pagination.InvalidPageSize",
            f"pageSize must be a whole number from 1 to {MAX_COUNT:,}, given once.",
            {"type": "integer", "minimum": 1, "maximum": MAX_COUNT, "description": "Policies on a page."},
        ),
    ] = DEFAULT_COUNT
    include_archived: Annotated[
        bool,
        Parameter(
            lambda given: one_of("true", "false")(given) == "true",
            "DecisionPolicy.InvalidIncludeArchived",
            "includeArchived must be true or false, given once.",
            {"type": "boolean", "description": "Archived policies, too."},
        ),
    ] = False

    def asked(self) -> Page | None:
        return None if self.page is None else Page(self.page, self.page_size)


def _version_parameter(name: str, description: str) -> Parameter:
    return Parameter(
        whole(1, MOST_VERSIONS),
        INVALID_VERSION,
        f"{name} must be a whole number from 1 to {MOST_VERSIONS:,}, given once.",
        {"type": "integer", "minimum": 1, "maximum": MOST_VERSIONS, "description": description},
    )


class WhichVersion(Received):
    version: Annotated[
        int | None, _version_parameter("version", "A draft or a retired one, too. Left out: the published one.")
    ] = None


class WhichTwo(Received):
    from_: Annotated[int | None, _version_parameter("from", "Left out: the published one.")] = Field(
        default=None, alias="from"
    )
    to: Annotated[int | None, _version_parameter("to", "Left out: the newest.")] = None


class FindingView(View):
    pointer: str = Field(description="Where in the document, as a JSON pointer.")
    code: str
    message: str


class ChallengerView(View):
    version: int
    percent: int = Field(description="Share of the evaluations on which it is shadow-run.")


class DeclaredView(View):
    name: str
    kind: Literal["string", "decimal", "boolean"]
    meaning: str
    personal: bool = Field(description="About a person rather than the business.")


class UsedMetricView(View):
    metric_id: UUID
    slug: str
    name: str
    meaning: str
    unit: str
    format: str
    is_own: bool = Field(description="Defined by the policy itself, not by the registry.")


class ProductView(View):
    product_id: UUID
    slug: str
    name: str


class PolicyView(View):
    """A policy with what its version says."""

    EXAMPLE: ClassVar = EXAMPLE_POLICY

    policy_id: UUID
    name: str
    slug: str
    notes: str
    declared_inputs: list[DeclaredView] = Field(description="Each must be supplied on evaluation.")
    default_outcome: str = Field(description="Where no step matches.")
    is_archived: bool
    version: int
    challenger: ChallengerView | None
    attributes: list[DeclaredView] = Field(description="What it may read of the customer's stored attributes.")
    metrics: list[UsedMetricView] = Field(description="What it reads or shows.")
    products: list[ProductView]
    steps: list[Any] = Field(description="In order: the first that matches decides.")
    limits: list[Any]
    indicators: list[Any]


class PolicyListView(View):
    EXAMPLE: ClassVar = {"items": [EXAMPLE_POLICY], "page": 1, "pageSize": 1, "totalCount": 1}

    items: list[PolicyView]
    page: int
    page_size: int
    total_count: int


class VersionView(View):
    """When a version was made, held and was replaced, and by whom."""

    EXAMPLE: ClassVar = EXAMPLE_VERSION

    version: int
    state: PolicyState
    fingerprint: str = Field(description="SHA-256 of the document's canonical JSON.")
    acknowledged: list[FindingView] = Field(description="Warnings that the author accepted.")
    date_created: datetime = Field(validation_alias="created_at")
    created_by: str
    date_published: datetime | None = Field(validation_alias="published_at")
    published_by: str | None
    date_retired: datetime | None = Field(validation_alias="retired_at")


class VersionListView(Counts):
    EXAMPLE: ClassVar = {"versions": [EXAMPLE_VERSION], **Counts.EXAMPLE}

    versions: list[VersionView]


class PolicyVersionView(PolicyView, VersionView):
    """A version whole: `document` is what to change and save again."""

    EXAMPLE: ClassVar[Mapping[str, Any]] = {
        **EXAMPLE_POLICY,
        **EXAMPLE_VERSION,
        "document": {"slug": EXAMPLE_SLUG, "attributes": [], "metrics": [], **EXAMPLE_DOCUMENT},
    }

    document: Any


class SavedPolicyView(PolicyVersionView):
    EXAMPLE: ClassVar = {
        **PolicyVersionView.EXAMPLE,
        "state": "draft",
        "datePublished": None,
        "publishedBy": None,
        "warnings": [EXAMPLE_WARNING],
    }

    warnings: list[FindingView] = Field(description="All of the version's, each acknowledged.")


class PolicyStateView(View):
    EXAMPLE: ClassVar = {name: EXAMPLE_POLICY[name] for name in ("policyId", "slug", "isArchived", "challenger")}

    policy_id: UUID
    slug: str
    is_archived: bool
    challenger: ChallengerView | None


class PolicyDiffView(View):
    EXAMPLE: ClassVar = {
        "from": 3,
        "to": 4,
        "changes": ["Step “Knock-outs”, rule DEBT_SERVICE: more than 0.4 instead of 0.35."],
    }

    from_: int = Field(serialization_alias="from")
    to: int
    changes: list[str] = Field(description="In words; empty where both say the same.")


class PolicySchemaView(View):
    EXAMPLE: ClassVar = {"schema": {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}}

    schema_: Any = Field(serialization_alias="schema", description="JSON Schema of a policy's document.")


def shown(stored: StoredPolicy, version: PolicyVersion) -> dict[str, Any]:
    """The contract's policy, with what a version says."""
    document: dict[str, Any] = json.loads(version.document)
    plan = planned(version.policy)
    return {
        "policyId": stored.policy_id,
        **{name: document[name] for name in ("name", "slug", "notes", "declaredInputs", "defaultOutcome")},
        "isArchived": stored.is_archived,
        "version": version.version,
        "challenger": _challenger(stored.challenger),
        "attributes": document["attributes"],
        "metrics": [_used(plan.policy, metric) for metric in _metrics(plan)],
        "products": [{"productId": each.id, "slug": each.slug, "name": each.name} for each in plan.policy.products],
        **{name: document[name] for name in ("steps", "limits", "indicators")},
    }


def shown_whole(stored: StoredPolicy, version: PolicyVersion) -> dict[str, Any]:
    """The same with the version's own story and its document."""
    story = VersionView.of(version).model_dump(by_alias=True)
    return {**shown(stored, version), **story, "document": json.loads(version.document)}


def _challenger(challenger: Challenger | None) -> dict[str, int] | None:
    return None if challenger is None else vars(challenger)


def _metrics(plan: Plan) -> Iterator[Metric]:
    """What the policy reads, then what it shows, each once."""
    shown_too = [indicator.metric for indicator in plan.policy.indicators]
    for slug in dict.fromkeys([*plan.labels("metric"), *shown_too]):
        yield metric_of(plan.policy, slug)


def _used(policy: Policy, metric: Metric) -> dict[str, Any]:
    return {
        "metricId": policy.metric_id(metric),
        **{name: getattr(metric, name) for name in ("slug", "name", "meaning", "unit", "format")},
        "isOwn": any(metric.slug == each.slug for each in policy.metrics),
    }
