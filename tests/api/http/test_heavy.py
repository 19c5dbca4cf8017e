"""Few heavy requests of one client run at a time, because each delays the simple reads of others."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import pytest

from api.intake import transactions_json
from api.reports.routes import report_page
from storage.core.store import Store
from storage.enrichment import transactions
from tests.api.conftest import Client
from tests.api.worker import end_submissions

MAX_OF_ONE_CLIENT = max(1, 3 * (os.cpu_count() or 1) // 4)


class Slow:
    """A replacement for something that takes a while to make. It counts how many are made at a time."""

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
    page = Slow()
    monkeypatch.setattr(report_page, "page", page)
    customer_id = client.new_customer()
    with ThreadPoolExecutor(8) as callers:
        answers = list(callers.map(lambda _: client.get(f"/v1/customer/{customer_id}/reports.html"), range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert page.most <= MAX_OF_ONE_CLIENT


def test_slices_of_one_client_s_listings_leave_cores_to_others(
    store: Store, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Slow()
    monkeypatch.setattr(transactions_json, "as_json", made)
    monkeypatch.setattr(transactions, "SLICE_ROWS", 1)
    customer_id = client.new_customer()
    client.submit_transactions(customer_id)
    end_submissions(store, [{}] * 3)
    with ThreadPoolExecutor(8) as callers:
        answers = list(callers.map(lambda _: client.get(f"/v1/customer/{customer_id}/transactions"), range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert made.most <= MAX_OF_ONE_CLIENT
