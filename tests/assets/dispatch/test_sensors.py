"""The sensors do overdue work of the dispatcher and the delivery loop, and leave new work to them."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from dagster import RunRequest, SkipReason, build_sensor_context
from sqlalchemy import select, update

from assets.dagster_internals import dagster_home
from assets.dispatch.sensors import submitted_jobs_sensor, webhook_outbox_sensor
from pipelines.webhooks.events import EventType
from storage.core import leases
from storage.core.models import DeliveryStatus, Queue, deliveries, jobs
from storage.core.store import Store
from storage.webhooks import outbox, subscriptions
from storage.webhooks.outbox import NewEvent
from tests.storage.examples import a_client, a_customer, a_submission


def submit(store: Store, ago_s: float) -> None:
    then = datetime.now(UTC) - timedelta(seconds=ago_s)
    a_submission(store, a_customer(store, a_client(store, then), then), then)


def working(store: Store, *roles: str) -> None:
    with store.db.writing() as w:
        for role in roles:
            leases.hold(w, role, uuid4(), ttl_s=60, now=datetime.now(UTC))


def tick(store: Store) -> list[RunRequest]:
    answer = submitted_jobs_sensor(build_sensor_context(resources={"store": store}))
    assert isinstance(answer, (list, SkipReason))
    return answer if isinstance(answer, list) else []


def test_without_a_dispatcher_the_sensor_claims_waiting_jobs(store: Store) -> None:
    submit(store, ago_s=0)
    working(store, dagster_home.worker_role(store.settings))
    [request] = tick(store)
    assert request.job_name == "enrichment_batch"
    assert request.tags["tidemark/queue"] == Queue.ENRICHMENT
    assert request.tags["tidemark/jobs"] == "1"
    assert request.partition_key == datetime.now(UTC).date().isoformat()
    assert tick(store) == []  # its batch is open now


def test_the_sensor_leaves_new_jobs_to_the_dispatcher_and_claims_overdue_ones(store: Store) -> None:
    working(store, dagster_home.worker_role(store.settings), leases.DISPATCHER)
    submit(store, ago_s=1)
    assert tick(store) == []

    with store.db.writing() as w:
        w.execute(update(jobs).values(created_at=datetime.now(UTC) - timedelta(seconds=6)))
    assert len(tick(store)) == 1


def test_without_a_warm_worker_nothing_is_claimed(store: Store) -> None:
    submit(store, ago_s=60)
    assert tick(store) == []


def test_a_tick_sends_deliveries_only_if_one_is_overdue(store: Store) -> None:
    forgotten, fresh = an_event_due(store, ago_s=60), an_event_due(store, ago_s=0)
    webhook_outbox_sensor(build_sensor_context(resources={"store": store}))
    assert delivery_of(store, forgotten) is DeliveryStatus.FAILED  # tried: the guard refuses its receiver
    assert delivery_of(store, fresh) is DeliveryStatus.FAILED  # sent in the same tick

    fresh = an_event_due(store, ago_s=0)
    webhook_outbox_sensor(build_sensor_context(resources={"store": store}))
    assert delivery_of(store, fresh) is DeliveryStatus.DUE


def test_deliveries_of_a_silent_sender_become_due_again(store: Store) -> None:
    event_id = an_event_due(store, ago_s=0)
    with store.db.writing() as w:
        outbox.claim_due(w, uuid4(), limit=1, lease_s=1, now=datetime.now(UTC) - timedelta(seconds=2))
    webhook_outbox_sensor(build_sensor_context(resources={"store": store}))
    assert delivery_of(store, event_id) is DeliveryStatus.DUE


def an_event_due(store: Store, ago_s: float) -> UUID:
    """Enqueue an event for one subscription with a forbidden address. Return the event's id."""
    then = datetime.now(UTC) - timedelta(seconds=ago_s)
    customer = a_customer(store, a_client(store, then), then)
    event = NewEvent(uuid4(), customer.client_id, customer.number, uuid4(), EventType.JOB_COMPLETED, b"{}", then)
    with store.db.writing() as w:
        subscriptions.create(
            w, customer.client_id, EventType.JOB_COMPLETED, "https://127.0.0.1/hook", (), store.vault, then
        )
        outbox.enqueue(w, [event])
    return event.event_id


def delivery_of(store: Store, event_id: UUID) -> DeliveryStatus:
    with store.db.reading() as r:
        return DeliveryStatus(
            r.execute(select(deliveries.c.status).where(deliveries.c.event_id == event_id)).scalar_one()
        )
