"""Alerts and decisions that wait for people."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.http.dependencies import Allow, Caller, EvaluationId, MatchId
from api.http.documented import envelope, refuses
from api.http.idempotency import IDEMPOTENT
from api.http.responses import encode, respond, stream_list, totals
from api.http.route import Route
from api.monitoring.rulesets import describe_matches
from api.work.schemas.work import (
    AlertListView,
    AlertsQuery,
    AlertView,
    ColleagueListView,
    ColleagueView,
    DecisionAssigneeView,
    SentAlertAction,
    SentAssignee,
    WorkItemView,
    WorkListView,
    WorkQuery,
    describe_alert,
    describe_history,
    describe_item,
)
from pipelines.vocabulary.errors import Fault, InvalidRequest
from storage.access import keys, users
from storage.access.roles import GRANTS
from storage.core.database import Reading
from storage.monitoring import rule_matches
from storage.monitoring.rule_matches import Match
from storage.work import items
from storage.work.items import Action, Item, ItemAction, ItemState

router = APIRouter(route_class=Route, prefix="/v1", tags=["Work"])
SCOPE = "customer:work"
Colleague = Annotated[Caller, Depends(Allow(SCOPE))]
UNKNOWN_ASSIGNEE = "Work.UnknownAssignee"
CORRUPT = "RuleMatch.Corrupt"
ALERTS_PER_SLICE = 100
AUDITED = {
    ItemAction.ACKNOWLEDGE: "Alert.Acknowledged",
    ItemAction.SNOOZE: "Alert.Snoozed",
    ItemAction.CLOSE: "Alert.Closed",
    ItemAction.REOPEN: "Alert.Reopened",
    ItemAction.ASSIGN: "Alert.Assigned",
}
SUMMARISED = ("code", "message", "severity", "recommendedActions")


@router.get("/work", response_model=envelope(WorkListView))
def list_work(caller: Colleague, query: Annotated[WorkQuery, Query()]) -> Response:
    """List what waits for people, newest first: alerts that are neither closed nor snoozed, and decisions.

    A decision waits if it is the latest one of its customer and policy, its outcome is `conditional` or
    `indeterminate`, and nobody has overridden it. What-ifs and evaluations by a challenger decide nothing.
    """
    who = query.who(caller.actor.who)
    with caller.reading() as r:
        found = items.find_waiting(
            r, caller.client_id, caller.now, kind=query.kind, assignee=who, page=query.requested_page()
        )
    return respond({"items": [describe_item(each, caller.now) for each in found.items], **totals(found)})


@router.get("/colleagues", response_model=envelope(ColleagueListView))
def list_colleagues(caller: Colleague) -> Response:
    """List the client's users to whom work can be assigned, ordered by name."""
    with caller.reading() as r:
        found = users.find(r, caller.client_id)
    able = [each for each in found.items if each.disabled_at is None and SCOPE in GRANTS[each.role]]
    able.sort(key=lambda each: each.name.casefold())
    return respond(ColleagueListView(colleagues=[ColleagueView.of(each) for each in able]))


@router.get("/evaluations/{evaluationId}/assignee", response_model=envelope(DecisionAssigneeView))
def get_assignee(caller: Colleague, evaluation_id: EvaluationId) -> Response:
    """Read who works on a decision, and whether it still waits for a person."""
    with caller.reading() as r:
        found = caller.evaluation(r, evaluation_id)
        item = items.find_decision(r, caller.client_id, found.evaluation_id, caller.now)
    if item is None:
        return respond(DecisionAssigneeView(assignee=None, is_waiting=False))
    return respond(DecisionAssigneeView(assignee=item.assignee, is_waiting=item.state is not ItemState.CLOSED))


@router.put(
    "/evaluations/{evaluationId}/assignee",
    response_model=envelope(WorkItemView),
    responses=refuses("Evaluation.NotWaiting", UNKNOWN_ASSIGNEE),
)
def assign_decision(caller: Colleague, evaluation_id: EvaluationId, sent: SentAssignee) -> Response:
    """Assign a decision that waits for a person to a user or a key, or to nobody."""
    action = Action(ItemAction.ASSIGN, assignee=None if sent.assignee is None else str(sent.assignee))
    with caller.writing() as w:
        found = caller.evaluation(w, evaluation_id)
        _require_assignable(w, caller, sent.assignee)
        items.act(w, caller.client_id, found.evaluation_id, action, caller.actor.who, caller.now)
        caller.audit(w, "Decision.Assigned", evaluationId=found.evaluation_id)
        shown = items.get(w, caller.client_id, found.evaluation_id, caller.now)
        return respond(describe_item(shown, caller.now))


