"""Findings and events of the risk report are resolved by a form."""

import re

import pytest

from api.console.pages.resolutions import DONE
from storage.access.roles import Role
from storage.core import audit
from storage.core.store import Store
from tests.api.conftest import Client
from tests.api.console.forms import untouched
from tests.api.console.test_decisions import HOSTILE, read_words
from tests.api.console.visitor import Visitor, new_user, sign_in, visit_as
from tests.api.worker import end_refreshes, end_submissions

EVENT_KEY, FINDING_KEY = "0" * 32, "1" * 32
EVENT = (
    f'{{"key":"{EVENT_KEY}","code":"collections","sentence":"Payments to <b>collectors</b>","ceiling":"C",'
    '"firstDate":"2026-09-21","until":"2027-03-20","resolved":false,"count":2,"amount":1437.88}'
)
FINDING = (
    f'{{"key":"{FINDING_KEY}","finding":"round_trip","name":"Round trip","sentence":"Money came back",'
    '"firstDate":"2026-08-01","lastDate":"2026-08-09","rows":4,"amount":5000.00,'
    '"honestExplanation":"A deposit that was returned"}'
)
RISK = f'{{"value":0.3100,"rating":"C","events":[{EVENT}],"integrity":{{"findings":[{FINDING}]}}}}'
DATA = {"completeness": "{}", "risk": RISK, "aggregate": '{"tables":[]}'}
REASON = "Paid in full; see the letter of 3 November."


@pytest.fixture
def customer_id(store: Store, client: Client) -> str:
    made = client.new_customer()
    client.submit_transactions(made)
    end_submissions(store)
    client.post(f"/v1/customer/{made}/reports/refresh")
    end_refreshes(store, DATA)
    return made


@pytest.fixture
def analyst(store: Store, base_url: str, client: Client) -> Visitor:
    return visit_as(store, base_url, client.client_id, Role.ANALYST)


def test_an_event_is_resolved_with_a_reason_and_opened_again(store: Store, analyst: Visitor, customer_id: str) -> None:
    path = f"/customers/{customer_id}/resolutions"
    assert f'href="{path}"' in analyst.get(f"/customers/{customer_id}/reports").text
    shown = analyst.get(path).text
    words = read_words(analyst.get(path))
    for part in (
        "Payments to <b>collectors</b>",
        "C at best until 20 Mar 2027",
        "$1,437.88",
        "A deposit that was returned",
    ):
        assert part in words
    assert "figure=/events/0/amount" in shown
    assert "figure=/integrity/findings/0/amount" in shown

    done = read_words(analyst.post(path, kind="event", key=EVENT_KEY, reason=REASON, action="resolve"))
    assert f"It is resolved. {DONE}" in done
    assert f"Resolved {REASON} Ada, analyst" in done
    for kind, key, sent in (
        ("event", EVENT_KEY, {"action": "revoke"}),
        ("finding", FINDING_KEY, {"reason": REASON[:9]}),
    ):
        refused = analyst.post(path, kind=kind, key=key, **sent)
        words = read_words(refused, 409)
        assert "Nothing was changed, because the customer's reports are being computed. Try again in a moment." in words
        assert f"{sent.get('reason', '')}</textarea>" in refused.text
    end_refreshes(store, DATA)
    revoked = read_words(analyst.post(path, kind="event", key=EVENT_KEY, action="revoke"))
    assert "The resolution is revoked." in revoked
    assert REASON not in revoked


def test_a_resolution_needs_a_reason_that_stays_in_the_form(analyst: Visitor, customer_id: str) -> None:
    path = f"/customers/{customer_id}/resolutions"
    refused = analyst.post(path, kind="finding", key=FINDING_KEY, reason="x" * 1_001, action="resolve")
    assert (refused.status_code, "x" * 1_001 in refused.text) == (400, True)
    assert refused.text.count('class="fault"') == 1
    assert analyst.post(path, kind="finding", key="2" * 32, reason=REASON, action="resolve").status_code == 404


def test_everybody_reads_and_all_but_viewers_resolve(
    store: Store, base_url: str, client: Client, customer_id: str, subtests: pytest.Subtests
) -> None:
    path = f"/customers/{customer_id}/resolutions"
    for role in Role:
        with subtests.test(role):
            visitor, may = visit_as(store, base_url, client.client_id, role), role is not Role.VIEWER
            shown = visitor.get(path)
            assert "Payments to <b>collectors</b>" in read_words(shown)
            assert (shown.text.count("<textarea"), shown.text.count(f'action="{path}"')) == ((2, 2) if may else (0, 0))
            resolved = visitor.post(path, kind="event", key=EVENT_KEY, reason=REASON, action="resolve")
            assert ("It is resolved." in resolved.text, resolved.status_code) == (may, 200 if may else 403)
            if may:
                end_refreshes(store, DATA)
            revoked = visitor.post(path, kind="event", key=EVENT_KEY, action="revoke")
            assert ("The resolution is revoked." in revoked.text, revoked.status_code) == (may, 200 if may else 403)
            if may:
                end_refreshes(store, DATA)


