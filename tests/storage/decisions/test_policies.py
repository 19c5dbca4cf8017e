"""Versions of policies: draft, published and retired; none is ever changed."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from pipelines.decisions import Policy
from pipelines.vocabulary.errors import Conflict, NotFound, Unprocessable
from storage.access import keys
from storage.core.models import PolicyState
from storage.core.paging import Page
from storage.core.store import Store
from storage.decisions import policies
from storage.decisions.policies import Challenger, PolicyVersion, StoredPolicy
from tests.storage.examples import a_client

parametrize = pytest.mark.parametrize
WARNING = {"pointer": "/limits/0", "code": "Policy.Lenient", "message": "Less data, a higher limit."}


def a_policy(slug: str = "loan", notes: str = "", **kinds: str) -> Policy:
    """Return a policy. `kinds`: kinds of its declared inputs by name."""
    inputs = [{"name": name, "kind": kind} for name, kind in kinds.items()]
    document = {"slug": slug, "name": "Loan", "notes": notes, "defaultOutcome": "proceed", "declaredInputs": inputs}
    return Policy.model_validate(document)


def save_a_draft(
    store: Store, client_id: UUID, now: datetime, slug: str = "loan", notes: str = "", **kinds: str
) -> PolicyVersion:
    with store.db.writing() as w:
        return policies.save_draft(w, client_id, a_policy(slug, notes, **kinds), [WARNING], "a key", now)


def publish(
    store: Store, client_id: UUID, now: datetime, slug: str = "loan", notes: str = "", **kinds: str
) -> PolicyVersion:
    save_a_draft(store, client_id, now, slug, notes, **kinds)
    with store.db.writing() as w:
        return policies.publish(w, policies.get(w, client_id, slug), None, "another key", now)


def get_policy(store: Store, client_id: UUID, slug: str = "loan") -> StoredPolicy:
    with store.db.reading() as r:
        return policies.get(r, client_id, slug)


def states(store: Store, client_id: UUID) -> dict[int, str]:
    with store.db.reading() as r:
        found = policies.versions(r, policies.get(r, client_id, "loan"))
    return {each.version: each.state for each in found.items}


def list_slugs(store: Store, client_id: UUID, *, include_archived: bool = False, page: Page | None = None) -> list[str]:
    with store.db.reading() as r:
        found = policies.find(r, client_id, include_archived=include_archived, page=page)
    return [each.slug for each, _ in found.items]


def test_draft_is_stored_as_it_was_saved(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    draft = save_a_draft(store, client_id, now, notes="Grüße")
    assert (draft.version, draft.state, draft.created_by, draft.created_at) == (1, PolicyState.DRAFT, "a key", now)
    assert draft.policy == a_policy(notes="Grüße")
    assert draft.acknowledged == [WARNING]
    assert (draft.published_at, draft.published_by, draft.retired_at) == (None, None, None)
    with store.db.reading() as r:
        assert policies.version(r, policies.get(r, client_id, "loan"), 1) == draft


def test_saving_equal_content_returns_the_same_version(store: Store, now: datetime) -> None:
    client_id, later = a_client(store, now), now + timedelta(days=1)
    first = save_a_draft(store, client_id, now)
    assert save_a_draft(store, client_id, later) == first
    second = save_a_draft(store, client_id, later, notes="Other.")
    assert (second.version, second.created_at) == (2, later)
    assert save_a_draft(store, client_id, later).version == 3  # what was saved last is what is published next
    assert states(store, client_id) == {3: "draft", 2: "draft", 1: "draft"}


def test_published_version_is_the_last_one_published(store: Store, now: datetime) -> None:
    client_id, later = a_client(store, now), now + timedelta(days=1)
    first = publish(store, client_id, now)
    assert (first.published_at, first.published_by, first.retired_at) == (now, "another key", None)
    second = publish(store, client_id, later, notes="Stricter.")
    assert states(store, client_id) == {2: "published", 1: "retired"}
    with store.db.writing() as w:
        policy = policies.get(w, client_id, "loan")
        assert policies.version(w, policy) == second
        assert policies.version(w, policy, 1).retired_at == later
        assert policies.publish(w, policy, 2, "a third", later + timedelta(days=1)) == second
        with pytest.raises(Conflict) as refused:
            policies.publish(w, policy, 1, "a key", later)
    assert refused.value.code == "DecisionPolicy.VersionRetired"
    again = publish(store, client_id, later)
    assert (again.version, again.fingerprint) == (3, first.fingerprint)


def test_content_of_a_retired_version_can_be_saved_as_a_new_one(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    save_a_draft(store, client_id, now)
    publish(store, client_id, now, notes="Second.")
    with store.db.writing() as w:
        policies.publish(w, policies.get(w, client_id, "loan"), 1, "a key", now)
    assert states(store, client_id) == {1: "published", 2: "retired"}
    assert save_a_draft(store, client_id, now, notes="Second.").version == 3


def test_a_policy_without_a_published_version_is_not_found(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    save_a_draft(store, client_id, now)
    assert list_slugs(store, client_id) == []
    with store.db.reading() as r, pytest.raises(NotFound) as refused:
        policies.version(r, policies.get(r, client_id, "loan"))
    assert refused.value.code == "DecisionPolicy.NotFound"
    with store.db.reading() as r, pytest.raises(NotFound) as refused:
        policies.version(r, policies.get(r, client_id, "loan"), 2)
    assert refused.value.code == "DecisionPolicy.VersionNotFound"


def test_lists_are_by_slug_without_archived_policies(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    for slug in ("overdraft", "advance", "loan"):
        publish(store, client_id, now, slug)
    save_a_draft(store, client_id, now, "never-published")
    publish(store, a_client(store, now), now, "of-another")
    with store.db.writing() as w:
        assert policies.archive(w, policies.get(w, client_id, "loan")).is_archived
    assert list_slugs(store, client_id) == ["advance", "overdraft"]
    assert list_slugs(store, client_id, include_archived=True) == ["advance", "loan", "overdraft"]
    assert list_slugs(store, client_id, page=Page(2, 1)) == ["overdraft"]
    with store.db.reading() as r:
        assert policies.find(r, client_id, page=Page(2, 1)).total == 2
        newest = {each.slug: version.state for each, version in policies.find_with_newest(r, client_id)}
    assert newest == {
        "advance": "published", "loan": "published", "never-published": "draft", "overdraft": "published"
    }  # fmt: skip


def test_archived_policy_cannot_be_changed_until_it_is_unarchived(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    publish(store, client_id, now)
    with store.db.writing() as w:
        policies.archive(w, policies.get(w, client_id, "loan"))
    with store.db.writing() as w:
        for change in (
            lambda: policies.save_draft(w, client_id, a_policy(), [], "a key", now),
            lambda: policies.publish(w, policies.get(w, client_id, "loan"), None, "a key", now),
            lambda: policies.set_challenger(w, policies.get(w, client_id, "loan"), 1, 10),
        ):
            with pytest.raises(Conflict) as refused:
                change()
            assert refused.value.code == "DecisionPolicy.Archived"
        assert not policies.unarchive(w, policies.get(w, client_id, "loan")).is_archived
    assert list_slugs(store, client_id) == ["loan"]


def test_challenger_is_a_draft_until_it_is_published(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    publish(store, client_id, now)
    save_a_draft(store, client_id, now, notes="Second.")
    with store.db.writing() as w:
        policy = policies.get(w, client_id, "loan")
        with pytest.raises(Conflict) as refused:
            policies.set_challenger(w, policy, 1, 10)
        assert refused.value.code == "DecisionPolicy.NotADraft"
        with pytest.raises(NotFound):
            policies.set_challenger(w, policy, 3, 10)
        assert policies.set_challenger(w, policy, 2, 10).challenger == Challenger(2, 10)
    publish(store, client_id, now, notes="Third.")
    assert get_policy(store, client_id).challenger == Challenger(2, 10)
    with store.db.writing() as w:
        policies.publish(w, policies.get(w, client_id, "loan"), 2, "a key", now)
    assert get_policy(store, client_id).challenger is None


def test_challenger_may_only_need_inputs_of_the_published_version(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    publish(store, client_id, now)
    save_a_draft(store, client_id, now, term="decimal")
    with store.db.writing() as w, pytest.raises(Unprocessable, match="term") as refused:
        policies.set_challenger(w, policies.get(w, client_id, "loan"), 2, 10)
    assert refused.value.code == "DecisionPolicy.ChallengerInputs"


def test_publishing_removes_a_challenger_whose_inputs_are_no_longer_sent(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    publish(store, client_id, now, term="decimal")
    save_a_draft(store, client_id, now, term="decimal", notes="Second.")
    with store.db.writing() as w:
        policies.set_challenger(w, policies.get(w, client_id, "loan"), 2, 10)
    publish(store, client_id, now, term="decimal", notes="Third.")
    assert get_policy(store, client_id).challenger == Challenger(2, 10)
    publish(store, client_id, now, term="string")
    assert get_policy(store, client_id).challenger is None


def test_challenger_can_be_removed(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    save_a_draft(store, client_id, now)
    with store.db.writing() as w:
        policy = policies.set_challenger(w, policies.get(w, client_id, "loan"), 1, 100)
        assert policies.remove_challenger(w, policy).challenger is None


def test_policies_must_be_enabled_for_the_client(store: Store, now: datetime) -> None:
    enabled = a_client(store, now)
    with store.db.writing() as w:
        disabled = keys.create_client(w, "Harbour Lending", decision_policies=False, now=now).client_id
    with store.db.reading() as r:
        policies.require_enabled(r, enabled)
        for client_id, code in ((disabled, "DecisionPolicy.NotEnabled"), (uuid4(), "Client.NotFound")):
            with pytest.raises(NotFound) as refused:
                policies.require_enabled(r, client_id)
            assert refused.value.code == code


def test_another_clients_policy_is_not_found(store: Store, now: datetime) -> None:
    first, second = a_client(store, now), a_client(store, now)
    save_a_draft(store, first, now)
    with store.db.reading() as r, pytest.raises(NotFound):
        policies.get(r, second, "loan")
    save_a_draft(store, second, now, notes="Another's.")
    assert get_policy(store, first).policy_id != get_policy(store, second).policy_id


def test_too_many_policies_are_refused(store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "MAX_POLICIES", 2)
    monkeypatch.setattr(policies, "MAX_VERSIONS", 2)
    client_id = a_client(store, now)
    for slug in ("one", "two"):
        save_a_draft(store, client_id, now, slug)
    with pytest.raises(Conflict) as refused:
        save_a_draft(store, client_id, now, "three")
    assert refused.value.code == "DecisionPolicy.TooMany"
    save_a_draft(store, client_id, now, "one", notes="Second.")
    with pytest.raises(Conflict) as refused:
        save_a_draft(store, client_id, now, "one", notes="Third.")
    assert refused.value.code == "DecisionPolicy.TooManyVersions"


def test_concurrent_authors_get_a_version_each(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda nth: save_a_draft(store, client_id, now, notes=str(nth)), range(16)))
    assert sorted(each.version for each in made) == list(range(1, 17))
    assert len({each.policy_id for each in made}) == 1


def test_concurrent_publishers_leave_one_version_published(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    for nth in range(8):
        save_a_draft(store, client_id, now, notes=str(nth))

    def publish(number: int) -> None:
        with store.db.writing() as w:
            policies.publish(w, policies.get(w, client_id, "loan"), number, "a key", now)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(publish, range(1, 9)))
    assert sorted(states(store, client_id).values()) == ["published", *["retired"] * 7]


@parametrize(
    "change",
    [
        "UPDATE policy_versions SET document = '{}'",
        "UPDATE policy_versions SET fingerprint = ''",
        "UPDATE policy_versions SET version = 7",
        "UPDATE policy_versions SET acknowledged = '[]'",
        "DELETE FROM policy_versions",
    ],
)
def test_database_refuses_to_change_a_version(store: Store, now: datetime, change: str) -> None:
    draft = save_a_draft(store, a_client(store, now), now)
    with pytest.raises(DatabaseError, match="policy_versions rows are never"), store.db.writing() as w:
        w.execute(text(change))
    with store.db.reading() as r:
        assert r.execute(text("SELECT document FROM policy_versions")).scalars().all() == [draft.document]
