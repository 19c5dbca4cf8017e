"""Decision policies as they are sent and shown. `pipelines.decisions.policy` defines the document."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from api.core.schemas.common import DEFAULT_COUNT, MAX_COUNT, Counts, PageParameter, Received, View, add_document_fields
from api.core.schemas.rules import (
    ListItem,
    Parameter,
    Rule,
    flag_parameter,
    number,
    number_rule,
    or_null,
    text,
    whole_parameter,
)
from pipelines.decisions import Node, Plan, Policy, metric_of, plan_policy
from pipelines.metrics import Metric
from pipelines.metrics.definition import Format, Unit
from storage.core.models import PolicyState
from storage.core.paging import Page
from storage.decisions.policies import MAX_VERSIONS, Challenger, PolicyVersion, StoredPolicy

MAX_ACKNOWLEDGED = 1_000
INVALID_VERSION = "DecisionPolicy.InvalidVersion"
_STATES = "draft: not published yet; published: in force; retired: was in force earlier."


class SentAcknowledgement(Received):
    """A warning that the author accepts."""

    code: Annotated[
        str,
        Rule(
            text(100),
            "DecisionPolicy.InvalidAcknowledgement",
            "An acknowledgement must have the code and the pointer of a warning, each as text.",
            {"type": "string", "minLength": 1, "maxLength": 100, "description": "The warning's."},
        ),
    ]
    pointer: Annotated[
        str,
        Rule(
            text(1_000),
            "DecisionPolicy.InvalidAcknowledgement",
            "An acknowledgement must have the code and the pointer of a warning, each as text.",
            {
                "type": "string",
                "minLength": 1,
                "maxLength": 1_000,
                "description": "The warning's place in the document.",
            },
        ),
    ]


def _with_document(schema: dict[str, Any]) -> None:
    add_document_fields(schema, Policy, "See `/v1/decision-policies/schema`.", {"defaultReason": ["object", "null"]})
    schema["properties"]["slug"] = {"type": "string", "description": "Same as in the path; optional."}
    schema["required"] = ["name", "defaultOutcome"]


class SentPolicy(Received):
    """A policy's document, as in the JSON Schema at `/v1/decision-policies/schema`, and the warnings to acknowledge.
    Unknown fields are refused.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="allow",
        frozen=True,
        json_schema_extra=_with_document,
    )

    acknowledge: list[Annotated[SentAcknowledgement, ListItem()]] = Field(
        default=list[SentAcknowledgement](),
        max_length=MAX_ACKNOWLEDGED,
        description="Warnings from an earlier response, by code and pointer.",
    )

    def document(self, slug: str) -> dict[str, Any]:
        return {"slug": slug} | (self.model_extra or {})

    def acknowledged(self) -> set[tuple[str, str]]:
        return {(each.code, each.pointer) for each in self.acknowledge}


class SentPublication(Received):
    version: Annotated[
        int | None,
        Rule(
            or_null(number(1, MAX_VERSIONS)),
            INVALID_VERSION,
            f"version must be a whole number from 1 to {MAX_VERSIONS:,}.",
            {
                "anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_VERSIONS}, {"type": "null"}],
                "description": "The version to publish. Default: the newest.",
            },
        ),
    ] = None


class SentChallenger(Received):
    version: Annotated[int, number_rule("version", INVALID_VERSION, 1, MAX_VERSIONS, "A draft of the policy.")]
    percent: Annotated[
        int,
        number_rule(
            "percent",
            "DecisionPolicy.InvalidPercent",
            1,
            100,
            "Percentage of customers for whom the challenger decides too.",
        ),
    ]


class PolicyPaging(Received):
    """Pages of the policy list. Without a page everything is returned, as page 1."""

    page: PageParameter = None
    page_size: Annotated[
        int,
        whole_parameter(
            "pageSize", "Pagination.InvalidPageSize", 1, MAX_COUNT, f"Policies on a page, at most {MAX_COUNT}."
        ),
    ] = DEFAULT_COUNT
    include_archived: Annotated[
        bool,
        flag_parameter("includeArchived", "DecisionPolicy.InvalidIncludeArchived", "Include archived policies."),
    ] = False
    include_drafts: Annotated[
        bool,
        flag_parameter(
            "includeDrafts",
            "DecisionPolicy.InvalidIncludeDrafts",
            "Include policies that were never published, with their newest version.",
        ),
    ] = False

    def requested_page(self) -> Page | None:
        return None if self.page is None else Page(self.page, self.page_size)


