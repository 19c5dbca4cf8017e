"""Measure the cost and start delay of deliveries: alone, in a flood, beside hanging receivers and with a long queue."""

import asyncio
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any
from uuid import UUID, uuid4

import aiohttp
import httpx
import requests
import urllib3
from sqlalchemy import func, select

from assets.webhooks import delivery
from benchmarks.filling import new_customer
from benchmarks.receiving import HANG, Arrival, Receiver, receiving
from benchmarks.service import new_home
from benchmarks.table import Row, milliseconds, percentile, seconds
from pipelines.webhooks.events import EventType, sign_attempt
from storage.access import keys
from storage.core.models import DeliveryStatus, attempts, deliveries
from storage.core.settings import Settings
from storage.core.store import Store
from storage.customers import customers
from storage.webhooks import outbox, subscriptions
from storage.webhooks.outbox import Ended, NewEvent

TITLE = "Webhooks"
CLIENTS, EACH = 4, 16  # clients, and subscriptions per client: together they fill a sender's slots
IN_FLIGHT, THREADS = 250, 64
EVENTS = 48  # of each client, each to all of its subscriptions
HANGING = 6  # of the 64 subscriptions
ANSWER_AFTER_S = 2.0
EVERY_S, FOR_S = 0.58, 30.0  # one event per client in EVERY_S, just below the capacity: four at once, of 2 s each
FLOOD, FLOODED = 10_000, 50
IDLE = 60
QUEUE, QUEUED_FOR = 100_000, 100
CLAIMS = 40
BODY = b'{"eventId": "%s", "eventType": "job.completed", "data": {"jobId": "%s", "status": "Completed"}}'
ABOUT = (
    "One sender, and a receiver over HTTPS in a separate process on the same two cores. The receiver keeps connections "
    "open for the next delivery, as our sender and the peers do. CPU is that of the sending process alone, without the "
    "receiver and PostgreSQL. A delivery of ours is claimed, its address is checked, and it is signed, sent and "
    f"recorded; the peers only sign and send: requests and urllib3 with {THREADS} threads, aiohttp and httpx with "
    f"{IN_FLIGHT} at once. Beside hanging receivers: {HANGING} of {CLIENTS * EACH} subscriptions of {CLIENTS} clients "
    f"never get a response, the others get one after {ANSWER_AFTER_S:.0f} s. The start delay is the time from an "
    "event's commit until its request reaches the receiver."
)

Send = Callable[[str, Path, int], None]


def measure(folder: Path, database: str) -> Sequence[Row]:
    with receiving(folder / "receiver") as receiver:
        return [row for part in PARTS for row in _measure(part, folder, database, receiver)]


def _measure(
    part: Callable[[Store, Receiver], list[Row]], folder: Path, database: str, receiver: Receiver
) -> list[Row]:
    with new_home(folder / part.__name__, database) as home:
        local: dict[str, Any] = {"webhook_allow_cidrs": "127.0.0.0/8", "webhook_ca_bundle": receiver.ca_path}
        store = Store.open(Settings(**dict(home.settings) | local))
        try:
            return part(store, receiver)
        finally:
            store.close()


def _measure_cost(store: Store, receiver: Receiver) -> list[Row]:
    """Measure CPU and wall time of a delivery, ours and those of peers."""
    clients = _subscribe(store, [receiver.url_that_answers()] * EACH, CLIENTS)
    count = CLIENTS * EACH * EVENTS
    _add_events(store, clients, EVENTS)
    ours = _time(lambda: _send_all(store, count), count)
    peers = {name: _time(_peer(send, receiver, count), count) for name, send in PEERS.items()}
    return [
        Row(f"CPU of a delivery with claim and record, mean of {count:,}", milliseconds(ours[0]), "≤ 1 ms"),
        Row("the same, wall rate", f"{1 / ours[1]:,.0f}/s"),
        *(
            Row(f"peer: {name}, CPU of a delivery; wall rate", f"{milliseconds(cpu)}; {1 / wall:,.0f}/s")
            for name, (cpu, wall) in peers.items()
        ),
    ]


