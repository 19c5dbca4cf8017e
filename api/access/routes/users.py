"""Users of the console and their roles."""

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.access.routes.granting import NOT_HELD, USER_NEEDED, require_held, require_user
from api.access.schemas import (
    ChangedUser,
    ErasedUserView,
    InvitedUserView,
    LinkView,
    NewUser,
    RoleListView,
    RoleView,
    UserListView,
    UserView,
)
from api.core.schemas.common import Paging
from api.http.dependencies import Allow, Caller, UserId
from api.http.documented import envelope, refuses
from api.http.responses import respond, respond_list
from api.http.route import Route
from storage.access import users
from storage.access.keys import SCOPES
from storage.access.roles import GRANTS, Role
from storage.access.users import User
from storage.core.database import Writing

router = APIRouter(route_class=Route, prefix="/v1", tags=["Access"])
Admin = Annotated[Caller, Depends(Allow("access:manage"))]
LINK_LASTS = timedelta(hours=24)  # our judgement
LAST_ADMIN = "User.LastAdmin"


@router.get("/roles", response_model=envelope(RoleListView))
def list_roles(caller: Admin) -> Response:  # noqa: ARG001  # checks the scope
    """List the roles and the scopes that each grants."""
    roles = [RoleView(role=role, scopes=sorted(granted, key=SCOPES.index)) for role, granted in GRANTS.items()]
    return respond(RoleListView(roles=roles))


@router.get("/users", response_model=envelope(UserListView))
def list_users(caller: Admin, query: Annotated[Paging, Query()]) -> Response:
    """List users by email address, including disabled ones."""
    with caller.reading() as r:
        return respond_list("users", users.find(r, caller.client_id, query.requested_page()), UserView)


@router.post(
    "/users",
    status_code=201,
    response_model=envelope(InvitedUserView),
    responses=refuses(USER_NEEDED, NOT_HELD, "User.AddressTaken"),
)
def create_user(caller: Admin, new: NewUser) -> Response:
    """Create a user. Only signed-in users can do this. The link to sign in is in this response and in no other."""
    require_user(caller)
    require_held(caller, GRANTS[new.role])
    with caller.writing() as w:
        user = users.create(w, caller.client_id, new.email, new.name, new.role, caller.now)
        caller.audit(w, "User.Created", userId=user.user_id)
        link, expires_at = _new_link(w, caller, user)
    shown = InvitedUserView.of(vars(user) | {"link": link, "link_expires_at": expires_at})
    return respond(shown, status=201, headers={"Location": f"/v1/users/{user.user_id}"})


@router.get("/users/{userId}", response_model=envelope(UserView))
def get_user(caller: Admin, user_id: UserId) -> Response:
    """Read one user."""
    with caller.reading() as r:
        return respond(UserView.of(caller.user(r, user_id)))


@router.patch(
    "/users/{userId}", response_model=envelope(UserView), responses=refuses(USER_NEEDED, NOT_HELD, LAST_ADMIN)
)
def change_user(caller: Admin, user_id: UserId, sent: ChangedUser) -> Response:
    """Change a user's name or role. Only signed-in users can do this.

    A role applies from the user's next request on.
    """
    with caller.writing() as w:
        user = _user_to_change(w, caller, user_id)
        if sent.name is not None and sent.name != user.name:
            users.set_name(w, user, sent.name)
            caller.audit(w, "User.Renamed", userId=user.user_id)
        if sent.role is not None and sent.role is not user.role:
            require_held(caller, GRANTS[user.role] | GRANTS[sent.role])
            if sent.role is not Role.ADMIN:
                users.require_other_admin(w, user)
            users.set_role(w, user, sent.role)
            caller.audit(w, "User.RoleChanged", userId=user.user_id)
        return respond(UserView.of(users.get(w, user.user_id)))


@router.post("/users/{userId}/disable", response_model=envelope(UserView), responses=refuses(USER_NEEDED, LAST_ADMIN))
def disable_user(caller: Admin, user_id: UserId) -> Response:
    """Disable a user. Only signed-in users can do this. The sessions end; what the user did stays recorded."""
    with caller.writing() as w:
        user = _user_to_change(w, caller, user_id)
        users.require_other_admin(w, user)
        users.disable(w, user, caller.now)
        caller.audit(w, "User.Disabled", userId=user.user_id)
        return respond(UserView.of(users.get(w, user.user_id)))


@router.post("/users/{userId}/enable", response_model=envelope(UserView), responses=refuses(USER_NEEDED, NOT_HELD))
def enable_user(caller: Admin, user_id: UserId) -> Response:
    """Enable a user who is disabled, or locked out after wrong passwords. Only signed-in users can do this."""
    with caller.writing() as w:
        user = _user_to_change(w, caller, user_id)
        require_held(caller, GRANTS[user.role])
        users.enable(w, user)
        caller.audit(w, "User.Enabled", userId=user.user_id)
        return respond(UserView.of(users.get(w, user.user_id)))


@router.delete("/users/{userId}", response_model=envelope(ErasedUserView), responses=refuses(USER_NEEDED, LAST_ADMIN))
def erase_user(caller: Admin, user_id: UserId) -> Response:
    """Erase a user's name, email address and password. Only signed-in users can do this. The sessions end.

    What the user did stays recorded under the user's id, which `GET /v1/actors` then calls a removed user. Texts that
    people typed stay, too: notes, reasons, and who is named as having decided on an override.
    """
    with caller.writing() as w:
        user = _user_to_change(w, caller, user_id)
        users.require_other_admin(w, user)
        users.erase(w, user)
        caller.audit(w, users.ERASED, userId=user.user_id)
    return respond(ErasedUserView(user_id=user.user_id))


@router.post("/users/{userId}/link", response_model=envelope(LinkView), responses=refuses(USER_NEEDED, NOT_HELD))
def make_link(caller: Admin, user_id: UserId) -> Response:
    """Make a link that signs a user in once, for example after a forgotten password.

    Only signed-in users can do this.
    """
    with caller.writing() as w:
        user = _user_to_change(w, caller, user_id)
        require_held(caller, GRANTS[user.role])
        link, expires_at = _new_link(w, caller, user)
        caller.audit(w, "User.LinkMade", userId=user.user_id)
    return respond(LinkView(user_id=user.user_id, link=link, expires_at=expires_at))


def _user_to_change(w: Writing, caller: Caller, user_id: str) -> User:
    """Return the user. Keys are refused only afterwards, so a user that doesn't exist is a 404 for them, too."""
    user = caller.user(w, user_id)
    require_user(caller)
    return user


def _new_link(w: Writing, caller: Caller, user: User) -> tuple[str, datetime]:
    expires_at = caller.now + LINK_LASTS
    return f"/sign-in/link?token={users.create_link(w, user, expires_at)}", expires_at
