"""Safety nets: what is pushed within milliseconds is also looked for every five seconds.

Both sensors are level-triggered: they read our own tables and keep no cursor, so a tick that is lost, late or runs
beside the next one changes nothing.
"""

from datetime import UTC, datetime, timedelta

from dagster import DefaultSensorStatus, ResourceParam, RunRequest, SkipReason, sensor

from assets.core.runs import JOB_OF, tags_of
from assets.dispatch.dispatcher import claim
from assets.dispatch.jobs import enrichment_batch, extraction_batch, refresh_batch
from assets.webhooks.delivery import deliver_due
from storage.core import leases
from storage.core.models import Queue
from storage.core.store import Store
from storage.jobs import batches
from storage.jobs.batches import Batch
from storage.webhooks import outbox

EVERY_S = 5  # the shortest that Dagster's loop knows
PATIENCE = timedelta(seconds=5)
DELIVERIES_A_TICK = 200
LAST_DELIVERY_AFTER_S = 10.0  # with a receiver's 30 s still well within a tick's 60


@sensor(
    jobs=[enrichment_batch, extraction_batch, refresh_batch],
    minimum_interval_seconds=EVERY_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Starts the run for submissions and refreshes that wait although they shouldn't. Normally the "
    "dispatcher starts a run the moment something is submitted. Where no dispatcher is at work, or a job has waited "
    "for more than five seconds in a queue that is free, this sensor makes the same claim in its place.",
)
def submitted_jobs_sensor(store: ResourceParam[Store]) -> list[RunRequest] | SkipReason:
    """One run request for every queue in which jobs are overdue, for a batch that is claimed here."""
    now = datetime.now(UTC)
    overdue = [batch for queue in JOB_OF if (batch := _claim_overdue(store, queue, now))]
    if not overdue:
        return SkipReason("Nothing waits that the dispatcher doesn't see to.")
    return [_run_request(batch) for batch in overdue]


@sensor(
    minimum_interval_seconds=EVERY_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Sends webhook events that are still due although they shouldn't be. Normally the worker delivers an "
    "event the moment it happens. Here deliveries whose sender fell silent, or whose time to be tried again has come, "
    "become due again, and what has been due for more than five seconds is sent, a bounded number at a time.",
)
def webhook_outbox_sensor(store: ResourceParam[Store]) -> SkipReason:
    """Delivers within the tick; there is never a run to request."""
    now = datetime.now(UTC)
    released, retried = _make_due(store, now)
    delivered = deliver_due(store, DELIVERIES_A_TICK, LAST_DELIVERY_AFTER_S) if _deliveries_wait(store, now) else 0
    return SkipReason(f"{released} given up by their sender, {retried} to be retried, {delivered} sent from here.")


def _claim_overdue(store: Store, queue: Queue, now: datetime) -> Batch | None:
    with store.db.reading() as r:
        since = batches.waiting_since(r, queue, store.settings, now)
        dispatched = leases.is_held(r, leases.DISPATCHER, now)
    if dispatched and (since is None or now - since < PATIENCE):
        return None
    return claim(store, queue, now)


def _run_request(batch: Batch) -> RunRequest:
    return RunRequest(
        run_key=str(batch.batch_id),
        job_name=JOB_OF[batch.queue],
        partition_key=batch.partition_day.isoformat(),
        tags=tags_of(batch),
    )


def _make_due(store: Store, now: datetime) -> tuple[int, int]:
    """How many their sender gave up, and how many are to be retried. Looks before it writes: looking wakes nobody."""
    with store.db.reading() as r:
        if not (outbox.any_expired(r, now) or outbox.any_retry_due(r, now)):
            return 0, 0
    with store.db.writing() as w:
        return outbox.release_expired(w, now), outbox.make_retries_due(w, now)


def _deliveries_wait(store: Store, now: datetime) -> bool:
    with store.db.reading() as r:
        since = outbox.due_since(r)
    return since is not None and now - since >= PATIENCE
