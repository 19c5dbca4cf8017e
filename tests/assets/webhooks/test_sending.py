"""One POST: the durations of its steps, and its failures with names, connections and certificates."""

import asyncio
import socket
import ssl
import struct
import time
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
import trustme
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection

from assets.webhooks import sending
from storage.core.settings import Settings
from storage.webhooks.outbox import Attempt
from tests.assets.receivers import Names, Script, answering, post, post_all, receiver, tls, trusting

NAME = "lender.example"
TIMEOUT_S = 1.0


@pytest.fixture
def settings(ca: trustme.CA, tmp_path: Path) -> Settings:
    return trusting(ca, tmp_path, TIMEOUT_S)


def steps(attempt: Attempt) -> list[int | None]:
    return [getattr(attempt, step) for step in sending.STEPS]


def test_the_duration_of_each_step_is_measured(ca: trustme.CA, settings: Settings) -> None:
    with receiver(slow_to_greet(ca, 0.15), run_after(0.2, answering("200 OK"))) as there:
        attempt = post(settings, f"https://{NAME}:{there.port}/", Names(["127.0.0.1"], after_s=0.1))
    dns, connect, handshake, first_byte = (step or 0 for step in steps(attempt))
    assert attempt.status_code == 200
    assert (dns >= 100, connect >= 0, handshake >= 150, first_byte >= 200) == (True, True, True, True)
    assert dns + connect + handshake + first_byte <= attempt.duration_ms


def run_after(seconds: float, script: Script) -> Script:
    def later(connection: ssl.SSLSocket) -> None:
        time.sleep(seconds)
        script(connection)

    return later


def slow_to_greet(ca: trustme.CA, seconds: float) -> ssl.SSLContext:
    """Return a context that pauses in the middle of the handshake."""
    context = tls(ca, NAME)

    def think(*_: object) -> None:
        time.sleep(seconds)

    context.sni_callback = think
    return context


def test_the_time_to_the_first_byte_excludes_the_rest_of_the_head(ca: trustme.CA, settings: Settings) -> None:
    def stammer(connection: ssl.SSLSocket) -> None:
        connection.sendall(b"HTTP/1.1 ")
        time.sleep(0.4)
        connection.sendall(b"204 No Content\r\n\r\n")

    with receiver(tls(ca), stammer) as there:
        attempt = post(settings, there.url)
    assert attempt.duration_ms - sum(step or 0 for step in steps(attempt)) >= 200  # of 400


def silent(connection: ssl.SSLSocket) -> None:
    connection.recv(1)


