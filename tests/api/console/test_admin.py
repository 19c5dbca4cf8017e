"""The admin's pages: users, keys, webhooks, jobs, the audit trail and health."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape, unescape
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
import requests

from api.console.pages.access import SCOPES_IN_WORDS
from api.console.pages.audit import ROWS
from api.console.pages.webhooks import CUSTOMERS_ON_PAGE
from storage.access import approvals
from storage.access.approvals import REQUIRABLE
from storage.access.keys import SCOPES
from storage.access.roles import Role
from storage.core import audit
from storage.core.models import Flow, JobStatus
from storage.core.store import Store
from tests.api.conftest import Client, belongings, new_client
from tests.api.console.visitor import Visitor, new_user, visit_as


@dataclass
class Lender:
    client: Client
    admin: Visitor


@pytest.fixture(scope="module")
def lender(store: Store, base_url: str) -> Lender:
    client = new_client(store, base_url)
    return Lender(client, visit_as(store, base_url, client.client_id, Role.ADMIN))


@pytest.fixture(scope="module")
def ids(store: Store, lender: Lender) -> dict[str, str]:
    """One resource of each kind of the lender."""
    return belongings(store, lender.client)


def read_secret(page: requests.Response, name: str) -> str:
    """Return the secret in a page's field."""
    assert page.status_code == 200, page.text
    found = re.search(f'name="{name}" [^>]*readonly[^>]*>([^<]+)</textarea>', page.text)
    assert found is not None
    return unescape(found[1])


def test_user_is_invited_changed_and_disabled(lender: Lender, base_url: str) -> None:
    admin, email = lender.admin, f"{uuid4()}@example.com"
    link = urlsplit(read_secret(admin.post("/admin/users", name="Grace", email=email, role="analyst"), "link"))
    guest = Visitor(base_url)
    assert guest.send("/sign-in/link", {"token": link.query.removeprefix("token=")}).status_code == 303
    assert guest.get("/account").status_code == 200
    listed = admin.get("/admin/users").text
    found = re.search(rf'href="(/admin/users/[0-9a-f-]+)"><bdi>Grace</bdi>.*?{email}', listed, re.DOTALL)
    assert found is not None
    assert "Approver" in admin.post(found[1], name="Grace Hopper", role="approver").text
    assert "Disabled" in admin.post(f"{found[1]}/disable").text
    assert guest.get("/account", follows=False).status_code == 303
    assert "Active" in admin.post(f"{found[1]}/enable").text
    assert read_secret(admin.post(f"{found[1]}/link"), "link").startswith(base_url)
    assert "Erase this user" in admin.get(found[1]).text
    assert "The user is erased." in admin.post(f"{found[1]}/erase").text
    assert email not in admin.get("/admin/users").text
    assert admin.get(found[1]).status_code == 404
    trail = admin.get(f"/admin/audit?who={found[1].rpartition('/')[2]}").text
    assert "A removed user" in trail
    assert "Grace" not in trail


def test_refusals_are_shown_beside_the_form(lender: Lender, store: Store, subtests: pytest.Subtests) -> None:
    admin, taken = lender.admin, new_user(store, lender.client.client_id)
    [own] = re.findall(r'href="(/admin/users/[0-9a-f-]+)"><bdi>Ada, admin', admin.get("/admin/users").text)
    new = {"name": "A", "email": "a@b.example", "role": "viewer"}
    hook = {"eventType": "job.failed", "webhookUrl": "http://a.example"}
    https = hook | {"webhookUrl": "https://a.example"}
    cases = {
        "taken address": ("/admin/users", new | {"email": taken.email}, 409, "Another user has"),
        "no name": ("/admin/users", new | {"name": ""}, 400, "Name must have 1 to"),
        "last admin": (own, {"name": "Ada", "role": "viewer"}, 409, "only admin"),
        "last admin, disabled": (f"{own}/disable", {}, 409, "only admin"),
        "last admin, erased": (f"{own}/erase", {}, 409, "only admin"),
        "no scope": ("/admin/keys", {"days": "30"}, 400, "Choose at least one thing"),
        "plain address": ("/admin/webhooks", hook, 400, "Address must be an absolute https"),
        "no ids": ("/admin/webhooks", https | {"customerIds": "x y"}, 400, "Id 2: There is no customer with this id."),
    }
    for name, (path, fields, status, sentence) in cases.items():
        with subtests.test(name):
            page = admin.post(path, **fields)
            assert (page.status_code, sentence in page.text) == (status, True), page.text


def test_every_scope_of_a_key_is_explained() -> None:
    assert list(SCOPES_IN_WORDS) == list(SCOPES)


