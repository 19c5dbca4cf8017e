"""`wait=`: requests that hold their answer until a job has ended, without holding a thread each.

One thread watches the database for all of them. When something was committed, it asks once which of the awaited jobs
have ended and wakes their requests on the event loop.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any
from uuid import UUID

from starlette.concurrency import run_in_threadpool

from api.core.schemas.jobs import MOST_ERRORS, JobStatusView
from api.http.dependencies import Caller
from pipelines.vocabulary.errors import Corrupt
from storage.core.changes import Changes
from storage.core.database import Reading
from storage.core.lake import Lake
from storage.core.models import TERMINAL
from storage.core.paging import Page
from storage.core.store import Store
from storage.jobs import jobs, outcomes
from storage.jobs.jobs import Job

DATABASE_POLL_S = 0.5  # how long at most a stop goes unnoticed
RECONNECT_S = 1.0

log = logging.getLogger("tidemark.api")


class Watcher:
    """Wakes whoever waits for a job's end. Made inside a running event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._awaited: defaultdict[UUID, set[asyncio.Event]] = defaultdict(set)
        self._somebody_waits = Event()
        self._stopped = Event()
        self._released = False
        self._thread = Thread(target=self._run, name="tidemark-watcher", daemon=True)
        self._thread.start()

    @contextmanager
    def watching(self, job_id: UUID) -> Iterator[asyncio.Event]:
        """An event that is set when the job ends. Enter before looking at the job, and no end is missed."""
        ended = asyncio.Event()
        if self._released:
            ended.set()
        self._awaited[job_id].add(ended)
        self._somebody_waits.set()
        try:
            yield ended
        finally:
            self._leave(job_id, ended)

    def _leave(self, job_id: UUID, ended: asyncio.Event) -> None:
        self._awaited[job_id].discard(ended)
        if not self._awaited[job_id]:
            del self._awaited[job_id]
        if not self._awaited:
            self._somebody_waits.clear()

    def release(self) -> None:
        """Let everybody go with what they have, also who comes from now on: the service is about to stop."""
        self._released = True
        self._wake(set(self._awaited))

    def stop(self) -> None:
        self._stopped.set()
        self._somebody_waits.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                with Changes(self._store.db) as changes:
                    self._follow(changes)
            except Exception:
                log.exception("the watch for ended jobs was lost and begins anew")
                self._stopped.wait(RECONNECT_S)

    def _follow(self, changes: Changes) -> None:
        self._wake_ended()  # whatever ended while nobody watched
        while not self._stopped.is_set():
            # also read while nobody waits, or changes would pile up in it
            patience_s = DATABASE_POLL_S if self._somebody_waits.wait(DATABASE_POLL_S) else 0.0
            if changes.wait(patience_s) and self._somebody_waits.is_set():
                self._wake_ended()

    def _wake_ended(self) -> None:
        with self._store.db.reading() as r:
            ended = jobs.terminal(r, list(self._awaited))
        self._loop.call_soon_threadsafe(self._wake, ended)

    def _wake(self, ended: set[UUID]) -> None:
        for job_id in ended & self._awaited.keys():
            for event in self._awaited[job_id]:
                event.set()


async def for_end(watcher: Watcher, caller: Caller, job_id: str, wait_s: int) -> JobStatusView:
    """The job once it has ended, or as it stands when the time is up."""
    job = await run_in_threadpool(poll, caller, job_id)
    if not wait_s or job.status in TERMINAL:
        return job
    with watcher.watching(job.job_id) as ended:
        job = await run_in_threadpool(poll, caller, job_id)
        if job.status not in TERMINAL:
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), wait_s)
            job = await run_in_threadpool(poll, caller, job_id)
    return job


def poll(caller: Caller, job_id: str) -> JobStatusView:
    """The job as it stands, with the first of its refused rows."""
    with caller.reading() as r:
        job = caller.job(r, job_id)
        errors, warnings = _first_refused(r, caller.store.lake, job)
    return JobStatusView.of(vars(job) | {"errors": errors, "warnings": [*job.warnings, *warnings]})


def _first_refused(r: Reading, lake: Lake, job: Job) -> tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, str]]]:
    """The first refused rows, or a warning: how the job ended is known, though the file that lists them is damaged."""
    if not job.rejected_rows:
        return [], []
    try:
        return outcomes.rejected(r, lake, job, Page(1, MOST_ERRORS)).items, []
    except Corrupt as error:
        return [], [{"code": error.code, "message": error.detail}]
