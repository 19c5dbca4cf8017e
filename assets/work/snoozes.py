"""End the snoozes of alerts, so that summaries of customers count them as open again.

A sensor does this, not the requests that read alerts, because a read must not write.
"""

from dagster import DefaultSensorStatus, ResourceParam, SkipReason, sensor

from assets.dispatch.sensors import EVERY_S
from storage.core import leases
from storage.core.store import Store
from storage.work import items


@sensor(
    minimum_interval_seconds=EVERY_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Counts alerts whose snooze has ended as open again in the summaries of customers.",
)
def ended_snoozes_sensor(store: ResourceParam[Store]) -> SkipReason:
    """End the snoozes that are over; no run is requested.

    A read transaction first checks whether there are any: a commit would wake every process that waits for changes.
    """
    now, ended = leases.clock(store.db), 0
    with store.db.reading() as r:
        have_ended = items.has_ended_snoozes(r, now)
    if have_ended:
        with store.db.writing() as w:
            ended = items.end_snoozes(w, now)
    return SkipReason(f"{ended} snoozes have ended.")