def test_key_is_created_replaced_and_revoked(lender: Lender, base_url: str) -> None:
    admin, client_id = lender.admin, lender.client.client_id

    def status(key: str) -> int:
        return Client(base_url, client_id, key).get("/v1/customers").status_code

    first = read_secret(admin.post("/admin/keys", scope=["customer:reports", "customer:work"], days="30"), "key")
    assert status(first) == 200
    listed = admin.get("/admin/keys").text
    assert first not in listed
    meanings = [SCOPES_IN_WORDS[scope] for scope in ("customer:reports", "customer:work")]
    assert "<br>".join(meanings) in unescape(listed)
    path = re.findall(r'href="(/admin/keys/[0-9a-f-]+)"', listed)[0]
    assert "can't be undone" in unescape(admin.get(path).text)
    assert all(meaning in admin.get(path).text for meaning in meanings)
    second = read_secret(admin.post(f"{path}/rotate", overlap="0"), "key")
    assert (status(first), status(second)) == (401, 200)
    path = re.findall(r'href="(/admin/keys/[0-9a-f-]+)"', admin.get("/admin/keys").text)[0]
    assert "The key is revoked." in admin.post(f"{path}/revoke").text
    assert status(second) == 401
    assert "for ever" not in admin.get(path).text


def test_four_eyes_are_set_by_one_admin_and_lifted_by_two(store: Store, base_url: str) -> None:
    client = new_client(store, base_url)
    first, second = (visit_as(store, base_url, client.client_id, Role.ADMIN) for _ in range(2))
    path = "/admin/four-eyes"

    def chosen(page: requests.Response) -> list[str]:
        return re.findall('name="action" value="([a-z]+)" checked', page.text)

    assert chosen(first.get(path)) == []
    stored = first.post(path, action=["publish", "override"])
    assert ("The setting is stored." in stored.text, chosen(stored)) == (True, ["publish", "override"])
    asked = first.post(path, action=["override", "activate"], **{"shown.action": ["publish", "override"]})
    assert "The change is requested: another admin must approve it." in asked.text
    assert ("You requested a change" in asked.text, chosen(asked)) == (True, ["publish", "override"])
    assert "Ada, admin</bdi> requested a change" in second.get(path).text
    own = first.get("/approvals?kind=lift").text
    assert ("Lift <a" in own, "/withdraw" in own, "/approve" in own) == (True, True, False)
    analyst = visit_as(store, base_url, client.client_id, Role.ANALYST).get("/approvals?kind=lift").text
    assert ("Lift four eyes" in analyst, "/admin" in analyst, "/approve" in analyst) == (True, False, False)
    waiting = second.get("/approvals?kind=lift").text
    assert "No second person any more:</b> Publish a policy<br>" in waiting
    assert "from then on:</b> Override a decision, Activate a ruleset<" in waiting
    [approve] = re.findall('action="(/approvals/[0-9a-f-]+/approve)"', waiting)
    assert "its action was performed" in second.post(approve).text
    assert chosen(first.get(path)) == ["override", "activate"]
    refused = first.post(path, action=["<b>"])
    assert (refused.status_code, "Actions must be a list" in refused.text) == (400, True)
    assert "Four eyes: <bdi>override,activate</bdi>" in " ".join(first.get("/admin/audit").text.split())


def test_admins_who_change_four_eyes_at_once_lose_nothing(store: Store, base_url: str) -> None:
    """No change takes back what was added a moment before, which would need another admin's approval."""
    path, kinds = "/admin/four-eyes", [*REQUIRABLE]
    for _ in range(5):
        client = new_client(store, base_url)
        admins = [visit_as(store, base_url, client.client_id, Role.ADMIN) for _ in kinds]
        for each in admins:
            assert each.csrf
        with ThreadPoolExecutor(len(kinds)) as pool:
            pages = [*pool.map(lambda admin, kind: admin.post(path, action=[kind]).text, admins, kinds)]
        assert all("The setting is stored." in page for page in pages)
        assert client.get("/v1/approvals").json()["data"]["approvals"] == []
        with store.db.reading() as r:
            entries = audit.find(r, client.client_id)
            assert approvals.read_four_eyes(r, client.client_id) == kinds
        assert [each.resource["fourEyes"].count(",") for each in reversed(entries) if "fourEyes" in each.resource] == [
            *(0, 1, 2)
        ]


