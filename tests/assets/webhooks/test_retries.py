"""Retries and pauses by a sender, over real TLS on loopback."""

import logging
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

import pytest
import trustme
from sqlalchemy import update

from assets.webhooks import delivery
from pipelines.vocabulary.errors import NotFound
from pipelines.webhooks.events import decode_secret, sign
from storage.core.models import DeliveryStatus, deliveries
from storage.core.settings import Settings
from storage.webhooks import outbox, subscriptions, turns
from tests.assets.receivers import answering, receiver, tls
from tests.assets.webhooks.test_delivery import LOOPBACK, Sender, body_of, running, signature_of
from tests.conftest import SQLITE_FIRST, new_database, open_store
from tests.storage.examples import a_client, a_customer
from tests.waiting import eventually

DAY = timedelta(days=1)
ENDED = (DeliveryStatus.FAILED, DeliveryStatus.CANCELLED)


@pytest.fixture(params=SQLITE_FIRST)
def sender(request: pytest.FixtureRequest, ca: trustme.CA, tmp_path: Path) -> Iterator[Sender]:
    bundle = tmp_path / "ca.pem"
    ca.cert_pem.write_to_path(str(bundle))
    settings = Settings(
        home=tmp_path / "home",
        database_url=new_database(request, request.param),
        webhook_allow_cidrs=LOOPBACK,
        webhook_ca_bundle=bundle,
        webhook_timeout_s=10,
    )
    store, now = open_store(settings), datetime.now(UTC)
    yield Sender(store, a_customer(store, a_client(store, now), now))
    store.close()


def ask_for(sender: Sender, subscription_id: UUID, **patience: int | None) -> None:
    with sender.store.db.writing() as w:
        subscriptions.change(w, sender.customer.client_id, subscription_id, patience)


def bring_forward(sender: Sender) -> None:
    """Make the time of every retry come now."""
    with sender.store.db.writing() as w:
        w.execute(update(deliveries).where(deliveries.c.retry_at.is_not(None)).values(retry_at=datetime.now(UTC) - DAY))


def in_turn(*statuses: str) -> Callable[[ssl.SSLSocket], None]:
    """Return a script that answers with these statuses, one for each connection."""
    left = iter(statuses)

    def answer(connection: ssl.SSLSocket) -> None:
        answering(next(left))(connection)

    return answer


def test_a_retry_sends_the_same_bytes_under_the_same_id(ca: trustme.CA, sender: Sender) -> None:
    with receiver(tls(ca), in_turn("500 Sorry", "503 Again", "204 No Content")) as there:
        made, _ = sender.subscribe(there.url)
        ask_for(sender, made.subscription_id, max_retries=5)
        sender.happen()
        with running(sender.store):
            for tries in (1, 2):
                assert eventually(partial(has_retried, sender, tries))
                bring_forward(sender)
            assert eventually(lambda: sender.log()[0].status is DeliveryStatus.DELIVERED)
    assert len(there.requests) == 3
    assert len({body_of(request) for request in there.requests}) == 1
    assert len({signature_of(request) for request in there.requests}) == 1


def has_retried(sender: Sender, tries: int) -> bool:
    (reported,) = sender.log()
    return reported.status is DeliveryStatus.RETRYING and len(reported.attempts) == tries


def test_a_rotated_secret_signs_the_retry(ca: trustme.CA, sender: Sender) -> None:
    with receiver(tls(ca), in_turn("500 Sorry", "204 No Content")) as there:
        made, old = sender.subscribe(there.url)
        ask_for(sender, made.subscription_id, max_retries=1)
        sender.happen()
        sender.deliver()
        with sender.store.db.writing() as w:
            new = subscriptions.rotate(w, sender.customer.client_id, made.subscription_id, sender.store.vault)
        bring_forward(sender)
        with sender.store.db.writing() as w:
            assert outbox.make_retries_due(w, datetime.now(UTC)) == 1
        sender.deliver()
    first, again = there.requests
    assert signature_of(first) == sign(body_of(first), old)
    assert signature_of(again) == sign(body_of(again), decode_secret(new))


