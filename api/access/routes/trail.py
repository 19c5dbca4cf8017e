"""The audit trail of a client, and names for those who act in it."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.access.schemas import (
    ActionListView,
    ActorListView,
    ActorsQuery,
    ActorView,
    EntryView,
    SubjectView,
    TrailQuery,
    TrailView,
    cursor_text,
)
from api.access.subjects import find_subjects
from api.http.dependencies import Allow, Caller
from api.http.documented import envelope
from api.http.responses import respond
from api.http.route import Route
from storage.access import actors
from storage.access.keys import SCOPES
from storage.core import audit
from storage.core.audit import Filter

router = APIRouter(route_class=Route, prefix="/v1", tags=["Access"])
Admin = Annotated[Caller, Depends(Allow("access:manage"))]
Anybody = Annotated[Caller, Depends(Allow(*SCOPES))]


@router.get("/audit", response_model=envelope(TrailView))
def list_audit_entries(caller: Admin, query: Annotated[TrailQuery, Query()]) -> Response:
    """List what was done by or for the client, newest first. Entries are never changed or deleted."""
    wanted = Filter(query.who, query.action, query.since)
    with caller.reading() as r:
        found, following = audit.find_page(r, caller.client_id, wanted, query.cursor, query.count)
        concerned = [*find_subjects(r, caller, found)] if query.include_subjects else None
    cursor = None if following is None else cursor_text(following)
    subjects = None if concerned is None else [SubjectView.of(each) for each in concerned]
    return respond(TrailView(entries=[EntryView.of(entry) for entry in found], subjects=subjects, next_cursor=cursor))


@router.get("/audit/actions", response_model=envelope(ActionListView))
def list_audit_actions(caller: Admin) -> Response:
    """List the actions that are in the audit trail, each once."""
    with caller.reading() as r:
        return respond(ActionListView(actions=audit.find_actions(r, caller.client_id)))


@router.get("/actors", response_model=envelope(ActorListView))
def list_actors(caller: Anybody, query: Annotated[ActorsQuery, Query()]) -> Response:
    """Return the names behind values of `who`, `madeBy` or `setBy`: of users, API keys, the operator or the service.

    A value that stands for nobody at this client has the kind `unknown`.
    """
    with caller.reading() as r:
        found = actors.name_actors(r, caller.client_id, query.who)
    return respond(ActorListView(actors=[ActorView.of(each) for each in found]))
