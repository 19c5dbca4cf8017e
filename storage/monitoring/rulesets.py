"""Monitoring rulesets. Each has versions that are never rewritten; the newest one is in force.

A ruleset watches while it is active and not archived. Whenever the watching rulesets change, the same transaction
requests a ruleset evaluation of the customers concerned (`storage.monitoring.evaluation_requests`), so that they need
not wait for the night. When a ruleset stops watching, the states of its rules are deleted: if it is switched on again,
all conditions that are true then trigger.

A ruleset evaluation is applied in a transaction that locks the rulesets (`lock_watching`), so a change of a ruleset
comes before or after, never in between.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

from pydantic import ValidationError
from sqlalchemy import ColumnElement, and_, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from pipelines.decisions.canonical import canonical
from pipelines.monitoring import Listed, Ruleset, RulesetKey, VersionedRuleset
from pipelines.vocabulary.errors import Conflict, Corrupt, Fault, InvalidRequest, NotFound
from storage.access import keys
from storage.core.database import AnySelect, Reading, Writing, insert_into
from storage.core.models import customers, monitoring_ruleset_versions, monitoring_rulesets, rule_states
from storage.core.paging import Page, Paged, count_total, limit_to_page
from storage.customers.customers import Customer, numbers
from storage.monitoring import evaluation_requests

MAX_RULESETS = 200  # of a client, including archived ones
MAX_CACHED = 1_000  # versions per process: reading one takes longer than evaluating it

log = logging.getLogger(__name__)

_ROW = monitoring_rulesets.c
_VERSION = monitoring_ruleset_versions.c


@dataclass(frozen=True)
class StoredRuleset:
    """A ruleset's current state, with the document of its newest version."""

    ruleset_id: UUID
    client_id: UUID
    slug: str
    name: str
    version: int
    active: bool
    archived_at: datetime | None
    created_at: datetime
    updated_at: datetime
    created_by: str
    document: str  # canonical JSON
    sha256: bytes  # of it

    @property
    def is_archived(self) -> bool:
        return self.archived_at is not None

    @property
    def watches(self) -> bool:
        return self.active and not self.is_archived

    @cached_property
    def ruleset(self) -> Ruleset:
        return _parse(self.document, self.sha256)


@dataclass(frozen=True)
class RulesetVersion:
    """A version of a ruleset, in the order of the table's columns."""

    ruleset_id: UUID
    version: int
    document: str  # canonical JSON
    sha256: bytes  # of it
    created_at: datetime
    created_by: str

    @cached_property
    def ruleset(self) -> Ruleset:
        return _parse(self.document, self.sha256)


@dataclass(frozen=True)
class ActiveRuleset:
    """A ruleset that watches, and its version in force."""

    client_id: UUID
    ruleset_id: UUID
    version: int

    @property
    def key(self) -> RulesetKey:
        return self.ruleset_id, self.version


# Reading


def get(r: Reading, client_id: UUID, ruleset_id: UUID) -> StoredRuleset:
    """Return the client's ruleset, archived or not.

    Raises:
        NotFound: unknown, or another client's.
    """
    return _get(r, _SHOWN.where(_ROW.ruleset_id == ruleset_id, _ROW.client_id == client_id))


def get_of_any_client(r: Reading, ruleset_id: UUID) -> StoredRuleset:
    """Return a ruleset of any client.

    Raises:
        NotFound: unknown.
    """
    return _get(r, _SHOWN.where(_ROW.ruleset_id == ruleset_id))


def with_slug(r: Reading, client_id: UUID, slug: str) -> StoredRuleset:
    """Return the client's ruleset with this slug, archived or not.

    Raises:
        NotFound: there is none.
    """
    return _get(r, _SHOWN.where(_ROW.slug == slug, _ROW.client_id == client_id))


def find(
    r: Reading, client_id: UUID, *, include_archived: bool = False, page: Page | None = None
) -> Paged[StoredRuleset]:
    """Return the client's rulesets, including inactive ones, in the order of their slugs."""
    query = _SHOWN.where(_ROW.client_id == client_id)
    if not include_archived:
        query = query.where(_ROW.archived_at.is_(None))
    rows = r.execute(limit_to_page(query.order_by(_ROW.slug), page))
    return Paged([StoredRuleset(*row) for row in rows], count_total(r, query.with_only_columns(_ROW.ruleset_id)), page)


