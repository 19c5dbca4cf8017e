"""The example programs of docs/how-to/webhooks.md, run on a real delivery over real HTTPS."""

import base64
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from tidemark_client import WebhookRefusedError, verify_webhook

from api.webhooks.listen import Receiver
from assets.webhooks import delivery
from pipelines.webhooks.events import EventType, decode_secret, new_secret, sign_attempt
from storage.core.settings import Settings
from storage.core.store import Store
from storage.webhooks import outbox, subscriptions
from storage.webhooks.outbox import NewEvent
from tests.conftest import open_store
from tests.root import ROOT
from tests.storage.examples import a_client, a_customer
from tests.tools import tool

PAGE = (ROOT / "docs" / "how-to" / "webhooks.md").read_text()
EVENT_ID = UUID("b6a0ab58-5d5c-4f0f-a3a3-3f2f2c2d6f61")
BODY = json.dumps({"eventType": "job.completed", "eventId": str(EVENT_ID), "name": "Café 🙂 \u2028"}).encode()


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.+?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Delivered:
    """A delivery as a receiver gets it."""

    headers: Mapping[str, str]
    body: bytes
    secret: str


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Delivered]:
    folder = tmp_path_factory.mktemp("sender")
    with Receiver(folder) as receiver:
        settings = Settings(
            home=folder / "home", webhook_allow_cidrs=(ip_network("127.0.0.0/8"),), webhook_ca_bundle=receiver.ca_path
        )
        store = open_store(settings)
        secret = send_event(store, receiver.url)
        (received,) = receiver.received
        yield Delivered(received.headers, received.body, secret)
        store.close()


def send_event(store: Store, url: str) -> str:
    """Send one event to one subscription by the delivery loop; return the subscription's secret."""
    now = datetime.now(UTC)
    customer = a_customer(store, a_client(store, now), now)
    with store.db.writing() as w:
        kind = EventType.JOB_COMPLETED
        _, secret = subscriptions.create(w, customer.client_id, kind, url, [], store.vault, now)
        event = NewEvent(EVENT_ID, customer.client_id, customer.number, uuid4(), kind, BODY, now)
        outbox.enqueue(w, [event])
    assert delivery.deliver_due(store, 1, 10) == 1
    return secret


def sign_again(delivered: Delivered, moment: datetime) -> Delivered:
    """Return the same delivery, signed at another time."""
    headers = sign_attempt(EVENT_ID, delivered.body, decode_secret(delivered.secret), moment)
    lower = {name.lower(): value for name, value in headers.items()}
    return Delivered({**delivered.headers, **lower}, delivered.body, delivered.secret)


def with_header(delivered: Delivered, name: str, value: str) -> Delivered:
    return Delivered({**delivered.headers, name: value}, delivered.body, delivered.secret)


WORK, SEEN, REFUSED = "work", "seen", "refused"
Case = tuple[Callable[[Delivered], Delivered], str]

CASES: dict[str, Case] = {
    "tampered body": (lambda d: Delivered(d.headers, d.body.replace(b"completed", b"concluded"), d.secret), REFUSED),
    "serialised anew": (
        lambda d: Delivered(d.headers, json.dumps(json.loads(d.body), indent=1).encode(), d.secret),
        REFUSED,
    ),
    "wrong secret": (lambda d: Delivered(d.headers, d.body, new_secret(bytes(32))), REFUSED),
    "of old": (lambda d: sign_again(d, datetime.now(UTC) - timedelta(minutes=6)), REFUSED),
    "from the future": (lambda d: sign_again(d, datetime.now(UTC) + timedelta(minutes=6)), REFUSED),
    "a younger timestamp": (
        lambda d: with_header(d, "webhook-timestamp", str(int(d.headers["webhook-timestamp"]) + 1)),
        REFUSED,
    ),
    "another id": (lambda d: with_header(d, "webhook-id", str(uuid4())), REFUSED),
    "no signature": (lambda d: with_header(d, "webhook-signature", ""), REFUSED),
    "the good one": (lambda d: d, WORK),
    "once more": (lambda d: sign_again(d, datetime.now(UTC)), SEEN),
    "among other signatures": (
        lambda d: with_header(d, "webhook-signature", f"v1,AAAA {d.headers['webhook-signature']} v1a,x"),
        SEEN,
    ),
}
EXPECTED = {name: expected for name, (_, expected) in CASES.items()}


