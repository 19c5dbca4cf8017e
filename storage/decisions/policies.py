"""Decision policies, by client and slug. Each has versions whose documents are never changed.

A version is a draft, then published, then retired, never the other way round; publishing a version retires the one
before. To go back, save the older content as a new version. So the versions' dates show which one applied when.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import and_, bindparam, exists, func, insert, or_, select, update

from pipelines.decisions import Policy, kinds_by_name
from pipelines.decisions.canonical import canonical, fingerprint
from pipelines.vocabulary.errors import Conflict, NotFound, Unprocessable
from storage.core.database import AnySelect, Reading, Writing, insert_into
from storage.core.models import PolicyState, clients, policies, policy_versions
from storage.core.paging import Page, Paged, count_total, limit_to_page

MAX_POLICIES = 200  # of a client
MAX_VERSIONS = 10_000  # of a policy


@dataclass(frozen=True)
class Challenger:
    """A draft that is evaluated in shadow for a share of the customers; clients don't get its results."""

    version: int
    percent: int  # share of customers, 1 to 100


@dataclass(frozen=True)
class StoredPolicy:
    policy_id: UUID
    client_id: UUID
    slug: str
    is_archived: bool
    challenger: Challenger | None
    created_at: datetime


@dataclass(frozen=True)
class PolicyVersion:
    """A version of a policy, in the order of the table's columns."""

    policy_id: UUID
    version: int
    state: PolicyState
    document: str  # canonical JSON
    fingerprint: str  # SHA-256 of it, hex
    acknowledged: Sequence[Mapping[str, str]]  # warnings that the author accepted: pointer, code, message
    created_at: datetime
    created_by: str
    published_at: datetime | None
    published_by: str | None
    retired_at: datetime | None

    @cached_property
    def policy(self) -> Policy:
        return Policy.model_validate_json(self.document)


def require_enabled(r: Reading, client_id: UUID) -> None:
    """Raise NotFound if the client doesn't exist, or decision policies are not enabled for it."""
    enabled = r.execute(select(clients.c.decision_policies).where(clients.c.client_id == client_id)).scalar()
    if enabled is None:
        raise NotFound("Client.NotFound", "There is no client with this id.")
    if not enabled:
        raise not_enabled()


def not_enabled() -> NotFound:
    return NotFound("DecisionPolicy.NotEnabled", "Decision policies are not enabled for this client.")


def get(r: Reading, client_id: UUID, slug: str) -> StoredPolicy:
    """Return the client's policy, archived or not, published or not.

    Raises:
        NotFound: unknown, or another client's.
    """
    row = r.execute(_WITH_SLUG, {"client_id": client_id, "slug": slug}).first()
    if row is None:
        raise NotFound("DecisionPolicy.NotFound", "There is no decision policy with this slug.")
    return _as_policy(row)


_WITH_SLUG: AnySelect = select(policies).where(
    policies.c.client_id == bindparam("client_id"), policies.c.slug == bindparam("slug")
)


def get_of_any_client(r: Reading, policy_id: UUID) -> StoredPolicy:
    """Return an existing policy of any client: for work on one of its evaluations or backtests."""
    return _as_policy(r.execute(select(policies).where(policies.c.policy_id == policy_id)).one())


def find(
    r: Reading,
    client_id: UUID,
    *,
    include_archived: bool = False,
    include_drafts: bool = False,
    page: Page | None = None,
) -> Paged[tuple[StoredPolicy, PolicyVersion]]:
    """Return policies with their published versions, ordered by slug.

    Policies that were never published are left out, or with `include_drafts` have their newest version.
    """
    is_shown = policy_versions.c.state == PolicyState.PUBLISHED
    if include_drafts:
        other = policy_versions.alias()
        selected = other.c.policy_id == policies.c.policy_id
        newest = select(func.max(other.c.version)).where(selected).scalar_subquery()
        is_published = exists().where(selected, other.c.state == PolicyState.PUBLISHED)
        is_shown = or_(is_shown, and_(~is_published, policy_versions.c.version == newest))
    query = _WITH_VERSION.where(policies.c.client_id == client_id, is_shown)
    if not include_archived:
        query = query.where(policies.c.is_archived.is_(False))
    rows = r.execute(limit_to_page(query.order_by(policies.c.slug), page))
    return Paged(
        [_as_policy_and_version(row) for row in rows], count_total(r, query.with_only_columns(policies.c.slug)), page
    )


def find_with_newest(r: Reading, client_id: UUID) -> list[tuple[StoredPolicy, PolicyVersion]]:
    """Return every policy with its newest version, ordered by slug, including drafts and archived policies."""
    newest = (
        select(policy_versions.c.policy_id, func.max(policy_versions.c.version).label("version"))
        .group_by(policy_versions.c.policy_id)
        .subquery()
    )
    is_newest = and_(*(newest.c[name] == policy_versions.c[name] for name in ("policy_id", "version")))
    query = _WITH_VERSION.join(newest, is_newest).where(policies.c.client_id == client_id)
    return [_as_policy_and_version(row) for row in r.execute(query.order_by(policies.c.slug))]


