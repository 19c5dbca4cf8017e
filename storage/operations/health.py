"""Check whether the parts that the service needs work. Each reports its problem in one sentence.

A check costs a few short queries or one small write, so that it may be polled. Its result holds no address or path.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError

from storage.core import leases
from storage.core.store import Store
from storage.operations import automations


@dataclass(frozen=True)
class Part:
    """The state of a part. `reason` says what is wrong; None if the part works."""

    reason: str | None = None

    @property
    def ok(self) -> bool:
        return self.reason is None


Parts = Mapping[str, Part]


def check_work(store: Store) -> Parts:
    """Check the database, and whether jobs are processed."""
    try:
        now = leases.clock(store.db)
        with store.db.reading() as r:
            has_dispatcher = leases.is_held(r, leases.DISPATCHER, now)
            has_worker = leases.is_held(r, leases.WORKER, now)
            stopped = automations.find_stopped(r)
    except SQLAlchemyError:
        return database_failure("The database can't be used.")
    return {
        "database": Part(),
        "dispatcher": Part(None if has_dispatcher else "No dispatcher is running."),
        "worker": Part(None if has_worker else "No worker is running."),
        "automation": Part("Schedules or sensors that should run are stopped." if stopped else None),
    }


def database_failure(reason: str) -> Parts:
    unknown = Part("Not known without the database.")
    return {"database": Part(reason), "dispatcher": unknown, "worker": unknown, "automation": unknown}


def check_disk(store: Store) -> Parts:
    """Check the lake, and the free space on its disk and the home's."""
    return {"lake": Part(store.lake.probe()), "disk": _check_space(store)}


def disk_failure(reason: str) -> Parts:
    return {"lake": Part(reason), "disk": Part(reason)}


def _check_space(store: Store) -> Part:
    least = store.settings.min_free_bytes
    try:
        free = min(shutil.disk_usage(folder).free for folder in (store.settings.home, store.lake.root))
    except OSError as error:
        return Part(f"The free space is not known: {error.strerror}.")
    return Part() if free >= least else Part(f"Less than {least // 2**20:,} MiB are free.")
