"""Users: the people of a client who sign in to the console. Each has a role, which grants scopes."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from pipelines.vocabulary.errors import Conflict, NotFound
from storage.access import keys
from storage.access.roles import Role
from storage.access.tokens import hash_token
from storage.core.database import AnyRow, Reading, Writing, read_values
from storage.core.models import sessions, sign_in_links, users
from storage.core.paging import Page, Paged, count_total, limit_to_page

MAX_FAILURES = 5  # wrong passwords in a row before a user is locked out: our judgement
LOCKED_FOR = timedelta(minutes=15)  # our judgement
LINK_BYTES = 16  # random: nobody guesses 2^128 within the hours that a link lasts, and it fits a terminal's line
ERASED = "User.Erased"  # an action in the audit trail: from then on only it shows that the id was a user's


@dataclass(frozen=True)
class User:
    user_id: UUID
    client_id: UUID
    email: str  # in lower case
    name: str
    role: Role
    password_hash: str | None
    failures: int  # wrong passwords since the last right one
    locked_until: datetime | None
    created_at: datetime
    disabled_at: datetime | None

    def may_sign_in(self, now: datetime) -> bool:
        return self.disabled_at is None and (self.locked_until is None or self.locked_until <= now)


def create(w: Writing, client_id: UUID, email: str, name: str, role: Role, now: datetime) -> User:
    """Create a user without a password.

    Raises:
        NotFound: there is no such client.
        Conflict: a user has this address.
    """
    keys.require_client(w, client_id)
    user = User(uuid4(), client_id, email.lower(), name, role, None, 0, None, now, None)
    try:
        w.execute(insert(users).values(vars(user)))
    except IntegrityError:
        raise Conflict("User.AddressTaken", "Another user has this email address.") from None
    return user


def find(r: Reading, client_id: UUID | None = None, page: Page | None = None) -> Paged[User]:
    """Return users, ordered by address: all, or a client's."""
    query = select(users).order_by(users.c.email)
    if client_id is not None:
        query = query.where(users.c.client_id == client_id)
    return Paged([_user(row) for row in r.execute(limit_to_page(query, page))], count_total(r, query), page)


def get(r: Reading, user_id: UUID, client_id: UUID | None = None) -> User:
    """Return a user, if it is the client's.

    Raises:
        NotFound: there is none.
    """
    query = select(users).where(users.c.user_id == user_id)
    if client_id is not None:
        query = query.where(users.c.client_id == client_id)
    row = r.execute(query).first()
    if row is None:
        raise _not_found()
    return _user(row)


def with_email(r: Reading, email: str) -> User | None:
    row = r.execute(select(users).where(users.c.email == email.lower())).first()
    return None if row is None else _user(row)


def set_name(w: Writing, user: User, name: str) -> None:
    _update(w, user.user_id, name=name)


def set_role(w: Writing, user: User, role: Role) -> None:
    """Change the role. It applies to the user's next request."""
    _update(w, user.user_id, role=role)


def set_password(w: Writing, user: User, password_hash: str) -> None:
    """Change the password, and end the user's sessions and unused links."""
    _update(w, user.user_id, password_hash=password_hash, failures=0, locked_until=None)
    _sign_out_everywhere(w, user)


def disable(w: Writing, user: User, now: datetime) -> None:
    """Disable the user, and end its sessions and unused links."""
    _update(w, user.user_id, disabled_at=now)
    _sign_out_everywhere(w, user)


def erase(w: Writing, user: User) -> None:
    """Delete the user, with its sessions and links. Records of what the user did stay; they have only the user's id.

    Raises:
        NotFound: it was erased meanwhile.
    """
    _lock(w, user, for_erasure=True)
    _sign_out_everywhere(w, user)
    w.execute(delete(users).where(users.c.user_id == user.user_id))


def require_stored(w: Writing, user: User) -> None:
    """Require that the user still exists, and keep it from being erased until this transaction ends.

    Raises:
        NotFound: it was erased.
    """
    _lock(w, user, for_erasure=False)


def require_other_admin(w: Writing, user: User) -> None:
    """If this user is an admin, require that its client has another one until this transaction ends.

    Disabled admins don't count.

    Raises:
        Conflict: this user is the only one; without it, nobody could manage the client's users.
    """
    if user.role is not Role.ADMIN or user.disabled_at is not None:
        return
    keys.lock_client(w, user.client_id)
    others = select(func.count()).where(
        users.c.client_id == user.client_id,
        users.c.role == Role.ADMIN,
        users.c.disabled_at.is_(None),
        users.c.user_id != user.user_id,
    )
    if w.execute(others).scalar_one() == 0:
        raise Conflict("User.LastAdmin", "This is the client's only admin. Make another user an admin first.")


def enable(w: Writing, user: User) -> None:
    """Enable a disabled or locked user."""
    _update(w, user.user_id, disabled_at=None, failures=0, locked_until=None)


def count_failure(w: Writing, user: User, now: datetime) -> bool:
    """Count a wrong password. Return whether it locks the user out."""
    statement = update(users).where(users.c.user_id == user.user_id).values(failures=users.c.failures + 1)
    failures: int | None = w.execute(statement.returning(users.c.failures)).scalar_one_or_none()
    if failures is None or failures < MAX_FAILURES:  # None: the user was erased meanwhile
        return False
    _update(w, user.user_id, failures=0, locked_until=now + LOCKED_FOR)
    return True


def forget_failures(w: Writing, user: User) -> None:
    _update(w, user.user_id, failures=0, locked_until=None)


def create_link(w: Writing, user: User, expires_at: datetime) -> str:
    """Create a link that signs the user in once, and return its token."""
    require_stored(w, user)
    token = secrets.token_urlsafe(LINK_BYTES)
    values = {"token_hash": hash_token(token), "user_id": user.user_id, "expires_at": expires_at}
    w.execute(insert(sign_in_links).values(values))
    return token


def follow_link(w: Writing, token: str, now: datetime) -> User | None:
    """Return the user of a link, which can't be used again; None if it was used, has expired or never existed."""
    statement = delete(sign_in_links).where(sign_in_links.c.token_hash == hash_token(token))
    row = w.execute(statement.returning(sign_in_links.c.user_id, sign_in_links.c.expires_at)).first()
    if row is None or row.expires_at <= now:
        return None
    user = get(w, row.user_id)
    return user if user.disabled_at is None else None


def _lock(w: Writing, user: User, *, for_erasure: bool) -> None:
    selected = select(users.c.user_id).where(users.c.user_id == user.user_id)
    if w.execute(selected.with_for_update(read=not for_erasure, key_share=not for_erasure)).first() is None:
        raise _not_found()


def _not_found() -> NotFound:
    return NotFound("User.NotFound", "There is no user with this id.")


def _sign_out_everywhere(w: Writing, user: User) -> None:
    for table in (sessions, sign_in_links):
        w.execute(delete(table).where(table.c.user_id == user.user_id))


def _update(w: Writing, user_id: UUID, **values: object) -> None:
    w.execute(update(users).where(users.c.user_id == user_id).values(values))


def _user(row: AnyRow) -> User:
    return User(**read_values(row, role=Role(row.role)))