def test_subscription_is_managed(lender: Lender) -> None:
    admin = lender.admin
    made = admin.post("/admin/webhooks", eventType="job.completed", webhookUrl="https://lender.example/hook")
    secret = read_secret(made, "secret")
    [path] = re.findall(r'href="(/admin/webhooks/[0-9a-f-]+)"', made.text)
    assert "by a user or key of yours" in admin.post(f"{path}/pause").text
    assert "Active" in admin.post(f"{path}/resume").text
    assert "Sample" in admin.post(f"{path}/test").text
    changed = admin.post(path, maxRetries="3", pauseAfterFailures="20").text
    for text in ("<dt>Retries</dt><dd>3</dd>", "<dt>Paused after</dt><dd>20 failures in a row</dd>", 'value="20"'):
        assert text in changed
    assert (
        "<dt>Paused after</dt><dd>Never by itself</dd>"
        in admin.post(path, maxRetries="3", **{"shown.pauseAfterFailures": "20"}).text
    )
    for fields, sentence in (
        ({"maxRetries": "11"}, "Retries must be a whole number from 0 to 10."),
        ({"maxRetries": ""}, "Retries must be a whole number from 0 to 10."),
        ({"maxRetries": "3", "pauseAfterFailures": "<i>"}, "“Pause after” must be a whole number from 1 to 1,000."),
    ):
        refused = admin.post(path, **fields, **{"shown.maxRetries": "3"})
        assert (refused.status_code, sentence in refused.text) == (400, True), refused.text
        assert f'value="{escape(fields.get("pauseAfterFailures", ""))}"' in refused.text
    assert "<dt>Retries</dt><dd>3</dd>" in admin.get(path).text
    assert read_secret(admin.post(f"{path}/rotate"), "secret") != secret
    assert "The subscription is deleted." in admin.post(f"{path}/delete").text
    assert admin.get(path).status_code == 404


def test_customers_of_a_subscription_are_added_and_removed(lender: Lender) -> None:
    admin, client = lender.admin, lender.client
    first, second = client.new_customer(name="Ada & Co"), client.new_customer()
    made = admin.post("/admin/webhooks", eventType="job.failed", webhookUrl="https://a.example", customerIds=first)
    [path] = re.findall(r'href="(/admin/webhooks/[0-9a-f-]+)"', made.text)
    api = path.replace("/admin/webhooks", "/v1/webhooks/subscriptions")

    def scope() -> list[str]:
        found: list[str] = client.get(api).json()["data"]["customerIds"]
        return found

    assert f'href="{path}/customers"' in admin.get(path).text
    shown = admin.get(f"{path}/customers").text
    assert f'<a href="/customers/{first}"><bdi>Ada &amp; Co</bdi></a>' in shown
    assert "The last customer" in shown, "removing it widens the subscription"
    added = admin.post(f"{path}/customers", customerIds=f"{second}\r\n{first}").text
    assert ("The customers are added." in added, scope()) == (True, [first, second])
    assert "The last customer" not in added
    assert "Customer without a name" in added
    for sent, sentence in (
        ("", "Type at least one customer&#39;s id."),
        (f"{second} x", "Id 2: There is no customer with this id."),
    ):
        refused = admin.post(f"{path}/customers", customerIds=sent)
        assert (refused.status_code, sentence in refused.text, sent in refused.text) == (400, True, True)
    removed = admin.post(f"{path}/customers/remove", customerId=first).text
    assert ("The customer is removed." in removed, scope()) == (True, [second])
    emptied = admin.post(f"{path}/customers/remove", customerId=second).text
    assert ("The events of all customers are sent from now on." in emptied, scope()) == (True, [])
    assert "The events of all customers are sent. Once you add" in emptied
    assert admin.post(f"{path}/customers/remove", customerId="x").status_code == 400


def test_customers_of_a_large_subscription_are_paged(lender: Lender) -> None:
    admin, client = lender.admin, lender.client
    ids = [client.new_customer() for _ in range(CUSTOMERS_ON_PAGE + 1)]
    made = admin.post(
        "/admin/webhooks", eventType="job.failed", webhookUrl="https://a.example", customerIds=" ".join(ids)
    )
    [path] = re.findall(r'href="(/admin/webhooks/[0-9a-f-]+)"', made.text)
    pages = [re.findall('href="/customers/([0-9a-f-]+)"', admin.get(f"{path}/customers?page={n}").text) for n in (1, 2)]
    assert ([len(each) for each in pages], pages[0] + pages[1]) == ([CUSTOMERS_ON_PAGE, 1], ids)
    for beyond in ("3", "0", "x", "9" * 10):
        assert admin.get(f"{path}/customers?page={beyond}").text == admin.get(f"{path}/customers?page=2").text


def test_delivery_and_job_are_listed(lender: Lender, ids: dict[str, str]) -> None:
    admin = lender.admin
    path = f"/admin/webhooks/{ids['subscriptionId']}"
    assert "Due" in admin.get(path).text
    resent = admin.send(f"{path}/deliveries/{ids['deliveryId']}/resend", {"csrf": admin.csrf})
    assert resent.status_code == 409, "it is due already"
    for text in ("<h1>Subscription: Job completed</h1>", "Without those of samples."):
        assert text in admin.get(path).text
    assert ">Job completed</a><br><code>job.completed</code>" in admin.get("/admin/webhooks").text
    jobs = admin.get("/admin/jobs?flow=Enrichment").text
    assert '<td class="short">Transactions</td>' in jobs
    assert all(f'<option value="{each}"' in jobs for each in (*Flow, *JobStatus))
    assert f"/customers/{ids['customerId']}" in jobs
    assert "No job matches these filters." in admin.get("/admin/jobs?flow=Enrichment&status=Failed").text
    trail = admin.get("/admin/audit?action=Subscription.Created").text
    assert ids["subscriptionId"] in trail
    assert "API key tm_sandbox_" in trail