def find_versions(r: Reading, stored: StoredRuleset, page: Page | None = None) -> Paged[RulesetVersion]:
    """Return all versions of the ruleset, newest first."""
    query = select(monitoring_ruleset_versions).where(_VERSION.ruleset_id == stored.ruleset_id)
    rows = r.execute(limit_to_page(query.order_by(_VERSION.version.desc()), page))
    return Paged([RulesetVersion(*row) for row in rows], count_total(r, query), page)


def read_version(r: Reading, ruleset_id: UUID, number: int) -> RulesetVersion:
    """Return an existing version of the ruleset."""
    query = select(monitoring_ruleset_versions).where(_VERSION.ruleset_id == ruleset_id, _VERSION.version == number)
    return RulesetVersion(*r.execute(query).one())


# Changing


def create(w: Writing, client_id: UUID, ruleset: Ruleset, who: str, now: datetime) -> StoredRuleset:
    """Create a ruleset. If it is active, this requests a ruleset evaluation of its customers.

    Raises:
        InvalidRequest: it lists customers that are not the client's own.
        Conflict: another ruleset, archived or not, has this slug, or the client has too many rulesets.
    """
    require_own_customers(w, client_id, ruleset)
    keys.lock_client(w, client_id)  # for the count below
    ruleset_id = uuid4()
    created = {"client_id": client_id, "version": 1, "created_at": now, "updated_at": now, "created_by": who}
    new = insert_into(w, monitoring_rulesets).values(ruleset_id=ruleset_id, **created, **_content_columns(ruleset))
    unless_taken = new.on_conflict_do_nothing(index_elements=["client_id", "slug"]).returning(_ROW.ruleset_id)
    if w.execute(unless_taken).first() is None:
        raise _slug_taken(ruleset)
    if w.execute(select(func.count()).where(_ROW.client_id == client_id)).scalar_one() > MAX_RULESETS:
        raise Conflict("Ruleset.TooMany", f"A client may have {MAX_RULESETS} rulesets at most.")
    _add_version(w, ruleset_id, 1, ruleset, who, now)
    stored = get(w, client_id, ruleset_id)
    _request_evaluation(w, stored, now)
    return stored


def replace(
    w: Writing, stored: StoredRuleset, ruleset: Ruleset, who: str, now: datetime, known: int | None = None
) -> StoredRuleset:
    """Replace the ruleset by a new version. An equal document changes nothing.

    If the new version is active, a rule keeps its states as long as its code stays, and the states of removed rules are
    deleted. If it is not active, all states are deleted.

    Args:
        known: the version that it replaces; None: whichever is in force.

    Raises:
        InvalidRequest: it lists customers that are not the client's own.
        Conflict: the ruleset is archived, or another one has the new slug, or there is a newer version than the known.
    """
    stored = lock(w, stored)
    if stored.is_archived:
        raise Conflict("Ruleset.Archived", "The ruleset is archived.")
    if canonical(ruleset) == stored.document:
        return stored
    if known is not None and stored.version != known:
        detail = f"Version {stored.version} was stored meanwhile, so nothing was stored now."
        raise Conflict("Ruleset.ChangedMeanwhile", detail)
    require_own_customers(w, stored.client_id, ruleset)
    same_slug = and_(_ROW.client_id == stored.client_id, _ROW.slug == ruleset.slug)
    if w.execute(select(_ROW.ruleset_id).where(same_slug, _ROW.ruleset_id != stored.ruleset_id)).first():
        raise _slug_taken(ruleset)
    changed = {**_content_columns(ruleset), "version": stored.version + 1, "updated_at": now}
    try:
        with w.begin_nested():
            w.execute(update(monitoring_rulesets).where(_ROW.ruleset_id == stored.ruleset_id).values(changed))
    except IntegrityError:  # another transaction took the slug meanwhile
        raise _slug_taken(ruleset) from None
    _add_version(w, stored.ruleset_id, stored.version + 1, ruleset, who, now)
    _delete_states(w, stored, [rule.code for rule in ruleset.rules] if ruleset.active else [])
    replaced = get(w, stored.client_id, stored.ruleset_id)
    _request_evaluation(w, replaced, now)
    return replaced