def test_a_dead_receiver_is_paused_and_the_console_says_so(
    ca: trustme.CA, sender: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    with receiver(tls(ca), answering("500 Sorry")) as there, caplog.at_level(logging.WARNING, "tidemark.delivery"):
        made, _ = sender.subscribe(there.url)
        ask_for(sender, made.subscription_id, pause_after=3)
        sender.happen(20)
        sender.deliver()
    reported = sender.log()
    tried = sum(each.status is DeliveryStatus.FAILED for each in reported)
    assert 3 <= tried <= 3 + turns.PER_SUBSCRIPTION  # what was under way still ended
    assert sum(each.status is DeliveryStatus.DUE for each in reported) == 20 - tried
    [line] = [record.getMessage() for record in caplog.records if "paused" in record.getMessage()]
    assert str(made.subscription_id) in line


def test_resuming_sends_what_waited_in_its_order(ca: trustme.CA, sender: Sender) -> None:
    with receiver(tls(ca), answering("204 No Content")) as there:
        made, _ = sender.subscribe(there.url)
        with sender.store.db.writing() as w:
            subscriptions.pause(w, None, made.subscription_id, "operator", datetime.now(UTC))
        happened = [sender.happen()[0] for _ in range(3)]
        with running(sender.store):
            assert not eventually(lambda: bool(there.connections), within_s=1)
            with sender.store.db.writing() as w:
                subscriptions.resume(w, None, made.subscription_id)
            assert eventually(lambda: all(each.status is DeliveryStatus.DELIVERED for each in sender.log()))
    oldest_first = sorted(sender.log(), key=lambda each: each.attempts[0].started_at)
    assert [each.event_id for each in oldest_first] == happened


def test_a_sender_that_died_leaves_the_same_bytes_to_the_next(ca: trustme.CA, sender: Sender) -> None:
    with receiver(tls(ca), answering("204 No Content")) as there:
        made, _ = sender.subscribe(there.url)
        ask_for(sender, made.subscription_id, max_retries=3)
        (event_id,) = sender.happen()
        long_ago = datetime.now(UTC) - timedelta(minutes=5)
        with sender.store.db.writing() as w:
            [taken] = outbox.claim_due(w, uuid4(), 1, 45, long_ago)  # this sender is killed before it records anything
        with running(sender.store):
            assert eventually(lambda: sender.log()[0].status is DeliveryStatus.DELIVERED)
    (reported,) = sender.log()
    assert (reported.event_id, len(reported.attempts)) == (event_id, 1)
    assert body_of(there.requests[0]) == taken.body


def test_a_subscription_deleted_under_way_is_sent_nothing_more(ca: trustme.CA, sender: Sender) -> None:
    """Deliveries in progress may arrive; no other is sent, and none is retried."""

    def deleting(connection: ssl.SSLSocket) -> None:
        with suppress(NotFound), sender.store.db.writing() as w:  # only the first of four at once deletes it
            subscriptions.delete(w, sender.customer.client_id, made.subscription_id)
        answering("500 Sorry")(connection)

    with receiver(tls(ca), deleting) as there:
        made, _ = sender.subscribe(there.url)
        ask_for(sender, made.subscription_id, max_retries=5)
        sender.happen(30)
        with running(sender.store):
            assert eventually(lambda: all(each.status in ENDED for each in sender.log()))
    statuses = [each.status for each in sender.log()]
    assert statuses.count(DeliveryStatus.FAILED) == there.connections <= turns.PER_SUBSCRIPTION
    assert statuses.count(DeliveryStatus.CANCELLED) == 30 - there.connections


def test_several_senders_send_each_delivery_once(ca: trustme.CA, sender: Sender) -> None:
    with receiver(tls(ca), answering("204 No Content")) as there:
        for _ in range(3):
            sender.subscribe(there.url)
        sender.happen(20)
        with ThreadPoolExecutor(3) as senders:
            claimed = senders.map(lambda _: delivery.deliver_due(sender.store, 1_000, 30), range(3))
            assert sum(claimed) == 60
    assert len(there.requests) == 60
    assert {(each.status, len(each.attempts)) for each in sender.log()} == {(DeliveryStatus.DELIVERED, 1)}
