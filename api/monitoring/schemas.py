"""Rulesets and matches as they are sent and shown. `pipelines.monitoring` defines a ruleset's document."""

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from api.core.schemas.common import Counts, Paging, Received, View, add_document_fields
from api.core.schemas.rules import flag_parameter, identifier_parameter, moment_parameter, whole_parameter
from api.decisions.schemas.policies import FindingView
from pipelines.metrics.definition import Format
from pipelines.monitoring import Cause, Ruleset
from pipelines.monitoring.library import LibraryRuleset
from pipelines.monitoring.ruleset import MAX_CUSTOMERS, Severity
from storage.monitoring.rule_matches import Count, Match
from storage.monitoring.rulesets import RulesetVersion, StoredRuleset

COUNTED_DAYS = 30
MAX_VERSION = 1_000_000_000

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
                    "description": f"Customers of the client, at most {MAX_CUSTOMERS:,}.",
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
    "description": "All customers, the listed ones, or those whose attributes meet a condition.",
}


def _with_document(schema: dict[str, Any]) -> None:
    add_document_fields(schema, Ruleset, "See docs/how-to/monitoring.md.", _KINDS)
    schema["properties"]["appliesTo"] = _APPLIES_TO
    schema["required"] = ["slug", "name", "rules"]


class SentRuleset(Received):
    """A ruleset's document. Unknown fields are refused."""

    model_config = ConfigDict(alias_generator=to_camel, extra="allow", frozen=True, json_schema_extra=_with_document)

    def document(self) -> dict[str, Any]:
        return self.model_extra or {}


class ReplaceQuery(Received):
    known_version: Annotated[
        int | None,
        whole_parameter(
            "knownVersion",
            "Ruleset.InvalidKnownVersion",
            1,
            MAX_VERSION,
            "Replace the ruleset only if this is still its version. Without it, what others have changed since it was "
            "read may be lost.",
        ),
    ] = None


class RulesetsQuery(Paging):
    include_archived: Annotated[
        bool,
        flag_parameter("includeArchived", "Ruleset.InvalidIncludeArchived", "Include archived rulesets."),
    ] = False


class MatchesQuery(Paging):
    customer_id: Annotated[
        UUID | None, identifier_parameter("customerId", "RuleMatch.InvalidId", "Only this customer's matches.")
    ] = None
    ruleset_id: Annotated[
        UUID | None, identifier_parameter("rulesetId", "RuleMatch.InvalidId", "Only this ruleset's matches.")
    ] = None
    created_after: Annotated[
        datetime | None, moment_parameter("createdAfter", "RuleMatch.InvalidDate", "Only matches after this moment.")
    ] = None
    created_before: Annotated[
        datetime | None, moment_parameter("createdBefore", "RuleMatch.InvalidDate", "Only matches before this moment.")
    ] = None


class RuleCountView(View):
    """Counts of a rule over ruleset evaluations, each of one customer."""

    code: str = Field(description="Code of the rule, unique within the ruleset.")
    observed: int = Field(description="Ruleset evaluations.")
    held: int = Field(description="Ruleset evaluations in which the condition was true.")
    unknown: int = Field(
        description="Ruleset evaluations in which the condition was unknown because something was unavailable."
    )
    fired: int = Field(description="Ruleset evaluations in which the rule fired.")
    fired_now: int = Field(description="Customers for whom it has fired and is not yet ready again.")


class RulesetView(View):
    ruleset_id: UUID
    slug: str = Field(description="Unique among the client's rulesets.")
    name: str = Field(description="For people; need not be unique.")
    version: int = Field(description="The newest version, which is in force.")
    active: bool = Field(description="Whether it is evaluated.")
    is_archived: bool = Field(description="An archived ruleset is not evaluated.")
    date_created: datetime = Field(description="When its first version was saved.")
    date_updated: datetime = Field(description="When its newest version was saved, or it was archived.")
    document: Any = Field(description="What to edit and send again, with every default written out.")
    counts: list[RuleCountView] = Field(description=f"Counts of the rules in force, over the last {COUNTED_DAYS} days.")


class SavedRulesetView(RulesetView):
    warnings: list[FindingView] = Field(description="Likely mistakes, such as a condition that is never true.")


class CheckedRulesetView(View):
    faults: list[FindingView] = Field(description="All that must be corrected before the document can be saved.")
    warnings: list[FindingView] = Field(description="Likely mistakes, such as a condition that is never true.")


class RulesetListView(Counts):
    rulesets: list[RulesetView] = Field(description="By slug.")


class RulesetVersionView(View):
    version: int = Field(description="From 1; each change adds one.")
    sha256: str = Field(description="SHA-256 of the document's canonical JSON.")
    date_created: datetime = Field(description="When it was saved; from then on it was in force.")
    created_by: str = Field(description="Id of the user or the API key.")
    document: Any = Field(description="As it was saved, with every default written out.")


class RulesetVersionListView(Counts):
    versions: list[RulesetVersionView] = Field(description="Newest first.")


class RulesetNameView(View):
    id: UUID
    slug: str = Field(description="Slug in the version that fired.")
    name: str = Field(description="Name in the version that fired.")


class ReadBaselineView(View):
    metric: str = Field(serialization_alias="of", description="The metric that it is an earlier reading of.")
    day: date | None = Field(
        serialization_alias="date", description="The day whose value was read; null if there was none."
    )


