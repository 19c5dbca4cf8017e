"""Dagster's daemons survive an unavailable database, and their process ends when one of them has died."""

import os
import signal
from typing import cast

import pytest
from dagster._daemon.controller import DagsterDaemonController
from dagster_postgres.utils import DagsterPostgresException
from sqlalchemy.exc import OperationalError

from assets.dagster_internals import web_and_daemon


def test_only_a_dead_daemon_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Exception] = [
        OperationalError("SELECT", {}, Exception("away")),
        DagsterPostgresException("too many retries for DB connection"),
        RuntimeError("a thread died"),
    ]
    reported: list[tuple[int, int]] = []

    class Controller:
        def check_daemon_loop(self) -> None:
            raise events.pop(0)

    monkeypatch.setattr(os, "kill", lambda *call: reported.append(call))
    web_and_daemon._watch(cast("DagsterDaemonController", Controller()))
    assert not events
    assert reported == [(os.getpid(), signal.SIGTERM)]