def archive(w: Writing, stored: StoredRuleset, now: datetime) -> StoredRuleset:
    """Archive the ruleset: it no longer watches, and its rules' states are deleted. Repeating it changes nothing."""
    stored = lock(w, stored)
    if stored.is_archived:
        return stored
    _delete_states(w, stored, [])
    return _set_archived(w, stored, now, now)


def unarchive(w: Writing, stored: StoredRuleset, now: datetime) -> StoredRuleset:
    """Unarchive the ruleset. If it is active, this requests a ruleset evaluation of its customers."""
    stored = lock(w, stored)
    if not stored.is_archived:
        return stored
    restored = _set_archived(w, stored, None, now)
    _request_evaluation(w, restored, now)
    return restored


def lock(w: Writing, stored: StoredRuleset) -> StoredRuleset:
    """Lock the ruleset and return it as it is now.

    Other changes of it, and ruleset evaluations by it, wait until this transaction ends.
    """
    w.execute(select(_ROW.ruleset_id).where(_ROW.ruleset_id == stored.ruleset_id).with_for_update())
    return get_of_any_client(w, stored.ruleset_id)


# Watching


def has_watching_ruleset() -> ColumnElement[bool]:
    """Return the SQL condition that a customer's client has a ruleset that watches."""
    return customers.c.client_id.in_(select(_ROW.client_id).where(_WATCHES))


def find_active(r: Reading, customer_numbers: Iterable[int]) -> list[ActiveRuleset]:
    """Return the watching rulesets of these customers' clients, ordered by client and slug.

    If there are none, this costs one look-up in an index.
    """
    their_clients = select(customers.c.client_id).where(customers.c.number.in_(list(customer_numbers)))
    return _find_active(r, _ROW.client_id.in_(their_clients))


def load_active(r: Reading, active: Sequence[ActiveRuleset]) -> list[VersionedRuleset]:
    """Return the documents of these rulesets, in their order.

    Raises:
        Corrupt: a document was changed.
    """
    return [_load_cached(r, each) for each in active]


def lock_watching(w: Writing, client_ids: Set[UUID]) -> set[RulesetKey]:
    """Return the keys of these clients' watching rulesets. The rulesets can't change until the transaction ends."""
    query = select(_ROW.ruleset_id, _ROW.version).where(_ROW.client_id.in_(client_ids), _WATCHES)
    rows = w.execute(query.order_by(_ROW.ruleset_id).with_for_update(read=True))
    return {(ruleset_id, number) for ruleset_id, number in rows}


def request_for_attributes(w: Writing, customer: Customer, names: Iterable[str], now: datetime) -> None:
    """Request a ruleset evaluation of a customer whose attributes change, if a ruleset reads one of these names.

    A ruleset whose document can't be read counts as reading them.
    """
    changed = frozenset(names)
    if any(_may_read(w, each, changed) for each in _find_active(w, _ROW.client_id == customer.client_id)):
        evaluation_requests.request_for_customers(w, [customer.number], now)


def _may_read(r: Reading, active: ActiveRuleset, names: Set[str]) -> bool:
    try:
        [loaded] = load_active(r, [active])
    except (Corrupt, ValidationError) as error:
        log.error("ruleset %s can't be read: %s", active.ruleset_id, type(error).__name__)
        return True
    return not names.isdisjoint(each.name for each in loaded.ruleset.attributes)


_WATCHES = and_(_ROW.active.is_(True), _ROW.archived_at.is_(None))
_loaded: OrderedDict[RulesetKey, VersionedRuleset] = OrderedDict()  # never out of date, because versions never change


def _find_active(r: Reading, condition: ColumnElement[bool]) -> list[ActiveRuleset]:
    query = select(_ROW.client_id, _ROW.ruleset_id, _ROW.version).where(condition, _WATCHES)
    return [ActiveRuleset(*row) for row in r.execute(query.order_by(_ROW.client_id, _ROW.slug))]


