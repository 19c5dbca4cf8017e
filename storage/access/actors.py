"""Names for the actors that responses identify by `who`: users, API keys, the operator, and the service itself."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from sqlalchemy import select

from storage.access.users import ERASED
from storage.core.audit import ANONYMOUS, OPERATOR, SERVICE
from storage.core.database import Reading
from storage.core.models import api_keys, audit, users


class ActorKind(StrEnum):
    USER = "user"
    KEY = "key"
    OPERATOR = "operator"
    SERVICE = "service"
    ANONYMOUS = "anonymous"  # a caller without a valid key
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class NamedActor:
    who: str
    kind: ActorKind
    name: str  # to be shown to people


_OTHERS = {
    OPERATOR.who: (ActorKind.OPERATOR, "Operator"),
    SERVICE.who: (ActorKind.SERVICE, "Tidemark"),
    ANONYMOUS: (ActorKind.ANONYMOUS, "Caller without a valid key"),
}
_ERASED = (ActorKind.USER, "A removed user")
_UNKNOWN = (ActorKind.UNKNOWN, "Unknown")


def name_actors(r: Reading, client_id: UUID, actors: Iterable[str]) -> list[NamedActor]:
    """Return the named actor for each of `actors`, in this order. Ids that aren't the client's are unknown."""
    wanted = list(actors)
    ids = [UUID(who) for who in wanted if who not in _OTHERS and _is_id(who)]
    known = {**_OTHERS, **_users(r, client_id, ids), **_keys(r, client_id, ids)}
    if any(str(id_) not in known for id_ in ids):
        known |= _find_erased_users(r, client_id)
    return [NamedActor(who, *known.get(who, _UNKNOWN)) for who in wanted]


def _users(r: Reading, client_id: UUID, ids: list[UUID]) -> Mapping[str, tuple[ActorKind, str]]:
    query = select(users.c.user_id, users.c.name).where(users.c.client_id == client_id, users.c.user_id.in_(ids))
    return {str(row.user_id): (ActorKind.USER, row.name) for row in r.execute(query)}


def _keys(r: Reading, client_id: UUID, ids: list[UUID]) -> Mapping[str, tuple[ActorKind, str]]:
    query = select(api_keys.c.key_id, api_keys.c.hint)
    query = query.where(api_keys.c.client_id == client_id, api_keys.c.key_id.in_(ids))
    return {str(row.key_id): (ActorKind.KEY, f"API key {row.hint}") for row in r.execute(query)}


def _find_erased_users(r: Reading, client_id: UUID) -> Mapping[str, tuple[ActorKind, str]]:
    """Return the client's erased users: only the audit trail still shows that their ids were users'."""
    query = select(audit.c.resource).where(audit.c.client_id == client_id, audit.c.action == ERASED)
    return {resource["userId"]: _ERASED for resource in r.execute(query).scalars()}


def _is_id(who: str) -> bool:
    try:
        return str(UUID(who)) == who
    except ValueError:
        return False
