"""Rulesets and matches of monitoring as they are sent and shown. What a document says: `pipelines.monitoring`."""

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

import msgspec
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from api.core.schemas.common import Counts, Paging, Received, View
from api.core.schemas.rules import Parameter, identifier, moment, one_of
from api.decisions.schemas.policies import FindingView
from api.metrics.schemas import EXAMPLE_METRIC
from api.webhooks.schemas import EXAMPLE_CUSTOMER, EXAMPLE_TRIGGERED
from pipelines.monitoring import Ruleset
from pipelines.monitoring.library import LibraryRuleset
from pipelines.monitoring.ruleset import MOST_CUSTOMERS, Severity
from storage.monitoring.rule_matches import Cause, Count, Match
from storage.monitoring.rulesets import RulesetVersion, StoredRuleset

COUNTED_DAYS = 30
EXAMPLE_RULES: list[dict[str, Any]] = [
    {
        "code": "DEBT_SERVICE",
        "message": "More than 35 % of revenue goes into the service of debt.",
        "severity": "critical",
        "condition": {"moreThan": [{"metric": EXAMPLE_METRIC["slug"]}, "0.35"]},
        "rearmAfterDays": None,
        "recommendedActions": ["Ask which lenders came since."],
    },
    {
        "code": "REVENUE_DOWN",
        "message": "Revenue of the last 90 days is 30 % below that of the loan's start.",
        "severity": "warning",
        "condition": {
            "lessThan": [{"metric": "revenue_90d"}, {"multiply": [{"metric": "revenue_90d_at_start"}, "0.7"]}]
        },
        "rearmAfterDays": 90,
        "recommendedActions": [],
    },
]
EXAMPLE_DOCUMENT: dict[str, Any] = {
    "slug": "after-the-loan",
    "name": "After the loan",
    "notes": "What changed since the loan was written.",
    "active": True,
    "appliesTo": {"customers": [EXAMPLE_CUSTOMER]},
    "mutedWhile": {"isTrue": {"attribute": "hardship_flag"}},
    "attributes": [
        {"name": "hardship_flag", "kind": "boolean", "meaning": "", "personal": True},
        {"name": "loanStart", "kind": "string", "meaning": "The day on which the loan began.", "personal": False},
    ],
    "metrics": [],
    "baseline": {
        "since": {"attribute": "loanStart"},
        "metrics": [{"slug": "revenue_90d_at_start", "of": "revenue_90d"}],
    },
    "rules": EXAMPLE_RULES,
}
EXAMPLE_ID = EXAMPLE_TRIGGERED["ruleset"]["id"]
EXAMPLE_COUNTS: list[dict[str, Any]] = [
    {"code": "DEBT_SERVICE", "observed": 1240, "held": 31, "unknown": 62, "fired": 3, "firedNow": 2},
    {"code": "REVENUE_DOWN", "observed": 1240, "held": 0, "unknown": 310, "fired": 0, "firedNow": 0},
]
EXAMPLE_RULESET: dict[str, Any] = {
    "rulesetId": EXAMPLE_ID,
    "slug": EXAMPLE_DOCUMENT["slug"],
    "name": EXAMPLE_DOCUMENT["name"],
    "version": 2,
    "active": True,
    "isArchived": False,
    "dateCreated": "2026-07-01T02:15:00Z",
    "dateUpdated": "2026-07-02T00:30:00Z",
    "document": EXAMPLE_DOCUMENT,
    "counts": EXAMPLE_COUNTS,
}
EXAMPLE_VERSION: dict[str, Any] = {
    "version": 2,
    "sha256": "b1946ac92492d2347c6235b4d2611184b1946ac92492d2347c6235b4d2611184",
    "dateCreated": EXAMPLE_RULESET["dateUpdated"],
    "createdBy": "7d1e2a3b-59c4-4f6e-8a0b-1c2d3e4f5a6b",
    "document": EXAMPLE_DOCUMENT,
}
EXAMPLE_MATCH: dict[str, Any] = {
    "matchId": EXAMPLE_TRIGGERED["eventId"],
    "ruleset": EXAMPLE_TRIGGERED["ruleset"],
    "version": 2,
    "customerId": EXAMPLE_CUSTOMER,
    "dateMatched": EXAMPLE_TRIGGERED["timestamp"],
    "asOf": "2026-07-01",
    "dataVersion": 4,
    "cause": "data",
    "rules": [
        {
            **{name: EXAMPLE_RULES[0][name] for name in ("code", "message", "severity", "recommendedActions")},
            "values": [
                {
                    "kind": "metric",
                    "name": EXAMPLE_METRIC["slug"],
                    "title": EXAMPLE_METRIC["name"],
                    "metricId": EXAMPLE_METRIC["metricId"],
                    "value": 0.4132,
                    "cause": None,
                    "baseline": None,
                }
            ],
            "comparisons": [
                {
                    "operator": "moreThan",
                    "left": {"metric": EXAMPLE_METRIC["slug"], "value": 0.4132},
                    "right": {"constant": "0.35", "value": 0.35},
                    "holds": True,
                }
            ],
        }
    ],
}
EXAMPLE_IN_LIBRARY: dict[str, Any] = {
    "slug": "dishonour-in-7-days",
    "name": "Dishonour in 7 days",
    "about": "A payment of the customer's was returned unpaid within the last seven days.",
}

