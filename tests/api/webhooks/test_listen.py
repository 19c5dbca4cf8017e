"""`tidemark listen`: an HTTPS receiver that verifies, stores and shows deliveries, and misbehaves on request."""

import io
import json
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
import requests
from rich.console import Console
from typer.testing import CliRunner

from api.cli import app
from api.webhooks import listen
from api.webhooks.listen import (
    MAX_BODY_BYTES,
    Behaviour,
    Received,
    Receiver,
    as_panel,
    as_record,
    introduce,
    make_showing,
)
from pipelines.webhooks.events import decode_secret, new_secret, sign, sign_attempt

SECRET, OTHER = new_secret(b"1" * 32), new_secret(b"2" * 32)
EVENT_ID = UUID("2b8f9f6e-0d3c-5b1a-8f57-1d1f4f3a6c55")
BODY = '{"eventType":"job.completed","eventId":"2b8f9f6e-0d3c-5b1a-8f57-1d1f4f3a6c55","name":"Café"}'.encode()


def post(receiver: Receiver, body: bytes = BODY, signature: str = "") -> int:
    headers = {"X-Service-Webhook-Signature": signature}
    return requests.post(receiver.url, data=body, headers=headers, verify=str(receiver.ca_path), timeout=5).status_code


def test_a_delivery_is_stored_as_received_and_verified(tmp_path: Path) -> None:
    with Receiver(tmp_path, secrets=[OTHER]) as receiver:
        receiver.learn(SECRET)
        assert post(receiver, signature=sign(BODY, decode_secret(SECRET))) == 204
        (received,) = receiver.received
    assert (received.body, received.verified, received.path) == (BODY, True, "/")
    assert received.headers["x-service-webhook-signature"].startswith("sha256=")
    assert received.json["name"] == "Café"


def test_a_wrong_signature_differs_from_an_unknown_secret(tmp_path: Path) -> None:
    with Receiver(tmp_path) as receiver:
        post(receiver, signature=sign(BODY, decode_secret(SECRET)))
        receiver.learn(OTHER)
        post(receiver, signature=sign(BODY, decode_secret(SECRET)))
        assert [each.verified for each in receiver.received] == [None, False]


def test_waiting_ends_with_the_delivery_or_with_the_time(tmp_path: Path) -> None:
    with Receiver(tmp_path) as receiver:
        assert receiver.wait_for(lambda _: True, timeout_s=0.05) is None
        post(receiver)
        assert receiver.wait_for(lambda each: each.body == BODY, timeout_s=5) is not None


def test_the_certificate_is_reused(tmp_path: Path) -> None:
    with Receiver(tmp_path) as first, Receiver(tmp_path) as second:
        assert first.ca_path.read_bytes() == second.ca_path.read_bytes()
        assert post(first) == post(second) == 204


def test_an_authority_that_does_not_belong_to_the_certificate_is_replaced(tmp_path: Path) -> None:
    with Receiver(tmp_path / "a") as one, Receiver(tmp_path / "b") as other:
        one.ca_path.write_bytes(other.ca_path.read_bytes())
    with Receiver(tmp_path / "a") as receiver:
        assert post(receiver) == 204


def test_only_the_owner_can_read_the_key(tmp_path: Path) -> None:
    with Receiver(tmp_path) as receiver:
        folder = receiver.ca_path.parent
    assert {path.stat().st_mode & 0o077 for path in folder.iterdir()} == {0}


def test_the_authority_signs_only_its_own_certificate(tmp_path: Path) -> None:
    with Receiver(tmp_path) as receiver, pytest.raises(requests.exceptions.SSLError):
        requests.post(receiver.url, data=BODY, timeout=5)
    trusting = ssl.create_default_context(cafile=str(receiver.ca_path))
    (authority,) = trusting.get_ca_certs()
    assert authority["subject"] == ((("commonName", "Tidemark development receiver CA"),),)


