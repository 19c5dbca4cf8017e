"""What a worker records in the database about the runs that it executes."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy.exc import SQLAlchemyError

from assets.workers.workers import Run
from storage.core import leases
from storage.core.database import Writing
from storage.core.store import Store
from storage.jobs import batches

log = logging.getLogger(__name__)


class BatchLedger:
    """Records what happened to a run's batch. If the database is down, the batch's lease expires."""

    def __init__(self, store: Store, holder: UUID) -> None:
        self._store = store
        self._holder = holder

    def record_launch(self, run: Run) -> None:
        self._write_batch(run, lambda w, token, _: batches.record_launch(w, token, run.run_id, self._holder))

    def renew(self, w: Writing, run: Run, now: datetime) -> bool:
        """Renew the run's leases. Return False if the run must stop."""
        if run.batch is not None:
            batches.renew(w, run.batch, self._store.settings, now)
        return True

    def release(self, run: Run) -> None:
        """Release the batch of a run that has ended, if it is still open: then the run was interrupted.

        Its jobs go back to the queue, or fail after too many attempts.
        """
        settings = self._store.settings
        if self._is_open(run):
            self._write_batch(run, lambda w, token, now: batches.release(w, token, settings, now))

    def give_back(self, run: Run) -> None:
        """Release the batch of a run that never began or was stopped on purpose. The attempt does not count."""
        self._write_batch(run, lambda w, token, _: batches.give_back(w, token))

    def _is_open(self, run: Run) -> bool:
        """Return whether the batch is still open. Nearly every run has closed it by committing, and then this read
        saves a write, which would wake every process that waits for changes.
        """
        try:
            with self._store.db.reading() as r:
                return run.batch is not None and batches.is_open(r, run.batch)
        except SQLAlchemyError:
            return True  # writing may work, and says if it doesn't

    def _write_batch(self, run: Run, change: Callable[[Writing, int, datetime], object]) -> None:
        if run.batch is None:
            return
        try:
            now = leases.clock(self._store.db)
            with self._store.db.writing() as w:
                change(w, run.batch, now)
        except SQLAlchemyError as error:
            log.warning("batch %s could not be updated: %s", run.batch, type(error).__name__)


@dataclass
class _Execution:
    holder: UUID = field(default_factory=uuid4)  # of the run's lease
    ended: threading.Event = field(default_factory=threading.Event)
    revoked: bool = False  # the lease is gone


class FleetLedger(BatchLedger):
    """Also holds a lease on each run, by which launchers on other machines know that it executes.

    Each execution has a holder of its own. So a run that a broker delivers twice, even to one worker, begins once.
    """

    def __init__(self, store: Store, holder: UUID) -> None:
        super().__init__(store, holder)
        self._executions: dict[Run, _Execution] = {}

    def begin(self, run: Run) -> threading.Event | None:
        """Begin a run. Return an event that is set when the run has ended, was lost or was given back.

        Return None if it must not begin: it was delivered before, or its batch went to another run.

        Raises:
            SQLAlchemyError: the database can't be used.
        """
        execution, now = _Execution(), leases.clock(self._store.db)
        with self._store.db.writing() as w:
            if not leases.hold(w, leases.run_role(run.run_id), execution.holder, self._store.settings.run_lease_s, now):
                return None
            if run.batch is not None and not batches.begin(w, run.batch, run.run_id, self._holder):
                leases.release(w, leases.run_role(run.run_id), execution.holder)
                return None
        self._executions[run] = execution
        return execution.ended

    def renew(self, w: Writing, run: Run, now: datetime) -> bool:
        """Renew the run's leases. Return False, once, if its own lease was revoked: somebody stops the run."""
        super().renew(w, run, now)
        execution = self._executions.get(run)
        if execution is None or execution.revoked:
            return True
        held = leases.renew(w, leases.run_role(run.run_id), execution.holder, self._store.settings.run_lease_s, now)
        execution.revoked = not held
        return held

    def release(self, run: Run) -> None:
        try:
            super().release(run)
        finally:
            self._end(run)

    def give_back(self, run: Run) -> None:
        try:
            super().give_back(run)
        finally:
            self._end(run)

    def _end(self, run: Run) -> None:
        execution = self._executions.pop(run)
        try:
            with self._store.db.writing() as w:
                leases.release(w, leases.run_role(run.run_id), execution.holder)
        except SQLAlchemyError as error:
            log.warning("the lease of run %s could not be given up: %s", run.run_id, type(error).__name__)
        finally:
            execution.ended.set()
