"""The API starts before the other parts of a service."""

import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from assets.service import up
from assets.service.parts import LOOPBACK, Address, free_port


class Live(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/health/live" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:  # pyrefly: ignore[bad-override]
        """Do nothing."""


def test_the_head_start_ends_when_the_api_responds_though_it_is_not_ready() -> None:
    api_responds = threading.Event()
    with HTTPServer((LOOPBACK, 0), Live) as api:
        threading.Thread(target=api.serve_forever, daemon=True).start()
        began = time.monotonic()
        up._give_head_start(Address(LOOPBACK, api.server_port), api_responds, threading.Event())
        api.shutdown()
    assert api_responds.is_set()
    assert time.monotonic() - began < up.HEAD_START_S


def test_an_api_that_does_not_answer_delays_the_others_only_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "HEAD_START_S", 0.3)
    api_responds = threading.Event()
    up._give_head_start(Address(LOOPBACK, free_port()), api_responds, threading.Event())
    assert api_responds.is_set()
