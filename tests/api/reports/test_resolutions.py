"""A person resolves a finding of the risk report, or revokes the resolution; every change stays in the history."""

import pytest

from storage.core.store import Store
from tests.api.conftest import Client
from tests.api.worker import end_refreshes, end_submissions

KEY = "c2ba64628b784b625c41a4b961ab7e14"
FINDINGS = f'[{{"finding":"round_trip","key":"{KEY}"}}]'
RISK = f'{{"value":0.3100,"rating":"B","events":[],"integrity":{{"findings":{FINDINGS}}}}}'
DATA = {"completeness": "{}", "risk": RISK, "aggregate": '{"tables":[]}'}
REASON = "Deposit returned when the job was cancelled."


@pytest.fixture
def path(store: Store, client: Client) -> str:
    """Return the path of the resolutions of a customer whose risk report has a finding with the key."""
    customer_id = client.new_customer()
    client.submit_transactions(customer_id)
    end_submissions(store)
    client.post(f"/v1/customer/{customer_id}/reports/refresh")
    end_refreshes(store, DATA)
    return f"/v1/customer/{customer_id}/resolutions"


def test_a_finding_is_resolved_and_the_reports_are_computed_again(store: Store, client: Client, path: str) -> None:
    answer = client.call("PUT", path, json={"kind": "finding", "key": KEY, "reason": REASON})
    [resolved] = answer.json()["data"]["resolutions"]
    assert (answer.status_code, resolved["key"], resolved["reason"]) == (200, KEY, REASON)
    assert resolved["madeBy"]
    assert end_refreshes(store, DATA) is None
    listed = client.get(path).json()["data"]
    assert (listed["resolutions"], listed["history"]) == ([resolved], [resolved])


def test_a_revoked_resolution_stays_on_the_record(store: Store, client: Client, path: str) -> None:
    client.call("PUT", path, json={"kind": "finding", "key": KEY, "reason": REASON})
    end_refreshes(store, DATA)
    assert (
        client.call("PUT", path, json={"kind": "finding", "key": KEY, "reason": None}).json()["data"]["resolutions"]
        == []
    )
    history = client.get(path).json()["data"]["history"]
    assert [each["reason"] for each in history] == [None, REASON]


def test_the_same_resolution_again_is_no_change(client: Client, path: str) -> None:
    for _ in range(2):
        client.call("PUT", path, json={"kind": "finding", "key": KEY, "reason": REASON})
    assert client.get(path).json()["data"]["totalCount"] == 1


def test_nothing_is_resolved_while_a_refresh_runs_that_would_not_see_it(client: Client, path: str) -> None:
    client.call("PUT", path, json={"kind": "finding", "key": KEY, "reason": REASON})
    answer = client.call("PUT", path, json={"kind": "finding", "key": KEY, "reason": None})
    assert (answer.status_code, answer.json()["code"]) == (409, "Report.RefreshRunning")
    assert client.get(path).json()["data"]["totalCount"] == 1


@pytest.mark.parametrize("named", [{"key": "0" * 32}, {"kind": "event"}])
def test_what_the_report_does_not_show_can_not_be_resolved(client: Client, path: str, named: dict[str, str]) -> None:
    answer = client.call("PUT", path, json={"kind": "finding", "key": KEY, "reason": REASON, **named})
    assert (answer.status_code, answer.json()["code"]) == (404, "Resolution.NothingFound")


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"kind": "rumour"}, "Resolution.InvalidKind"),
        ({"key": "C2BA"}, "Resolution.InvalidKey"),
        ({"reason": ""}, "Resolution.InvalidReason"),
    ],
)
def test_a_resolution_that_is_wrong_is_refused(client: Client, path: str, wrong: dict[str, str], code: str) -> None:
    answer = client.call("PUT", path, json={"kind": "finding", "key": KEY, "reason": REASON, **wrong})
    assert (answer.status_code, answer.json()["code"]) == (400, code)
