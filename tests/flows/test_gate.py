"""Dagster's pages behind the gate of a whole service: readers view, operators act, and a restart restores schedules."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from assets.access.gate import COOKIE
from assets.access.gate_tokens import Role
from assets.core.graphql import AUTOMATIONS
from tests.flows.service import Service
from tests.waiting import until

REPOSITORY = {"repositoryLocationName": "tidemark", "repositoryName": "__repository__"}
SENSOR = "webhook_outbox_sensor"
STOP = """
mutation { stopSensor(id: "%s") { __typename ... on Error { message } } }
"""
STATE = """
query ($sensor: SensorSelector!) {
  sensorOrError(sensorSelector: $sensor) {
    ... on Sensor { canEdit: hasCursorUpdatePermissions sensorState { id status } }
  }
}
"""


@pytest.fixture(scope="module")
def own_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("gated"))
    try:
        running.start()
        yield running
    finally:
        running.stop()


def sign_in(service: Service, role: Role) -> requests.Session:
    """Return a session that has signed in by the form."""
    http = requests.Session()
    http.trust_env = False
    http.headers["Origin"] = service.dagster_url
    answer = http.post(f"{service.dagster_url}/sign-in", data={"token": service.token(role)}, timeout=30)
    assert answer.ok, answer.text
    assert http.cookies[COOKIE]
    return http


def ask(service: Service, http: requests.Session, query: str, **variables: Any) -> requests.Response:
    body = {"query": query, "variables": variables}
    return http.post(f"{service.dagster_url}/graphql", json=body, timeout=30)


def sensor(service: Service, http: requests.Session) -> dict[str, Any]:
    answer = ask(service, http, STATE, sensor={**REPOSITORY, "sensorName": SENSOR})
    assert answer.ok, answer.text
    found: dict[str, Any] = answer.json()["data"]["sensorOrError"]
    return found


def is_ready(service: Service) -> bool:
    return requests.get(f"{service.base_url}/health/ready", timeout=10).ok


def doctor(service: Service) -> str:
    return service.output_of("api.cli", "doctor", "--json")


def test_mutations_from_other_pages_are_refused_and_a_stop_is_reported_until_the_next_start(
    own_service: Service,
) -> None:
    operator = sign_in(own_service, Role.OPERATOR)
    stop = STOP % sensor(own_service, operator)["sensorState"]["id"]
    image = {"Host": "evil.example", "Accept": "image/*"}
    for headers, status in ((image, 421), (image | {"Host": own_service.dagster_url[7:]}, 405)):
        answer = operator.get(f"{own_service.dagster_url}/graphql", params={"query": stop}, headers=headers, timeout=30)
        assert answer.status_code == status
    assert sensor(own_service, operator)["sensorState"]["status"] == "RUNNING"
    until(lambda: is_ready(own_service))  # an unreliable store may make it unready for a moment

    answer = ask(own_service, operator, stop)
    assert "message" not in answer.json()["data"]["stopSensor"], answer.text
    until(lambda: SENSOR in doctor(own_service))
    assert not is_ready(own_service)

    own_service.stop()
    own_service.start()
    assert sensor(own_service, sign_in(own_service, Role.OPERATOR))["sensorState"]["status"] == "RUNNING"
    until(lambda: is_ready(own_service))
    assert SENSOR not in doctor(own_service)


def test_a_reader_sees_pages_without_buttons(own_service: Service) -> None:
    reader = sign_in(own_service, Role.READER)
    page = reader.get(f"{own_service.dagster_url}/overview", headers={"Accept": "text/html"}, timeout=30)
    assert page.ok
    assert "<html" in page.text.lower()
    assert ask(own_service, reader, AUTOMATIONS, repository=REPOSITORY).json()["data"]
    found = sensor(own_service, reader)
    assert not found["canEdit"]
    assert sensor(own_service, sign_in(own_service, Role.OPERATOR))["canEdit"]
    assert ask(own_service, reader, STOP % found["sensorState"]["id"]).status_code == 403


@contextmanager
def websocket(service: Service, cookie: str, origin: str) -> Iterator[ClientConnection]:
    url = f"ws://127.0.0.1:{service.dagster_port}/graphql"
    headers = {"Cookie": f"{COOKIE}={cookie}", "Origin": origin}
    with connect(url, additional_headers=headers, subprotocols=[Subprotocol("graphql-ws")], proxy=None) as line:
        line.send(json.dumps({"type": "connection_init"}))
        assert json.loads(line.recv(30))["type"] == "connection_ack"
        yield line


def test_a_websocket_accepts_only_our_pages_and_carries_no_mutation(own_service: Service) -> None:
    operator = sign_in(own_service, Role.OPERATOR)
    session = operator.cookies[COOKIE]
    for cookie, origin in (("", own_service.dagster_url), (session, "http://evil.example")):
        with pytest.raises(InvalidStatus), websocket(own_service, cookie, origin):
            pass
    state = sensor(own_service, operator)["sensorState"]
    with websocket(own_service, session, own_service.dagster_url) as line:
        line.send(json.dumps({"type": "start", "id": "1", "payload": {"query": STOP % state["id"]}}))
        assert json.loads(line.recv(30))["type"] == "error"
    assert sensor(own_service, operator)["sensorState"] == state


def test_the_log_names_the_token_file_but_holds_no_token(own_service: Service) -> None:
    log = own_service.log.read_text()
    assert str(own_service.home / "operator.token") in log
    assert not [role for role in Role if own_service.token(role) in log]
    home: Path = own_service.home
    assert {each.stat().st_mode & 0o777 for each in home.glob("*.token")} == {0o600}