def test_resolutions_are_sent_by_the_forms_of_the_page(
    store: Store, client: Client, analyst: Visitor, customer_id: str, subtests: pytest.Subtests
) -> None:
    path = f"/customers/{customer_id}/resolutions"
    for kind, key in (("event", EVENT_KEY), ("finding", FINDING_KEY)):
        for button, reason in (("resolve", REASON), ("revoke", None)):
            with subtests.test(f"{button} {kind}"):
                form = dict(untouched(item(analyst.get(path).text, key), path, button))
                assert (form["kind"], form["key"], form["action"]) == (kind, key, button)
                sent = form if reason is None else form | {"reason": reason}
                assert analyst.send(path, sent | {"csrf": analyst.csrf}).is_redirect
                end_refreshes(store, DATA)
                listed = client.get(f"/v1/customer/{customer_id}/resolutions").json()["data"]
                newest = listed["history"][0]
                assert (newest["kind"], newest["key"], newest["reason"]) == (kind, key, reason)
                assert [each["key"] for each in listed["resolutions"]] == ([] if reason is None else [key])


def test_who_resolved_what_and_why_is_recorded(store: Store, base_url: str, client: Client, customer_id: str) -> None:
    user = new_user(store, client.client_id)
    visitor, path = sign_in(store, base_url, user), f"/customers/{customer_id}/resolutions"
    visitor.post(path, kind="event", key=EVENT_KEY, reason=REASON, action="resolve")
    refused = visitor.post(path, kind="event", key=EVENT_KEY, action="revoke")
    assert refused.status_code == 409, "the reports are being computed"
    end_refreshes(store, DATA)
    visitor.post(path, kind="event", key=EVENT_KEY, action="revoke")
    with store.db.reading() as r:
        entries = [each for each in audit.find(r, client.client_id) if each.action == "Customer.ResolutionSet"]
    resource = {"customerId": customer_id, "key": EVENT_KEY}
    assert [(each.who, each.resource, each.outcome) for each in entries] == [(str(user.user_id), resource, "done")] * 2
    found = client.get(f"/v1/customer/{customer_id}/resolutions").json()["data"]
    assert found["resolutions"] == []
    assert [(each["kind"], each["key"], each["reason"], each["madeBy"]) for each in found["history"]] == [
        ("event", EVENT_KEY, None, str(user.user_id)),
        ("event", EVENT_KEY, REASON, str(user.user_id)),
    ]
    timeline = read_words(visitor.get(f"/customers/{customer_id}/history"))
    assert f"An event was resolved: {REASON}" in timeline
    assert "The resolution of an event was revoked." in timeline
    assert timeline.count("Ada, analyst") >= 2


def test_hostile_texts_stay_texts(store: Store, client: Client, analyst: Visitor, customer_id: str) -> None:
    path = f"/customers/{customer_id}/resolutions"
    hostile = f"{HOSTILE} \"'></textarea><img src=x onerror=alert(1)> {{{{ 7 * 7 }}}}"
    refused = analyst.post(path, kind="event", key=EVENT_KEY, reason=hostile + "x" * 1_000, action="resolve")
    done = analyst.post(path, kind="event", key=EVENT_KEY, reason=hostile, action="resolve")
    end_refreshes(store, DATA)
    for answer, status in ((refused, 400), (done, 200), (analyst.get(f"/customers/{customer_id}/history"), 200)):
        words = read_words(answer, status)
        assert "<img" not in answer.text
        assert "onerror=alert(1)> {{ 7 * 7 }}" in words
    assert not find_resolved(client, customer_id) - {hostile}
    for wrong, status in (
        ({"kind": "<script>alert(1)</script>"}, 400),
        ({"key": "<script>alert(1)</script>"}, 400),
        ({"key": "../../policies"}, 400),
        ({"action": "<script>alert(1)</script>", "reason": ""}, 400),
        ({"csrf": "0" * 64}, 403),
    ):
        fields = {"kind": "finding", "key": FINDING_KEY, "reason": "Explained.", "action": "resolve"} | wrong
        read_words(analyst.post(path, **fields), status)
    assert not find_resolved(client, customer_id) - {hostile}


def item(page: str, key: str) -> str:
    """Return the part of the page that is about this finding or event."""
    [found] = re.findall(rf'<article class="item" aria-labelledby="i-{key}">.*?</article>', page, re.DOTALL)
    return str(found)


def find_resolved(client: Client, customer_id: str) -> set[str]:
    """Return the reasons of all resolutions that were ever made."""
    history = client.get(f"/v1/customer/{customer_id}/resolutions").json()["data"]["history"]
    return {each["reason"] for each in history}


def test_a_customer_without_reports_has_nothing_to_resolve(client: Client, analyst: Visitor) -> None:
    customer_id = client.new_customer()
    assert "no finding" in read_words(analyst.get(f"/customers/{customer_id}/resolutions"))
    assert "/resolutions" not in analyst.get(f"/customers/{customer_id}/reports").text
