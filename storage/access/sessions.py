"""Sessions of signed-in users. The token is in a cookie; only its SHA-256 is stored."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, insert, select, update

from storage.access import users
from storage.access.keys import Principal
from storage.access.roles import GRANTS
from storage.access.tokens import hash_token
from storage.access.users import User
from storage.core.database import Reading, Writing
from storage.core.models import clients, sessions, sign_in_links

LIFETIME = timedelta(hours=12)  # a working day: our judgement
MAX_IDLE = timedelta(hours=1)  # a session without a request for so long has ended: our judgement
TOUCH_EVERY = timedelta(
    minutes=1
)  # the last request is stored this often at most, so that reading a page rarely writes


@dataclass(frozen=True)
class Session:
    token: str
    user: User
    client_name: str
    decision_policies: bool  # whether they are enabled for the client
    seen_at: datetime  # the last request, to within TOUCH_EVERY

    @property
    def principal(self) -> Principal:
        user = self.user
        return Principal(user.client_id, user.user_id, GRANTS[user.role], self.decision_policies, is_user=True)


def start(w: Writing, user: User, now: datetime) -> str:
    """Return the token of a new session.

    Raises:
        NotFound: the user was erased meanwhile.
    """
    users.require_stored(w, user)
    token = secrets.token_urlsafe(32)
    values = {"token_hash": hash_token(token), "user_id": user.user_id, "created_at": now, "seen_at": now}
    w.execute(insert(sessions).values(values | {"expires_at": now + LIFETIME}))
    return token


def find(r: Reading, token: str, now: datetime) -> Session | None:
    """Return the session of a token, or None if it has ended or its user is disabled."""
    row = r.execute(
        select(sessions.c.user_id, sessions.c.seen_at)
        .where(sessions.c.token_hash == hash_token(token))
        .where(sessions.c.expires_at > now, sessions.c.seen_at > now - MAX_IDLE)
    ).first()
    if row is None or (user := users.get(r, row.user_id)).disabled_at is not None:
        return None
    client = r.execute(
        select(clients.c.name, clients.c.decision_policies).where(clients.c.client_id == user.client_id)
    ).one()
    return Session(token, user, client.name, client.decision_policies, row.seen_at)


def is_stale(session: Session, now: datetime) -> bool:
    """Return whether `touch` is due."""
    return now - session.seen_at >= TOUCH_EVERY


def touch(w: Writing, session: Session, now: datetime) -> None:
    """Store that the session was used."""
    w.execute(update(sessions).where(sessions.c.token_hash == hash_token(session.token)).values(seen_at=now))


def end(w: Writing, session: Session) -> None:
    w.execute(delete(sessions).where(sessions.c.token_hash == hash_token(session.token)))


def sweep(w: Writing, now: datetime) -> None:
    """Delete sessions and links that have ended."""
    w.execute(delete(sessions).where((sessions.c.expires_at <= now) | (sessions.c.seen_at <= now - MAX_IDLE)))
    w.execute(delete(sign_in_links).where(sign_in_links.c.expires_at <= now))
