"""Inspect a fleet's broker: whether it can be used, and which runs wait in it.

`assets.workers.broker` sends and receives the runs.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from storage.core.models import Queue
from storage.core.settings import Settings

if TYPE_CHECKING:
    from kombu import Connection

CONNECT_WITHIN_S = 3.0
NOT_FOUND = "404"  # AMQP's code


@dataclass(frozen=True)
class WaitingRun:
    """A message that no worker has received yet."""

    queue: Queue
    run_id: str
    batch: int | None  # fencing token; None for a run that was started by hand
    content: Sequence[object]  # all that the message holds


def queue_name(settings: Settings, queue: Queue) -> str:
    """Return the name of a queue in the broker."""
    return f"{settings.broker_prefix}.{queue}"


def find_problem(settings: Settings) -> str | None:
    """Connect to the broker once. Return what is wrong in one sentence, or None."""
    try:
        with _connected(settings):
            return None
    except ConnectionError as error:
        return str(error)


def read_waiting(settings: Settings) -> list[WaitingRun]:
    """Return the runs that wait in the broker. Each message is received and given back, which takes a moment.

    Raises:
        ConnectionError: the broker can't be reached or refuses. The message is a sentence for the operator.
    """
    with _connected(settings) as connection:
        return [run for queue in Queue for run in _read_queue(connection, settings, queue)]


@contextmanager
def _connected(settings: Settings) -> Iterator["Connection"]:
    """Connect to the broker. Whatever fails is a ConnectionError."""
    from kombu import Connection  # noqa: PLC0415  # which only a fleet needs
    from kombu.exceptions import KombuError  # noqa: PLC0415

    options = settings.broker_options
    with Connection(settings.broker_address, connect_timeout=CONNECT_WITHIN_S, transport_options=options) as connection:
        try:
            connection.ensure_connection(max_retries=1, interval_start=0)
            yield connection
        except (KombuError, *connection.connection_errors, *connection.channel_errors) as error:
            raise ConnectionError(f"{connection.as_uri()} can't be used: {type(error).__name__}") from error


def _read_queue(connection: "Connection", settings: Settings, queue: Queue) -> list[WaitingRun]:
    with connection.channel() as channel:
        name, received = queue_name(settings, queue), list[Any]()
        try:
            for _ in range(channel.queue_declare(name, passive=True).message_count):
                received.append(channel.basic_get(name))
        except connection.channel_errors as error:
            if str(getattr(error, "reply_code", None)) != NOT_FOUND:  # nobody has made the queue yet
                raise
        else:
            channel.basic_recover(requeue=True)  # all of them; to reject each would count as its failure
    return [_parse(queue, message) for message in received if message is not None]


def _parse(queue: Queue, message: Any) -> WaitingRun:
    run_id, batch = "unknown", None  # of a message that is not ours
    with suppress(ValueError):
        match json.loads(message.body):
            case [[str(run_id), int() | None as batch], *_]:
                pass
    return WaitingRun(queue, run_id, batch, [message.headers, message.properties, message.body])
