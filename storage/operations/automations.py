"""Schedules and sensors that should run and don't, as last recorded by the leading dispatcher.

If one is stopped, nothing fails visibly: nothing is swept or refreshed, or a safety net is missing. Therefore the
readiness check and the doctor read this table. They can't ask Dagster, because this layer doesn't use it.
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


def find_stopped(r: Reading) -> dict[Automation, datetime]:
    """Return the stopped schedules and sensors with the time when each was first found stopped, by kind and name."""
    rows = r.execute(select(stopped_automations).order_by(stopped_automations.c.kind, stopped_automations.c.name))
    return {Automation(Kind(row.kind), row.name): row.found_at for row in rows}


def record(w: Writing, now_stopped: Collection[Automation], now: datetime) -> None:
    """Record which schedules and sensors are stopped now."""
    recorded, columns = find_stopped(w), stopped_automations.c
    for kind, name in recorded.keys() - set(now_stopped):
        w.execute(delete(stopped_automations).where(columns.kind == kind, columns.name == name))
    for kind, name in set(now_stopped) - recorded.keys():
        w.execute(insert(stopped_automations).values(kind=kind, name=name, found_at=now))