def versions(r: Reading, policy: StoredPolicy, page: Page | None = None) -> Paged[PolicyVersion]:
    """Return all versions of the policy, newest first."""
    query = _select_versions(policy.policy_id)
    rows = r.execute(limit_to_page(query.order_by(policy_versions.c.version.desc()), page))
    return Paged([_as_version(row) for row in rows], count_total(r, query), page)


def version(r: Reading, policy: StoredPolicy, number: int | None = None) -> PolicyVersion:
    """Return the version with this number, or the published one.

    Raises:
        NotFound: there is no such version, or none is published. A policy without a published version counts as
            unknown.
    """
    if number is None:
        row = r.execute(_PUBLISHED, {"policy_id": policy.policy_id}).first()
        if row is None:
            raise NotFound("DecisionPolicy.NotFound", "There is no published decision policy with this slug.")
    else:
        row = r.execute(_select_versions(policy.policy_id).where(policy_versions.c.version == number)).first()
        if row is None:
            raise NotFound("DecisionPolicy.VersionNotFound", "The decision policy has no such version.")
    return _as_version(row)


def newest(r: Reading, policy: StoredPolicy) -> PolicyVersion:
    return _as_version(r.execute(_newest_first(policy.policy_id)).one())


def save_draft(
    w: Writing,
    client_id: UUID,
    policy: Policy,
    acknowledged: Sequence[Mapping[str, str]],
    who: str,
    now: datetime,
    known: int | None = None,
) -> PolicyVersion:
    """Save a new draft of the client's policy with this slug. If it equals the newest version, return that one.

    Args:
        known: the newest version before this one, 0 if there must be none; None: whichever it is.

    Raises:
        Conflict: the policy is archived, its newest version is another one than the known, or there are too many
            policies or versions.
    """
    stored = _lock_or_create(w, client_id, policy.slug, now)
    _require_not_archived(stored)
    last = w.execute(_newest_first(stored.policy_id)).first()
    text, digest = canonical(policy), fingerprint(policy)
    if last is not None and last.fingerprint == digest and last.state != PolicyState.RETIRED:
        return _as_version(last)
    number = 1 if last is None else last.version + 1
    if known is not None and number != known + 1:
        raise _changed_meanwhile(number - 1, known)
    if number > MAX_VERSIONS:
        raise Conflict("DecisionPolicy.TooManyVersions", f"A policy may have at most {MAX_VERSIONS:,} versions.")
    content = {"document": text, "fingerprint": digest, "acknowledged": [dict(each) for each in acknowledged]}
    created = {"state": PolicyState.DRAFT, "created_at": now, "created_by": who}
    w.execute(insert(policy_versions).values(policy_id=stored.policy_id, version=number, **content, **created))
    return version(w, stored, number)


def publish(w: Writing, policy: StoredPolicy, number: int | None, who: str, now: datetime) -> PolicyVersion:
    """Publish a version, by default the newest: it decides from now on. Repeating it changes nothing.

    The challenger is removed if it is the published version, or if it needs inputs that this version doesn't declare.

    Raises:
        NotFound: no such version.
        Conflict: the version is retired, or the policy archived.
    """
    policy = lock(w, policy)
    _require_not_archived(policy)
    chosen = newest(w, policy) if number is None else version(w, policy, number)
    if chosen.state == PolicyState.PUBLISHED:
        return chosen
    if chosen.state == PolicyState.RETIRED:
        raise Conflict("DecisionPolicy.VersionRetired", "A retired version can't be published again: save its content.")
    selected = policy_versions.c.policy_id == policy.policy_id
    is_published = and_(selected, policy_versions.c.state == PolicyState.PUBLISHED)
    w.execute(update(policy_versions).where(is_published).values(state=PolicyState.RETIRED, retired_at=now))
    published = {"state": PolicyState.PUBLISHED, "published_at": now, "published_by": who}
    w.execute(update(policy_versions).where(selected, policy_versions.c.version == chosen.version).values(published))
    if policy.challenger is not None:
        challenger = version(w, policy, policy.challenger.version)
        if challenger.version == chosen.version or _undeclared_inputs(challenger, chosen):
            remove_challenger(w, policy)
    return version(w, policy, chosen.version)


def archive(w: Writing, policy: StoredPolicy) -> StoredPolicy:
    """Archive the policy: it no longer decides. `unarchive` reverses this."""
    return _change(w, policy, is_archived=True)


def unarchive(w: Writing, policy: StoredPolicy) -> StoredPolicy:
    return _change(w, policy, is_archived=False)