def _time(work: Callable[[], object], count: int) -> tuple[float, float]:
    """Return CPU and wall seconds per delivery."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return (time.process_time() - cpu) / count, (time.perf_counter() - wall) / count


def _send_all(store: Store, count: int) -> None:
    sent = delivery.deliver_due(store, count, deadline_s=600)
    ended = _count_by_status(store)
    if (sent, ended) != (count, {DeliveryStatus.DELIVERED: count}):
        raise RuntimeError(f"{sent} of {count} deliveries were sent: {ended}")


def _peer(send: Send, receiver: Receiver, count: int) -> Callable[[], None]:
    def send_all() -> None:
        send(receiver.url_that_answers(), receiver.ca_path, count)
        if (arrived := len(receiver.report()[0])) != count:
            raise RuntimeError(f"{arrived} of {count} arrived")

    receiver.report()
    return send_all


def _sign() -> tuple[bytes, dict[str, str]]:
    event_id = uuid4()
    body = _body(event_id)
    return body, sign_attempt(event_id, body, b"s" * 32, datetime.now(UTC)) | {"Content-Type": "application/json"}


def _send_with_requests(url: str, ca: Path, count: int) -> None:
    its = threading.local()

    def send_one(_: int) -> None:
        if not hasattr(its, "http"):
            its.http = requests.Session()
            its.http.trust_env, its.http.verify = False, str(ca)
        body, headers = _sign()
        its.http.post(url, data=body, headers=headers, timeout=30, allow_redirects=False).raise_for_status()

    _send_in_threads(send_one, count)


def _send_with_urllib3(url: str, ca: Path, count: int) -> None:
    pool = urllib3.PoolManager(maxsize=THREADS, ca_certs=str(ca), retries=False)

    def send_one(_: int) -> None:
        body, headers = _sign()
        response = pool.request("POST", url, body=body, headers=headers, timeout=30)
        if response.status != 204:
            raise RuntimeError(f"answered {response.status}")

    _send_in_threads(send_one, count)


def _send_in_threads(one: Callable[[int], None], count: int) -> None:
    with ThreadPoolExecutor(THREADS) as threads:
        for _ in threads.map(one, range(count)):
            pass


def _send_with_aiohttp(url: str, ca: Path, count: int) -> None:
    asyncio.run(_send_with_plain_aiohttp(url, ca, count))


async def _send_with_plain_aiohttp(url: str, ca: Path, count: int) -> None:
    slots = asyncio.Semaphore(IN_FLIGHT)
    connector = aiohttp.TCPConnector(limit=0, ssl=ssl.create_default_context(cafile=str(ca)))
    async with aiohttp.ClientSession(connector=connector, raise_for_status=True) as http:

        async def send_one() -> None:
            async with slots:
                body, headers = _sign()
                async with http.post(url, data=body, headers=headers, allow_redirects=False) as response:
                    await response.read()

        await asyncio.gather(*(send_one() for _ in range(count)))


def _send_with_httpx(url: str, ca: Path, count: int) -> None:
    asyncio.run(_send_with_async_httpx(url, ca, count))


async def _send_with_async_httpx(url: str, ca: Path, count: int) -> None:
    slots = asyncio.Semaphore(IN_FLIGHT)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=IN_FLIGHT)
    context = ssl.create_default_context(cafile=str(ca))
    async with httpx.AsyncClient(verify=context, limits=limits, timeout=30, trust_env=False) as http:

        async def send_one() -> None:
            async with slots:
                body, headers = _sign()
                (await http.post(url, content=body, headers=headers)).raise_for_status()

        await asyncio.gather(*(send_one() for _ in range(count)))


def _measure_beside_dead_receivers(store: Store, receiver: Receiver) -> list[Row]:
    """Measure healthy receivers while others hang, with all slots in use."""
    urls = [receiver.url_that_answers(ANSWER_AFTER_S)] * (CLIENTS * EACH)
    for place in range(HANGING):
        urls[place * len(urls) // HANGING] = receiver.url_that_hangs
    clients = [_subscribe(store, urls[at : at + EACH], 1)[0] for at in range(0, len(urls), EACH)]
    receiver.report()
    happened: dict[str, float] = {}
    rounds = round(FOR_S / EVERY_S)
    with _deliver_meanwhile(store):
        begun = time.monotonic()
        for turn in range(rounds):
            for place, client in enumerate(clients):
                time.sleep(max(0.0, begun + (turn + place / CLIENTS) * EVERY_S - time.monotonic()))
                happened |= _add_events(store, [client], 1)
        expected = rounds * (len(urls) - HANGING)
        arrived, most = _arrivals(receiver, expected)
        _wait_until(lambda: _count_by_status(store).get(DeliveryStatus.DELIVERED, 0) >= expected)
    delays = [each.at - happened[each.event_id] for each in arrived]
    return [
        Row("beside hanging receivers: most in flight at once, theirs included", str(most), f"about {IN_FLIGHT}"),
        Row(
            f"deliveries to healthy receivers that arrived, of {expected:,}", f"{len(arrived) / expected:.1%}", "100 %"
        ),
        Row("start delay at healthy receivers, p50", seconds(median(delays))),
        Row("the same, p99", seconds(percentile(delays, 0.99)), "< 2 s"),
    ]


def _measure_flood(store: Store, receiver: Receiver) -> list[Row]:
    """Measure many events in one commit."""
    clients = _subscribe(store, [receiver.url_that_answers()], FLOODED)
    receiver.report()
    with _deliver_meanwhile(store):
        began = time.monotonic()
        _add_events(store, clients, FLOOD // FLOODED)
        _wait_until(lambda: _count_by_status(store).get(DeliveryStatus.DELIVERED, 0) == FLOOD, within_s=900)
        took = time.monotonic() - began
    with store.db.reading() as r:
        failed = r.execute(select(func.count()).where(attempts.c.error.is_not(None))).scalar_one()
    return [
        Row(f"{FLOOD:,} events at once to {FLOODED} subscriptions, until all are recorded", seconds(took)),
        Row("attempts that failed, time-outs included", str(failed), "0"),
    ]


def _measure_one_at_a_time(store: Store, receiver: Receiver) -> list[Row]:
    """Measure one event after another on an idle system."""
    clients = _subscribe(store, [receiver.url_that_answers()], 1)
    receiver.report()
    happened: dict[str, float] = {}
    with _deliver_meanwhile(store):
        time.sleep(1)
        for _ in range(IDLE):
            happened |= _add_events(store, clients, 1)
            time.sleep(0.25)
        arrived, _ = _arrivals(receiver, IDLE)
    delays = [each.at - happened[each.event_id] for each in arrived]
    return [
        Row(
            f"idle: event committed → request at the receiver, p50 of {IDLE}", milliseconds(median(delays)), "≤ 300 ms"
        ),
        Row("the same, p95", milliseconds(percentile(delays, 0.95))),
    ]


def _measure_after_long_queue(store: Store, receiver: Receiver) -> list[Row]:
    """Measure a sender that starts with many undelivered rows."""
    clients = _subscribe(store, [receiver.url_that_answers()] * (QUEUED_FOR // 10), 10)
    for _ in range(10):
        _add_events(store, clients, QUEUE // QUEUED_FOR // 10)
    began, holder = time.perf_counter(), uuid4()
    fresh = Store.open(store.settings)
    claimed = _claim(fresh, holder)
    first = time.perf_counter() - began
    cpu: list[float] = []
    wall: list[float] = []
    for _ in range(CLAIMS):
        ended = [Ended(each.delivery_id, DeliveryStatus.CANCELLED, None) for each in claimed]
        with fresh.db.writing() as w:
            outbox.record(w, holder, ended)
        cpu_began, wall_began = time.process_time(), time.perf_counter()
        claimed = _claim(fresh, holder)
        cpu.append(time.process_time() - cpu_began)
        wall.append(time.perf_counter() - wall_began)
    fresh.close()
    return [
        Row(f"{QUEUE:,} undelivered rows: opened, until the first {IN_FLIGHT} are claimed", seconds(first)),
        Row(f"a claim of {len(claimed)}, CPU, p50 of {CLAIMS}", milliseconds(median(cpu))),
        Row("the same, wall", milliseconds(median(wall))),
    ]


PARTS = (
    _measure_cost,
    _measure_beside_dead_receivers,
    _measure_flood,
    _measure_one_at_a_time,
    _measure_after_long_queue,
)
PEERS: dict[str, Send] = {
    "requests": _send_with_requests,
    "urllib3": _send_with_urllib3,
    "aiohttp": _send_with_aiohttp,
    "httpx": _send_with_httpx,
}


def _claim(store: Store, holder: UUID) -> list[outbox.Claimed]:
    with store.db.writing() as w:
        return outbox.claim_due(w, holder, IN_FLIGHT, 60, datetime.now(UTC))


@dataclass(frozen=True)
class Client:
    """A client with one customer, to which all events belong."""

    client_id: UUID
    customer_number: int

    def event(self, now: datetime) -> NewEvent:
        event_id, happened = uuid4(), EventType.JOB_COMPLETED
        return NewEvent(event_id, self.client_id, self.customer_number, uuid4(), happened, _body(event_id), now)


def _subscribe(store: Store, urls: Sequence[str], clients: int) -> list[Client]:
    """Add clients, each with a subscription for every URL."""
    made = []
    for _ in range(clients):
        now = datetime.now(UTC)
        with store.db.writing() as w:
            client_id = keys.create_client(w, "benchmark", decision_policies=False, now=now).client_id
            made.append(
                Client(client_id, customers.create(w, client_id, new_customer(), "benchmark", now).customer.number)
            )
            for url in urls:
                subscriptions.create(w, client_id, EventType.JOB_COMPLETED, url, [], store.vault, now)
    return made


def _add_events(store: Store, clients: Sequence[Client], each: int) -> dict[str, float]:
    """Add events of each client in one commit; return the time of the commit (monotonic) by event."""
    new = [client.event(datetime.now(UTC)) for client in clients for _ in range(each)]
    with store.db.writing() as w:
        outbox.enqueue(w, new)
    committed = time.monotonic()
    return {str(event.event_id): committed for event in new}


def _body(event_id: UUID) -> bytes:
    return BODY % (str(event_id).encode(), str(uuid4()).encode())


@contextmanager
def _deliver_meanwhile(store: Store) -> Iterator[None]:
    """Run the delivery loop as a worker does, for the duration of a block."""
    stop = threading.Event()
    thread = threading.Thread(target=delivery.run, args=(store, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _arrivals(receiver: Receiver, expected: int) -> tuple[list[Arrival], int]:
    """Collect `expected` arrivals at responding URLs; return also the most that were unanswered at once at any URL."""
    arrived: list[Arrival] = []
    unanswered = [0]

    def all_have() -> bool:
        seen, most = receiver.report()
        unanswered.append(most)
        arrived.extend(each for each in seen if each.path != HANG)
        return len(arrived) >= expected

    _wait_until(all_have)
    return arrived, max(unanswered)


def _wait_until(true: Callable[[], bool], within_s: float = 120) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError("what a benchmark waits for didn't come")
        time.sleep(0.2)


def _count_by_status(store: Store) -> dict[str, int]:
    """Count deliveries by status."""
    with store.db.reading() as r:
        counts = select(deliveries.c.status, func.count()).group_by(deliveries.c.status)
        return dict(tuple(row) for row in r.execute(counts))
