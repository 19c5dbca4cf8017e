"""A client's API keys."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.access.routes.granting import NOT_HELD, USER_NEEDED, require_held, require_user
from api.access.schemas import IssuedKeyView, KeyListView, KeyView, NewKey, Rotation
from api.core.schemas.common import Paging
from api.http.dependencies import Allow, Caller, KeyId
from api.http.documented import envelope, refuses
from api.http.responses import respond, respond_list
from api.http.route import Route
from pipelines.vocabulary.errors import Fault, InvalidRequest
from storage.access import keys
from storage.access.keys import Key
from storage.core.database import Writing

router = APIRouter(route_class=Route, prefix="/v1/keys", tags=["Access"])
Admin = Annotated[Caller, Depends(Allow("access:manage"))]
EXPIRED = "Key.ExpiryPast"


@router.get("", response_model=envelope(KeyListView))
def list_keys(caller: Admin, query: Annotated[Paging, Query()]) -> Response:
    """List API keys, newest first, including those that have ended. The keys themselves are not stored."""
    with caller.reading() as r:
        return respond_list("keys", keys.find_page(r, caller.client_id, query.requested_page()), KeyView)


@router.post(
    "",
    status_code=201,
    response_model=envelope(IssuedKeyView),
    responses=refuses(USER_NEEDED, NOT_HELD, EXPIRED),
)
def create_key(caller: Admin, new: NewKey) -> Response:
    """Create an API key. Only signed-in users can do this. The key is in this response and in no other."""
    require_user(caller)
    require_held(caller, new.scopes)
    if new.expires_at is not None and new.expires_at <= caller.now:
        past = Fault("/expiresAt", EXPIRED, "expiresAt is in the past.")
        raise InvalidRequest(EXPIRED, past.message, (past,))
    prefix = caller.store.settings.key_prefix
    with caller.writing() as w:
        key, secret = keys.create_key(w, caller.client_id, new.scopes, new.expires_at, prefix, caller.now)
        caller.audit(w, "Key.Created", keyId=key.key_id)
    return respond(_issued_key_view(key, secret), status=201, headers={"Location": f"/v1/keys/{key.key_id}"})


@router.get("/{keyId}", response_model=envelope(KeyView))
def get_key(caller: Admin, key_id: KeyId) -> Response:
    """Read one API key, without its text."""
    with caller.reading() as r:
        return respond(KeyView.of(caller.key(r, key_id)))


@router.post(
    "/{keyId}/rotate",
    response_model=envelope(IssuedKeyView),
    responses=refuses(USER_NEEDED, NOT_HELD, "Key.AlreadyRotated"),
)
def rotate_key(caller: Admin, key_id: KeyId, wanted: Rotation) -> Response:
    """Replace an API key by a new one with the same scopes. Both are valid until the overlap ends.

    Only signed-in users can do this. The new key is in this response and in no other. A key that has ended can't be
    rotated.
    """
    with caller.writing() as w:
        old = _key_to_change(w, caller, key_id)
        require_held(caller, old.scopes)
        overlap = timedelta(hours=wanted.overlap_hours)
        key, secret = keys.rotate(w, old.key_id, overlap, caller.store.settings.key_prefix, caller.now)
        caller.audit(w, "Key.Rotated", keyId=old.key_id, successorKeyId=key.key_id)
    return respond(_issued_key_view(key, secret))


@router.post("/{keyId}/revoke", response_model=envelope(KeyView), responses=refuses(USER_NEEDED))
def revoke_key(caller: Admin, key_id: KeyId) -> Response:
    """Revoke an API key. Only signed-in users can do this.

    The next request with the key is refused; this can't be undone.
    """
    with caller.writing() as w:
        key = _key_to_change(w, caller, key_id)
        keys.revoke(w, key.key_id, caller.now)
        caller.audit(w, "Key.Revoked", keyId=key.key_id)
        return respond(KeyView.of(keys.get(w, caller.client_id, key.key_id)))


def _key_to_change(w: Writing, caller: Caller, key_id: str) -> Key:
    """Return the key, then require a signed-in user. In this order, an unknown key is a 404 for every caller."""
    key = caller.key(w, key_id)
    require_user(caller)
    return key


def _issued_key_view(key: Key, secret: str) -> IssuedKeyView:
    return IssuedKeyView.of(vars(key) | {"key": secret})