def _load_cached(r: Reading, each: ActiveRuleset) -> VersionedRuleset:
    """Return a ruleset's document from the cache, which drops the least recently used one."""
    read = _loaded.pop(each.key, None) or _load_version(r, each)
    _loaded[each.key] = read
    while len(_loaded) > MAX_CACHED:
        _loaded.popitem(last=False)
    return read


def _load_version(r: Reading, each: ActiveRuleset) -> VersionedRuleset:
    ruleset = read_version(r, each.ruleset_id, each.version).ruleset
    scope = ruleset.applies_to
    listed = frozenset(numbers(r, each.client_id, scope.customers).values()) if isinstance(scope, Listed) else None
    return VersionedRuleset(each.ruleset_id, each.version, ruleset, listed)


def _request_evaluation(w: Writing, stored: StoredRuleset, now: datetime) -> None:
    """Request a ruleset evaluation of the customers that the ruleset lists, or of all of the client's."""
    if not stored.watches:
        return
    scope = stored.ruleset.applies_to
    if isinstance(scope, Listed):
        evaluation_requests.request_for_customers(w, numbers(w, stored.client_id, scope.customers).values(), now)
    else:
        evaluation_requests.request_for_client(w, stored.client_id, now)


def _delete_states(w: Writing, stored: StoredRuleset, keep: Sequence[str]) -> None:
    """Delete the states of the ruleset's rules, except of those in `keep`."""
    removed = and_(rule_states.c.ruleset_id == stored.ruleset_id, rule_states.c.rule.not_in(keep))
    w.execute(delete(rule_states).where(removed))


def _set_archived(w: Writing, stored: StoredRuleset, at: datetime | None, now: datetime) -> StoredRuleset:
    selected = update(monitoring_rulesets).where(_ROW.ruleset_id == stored.ruleset_id)
    w.execute(selected.values(archived_at=at, updated_at=now))
    return get(w, stored.client_id, stored.ruleset_id)


def require_own_customers(r: Reading, client_id: UUID, ruleset: Ruleset) -> None:
    """Raise InvalidRequest if the ruleset lists customers that are not the client's own."""
    if not isinstance(ruleset.applies_to, Listed):
        return
    listed = ruleset.applies_to.customers
    known = numbers(r, client_id, listed)
    faults = tuple(
        Fault(f"/appliesTo/customers/{nth}", "Ruleset.UnknownCustomer", "There is no customer with this id.")
        for nth, each in enumerate(listed)
        if each not in known
    )
    if faults:
        raise InvalidRequest("Ruleset.UnknownCustomer", "The ruleset lists customers that don't exist.", faults)


def _content_columns(ruleset: Ruleset) -> dict[str, Any]:
    return {"slug": ruleset.slug, "name": ruleset.name, "active": ruleset.active}


def _add_version(w: Writing, ruleset_id: UUID, number: int, ruleset: Ruleset, who: str, now: datetime) -> None:
    text = canonical(ruleset)
    content = {"document": text, "sha256": sha256(text.encode()).digest(), "created_at": now, "created_by": who}
    w.execute(insert(monitoring_ruleset_versions).values(ruleset_id=ruleset_id, version=number, **content))


def _parse(document: str, digest: bytes) -> Ruleset:
    if sha256(document.encode()).digest() != digest:
        raise Corrupt("Ruleset.Corrupt", "A ruleset's document was changed.")
    return Ruleset.model_validate_json(document)


def _slug_taken(ruleset: Ruleset) -> Conflict:
    return Conflict("Ruleset.SlugTaken", f"There is a ruleset {ruleset.slug} already.")


_SHOWN: AnySelect = select(monitoring_rulesets, _VERSION.document, _VERSION.sha256).join_from(
    monitoring_rulesets,
    monitoring_ruleset_versions,
    and_(_VERSION.ruleset_id == _ROW.ruleset_id, _VERSION.version == _ROW.version),
)


def _get(r: Reading, query: AnySelect) -> StoredRuleset:
    row = r.execute(query).first()
    if row is None:
        raise NotFound("Ruleset.NotFound", "There is no such ruleset.")
    return StoredRuleset(*row)