_KINDS: Mapping[str, Any] = {"active": "boolean", "mutedWhile": ["object", "null"], "baseline": ["object", "null"]}
_APPLIES_TO: dict[str, Any] = {
    "anyOf": [
        {"const": "all"},
        {
            "type": "object",
            "properties": {
                "customers": {
                    "type": "array",
                    "items": {"type": "string", "format": "uuid"},
                    "minItems": 1,
                    "description": f"The client's own; {MOST_CUSTOMERS:,} at most.",
                }
            },
            "required": ["customers"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"where": {"type": "object"}},
            "required": ["where"],
            "additionalProperties": False,
        },
    ],
    "description": "All customers, those listed, or those of whom a condition over attributes holds.",
}


def _with_document(schema: dict[str, Any]) -> None:
    """The document's fields, told from outside: what stands in them, `docs/how-to/monitoring.md` says."""
    for name, field in Ruleset.model_fields.items():
        alias = field.alias or name
        kind = _KINDS.get(alias, "string" if isinstance(EXAMPLE_DOCUMENT[alias], str) else "array")
        schema["properties"][alias] = {"type": kind, "description": "See docs/how-to/monitoring.md."}
    schema["properties"]["appliesTo"] = _APPLIES_TO
    schema["required"] = ["slug", "name", "rules"]
    schema["additionalProperties"] = False


class SentRuleset(Received):
    """A ruleset's document. Unknown fields are refused."""

    EXAMPLE: ClassVar = EXAMPLE_DOCUMENT
    model_config = ConfigDict(alias_generator=to_camel, extra="allow", frozen=True, json_schema_extra=_with_document)

    def document(self) -> dict[str, Any]:
        return self.model_extra or {}


class RulesetPaging(Paging):
    include_archived: Annotated[
        bool,
        Parameter(
            lambda given: one_of("true", "false")(given) == "true",
            "Ruleset.InvalidIncludeArchived",
            "includeArchived must be true or false, given once.",
            {"type": "boolean", "description": "Archived rulesets, too."},
        ),
    ] = False


def _only(which: str) -> Parameter:
    return Parameter(
        identifier,
        "RuleMatch.InvalidId",
        "customerId and rulesetId must be one UUID each.",
        {"type": "string", "format": "uuid", "description": f"Only this {which}'s matches."},
    )


def _moment(what: str) -> Parameter:
    return Parameter(
        moment,
        "RuleMatch.InvalidDate",
        "A moment is an ISO 8601 date-time with its offset, given once.",
        {"type": "string", "format": "date-time", "description": f"Only matches {what} this moment."},
    )


class WhichMatches(Paging):
    customer_id: Annotated[UUID | None, _only("customer")] = None
    ruleset_id: Annotated[UUID | None, _only("ruleset")] = None
    created_after: Annotated[datetime | None, _moment("after")] = None
    created_before: Annotated[datetime | None, _moment("before")] = None


