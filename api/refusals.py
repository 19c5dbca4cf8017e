"""Refused callers in the audit trail, in bounded number however many come.

Of each kind (who, from where, refused what) the first in a minute is written at once and the others as one entry with
their number when the minute is over. A thread writes: what an answer says, and how long it takes, must not depend on
whether its refusal was the first, which would tell keys that were revoked from keys that never were.
"""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Event, Lock, Thread

from sqlalchemy.exc import SQLAlchemyError

from storage import audit
from storage.audit import Actor, Outcome
from storage.database import Database

WINDOW_S = 60.0
MOST_KINDS = 100  # in a window; what comes from still other places is counted together

log = logging.getLogger("tidemark.api")


@dataclass(frozen=True)
class Refusal:
    """A kind of refusal: an unusable key from an address, or a key without the scope of an operation."""

    actor: Actor
    action: str
    place: str  # `addressHash` or `operation`, …
    name: str  # … and which one


class Refusals:
    """Counts refusals and writes them down."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = Lock()
        self._firsts: list[tuple[Refusal, datetime]] = []
        self._others: dict[Refusal, int] = {}  # of every kind in this window: how many came after the first
        self._wake, self._stopped = Event(), Event()
        self._thread = Thread(target=self._run, name="tidemark-refusals", daemon=True)
        self._thread.start()

    def note(self, refusal: Refusal) -> None:
        first, kind = refusal, replace(refusal, actor=replace(refusal.actor, request_id=None))
        with self._lock:
            if kind not in self._others and len(self._others) >= MOST_KINDS:
                first = kind = Refusal(Actor(audit.ANONYMOUS), refusal.action, refusal.place, "others")
            if kind in self._others:
                self._others[kind] += 1
                return
            self._others[kind] = 0
            self._firsts.append((first, datetime.now(UTC)))
        self._wake.set()

    def stop(self) -> None:
        """Write what is left, and end."""
        self._stopped.set()
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        window_ends = time.monotonic() + WINDOW_S
        stopping = False
        while not stopping:
            self._wake.wait(max(0.0, window_ends - time.monotonic()))
            self._wake.clear()
            stopping = self._stopped.is_set()
            over = stopping or time.monotonic() >= window_ends
            self._write(*self._taken(over=over))
            if over:
                window_ends = time.monotonic() + WINDOW_S

    def _taken(self, *, over: bool) -> tuple[list[tuple[Refusal, datetime]], Mapping[Refusal, int]]:
        """What is to be written now: the firsts, and, when the window is over, the others."""
        with self._lock:
            firsts, self._firsts = self._firsts, []
            others, self._others = (self._others, {}) if over else ({}, self._others)
        return firsts, others

    def _write(self, firsts: list[tuple[Refusal, datetime]], others: Mapping[Refusal, int]) -> None:
        now = datetime.now(UTC)
        due = [(refusal, at, 1) for refusal, at in firsts]
        due += [(refusal, now, times) for refusal, times in others.items() if times]
        if not due:
            return
        try:
            with self._db.writing() as w:
                for refusal, at, times in due:
                    place = {refusal.place: refusal.name}
                    audit.append(w, refusal.actor, refusal.action, place, at, outcome=Outcome.REFUSED, times=times)
        except SQLAlchemyError as error:
            log.warning("%s refusals could not be written down: %s", len(due), type(error).__name__)
