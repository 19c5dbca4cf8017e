"""Connections are reused between deliveries only when it is safe, and no delivery or answer is lost by it."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from assets.webhooks import sending
from storage.core.settings import Settings
from tests.assets.receivers import Misbehaving, post_in_turn, read_request, receiver, tls, trusting

PATIENT_S, IMPATIENT_S = 30.0, 2.0
ACCEPTED = b"HTTP/1.1 204 No Content\r\n\r\n"
STRAY = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"

Turn = Callable[[ssl.SSLSocket], None]


@pytest.fixture
def settings(ca: trustme.CA, tmp_path: Path) -> Settings:
    return trusting(ca, tmp_path, PATIENT_S)


@contextmanager
def taking_turns(ca: trustme.CA, *turns: Turn) -> Iterator[Misbehaving]:
    """Run a receiver that answers the requests over one connection by these turns, in order, and then closes it."""

    def converse(connection: ssl.SSLSocket) -> None:
        turns[0](connection)
        for turn in turns[1:]:
            there.requests.append(read_request(connection))
            turn(connection)

    with receiver(tls(ca), converse) as there:
        yield there


def accept(connection: ssl.SSLSocket) -> None:
    connection.sendall(ACCEPTED)


def hang_up(_: ssl.SSLSocket) -> None:
    """End the receiver's thread, which closes the connection."""


def bodies(there: Misbehaving) -> list[bytes]:
    return [request.partition(b"\r\n\r\n")[2] for request in there.requests]


def test_the_next_delivery_reuses_the_connection(ca: trustme.CA, settings: Settings) -> None:
    with taking_turns(ca, accept, accept, accept) as there:
        attempts = post_in_turn(settings, [there.url] * 3)
    assert [attempt.status_code for attempt in attempts] == [204, 204, 204]
    assert (there.connections, bodies(there)) == (1, [b"0", b"1", b"2"])


def test_over_a_reused_connection_only_the_answer_is_timed(ca: trustme.CA, settings: Settings) -> None:
    def accept_late(connection: ssl.SSLSocket) -> None:
        time.sleep(0.2)
        accept(connection)

    with taking_turns(ca, accept, accept_late) as there:
        made, retained = post_in_turn(settings, [there.url] * 2)
    assert None not in (made.dns_ms, made.connect_ms, made.tls_ms)
    assert (retained.dns_ms, retained.connect_ms, retained.tls_ms) == (None, None, None)
    assert retained.first_byte_ms is not None
    assert 200 <= retained.first_byte_ms <= retained.duration_ms


@pytest.mark.parametrize("limit", ["IDLE_S", "REUSED_FOR_S"])
def test_idle_or_old_connections_are_not_reused(
    ca: trustme.CA, settings: Settings, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(sending, limit, 0.1)
    with taking_turns(ca, accept, accept) as there:
        attempts = post_in_turn(settings, [there.url] * 2, pause_s=0.3)
    assert [attempt.status_code for attempt in attempts] == [204, 204]
    assert there.connections == 2


@pytest.mark.parametrize("more", [STRAY, STRAY[:20], b"\r\n"], ids=["an answer", "half of one", "an empty line"])
def test_bytes_after_an_answer_do_not_answer_the_next_delivery(ca: trustme.CA, settings: Settings, more: bytes) -> None:
    def accept_and_go_on(connection: ssl.SSLSocket) -> None:
        accept(connection)
        time.sleep(0.1)  # so that it arrives after the answer was read
        connection.sendall(more)
        went_on.set()

    went_on = threading.Event()
    with taking_turns(ca, accept_and_go_on, accept) as there:
        attempts = post_in_turn(settings, [there.url] * 2, once=went_on)
    assert [attempt.status_code for attempt in attempts] == [204, 204]
    assert (there.connections, bodies(there)) == (2, [b"0", b"1"])


def test_a_reused_connection_that_was_closed_costs_no_delivery(ca: trustme.CA, settings: Settings) -> None:
    with taking_turns(ca, accept, hang_up) as there:
        attempts = post_in_turn(settings, [there.url] * 2)
    assert [(attempt.status_code, attempt.error) for attempt in attempts] == [(204, None), (204, None)]
    assert (there.connections, bodies(there)) == (2, [b"0", b"1", b"1"])
    assert None not in (attempts[1].dns_ms, attempts[1].connect_ms, attempts[1].tls_ms)


def test_a_lost_delivery_is_sent_again_only_once(ca: trustme.CA, settings: Settings) -> None:
    served: list[bool] = []

    def accept_the_first(connection: ssl.SSLSocket) -> None:
        if served:
            raise ConnectionError
        served.append(True)
        accept(connection)

    with taking_turns(ca, accept_the_first, hang_up) as there:
        attempts = post_in_turn(settings, [there.url] * 2)
    assert [(attempt.status_code, attempt.error) for attempt in attempts] == [(204, None), (None, "reset")]
    assert bodies(there) == [b"0", b"1", b"1"]


def test_a_delivery_that_was_sent_is_not_reported_as_unsent(ca: trustme.CA, settings: Settings) -> None:
    """This holds even if the receiver is gone when the delivery is sent again."""
    heard: list[bytes] = []

    def converse_and_go() -> None:
        connection, _ = server.accept()
        server.close()
        with tls(ca).wrap_socket(connection, server_side=True) as secured:
            heard.append(read_request(secured))
            accept(secured)
            heard.append(read_request(secured))

    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"https://127.0.0.1:{server.getsockname()[1]}/"
        conversing = threading.Thread(target=converse_and_go)
        conversing.start()
        attempts = post_in_turn(settings, [url] * 2)
        conversing.join()
    assert ([attempt.error for attempt in attempts], len(heard)) == ([None, "reset"], 2)


def test_the_number_of_reused_connections_is_limited(
    ca: trustme.CA, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "REUSED_CONNECTIONS", 1)
    with taking_turns(ca, accept, accept) as first, taking_turns(ca, accept, accept) as second:
        attempts = post_in_turn(settings, [first.url, second.url] * 2)
    assert [attempt.status_code for attempt in attempts] == [204] * 4
    assert (first.connections, second.connections) == (1, 2)


def begin_and_hang_up(connection: ssl.SSLSocket) -> None:
    connection.sendall(b"HTTP/1.1 20")


def say_nothing(connection: ssl.SSLSocket) -> None:
    time.sleep(IMPATIENT_S * 1.5)
    assert not connection.pending()


@pytest.mark.parametrize(("turn", "error"), [(begin_and_hang_up, "reset"), (say_nothing, "timeout")])
def test_a_delivery_with_a_partial_or_no_answer_is_not_sent_again(
    ca: trustme.CA, settings: Settings, turn: Turn, error: str
) -> None:
    impatient = settings.model_copy(update={"webhook_timeout_s": IMPATIENT_S})
    with taking_turns(ca, accept, turn) as there:
        attempts = post_in_turn(impatient, [there.url] * 2)
    assert [attempt.error for attempt in attempts] == [None, error]
    assert bodies(there) == [b"0", b"1"]


def test_a_delivery_over_a_new_connection_that_is_reset_is_not_sent_again(ca: trustme.CA, settings: Settings) -> None:
    with taking_turns(ca, hang_up) as there:
        (attempt,) = post_in_turn(settings, [there.url])
    assert (attempt.error, bodies(there)) == ("reset", [b"0"])
