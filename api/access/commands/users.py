"""Commands for users: the people who sign in to the console."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import typer

from api.core.commands import ids
from api.core.commands.console import AsJson, complaint, duration, now, opened_store, print_record, print_records
from storage.access import passwords
from storage.access import users as stored
from storage.access.roles import Role
from storage.access.users import User
from storage.core import audit
from storage.core.audit import OPERATOR
from storage.core.database import Writing

users = typer.Typer(help="Users: the people who sign in to the console.", no_args_is_help=True)

Email = Annotated[str, typer.Argument(help="The user's email address.")]
Url = Annotated[str, typer.Option(help="The console's address, for links.")]
URL = "http://127.0.0.1:8000"
LINK_LASTS = "24h"


@users.command("create")
def create_user(
    email: Email,
    client: Annotated[UUID, typer.Option(parser=ids.CLIENT, metavar="ID", help="The client's id.")],
    role: Annotated[Role, typer.Option(help="What the user may do.")],
    name: Annotated[str, typer.Option(help="The user's name, as colleagues see it.")],
    url: Url = URL,
    as_json: AsJson = False,
) -> None:
    """Create a user, and print a link with which the user signs in once and sets a password.

    Example: tidemark users create ada@example.com --client 2f0c… --role analyst --name "Ada Lovelace"
    """
    if "@" not in email:
        raise typer.BadParameter("an email address has an @")
    at = now()
    with opened_store() as store, store.db.writing() as w:
        user = stored.create(w, client, email, name, role, at)
        _audit(w, "User.Created", user, at)
        token = stored.create_link(w, user, at + duration(LINK_LASTS))
    print_record({**_user(user), "link": sign_in_link(url, token)}, as_json=as_json)


@users.command("list")
def list_users(
    client: Annotated[
        UUID | None, typer.Option(parser=ids.CLIENT, metavar="ID", help="Only users of this client.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List users.

    Example: tidemark users list --client 2f0c…
    """
    with opened_store() as store, store.db.reading() as r:
        found = stored.find(r, client)
    columns = ("email", "name", "role", "clientId", "disabledAt", "lockedUntil")
    print_records([_user(user) for user in found.items], as_json=as_json, empty="No users yet.", columns=columns)


@users.command("link")
def make_link(
    email: Email,
    expires_in: Annotated[str, typer.Option(help="How long it can be used.")] = LINK_LASTS,
    url: Url = URL,
    as_json: AsJson = False,
) -> None:
    """Print a link with which a user signs in once, for example to set a forgotten password.

    Example: tidemark users link ada@example.com
    """
    at = now()
    with opened_store() as store, store.db.writing() as w:
        user = _with_email(w, email)
        token = stored.create_link(w, user, at + duration(expires_in))
        _audit(w, "User.LinkMade", user, at)
    print_record({"link": sign_in_link(url, token)}, as_json=as_json)


@users.command("role")
def set_role(
    email: Email, role: Annotated[Role, typer.Argument(help="The new role.")], as_json: AsJson = False
) -> None:
    """Change a user's role, from the user's next request on.

    Example: tidemark users role ada@example.com approver
    """
    with opened_store() as store, store.db.writing() as w:
        user = _with_email(w, email)
        stored.set_role(w, user, role)
        _audit(w, "User.RoleChanged", user, now())
    print_record({**_user(user), "role": role}, as_json=as_json)


@users.command("password")
def set_password(email: Email) -> None:
    """Set a user's password, which is read from standard input. All sessions of the user end.

    Example: tidemark users password ada@example.com
    """
    password_hash = passwords.hash_password(typer.prompt("New password", hide_input=True))
    with opened_store() as store, store.db.writing() as w:
        user = _with_email(w, email)
        stored.set_password(w, user, password_hash)
        _audit(w, "User.PasswordChanged", user, now())


@users.command("disable")
def disable(email: Email) -> None:
    """Disable a user, whose sessions end. What the user did stays recorded.

    Example: tidemark users disable ada@example.com
    """
    with opened_store() as store, store.db.writing() as w:
        user = _with_email(w, email)
        stored.disable(w, user, now())
        _audit(w, "User.Disabled", user, now())


@users.command("erase")
def erase(email: Email) -> None:
    """Erase a user's name, address and password. The user's sessions end.

    What the user did stays recorded, by the user's id. This can't be undone.

    Example: tidemark users erase ada@example.com
    """
    with opened_store() as store, store.db.writing() as w:
        user = _with_email(w, email)
        stored.erase(w, user)
        _audit(w, stored.ERASED, user, now())


@users.command("enable")
def enable(email: Email) -> None:
    """Enable a disabled user, or one who is locked out after wrong passwords.

    Example: tidemark users enable ada@example.com
    """
    with opened_store() as store, store.db.writing() as w:
        user = _with_email(w, email)
        stored.enable(w, user)
        _audit(w, "User.Enabled", user, now())


def _with_email(w: Writing, email: str) -> User:
    found = stored.with_email(w, email)
    if found is None:
        raise complaint(f"There is no user {email}.")
    return found


def _audit(w: Writing, action: str, user: User, at: datetime) -> None:
    audit.append(w, OPERATOR, action, {"userId": user.user_id}, at, client_id=user.client_id)


def sign_in_link(url: str, token: str) -> str:
    return f"{url.rstrip('/')}/sign-in/link?token={token}"


def _user(user: User) -> dict[str, Any]:
    return {
        "userId": user.user_id,
        "clientId": user.client_id,
        "email": user.email,
        "name": user.name,
        "role": user.role,
        "dateCreated": user.created_at,
        "disabledAt": user.disabled_at,
        "lockedUntil": user.locked_until,
    }
