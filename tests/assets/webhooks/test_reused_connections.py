"""Connections that are kept from delivery to delivery: when one serves, and that it costs no delivery and no answer."""

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
from tests.assets.receivers import Misbehaving, posted_in_turn, read_request, receiver, tls, trusting

PATIENT_S, IMPATIENT_S = 30.0, 2.0
ACCEPTED = b"HTTP/1.1 204 No Content\r\n\r\n"
STRAY = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"

Turn = Callable[[ssl.SSLSocket], None]


@pytest.fixture
def settings(ca: trustme.CA, tmp_path: Path) -> Settings:
    return trusting(ca, tmp_path, PATIENT_S)


@contextmanager
def taking_turns(ca: trustme.CA, *turns: Turn) -> Iterator[Misbehaving]:
    """A receiver that takes its turn, the first one first, for each request that comes over one connection, and then
    hangs up.
    """

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
    """The receiver's thread ends."""


def bodies(there: Misbehaving) -> list[bytes]:
    return [request.partition(b"\r\n\r\n")[2] for request in there.requests]


def test_the_next_delivery_needs_no_new_connection(ca: trustme.CA, settings: Settings) -> None:
    with taking_turns(ca, accept, accept, accept) as there:
        attempts = posted_in_turn(settings, [there.url] * 3)
    assert [attempt.status_code for attempt in attempts] == [204, 204, 204]
    assert (there.connections, bodies(there)) == (1, [b"0", b"1", b"2"])


def test_over_a_kept_connection_only_the_answer_takes_time(ca: trustme.CA, settings: Settings) -> None:
    def accept_late(connection: ssl.SSLSocket) -> None:
        time.sleep(0.2)
        accept(connection)

    with taking_turns(ca, accept, accept_late) as there:
        made, retained = posted_in_turn(settings, [there.url] * 2)
    assert None not in (made.dns_ms, made.connect_ms, made.tls_ms)
    assert (retained.dns_ms, retained.connect_ms, retained.tls_ms) == (None, None, None)
    assert retained.first_byte_ms is not None
    assert 200 <= retained.first_byte_ms <= retained.duration_ms


@pytest.mark.parametrize("limit", ["IDLE_S", "REUSED_FOR_S"])
def test_idle_or_old_connections_are_given_up(
    ca: trustme.CA, settings: Settings, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(sending, limit, 0.1)
    with taking_turns(ca, accept, accept) as there:
        attempts = posted_in_turn(settings, [there.url] * 2, pause_s=0.3)
    assert [attempt.status_code for attempt in attempts] == [204, 204]
    assert there.connections == 2


@pytest.mark.parametrize("more", [STRAY, STRAY[:20], b"\r\n"], ids=["an answer", "half of one", "an empty line"])
def test_what_comes_after_an_answer_answers_nobody_else(ca: trustme.CA, settings: Settings, more: bytes) -> None:
    def accept_and_go_on(connection: ssl.SSLSocket) -> None:
        accept(connection)
        time.sleep(0.1)  # it is to come after the answer was read
        connection.sendall(more)
        went_on.set()

    went_on = threading.Event()
    with taking_turns(ca, accept_and_go_on, accept) as there:
        attempts = posted_in_turn(settings, [there.url] * 2, once=went_on)
    assert [attempt.status_code for attempt in attempts] == [204, 204]
    assert (there.connections, bodies(there)) == (2, [b"0", b"1"])


def test_a_connection_that_was_closed_just_then_costs_no_delivery(ca: trustme.CA, settings: Settings) -> None:
    with taking_turns(ca, accept, hang_up) as there:
        attempts = posted_in_turn(settings, [there.url] * 2)
    assert [(attempt.status_code, attempt.error) for attempt in attempts] == [(204, None), (204, None)]
    assert (there.connections, bodies(there)) == (2, [b"0", b"1", b"1"])
    assert None not in (attempts[1].dns_ms, attempts[1].connect_ms, attempts[1].tls_ms)


def test_it_is_made_good_once(ca: trustme.CA, settings: Settings) -> None:
    served: list[bool] = []

    def accept_the_first(connection: ssl.SSLSocket) -> None:
        if served:
            raise ConnectionError
        served.append(True)
        accept(connection)

    with taking_turns(ca, accept_the_first, hang_up) as there:
        attempts = posted_in_turn(settings, [there.url] * 2)
    assert [(attempt.status_code, attempt.error) for attempt in attempts] == [(204, None), (None, "reset")]
    assert bodies(there) == [b"0", b"1", b"1"]


def test_what_was_sent_is_not_said_to_have_gone_nowhere(ca: trustme.CA, settings: Settings) -> None:
    """Though nobody is there any more when it is to be sent again."""
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
        attempts = posted_in_turn(settings, [url] * 2)
        conversing.join()
    assert ([attempt.error for attempt in attempts], len(heard)) == ([None, "reset"], 2)


def test_only_so_many_are_kept(ca: trustme.CA, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "REUSED_CONNECTIONS", 1)
    with taking_turns(ca, accept, accept) as first, taking_turns(ca, accept, accept) as second:
        attempts = posted_in_turn(settings, [first.url, second.url] * 2)
    assert [attempt.status_code for attempt in attempts] == [204] * 4
    assert (first.connections, second.connections) == (1, 2)


def begin_and_hang_up(connection: ssl.SSLSocket) -> None:
    connection.sendall(b"HTTP/1.1 20")


def say_nothing(connection: ssl.SSLSocket) -> None:
    time.sleep(IMPATIENT_S * 1.5)
    assert not connection.pending()


@pytest.mark.parametrize(("turn", "error"), [(begin_and_hang_up, "reset"), (say_nothing, "timeout")])
def test_whoever_began_to_answer_or_never_does_is_not_asked_again(
    ca: trustme.CA, settings: Settings, turn: Turn, error: str
) -> None:
    impatient = settings.model_copy(update={"webhook_timeout_s": IMPATIENT_S})
    with taking_turns(ca, accept, turn) as there:
        attempts = posted_in_turn(impatient, [there.url] * 2)
    assert [attempt.error for attempt in attempts] == [None, error]
    assert bodies(there) == [b"0", b"1"]


def test_a_new_connection_that_is_reset_is_not_made_good(ca: trustme.CA, settings: Settings) -> None:
    with taking_turns(ca, hang_up) as there:
        (attempt,) = posted_in_turn(settings, [there.url])
    assert (attempt.error, bodies(there)) == ("reset", [b"0"])
