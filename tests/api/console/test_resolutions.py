"""Findings and events of the risk report are resolved by a form."""

import pytest

from api.console.pages.resolutions import DONE
from storage.access.roles import Role
from storage.core.store import Store
from tests.api.conftest import Client
from tests.api.console.test_decisions import read_words
from tests.api.console.visitor import Visitor, visit_as
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


def test_who_may_not_resolve_has_no_form(store: Store, base_url: str, client: Client, customer_id: str) -> None:
    viewer = visit_as(store, base_url, client.client_id, Role.VIEWER)
    path = f"/customers/{customer_id}/resolutions"
    assert "<textarea" not in viewer.get(path).text
    assert viewer.post(path, kind="event", key=EVENT_KEY, reason=REASON).status_code == 403


def test_a_customer_without_reports_has_nothing_to_resolve(client: Client, analyst: Visitor) -> None:
    customer_id = client.new_customer()
    assert "no finding" in read_words(analyst.get(f"/customers/{customer_id}/resolutions"))
    assert "/resolutions" not in analyst.get(f"/customers/{customer_id}/reports").text