def test_audit_trail_is_filtered_and_paged(store: Store, lender: Lender) -> None:
    admin = lender.admin
    with store.db.writing() as w:
        for _ in range(ROWS + 1):
            audit.append(w, audit.OPERATOR, "Key.Rotated", {}, datetime.now(UTC), client_id=lender.client.client_id)
    first = admin.get("/admin/audit?action=Key.Rotated&who=operator")
    older = re.search(r'rel="next" href="([^"]+)"', first.text)
    assert older is not None
    second = admin.get(unescape(older[1])).text
    assert second.count(">Key rotated</a></td>") == 1
    assert "Newest" in second
    offered = re.findall('<option value="([^"]*)"( selected)?>([^<]+)<', first.text.partition('name="action"')[2])
    assert ("", "", "All") in offered
    assert ("Key.Rotated", " selected", "Key rotated") in offered
    never = admin.get("/admin/audit?action=Thing.NeverDone").text
    assert '<option value="Thing.NeverDone" selected>Thing never done</option>' in never
    assert "No entry matches these filters." in admin.get("/admin/audit?since=2999-01-01").text
    assert admin.get("/admin/audit?since=yesterday").status_code == 400


def test_audit_trail_names_what_its_entries_concern(store: Store, base_url: str, subtests: pytest.Subtests) -> None:
    client = new_client(store, base_url)
    admin, ids = visit_as(store, base_url, client.client_id, Role.ADMIN), belongings(store, client)
    stored = client.get("/v1/decision-policies?includeDrafts=true&page=1&pageSize=10").json()["data"]["items"]
    policy = next(each for each in stored if each["slug"] == ids["slug"])
    named = {
        ("customerId", ids["customerId"]): f'<a href="/customers/{ids["customerId"]}"><bdi>',
        ("policyId", policy["policyId"]): f'<a href="/policies/{policy["slug"]}"><bdi>{policy["name"]}<',
        ("rulesetId", ids["rulesetId"]): f'<a href="/rulesets/{ids["rulesetId"]}"><bdi>',
        ("subscriptionId", ids["subscriptionId"]): f'<a href="/admin/webhooks/{ids["subscriptionId"]}"><bdi>',
        ("evaluationId", ids["evaluationId"]): f'<a href="/evaluations/{ids["evaluationId"]}"><bdi>',
        ("matchId", ids["matchId"]): f'<a href="/alerts/{ids["matchId"]}"><bdi>',
        ("userId", ids["userId"]): f'<a href="/admin/users/{ids["userId"]}"><bdi>',
        ("successorKeyId", ids["keyId"]): f'Successor key: <a href="/admin/keys/{ids["keyId"]}"><bdi>API key',
        ("requestedBy", ids["userId"]): f'Requested by: <a href="/admin/users/{ids["userId"]}"><bdi>',
        ("customerId", str(uuid4())): "<div>Customer</div>",  # erased since
        ("version", "3"): "Version: <bdi>3</bdi>",
    }
    for nth, ((name, id_), shown) in enumerate(named.items()):
        with store.db.writing() as w:
            audit.append(
                w, audit.OPERATOR, f"Test.Done{nth}", {name: id_}, datetime.now(UTC), client_id=client.client_id
            )
        with subtests.test(name, id=id_):
            found = " ".join(admin.get(f"/admin/audit?action=Test.Done{nth}").text.split()).replace("<div> ", "<div>")
            assert shown in found.replace(" </div>", "</div>")
            assert id_ in found
    with store.db.writing() as w:
        several = {"customerIds": [uuid4(), uuid4()]}
        audit.append(w, audit.OPERATOR, "Test.Listed", several, datetime.now(UTC), client_id=client.client_id)
    assert "2 customers" in admin.get("/admin/audit?action=Test.Listed").text


def test_health_is_shown(lender: Lender) -> None:
    page = lender.admin.get("/admin/health").text
    assert "Database" in page
    assert "No worker is running." in page


def test_jobs_of_another_clients_customer_are_not_found(store: Store, base_url: str, ids: dict[str, str]) -> None:
    stranger = visit_as(store, base_url, new_client(store, base_url).client_id, Role.ADMIN)
    assert stranger.get(f"/admin/jobs?customerId={ids['customerId']}").status_code == 404
