"""Alerts, decisions that wait for people, and what people do with them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, ValidationInfo, field_validator

from api.core.schemas.common import Counts, Paging, Received, View
from api.core.schemas.rules import (
    MOMENT,
    Parameter,
    Rule,
    choice_parameter,
    identifier,
    identifier_parameter,
    masked_text,
    moment,
    one_of,
    optional,
    optional_text,
    or_null,
    refusal,
)
from api.monitoring.schemas import MatchRuleView, RulesetNameView
from pipelines.monitoring.ruleset import Severity
from storage.work.items import NOBODY, Action, Item, ItemAction, ItemKind, ItemState, PastAction, Unassigned

MAX_REASON = 1_000  # characters
ME, NONE = "me", "none"
# For each optional member: the action that requires it, and the error code if it is missing.
REQUIRED_BY = {"until": (ItemAction.SNOOZE, "Alert.InvalidUntil"), "reason": (ItemAction.CLOSE, "Alert.InvalidReason")}


def _assignee(given: Any) -> str:
    return given if given in (ME, NONE) else str(identifier(given))


class AssignedQuery(Paging):
    """Paging of a list that can be filtered by assignee."""

    assignee: Annotated[
        str | None,
        Parameter(
            _assignee,
            "Work.InvalidAssignee",
            "assignee must be given once: the id of a user or a key, `me` or `none`.",
            {
                "anyOf": [{"type": "string", "format": "uuid"}, {"enum": [ME, NONE]}],
                "description": "Only items that are assigned to this user or key, to the caller, or to nobody.",
            },
        ),
    ] = None

    def who(self, caller: str) -> str | Unassigned | None:
        """Return the assignee to filter by; None: no filter."""
        if self.assignee == NONE:
            return NOBODY
        return caller if self.assignee == ME else self.assignee


class WorkQuery(AssignedQuery):
    kind: Annotated[
        ItemKind | None, choice_parameter("kind", "Work.InvalidKind", ItemKind, "Only alerts, or only decisions.")
    ] = None


class AlertsQuery(AssignedQuery):
    state: Annotated[
        ItemState | None, choice_parameter("state", "Alert.InvalidState", ItemState, "Only alerts in this state.")
    ] = None
    customer_id: Annotated[
        UUID | None, identifier_parameter("customerId", "Alert.InvalidId", "Only this customer's alerts.")
    ] = None
    ruleset_id: Annotated[
        UUID | None, identifier_parameter("rulesetId", "Alert.InvalidId", "Only this ruleset's alerts.")
    ] = None


ASSIGNEE = Rule(
    or_null(identifier),
    "Work.InvalidAssignee",
    "assignee must be the id of a user or a key, or null.",
    {
        "anyOf": [{"type": "string", "format": "uuid"}, {"type": "null"}],
        "description": "A user or a key of the client. Null: nobody.",
    },
)


class SentAlertAction(Received):
    """What a person does with an alert. The last action applies, and all of them stay in its history."""

    action: Annotated[
        ItemAction,
        Rule(
            lambda given: ItemAction(one_of(*ItemAction)(given)),
            "Alert.InvalidAction",
            f"action must be one of {', '.join(ItemAction)}.",
            {
                "type": "string",
                "enum": list(ItemAction),
                "description": "snooze needs `until`, close needs `reason`, and assign takes `assignee`.",
            },
        ),
    ]
    until: Annotated[
        datetime | None,
        Rule(
            optional(moment),
            "Alert.InvalidUntil",
            f"until must be {MOMENT}, later than now; needed to snooze.",
            {
                "anyOf": [{"type": "string", "format": "date-time"}, {"const": ""}, {"type": "null"}],
                "description": "When a snoozed alert is open again.",
            },
        ),
    ] = Field(None, validate_default=True)
    reason: Annotated[
        str | None,
        optional_text(
            "reason", "Alert.InvalidReason", MAX_REASON, "In your words; needed to close.", parse=masked_text
        ),
    ] = Field(None, validate_default=True)
    assignee: Annotated[UUID | None, ASSIGNEE] = None

    @field_validator("until", "reason")
    @classmethod
    def _require_if_needed(cls, given: Any, info: ValidationInfo) -> Any:
        action, code = REQUIRED_BY[str(info.field_name)]
        if given is None and info.data.get("action") is action:
            raise refusal(code, f"{info.field_name} is needed to {action}.")
        return given

    def record(self) -> Action:
        """Return the action, without what doesn't belong to it."""
        until = self.until if self.action is ItemAction.SNOOZE else None
        assignee = str(self.assignee) if self.action is ItemAction.ASSIGN and self.assignee is not None else None
        return Action(self.action, until, self.reason, assignee)


class SentAssignee(Received):
    assignee: Annotated[UUID | None, ASSIGNEE]