def _version_parameter(name: str, description: str) -> Parameter:
    return whole_parameter(name, INVALID_VERSION, 1, MAX_VERSIONS, description)


class SaveQuery(Received):
    known_version: Annotated[
        int | None,
        whole_parameter(
            "knownVersion",
            "DecisionPolicy.InvalidKnownVersion",
            0,
            MAX_VERSIONS,
            "Save the draft only if this is still the newest version; 0: only if there is no such policy yet. Without "
            "it, the draft may lack what others have changed since the policy was read.",
        ),
    ] = None


class VersionQuery(Received):
    version: Annotated[
        int | None,
        _version_parameter("version", "The version to read: it may be a draft or retired. Default: the published one."),
    ] = None


class DiffQuery(Received):
    from_: Annotated[int | None, _version_parameter("from", "The earlier version. Default: the published one.")] = (
        Field(default=None, alias="from")
    )
    to: Annotated[int | None, _version_parameter("to", "The later version. Default: the newest.")] = None


class FindingView(View):
    pointer: str = Field(description="JSON Pointer into the document.")
    code: str = Field(description="Stable: programs should branch on this.")
    message: str = Field(description="What is wrong or likely to be, for people.")


class ChallengerView(View):
    version: int = Field(description="The draft that decides beside the published version, without effect.")
    percent: int = Field(description="Percentage of customers for whom the challenger decides too.")


class DeclaredView(View):
    name: str
    kind: Literal["string", "decimal", "boolean"] = Field(
        description="string is text, decimal is a number, boolean is true or false."
    )
    meaning: str = Field(description="In the author's words.")
    personal: bool = Field(description="Whether it is about a person rather than the business.")
    format: Format | None = Field(
        description="How people read and type a number: as percent, 0.12 is 12 %. Null: as it is."
    )
    texts: list[str] = Field(description="Texts that the policy compares it with.")


class UsedMetricView(View):
    metric_id: UUID
    slug: str = Field(description="Names the metric in the policy's document.")
    name: str = Field(description="For people.")
    meaning: str = Field(description="What it measures, in words.")
    unit: Unit = Field(description="Unit of a reading.")
    format: Format = Field(description="How people read a value: as percent, 0.12 is 12 %.")
    is_own: bool = Field(description="Whether the policy itself defines it, rather than the registry.")


class ProductView(View):
    product_id: UUID
    slug: str = Field(description="Names the product in the policy's document.")
    name: str


class PolicyView(View):
    """A policy and the content of one version."""

    policy_id: UUID
    name: str = Field(description="For people.")
    slug: str = Field(description="Names the policy in paths.")
    notes: str = Field(description="The author's notes. They have no effect.")
    declared_inputs: list[DeclaredView] = Field(description="Inputs that every evaluation must supply.")
    default_outcome: str = Field(description="Outcome if no step matches.")
    is_archived: bool = Field(description="An archived policy decides nothing until it is unarchived.")
    version: int = Field(description="Number of the version whose content this is.")
    state: PolicyState = Field(description=_STATES)
    challenger: ChallengerView | None = Field(description="Null if no draft is one.")
    attributes: list[DeclaredView] = Field(description="Stored attributes of the customer that the policy may read.")
    metrics: list[UsedMetricView] = Field(description="Metrics that the policy reads or shows.")
    products: list[ProductView] = Field(description="Products that the document declares.")
    steps: list[Any] = Field(description="In order; the first step that matches decides.")
    limits: list[Any] = Field(description="How the limit of each product is computed.")
    indicators: list[Any] = Field(description="Metrics whose readings are shown with the verdict.")


class PolicyListView(View):
    items: list[PolicyView] = Field(description="In order of their slugs.")
    page: int = Field(description="From 1; 1 if no page was requested.")
    page_size: int = Field(description="Without a page, the number of items returned.")
    total_count: int = Field(description="Items on all pages.")