class RuleCountView(View):
    """What a rule came to: of its evaluations, each of one customer."""

    code: str
    observed: int = Field(description="Ruleset evaluations.")
    held: int = Field(description="Ruleset evaluations in which the condition was true.")
    unknown: int = Field(
        description="Ruleset evaluations in which it was unknown: something that it needs was unavailable."
    )
    fired: int = Field(description="Ruleset evaluations in which the rule fired.")
    fired_now: int = Field(description="Customers for whom it has fired and is not ready again yet.")


class RulesetView(View):
    EXAMPLE: ClassVar = EXAMPLE_RULESET

    ruleset_id: UUID
    slug: str
    name: str
    version: int = Field(description="The newest, which holds.")
    active: bool
    is_archived: bool
    date_created: datetime
    date_updated: datetime
    document: Any = Field(description="What to change and send again: with every default written out.")
    counts: list[RuleCountView] = Field(description=f"Of the rules that hold, over the last {COUNTED_DAYS} days.")


class SavedRulesetView(RulesetView):
    EXAMPLE: ClassVar[Mapping[str, Any]] = {**EXAMPLE_RULESET, "warnings": []}

    warnings: list[FindingView] = Field(description="What is odd, though no fault: a condition that can never be true.")


class RulesetListView(Counts):
    EXAMPLE: ClassVar = {"rulesets": [EXAMPLE_RULESET], **Counts.EXAMPLE}

    rulesets: list[RulesetView]


class RulesetVersionView(View):
    EXAMPLE: ClassVar = EXAMPLE_VERSION

    version: int
    sha256: str = Field(description="Of the document's canonical JSON.")
    date_created: datetime
    created_by: str
    document: Any


class RulesetVersionListView(Counts):
    EXAMPLE: ClassVar = {"versions": [EXAMPLE_VERSION], **Counts.EXAMPLE}

    versions: list[RulesetVersionView]


class RulesetNameView(View):
    id: UUID
    slug: str
    name: str


class ReadBaselineView(View):
    metric: str = Field(serialization_alias="of", description="Of which it is an earlier reading.")
    day: date | None = Field(
        serialization_alias="date", description="The day as of which it was read; null: there was none."
    )


class ReadValueView(View):
    """What a condition read."""

    kind: Literal["metric", "attribute"]
    name: str
    title: str | None = Field(description="A metric's name for people.")
    metric_id: UUID | None
    value: Any = Field(description="Null: unavailable.")
    cause: str | None = Field(description="Why it is unavailable.")
    baseline: ReadBaselineView | None = Field(description="Of a baseline metric.")


class ComparisonView(View):
    """Something that the condition asks. A side says what it is and its value, and if it was worked out, of what."""

    operator: str
    left: Any
    right: Any = Field(description="A list: the bounds of `between`, or the texts of `oneOf`. Null: nothing.")
    holds: bool | None = Field(description="Null: unknown.")


class MatchedRuleView(View):
    code: str
    message: str
    severity: Severity
    recommended_actions: list[str]
    values: list[ReadValueView]
    comparisons: list[ComparisonView]


class MatchView(View):
    EXAMPLE: ClassVar = EXAMPLE_MATCH

    match_id: UUID = Field(description="Equals the `eventId` of the webhook.")
    ruleset: RulesetNameView
    version: int = Field(description="The ruleset's, by which it was looked.")
    customer_id: UUID
    date_matched: datetime
    as_of: date = Field(description="The service's day.")
    data_version: int = Field(description="Of the customer's transactions.")
    cause: Cause = Field(
        description="data: the customer's transactions changed; time: the night came, or a ruleset or an attribute "
        "changed."
    )
    rules: list[MatchedRuleView] = Field(description="All that fired in this ruleset evaluation, as they were then.")


class MatchListView(Counts):
    EXAMPLE: ClassVar = {"matches": [EXAMPLE_MATCH], **Counts.EXAMPLE}

    matches: list[MatchView]