def cases(delivered: Delivered) -> dict[str, Delivered]:
    return {name: change(delivered) for name, (change, _) in CASES.items()}


def test_the_python_example(delivered: Delivered) -> None:
    program: dict[str, Any] = {}
    exec(examples("python")[0], program)
    seen: set[str] = set()

    def outcome(case: Delivered) -> str:
        try:
            event = program["verify"](case.headers, case.body, case.secret, seen)
        except ValueError:
            return REFUSED
        assert event is None or event["eventId"] == str(EVENT_ID)
        return SEEN if event is None else WORK

    assert {name: outcome(case) for name, case in cases(delivered).items()} == EXPECTED


def test_the_python_client(delivered: Delivered) -> None:
    def outcome(case: Delivered) -> str:
        try:
            assert verify_webhook(case.body, case.headers, case.secret)["eventId"] == str(EVENT_ID)
        except WebhookRefusedError:
            return REFUSED
        return WORK

    unseen = {name: WORK if expected == SEEN else expected for name, expected in EXPECTED.items()}
    assert {name: outcome(case) for name, case in cases(delivered).items()} == unseen


JAVASCRIPT_RUNS = """
import { readFileSync } from "node:fs";
import { verify } from "./verify.mjs";
const seen = new Set();
function outcome({ headers, body, secret }) {
  let event;
  try { event = verify(headers, Buffer.from(body, "base64"), secret, seen); } catch { return "refused"; }
  return event === null ? "seen" : event.eventId === EVENT_ID ? "work" : "another event";
}
const cases = JSON.parse(readFileSync(0));
console.log(JSON.stringify(Object.fromEntries(Object.entries(cases).map(([name, each]) => [name, outcome(each)]))));
""".replace("EVENT_ID", json.dumps(str(EVENT_ID)))


@pytest.mark.service
def test_the_javascript_example(delivered: Delivered, tmp_path: Path) -> None:
    node = tool("node")
    (tmp_path / "verify.mjs").write_text(examples("javascript")[0])
    (tmp_path / "run.mjs").write_text(JAVASCRIPT_RUNS)
    given = {
        name: {"headers": dict(case.headers), "body": base64.b64encode(case.body).decode(), "secret": case.secret}
        for name, case in cases(delivered).items()
    }
    reported = subprocess.run(
        [node, "run.mjs"], input=json.dumps(given), cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(reported.stdout) == EXPECTED


@pytest.mark.service
def test_the_shell_example(delivered: Delivered, tmp_path: Path) -> None:
    shell = tool("sh")
    assert tool("openssl")
    (tmp_path / "verify.sh").write_text(examples("sh")[0])
    (tmp_path / "seen").mkdir()

    def outcome(case: Delivered) -> str:
        (tmp_path / "body").write_bytes(case.body)
        arguments = [case.headers[f"webhook-{part}"] for part in ("id", "timestamp", "signature")]
        ended = subprocess.run(
            [shell, "verify.sh", *arguments, "body"],
            cwd=tmp_path,
            env=os.environ | {"SECRET": case.secret},
            check=False,
            timeout=60,
        )
        return {0: WORK, 1: REFUSED, 2: SEEN}[ended.returncode]

    assert {name: outcome(case) for name, case in cases(delivered).items()} == EXPECTED


def test_the_example_for_the_body_alone(delivered: Delivered) -> None:
    program: dict[str, Any] = {}
    exec(examples("python")[1], program)
    verify = program["verify_body"]
    assert verify(delivered.headers, delivered.body, delivered.secret)
    assert not verify(delivered.headers, delivered.body + b" ", delivered.secret)
    assert not verify(delivered.headers, delivered.body, new_secret(bytes(32)))


def test_there_is_an_example_for_each_language() -> None:
    languages = ("python", "javascript", "csharp", "java", "sh")
    assert [len(examples(language)) for language in languages] == [2, 1, 1, 1, 1]
