"""A form that is sent as its page shows it changes nothing, whatever is stored."""

import json
import re
from dataclasses import replace
from uuid import uuid4

import pytest

from storage.access import users
from storage.access.roles import Role
from storage.core.models import ApprovalKind
from storage.core.store import Store
from tests.api.conftest import Client, belongings, new_client, require_approvals, spending_ruleset
from tests.api.console.forms import untouched
from tests.api.console.visitor import Visitor, new_user, visit_as
from tests.api.decisions.test_policies import BASE, document, publish_policy

TEXTS = (
    *("007", "1,000.50", "yes", "true", "null", "[]", "0", "-", "#x", "a: b", "'", '"', "&amp;", "<br>", "\\n"),
    *(
        " both ends ",
        "two  spaces",
        "a\ttab",
        "\u202ehidden",
        "zero\u200bwidth",
        "Zoë 🙂",
        "e\u0301",
        "\u2028",
        "\u0085",
    ),
    *("one\ntwo", "one\n\n\ntwo", "\nfirst line", "last line\n", "one\r\ntwo", "one\rtwo", "\n", " \n "),
)
NUMBERS = ("0", "7", "-7", "1.50", "0.00000002", "1684.5", "999999999999999999", "-0.000000000000000001", "1E+3")
DOCUMENTED = [text for text in TEXTS if text.isprintable()][-20:]  # what documents accept
BARE = {
    "name": "Bare",
    "defaultOutcome": "proceed",
    "defaultReason": {"code": "ALL", "message": "All.", "customerMessage": "All."},
}
WHOLE = {"source": "A bureau", "evidenceDate": "2026-06-01", "expiresAt": "2999-07-01T02:30:00Z"}
DATES = (
    *("2999-07-01T12:30:00.123456Z", "2999-01-01T00:00:00+11:00", "2027-04-03T15:30:00Z", "2027-04-03T16:30:00Z"),
    "9999-12-31T23:59:59Z",
)  # the middle ones are the same time of day in Sydney, once before and once after the clocks go back


@pytest.fixture(scope="module")
def client(store: Store, base_url: str) -> Client:
    return new_client(store, base_url)


@pytest.fixture(scope="module")
def admin(store: Store, base_url: str, client: Client) -> Visitor:
    return visit_as(store, base_url, client.client_id, Role.ADMIN)


def send_untouched(visitor: Visitor, page: str, action: str, button: str = "") -> None:
    """Open a page, and send its form as it is."""
    shown = visitor.get(page)
    assert shown.status_code == 200, shown.text
    sent = visitor.send(action, untouched(shown.text, action, button))
    assert sent.is_redirect, sent.text


def as_stored(client: Client, path: str) -> str:
    """Return the response as text, so that 1.50 differs from 1.5."""
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_attributes_stay_as_they_are(client: Client, admin: Visitor, subtests: pytest.Subtests) -> None:
    texts = [{"value": text, "source": text} for text in TEXTS]
    dates = [{"value": "x", "expiresAt": each} for each in DATES]
    wholes = map(json.dumps, [*texts, *dates, WHOLE | {"value": True}, {"value": False}])
    given = dict(enumerate([*NUMBERS, *wholes]))
    customer_id = client.new_customer()
    api, home = f"/v1/customer/{customer_id}/attributes", f"/customers/{customer_id}"
    members = ", ".join(f'"a{nth}": {value}' for nth, value in given.items())
    body = f'{{"attributes": {{{members}}}}}'
    stored = client.call("PUT", api, data=body.encode(), headers={"content-type": "application/json"})
    assert stored.ok, stored.text
    before = as_stored(client, api)
    for nth, value in given.items():
        with subtests.test(value):
            send_untouched(admin, f"{home}/details?attribute=a{nth}", f"{home}/attributes")
            assert as_stored(client, api) == before


def test_related_parties_stay_as_they_are(client: Client, admin: Visitor, subtests: pytest.Subtests) -> None:
    customer_id = client.new_customer()
    api, home = f"/v1/customer/{customer_id}/related-parties", f"/customers/{customer_id}"
    abns = ("51824753556", "00000000019", None)
    parties = [{"name": text, "abn": abns[nth % 3], "role": "director"} for nth, text in enumerate(TEXTS)]
    assert client.call("PUT", api, json=parties).ok
    before = as_stored(client, api)
    for nth, text in enumerate(TEXTS):
        with subtests.test(repr(text)):
            send_untouched(admin, f"{home}/details?party={nth}", f"{home}/related-parties")
            assert as_stored(client, api) == before


