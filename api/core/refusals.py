"""Write refused callers to the audit trail, with a bounded number of entries.

The first refusal of a kind (caller, address, operation) in a minute is written at once. The others become one entry
with their count when the minute is over. A background thread writes them, so that the time a response takes doesn't
depend on whether its refusal was the first; otherwise an attacker could distinguish revoked keys from unknown ones.
While the database is unavailable, a bounded number of entries waits.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Event, Lock, Thread

from storage.core import audit
from storage.core.audit import Actor, Outcome
from storage.core.database import UNREACHABLE, Database, Writing

WINDOW_S = 60.0
MAX_KINDS = 100  # in a window; further kinds are counted together (our judgement)
MAX_STORED = 10 * MAX_KINDS  # entries that wait while the database is unavailable (our judgement)

log = logging.getLogger("tidemark.api")


@dataclass(frozen=True)
class Refusal:
    """A kind of refusal: an unusable key from an address, or a key without the scope of an operation."""

    actor: Actor
    action: str
    member: str  # of the audit entry's details: `addressHash` or `operation`
    value: str  # the hash, or the operation's name


@dataclass(frozen=True)
class Due:
    """An entry that is due to be written."""

    refusal: Refusal
    at: datetime
    times: int = 1


class Refusals:
    """Counts refusals, and writes them to the audit trail in the background."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = Lock()
        self._firsts: list[Due] = []
        self._others: dict[Refusal, int] = {}  # for each kind in this window, how many came after the first
        self._wake, self._stopped = Event(), Event()
        self._thread = Thread(target=self._run, name="tidemark-refusals", daemon=True)
        self._thread.start()

    def note(self, refusal: Refusal) -> None:
        first, kind = refusal, replace(refusal, actor=replace(refusal.actor, request_id=None, own_request_id=None))
        with self._lock:
            if kind not in self._others and len(self._others) >= MAX_KINDS:
                first = kind = Refusal(Actor(audit.ANONYMOUS), refusal.action, refusal.member, "others")
            if kind in self._others:
                self._others[kind] += 1
                return
            self._others[kind] = 0
            self._firsts.append(Due(first, datetime.now(UTC)))
        self._wake.set()

    def stop(self) -> None:
        """Write the remaining entries and end the thread."""
        self._stopped.set()
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        window_ends = time.monotonic() + WINDOW_S
        stopping = False
        left: Sequence[Due] = ()
        while not stopping:
            self._wake.wait(max(0.0, window_ends - time.monotonic()))
            self._wake.clear()
            stopping = self._stopped.is_set()
            over = stopping or time.monotonic() >= window_ends
            left = self._write([*left, *self._due(over=over)])
            if over:
                window_ends = time.monotonic() + WINDOW_S

    def _due(self, *, over: bool) -> list[Due]:
        """Return the entries to write now: first refusals and, if the window is over, the counts of the others."""
        with self._lock:
            firsts, self._firsts = self._firsts, list[Due]()
            none = dict[Refusal, int]()
            others, self._others = (self._others, none) if over else (none, self._others)
        now = datetime.now(UTC)
        return firsts + [Due(refusal, now, times) for refusal, times in others.items() if times]

    def _write(self, due: Sequence[Due]) -> Sequence[Due]:
        """Write the entries. Return those to write later: all, up to MAX_STORED, if the database is unavailable."""
        if not due:
            return ()
        try:
            with self._db.writing() as w:
                for each in due:
                    _append(w, each)
        except UNREACHABLE as error:
            log.warning("%s refusals could not be written to the audit trail yet: %s", len(due), type(error).__name__)
            return due[:MAX_STORED]
        except Exception:
            log.exception("%s refusals could not be written to the audit trail", len(due))
        return ()


def _append(w: Writing, due: Due) -> None:
    refusal = due.refusal
    details = {refusal.member: refusal.value}
    audit.append(w, refusal.actor, refusal.action, details, due.at, outcome=Outcome.REFUSED, times=due.times)
