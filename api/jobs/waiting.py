"""`wait=`: requests that wait for the end of a job, without occupying a thread each.

One thread watches the database for all of them. After a commit, it queries which of the awaited jobs have ended and
wakes their requests on the event loop.
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

from api.core.schemas.jobs import MAX_ERRORS, JobStatusView
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

DATABASE_POLL_S = 0.5  # also the longest time until the thread notices `stop`
RECONNECT_S = 1.0

log = logging.getLogger("tidemark.api")


class Watcher:
    """Wakes the requests that wait for a job's end. It must be created inside a running event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._awaited: defaultdict[UUID, set[asyncio.Event]] = defaultdict(set)
        self._has_waiting = Event()
        self._stopped = Event()
        self._released = False
        self._thread = Thread(target=self._run, name="tidemark-watcher", daemon=True)
        self._thread.start()

    @contextmanager
    def watching(self, job_id: UUID) -> Iterator[asyncio.Event]:
        """Provide an event that is set when the job ends. Enter before reading the job, so that no end is missed."""
        ended = asyncio.Event()
        if self._released:
            ended.set()
        self._awaited[job_id].add(ended)
        self._has_waiting.set()
        try:
            yield ended
        finally:
            self._leave(job_id, ended)

    def _leave(self, job_id: UUID, ended: asyncio.Event) -> None:
        self._awaited[job_id].discard(ended)
        if not self._awaited[job_id]:
            del self._awaited[job_id]
        if not self._awaited:
            self._has_waiting.clear()

    def release(self) -> None:
        """Let all waiting requests, and new ones, respond at once, because the service is about to stop."""
        self._released = True
        self._wake(set(self._awaited))

    def stop(self) -> None:
        self._stopped.set()
        self._has_waiting.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                with Changes(self._store.db) as changes:
                    self._follow(changes)
            except Exception:
                log.exception("watching for ended jobs failed; it starts again")
                self._stopped.wait(RECONNECT_S)

    def _follow(self, changes: Changes) -> None:
        self._wake_ended()  # jobs that ended before the connection was open
        while not self._stopped.is_set():
            # Changes are read even if no request waits, because otherwise they would pile up.
            patience_s = DATABASE_POLL_S if self._has_waiting.wait(DATABASE_POLL_S) else 0.0
            if changes.wait(patience_s) and self._has_waiting.is_set():
                self._wake_ended()

    def _wake_ended(self) -> None:
        with self._store.db.reading() as r:
            ended = jobs.find_ended(r, list(self._awaited))
        self._loop.call_soon_threadsafe(self._wake, ended)

    def _wake(self, ended: set[UUID]) -> None:
        for job_id in ended & self._awaited.keys():
            for event in self._awaited[job_id]:
                event.set()


async def wait_for_end(watcher: Watcher, caller: Caller, job_id: str, wait_s: int) -> JobStatusView:
    """Return the job when it has ended, or as it is when the time is up."""
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
    """Return the job as it is now, with the first of its rejected rows."""
    with caller.reading() as r:
        job = caller.job(r, job_id)
        errors, warnings = _read_first_rejected(r, caller.store.lake, job)
    return JobStatusView.of(vars(job) | {"errors": errors, "warnings": [*job.warnings, *warnings]})


def _read_first_rejected(
    r: Reading, lake: Lake, job: Job
) -> tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, str]]]:
    """Return the first rejected rows, or a warning if their file is damaged: the job's status is shown even then."""
    if not job.rejected_rows:
        return [], []
    try:
        return outcomes.find_rejected(r, lake, job, Page(1, MAX_ERRORS)).items, []
    except Corrupt as error:
        return [], [{"code": error.code, "message": error.detail}]
