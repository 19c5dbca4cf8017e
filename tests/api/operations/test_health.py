"""Health endpoints need no key, and report failing parts even if these are slow and polls are frequent."""

import asyncio
import logging
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests

from api.operations import readiness
from api.operations.readiness import Readiness
from storage.core import leases
from storage.core.settings import Settings
from storage.core.store import Store
from storage.operations import health
from storage.operations.health import Part
from tests.api.conftest import HTTP, answering
from tests.conftest import open_store

WELL = {"ok": True, "reason": None}


def get(url: str, path: str = "/health/ready") -> requests.Response:
    return HTTP.get(url + path, timeout=10)


def work(store: Store) -> None:
    """Hold the leases of a dispatcher and a worker."""
    now, us = datetime.now(UTC), uuid4()
    with store.db.writing() as w:
        assert leases.hold(w, leases.DISPATCHER, us, 60, now)
        assert leases.hold(w, leases.WORKER, us, 60, now)


def ailing(answer: requests.Response) -> dict[str, Any]:
    """Return the failing parts of a 503, with their reasons."""
    found = answer.json()
    assert (answer.status_code, found["code"]) == (503, "Service.NotReady")
    assert int(answer.headers["Retry-After"]) >= 1
    assert set(found["parts"]) == {"database", "dispatcher", "worker", "automation", "lake", "disk"}
    return {name: part["reason"] for name, part in found["parts"].items() if not part["ok"]}


def test_readiness_follows_the_work(own_store: Store) -> None:
    with answering(own_store) as url:
        assert get(url, "/health/live").json()["data"] == {"status": "live"}
        assert ailing(get(url)) == {"dispatcher": "No dispatcher is running.", "worker": "No worker is running."}
        work(own_store)
        ready = get(url)
    parts = dict.fromkeys(("database", "dispatcher", "worker", "automation", "lake", "disk"), WELL)
    assert (ready.status_code, ready.json()["data"]) == (200, {"status": "ready", "parts": parts})


def test_without_its_database_the_service_is_live_but_not_ready(own_store: Store) -> None:
    work(own_store)
    with answering(own_store) as url:
        with own_store.db.writing() as w:
            w.exec_driver_sql("ALTER TABLE leases RENAME TO gone")
        assert ailing(get(url)) == {
            "database": "The database can't be used.",
            "dispatcher": "Not known without the database.",
            "worker": "Not known without the database.",
            "automation": "Not known without the database.",
        }
        assert get(url, "/health/live").status_code == 200


def test_a_lake_that_can_not_be_written_is_named_without_its_path(own_store: Store) -> None:
    work(own_store)
    own_store.lake.root.rmdir()
    own_store.lake.root.write_text("a file where the folder should be")
    with answering(own_store) as url:
        assert ailing(get(url)) == {"lake": "The lake can't be written: Not a directory."}


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    full = open_store(Settings(home=tmp_path / "home", min_free_bytes=2**60))
    work(full)
    with answering(full) as url:
        assert ailing(get(url)) == {"disk": "Less than 1,099,511,627,776 MiB are free."}
    full.close()


def test_a_check_leaves_nothing_in_the_lake(own_store: Store) -> None:
    assert health.check_disk(own_store) == {"lake": Part(), "disk": Part()}
    assert list(own_store.lake.root.iterdir()) == []


def test_a_hanging_database_delays_no_poll_and_is_asked_once(own_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answers = list[int](), threading.Event()

    def hangs(_store: Store) -> health.Parts:
        asked.append(1)
        answers.wait(30)
        return {"database": Part()}

    monkeypatch.setattr(health, "check_work", hangs)
    monkeypatch.setattr(readiness, "CHECK_WITHIN_S", 0.05)

    async def poll() -> tuple[list[health.Parts], health.Parts]:
        readiness_check = Readiness(own_store)
        while_hanging = await asyncio.gather(*(readiness_check.parts() for _ in range(20)))
        answers.set()
        monkeypatch.setattr(readiness, "CHECK_WITHIN_S", 30)
        afterwards = await readiness_check.parts()
        readiness_check.close()
        return while_hanging, afterwards

    while_hanging, afterwards = asyncio.run(poll())
    assert not any(parts["database"].ok for parts in while_hanging)
    assert len(asked) <= 2
    assert afterwards["database"].ok


def test_polls_are_not_logged(base_url: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        get(base_url)
        get(base_url, "/health/live")
        get(base_url, "/v1/jobs")  # by now the lines of the first would have been written
    assert "/health" not in caplog.text