class LibraryItemView(View):
    EXAMPLE: ClassVar = EXAMPLE_IN_LIBRARY

    slug: str
    name: str
    about: str = Field(description="What it watches for.")


class LibraryView(View):
    EXAMPLE: ClassVar = {"rulesets": [EXAMPLE_IN_LIBRARY]}

    rulesets: list[LibraryItemView]


class LibraryRulesetView(LibraryItemView):
    EXAMPLE: ClassVar = {**EXAMPLE_IN_LIBRARY, "document": EXAMPLE_DOCUMENT, "text": "slug: dishonour-in-7-days\n…"}

    document: Any = Field(description="To be sent to `/v1/monitoring/rulesets`, with `active` as you choose.")
    text: str = Field(description="The same as YAML, with remarks.")


def shown(stored: StoredRuleset, counts: Sequence[Count], fired_now: Mapping[str, int]) -> dict[str, Any]:
    """A ruleset with what its rules came to, in the document's order."""
    by_code = {count.rule: count for count in counts}
    return {
        "rulesetId": stored.ruleset_id,
        "slug": stored.slug,
        "name": stored.name,
        "version": stored.version,
        "active": stored.active,
        "isArchived": stored.is_archived,
        "dateCreated": stored.created_at,
        "dateUpdated": stored.updated_at,
        "document": json.loads(stored.document),
        "counts": [_counted(rule.code, by_code.get(rule.code), fired_now) for rule in stored.ruleset.rules],
    }


def _counted(code: str, count: Count | None, fired_now: Mapping[str, int]) -> dict[str, Any]:
    sums = Count(code, 0, 0, 0, 0) if count is None else count
    described = {name: getattr(sums, name) for name in ("observed", "held", "unknown", "fired")}
    return {"code": code, **described, "firedNow": fired_now.get(code, 0)}


def version_shown(version: RulesetVersion) -> dict[str, Any]:
    return {
        "version": version.version,
        "sha256": version.sha256.hex(),
        "dateCreated": version.created_at,
        "createdBy": version.created_by,
        "document": json.loads(version.document),
    }


class Read(msgspec.Struct, rename="camel"):
    """What a condition read, as a match's record says it. The value's digits stay as they were written."""

    kind: str
    name: str
    value: msgspec.Raw
    cause: str | None
    metric_id: UUID | None = None
    title: str | None = None
    baseline: "ReadBaseline | None" = None


class ReadBaseline(msgspec.Struct):
    """`of`: the metric; `day`: the one as of which it was read, None where there was none."""

    of: str
    day: date | None = msgspec.field(name="date")


class FiredRule(msgspec.Struct, rename="camel"):
    code: str
    message: str
    severity: str
    recommended_actions: list[str]
    read: list[Read]
    trace: msgspec.Raw


class _Observed(msgspec.Struct):
    rules: list[FiredRule]


class _Record(msgspec.Struct):
    observed: _Observed


_record = msgspec.json.Decoder(_Record)


def fired_rules(record: bytes) -> list[FiredRule]:
    """What a match's record says of the rules that fired."""
    return _record.decode(record).observed.rules


def match_shown(match: Match, record: bytes) -> dict[str, Any]:
    return {
        "matchId": match.match_id,
        "ruleset": {"id": match.ruleset_id, "slug": match.slug, "name": match.name},
        "version": match.version,
        "customerId": match.customer_id,
        "dateMatched": match.at,
        "asOf": match.as_of,
        "dataVersion": match.data_version,
        "cause": match.cause,
        "rules": [_rule_shown(rule) for rule in fired_rules(record)],
    }


def _rule_shown(rule: FiredRule) -> dict[str, Any]:
    return {
        "code": rule.code,
        "message": rule.message,
        "severity": rule.severity,
        "recommendedActions": rule.recommended_actions,
        "values": rule.read,
        "comparisons": rule.trace,
    }


def library_shown(slug: str, found: LibraryRuleset) -> dict[str, Any]:
    return {"slug": slug, "name": found.document["name"], "about": found.about}
