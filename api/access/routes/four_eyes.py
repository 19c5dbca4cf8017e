"""Which actions of a client need a second person or key, and that one person alone can't change this to none."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from api.access.routes.granting import USER_NEEDED, require_user
from api.core.schemas.approvals import FourEyesView, SentFourEyes
from api.http import four_eyes
from api.http.dependencies import Allow, Caller
from api.http.documented import envelope, refuses
from api.http.four_eyes import REQUESTED
from api.http.responses import respond
from api.http.route import Route
from pipelines.vocabulary.errors import Conflict
from storage.access import approvals
from storage.access.approvals import NO_FOUR_EYES, Approval, Request
from storage.access.keys import lock_client
from storage.core.database import Writing
from storage.core.models import ApprovalKind

router = APIRouter(route_class=Route, prefix="/v1/four-eyes", tags=["Approvals"])
Admin = Annotated[Caller, Depends(Allow("access:manage"))]


@router.get("", response_model=envelope(FourEyesView))
def get_four_eyes(caller: Admin) -> Response:
    """Read which actions another person or key must approve."""
    with caller.reading() as r:
        return respond(FourEyesView(actions=approvals.read_four_eyes(r, caller.client_id)))


@router.put(
    "", response_model=envelope(FourEyesView), responses=REQUESTED | refuses(USER_NEEDED, "FourEyes.ChangedMeanwhile")
)
def set_four_eyes(caller: Admin, sent: SentFourEyes) -> Response:
    """Set which actions another person or key must approve. Only signed-in users can do this.

    A change that leaves out an action that needs an approval now is requested: another admin must approve it. Every
    other change applies at once.
    """
    require_user(caller)
    with caller.writing() as w:
        lock_client(w, caller.client_id)  # as an approval does, which may change the same
        current = approvals.read_four_eyes(w, caller.client_id)
        if sent.replaces is not None and sent.replaces != current:
            raise Conflict(
                "FourEyes.ChangedMeanwhile", "The setting was changed meanwhile, so nothing was changed now."
            )
        if set(current) - set(sent.actions):
            what = {"actions": sent.actions, "replaces": current}
            return four_eyes.request(caller, w, Request(ApprovalKind.LIFT, ApprovalKind.LIFT, {}, what))
        if current != sent.actions:
            _set(caller, w, sent.actions)
    return respond(FourEyesView(actions=sent.actions))


def perform_lifting(caller: Caller, w: Writing, approved: Approval) -> None:
    """Set what was requested.

    Raises:
        Forbidden: the caller is a key. An admin could have made it to approve the own request.
        Conflict: the setting was changed meanwhile.
    """
    require_user(caller)
    if approvals.read_four_eyes(w, caller.client_id) != approved.request["replaces"]:
        raise Conflict("Approval.SubjectChanged", "The setting was changed after this was requested.")
    _set(caller, w, [ApprovalKind(action) for action in approved.request["actions"]])


def _set(caller: Caller, w: Writing, actions: Sequence[ApprovalKind]) -> None:
    approvals.set_four_eyes(w, caller.client_id, actions)
    caller.audit(w, "Client.FourEyesSet", fourEyes=",".join(actions) or NO_FOUR_EYES)
