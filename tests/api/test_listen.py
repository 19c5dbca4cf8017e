import io
import ssl
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPSConnection
from pathlib import Path

import pytest
import requests
from rich.console import Console

from api.listen import MAX_BODY_BYTES, Received, Receiver, shown
from pipelines.webhooks import key_of, new_secret, sign

SECRET, OTHER = new_secret(b"1" * 32), new_secret(b"2" * 32)
BODY = '{"eventType":"job.completed","name":"Café"}'.encode()


def post(receiver: Receiver, body: bytes = BODY, signature: str = "") -> int:
    headers = {"X-Service-Webhook-Signature": signature}
    return requests.post(receiver.url, data=body, headers=headers, verify=str(receiver.ca_path), timeout=5).status_code


def test_a_delivery_is_kept_as_it_came_and_verified(tmp_path: Path) -> None:
    with Receiver(tmp_path, secrets=[OTHER]) as receiver:
        receiver.learn(SECRET)
        assert post(receiver, signature=sign(BODY, key_of(SECRET))) == 204
        (received,) = receiver.received
    assert (received.body, received.verified, received.path) == (BODY, True, "/")
    assert received.headers["x-service-webhook-signature"].startswith("sha256=")
    assert received.json["name"] == "Café"


def test_a_wrong_signature_is_told_from_an_unknown_secret(tmp_path: Path) -> None:
    with Receiver(tmp_path) as receiver:
        post(receiver, signature=sign(BODY, key_of(SECRET)))
        receiver.learn(OTHER)
        post(receiver, signature=sign(BODY, key_of(SECRET)))
        assert [each.verified for each in receiver.received] == [None, False]


def test_waiting_ends_with_the_delivery_or_with_the_time(tmp_path: Path) -> None:
    with Receiver(tmp_path) as receiver:
        assert receiver.wait_for(lambda _: True, timeout_s=0.05) is None
        post(receiver)
        assert receiver.wait_for(lambda each: each.body == BODY, timeout_s=5) is not None


def test_the_certificate_is_kept_and_taken_again(tmp_path: Path) -> None:
    with Receiver(tmp_path) as first, Receiver(tmp_path) as second:
        assert first.ca_path.read_bytes() == second.ca_path.read_bytes()
        assert post(first) == post(second) == 204


def test_an_authority_that_does_not_belong_to_the_certificate_is_replaced(tmp_path: Path) -> None:
    with Receiver(tmp_path / "a") as one, Receiver(tmp_path / "b") as other:
        one.ca_path.write_bytes(other.ca_path.read_bytes())
    with Receiver(tmp_path / "a") as receiver:
        assert post(receiver) == 204


def test_its_key_is_for_its_owner_only(tmp_path: Path) -> None:
    with Receiver(tmp_path) as receiver:
        folder = receiver.ca_path.parent
    assert {path.stat().st_mode & 0o077 for path in folder.iterdir()} == {0}


def test_nobody_else_is_vouched_for(tmp_path: Path) -> None:
    with Receiver(tmp_path) as receiver, pytest.raises(requests.exceptions.SSLError):
        requests.post(receiver.url, data=BODY, timeout=5)
    trusting = ssl.create_default_context(cafile=str(receiver.ca_path))
    (authority,) = trusting.get_ca_certs()
    assert authority["subject"] == ((("commonName", "Tidemark development receiver CA"),),)


@pytest.mark.parametrize("length", [str(MAX_BODY_BYTES + 1), "-1", "many"])
def test_a_body_that_is_too_long_is_not_even_read(tmp_path: Path, length: str) -> None:
    with Receiver(tmp_path) as receiver:
        trusting = ssl.create_default_context(cafile=str(receiver.ca_path))
        line = HTTPSConnection(receiver.url.split("/")[2], context=trusting, timeout=5)
        line.request("POST", "/", headers={"Content-Length": length})
        with closing(line), line.getresponse() as answer:
            assert answer.status == 413
        assert receiver.received == []


def text_of(body: bytes, headers: Mapping[str, str], verified: bool | None) -> str:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    console.print(shown(Received(datetime(2026, 11, 20, tzinfo=UTC), "/\x1b[2J", headers, body, verified)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_delivery_is_shown_with_its_verdict() -> None:
    assert "signature verified" in text_of(BODY, {}, True)
    assert "does not match" in text_of(BODY, {}, False)
    assert '"eventType": "job.completed"' in text_of(BODY, {}, None)


@pytest.mark.parametrize("body", [b'{"name":"\\u001b[2J[red]\\u009b"}', b"\x1b[2J[red]", b"[[[", b"\xff"])
def test_what_is_shown_can_not_steer_the_terminal(body: bytes) -> None:
    text = text_of(body, {"x-service-webhook-signature": "\x1b]0;title\x07"}, None)
    assert not any(ord(character) < 32 and character != "\n" for character in text)
    assert "\x9b" not in text
