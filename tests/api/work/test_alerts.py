"""Alerts and the queue over HTTP: what is listed, what a person may do, and what is recorded of it."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from api.core.schemas.examples import example
from api.decisions.schemas.policies import SentPolicy
from api.work.schemas.work import MAX_REASON
from storage.access import users
from storage.access.roles import Role
from storage.core import audit
from storage.core.store import Store
from tests.api.conftest import Belongings, Client, spending_ruleset
from tests.api.console.visitor import new_user
from tests.api.worker import end_submissions, evaluate

LATER = (datetime.now(UTC) + timedelta(days=1)).isoformat()


@pytest.fixture
def ids(store: Store, client: Client) -> Belongings:
    """A customer with an alert, and what else a test asks for."""
    return Belongings(store, client)


def get_data(client: Client, path: str, **query: object) -> Any:
    answer = client.get(f"/v1{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def act(client: Client, match_id: str, **action: object) -> Any:
    answer = client.post(f"/v1/alerts/{match_id}/actions", action)
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


def test_a_match_is_an_open_alert_with_what_its_rules_say(client: Client, ids: Belongings) -> None:
    match_id = ids["matchId"]
    [listed] = get_data(client, "/alerts")["alerts"]
    assert (listed["matchId"], listed["customerId"], listed["state"]) == (match_id, ids["customerId"], "open")
    assert listed["ruleset"]["id"] == ids["rulesetId"]
    rule = {
        "code": "SPENT",
        "message": "Money went out.",
        "severity": "warning",
        "recommendedActions": ["Ask what for."],
    }
    assert listed["rules"] == [rule]
    whole = get_data(client, f"/alerts/{ids['matchId']}")
    assert whole["rules"] == get_data(client, f"/monitoring/matches/{ids['matchId']}")["rules"]
    assert (whole["history"], whole["assignee"], whole["snoozedUntil"]) == ([], None, None)


def test_actions_are_answered_recorded_and_audited(store: Store, client: Client, ids: Belongings) -> None:
    user = new_user(store, client.client_id)
    match = ids["matchId"]
    assert act(client, match, action="acknowledge")["state"] == "acknowledged"
    assert act(client, match, action="assign", assignee=str(user.user_id))["assignee"] == str(user.user_id)
    snoozed = act(client, match, action="snooze", until=LATER, reason="Next week.")
    assert (snoozed["state"], datetime.fromisoformat(snoozed["snoozedUntil"]) > datetime.now(UTC)) == ("snoozed", True)
    assert act(client, match, action="close", reason="The loan is repaid.", until=LATER)["state"] == "closed"
    assert act(client, match, action="reopen")["state"] == "open"
    whole = act(client, match, action="assign", assignee=None)
    assert whole["assignee"] is None
    done = ["assign", "reopen", "close", "snooze", "assign", "acknowledge"]
    assert [each["action"] for each in whole["history"]] == done
    assert [each["reason"] for each in whole["history"]][2:4] == ["The loan is repaid.", "Next week."]
    assert len({each["madeBy"] for each in whole["history"]}) == 1
    with store.db.reading() as r:
        trail = [each for each in audit.find(r, client.client_id) if each.action.startswith("Alert.")]
    named = {"assign": "Assigned", "reopen": "Reopened", "close": "Closed", "snooze": "Snoozed"}
    expected = [f"Alert.{named.get(each, 'Acknowledged')}" for each in done]
    assert [(each.action, each.resource) for each in trail] == [(each, {"matchId": match}) for each in expected]


def test_actions_that_lack_something_are_refused(
    subtests: pytest.Subtests, client: Client, other_client: Client, store: Store, ids: Belongings
) -> None:
    stranger = new_user(store, other_client.client_id)
    yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    for body, pointer, code in (
        ({"action": "snooze"}, "/until", "Alert.InvalidUntil"),
        ({"action": "snooze", "until": yesterday}, "/until", "Alert.InvalidUntil"),
        ({"action": "snooze", "until": "2036-01-01T00:00:00"}, "/until", "Alert.InvalidUntil"),
        ({"action": "close"}, "/reason", "Alert.InvalidReason"),
        ({"action": "close", "reason": ""}, "/reason", "Alert.InvalidReason"),
        ({"action": "close", "reason": "x" * (MAX_REASON + 1)}, "/reason", "Alert.InvalidReason"),
        ({"action": "delete"}, "/action", "Alert.InvalidAction"),
        ({}, "/action", "Alert.InvalidAction"),
        ({"action": "assign", "assignee": "dana"}, "/assignee", "Work.InvalidAssignee"),
        ({"action": "assign", "assignee": str(uuid4())}, "/assignee", "Work.UnknownAssignee"),
        ({"action": "assign", "assignee": str(stranger.user_id)}, "/assignee", "Work.UnknownAssignee"),
    ):
        with subtests.test(str(body)[:60]):
            answer = client.post(f"/v1/alerts/{ids['matchId']}/actions", body)
            assert (answer.status_code, answer.json()["code"]) == (400, code)
            assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]
    assert get_data(client, f"/alerts/{ids['matchId']}")["history"] == []


def test_a_repeated_action_is_recorded_once(client: Client, ids: Belongings) -> None:
    body, headers = {"action": "acknowledge"}, {"Idempotency-Key": str(uuid4())}
    answers = [client.post(f"/v1/alerts/{ids['matchId']}/actions", body, headers=headers) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len(get_data(client, f"/alerts/{ids['matchId']}")["history"]) == 1


def test_alerts_and_work_are_filtered(subtests: pytest.Subtests, store: Store, client: Client, ids: Belongings) -> None:
    first = ids["matchId"]
    other = client.new_customer(name="Harbour Cafe")
    client.submit_transactions(other)
    end_submissions(store)
    client.post("/v1/monitoring/rulesets", spending_ruleset("another", [other]))
    evaluate(store, other)
    [second] = [each["matchId"] for each in get_data(client, "/alerts", customerId=other)["alerts"]]
    key = get_data(client, f"/alerts/{first}")
    me = act(client, first, action="acknowledge")["history"][0]["madeBy"]
    act(client, first, action="assign", assignee=me)
    act(client, second, action="snooze", until=LATER)
    assert key["customerName"] is None
    for query, found in (
        ({}, [second, first]),
        ({"state": "snoozed"}, [second]),
        ({"state": "acknowledged"}, [first]),
        ({"state": "open"}, []),
        ({"assignee": "me"}, [first]),
        ({"assignee": me}, [first]),
        ({"assignee": "none"}, [second]),
        ({"customerId": other, "assignee": "me"}, []),
        ({"rulesetId": ids["rulesetId"]}, [first]),
        ({"page": 2, "count": 1}, [first]),
    ):
        with subtests.test(str(query)):
            assert [each["matchId"] for each in get_data(client, "/alerts", **query)["alerts"]] == found
    alerts = [each["matchId"] for each in get_data(client, "/work", kind="alert")["items"]]
    assert alerts == [first], "a snoozed alert waits for its time"
    assert [each["matchId"] for each in get_data(client, "/work", assignee="me")["items"]] == [first]
    for query, code in (
        ({"state": "new"}, "Alert.InvalidState"),
        ({"customerId": "x"}, "Alert.InvalidId"),
        ({"assignee": "dana"}, "Work.InvalidAssignee"),
    ):
        assert client.get("/v1/alerts", params=query).json()["code"] == code
    assert client.get("/v1/alerts", params={"customerId": str(uuid4())}).json()["code"] == "Customer.NotFound"
    assert client.get("/v1/alerts", params={"rulesetId": str(uuid4())}).json()["code"] == "Ruleset.NotFound"


def test_a_referred_decision_waits_until_a_person_decides(store: Store, client: Client) -> None:
    user = new_user(store, client.client_id, Role.ANALYST)
    customer_id = client.new_customer(name="Harbour Cafe")
    saved = client.call("PUT", "/v1/decision-policies/refer", json=example(SentPolicy))
    assert saved.status_code == 201, saved.text
    client.post("/v1/decision-policies/refer/publish", {})
    path = f"/v1/customer/{customer_id}/decision-policies/refer/evaluate"
    made = client.post(path, {"inputs": {"requestedAmount": 1}}).json()["data"]
    assert made["verdict"]["outcome"] == "indeterminate", "the customer has no transactions"
    [waiting] = get_data(client, "/work")["items"]
    assert (waiting["kind"], waiting["evaluationId"], waiting["matchId"]) == ("decision", made["evaluationId"], None)
    assert (waiting["subject"], waiting["customerName"], waiting["rules"]) == ("refer", "Harbour Cafe", [])
    assert waiting["subjectName"] == example(SentPolicy)["name"]
    assert waiting["outcome"] == made["verdict"]["outcome"]
    assigned = client.call(
        "PUT", f"/v1/evaluations/{made['evaluationId']}/assignee", json={"assignee": str(user.user_id)}
    ).json()["data"]
    assert assigned["assignee"] == str(user.user_id)
    about = f"/evaluations/{made['evaluationId']}/assignee"
    assert get_data(client, about) == {"assignee": str(user.user_id), "isWaiting": True}
    assert get_data(client, "/work", assignee="none")["items"] == []
    override = {"outcome": "proceed", "reason": "Seen.", "decidedBy": "Dana Lee"}
    assert client.post(f"/v1/evaluations/{made['evaluationId']}/override", override).status_code == 201
    assert get_data(client, "/work")["items"] == []
    refused = client.call("PUT", f"/v1/evaluations/{made['evaluationId']}/assignee", json={"assignee": None})
    assert (refused.status_code, refused.json()["code"]) == (409, "Evaluation.NotWaiting")


def test_colleagues_are_users_to_whom_work_can_be_assigned(store: Store, client: Client, other_client: Client) -> None:
    analyst, gone = new_user(store, client.client_id), new_user(store, client.client_id)
    new_user(store, client.client_id, Role.VIEWER)
    new_user(store, other_client.client_id)
    with store.db.writing() as w:
        users.disable(w, gone, datetime.now(UTC))
    assert [each["userId"] for each in get_data(client, "/colleagues")["colleagues"]] == [str(analyst.user_id)]