class ReadValueView(View):
    """A value that a condition read."""

    kind: Literal["metric", "attribute"]
    name: str = Field(description="Slug of the metric, or name of the attribute.")
    title: str | None = Field(description="Display name of a metric.")
    format: Format | None = Field(description="How people read a number: as percent, 0.12 is 12 %. Null: as it is.")
    metric_id: UUID | None = Field(description="Null for an attribute.")
    value: Any = Field(description="Null: unavailable.")
    cause: str | None = Field(description="Why it is unavailable.")
    baseline: ReadBaselineView | None = Field(description="The baseline, if it is a baseline metric.")


class ComparisonView(View):
    """A comparison in the condition. Each side has its source and value and, if computed, the parts."""

    operator: str = Field(description="lessThan, atLeast, oneOf, …, as in the document.")
    left: Any = Field(description="The compared side.")
    right: Any = Field(description="A list for `between` (bounds) and `oneOf` (texts); null if there is none.")
    holds: bool | None = Field(description="Null: unknown.")


class MatchRuleView(View):
    code: str = Field(description="Unique within the ruleset.")
    message: str = Field(description="What the rule detected, for the lender.")
    severity: Severity = Field(description="As the ruleset states it; it only tells people what to do first.")
    recommended_actions: list[str] = Field(description="As the ruleset states them; empty if it states none.")
    values: list[ReadValueView] = Field(description="Every value that the condition reads.")
    comparisons: list[ComparisonView] = Field(description="Every comparison of the condition.")


class MatchView(View):
    match_id: UUID = Field(description="Equals the `eventId` of the webhook.")
    ruleset: RulesetNameView = Field(description="Slug and name are those of the version, as in the webhook.")
    version: int = Field(description="Version of the ruleset that was evaluated.")
    customer_id: UUID
    date_matched: datetime = Field(description="When the rules fired.")
    as_of: date = Field(description="The business day of the ruleset evaluation.")
    data_version: int = Field(description="Version of the customer's transactions.")
    cause: Cause = Field(
        description="data: the customer's transactions changed; time: the nightly ruleset evaluation, or a ruleset "
        "or an attribute changed."
    )
    rules: list[MatchRuleView] = Field(description="All rules that fired, as they were then.")


class MatchListView(Counts):
    matches: list[MatchView] = Field(description="Newest first.")


class LibraryItemView(View):
    slug: str = Field(description="Names it in the library's paths.")
    name: str
    about: str = Field(description="What the ruleset detects.")


class LibraryView(View):
    rulesets: list[LibraryItemView] = Field(description="By slug.")


class LibraryRulesetView(LibraryItemView):
    document: Any = Field(description="Can be sent to `/v1/monitoring/rulesets`, with `active` as you choose.")
    text: str = Field(description="The same as YAML, with comments.")


def describe_ruleset(stored: StoredRuleset, counts: Sequence[Count], fired_now: Mapping[str, int]) -> dict[str, Any]:
    """Return a ruleset with the counts of its rules, in the document's order."""
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
        "counts": [_describe_counts(rule.code, by_code.get(rule.code), fired_now) for rule in stored.ruleset.rules],
    }


def _describe_counts(code: str, count: Count | None, fired_now: Mapping[str, int]) -> dict[str, Any]:
    sums = Count(code, 0, 0, 0, 0) if count is None else count
    described = {name: getattr(sums, name) for name in ("observed", "held", "unknown", "fired")}
    return {"code": code, **described, "firedNow": fired_now.get(code, 0)}


def describe_version(version: RulesetVersion) -> dict[str, Any]:
    return {
        "version": version.version,
        "sha256": version.sha256.hex(),
        "dateCreated": version.created_at,
        "createdBy": version.created_by,
        "document": json.loads(version.document),
    }


class ReadValue(msgspec.Struct, rename="camel"):
    """A value that a condition read, from a match's record. The digits of the value do not change."""

    kind: str
    name: str
    value: msgspec.Raw
    cause: str | None
    metric_id: UUID | None = None
    title: str | None = None
    format: str | None = None
    baseline: "ReadBaseline | None" = None


class ReadBaseline(msgspec.Struct):
    """The baseline of a value: the metric, and the day whose value was read; None if there was none."""

    of: str
    day: date | None = msgspec.field(name="date")


class FiredRule(msgspec.Struct, rename="camel"):
    code: str
    message: str
    severity: str
    recommended_actions: list[str]
    read: list[ReadValue]
    trace: msgspec.Raw


class _Observed(msgspec.Struct):
    rules: list[FiredRule]


class _Record(msgspec.Struct):
    observed: _Observed


_record = msgspec.json.Decoder(_Record)


def fired_rules(record: bytes) -> list[FiredRule]:
    """Return the rules that fired, from a match's record."""
    return _record.decode(record).observed.rules


def describe_match(match: Match, record: bytes) -> dict[str, Any]:
    return {
        "matchId": match.match_id,
        "ruleset": {"id": match.ruleset_id, "slug": match.slug, "name": match.name},
        "version": match.version,
        "customerId": match.customer_id,
        "dateMatched": match.at,
        "asOf": match.as_of,
        "dataVersion": match.data_version,
        "cause": match.cause,
        "rules": [_describe_rule(rule) for rule in fired_rules(record)],
    }


def _describe_rule(rule: FiredRule) -> dict[str, Any]:
    return {
        "code": rule.code,
        "message": rule.message,
        "severity": rule.severity,
        "recommendedActions": rule.recommended_actions,
        "values": rule.read,
        "comparisons": rule.trace,
    }


def describe_library_ruleset(slug: str, found: LibraryRuleset) -> dict[str, Any]:
    return {"slug": slug, "name": found.document["name"], "about": found.about}
