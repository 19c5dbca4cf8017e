"""Schedules and sensors that should run and don't, as the leading dispatcher last found them.

One that is stopped fails silently: nothing is swept, refreshed or caught by a safety net, and no request tells of it.
So readiness and the doctor read this table; the orchestrator itself they don't know.
"""

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import delete, insert, select

from storage.core.database import Reading, Writing
from storage.core.models import stopped_automations


class Kind(StrEnum):
    SCHEDULE = "schedule"
    SENSOR = "sensor"


class Automation(NamedTuple):
    """A schedule or a sensor."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def stopped(r: Reading) -> dict[Automation, datetime]:
    """Return when each that is stopped was first found so, by kind and name."""
    rows = r.execute(select(stopped_automations).order_by(stopped_automations.c.kind, stopped_automations.c.name))
    return {Automation(Kind(row.kind), row.name): row.found_at for row in rows}


def record(w: Writing, found: Collection[Automation], now: datetime) -> None:
    """Record which are stopped now."""
    known = stopped(w)
    for kind, name in known.keys() - set(found):
        table = stopped_automations.c
        w.execute(delete(stopped_automations).where(table.kind == kind, table.name == name))
    for kind, name in set(found) - known.keys():
        w.execute(insert(stopped_automations).values(kind=kind, name=name, found_at=now))