def test_an_application_stores_no_attributes(client: Client, admin: Visitor) -> None:
    slug = f"policy-{uuid4()}"
    texts = {f"a{nth}": text for nth, text in enumerate(TEXTS)}
    attributes = [{"name": name, "kind": "string", "meaning": "A text."} for name in texts]
    inputs = [{"name": "purpose", "kind": "string", "meaning": "What for."}]
    policy = {**BARE, "attributes": attributes, "declaredInputs": inputs}
    found = client.post(f"{BASE}/{slug}/check", policy).json()["data"]
    named = [{name: each[name] for name in ("code", "pointer")} for each in found["warnings"]]
    publish_policy(client, slug, policy | {"acknowledge": named})
    customer_id = client.new_customer()
    api, path = f"/v1/customer/{customer_id}/attributes", f"/customers/{customer_id}/decide/{slug}"
    assert client.call("PUT", api, json={"attributes": texts}).ok
    before = as_stored(client, api)
    sent = {"inputs": {"purpose": "one\ntwo"}}
    made = client.post(f"/v1/customer/{customer_id}/decision-policies/{slug}/evaluate", sent).json()["data"]
    shown = admin.get(f"{path}?again={made['evaluationId']}")
    answer = admin.send(path, untouched(shown.text, path, "decide"))
    assert as_stored(client, api) == before
    again = client.get(f"/v1{answer.headers['location']}").json()["data"]
    assert again["record"]["case"]["inputs"] == sent["inputs"]


def test_settings_stay_as_they_are(store: Store, client: Client, admin: Visitor, subtests: pytest.Subtests) -> None:
    ids = belongings(store, client)
    hook = f"/v1/webhooks/subscriptions/{ids['subscriptionId']}"
    for handling in ({"maxRetries": 0, "pauseAfterFailures": None}, {"maxRetries": 10, "pauseAfterFailures": 1000}):
        with subtests.test(str(handling)):
            assert client.call("PATCH", hook, json=handling).ok
            before = as_stored(client, hook)
            path = f"/admin/webhooks/{ids['subscriptionId']}"
            send_untouched(admin, path, path)
            assert as_stored(client, hook) == before
    for name in (" Ada ", "Ada\nLovelace", "Ada\u202e", "Zoë & <b>"):
        with subtests.test(repr(name)):
            user = new_user(store, client.client_id)
            with store.db.writing() as w:
                users.set_name(w, user, name)
            send_untouched(admin, f"/admin/users/{user.user_id}", f"/admin/users/{user.user_id}")
            with store.db.reading() as r:
                assert users.get(r, user.user_id) == replace(user, name=name)
    require_approvals(store, client, ApprovalKind.PUBLISH, ApprovalKind.ACTIVATE)
    send_untouched(admin, "/admin/four-eyes", "/admin/four-eyes")
    assert re.findall('value="([a-z]+)" checked', admin.get("/admin/four-eyes").text) == ["publish", "activate"]
    require_approvals(store, client)


def test_documents_stay_as_they_are(client: Client, admin: Visitor) -> None:
    """Saving an equal document makes no new version."""
    slug = f"policy-{uuid4()}"
    publish_policy(client, slug, document(notes="\n".join(DOCUMENTED)))
    stored = client.get(f"{BASE}/{slug}?version=1").json()["data"]["document"]
    send_untouched(admin, f"/policies/{slug}/edit", f"/policies/{slug}/edit", "save")
    versions = client.get(f"{BASE}/{slug}/versions").json()["data"]["versions"]
    assert [each["version"] for each in versions] == [1]
    assert client.get(f"{BASE}/{slug}").json()["data"]["document"] == stored
    ruleset = spending_ruleset(f"ruleset-{uuid4()}", [client.new_customer()])
    ruleset["rules"][0]["recommendedActions"] = [*DOCUMENTED]
    made = client.post("/v1/monitoring/rulesets", ruleset)
    assert made.ok, made.text
    ruleset_id = made.json()["data"]["rulesetId"]
    api, path = f"/v1/monitoring/rulesets/{ruleset_id}", f"/rulesets/{ruleset_id}/edit"
    send_untouched(admin, path, path, "save")
    found = client.get(api).json()["data"]
    assert (found["version"], found["document"]) == (1, made.json()["data"]["document"])
