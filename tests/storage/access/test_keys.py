"""A key is valid from its creation until its expiry, revocation or replacement, and is stored only as a hash."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import delete, event

from pipelines.vocabulary.errors import Conflict, NotFound, Unauthenticated
from storage.access import keys
from storage.core.models import api_keys
from storage.core.store import Store

SANDBOX = "tm_sandbox_"
Authenticate = Callable[..., keys.Principal]


@pytest.fixture
def client_id(store: Store, now: datetime) -> UUID:
    with store.db.writing() as w:
        return keys.create_client(w, "Harbour Lending", decision_policies=True, now=now).client_id


def issue(store: Store, client_id: UUID, now: datetime, expires_at: datetime | None = None) -> tuple[keys.Key, str]:
    with store.db.writing() as w:
        return keys.create_key(w, client_id, ["customer:reports"], expires_at, SANDBOX, now)


def authenticate(store: Store, text: str, now: datetime, prefix: str = SANDBOX) -> keys.Principal:
    with store.db.reading() as r:
        return keys.authenticate(r, text, prefix, now)


def test_a_key_names_its_client_and_scopes(store: Store, client_id: UUID, now: datetime) -> None:
    key, text = issue(store, client_id, now)
    scopes = frozenset({"customer:reports"})
    assert authenticate(store, text, now) == keys.Principal(client_id, key.key_id, scopes, decision_policies=True)


def test_the_text_of_a_key_is_not_in_the_database(store: Store, client_id: UUID, now: datetime) -> None:
    key, text = issue(store, client_id, now)
    assert text.startswith(SANDBOX)
    assert text not in repr(key)
    with store.db.reading() as r:
        assert text not in repr(r.exec_driver_sql("SELECT * FROM api_keys").all())


def test_a_revoked_key_is_refused_at_the_next_request(store: Store, client_id: UUID, now: datetime) -> None:
    key, text = issue(store, client_id, now)
    with store.db.writing() as w:
        keys.revoke(w, key.key_id, now)
    with pytest.raises(Unauthenticated):
        authenticate(store, text, now)


def test_a_key_is_refused_after_its_expiry(store: Store, client_id: UUID, now: datetime) -> None:
    _, text = issue(store, client_id, now, expires_at=now + timedelta(hours=1))
    assert authenticate(store, text, now + timedelta(minutes=59)).client_id == client_id
    with pytest.raises(Unauthenticated):
        authenticate(store, text, now + timedelta(hours=1))


def rotate(store: Store, key_id: UUID, overlap: timedelta, now: datetime) -> tuple[keys.Key, str]:
    with store.db.writing() as w:
        return keys.rotate(w, key_id, overlap, SANDBOX, now)


def test_a_rotated_key_and_its_successor_are_valid_until_the_overlap_ends(
    store: Store, client_id: UUID, now: datetime
) -> None:
    old, old_text = issue(store, client_id, now)
    new, new_text = rotate(store, old.key_id, timedelta(hours=24), now)
    assert (new.client_id, new.scopes, new.expires_at) == (old.client_id, old.scopes, None)
    end = now + timedelta(hours=24)
    assert authenticate(store, old_text, end - timedelta(seconds=1)).caller_id == old.key_id
    assert authenticate(store, new_text, end).caller_id == new.key_id
    with pytest.raises(Unauthenticated):
        authenticate(store, old_text, end)
    with store.db.reading() as r:
        listed = {key.key_id: (key.expires_at, key.rotated_to) for key in keys.find_keys(r, client_id)}
    assert listed == {old.key_id: (end, new.key_id), new.key_id: (None, None)}


def test_a_successor_has_the_lifetime_of_its_predecessor(store: Store, client_id: UUID, now: datetime) -> None:
    old, old_text = issue(store, client_id, now, expires_at=now + timedelta(days=90))
    later = now + timedelta(days=89)
    new, _ = rotate(store, old.key_id, timedelta(days=7), later)
    assert new.expires_at == later + timedelta(days=90)
    with pytest.raises(Unauthenticated):  # an overlap doesn't extend the expiry
        authenticate(store, old_text, now + timedelta(days=90))


def test_without_an_overlap_the_old_key_ends_at_once(store: Store, client_id: UUID, now: datetime) -> None:
    old, old_text = issue(store, client_id, now)
    rotate(store, old.key_id, timedelta(0), now)
    with pytest.raises(Unauthenticated):
        authenticate(store, old_text, now)


def test_only_a_valid_key_without_a_successor_is_rotated(store: Store, client_id: UUID, now: datetime) -> None:
    ended, _ = issue(store, client_id, now, expires_at=now)
    revoked, _ = issue(store, client_id, now)
    with store.db.writing() as w:
        keys.revoke(w, revoked.key_id, now)
    for key_id in (ended.key_id, revoked.key_id, UUID(int=7)):
        with pytest.raises(NotFound):
            rotate(store, key_id, timedelta(hours=1), now)
    rotated, _ = issue(store, client_id, now)
    rotate(store, rotated.key_id, timedelta(hours=1), now)
    with pytest.raises(Conflict):
        rotate(store, rotated.key_id, timedelta(hours=1), now)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _text: "",
        lambda text: text[:-1],
        lambda text: text + "0",
        lambda text: text.swapcase(),
        lambda text: text.replace("sandbox", "live"),
        lambda text: "é" + text[1:],
    ],
)
def test_anything_but_the_exact_key_is_refused(
    store: Store, client_id: UUID, now: datetime, spoil: Callable[[str], str]
) -> None:
    _, text = issue(store, client_id, now)
    with pytest.raises(Unauthenticated):
        authenticate(store, spoil(text), now)


def test_a_key_of_the_other_environment_is_refused(store: Store, client_id: UUID, now: datetime) -> None:
    _, text = issue(store, client_id, now)
    with pytest.raises(Unauthenticated):
        authenticate(store, text, now, prefix="tm_live_")


def test_a_key_needs_a_client(store: Store, now: datetime) -> None:
    with pytest.raises(NotFound):
        issue(store, UUID(int=0), now)


def test_an_unknown_and_an_ended_key_cost_the_same_queries(store: Store, client_id: UUID, now: datetime) -> None:
    """Otherwise the time of a refusal would reveal which keys existed."""
    (unknown, unknown_text), (ended, ended_text) = (issue(store, client_id, now) for _ in range(2))
    with store.db.writing() as w:
        w.execute(delete(api_keys).where(api_keys.c.key_id == unknown.key_id))
        keys.revoke(w, ended.key_id, now)
    ways = []
    for text in (unknown_text, ended_text):
        asked: list[str] = []
        with record_statements(store, asked), pytest.raises(Unauthenticated):
            authenticate(store, text, now)
        ways.append(asked)
    assert ways[0] == ways[1]
    assert any("api_keys" in statement for statement in ways[0])


@contextmanager
def record_statements(store: Store, asked: list[str]) -> Iterator[None]:
    """Collect the text of every SQL statement."""

    def note(_connection: object, _cursor: object, statement: str, *_others: object) -> None:
        asked.append(statement)

    event.listen(store.db.engine, "before_cursor_execute", note)
    yield
    event.remove(store.db.engine, "before_cursor_execute", note)