def test_a_step_that_was_not_completed_has_no_duration(ca: trustme.CA, settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nowhere = f"https://127.0.0.1:{closed.getsockname()[1]}/"
    with receiver(tls(ca), silent) as mute, receiver(tls(trustme.CA()), silent) as stranger:
        attempts = [
            post(settings, "https://nowhere.example/", Names([])),
            *post_all(settings, ["https://10.0.0.1/", nowhere, stranger.url, mute.url]),
        ]
    assert [attempt.error for attempt in attempts] == ["dns", "refused", "connect", "tls", "timeout"]
    reached = [[step is not None for step in steps(attempt)] for attempt in attempts]
    assert reached == [[step < depth for step in range(4)] for depth in (0, 1, 1, 2, 3)]


class Failing(AbstractResolver):
    """A resolver that fails."""

    def __init__(self, error: OSError) -> None:
        self._error = error

    async def resolve(self, *_: Any, **__: Any) -> list[ResolveResult]:
        raise self._error

    async def close(self) -> None:
        """Do nothing: no resource is open."""


@pytest.mark.parametrize(
    "error",
    [
        socket.gaierror(socket.EAI_NONAME, "NXDOMAIN"),
        socket.gaierror(socket.EAI_AGAIN, "SERVFAIL"),
        socket.gaierror(socket.EAI_FAIL, "refused"),
        OSError(None, "another resolver's words"),
        TimeoutError(),
    ],
    ids=["unknown", "in trouble", "refused", "without a number", "out of time"],
)
def test_a_name_that_can_not_be_resolved_has_its_own_failure_class(settings: Settings, error: OSError) -> None:
    assert post(settings, f"https://{NAME}/", Failing(error)).error == "dns"


class SlowFor(Names):
    """A resolver that is slow for one name only."""

    async def resolve(self, host: str, *more: Any, **named: Any) -> list[ResolveResult]:
        self.after_s = 20 if host == NAME else 0
        return await super().resolve(host, *more, **named)


def test_a_slow_name_server_takes_half_of_the_deadline_and_delays_no_other_delivery(
    ca: trustme.CA, settings: Settings
) -> None:
    with receiver(tls(ca, "prompt.example"), answering("200 OK")) as there:
        prompt = f"https://prompt.example:{there.port}/"
        urls = [f"https://{NAME}/", prompt, f"https://{NAME}/", prompt]
        patient = settings.model_copy(update={"webhook_timeout_s": 8.0})  # a busy machine delays prompt ones, too
        deadline_ms = patient.webhook_timeout_s * 1000
        slow, fine, slow_too, fine_too = post_all(patient, urls, SlowFor(["127.0.0.1"]))
    for attempt in (slow, slow_too):
        assert (attempt.error, steps(attempt)) == ("dns", [None] * 4)
        assert deadline_ms / 2 <= attempt.duration_ms < deadline_ms
    for attempt in (fine, fine_too):
        assert (attempt.error, attempt.status_code) == (None, 200)
        assert attempt.duration_ms < min(slow.duration_ms, slow_too.duration_ms)


def slam_after(text: bytes) -> Script:
    """Send a text and reset the connection without a TLS close message."""

    def slam(connection: ssl.SSLSocket) -> None:
        connection.sendall(text)
        time.sleep(0.05)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        socket.close(connection.detach())

    return slam


@pytest.mark.parametrize(
    ("text", "status"),
    [(b"", None), (b"HTTP/1.1 200 O", None), (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", 200)],
    ids=["before the head", "in the head", "after the head"],
)
def test_a_reset_connection_is_a_reset(ca: trustme.CA, settings: Settings, text: bytes, status: int | None) -> None:
    with receiver(tls(ca), slam_after(text)) as there:
        attempt = post(settings, there.url)
        assert (attempt.error, attempt.status_code, there.connections) == ("reset", status, 1)


def test_a_connection_lost_before_it_is_used_is_a_reset(
    ca: trustme.CA, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = aiohttp.TCPConnector.connect

    async def make_and_lose(connector: aiohttp.TCPConnector, *about: Any) -> Connection:
        connection = await make(connector, *about)
        assert connection.transport is not None
        connection.transport.abort()
        await asyncio.sleep(0.05)
        return connection

    monkeypatch.setattr(aiohttp.TCPConnector, "connect", make_and_lose)
    with receiver(tls(ca), answering("200 OK")) as there:
        assert post(settings, there.url).error == "reset"


def test_an_answer_of_two_gigabytes_costs_neither_memory_nor_time(ca: trustme.CA, settings: Settings) -> None:
    def pour(connection: ssl.SSLSocket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\n")
        block = bytes(2**20)
        for _ in range(2_048):
            connection.sendall(block)
            poured.append(len(block))

    poured: list[int] = []
    with receiver(tls(ca), pour) as there:
        before = psutil.Process().memory_info().rss
        attempt = post(settings, there.url)
        grown = psutil.Process().memory_info().rss - before
    assert (attempt.status_code, len(attempt.response_head or b"")) == (200, 16_384)
    assert sum(poured) < 20 * 2**20, "the sender closed the connection early"
    assert grown < 50 * 2**20


def self_signed(folder: Path) -> ssl.SSLContext:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "own.pem"))
    authority.private_key_pem.write_to_path(str(folder / "own.key"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "own.pem", folder / "own.key")
    return context


def test_a_self_signed_certificate_is_not_trusted(settings: Settings, tmp_path: Path) -> None:
    with receiver(self_signed(tmp_path), answering("200 OK")) as there:
        assert post(settings, there.url).error == "tls"
    assert [request for request in there.requests if request] == []


def test_an_authority_removed_from_the_bundle_is_not_trusted(ca: trustme.CA, settings: Settings) -> None:
    with receiver(tls(ca), answering("200 OK")) as there:
        assert post(settings, there.url).status_code == 200
        assert post(settings.model_copy(update={"webhook_ca_bundle": None}), there.url).error == "tls"
    assert len([request for request in there.requests if request]) == 1


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_current_versions_of_tls_are_accepted(ca: trustme.CA, settings: Settings, version: ssl.TLSVersion) -> None:
    context = tls(ca)
    context.minimum_version = context.maximum_version = version
    with receiver(context, answering("200 OK")) as there:
        attempt = post(settings, there.url)
    assert (attempt.status_code, None in steps(attempt)) == (200, False)


@pytest.mark.parametrize(
    ("addresses", "error"),
    [
        (["10.0.0.1", "10.0.0.2"], "refused"),
        (["10.0.0.1", "127.0.0.1"], "connect"),
        (["127.0.0.1", "10.0.0.1"], "connect"),
    ],
)
def test_refused_means_that_no_address_was_dialled(settings: Settings, addresses: list[str], error: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert post(settings, f"https://{NAME}:{port}/", Names(addresses)).error == error
