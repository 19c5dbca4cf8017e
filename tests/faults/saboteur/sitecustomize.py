"""Let a test kill a process of Tidemark at its n-th write, without any change to product code.

A folder on PYTHONPATH holds this file, so every Python process of the service runs it before anything else. It counts
the moments at which something becomes durable or visible: before each fsync, around each hard link (a file gets its
name) and around each commit that changed something, on SQLite and on PostgreSQL. An order, a JSON file in the folder
`SABOTEUR_ORDERS`, names a process by a piece of its command line, and the count at which SIGKILL ends it. The
file is renamed before that, so an order is carried out only once, even if several processes match it.

This file uses only the standard library: it must cost nothing without an order, and import nothing of the service.
"""

import functools
import json
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

FOLDER = os.environ.get("SABOTEUR_ORDERS", "")
ORDER, CARRIED_OUT = os.path.join(FOLDER, "order.json"), os.path.join(FOLDER, "carried-out.json")
WHO = " ".join(sys.orig_argv)

_lock = threading.Lock()
_counted: dict[str, int] = {}  # by the order's id


def moment() -> None:
    """Count a moment, and kill this process if an order says so."""
    try:
        with open(ORDER) as file:
            order = json.load(file)
    except (FileNotFoundError, ValueError):
        return
    if order["process"] not in WHO:
        return
    with _lock:
        _counted[order["id"]] = count = _counted.get(order["id"], 0) + 1
        if count == order["nth"]:
            os.rename(ORDER, CARRIED_OUT)
            os.kill(os.getpid(), signal.SIGKILL)


def before(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def sabotaged(*args: Any, **kwargs: Any) -> Any:
        moment()
        return call(*args, **kwargs)

    return sabotaged


def around(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def sabotaged(*args: Any, **kwargs: Any) -> Any:
        moment()
        result = call(*args, **kwargs)
        moment()
        return result

    return sabotaged


def counting(kind: type[sqlite3.Connection]) -> type[sqlite3.Connection]:
    """Return a subclass of this connection that counts its commits that changed something."""

    class Counting(kind):  # a new class for each kind
        _changes_before = 0

        def commit(self) -> None:
            if self.total_changes == self._changes_before:
                super().commit()
                return
            self._changes_before = self.total_changes
            around(super().commit)()

    return Counting


def sabotage_sqlite() -> None:
    connect = sqlite3.dbapi2.connect

    @functools.wraps(connect)
    def sabotaged(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        kwargs["factory"] = counting(kwargs.get("factory", sqlite3.Connection))
        connection: sqlite3.Connection = connect(*args, **kwargs)
        return connection

    sqlite3.dbapi2.connect = sqlite3.connect = sabotaged  # pyrefly: ignore[bad-assignment]  # which has overloads


def sabotage_postgresql() -> None:
    import psycopg  # noqa: PLC0415  # takes 0.1 s, so only in processes that use it anyway

    psycopg.Connection.commit = around(psycopg.Connection.commit)  # pyrefly: ignore[method-assign]


def sleep(seconds: float) -> None:
    """Sleep by the monotonic clock: with libfaketime, which sets only the other clock, the system's sleep fails."""
    threading.Event().wait(seconds)


if FOLDER:
    os.fsync, os.link = before(os.fsync), around(os.link)
    sabotage_sqlite()
    if os.environ.get("TIDEMARK_DATABASE_URL", "").startswith("postgresql"):
        sabotage_postgresql()
if "DONT_FAKE_MONOTONIC" in os.environ:
    time.sleep = sleep  # pyrefly: ignore[bad-assignment]  # which also accepts integer-like types
