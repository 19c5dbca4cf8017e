"""Few heavy requests of one client run at a time, because each delays the simple reads of others."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import pytest

from api.reports.routes import report_page
from tests.api.conftest import Client


class Page:
    """A replacement for a page that takes a while to draw. It counts how many are drawn at a time."""

    def __init__(self) -> None:
        self.most = self._now = 0
        self._lock = Lock()

    def __call__(self, *_: object) -> bytes:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(0.05)
        with self._lock:
            self._now -= 1
        return b""


def test_pages_of_one_client_leave_cores_to_others(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page()
    monkeypatch.setattr(report_page, "page", page)
    customer_id = client.new_customer()
    with ThreadPoolExecutor(8) as callers:
        answers = list(callers.map(lambda _: client.get(f"/v1/customer/{customer_id}/reports.html"), range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert page.most <= max(1, 3 * (os.cpu_count() or 1) // 4)