def set_challenger(w: Writing, policy: StoredPolicy, number: int, percent: int) -> StoredPolicy:
    """Evaluate a draft in shadow for this share of the customers.

    Raises:
        NotFound: no such version.
        Conflict: the version is not a draft, or the policy is archived.
        Unprocessable: it needs inputs that the published version doesn't declare, so that requests don't have them.
    """
    policy = lock(w, policy)
    _require_not_archived(policy)
    chosen = version(w, policy, number)
    if chosen.state != PolicyState.DRAFT:
        raise Conflict("DecisionPolicy.NotADraft", "Only a draft can be the challenger of the published version.")
    row = w.execute(_PUBLISHED, {"policy_id": policy.policy_id}).first()
    undeclared: list[str] = [] if row is None else _undeclared_inputs(chosen, _as_version(row))
    if undeclared:
        says = f"The published version doesn't declare these inputs, or declares another kind: {', '.join(undeclared)}."
        raise Unprocessable("DecisionPolicy.ChallengerInputs", says)
    return _change(w, policy, challenger_version=number, challenger_percent=percent)


def remove_challenger(w: Writing, policy: StoredPolicy) -> StoredPolicy:
    return _change(w, policy, challenger_version=None, challenger_percent=None)


def lock(w: Writing, policy: StoredPolicy) -> StoredPolicy:
    """Return the policy as it is now. Other changes of it wait until this transaction ends."""
    query = select(policies).where(policies.c.policy_id == policy.policy_id)
    return _as_policy(w.execute(query.with_for_update()).one())


def _lock_or_create(w: Writing, client_id: UUID, slug: str, now: datetime) -> StoredPolicy:
    """Lock and return the client's policy with this slug; create it if there is none."""
    row = {"policy_id": uuid4(), "client_id": client_id, "slug": slug, "is_archived": False, "created_at": now}
    new = insert_into(w, policies).values(row).on_conflict_do_nothing(index_elements=["client_id", "slug"])
    added = w.execute(new).rowcount
    count = select(func.count()).where(policies.c.client_id == client_id)
    if added and w.execute(count).scalar_one() > MAX_POLICIES:
        raise Conflict("DecisionPolicy.TooMany", f"A client may have at most {MAX_POLICIES} policies.")
    return lock(w, get(w, client_id, slug))


def _change(w: Writing, policy: StoredPolicy, **values: Any) -> StoredPolicy:
    w.execute(update(policies).where(policies.c.policy_id == policy.policy_id).values(values))
    return get(w, policy.client_id, policy.slug)


def _changed_meanwhile(newest: int, known: int) -> Conflict:
    detail = f"Version {newest} was stored meanwhile, so nothing was stored now."
    if not newest or not known:
        is_there = "is a policy with this slug already" if newest else "is no policy with this slug"
        detail = f"There {is_there}, so nothing was stored."
    return Conflict("DecisionPolicy.ChangedMeanwhile", detail)


def _require_not_archived(policy: StoredPolicy) -> None:
    if policy.is_archived:
        raise Conflict("DecisionPolicy.Archived", "The decision policy is archived.")


def _undeclared_inputs(challenger: PolicyVersion, published: PolicyVersion) -> list[str]:
    """Return the challenger's inputs that the published version doesn't declare, or declares as another kind."""
    sent = kinds_by_name(published.policy.declared_inputs)
    return [name for name, kind in kinds_by_name(challenger.policy.declared_inputs).items() if sent.get(name) != kind]


_PUBLISHED: AnySelect = select(policy_versions).where(
    policy_versions.c.policy_id == bindparam("policy_id"), policy_versions.c.state == PolicyState.PUBLISHED
)


def _newest_first(policy_id: UUID) -> AnySelect:
    return _select_versions(policy_id).order_by(policy_versions.c.version.desc()).limit(1)


def _select_versions(policy_id: UUID) -> AnySelect:
    return select(policy_versions).where(policy_versions.c.policy_id == policy_id)


_WITH_VERSION: AnySelect = select(policies, policy_versions).join_from(policies, policy_versions)


def _as_policy_and_version(row: Sequence[Any]) -> tuple[StoredPolicy, PolicyVersion]:
    width = len(policies.c)
    return _as_policy(row[:width]), _as_version(row[width:])


def _as_policy(row: Sequence[Any]) -> StoredPolicy:
    policy_id, client_id, slug, is_archived, created_at, challenger, percent = row
    shadow = None if challenger is None else Challenger(challenger, percent)
    return StoredPolicy(policy_id, client_id, slug, is_archived, shadow, created_at)


def _as_version(row: Sequence[Any]) -> PolicyVersion:
    policy_id, number, state, *others = row
    return PolicyVersion(policy_id, number, PolicyState(state), *others)
