"""Work whose caller has disconnected, or that takes too long, stops at its next checkpoint."""

import json
import time
from threading import Event
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from anyio import to_thread
from starlette.requests import ClientDisconnect

from api.core.still_wanted import LONGEST_S, POLL_EVERY_S, StillWanted
from pipelines.decisions import sensitivity
from pipelines.vocabulary.checkpoints import checking, checkpoint
from pipelines.vocabulary.errors import Unavailable
from storage.core.store import Store
from tests.api.conftest import Client
from tests.api.core.test_evaluate import INPUTS, SLUG, save_policy, with_score
from tests.api.wire import head, line


class Checks:
    """A request that counts the checks of its connection, and whose caller can be made to disconnect."""

    def __init__(self) -> None:
        self.count = 0
        self.gone = False

    async def is_disconnected(self) -> bool:
        self.count += 1
        return self.gone


def reach_checkpoints(*moments: float, request: Checks) -> None:
    """Reach checkpoints at these times, in a thread as routes do."""
    clock = iter((0.0, 0.0, *moments))

    def work() -> None:
        with checking(StillWanted(request, lambda: next(clock))):  # pyrefly: ignore[bad-argument-type]  # all that is called
            for _ in moments:
                checkpoint()

    anyio.run(to_thread.run_sync, work)


def test_the_connection_is_checked_at_intervals() -> None:
    request = Checks()
    reach_checkpoints(0.1, POLL_EVERY_S, POLL_EVERY_S + 0.1, 2 * POLL_EVERY_S, request=request)
    assert request.count == 2
    request.gone = True
    reach_checkpoints(0.1, 0.2, request=request)  # most work ends before the first check
    with pytest.raises(ClientDisconnect):
        reach_checkpoints(1.0, request=request)


def test_work_stops_when_its_time_is_up() -> None:
    reach_checkpoints(LONGEST_S - 0.01, request=Checks())
    with pytest.raises(Unavailable) as ended:
        reach_checkpoints(LONGEST_S, request=Checks())
    assert ended.value.code == "Service.TookTooLong"


def test_work_without_a_checkpoint_goes_on() -> None:
    checkpoint()


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A sensitivity that takes a minute unless it is stopped; the object says when it began and what stopped it."""
    reported = SimpleNamespace(begun=Event(), over=Event(), why=None)

    def search(*_: Any) -> list[Any]:
        reported.begun.set()
        try:
            for _nth in range(1_200):
                checkpoint()
                time.sleep(0.05)
        except BaseException as why:
            reported.why = why
            raise
        finally:
            reported.over.set()
        return []

    monkeypatch.setattr(sensitivity, "find_sensitivities", search)
    return reported


def test_work_for_a_disconnected_caller_stops(
    store: Store, client: Client, socket_url: str, endless: SimpleNamespace
) -> None:
    save_policy(store, client)
    body = json.dumps({"inputs": INPUTS}).encode()
    path = f"/v1/customer/{with_score(client)}/decision-policies/{SLUG}/sensitivity"
    with line(socket_url) as made:
        content = ("Content-Type: application/json", f"Content-Length: {len(body)}")
        made.sendall(head("POST", path, f"x-api-key: {client.key}", *content) + body)
        assert endless.begun.wait(20)
        assert not endless.over.wait(3 * POLL_EVERY_S), "it stopped although its caller is connected"
    assert endless.over.wait(20)
    assert isinstance(endless.why, ClientDisconnect)