@pytest.mark.parametrize("length", [str(MAX_BODY_BYTES + 1), "-1", "many"])
def test_a_body_that_is_too_long_is_not_read(tmp_path: Path, length: str) -> None:
    with Receiver(tmp_path) as receiver:
        trusting = ssl.create_default_context(cafile=str(receiver.ca_path))
        line = HTTPSConnection(receiver.url.split("/")[2], context=trusting, timeout=5)
        line.request("POST", "/", headers={"Content-Length": length})
        with closing(line), line.getresponse() as answer:
            assert answer.status == 413
        assert receiver.received == []


def sign_body(body: bytes = BODY, moment: datetime | None = None) -> dict[str, str]:
    return sign_attempt(EVENT_ID, body, decode_secret(SECRET), moment or datetime.now(UTC))


def send(receiver: Receiver, headers: Mapping[str, str], body: bytes = BODY, timeout_s: float = 5) -> requests.Response:
    return requests.post(receiver.url, data=body, headers=headers, verify=str(receiver.ca_path), timeout=timeout_s)


def test_each_signature_is_verified_separately(tmp_path: Path) -> None:
    good = sign_body()
    wrong_body, wrong_standard = "sha256=" + "0" * 64, "v1,AAAA"
    without = {"X-Service-Webhook-Signature": good["X-Service-Webhook-Signature"]}
    with Receiver(tmp_path, secrets=[OTHER, SECRET]) as receiver:
        for headers in (
            good,
            good | {"X-Service-Webhook-Signature": wrong_body},
            good | {"webhook-signature": wrong_standard},
            without,
        ):
            assert send(receiver, headers).status_code == 204
    verdicts = [(each.contract_signature, each.standard_signature, each.verified) for each in receiver.received]
    assert verdicts == [(True, True, True), (False, True, False), (True, False, False), (True, None, True)]


def test_old_timestamps_and_repeated_events_are_noticed(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    with Receiver(tmp_path, secrets=[SECRET]) as receiver:
        for moment in (now, now - timedelta(minutes=6), now + timedelta(minutes=6)):
            send(receiver, sign_body(moment=moment))
        send(receiver, {"webhook-timestamp": "soon"}, body=b"[]")
    deliveries = receiver.received
    assert [(each.is_old, each.before) for each in deliveries] == [(False, 0), (True, 1), (True, 2), (False, 0)]
    assert deliveries[-1].age_s is None
    assert all(each.verified for each in deliveries[:3])


def test_it_answers_with_the_given_status(tmp_path: Path) -> None:
    with Receiver(tmp_path, behaviour=Behaviour(status=503)) as receiver:
        assert send(receiver, {}).status_code == 503
    assert receiver.received[0].answered == 503


def test_a_hanging_receiver_never_answers(tmp_path: Path) -> None:
    with Receiver(tmp_path, behaviour=Behaviour(hang=True)) as receiver:
        with pytest.raises(requests.exceptions.ReadTimeout):
            send(receiver, {}, timeout_s=0.3)
        assert [each.answered for each in receiver.received] == [None]


@pytest.mark.parametrize(("status", "answered"), [(201, 201), (204, 200)])
def test_a_dripping_receiver_sends_byte_by_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, answered: int
) -> None:
    monkeypatch.setattr(listen, "DRIP_S", 0.1)
    with Receiver(tmp_path, behaviour=Behaviour(status=status, drip=True)) as receiver:
        answer = requests.post(receiver.url, data=BODY, verify=str(receiver.ca_path), timeout=5, stream=True)
        with closing(answer):
            assert (answer.status_code, answer.headers["content-length"]) == (answered, "1000")
            begun = time.monotonic()
            assert answer.raw.read(3) == b"..."
            assert 0.15 < time.monotonic() - begun < 2


