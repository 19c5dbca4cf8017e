"""Sensors as safety nets: every five seconds they do what the dispatcher and the worker normally do immediately.

Both sensors read the current state from our own tables and have no cursor. So it does no harm if a tick is lost, comes
late or overlaps the next one.
"""

from datetime import datetime, timedelta

from dagster import DefaultSensorStatus, ResourceParam, RunRequest, SkipReason, sensor

from assets.core.runs import JOB_OF, run_tags
from assets.dispatch.dispatcher import claim
from assets.dispatch.jobs import enrichment_batch, extraction_batch, refresh_batch
from storage.core import leases
from storage.core.models import Queue
from storage.core.store import Store
from storage.jobs import batches
from storage.jobs.batches import Batch
from storage.webhooks import outbox

EVERY_S = 5  # as often as Dagster's sensor loop runs: a shorter interval has no effect
PATIENCE = timedelta(seconds=5)  # before a sensor does the work of the dispatcher or the worker
DELIVERIES_PER_TICK = 200
# Seconds after the tick began. A delivery may take 30 s, and a tick must end within 60 s.
LAST_DELIVERY_AFTER_S = 10.0


@sensor(
    jobs=[enrichment_batch, extraction_batch, refresh_batch],
    minimum_interval_seconds=EVERY_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Starts runs for overdue submissions and refreshes. Normally the dispatcher starts a run as soon as "
    "something is submitted. If no dispatcher is running, or a job has waited for more than five seconds although a "
    "worker is free, this sensor claims the waiting jobs instead.",
)
def submitted_jobs_sensor(store: ResourceParam[Store]) -> list[RunRequest] | SkipReason:
    """Claim a batch in every queue in which jobs are overdue, and request its run."""
    now = leases.clock(store.db)
    overdue = [batch for queue in JOB_OF if (batch := _claim_overdue(store, queue, now))]
    if not overdue:
        return SkipReason("No job is overdue.")
    return [_run_request(batch) for batch in overdue]


@sensor(
    minimum_interval_seconds=EVERY_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Sends overdue webhook events. Normally the worker delivers an event as soon as it happens. This "
    "sensor takes deliveries back from senders that have stopped responding, and retries those whose waiting time is "
    "over. It sends a bounded number of the deliveries that have been due for more than five seconds.",
)
def webhook_outbox_sensor(store: ResourceParam[Store]) -> SkipReason:
    """Deliver overdue events within the tick; no run is requested."""
    now = leases.clock(store.db)
    released, retried = _make_due(store, now)
    delivered = _deliver_due(store) if _deliveries_wait(store, now) else 0
    return SkipReason(
        f"{released} taken back from senders that stopped responding, {retried} due for a retry, {delivered} sent."
    )


def _claim_overdue(store: Store, queue: Queue, now: datetime) -> Batch | None:
    with store.db.reading() as r:
        since = batches.waiting_since(r, queue, store.settings, now)
        has_dispatcher = leases.is_held(r, leases.DISPATCHER, now)
    if has_dispatcher and (since is None or now - since < PATIENCE):
        return None
    return claim(store, queue, now)


def _run_request(batch: Batch) -> RunRequest:
    return RunRequest(
        run_key=str(batch.batch_id),
        job_name=JOB_OF[batch.queue],
        partition_key=batch.partition_day.isoformat(),
        tags=run_tags(batch),
    )


def _make_due(store: Store, now: datetime) -> tuple[int, int]:
    """Release deliveries whose lease has expired, and make due those whose retry time has come. Count both.

    A read transaction first checks whether there are any: a commit would wake every process that waits for changes.
    """
    with store.db.reading() as r:
        if not (outbox.has_expired(r, now) or outbox.has_retry_due(r, now)):
            return 0, 0
    with store.db.writing() as w:
        return outbox.release_expired(w, now), outbox.make_retries_due(w, now)


def _deliveries_wait(store: Store, now: datetime) -> bool:
    with store.db.reading() as r:
        since = outbox.find_due_since(r)
    return since is not None and now - since >= PATIENCE


def _deliver_due(store: Store) -> int:
    from assets.webhooks.delivery import deliver_due  # noqa: PLC0415  # it imports aiohttp, which nothing else here needs

    return deliver_due(store, DELIVERIES_PER_TICK, LAST_DELIVERY_AFTER_S)
