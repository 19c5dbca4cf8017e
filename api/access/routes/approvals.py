"""Approvals: what one person or key requested, and another approves or declines."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.access.routes.four_eyes import perform_lifting
from api.access.routes.granting import USER_NEEDED
from api.core.schemas.approvals import ApprovalListView, ApprovalsQuery, ApprovalView, SentDecline
from api.decisions import actions
from api.http.dependencies import Allow, ApprovalId, Caller
from api.http.documented import envelope, refuses, shows
from api.http.responses import respond, totals
from api.http.route import Route
from api.monitoring import rulesets
from storage.access import approvals
from storage.access.approvals import Approval
from storage.core.database import Writing
from storage.core.models import ApprovalKind


@dataclass(frozen=True)
class Action:
    """The scope that an action needs, also to approve it, and how it is performed once approved."""

    scope: str
    perform: Callable[[Caller, Writing, Approval], None]


ACTIONS = {
    ApprovalKind.PUBLISH: Action("decision-policies:publish", actions.perform_publication),
    ApprovalKind.OVERRIDE: Action("decision-policies:override", actions.perform_override),
    ApprovalKind.ACTIVATE: Action("monitoring:rules", rulesets.perform_activation),
    ApprovalKind.LIFT: Action("access:manage", perform_lifting),
}
SCOPES = tuple(action.scope for action in ACTIONS.values())
REFUSED = ("Approval.SamePerson", "Approval.Decided")
NO_LONGER = (
    *("DecisionPolicy.Archived", "DecisionPolicy.VersionRetired"),
    *("Approval.SubjectChanged", "Ruleset.Archived", "Ruleset.SlugTaken", "Ruleset.TooMany", "Ruleset.Corrupt"),
)

router = APIRouter(route_class=Route, prefix="/v1/approvals", tags=["Approvals"])
Reader = Annotated[Caller, Depends(Allow("customer:work", *SCOPES))]
Requester = Reader
Approver = Annotated[Caller, Depends(Allow(*SCOPES))]


@router.get("", response_model=envelope(ApprovalListView))
def list_approvals(caller: Reader, query: Annotated[ApprovalsQuery, Query()]) -> Response:
    """List requests for actions that need a second person or key, newest first, with what became of them."""
    with caller.reading() as r:
        subject_id = None if query.evaluation_id is None else str(query.evaluation_id)
        which = {"kind": query.kind, "status": query.status, "subject_id": subject_id}
        found = approvals.find(r, caller.client_id, **which, page=query.requested_page())
    return respond({"approvals": [ApprovalView.of(each) for each in found.items], **totals(found)})


@router.get("/{approvalId}", response_model=envelope(ApprovalView))
def get_approval(caller: Reader, approval_id: ApprovalId) -> Response:
    """Read a request for an action, and what became of it."""
    with caller.reading() as r:
        return respond(ApprovalView.of(caller.approval(r, approval_id)))


@router.post(
    "/{approvalId}/approve",
    response_model=envelope(ApprovalView),
    responses=shows(200, "approved") | refuses(*REFUSED, *NO_LONGER, USER_NEEDED),
)
def approve_request(caller: Approver, approval_id: ApprovalId) -> Response:
    """Approve a request, and perform its action at once.

    It needs the scope of the action, and another person or key than the requester's; for `lift`, another person. If the
    action is refused, it is not performed, and the request stays pending: decline it, or request the action again.
    """
    with caller.writing() as w:
        found = _require_action(caller, caller.approval(w, approval_id))
        approved = approvals.approve(w, found, caller.actor.who, caller.now)
        performing = replace(caller, performed=approved)
        performing.audit(w, "Approval.Approved")
        ACTIONS[approved.kind].perform(performing, w, approved)
        return respond(ApprovalView.of(approved))


@router.post(
    "/{approvalId}/decline",
    response_model=envelope(ApprovalView),
    responses=shows(200, "declined") | refuses(*REFUSED),
)
def decline_request(caller: Approver, approval_id: ApprovalId, sent: SentDecline) -> Response:
    """Decline a request: its action is not performed.

    It needs the scope of the action, and another person or key than the requester's.
    """
    with caller.writing() as w:
        found = _require_action(caller, caller.approval(w, approval_id))
        declined = approvals.decline(w, found, sent.reason, caller.actor.who, caller.now)
        replace(caller, performed=declined).audit(w, "Approval.Declined")
        return respond(ApprovalView.of(declined))


@router.post(
    "/{approvalId}/withdraw",
    response_model=envelope(ApprovalView),
    responses=shows(200, "withdrawn") | refuses("Approval.OtherPerson", "Approval.Decided"),
)
def withdraw_request(caller: Requester, approval_id: ApprovalId) -> Response:
    """Withdraw a request, by the person or key that made it: its action is not performed."""
    with caller.writing() as w:
        withdrawn = approvals.withdraw(w, caller.approval(w, approval_id), caller.who, caller.now)
        caller.audit(w, "Approval.Withdrawn", approvalId=withdrawn.approval_id)
        return respond(ApprovalView.of(withdrawn))


def _require_action(caller: Caller, found: Approval) -> Approval:
    """Return the approval if the caller has the scope of its action."""
    caller.require_any(ACTIONS[found.kind].scope)
    return found