def test_deliveries_are_forwarded_and_answered_with_the_other_status(tmp_path: Path) -> None:
    headers = sign_body()
    with Receiver(tmp_path / "behind", behaviour=Behaviour(status=418)) as behind:
        with plain_server(to=behind) as url, Receiver(tmp_path, behaviour=Behaviour(forward_to=url)) as receiver:
            assert send(receiver, headers).status_code == 418
        (passed_on,) = behind.received
    assert (passed_on.body, receiver.received[0].answered) == (BODY, 418)
    assert {name.lower(): value for name, value in headers.items()}.items() <= passed_on.headers.items()


@contextmanager
def plain_server(to: Receiver) -> Iterator[str]:
    """Run a server without TLS, as a developer has it. It passes every request on to the receiver. Yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            answer = send(to, {name: self.headers[name] for name in self.headers if name.lower() != "host"}, body)
            self.send_response(answer.status_code)
            self.end_headers()

        def log_message(self, *args: object, **_named: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.05,)).start()
        yield f"http://127.0.0.1:{server.server_port}/my/hooks"
        server.shutdown()


def test_a_failed_forward_is_answered_with_502(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    with Receiver(tmp_path, behaviour=Behaviour(forward_to=url)) as receiver:
        assert send(receiver, {}).status_code == 502


@pytest.mark.parametrize(
    "options",
    [
        ("--hang", "--drip"),
        ("--forward-to", "http://127.0.0.1:1/", "--hang"),
        ("--forward-to", "http://127.0.0.1:1/", "--status", "500"),
        ("--hang", "--status", "500"),
        ("--forward-to", "ftp://127.0.0.1/"),
        ("--status", "99"),
        ("--event-type", "job.completed"),
        ("--secret", "not base64!"),
    ],
)
def test_conflicting_options_are_refused(options: Sequence[str]) -> None:
    refused = CliRunner().invoke(app, ["listen", "--port", "0", *options])
    assert refused.exit_code == 2
    assert "Invalid value" in refused.output


def test_each_delivery_is_a_line_of_json_for_scripts(tmp_path: Path) -> None:
    lines = io.StringIO()
    behaviour, console = Behaviour(status=202), Console(file=lines, width=40)
    with make_showing(tmp_path, 0, [SECRET], behaviour, console, as_json=True) as receiver:
        introduce(receiver, behaviour, console, as_json=True, instructs=True)
        assert send(receiver, sign_body()).status_code == 202
        send(receiver, {}, body=b"no JSON \xff")
    begun, first, second = map(json.loads, lines.getvalue().splitlines())
    assert begun == {"listening": receiver.url, "caBundle": str(receiver.ca_path)}
    assert first["event"] == json.loads(BODY)
    assert (first["verified"], first["contractSignature"], first["standardSignature"]) == (True, True, True)
    assert (first["answered"], first["timesBefore"], first["isOld"], first["path"]) == (202, 0, False, "/")
    assert first["headers"]["webhook-id"] == str(EVENT_ID)
    assert (second["event"], second["body"], second["verified"]) == (None, "no JSON \ufffd", False)


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (Behaviour(), "answering 204"),
        (Behaviour(status=500, drip=True), "answering 500, a byte a second"),
        (Behaviour(hang=True), "never answering"),
        (Behaviour(forward_to="http://127.0.0.1:3000/"), "forwarding to 'http://127.0.0.1:3000/'"),
    ],
)
def test_the_url_and_the_behaviour_are_printed(tmp_path: Path, behaviour: Behaviour, expected: str) -> None:
    console = Console(file=io.StringIO(), width=200, color_system=None)
    with make_showing(tmp_path, 0, [], behaviour, console, as_json=False) as receiver:
        introduce(receiver, behaviour, console, as_json=False, instructs=True)
        assert isinstance(console.file, io.StringIO)
        text = console.file.getvalue()
        assert f"Listening on {receiver.url}, {expected}" in text
        assert f"TIDEMARK_WEBHOOK_CA_BUNDLE={receiver.ca_path}" in text


def received_event(body: bytes, headers: Mapping[str, str], **more: Any) -> Received:
    usual: dict[str, Any] = {"contract_signature": None, "standard_signature": None, "before": 0, "answered": 204}
    moment = datetime(2026, 11, 20, tzinfo=UTC)
    return Received(received_at=moment, path="/\x1b[2J", headers=headers, body=body, **usual | more)


def text_of(body: bytes, headers: Mapping[str, str], **more: Any) -> str:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    console.print(as_panel(received_event(body, headers, **more)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_delivery_is_shown_with_its_verdict() -> None:
    assert "signature verified" in text_of(BODY, {}, contract_signature=True)
    assert "does not match" in text_of(BODY, {}, contract_signature=False)
    assert "does not match" in text_of(BODY, {}, contract_signature=True, standard_signature=False)
    assert '"eventType": "job.completed"' in text_of(BODY, {})
    assert "answered 204" in text_of(BODY, {})
    assert "no response" in text_of(BODY, {}, answered=None)


def test_warnings_about_a_delivery_are_shown() -> None:
    assert "!" not in text_of(BODY, {"webhook-timestamp": "1795132800"})
    assert "361 s ago" in text_of(BODY, {"webhook-timestamp": str(1795132800 - 361)})
    assert "361 s ahead" in text_of(BODY, {"webhook-timestamp": str(1795132800 + 361)})
    assert "received 3 times" in text_of(BODY, {}, before=2)


@pytest.mark.parametrize("body", [b'{"name":"\\u001b[2J[red]\\u009b"}', b"\x1b[2J[red]", b"[[[", b"\xff"])
def test_control_characters_of_a_delivery_are_escaped(body: bytes) -> None:
    hostile = "\x1b]0;title\x07"
    text = text_of(body, {"x-service-webhook-signature": hostile, "webhook-signature": hostile})
    text += json.dumps(as_record(received_event(body, {hostile: hostile})))
    assert not any(ord(character) < 32 and character != "\n" for character in text)
    assert "\x9b" not in text


@pytest.mark.usefixtures("stop_signals")
def test_an_interrupt_cuts_off_no_work_of_the_command(tmp_path: Path) -> None:
    done: list[str] = []

    @contextmanager
    def subscribed(_: Receiver) -> Iterator[None]:
        signal.raise_signal(signal.SIGINT)  # with a transaction open, say
        done.append("subscribed")
        yield
        done.append("unsubscribed")

    console = Console(file=io.StringIO())
    listen.listen(tmp_path, 0, [], Behaviour(), console, as_json=True, meanwhile=subscribed)
    assert done == ["subscribed", "unsubscribed"]


@pytest.fixture
def stop_signals() -> Iterator[None]:
    """Restore the handlers of the signals that ask a process to stop."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_an_interrupt_ends_the_wait_for_a_delivery(tmp_path: Path) -> None:
    with Receiver(tmp_path) as receiver, ThreadPoolExecutor(1) as waiting:
        found = waiting.submit(receiver.wait_for, lambda _: True, 60)
        receiver.stop()
        assert found.result(20) is None


@pytest.mark.service  # each starts a process
@pytest.mark.parametrize("behaviour", [(), ("--hang",), ("--drip",)], ids=["at once", "hanging", "dripping"])
def test_an_interrupt_always_ends_the_receiver(tmp_path: Path, behaviour: Sequence[str]) -> None:
    command = [sys.executable, "-m", "api.cli", "--home", str(tmp_path), "listen", "--port", "0", "--json", *behaviour]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        begun = json.loads(process.stdout.readline())
        port = urlsplit(begun["listening"]).port
        with socket.create_connection(("127.0.0.1", port)), ThreadPoolExecutor(1) as sender:  # sends nothing
            sending = sender.submit(requests.post, begun["listening"], data=BODY, verify=begun["caBundle"], timeout=30)
            assert json.loads(process.stdout.readline())["event"] == json.loads(BODY)
            process.send_signal(signal.SIGINT)
            assert process.wait(5) == 0
            assert process.stderr.read() == ""
            assert sending.exception(30) is None or behaviour
