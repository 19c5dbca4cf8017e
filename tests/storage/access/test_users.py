"""Users, their links and sessions, on both databases."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import product
from uuid import UUID, uuid4

import pytest

from pipelines.vocabulary.errors import Conflict, NotFound
from storage.access import actors, keys, passwords, sessions, users
from storage.access.roles import Role
from storage.access.users import LOCKED_FOR, MAX_FAILURES, User
from storage.core import audit
from storage.core.audit import Filter, TrailPosition
from storage.core.models import metadata, sign_in_links
from storage.core.models import sessions as stored_sessions
from storage.core.models import users as stored_users
from storage.core.paging import Page
from storage.core.store import Store

MINUTE = timedelta(minutes=1)


@pytest.fixture
def client_id(store: Store, now: datetime) -> UUID:
    return new_client(store, now)


def new_client(store: Store, now: datetime) -> UUID:
    with store.db.writing() as w:
        return keys.create_client(w, "Harbour Lending", decision_policies=True, now=now).client_id


def new_user(store: Store, client_id: UUID, now: datetime, role: Role = Role.ANALYST) -> User:
    with store.db.writing() as w:
        return users.create(w, client_id, f"{uuid4()}@Lender.example", "Ada", role, now)


def test_user_is_found_by_its_address_in_any_case(store: Store, client_id: UUID, now: datetime) -> None:
    user = new_user(store, client_id, now)
    assert user.email == user.email.lower()
    with store.db.reading() as r:
        assert users.with_email(r, user.email.upper()) == users.get(r, user.user_id, client_id) == user
        assert users.with_email(r, "nobody@lender.example") is None


def test_address_of_another_user_is_refused_across_clients(store: Store, client_id: UUID, now: datetime) -> None:
    user, theirs = new_user(store, client_id, now), new_client(store, now)
    for whose in (client_id, theirs):
        with pytest.raises(Conflict), store.db.writing() as w:
            users.create(w, whose, user.email.upper(), "Another", Role.VIEWER, now)
    with pytest.raises(NotFound), store.db.writing() as w:
        users.create(w, uuid4(), "new@lender.example", "New", Role.VIEWER, now)


def test_clients_find_their_own_users_page_by_page(store: Store, client_id: UUID, now: datetime) -> None:
    theirs = new_client(store, now)
    own = {new_user(store, client_id, now).user_id for _ in range(3)}
    stranger = new_user(store, theirs, now)
    with store.db.reading() as r:
        pages = [users.find(r, client_id, Page(number, 2)) for number in (1, 2, 3)]
        assert [(len(page.items), page.total) for page in pages] == [(2, 3), (1, 3), (0, 3)]
        assert {user.user_id for page in pages for user in page.items} == own
        assert {user.user_id for user in users.find(r).items} == {*own, stranger.user_id}
        with pytest.raises(NotFound):
            users.get(r, stranger.user_id, client_id)


def test_wrong_passwords_at_once_lock_a_user_out_once(store: Store, client_id: UUID, now: datetime) -> None:
    user = new_user(store, client_id, now)

    def fail(_: int) -> bool:
        with store.db.writing() as w:
            return users.count_failure(w, user, now)

    with ThreadPoolExecutor(MAX_FAILURES) as threads:
        locks = list(threads.map(fail, range(MAX_FAILURES)))
    assert sorted(locks) == [False] * (MAX_FAILURES - 1) + [True]
    with store.db.writing() as w:
        locked = users.get(w, user.user_id)
        assert (locked.failures, locked.may_sign_in(now), locked.may_sign_in(now + LOCKED_FOR)) == (0, False, True)
        users.forget_failures(w, locked)
        assert users.get(w, user.user_id).may_sign_in(now)


def test_link_is_followed_once_by_a_user_who_may_sign_in(store: Store, client_id: UUID, now: datetime) -> None:
    user = new_user(store, client_id, now)
    with store.db.writing() as w:
        link, expired = (users.create_link(w, user, now + lasts) for lasts in (MINUTE, timedelta()))
        assert users.follow_link(w, expired, now) is None
        assert users.follow_link(w, link, now) == user
        assert users.follow_link(w, link, now) is None
    with store.db.writing() as w:
        ends = users.create_link(w, user, now + MINUTE)
        users.disable(w, user, now)
        assert users.follow_link(w, ends, now) is None


def test_link_followed_twice_at_once_signs_in_once(store: Store, client_id: UUID, now: datetime) -> None:
    user = new_user(store, client_id, now)
    with store.db.writing() as w:
        link = users.create_link(w, user, now + MINUTE)

    def follow(_: int) -> bool:
        with store.db.writing() as w:
            return users.follow_link(w, link, now) is not None

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(follow, range(4))) == 1


def test_tokens_and_passwords_are_not_in_the_database(store: Store, client_id: UUID, now: datetime) -> None:
    user = new_user(store, client_id, now)
    with store.db.writing() as w:
        users.set_password(w, user, passwords.hash_password("correct horse battery"))
        secrets = [users.create_link(w, user, now + MINUTE), sessions.start(w, user, now), "correct horse battery"]
    with store.db.reading() as r:
        for table in (stored_users, stored_sessions, sign_in_links):
            rows = repr(r.execute(table.select()).all())
            assert not any(secret in rows for secret in secrets)


def test_session_ends_by_its_age_by_idleness_and_with_its_user(store: Store, client_id: UUID, now: datetime) -> None:
    user = new_user(store, client_id, now)

    def lives(token: str, at: datetime) -> bool:
        with store.db.reading() as r:
            return sessions.find(r, token, at) is not None

    with store.db.writing() as w:
        token = sessions.start(w, user, now)
    assert lives(token, now + sessions.MAX_IDLE - MINUTE)
    assert not lives(token, now + sessions.MAX_IDLE)
    at = now
    while at < now + sessions.LIFETIME - MINUTE:
        at += sessions.MAX_IDLE - MINUTE
        with store.db.writing() as w:
            if (session := sessions.find(w, token, at)) is not None:
                sessions.touch(w, session, at)
    assert not lives(token, now + sessions.LIFETIME), "use doesn't prolong a session for ever"
    with store.db.writing() as w:
        token = sessions.start(w, user, now)
        users.disable(w, user, now)
    assert not lives(token, now)


def test_sweep_deletes_what_has_ended(store: Store, client_id: UUID, now: datetime) -> None:
    user = new_user(store, client_id, now)
    with store.db.writing() as w:
        sessions.start(w, user, now - sessions.LIFETIME)
        sessions.start(w, user, now - sessions.MAX_IDLE)
        live = sessions.start(w, user, now)
        users.create_link(w, user, now)
        link = users.create_link(w, user, now + MINUTE)
    with store.db.writing() as w:
        sessions.sweep(w, now)
    with store.db.writing() as w:
        assert [len(w.execute(table.select()).all()) for table in (stored_sessions, sign_in_links)] == [1, 1]
        assert sessions.find(w, live, now) is not None
        assert users.follow_link(w, link, now) is not None


def test_nothing_that_names_an_erased_user_is_left(store: Store, client_id: UUID, now: datetime) -> None:
    user = new_user(store, client_id, now)
    with store.db.writing() as w:
        users.set_name(w, user, "Grace Hopper")
        users.set_password(w, user, passwords.hash_password("correct horse battery"))
        link, token = users.create_link(w, user, now + MINUTE), sessions.start(w, user, now)
        audit.append(w, audit.OPERATOR, users.ERASED, {"userId": user.user_id}, now, client_id=client_id)
        users.erase(w, user)
    with store.db.writing() as w:
        assert users.follow_link(w, link, now) is None
        assert sessions.find(w, token, now) is None
        assert users.with_email(w, user.email) is None
        for gone in (user.email, "Grace Hopper"):
            assert not [table.name for table in metadata.sorted_tables if gone in repr(w.execute(table.select()).all())]
        for act in (
            lambda: users.get(w, user.user_id),
            lambda: users.erase(w, user),
            lambda: users.create_link(w, user, now),
            lambda: sessions.start(w, user, now),
        ):
            with pytest.raises(NotFound):
                act()
        assert users.count_failure(w, user, now) is False
        again = users.create(w, client_id, user.email, "Ada", Role.VIEWER, now)
    assert again.user_id != user.user_id
    theirs = new_client(store, now)
    with store.db.reading() as r:
        for whose, name in ((client_id, "A removed user"), (theirs, "Unknown")):
            assert [each.name for each in actors.name_actors(r, whose, [str(user.user_id)])] == [name]


def test_a_user_is_erased_while_it_signs_in(store: Store, client_id: UUID, now: datetime) -> None:
    for _ in range(5):
        user = new_user(store, client_id, now)

        def act(nth: int, user: User = user) -> str:
            try:
                with store.db.writing() as w:
                    (users.erase(w, user) if nth == 2 else sessions.start(w, user, now))
            except NotFound as refused:
                return refused.code
            return "done"

        with ThreadPoolExecutor(4) as threads:
            assert set(threads.map(act, range(6))) <= {"done", "User.NotFound"}
        with store.db.reading() as r:
            assert users.with_email(r, user.email) is None
            assert not r.execute(stored_sessions.select().where(stored_sessions.c.user_id == user.user_id)).all()


def test_one_admin_is_left_of_two_who_leave_at_once(store: Store, client_id: UUID, now: datetime) -> None:
    admins = [new_user(store, client_id, now, Role.ADMIN) for _ in range(2)]
    new_user(store, new_client(store, now), now, Role.ADMIN)

    def leave(admin: User) -> bool:
        try:
            with store.db.writing() as w:
                users.require_other_admin(w, users.get(w, admin.user_id))
                users.disable(w, admin, now)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        assert sum(threads.map(leave, admins)) == 1
    analyst = new_user(store, client_id, now)
    with store.db.writing() as w:
        users.require_other_admin(w, analyst)


def test_actors_have_names_of_their_own_client_only(store: Store, client_id: UUID, now: datetime) -> None:
    user, stranger = new_user(store, client_id, now), new_user(store, new_client(store, now), now)
    with store.db.writing() as w:
        key, _ = keys.create_key(w, client_id, ["customer:reports"], None, "tm_sandbox_", now)
    asked = [str(user.user_id), str(key.key_id), "operator", str(stranger.user_id), "'; --"]
    with store.db.reading() as r:
        named = actors.name_actors(r, client_id, asked)
    assert [each.who for each in named] == asked
    assert [each.name for each in named] == ["Ada", f"API key {key.hint}", "Operator", "Unknown", "Unknown"]


def test_pages_of_the_trail_have_every_entry_once(store: Store, client_id: UUID, now: datetime) -> None:
    who_acts, names = ("operator", "service"), ("A.Done", "B.Done", "C.Done")
    with store.db.writing() as w:
        for nth in range(12):
            for whose in (client_id, uuid4()):
                at = now - timedelta(hours=nth // 3)
                audit.append(w, audit.Actor(who_acts[nth % 2]), names[nth % 3], {"n": str(nth)}, at, client_id=whose)

    def read(wanted: Filter) -> list[str]:
        found: list[str] = []
        after: TrailPosition | None = None
        with store.db.reading() as r:
            while True:
                entries, after = audit.find_page(r, client_id, wanted, after, 2)
                found += [str(entry.resource["n"]) for entry in entries]
                if after is None:
                    return found

    def meets(entry: audit.Entry, wanted: Filter) -> bool:
        return (
            wanted.who in (None, entry.who)
            and wanted.action in (None, entry.action)
            and (wanted.since is None or entry.at >= wanted.since)
        )

    with store.db.reading() as r:
        assert audit.find_actions(r, client_id) == [*names]
        assert audit.find_actions(r, uuid4()) == []
        oldest_first = reversed(audit.find(r, client_id))
        every = sorted(oldest_first, key=lambda entry: entry.at)[::-1]
    for who, action, since in product((None, *who_acts), (None, *names), (None, now - timedelta(hours=2))):
        wanted = Filter(who, action, since)
        assert read(wanted) == [str(entry.resource["n"]) for entry in every if meets(entry, wanted)]