@router.get(
    "/alerts",
    response_model=envelope(AlertListView),
    responses=refuses("Customer.NotFound", "Ruleset.NotFound", CORRUPT),
)
def list_alerts(caller: Colleague, query: Annotated[AlertsQuery, Query()]) -> Response:
    """List alerts, newest first, with what their rules say and recommend. Every match is an alert.

    A snoozed alert is open again once its time has come.
    """
    who = query.who(caller.actor.who)
    with caller.reading() as r:
        customer = None if query.customer_id is None else caller.customer(r, str(query.customer_id))
        ruleset_id = None if query.ruleset_id is None else caller.ruleset(r, str(query.ruleset_id)).ruleset_id
        which = {"state": query.state, "customer": customer, "ruleset_id": ruleset_id}
        found = items.find_alerts(r, caller.client_id, caller.now, assignee=who, **which, page=query.requested_page())
    return stream_list("alerts", totals(found), _in_slices(caller, found.items))


@router.get("/alerts/{matchId}", response_model=envelope(AlertView), responses=refuses(CORRUPT))
def get_alert(caller: Colleague, match_id: MatchId) -> Response:
    """Read an alert with the values that its rules read, and what people did with it."""
    with caller.reading() as r:
        return respond(_alert(r, caller, caller.match(r, match_id)))


@router.post(
    "/alerts/{matchId}/actions",
    status_code=201,
    response_model=envelope(AlertView),
    responses=refuses(UNKNOWN_ASSIGNEE, CORRUPT),
    dependencies=[IDEMPOTENT],
)
def act_on_alert(caller: Colleague, match_id: MatchId, sent: SentAlertAction) -> Response:
    """Acknowledge, snooze, close, reopen or assign an alert. Every action applies in any state, and is recorded.

    The match and its webhook do not change, and a closed alert doesn't keep its rules from triggering again.
    """
    action = sent.record()
    if action.until is not None and action.until <= caller.now:
        fault = Fault("/until", "Alert.InvalidUntil", "until must be later than now.")
        raise InvalidRequest(fault.code, fault.message, (fault,))
    with caller.writing() as w:
        match = caller.match(w, match_id)
        _require_assignable(w, caller, sent.assignee)
        items.act(w, caller.client_id, match.match_id, action, caller.actor.who, caller.now)
        caller.audit(w, AUDITED[action.action], matchId=match.match_id)
        location = {"Location": f"/v1/alerts/{match.match_id}"}
        return caller.store_response(w, respond(_alert(w, caller, match), status=201, headers=location))


def _require_assignable(r: Reading, caller: Caller, assignee: UUID | None) -> None:
    """Raise InvalidRequest if the assignee is neither a user nor a key of the client."""
    if assignee is not None and not _may_be_assigned(r, caller.client_id, assignee):
        fault = Fault("/assignee", UNKNOWN_ASSIGNEE, "The client has no user and no key with this id.")
        raise InvalidRequest(fault.code, fault.message, (fault,))


def _may_be_assigned(r: Reading, client_id: UUID, assignee: UUID) -> bool:
    people = {each.user_id for each in users.find(r, client_id).items}
    return assignee in people or assignee in {each.key_id for each in keys.find_keys(r, client_id)}


def _alert(r: Reading, caller: Caller, match: Match) -> dict[str, Any]:
    item = items.get(r, caller.client_id, match.match_id, caller.now)
    [described] = describe_matches(r, [match])
    return {**describe_alert(item, described), "history": describe_history(items.find_history(r, item))}


def _in_slices(caller: Caller, found: Sequence[Item]) -> Iterator[bytes]:
    """Yield alerts as JSON objects joined by commas, slice by slice."""
    for start in range(0, len(found), ALERTS_PER_SLICE):
        slice_ = found[start : start + ALERTS_PER_SLICE]
        with caller.reading() as r:
            matches = rule_matches.with_ids(r, caller.client_id, [each.item_id for each in slice_])
            described = describe_matches(r, [matches[each.item_id] for each in slice_])
            alerts = [describe_alert(*each) for each in zip(slice_, described, strict=True)]
        yield b",".join(encode({**each, "rules": list(map(_summary, each["rules"]))}) for each in alerts)


def _summary(rule: dict[str, Any]) -> dict[str, Any]:
    return {name: rule[name] for name in SUMMARISED}