class WorkItemView(View):
    """An alert or a decision that waits for a person."""

    kind: ItemKind = Field(
        description="alert: rules of a ruleset fired; decision: the outcome leaves something to a person."
    )
    match_id: UUID | None = Field(description="Of an alert.")
    evaluation_id: UUID | None = Field(description="Of a decision.")
    customer_id: UUID
    customer_name: str | None = Field(description="Null if the customer has none.")
    subject: str = Field(description="Slug of the ruleset or the policy.")
    subject_name: str = Field(description="Name of the ruleset, or of the policy's version that decided.")
    outcome: str | None = Field(description="Of a decision.")
    rules: Sequence[str] = Field(description="Codes of the rules that fired, of an alert.")
    date_opened: datetime = Field(description="When the rule fired or the decision was made.")
    age_seconds: int = Field(description="Seconds since `dateOpened`.")
    state: ItemState = Field(description="closed and snoozed items do not wait for a person.")
    assignee: str | None = Field(description="Id of a user or a key.")


class DecisionAssigneeView(View):
    """Who works on a decision."""

    assignee: str | None = Field(description="Id of a user or a key.")
    is_waiting: bool = Field(description="Whether the decision waits for a person: if not, it can't be assigned.")


class WorkListView(Counts):
    items: Sequence[WorkItemView] = Field(description="Newest first.")


class AlertRuleView(View):
    code: str = Field(description="Unique within the ruleset.")
    message: str = Field(description="What the rule detected, for the lender.")
    severity: Severity = Field(description="As the ruleset states it; it only tells people what to do first.")
    recommended_actions: list[str] = Field(description="As the ruleset states them; empty if it states none.")


class AlertSummaryView(View):
    match_id: UUID = Field(description="Id of the match, and of the alert.")
    ruleset: RulesetNameView = Field(description="Slug and name are those of the version that fired.")
    customer_id: UUID
    customer_name: str | None = Field(description="Null if the customer has none.")
    date_matched: datetime = Field(description="When the rules fired.")
    rules: Sequence[AlertRuleView] = Field(description="All rules that fired together.")
    state: ItemState = Field(description="A snoozed alert is open again from `snoozedUntil` on.")
    snoozed_until: datetime | None = Field(description="Null unless snoozed.")
    assignee: str | None = Field(description="Id of a user or a key.")


class AlertListView(Counts):
    alerts: Sequence[AlertSummaryView] = Field(description="Newest first.")


class AlertActionView(View):
    action: ItemAction = Field(description="Every action but assign also changes the alert's state.")
    until: datetime | None = Field(description="When snoozed: until when; otherwise null.")
    reason: str | None = Field(description="Null if none was given.")
    assignee: str | None = Field(description="When assigned: id of a user or a key; null: nobody.")
    date_made: datetime = Field(validation_alias="at")
    made_by: str = Field(validation_alias="who", description="Id of a user or a key.")


class AlertView(AlertSummaryView):
    rules: Sequence[MatchRuleView] = Field(  # pyrefly: ignore[bad-override]
        description="All rules that fired together, with the values that they read."
    )
    history: Sequence[AlertActionView] = Field(description="Newest first.")


class ColleagueView(View):
    """A user of the client who has the scope `customer:work`."""

    user_id: UUID
    name: str
    role: str = Field(description="analyst, approver or admin: each may do everything that the ones before it may.")


class ColleagueListView(View):
    colleagues: Sequence[ColleagueView] = Field(description="By name, without disabled users.")


def describe_item(item: Item, now: datetime) -> dict[str, Any]:
    is_alert = item.kind is ItemKind.ALERT
    return {
        "kind": item.kind,
        "matchId": item.item_id if is_alert else None,
        "evaluationId": None if is_alert else item.item_id,
        "customerId": item.customer_id,
        "customerName": item.customer_name,
        "subject": item.slug,
        "subjectName": item.subject_name,
        "outcome": item.outcome,
        "rules": item.rules,
        "dateOpened": item.at,
        "ageSeconds": int((now - item.at).total_seconds()),
        "state": item.state,
        "assignee": item.assignee,
    }


def describe_alert(item: Item, match: Mapping[str, Any]) -> dict[str, Any]:
    """Return an alert from its item and its described match."""
    return {
        "matchId": item.item_id,
        "ruleset": match["ruleset"],
        "customerId": item.customer_id,
        "customerName": item.customer_name,
        "dateMatched": item.at,
        "rules": match["rules"],
        "state": item.state,
        "snoozedUntil": item.snoozed_until,
        "assignee": item.assignee,
    }


def describe_history(history: Sequence[PastAction]) -> list[AlertActionView]:
    return [AlertActionView.of(each) for each in history]
