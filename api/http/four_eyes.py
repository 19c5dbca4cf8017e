"""Four eyes: an action that needs an approval is requested instead of performed (`storage.access.approvals`).

A route tries the action within a savepoint, so that a request is refused for the same reasons as the action:

    requested = four_eyes.applies(caller, w, ApprovalKind.PUBLISH)
    with four_eyes.trial(w, only=requested):
        version = actions.publish(caller, w, stored, sent.version)
    if requested:
        return four_eyes.request(caller, w, Request(...))
    return answer(...)
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from starlette.responses import Response

from api.core.schemas.approvals import ApprovalView
from api.http.dependencies import Caller
from api.http.documented import Responses, envelope
from api.http.responses import respond_accepted
from storage.access import approvals
from storage.access.approvals import Request
from storage.core.database import Writing
from storage.core.models import ApprovalKind

REQUESTED: Final[Responses] = {202: {"model": envelope(ApprovalView)}}


def applies(caller: Caller, w: Writing, kind: ApprovalKind) -> bool:
    """Return whether an action of this kind must be requested by this caller."""
    return approvals.is_needed(w, caller.client_id, kind)


@contextmanager
def trial(w: Writing, *, only: bool) -> Iterator[None]:
    """Undo at the end what the block changes, if it is `only` a trial."""
    if not only:
        yield
        return
    savepoint = w.begin_nested()
    try:
        yield
    finally:
        savepoint.rollback()


def request(caller: Caller, w: Writing, new: Request) -> Response:
    """Request an action, and return the 202. A pending request that is equal is returned instead."""
    approval, superseded = approvals.request(w, caller.client_id, new, caller.who, caller.now)
    if approval.requested_at == caller.now:
        earlier = {} if superseded is None else {"supersededId": superseded.approval_id}
        caller.audit(w, "Approval.Requested", approvalId=approval.approval_id, **new.subject, **earlier)
    return respond_accepted(ApprovalView.of(approval), f"/v1/approvals/{approval.approval_id}")