class VersionView(View):
    """The history of a version: when and by whom it was saved and published, and when it was retired."""

    version: int = Field(description="From 1; each saved document that differs from the last adds one.")
    state: PolicyState = Field(description=_STATES)
    fingerprint: str = Field(description="SHA-256 of the document's canonical JSON.")
    acknowledged: list[FindingView] = Field(description="Warnings that the author accepted.")
    date_created: datetime = Field(validation_alias="created_at", description="When the document was saved.")
    created_by: str = Field(description="Id of the user or the API key.")
    date_published: datetime | None = Field(
        validation_alias="published_at", description="Null if it was never published."
    )
    published_by: str | None = Field(description="Id of the user or the API key; null if it was never published.")
    date_retired: datetime | None = Field(
        validation_alias="retired_at", description="When another version was published instead; null if none was."
    )


class VersionListView(Counts):
    versions: list[VersionView] = Field(description="Newest first.")


class PolicyVersionView(PolicyView, VersionView):
    """A complete version. `document` is what to edit and save again."""

    document: Any = Field(description="What to edit and save again.")


class CheckedPolicyView(View):
    faults: list[FindingView] = Field(description="All that must be corrected before the document can be saved.")
    warnings: list[FindingView] = Field(description="What must be acknowledged to save it; empty if there are faults.")


class SavedPolicyView(PolicyVersionView):
    warnings: list[FindingView] = Field(description="All warnings of the version, each acknowledged.")


class PolicyStateView(View):
    policy_id: UUID
    slug: str = Field(description="Names the policy in paths.")
    is_archived: bool = Field(description="An archived policy decides nothing until it is unarchived.")
    challenger: ChallengerView | None = Field(description="Null if no draft is one.")


class PolicyDiffView(View):
    from_: int = Field(serialization_alias="from", description="Number of the earlier version.")
    to: int = Field(description="Number of the later version.")
    changes: list[str] = Field(description="In words; empty if the versions do not differ.")


class PolicySchemaView(View):
    schema_: Any = Field(serialization_alias="schema", description="JSON Schema of a policy's document.")


def describe_policy(stored: StoredPolicy, version: PolicyVersion) -> dict[str, Any]:
    """Return a policy with the content of a version, in the contract's fields."""
    document: dict[str, Any] = json.loads(version.document)
    plan = plan_policy(version.policy)
    return {
        "policyId": stored.policy_id,
        **{name: document[name] for name in ("name", "slug", "notes", "defaultOutcome")},
        "declaredInputs": list(_describe_declared(plan, "input", document["declaredInputs"])),
        "isArchived": stored.is_archived,
        "version": version.version,
        "state": version.state,
        "challenger": _describe_challenger(stored.challenger),
        "attributes": list(_describe_declared(plan, "attribute", document["attributes"])),
        "metrics": [_describe_metric(plan.policy, metric) for metric in _metrics(plan)],
        "products": [{"productId": each.id, "slug": each.slug, "name": each.name} for each in plan.policy.products],
        **{name: document[name] for name in ("steps", "limits", "indicators")},
    }


def describe_version(stored: StoredPolicy, version: PolicyVersion) -> dict[str, Any]:
    """Return a policy with a version's content, history and document."""
    history = VersionView.of(version).model_dump(by_alias=True)
    return {**describe_policy(stored, version), **history, "document": json.loads(version.document)}


def _describe_challenger(challenger: Challenger | None) -> dict[str, int] | None:
    return None if challenger is None else vars(challenger)


def _describe_declared(plan: Plan, operator: str, declared: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the declared inputs or attributes, each with the texts that the policy compares it with."""
    memberships = [each for each in plan.nodes.values() if each.operator == "one_of"]
    for each in declared:
        texts = (node.subject for node in memberships if _is_leaf(plan.nodes[node.operands[0]], operator, each["name"]))
        yield {**each, "texts": list(dict.fromkeys(chain.from_iterable(texts)))}


def _is_leaf(node: Node, operator: str, name: str) -> bool:
    return node.operator == operator and node.label == name


def _metrics(plan: Plan) -> Iterator[Metric]:
    """Yield the metrics that the policy reads, then those it only shows."""
    shown_too = [indicator.metric for indicator in plan.policy.indicators]
    for slug in dict.fromkeys([*plan.labels("metric"), *shown_too]):
        yield metric_of(plan.policy, slug)


def _describe_metric(policy: Policy, metric: Metric) -> dict[str, Any]:
    return {
        "metricId": policy.metric_id(metric),
        **{name: getattr(metric, name) for name in ("slug", "name", "meaning", "unit", "format")},
        "isOwn": any(metric.slug == each.slug for each in policy.metrics),
    }
