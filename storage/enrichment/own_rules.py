"""Clients' own rules, and which version of them is used for which client.

A version never changes. Activating one adds a row to a table that only grows; a client's last row applies. Going back
to another version, or to the shipped rules alone, adds another row, so the table shows who chose which, and when.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, insert, select

from pipelines.enrichment.own_rules import OwnRules
from pipelines.vocabulary.errors import Corrupt, NotFound
from storage.access.keys import require_client
from storage.core.choices import find_last_chosen
from storage.core.database import AnyRow, Reading, Writing
from storage.core.models import own_rule_uses, own_rules
from storage.enrichment.category_models import enrich_again


@dataclass(frozen=True)
class StoredRules:
    """A version of a client's own rules, in the order of the table's columns."""

    client_id: UUID
    version: int  # from 1
    fingerprint: str
    created_at: datetime
    created_by: str


def add(w: Writing, client_id: UUID, rules: OwnRules, who: str, now: datetime) -> StoredRules:
    """Store rules as the client's next version, unless a version is equal. They are not used yet.

    Raises:
        NotFound: there is no such client.
    """
    require_client(w, client_id)
    same = _SHOWN.where(own_rules.c.client_id == client_id, own_rules.c.fingerprint == rules.fingerprint)
    if (equal := w.execute(same).first()) is not None:
        return _as_stored(equal)
    newest = select(func.max(own_rules.c.version)).where(own_rules.c.client_id == client_id)
    added = StoredRules(client_id, (w.execute(newest).scalar() or 0) + 1, rules.fingerprint, now, who)
    w.execute(insert(own_rules).values(**vars(added), content=rules.content))
    return added


def find(r: Reading, client_id: UUID | None = None) -> list[StoredRules]:
    """Return all versions of one client's own rules, or of all clients', oldest first."""
    query = _SHOWN if client_id is None else _SHOWN.where(own_rules.c.client_id == client_id)
    return [_as_stored(row) for row in r.execute(query.order_by(own_rules.c.client_id, own_rules.c.version))]


def get(r: Reading, client_id: UUID, version: int) -> StoredRules:
    """Return the client's version with this number.

    Raises:
        NotFound: there is none.
    """
    query = _SHOWN.where(own_rules.c.client_id == client_id, own_rules.c.version == version)
    row = r.execute(query).first()
    if row is None:
        raise NotFound("OwnRules.NotFound", f"The client has no version {version} of own rules.")
    return _as_stored(row)


def read_content(r: Reading, client_id: UUID, version: int) -> bytes:
    """Return the rules as `OwnRules.content` gave them."""
    query = select(own_rules.c.content).where(own_rules.c.client_id == client_id, own_rules.c.version == version)
    found: bytes | None = r.execute(query).scalar()
    if found is None:
        raise Corrupt("OwnRules.Missing", f"Version {version} of a client's own rules is used, but not stored.")
    return found


def activate(w: Writing, client_id: UUID, version: int, who: str, now: datetime) -> StoredRules:
    """Use a version for the client from now on. Its customers are enriched again.

    Raises:
        NotFound: the client has no such version.
    """
    chosen = get(w, client_id, version)
    _use(w, client_id, version, who, now)
    return chosen


def deactivate(w: Writing, client_id: UUID, who: str, now: datetime) -> int | None:
    """Go back to the shipped rules alone. Return the version used until now."""
    used = uses(w).get(client_id)
    if used is not None:
        _use(w, client_id, None, who, now)
    return used


def uses(r: Reading) -> dict[UUID, int]:
    """Return the version in use for each client that has one."""
    return find_last_chosen(r, own_rule_uses.c.version)


def was_changed_since(r: Reading, client_id: UUID, moment: datetime) -> bool:
    """Return whether the client chose other rules after a time."""
    later = (own_rule_uses.c.client_id == client_id) & (own_rule_uses.c.used_from > moment)
    return r.execute(select(own_rule_uses.c.number).where(later).limit(1)).first() is not None


def _use(w: Writing, client_id: UUID, version: int | None, who: str, now: datetime) -> None:
    w.execute(insert(own_rule_uses).values(client_id=client_id, version=version, used_from=now, who=who))
    enrich_again(w, client_id, now)


_SHOWN = select(*(column for column in own_rules.c if column.name != "content"))


def _as_stored(row: AnyRow) -> StoredRules:
    return StoredRules(*row)
