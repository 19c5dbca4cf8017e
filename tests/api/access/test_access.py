"""Users, roles, keys and the audit trail over HTTP."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import requests

from storage.access import keys, sessions, users
from storage.access.keys import SCOPES, Principal
from storage.access.roles import GRANTS, Role
from storage.access.users import User
from storage.core import audit
from storage.core.models import ApprovalKind, metadata
from storage.core.store import Store
from tests.api.conftest import Belongings, Client, answering, belongings, new_client, require_approvals, with_scopes
from tests.api.console.visitor import new_user

As = Callable[..., Client]
NEW_USER = {"email": "grace@lender.example", "name": "Grace Hopper", "role": "analyst"}


def principal(user: User, scopes: frozenset[str]) -> Principal:
    return Principal(user.client_id, user.user_id, scopes, decision_policies=True, is_user=True)


@pytest.fixture
def admin(store: Store, client: Client) -> User:
    return new_user(store, client.client_id, Role.ADMIN)


@pytest.fixture
def as_user(store: Store) -> Iterator[As]:
    """Call the API as a signed-in user, with the scopes of its role or with others."""
    with ExitStack() as stack:

        def caller(user: User, scopes: frozenset[str] | None = None) -> Client:
            url = stack.enter_context(answering(store, principal(user, scopes or GRANTS[user.role])))
            return Client(url, user.client_id, "")

        yield caller


def code(answer: requests.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_user_is_created_with_a_link_that_is_shown_once(store: Store, as_user: As, admin: User) -> None:
    lender = as_user(admin)
    made = lender.post("/v1/users", NEW_USER | {"email": f"{uuid4()}@Lender.example"})
    user = made.json()["data"]
    assert made.status_code == 201
    assert made.headers["location"] == f"/v1/users/{user['userId']}"
    assert user["email"] == user["email"].lower()
    token = user["link"].partition("token=")[2]
    listed = lender.get("/v1/users").json()["data"]
    assert {each["email"] for each in listed["users"]} == {admin.email, user["email"]}
    assert token not in str(listed)
    with store.db.writing() as w:
        followed = users.follow_link(w, token, datetime.now(UTC))
        [entry] = [each for each in audit.find(w, admin.client_id) if each.action == "User.Created"]
    assert followed is not None
    assert (followed.role, entry.who, entry.resource) == (Role.ANALYST, str(admin.user_id), {"userId": user["userId"]})
    taken = lender.post("/v1/users", NEW_USER | {"email": user["email"].upper()})
    assert code(taken) == (409, "User.AddressTaken")


def test_invalid_users_are_refused(as_user: As, admin: User, subtests: pytest.Subtests) -> None:
    lender = as_user(admin)
    cases = {
        "User.InvalidEmail": [{"email": each} for each in ("", "ada", "a@b@c", "a b@c", "a@" + "b" * 254, 7, None)],
        "User.InvalidName": [{"name": each} for each in ("", "x" * 201, 7, None)],
        "User.InvalidRole": [{"role": each} for each in ("", "owner", "Admin", None)],
    }
    for expected, changes in cases.items():
        for change in changes:
            with subtests.test(expected, change=change):
                assert code(lender.post("/v1/users", NEW_USER | change)) == (400, expected)


def test_user_is_changed_disabled_and_enabled(store: Store, as_user: As, client: Client, admin: User) -> None:
    lender, other = as_user(admin), new_user(store, client.client_id)
    path = f"/v1/users/{other.user_id}"
    with store.db.writing() as w:
        token = sessions.start(w, other, datetime.now(UTC))
    changed = lender.call("PATCH", path, json={"name": "Ada King", "role": "approver"}).json()["data"]
    assert (changed["name"], changed["role"]) == ("Ada King", "approver")
    assert lender.post(f"{path}/disable").json()["data"]["disabledAt"] is not None
    with store.db.reading() as r:
        assert sessions.find(r, token, datetime.now(UTC)) is None
    assert lender.post(f"{path}/enable").json()["data"] == lender.get(path).json()["data"]
    link = lender.post(f"{path}/link").json()["data"]["link"]
    assert link.startswith("/sign-in/link?token=")
    with store.db.reading() as r:
        done = [entry.action for entry in audit.find(r, client.client_id)]
    assert done == ["User.LinkMade", "User.Enabled", "User.Disabled", "User.RoleChanged", "User.Renamed"]


def test_an_erased_user_is_only_an_id(own_store: Store) -> None:
    """Every table is searched, after the user did one thing of each kind and somebody else had to do with it."""
    store, now = own_store, datetime.now(UTC)
    with answering(store) as url:
        client = new_client(store, url)
        own = Belongings(store, client)
        admin = new_user(store, client.client_id, Role.ADMIN)
        with store.db.writing() as w:
            user = users.create(w, client.client_id, "grace@lender.example", "Grace Hopper", Role.ADMIN, now)
            users.create_link(w, user, now + timedelta(hours=1))
            sessions.start(w, user, now)
        customer, alert = f"/v1/customer/{own['customerId']}", f"/v1/alerts/{own['matchId']}/actions"
        evaluation = f"/v1/evaluations/{own['evaluationId']}"
        override = {"outcome": "proceed", "reason": "Seen.", "decidedBy": "the credit committee"}
        require_approvals(store, client, ApprovalKind.PUBLISH)
        with answering(store, principal(user, GRANTS[user.role])) as as_user:
            grace = Client(as_user, client.client_id, "")
            done = [
                grace.post(f"{customer}/notes", {"text": "Called them."}),
                grace.post(alert, {"action": "assign", "assignee": str(user.user_id)}),
                grace.post(alert, {"action": "acknowledge"}),
                grace.post(f"{evaluation}/override", override),
                grace.post(f"/v1/decision-policies/{own['slug']}/publish", {"version": 2}),
                grace.post("/v1/keys", {"scopes": ["customer:reports"]}),
                grace.call("PATCH", f"/v1/users/{user.user_id}", json={"name": "Grace B. Hopper"}),
            ]
        with answering(store, principal(admin, GRANTS[admin.role])) as as_admin:
            lender, path = Client(as_admin, client.client_id, ""), f"/v1/users/{user.user_id}"
            done.append(lender.post(f"{path}/link"))
            assert [answer.status_code for answer in done if not answer.ok] == []
            assert lender.call("DELETE", path).json()["data"] == {"userId": str(user.user_id)}
            assert code(lender.call("DELETE", path)) == (404, "User.NotFound")
            assert user.email not in lender.get("/v1/users").text
            trail = lender.get("/v1/audit", params={"who": str(user.user_id)}).json()["data"]["entries"]
            [actor] = lender.get(f"/v1/actors?who={user.user_id}").json()["data"]["actors"]
    assert {"Note.Added", "Alert.Acknowledged", "Decision.Overridden"} <= {entry["action"] for entry in trail}
    assert (actor["kind"], actor["name"]) == ("user", "A removed user")
    with store.db.reading() as r:
        for table in metadata.sorted_tables:
            rows = repr(r.execute(table.select()).all())
            assert not [gone for gone in ("grace@", "Hopper") if gone in rows], table.name
    with closing(sqlite3.connect(store.settings.home / "tidemark.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert b"grace@lender" not in (store.settings.home / "tidemark.db").read_bytes()


def test_last_admin_stays(store: Store, as_user: As, client: Client, admin: User, subtests: pytest.Subtests) -> None:
    lender, path = as_user(admin), f"/v1/users/{admin.user_id}"
    disabled = new_user(store, client.client_id, Role.ADMIN)
    with store.db.writing() as w:
        users.disable(w, disabled, datetime.now(UTC))
    takes = {
        "disable": lambda: lender.post(f"{path}/disable"),
        "erase": lambda: lender.call("DELETE", path),
        "demote": lambda: lender.call("PATCH", path, json={"role": "approver"}),
    }
    for name, take in takes.items():
        with subtests.test(name):
            assert code(take()) == (409, "User.LastAdmin")
    assert lender.get(path).json()["data"]["role"] == "admin"
    new_user(store, client.client_id, Role.ADMIN)
    assert takes["demote"]().ok


def test_key_is_shown_once_rotated_and_revoked(as_user: As, client: Client, admin: User) -> None:
    lender = as_user(admin)
    made = lender.post("/v1/keys", {"scopes": ["customer:reports"]})
    key = made.json()["data"]
    assert made.status_code == 201
    assert lender.get(made.headers["location"]).json()["data"] == {
        name: value for name, value in key.items() if name != "key"
    }
    assert key["key"] not in lender.get("/v1/keys").text
    theirs = Client(client.base_url, client.client_id, key["key"])
    assert theirs.get("/v1/jobs").status_code == 200
    assert theirs.get("/v1/keys").status_code == 403
    path = f"/v1/keys/{key['keyId']}"
    successor = lender.post(f"{path}/rotate", {"overlapHours": 0}).json()["data"]
    assert successor["scopes"] == key["scopes"]
    assert theirs.get("/v1/jobs").status_code == 401
    assert code(lender.post(f"{path}/rotate", {})) == (404, "Key.NotFound")
    assert lender.post(f"/v1/keys/{successor['keyId']}/revoke").json()["data"]["revokedAt"] is not None
    theirs.key = successor["key"]
    assert theirs.get("/v1/jobs").status_code == 401


def test_invalid_keys_are_refused(as_user: As, admin: User, subtests: pytest.Subtests) -> None:
    lender, scopes = as_user(admin), ["customer:reports"]
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    cases = {
        "Key.InvalidScopes": [{"scopes": each} for each in ([], None, "customer:reports", ["all"], scopes * 2)],
        "Key.InvalidExpiry": [{"scopes": scopes, "expiresAt": each} for each in ("90d", "2030-01-01", 7)],
        "Key.ExpiryPast": [{"scopes": scopes, "expiresAt": past}],
    }
    for expected, bodies in cases.items():
        for body in bodies:
            with subtests.test(expected, body=body):
                assert code(lender.post("/v1/keys", body)) == (400, expected)


def changes(user: User, key_id: object) -> dict[str, tuple[str, str, object]]:
    """Return every request that gives or takes access."""
    mine, key = f"/v1/users/{user.user_id}", f"/v1/keys/{key_id}"
    return {
        "create a user": ("POST", "/v1/users", NEW_USER | {"role": "admin"}),
        "rename": ("PATCH", mine, {"name": "Ada"}),
        "change the role": ("PATCH", mine, {"role": "approver"}),
        "disable": ("POST", f"{mine}/disable", None),
        "erase": ("DELETE", mine, None),
        "enable": ("POST", f"{mine}/enable", None),
        "make a link": ("POST", f"{mine}/link", None),
        "create a key": ("POST", "/v1/keys", {"scopes": list(SCOPES)}),
        "rotate": ("POST", f"{key}/rotate", {}),
        "revoke": ("POST", f"{key}/revoke", None),
    }


TAKES_ONLY = {"rename", "disable", "erase", "revoke"}


def test_access_is_given_by_users_who_have_it(
    store: Store, as_user: As, client: Client, admin: User, subtests: pytest.Subtests
) -> None:
    other = new_user(store, client.client_id, Role.ADMIN)
    with store.db.writing() as w:
        key, _ = keys.create_key(w, client.client_id, SCOPES, None, "tm_sandbox_", datetime.now(UTC))
    limited = as_user(admin, frozenset({"access:manage", "customer:reports"}))
    approver = as_user(new_user(store, client.client_id, Role.APPROVER))
    before = client.get("/v1/users").json()["data"], client.get("/v1/keys").json()["data"]
    for name, (method, path, body) in changes(other, key.key_id).items():
        with subtests.test(name):
            assert code(client.call(method, path, json=body)) == (403, "Authorization.UserNeeded")
            assert code(approver.call(method, path, json=body)) == (403, "Authorization.MissingScope")
            if name not in TAKES_ONLY:
                assert code(limited.call(method, path, json=body)) == (403, "Authorization.NotHeld")
    assert (client.get("/v1/users").json()["data"], client.get("/v1/keys").json()["data"]) == before


def test_other_clients_see_and_change_nothing(
    store: Store, as_user: As, client: Client, other_client: Client, admin: User, subtests: pytest.Subtests
) -> None:
    theirs = as_user(new_user(store, other_client.client_id, Role.ADMIN))
    [key] = client.get("/v1/keys").json()["data"]["keys"]
    for name, (method, path, body) in changes(admin, key["keyId"]).items():
        if path.count("/") > 2:
            with subtests.test(name):
                assert theirs.call(method, path, json=body).status_code == 404
    named = theirs.get(f"/v1/actors?who={admin.user_id},{key['keyId']}").json()["data"]["actors"]
    assert {each["kind"] for each in named} == {"unknown"}
    assert client.post("/v1/webhooks/subscriptions", {"eventType": "job.failed", "webhookUrl": "https://a.example"}).ok
    assert "Subscription.Created" not in theirs.get("/v1/audit").text


def test_roles_are_listed_with_their_scopes(client: Client) -> None:
    listed = client.get("/v1/roles").json()["data"]["roles"]
    assert {each["role"]: frozenset(each["scopes"]) for each in listed} == dict(GRANTS)


def test_audit_trail_is_read_page_by_page_and_filtered(store: Store, client: Client, admin: User) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    with store.db.writing() as w:
        for number in range(7):
            who = audit.Actor(str(admin.user_id)) if number % 2 else audit.OPERATOR
            at = start + timedelta(days=number // 2)  # entries of one moment are told apart, too
            audit.append(w, who, f"Thing.Done{number % 3}", {"n": str(number)}, at, client_id=client.client_id)

    def read(**query: object) -> list[str]:
        found: list[str] = []
        cursor = ""
        while cursor is not None:
            data = client.get("/v1/audit", params={"count": 2, "cursor": cursor} | query).json()["data"]
            found += [entry["resource"]["n"] for entry in data["entries"]]
            cursor = data["nextCursor"]
        return found

    assert read() == ["6", "5", "4", "3", "2", "1", "0"]
    assert read(who=str(admin.user_id)) == ["5", "3", "1"]
    assert read(who="operator", action="Thing.Done0") == ["6", "0"]
    assert read(since=(start + timedelta(days=2)).isoformat()) == ["6", "5", "4"]
    assert read(action="Thing.Never") == []
    assert client.get("/v1/audit/actions").json()["data"] == {"actions": ["Thing.Done0", "Thing.Done1", "Thing.Done2"]}


def test_trail_has_titles_of_what_its_entries_concern(
    store: Store, client: Client, other_client: Client, subtests: pytest.Subtests
) -> None:
    ids = belongings(store, client)
    policies = client.get("/v1/decision-policies").json()["data"]["items"]
    ids["policyId"] = next(each["policyId"] for each in policies if each["slug"] == ids["slug"])
    titles = {
        "customerId": "51 824 753 556",
        "rulesetId": "Spending",
        "subscriptionId": "job.completed to https://lender.example/hook",
        "evaluationId": f"{policies[0]['name']}: Indeterminate",
        "matchId": "Spending, Customer without a name",
        "policyId": policies[0]["name"],
    }
    concerned = {name: ids[name] for name in titles}
    with store.db.writing() as w:
        for each in (client, other_client):
            for resource in (concerned, {"customerId": str(uuid4()), "version": "3", "customerIds": [uuid4()]}):
                audit.append(w, audit.OPERATOR, "Test.Done", resource, datetime.now(UTC), client_id=each.client_id)

    def read(reader: Client, query: str = "&includeSubjects=true") -> Any:
        return reader.get(f"/v1/audit?action=Test.Done{query}").json()["data"]["subjects"]

    shown = {(name, ids[name], title, ids["slug"] if name == "policyId" else None) for name, title in titles.items()}
    assert {tuple(each.values()) for each in read(client)} == shown
    assert read(client, "") is None
    assert read(other_client) == [], "what is another client's is unknown"
    for scope, names in (
        ("customer:reports", {"customerId"}),
        ("monitoring:rules", {"rulesetId"}),
        ("webhooks:subscribe", {"subscriptionId"}),
        ("decision-policies:evaluate", {"customerId", "evaluationId"}),
        ("customer:work", {"customerId", "matchId"}),
        ("decision-policies:read", {"customerId", "policyId"}),
    ):
        with subtests.test(scope):
            reader = with_scopes(store, client, ["access:manage", scope])
            assert {each["name"] for each in read(reader)} == names


def test_malformed_filters_of_the_trail_are_refused(client: Client, subtests: pytest.Subtests) -> None:
    cases = {
        "cursor=x": "Pagination.InvalidCursor",
        "cursor=fffffffffffffff-1": "Pagination.InvalidCursor",
        "count=0": "Pagination.InvalidCount",
        "since=yesterday": "Audit.InvalidSince",
        "who=": "Audit.InvalidWho",
        "action=a&action=b": "Audit.InvalidAction",
        "includeSubjects=yes": "Audit.InvalidIncludeSubjects",
    }
    for query, expected in cases.items():
        with subtests.test(query):
            assert code(client.get(f"/v1/audit?{query}")) == (400, expected)
    for who in ("", ",", "a,a", ",".join(map(str, range(101)))):
        with subtests.test(who=who[:20]):
            assert code(client.get(f"/v1/actors?who={who}")) == (400, "Actor.InvalidWho")


def test_actors_have_names_for_every_scope(store: Store, client: Client, admin: User) -> None:
    [key] = client.get("/v1/keys").json()["data"]["keys"]
    asked = [str(admin.user_id), key["keyId"], "operator", "service", "anonymous", str(uuid4()), "<b>"]
    for scope in ("customer:completeness", "webhooks:subscribe"):
        reader = with_scopes(store, client, [scope])
        named = reader.get("/v1/actors", params={"who": ",".join(asked)}).json()["data"]["actors"]
        assert [each["who"] for each in named] == asked
        assert [each["kind"] for each in named] == ["user", "key", "operator", "service", "anonymous", *["unknown"] * 2]
        assert [each["name"] for each in named][:2] == [admin.name, f"API key {key['hint']}"]
    stranger = new_client(store, client.base_url, ["customer:reports"])
    assert stranger.get("/v1/audit").status_code == 403
