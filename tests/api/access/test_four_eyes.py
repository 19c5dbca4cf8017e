"""The setting of four eyes over HTTP: a person sets it, and two persons lift it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import requests

from storage.access.approvals import REQUIRABLE
from storage.access.keys import Principal
from storage.access.roles import GRANTS, Role
from storage.core import audit
from storage.core.store import Store
from tests.api.conftest import Client, answering, with_scopes
from tests.api.console.visitor import new_user

PATH = "/v1/four-eyes"
PUBLISH, OVERRIDE, ACTIVATE = REQUIRABLE
As = Callable[[Role], Client]


@pytest.fixture
def visit(store: Store, client: Client) -> Iterator[As]:
    """Call the API as a new user of this role, who is signed in."""
    with ExitStack() as stack:

        def caller(role: Role) -> Client:
            user = new_user(store, client.client_id, role)
            principal = Principal(client.client_id, user.user_id, GRANTS[role], decision_policies=True, is_user=True)
            return Client(stack.enter_context(answering(store, principal)), client.client_id, "")

        yield caller


def put(by: Client, *actions: str) -> requests.Response:
    return by.call("PUT", PATH, json={"actions": actions})


def approve(by: Client, asked: requests.Response) -> requests.Response:
    assert asked.status_code == 202, asked.text
    return by.post(f"/v1/approvals/{asked.json()['data']['approvalId']}/approve")


def read(by: Client) -> list[str]:
    actions: list[str] = by.get(PATH).json()["data"]["actions"]
    return actions


def code(answer: requests.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def trail(store: Store, client: Client) -> list[tuple[str, dict[str, Any]]]:
    with store.db.reading() as r:
        return [(each.action, dict(each.resource)) for each in reversed(audit.find(r, client.client_id))]


def test_one_admin_adds_actions_and_another_is_needed_to_take_one_away(store: Store, client: Client, visit: As) -> None:
    first, second = visit(Role.ADMIN), visit(Role.ADMIN)
    assert read(client) == []
    assert put(first, OVERRIDE).status_code == 200
    assert put(first, ACTIVATE, OVERRIDE).json()["data"] == {"actions": [OVERRIDE, ACTIVATE]}
    assert put(first, OVERRIDE, ACTIVATE).status_code == 200  # no change
    asked = put(first, PUBLISH)
    approval = asked.json()["data"]
    assert (approval["kind"], approval["subject"]) == ("lift", {})
    assert approval["request"] == {"actions": [PUBLISH], "replaces": [OVERRIDE, ACTIVATE]}
    assert put(first, PUBLISH).json()["data"] == approval  # the pending request is the same
    assert code(approve(first, asked)) == (409, "Approval.SamePerson")
    assert read(first) == [OVERRIDE, ACTIVATE]
    assert approve(second, asked).status_code == 200
    assert read(first) == [PUBLISH]
    approve(second, put(first))
    lifted = [resource["fourEyes"] for action, resource in trail(store, client) if action == "Client.FourEyesSet"]
    assert lifted == ["override", "override,activate", "publish", "none"]
    assert [action for action, _ in trail(store, client)][:4] == [
        *("Client.FourEyesSet", "Client.FourEyesSet", "Approval.Requested", "Approval.Approved")
    ]
    last = trail(store, client)[-1][1]
    assert last["requestedBy"] == approval["requestedBy"]


def test_a_key_neither_sets_it_nor_approves_that_it_is_lifted(store: Store, client: Client, visit: As) -> None:
    admin, key = visit(Role.ADMIN), with_scopes(store, client, ["access:manage"])
    assert code(put(key, PUBLISH)) == (403, "Authorization.UserNeeded")
    put(admin, PUBLISH)
    asked = put(admin)
    assert code(approve(key, asked)) == (403, "Authorization.UserNeeded")
    approver = visit(Role.APPROVER)
    for refused in (approve(approver, asked), put(approver, OVERRIDE), approver.get(PATH)):
        assert code(refused) == (403, "Authorization.MissingScope")
    assert read(admin) == [PUBLISH]
    [pending] = admin.get("/v1/approvals?kind=lift&status=pending").json()["data"]["approvals"]
    assert pending["approvalId"] == asked.json()["data"]["approvalId"]


def test_a_request_is_not_performed_after_another_change(client: Client, visit: As) -> None:
    first, second = visit(Role.ADMIN), visit(Role.ADMIN)
    put(first, PUBLISH)
    asked = put(first)
    assert put(second, PUBLISH, OVERRIDE).status_code == 200
    assert code(approve(second, asked)) == (409, "Approval.SubjectChanged")
    assert read(client) == [PUBLISH, OVERRIDE]


def test_a_setting_that_was_changed_meanwhile_is_not_replaced(client: Client, visit: As) -> None:
    admin = visit(Role.ADMIN)

    def replace(replaced: object, *actions: str) -> requests.Response:
        return admin.call("PUT", PATH, json={"actions": actions, "replaces": replaced})

    assert replace([], PUBLISH).status_code == 200
    for actions in ((OVERRIDE,), (PUBLISH, OVERRIDE), ()):
        assert code(replace([], *actions)) == (409, "FourEyes.ChangedMeanwhile")
    assert read(client) == [PUBLISH]
    assert client.get("/v1/approvals").json()["data"]["approvals"] == []
    assert replace([PUBLISH], OVERRIDE, PUBLISH).status_code == 200
    assert replace(None, *REQUIRABLE).status_code == 200
    assert replace([*REQUIRABLE], PUBLISH).status_code == 202
    for wrong in ("publish", ["lift"], [1], {}):
        assert code(replace(wrong)) == (400, "FourEyes.InvalidActions")


def test_another_client_has_its_own_setting(client: Client, other_client: Client, visit: As) -> None:
    assert put(visit(Role.ADMIN), PUBLISH).status_code == 200
    assert (read(client), read(other_client)) == ([PUBLISH], [])


def test_what_is_no_list_of_actions_is_refused(visit: As, subtests: pytest.Subtests) -> None:
    admin = visit(Role.ADMIN)
    for actions in (None, "publish", ["publish", "publish"], ["lift"], ["x"], [1], {}):
        with subtests.test(actions=actions):
            refused = admin.call("PUT", PATH, json={"actions": actions})
            assert code(refused) == (400, "FourEyes.InvalidActions")
