"""Deliveries over real TLS on loopback, to working and misbehaving receivers."""

import asyncio
import socket
import ssl
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from uuid import UUID, uuid4

import pytest
import trustme
from sqlalchemy.exc import OperationalError

from api.webhooks.listen import Receiver
from assets.webhooks import delivery, sending
from pipelines.vocabulary.errors import Unavailable
from pipelines.webhooks.events import EventType, decode_secret, sign, verify_standard
from storage.core.database import Writing
from storage.core.models import DeliveryStatus
from storage.core.settings import Settings
from storage.core.store import Store
from storage.core.vault import KeyRing, Vault
from storage.customers.customers import Customer
from storage.webhooks import delivery_log, outbox, subscriptions, turns
from storage.webhooks.delivery_log import Delivery
from storage.webhooks.outbox import Attempt, Ended, NewEvent, Pause
from storage.webhooks.subscriptions import Subscription
from tests.assets.receivers import Script, answering, receiver, saying, tls
from tests.conftest import open_store
from tests.storage.examples import a_client, a_customer
from tests.waiting import eventually

pytestmark = pytest.mark.service  # each test waits for real connections

PATIENCE_S = 10.0  # for receivers that answer, so that a busy machine doesn't fail the test
TIMEOUT_S = 1.0  # for receivers that don't answer
LATE_MS = 8_000  # for a busy machine; with TIMEOUT_S, less than the 10 s of all other waits
BODY = '{"name":"Café 🙂 \u2028","amount":12.50}'.encode()
LOOPBACK = (ip_network("127.0.0.0/8"),)


@pytest.fixture
def settings(ca: trustme.CA, tmp_path: Path) -> Settings:
    bundle = tmp_path / "ca.pem"
    ca.cert_pem.write_to_path(str(bundle))
    return Settings(
        home=tmp_path / "home",
        webhook_allow_cidrs=LOOPBACK,
        webhook_ca_bundle=bundle,
        webhook_timeout_s=PATIENCE_S,
    )


@dataclass(frozen=True)
class Sender:
    """A store with one customer, with the steps of these tests."""

    store: Store
    customer: Customer

    def subscribe(self, url: str, event_type: EventType = EventType.JOB_COMPLETED) -> tuple[Subscription, bytes]:
        with self.store.db.writing() as w:
            client = self.customer.client_id
            made, secret = subscriptions.create(w, client, event_type, url, [], self.store.vault, datetime.now(UTC))
        return made, decode_secret(secret)

    def happen(self, count: int = 1, event_type: EventType = EventType.JOB_COMPLETED) -> list[UUID]:
        ids = [uuid4() for _ in range(count)]
        with self.store.db.writing() as w:
            outbox.enqueue(w, [self._event(each, event_type) for each in ids])
        return ids

    def _event(self, event_id: UUID, event_type: EventType) -> NewEvent:
        now = datetime.now(UTC)
        return NewEvent(event_id, self.customer.client_id, self.customer.number, uuid4(), event_type, BODY, now)

    def beside(self) -> "Sender":
        """Return a sender for another client of the same store."""
        now = datetime.now(UTC)
        return replace(self, customer=a_customer(self.store, a_client(self.store, now), now))

    def with_deadline(self, timeout_s: float) -> "Sender":
        settings = self.store.settings.model_copy(update={"webhook_timeout_s": timeout_s})
        return replace(self, store=replace(self.store, settings=settings))

    def deliver(self) -> int:
        return delivery.deliver_due(self.store, limit=1_000, deadline_s=30)

    def log(self) -> Sequence[Delivery]:
        with self.store.db.reading() as r:
            return delivery_log.find_latest(r, 1_000)

    def deliver_one(self, url: str) -> Delivery:
        """Subscribe, cause one event, deliver it, and return its only delivery."""
        self.subscribe(url)
        self.happen()
        assert self.deliver() == 1
        (reported,) = self.log()
        return reported


@pytest.fixture
def sender(settings: Settings) -> Iterator[Sender]:
    store, now = open_store(settings), datetime.now(UTC)
    yield Sender(store, a_customer(store, a_client(store, now), now))
    store.close()


