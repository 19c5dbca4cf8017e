"""Signing in and out, and what protects a session: cookies, lock-out, the origin and the token of forms."""

import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from queue import SimpleQueue
from threading import current_thread, get_ident
from time import sleep
from uuid import UUID

import pytest
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher

from api.console import visits
from api.console.visits import FORM_BYTES, local_path
from pipelines import reports
from storage.access import passwords, sessions, users
from storage.access.roles import GRANTS, Role
from storage.access.users import LOCKED_FOR, MAX_FAILURES, User
from storage.core import audit
from storage.core.store import Store
from tests.api.conftest import new_client
from tests.api.console.visitor import Visitor, new_user, visit_as

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash at the least cost: nothing here depends on it, and `tests/storage` hashes as in service."""
    quick = PasswordHash((Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1),))
    monkeypatch.setattr(passwords, "_hasher", lambda: quick)


@pytest.fixture(scope="module")
def client_id(store: Store, base_url: str) -> UUID:
    return new_client(store, base_url).client_id


@pytest.fixture
def user(store: Store, client_id: UUID) -> User:
    """An analyst with PASSWORD."""
    made = new_user(store, client_id)
    with store.db.writing() as w:
        users.set_password(w, made, passwords.hash_password(PASSWORD))
    return made


def test_first_page_loads_reports_in_a_thread(
    store: Store, base_url: str, client_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = SimpleQueue[str]()
    monkeypatch.setattr(reports, "load", lambda: loads.put(current_thread().name))
    visits._load_reports.cache_clear()
    visitor = visit_as(store, base_url, client_id, Role.VIEWER)
    for _ in range(2):
        assert visitor.get("/account").status_code == 200
    assert loads.get(timeout=20) == "load reports"
    assert loads.empty()


def test_a_form_of_an_ended_session_leads_back_to_its_page(base_url: str) -> None:
    visitor = Visitor(base_url)
    for page, back in (
        (f"{base_url}/customers/new?a=b", "/customers/new%3Fa%3Db"),
        ("https://evil.example/customers", "/"),
        (None, "/"),
    ):
        answer = visitor.send("/customers", {"abn": "51824753556"}, headers={"referer": page} if page else {})
        assert (answer.status_code, answer.headers["location"]) == (303, f"/sign-in?next={back}&unsent=yes")
    assert "nothing was stored or changed" in visitor.get("/sign-in?unsent=yes").text
    assert "nothing was stored" not in visitor.get("/sign-in").text


def test_right_password_starts_a_session(base_url: str, user: User) -> None:
    visitor = Visitor(base_url)
    assert visitor.get("/account?page=2", follows=False).headers["location"] == ("/sign-in?next=/account%3Fpage%3D2")
    answer = visitor.send("/sign-in", {"email": user.email.upper(), "password": PASSWORD, "next": "/account"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/account")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    page = visitor.get("/account")
    assert page.status_code == 200
    assert user.name in page.text


def test_wrong_sign_ins_look_alike(base_url: str, user: User, subtests: pytest.Subtests) -> None:
    cases = {"wrong password": (user.email, "wrong"), "unknown address": ("nobody@example.com", PASSWORD)}
    pages = {}
    for name, (email, password) in cases.items():
        with subtests.test(name):
            visitor = Visitor(base_url)
            answer = visitor.send("/sign-in", {"email": email, "password": password})
            assert answer.status_code == 401
            assert not visitor.cookies
            pages[name] = answer.text.replace(email, "")
    assert len(set(pages.values())) == 1, "an answer tells whether the address is known"


def test_user_is_locked_out_after_wrong_passwords(store: Store, base_url: str, user: User) -> None:
    for _ in range(MAX_FAILURES):
        Visitor(base_url).send("/sign-in", {"email": user.email, "password": "wrong"})
    assert Visitor(base_url).send("/sign-in", {"email": user.email, "password": PASSWORD}).status_code == 401
    with store.db.reading() as r:
        locked = users.get(r, user.user_id)
        actions = [entry.action for entry in audit.find(r, user.client_id) if entry.who == str(user.user_id)]
    assert actions.count("User.LockedOut") == 1
    assert not locked.may_sign_in(datetime.now(UTC))
    assert locked.may_sign_in(datetime.now(UTC) + LOCKED_FOR)


def test_few_passwords_from_one_address_are_checked_at_once(
    base_url: str, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each check takes 64 MiB, and anybody can ask for one."""
    running, counts = set[int](), list[int]()

    def check(*_: object) -> bool:
        running.add(get_ident())
        counts.append(len(running))
        sleep(0.01)
        running.discard(get_ident())
        return False

    monkeypatch.setattr(passwords, "verify_password", check)
    with ThreadPoolExecutor(12) as people:
        sent = {"email": user.email, "password": "wrong"}
        answers = people.map(lambda _: Visitor(base_url).send("/sign-in", sent).status_code, range(12))
        assert list(answers) == [401] * 12
    assert max(counts) <= max(1, 3 * (os.cpu_count() or 1) // 4)


def test_sign_in_gets_a_new_session(base_url: str, user: User) -> None:
    """A session that somebody else began can't become the user's (session fixation)."""
    visitor = Visitor(base_url)
    visitor.cookies["tidemark_session"] = "chosen by an attacker"
    visitor.send("/sign-in", {"email": user.email, "password": PASSWORD})
    assert "chosen by an attacker" not in visitor.cookies.values()


def test_link_signs_in_once(store: Store, base_url: str, user: User) -> None:
    with store.db.writing() as w:
        now = datetime.now(UTC)
        good, old = users.create_link(w, user, now + timedelta(hours=1)), users.create_link(w, user, now)
    visitor = Visitor(base_url)
    assert "Sign in" in visitor.get(f"/sign-in/link?token={good}").text, "reading the link's page must not use it"
    assert visitor.send("/sign-in/link", {"token": good}).status_code == 303
    assert visitor.get("/account").status_code == 200
    for used in (good, old, ""):
        assert Visitor(base_url).send("/sign-in/link", {"token": used}).status_code == 401


def test_sessions_end(store: Store, base_url: str, client_id: UUID, user: User, subtests: pytest.Subtests) -> None:
    def is_signed_out(visitor: Visitor) -> bool:
        return visitor.get("/account", follows=False).status_code == 303

    with subtests.test("by signing out"):
        visitor = visit_as(store, base_url, client_id, Role.VIEWER)
        stolen = dict(visitor.cookies)
        visitor.send("/sign-out", {"csrf": visitor.csrf})
        thief = Visitor(base_url)
        thief.cookies.update(stolen)
        assert is_signed_out(visitor)
        assert is_signed_out(thief)
    with subtests.test("by disabling the user, or a new password"):
        for change in (
            lambda w: users.disable(w, user, datetime.now(UTC)),
            lambda w: users.set_password(w, user, passwords.hash_password(PASSWORD)),
        ):
            with store.db.writing() as w:
                users.enable(w, user)
                token = sessions.start(w, user, datetime.now(UTC))
                change(w)
            with store.db.reading() as r:
                assert sessions.find(r, token, datetime.now(UTC)) is None
    with subtests.test("by time"):
        now = datetime.now(UTC)
        with store.db.writing() as w:
            token = sessions.start(w, user, now)
        with store.db.reading() as r:
            assert sessions.find(r, token, now + sessions.MAX_IDLE) is None


def test_forms_of_other_sites_are_refused(store: Store, base_url: str, client_id: UUID, user: User) -> None:
    visitor = visit_as(store, base_url, client_id, Role.ANALYST)
    other = visit_as(store, base_url, client_id, Role.ANALYST)
    cases = {
        "another origin": {"headers": {"origin": "https://evil.example"}, "fields": {"csrf": visitor.csrf}},
        "no origin": {"headers": {"origin": ""}, "fields": {"csrf": visitor.csrf}},
        "no token": {"fields": {}},
        "another user's token": {"fields": {"csrf": other.csrf}},
        "a large body": {"fields": {"csrf": visitor.csrf, "x": "x" * FORM_BYTES}},
    }
    for name, case in cases.items():
        answer = visitor.send("/sign-out", **case)
        assert answer.status_code in {403, 413}, name
        assert visitor.get("/account", follows=False).status_code == 200, name
    sent = {"email": user.email, "password": PASSWORD}
    assert Visitor(base_url).send("/sign-in", sent, headers={"origin": "https://evil.example"}).status_code == 403


def test_next_leads_to_this_site_only() -> None:
    for text in ("/customers?page=2", "/"):
        assert local_path(text) == text
    for text in ("https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "", "/a\r\nb: c"):
        assert local_path(text) == "/", text


def test_pages_allow_no_inline_script_and_no_frame(base_url: str) -> None:
    headers = Visitor(base_url).get("/sign-in").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe-inline" not in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_roles_grant_more_and_more() -> None:
    granted = [GRANTS[role] for role in Role]
    for fewer, more in itertools.pairwise(granted):
        assert fewer < more
    assert "decision-policies:publish" not in GRANTS[Role.ANALYST]
    assert "access:manage" not in GRANTS[Role.APPROVER]


def test_password_is_changed_by_its_user(base_url: str, user: User) -> None:
    visitor = Visitor(base_url)
    visitor.send("/sign-in", {"email": user.email, "password": PASSWORD})
    for case in (
        {"old": "wrong", "new": "another long one", "again": "another long one"},
        {"old": PASSWORD, "new": "short", "again": "short"},
        {"old": PASSWORD, "new": "another long one", "again": "another long two"},
    ):
        assert visitor.post("/account/password", **case).status_code == 400
    answer = visitor.post("/account/password", old=PASSWORD, new="another long one", again="another long one")
    assert "The password is changed." in answer.text
    fresh = Visitor(base_url)
    assert fresh.send("/sign-in", {"email": user.email, "password": "another long one"}).status_code == 303
