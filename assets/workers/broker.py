"""The broker's part in a fleet: Celery carries ids of runs from launchers to workers on any number of machines.

A message holds a run's id and its batch's fencing token, nothing else. It is acknowledged when the run has ended, so if
a worker dies or loses its connection, the broker delivers the run again. That may be too late, or once too often: what
a delivery means is decided in SQL (`assets.workers.ledgers`).
"""

import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import celery.worker.consumer
from amqp.exceptions import AMQPError, MessageNacked
from celery import Celery, Task
from celery.exceptions import CPendingDeprecationWarning, Reject
from celery.worker import state
from kombu import Exchange
from kombu import Queue as BrokerQueue
from kombu.exceptions import KombuError

from assets.workers.workers import Run
from storage.core.brokers import queue_name
from storage.core.models import Queue
from storage.core.settings import REDELIVER_AFTER_S, Settings

TASK = "tidemark.run"
CONNECT_WITHIN_S = 3
CONFIRM_WITHIN_S = 5.0  # for the broker to store a run's message; Dagster's page waits for it
HEARTBEAT_S = 10  # a broken connection is noticed after two
POLL_AGAIN_S = 0.1  # while the worker is not ready yet
STOP_WITHIN_S = 3.0  # for messages of ended runs to be acknowledged; those that aren't are delivered again

# More than there are runs at once: a run that is delivered again needs a thread, too, until it is refused.
MAX_THREADS = 4 * len(Queue)

UNREACHABLE = (KombuError, AMQPError, MessageNacked, OSError)

Execute = Callable[[Run, Queue], bool]  # returns False if another worker must get the run

log = logging.getLogger(__name__)


def make_app(settings: Settings) -> Celery:
    """Return the Celery application of launchers and workers. It connects when it is first used."""
    app = Celery("tidemark", set_as_current=False)
    on_rabbitmq = settings.broker_url.startswith("amqp")
    app.conf.update(
        broker_read_url=settings.broker_address,  # `broker_url` would give way to the variable CELERY_BROKER_URL
        broker_write_url=settings.broker_address,
        broker_connection_timeout=CONNECT_WITHIN_S,
        broker_connection_max_retries=None,
        broker_connection_retry_on_startup=True,
        broker_heartbeat=HEARTBEAT_S,
        broker_transport_options=settings.broker_options,
        task_queues=[_queue(settings, queue, durable_copies=on_rabbitmq) for queue in Queue],
        task_default_exchange=settings.broker_prefix,
        task_create_missing_queues=False,
        task_acks_late=True,
        task_ignore_result=True,
        worker_consumer="assets.workers.broker:Receiver",
        worker_enable_prefetch_count_reduction=False,  # it would raise the count after a lost connection
        worker_enable_remote_control=False,
        worker_send_task_events=False,
    )
    return app


def _queue(settings: Settings, queue: Queue, *, durable_copies: bool) -> BrokerQueue:
    """Return a queue. With `durable_copies`, most nodes of RabbitMQ store its messages."""
    name = queue_name(settings, queue)
    arguments = {"x-queue-type": "quorum", "x-consumer-timeout": REDELIVER_AFTER_S * 1_000} if durable_copies else None
    return BrokerQueue(name, Exchange(settings.broker_prefix), routing_key=name, queue_arguments=arguments)


def publish(app: Celery, settings: Settings, run: Run, queue: Queue) -> None:
    """Send a run to the workers.

    Raises:
        UNREACHABLE: the broker can't be reached, or did not confirm the message in time; it may have stored it.
    """
    app.send_task(
        TASK,
        (run.run_id, run.batch),
        queue=queue_name(settings, queue),
        retry_policy={"max_retries": 1, "interval_start": 0},  # a pooled connection may be one that has broken
        confirm_timeout=CONFIRM_WITHIN_S,
    )


class Receiver(celery.worker.consumer.Consumer):
    """Celery's consumer, with one message at a time of each queue, so that queues never wait for each other.

    That is so on RabbitMQ. Redis can't count by queue: there a worker takes as many messages as there are queues,
    possibly all from one.
    """

    class Blueprint(celery.worker.consumer.Consumer.Blueprint):
        # Without delayed delivery, which would declare 28 exchanges and queues for messages with a time.
        default_steps: ClassVar = [
            step
            for step in celery.worker.consumer.Consumer.Blueprint.default_steps
            if not step.endswith(":DelayedDelivery")
        ]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.initial_prefetch_count = 1 if self.conninfo.transport.driver_type == "amqp" else len(Queue)


@contextmanager
def receiving(
    settings: Settings, execute: Execute, is_ready: Callable[[], bool], stop: threading.Event
) -> Iterator[Callable[[], bool]]:
    """Receive runs from when the worker is ready until `stop` is set. Yield a function that returns whether the
    broker is connected.

    Each run is executed in a thread of its own, so that the connection's heartbeats go on. `stop` is also set if
    receiving fails for good.
    """
    app = make_app(settings)

    @app.task(name=TASK, bind=True, shared=False)
    def execute_run(task: Task, run_id: str, batch: int | None) -> None:
        queue = Queue(task.request.delivery_info["routing_key"].removeprefix(f"{settings.broker_prefix}."))
        if not execute(Run(run_id, batch), queue):
            raise Reject(requeue=True)

    warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)  # of a default that threads don't support
    app.set_default()  # for the threads that execute tasks: Celery looks its application up there
    state.should_stop = None
    controller = app.WorkController(
        pool="threads", concurrency=MAX_THREADS, without_gossip=True, without_mingle=True, without_heartbeat=True
    )

    def receive() -> None:
        while not is_ready():  # until then, the broker sends runs to others
            if stop.wait(POLL_AGAIN_S):
                return
        controller.start()
        if not stop.is_set():
            log.error("the broker can't be used; this worker ends")
            stop.set()

    receiver = threading.Thread(target=receive, name="broker", daemon=True)
    receiver.start()
    stopping = threading.Thread(target=_stop_when, args=(stop, controller), name="broker stop")
    stopping.start()
    try:
        yield lambda: _is_connected(controller)
    finally:
        stop.set()
        stopping.join()
        receiver.join(STOP_WITHIN_S)
        app.close()


def _stop_when(stop: threading.Event, controller: Any) -> None:
    """Let Celery end as soon as `stop` is set: it receives no more, and waits for its tasks."""
    stop.wait()
    state.should_stop = 0
    controller.consumer.call_soon(lambda: None)  # wakes its loop, which then looks at `should_stop`


def _is_connected(controller: Any) -> bool:
    connection = controller.consumer.connection
    return connection is not None and bool(connection.connected)