@pytest.fixture(autouse=True)
def _polls_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll often, because the loop notices `stop` only when it polls."""
    monkeypatch.setattr(delivery, "POLL_AGAIN_S", 0.1)


def outcome(reported: Delivery) -> tuple[DeliveryStatus, int | None, str | None]:
    (attempt,) = reported.attempts
    return reported.status, attempt.status_code, attempt.error


def body_of(request: bytes) -> bytes:
    return request.partition(b"\r\n\r\n")[2]


def signature_of(request: bytes) -> str:
    return headers_of(request)["x-service-webhook-signature"]


def headers_of(request: bytes) -> dict[str, str]:
    """Return the headers by name in lower case."""
    lines = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_any_2xx_is_a_success(ca: trustme.CA, sender: Sender, status: int) -> None:
    with receiver(tls(ca), answering(f"{status} Fine")) as there:
        assert outcome(sender.deliver_one(there.url)) == (DeliveryStatus.DELIVERED, status, None)


@pytest.mark.parametrize("status", [300, 400, 404, 410, 429, 500, 503, 599])
def test_any_other_status_is_recorded_and_not_retried(ca: trustme.CA, sender: Sender, status: int) -> None:
    with receiver(tls(ca), answering(f"{status} No", b"no\x00\xff")) as there:
        reported = sender.deliver_one(there.url)
        assert outcome(reported) == (DeliveryStatus.FAILED, status, None)
        assert reported.attempts[0].response_head == b"no\x00\xff"
        assert sender.deliver() == 0
        assert there.connections == 1


def test_the_bytes_of_the_event_are_sent_and_signed(ca: trustme.CA, sender: Sender) -> None:
    with receiver(tls(ca), answering("204 No Content")) as there:
        _, key = sender.subscribe(there.url)
        sender.happen()
        sender.deliver()
    (request,) = there.requests
    assert body_of(request) == BODY
    assert signature_of(request) == sign(BODY, key)
    assert request.startswith(b"POST /hooks HTTP/1.1\r\n")
    assert b"\r\nContent-Type: application/json\r\n" in request
    assert b"\r\nUser-Agent: Tidemark/" in request
    assert b"Accept-Encoding" not in request


def test_an_attempt_is_also_signed_by_standard_webhooks(ca: trustme.CA, sender: Sender) -> None:
    with receiver(tls(ca), answering("500 Sorry")) as there:
        _, key = sender.subscribe(there.url)
        (event_id,) = sender.happen()
        sender.deliver()
        time.sleep(1.01 - time.time() % 1)  # until the next second
        with sender.store.db.writing() as w:
            delivery_log.resend(w, sender.customer.client_id, sender.log()[0].delivery_id, datetime.now(UTC))
        sender.deliver()
    first, again = map(headers_of, there.requests)
    for headers in (first, again):
        assert headers["webhook-id"] == str(event_id)
        assert abs(int(headers["webhook-timestamp"]) - time.time()) < 30
        assert verify_standard(headers, BODY, key)
    assert int(first["webhook-timestamp"]) < int(again["webhook-timestamp"])
    assert signature_of(there.requests[0]) == signature_of(there.requests[1]) == sign(BODY, key)


def test_the_time_of_each_step_is_recorded(ca: trustme.CA, sender: Sender) -> None:
    with receiver(tls(ca), answering("200 OK")) as there:
        (attempt,) = sender.deliver_one(there.url).attempts
    steps = [getattr(attempt, step) for step in sending.STEPS]
    assert None not in steps
    assert 0 <= sum(steps) <= attempt.duration_ms


def test_a_delivery_waits_while_keys_can_not_be_read(ca: trustme.CA, sender: Sender) -> None:
    def unreadable() -> KeyRing:
        raise Unavailable("Database.Unavailable", "The database is away.")

    with receiver(tls(ca), answering("200 OK")) as there:
        sender.subscribe(there.url)
        sender.happen()
        assert delivery.deliver_due(replace(sender.store, vault=Vault(unreadable)), 10, 5) == 1
        (reported,) = sender.log()
        assert (reported.status, reported.attempts, there.connections) == (DeliveryStatus.SENDING, (), 0)


def test_subscriptions_with_the_same_url_have_separate_signatures(ca: trustme.CA, sender: Sender) -> None:
    with receiver(tls(ca), answering("204 No Content")) as there:
        keys = [sender.subscribe(there.url)[1] for _ in range(2)]
        sender.happen()
        assert sender.deliver() == 2
    assert {signature_of(request) for request in there.requests} == {sign(BODY, key) for key in keys}


def test_subscriptions_with_the_same_url_fail_separately(ca: trustme.CA, sender: Sender) -> None:
    answers = iter([answering("500 Sorry"), answering("200 OK")])

    def one_after_the_other(connection: ssl.SSLSocket) -> None:
        next(answers)(connection)

    with receiver(tls(ca), one_after_the_other) as there:
        for _ in range(2):
            sender.subscribe(there.url)
        sender.happen()
        assert sender.deliver() == 2
    assert sorted(outcome(reported) for reported in sender.log()) == [
        (DeliveryStatus.DELIVERED, 200, None),
        (DeliveryStatus.FAILED, 500, None),
    ]


def test_a_rotated_secret_signs_deliveries_queued_before(ca: trustme.CA, sender: Sender) -> None:
    with receiver(tls(ca), answering("204 No Content")) as there:
        made, _ = sender.subscribe(there.url)
        sender.happen()
        with sender.store.db.writing() as w:
            new = subscriptions.rotate(w, sender.customer.client_id, made.subscription_id, sender.store.vault)
        sender.deliver()
    assert signature_of(there.requests[0]) == sign(BODY, decode_secret(new))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_is_not_followed(ca: trustme.CA, sender: Sender, status: int) -> None:
    with receiver(tls(ca), answering("200 OK")) as target:
        moved = answering(f"{status} Moved", b"", f"Location: {target.url}")
        with receiver(tls(ca), moved) as there:
            assert outcome(sender.deliver_one(there.url)) == (DeliveryStatus.FAILED, status, None)
        assert target.connections == 0


def silent(connection: ssl.SSLSocket) -> None:
    connection.recv(1)


def dripping_its_head(connection: ssl.SSLSocket) -> None:
    for character in b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n":
        connection.sendall(bytes([character]))
        time.sleep(0.1)


def dripping(connection: ssl.SSLSocket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        connection.sendall(b".")
        time.sleep(0.1)


@pytest.mark.parametrize(("script", "status"), [(silent, None), (dripping_its_head, None), (dripping, 200)])
def test_an_incomplete_answer_at_the_deadline_is_a_failure(
    ca: trustme.CA, sender: Sender, script: Script, status: int | None
) -> None:
    with receiver(tls(ca), script) as there:
        reported = sender.with_deadline(TIMEOUT_S).deliver_one(there.url)
    assert outcome(reported) == (DeliveryStatus.FAILED, status, "timeout")
    assert TIMEOUT_S * 1000 <= reported.attempts[0].duration_ms < TIMEOUT_S * 1000 + LATE_MS


def test_a_handshake_that_never_ends_fails_at_the_deadline(sender: Sender) -> None:
    with receiver(None, silent) as there:
        reported = sender.with_deadline(TIMEOUT_S).deliver_one(there.url)
    assert outcome(reported) == (DeliveryStatus.FAILED, None, "timeout")
    assert reported.attempts[0].duration_ms < TIMEOUT_S * 1000 + LATE_MS


def test_only_the_first_16_kib_of_an_endless_answer_are_read(ca: trustme.CA, sender: Sender) -> None:
    sent = 0

    def pouring(connection: ssl.SSLSocket) -> None:
        nonlocal sent
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\n")
        while True:
            sent += connection.send(b"x" * 65_536)

    with receiver(tls(ca), pouring) as there:
        reported = sender.deliver_one(there.url)
    assert outcome(reported) == (DeliveryStatus.DELIVERED, 200, None)
    assert reported.attempts[0].response_head == b"x" * 16_384
    assert sent < 20 * 2**20


@pytest.mark.parametrize(
    ("text", "status", "error"),
    [
        (b"", None, "reset"),
        (b"HTTP/1.1 199 Not yet\r\n\r\n", None, "reset"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", None, "reset"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", 200, "reset"),
        (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", None, "protocol"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 2**20 + b"\r\n\r\n", None, "protocol"),
    ],
    ids=["before the head", "an interim answer alone", "in the head", "in the body", "not HTTP", "a header of 1 MB"],
)
def test_a_truncated_or_invalid_answer_has_its_failure_class(
    ca: trustme.CA, sender: Sender, text: bytes, status: int | None, error: str
) -> None:
    with receiver(tls(ca), saying(text)) as there:
        assert outcome(sender.deliver_one(there.url)) == (DeliveryStatus.FAILED, status, error)
        assert there.connections == 1


def is_established(connection: socket.socket) -> bool:
    """Return whether TCP says that the other side still has the connection open. Nothing is read."""
    state = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
    return state == b"\1"


def test_a_connection_that_the_receiver_keeps_open_is_closed(ca: trustme.CA, sender: Sender) -> None:
    gone: list[bool] = []

    def clinging(connection: ssl.SSLSocket) -> None:
        connection.sendall(b"not HTTP at all\r\n\r\n")
        gone.append(eventually(lambda: not is_established(connection), within_s=8))

    with receiver(tls(ca), clinging) as there:
        sender.subscribe(there.url)
        with running(sender.store):
            sender.happen()
            assert eventually(lambda: gone == [True])


def for_another_host(ca: trustme.CA) -> ssl.SSLContext:
    return tls(ca, "another.example")


def of_a_stranger(_: trustme.CA) -> ssl.SSLContext:
    return tls(trustme.CA())


def expired_certificate(ca: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1", not_after=datetime(2020, 1, 1, tzinfo=UTC)).configure_cert(context)
    return context


def outdated_protocol(ca: trustme.CA) -> ssl.SSLContext:
    context = tls(ca)
    with warnings.catch_warnings(action="ignore"):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


@pytest.mark.parametrize("context", [for_another_host, of_a_stranger, expired_certificate, outdated_protocol])
def test_nothing_is_sent_to_an_untrusted_receiver(
    ca: trustme.CA, sender: Sender, context: Callable[[trustme.CA], ssl.SSLContext]
) -> None:
    with receiver(context(ca), answering("200 OK")) as there:
        assert outcome(sender.deliver_one(there.url)) == (DeliveryStatus.FAILED, None, "tls")
    assert (there.connections, [request for request in there.requests if request]) == (1, [])


def test_a_closed_port_is_a_connect_failure(sender: Sender) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert outcome(sender.deliver_one(f"https://127.0.0.1:{port}/")) == (DeliveryStatus.FAILED, None, "connect")


def test_a_secret_that_does_not_open_is_a_failure_and_nothing_is_sent(ca: trustme.CA, sender: Sender) -> None:
    with receiver(tls(ca), answering("200 OK")) as there:
        sender.subscribe(there.url)
        sender.happen()
        locked_out = replace(sender.store, vault=Vault(lambda: KeyRing({1: bytes(32)}, 1, bytes(32))))
        assert delivery.deliver_due(locked_out, 10, 5) == 1
        assert outcome(sender.log()[0]) == (DeliveryStatus.FAILED, None, "secret")
        assert there.connections == 0


def test_a_deleted_subscription_gets_nothing_more(ca: trustme.CA, sender: Sender) -> None:
    with receiver(tls(ca), answering("200 OK")) as there:
        made, _ = sender.subscribe(there.url)
        sender.happen()
        with sender.store.db.writing() as w:
            subscriptions.delete(w, sender.customer.client_id, made.subscription_id)
        assert sender.deliver() == 0
        assert [(reported.status, reported.attempts) for reported in sender.log()] == [(DeliveryStatus.CANCELLED, ())]
        assert there.connections == 0


def test_a_delivery_in_progress_when_its_subscription_is_deleted_ends_normally(ca: trustme.CA, sender: Sender) -> None:
    arrived, answer = threading.Event(), threading.Event()

    def waiting(connection: ssl.SSLSocket) -> None:
        arrived.set()
        answer.wait(60)
        answering("200 OK")(connection)

    with receiver(tls(ca), waiting) as there:
        made, _ = sender.subscribe(there.url)
        sender.happen()
        with running(sender.store):
            assert arrived.wait(60)
            with sender.store.db.writing() as w:
                subscriptions.delete(w, sender.customer.client_id, made.subscription_id)
            sender.happen()
            answer.set()
            assert eventually(lambda: sender.log()[0].status is DeliveryStatus.DELIVERED)
    assert [outcome(reported) for reported in sender.log()] == [(DeliveryStatus.DELIVERED, 200, None)]
    assert there.connections == 1


def test_after_a_sender_died_before_recording_the_same_bytes_are_sent_again(ca: trustme.CA, sender: Sender) -> None:
    with receiver(tls(ca), answering("200 OK")) as there:
        sender.subscribe(there.url)
        sender.happen()
        long_ago = datetime.now(UTC) - timedelta(minutes=5)
        with sender.store.db.writing() as w:
            (claimed,) = outbox.claim_due(w, uuid4(), 1, 45, long_ago)
        signed = delivery.sign(claimed, sender.store.vault, long_ago)
        assert isinstance(signed, sending.Post)
        post_as_it_was(sender.store.settings, signed)
        assert sender.deliver() == 1
    first, second = there.requests
    assert (body_of(first), signature_of(first)) == (body_of(second), signature_of(second))
    assert outcome(sender.log()[0]) == (DeliveryStatus.DELIVERED, 200, None)


def post_as_it_was(settings: Settings, signed: sending.Post) -> None:
    async def once() -> Attempt:
        async with sending.session(settings) as client:
            return await sending.send(client, signed, settings.webhook_timeout_s)

    assert asyncio.run(once()).status_code == 200


@contextmanager
def running(store: Store, holder: UUID | None = None) -> Iterator[None]:
    """Run the loop like the worker does."""
    stop = threading.Event()
    loop = threading.Thread(target=delivery.run, args=(store, stop, holder))
    loop.start()
    try:
        yield
    finally:
        stop.set()
        loop.join()


def test_the_loop_is_woken_by_the_commit(sender: Sender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "POLL_AGAIN_S", 120.0)
    with Receiver(tmp_path) as there:
        store = trusting(sender.store, there)
        with running(store):
            there.learn(signing_text(sender, there.url))
            time.sleep(0.2)
            sender.happen()
            reported = there.wait_for(lambda each: each.body == BODY, timeout_s=60.0)
            assert reported is not None
            assert reported.verified
            assert eventually(lambda: sender.log()[0].status is DeliveryStatus.DELIVERED)
            monkeypatch.undo()
            sender.happen()  # this wakes the loop once; then it polls as before
            assert eventually(lambda: sender.log()[0].status is DeliveryStatus.DELIVERED)


def trusting(store: Store, there: Receiver) -> Store:
    return replace(store, settings=store.settings.model_copy(update={"webhook_ca_bundle": there.ca_path}))


def signing_text(sender: Sender, url: str) -> str:
    with sender.store.db.writing() as w:
        client, now = sender.customer.client_id, datetime.now(UTC)
        return subscriptions.create(w, client, EventType.JOB_COMPLETED, url, [], sender.store.vault, now)[1]


def test_a_hanging_receiver_does_not_delay_others(
    ca: trustme.CA, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "DRAIN_S", 0.1)
    with receiver(tls(ca), silent) as hanging, receiver(tls(ca), answering("200 OK")) as healthy:
        sender.subscribe(hanging.url, EventType.JOB_FAILED)
        sender.happen(100, EventType.JOB_FAILED)
        sender.subscribe(healthy.url)
        with running(sender.with_deadline(120).store):
            sender.happen(50)
            assert eventually(lambda: len(healthy.requests) == 50)
            assert hanging.connections <= turns.PER_SUBSCRIPTION


def test_clients_whose_receivers_all_hang_do_not_delay_other_clients(
    ca: trustme.CA, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "SLOTS", 20)
    monkeypatch.setattr(delivery, "DRAIN_S", 0.1)
    with receiver(tls(ca), silent) as hanging, receiver(tls(ca), answering("200 OK")) as healthy:
        for other in [sender.beside() for _ in range(4)]:
            for _ in range(5):
                other.subscribe(hanging.url)
            other.happen(turns.PER_SUBSCRIPTION)
        sender.subscribe(healthy.url)
        with running(sender.with_deadline(120).store):
            assert eventually(lambda: hanging.connections == 4 * 4)
            sender.happen()
            assert eventually(lambda: len(healthy.requests) == 1)
    assert hanging.connections == 4 * 4


def test_queued_deliveries_of_a_deleted_subscription_are_cancelled_unsent(
    ca: trustme.CA, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "CANCELLED_AT_ONCE", 3)
    with receiver(tls(ca), answering("200 OK")) as there:
        made, _ = sender.subscribe(there.url)
        sender.happen(20)
        with sender.store.db.writing() as w:
            subscriptions.delete(w, sender.customer.client_id, made.subscription_id)
        assert sender.deliver() == 17
        assert there.connections == 0
    assert {reported.status for reported in sender.log()} == {DeliveryStatus.CANCELLED}


def test_a_short_database_failure_does_not_end_the_loop(
    ca: trustme.CA, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = iter([OperationalError("…", None, Exception("the database is away"))])

    def record(w: Writing, holder: UUID, ended: Sequence[Ended]) -> list[Pause]:
        if ended and (refusal := next(refusals, None)):
            raise refusal
        return retained(w, holder, ended)

    retained = outbox.record
    monkeypatch.setattr(outbox, "record", record)
    monkeypatch.setattr(delivery, "RETRY_DATABASE_S", 0.05)
    with receiver(tls(ca), answering("200 OK")) as there:
        sender.subscribe(there.url)
        sender.happen()
        with running(sender.store):
            assert eventually(lambda: sender.log()[0].status is DeliveryStatus.DELIVERED)
    assert (next(refusals, None), there.connections) == (None, 1)


def test_a_commit_without_an_answer_does_not_stop_the_loop(
    ca: trustme.CA, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([OperationalError("COMMIT", None, Exception("the connection was lost"))])
    db, own_thread = sender.store.db, threading.get_ident()

    @contextmanager
    def writing() -> Iterator[Writing]:
        with committing() as w:
            yield w
        in_loop = threading.get_ident() != own_thread
        if in_loop and any(reported.attempts for reported in sender.log()) and (loss := next(losses, None)):
            raise loss

    committing = db.writing
    monkeypatch.setattr(db, "writing", writing)
    monkeypatch.setattr(delivery, "RETRY_DATABASE_S", 0.05)
    with receiver(tls(ca), answering("200 OK")) as there:
        sender.subscribe(there.url)
        sender.happen()
        with running(sender.store):
            assert eventually(lambda: next(iter(sender.log())).status is DeliveryStatus.DELIVERED)
            sender.happen()
            assert eventually(lambda: len(there.requests) == 2)
    assert next(losses, None) is None
    assert [len(reported.attempts) for reported in sender.log()] == [1, 1]


def test_deliveries_interrupted_by_a_stop_become_due_again_and_are_sent(
    ca: trustme.CA, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "DRAIN_S", 0.1)
    patient = replace(sender.store, settings=sender.store.settings.model_copy(update={"webhook_timeout_s": 30.0}))
    with receiver(tls(ca), silent) as there:
        sender.subscribe(there.url)
        sender.happen()
        with running(patient):
            assert eventually(lambda: len(there.requests) == 1)
    (reported,) = sender.log()
    assert (reported.status, reported.attempts) == (DeliveryStatus.DUE, ())


def test_deliveries_in_progress_at_a_stop_may_end(ca: trustme.CA, sender: Sender) -> None:
    def slow(connection: ssl.SSLSocket) -> None:
        time.sleep(0.5)
        answering("200 OK")(connection)

    with receiver(tls(ca), slow) as there:
        sender.subscribe(there.url)
        sender.happen()
        with running(sender.store):
            assert eventually(lambda: len(there.requests) == 1)
    assert outcome(sender.log()[0]) == (DeliveryStatus.DELIVERED, 200, None)


def test_a_sender_with_a_dead_senders_id_sends_its_claimed_deliveries_at_once(ca: trustme.CA, sender: Sender) -> None:
    holder = uuid4()
    with receiver(tls(ca), answering("200 OK")) as there:
        sender.subscribe(there.url)
        sender.happen()
        with sender.store.db.writing() as w:
            outbox.claim_due(w, holder, 1, 45, datetime.now(UTC))
        with running(sender.store, holder):
            assert eventually(lambda: len(there.requests) == 1)


def test_many_events_at_once_cause_no_timeouts(ca: trustme.CA, sender: Sender) -> None:
    with receiver(tls(ca), answering("200 OK")) as there:
        for _ in range(20):
            sender.subscribe(there.url)
        sender.happen(10)
        assert sender.deliver() == 200
    assert {outcome(reported) for reported in sender.log()} == {(DeliveryStatus.DELIVERED, 200, None)}
    assert len(there.requests) == 200
