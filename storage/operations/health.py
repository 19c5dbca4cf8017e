"""Whether what the service needs is there: each part is looked at afresh, and says what is wrong in one sentence.

A look costs a query or a small write, so that it may be polled. It tells no address, path or error text.
"""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.exc import SQLAlchemyError

from storage.core import leases
from storage.core.store import Store
from storage.operations import automations

PROBE_BYTES = 4_096


@dataclass(frozen=True)
class Part:
    """`reason` says what is wrong, None that nothing is."""

    reason: str | None = None

    @property
    def ok(self) -> bool:
        return self.reason is None


Parts = Mapping[str, Part]


def work(store: Store, now: datetime) -> Parts:
    """Of the database, and of who does the jobs."""
    try:
        with store.db.reading() as r:
            dispatched = leases.is_held(r, leases.DISPATCHER, now)
            worked_on = leases.is_held(r, leases.WORKER, now)
            stopped = automations.stopped(r)
    except SQLAlchemyError:
        return silent_database("The database can't be used.")
    return {
        "database": Part(),
        "dispatcher": Part(None if dispatched else "Nobody dispatches jobs."),
        "worker": Part(None if worked_on else "No worker is warm."),
        "automation": Part("Schedules or sensors that should run are stopped." if stopped else None),
    }


def silent_database(reason: str) -> Parts:
    unknown = Part("Not known without the database.")
    return {"database": Part(reason), "dispatcher": unknown, "worker": unknown, "automation": unknown}


def disk(store: Store) -> Parts:
    """Of the lake and of the disks that it and the home lie on."""
    return {"lake": _lake(store), "disk": _space(store)}


def silent_disk(reason: str) -> Parts:
    return {"lake": Part(reason), "disk": Part(reason)}


def _lake(store: Store) -> Part:
    try:
        with tempfile.TemporaryFile(dir=store.lake.root) as probe:  # without a name where the system can
            probe.write(bytes(PROBE_BYTES))
            probe.flush()
    except OSError as error:
        return Part(f"The lake can't be written: {error.strerror}.")
    return Part()


def _space(store: Store) -> Part:
    least = store.settings.min_free_bytes
    try:
        free = min(shutil.disk_usage(folder).free for folder in (store.settings.home, store.lake.root))
    except OSError as error:
        return Part(f"The free space is not known: {error.strerror}.")
    return Part() if free >= least else Part(f"Less than {least // 2**20:,} MiB are free.")
