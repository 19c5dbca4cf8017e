"""Measure the same figures with 1, 10 and 100 times the customers, and how fast they grow."""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from uuid import UUID

import requests

from benchmarks.filling import UNTIL, fill
from benchmarks.service import Service, new_home, running
from benchmarks.table import Row, milliseconds
from pipelines.synthetic import plain_rows

TITLE = "Growth"
CUSTOMERS = (100, 1_000, 10_000)
ROWS_EACH = 200
TIMES = 20
ABOUT = (
    f"{' → '.join(f'{count:,}' for count in CUSTOMERS)} customers with {ROWS_EACH} rows each; medians of {TIMES} on an "
    "idle service. In brackets: the exponent of growth from the smallest to the largest (1 is linear, 0 is flat)."
)

Act = Callable[[Service, requests.Session, UUID], object]


def _reads_path(path: str) -> Act:
    def read(service: Service, http: requests.Session, customer: UUID) -> object:
        response = http.get(service.base_url + path.format(customer=customer), timeout=120)
        response.raise_for_status()
        return response.content

    return read


def _submit(service: Service, http: requests.Session, customer: UUID) -> object:
    body = {"accountNumber": "99999999", "mode": "append", "transactions": plain_rows(20, 1, UNTIL)}
    return service.wait_for_job(http, service.submit(http, str(customer), body))


def _refresh(service: Service, http: requests.Session, customer: UUID) -> object:
    return service.wait_for_job(http, service.refresh(http, str(customer)))


ACTS: dict[str, Act] = {
    "page of 20 of a customer": _reads_path("/v1/customer/{customer}/transactions?page=1&count=20"),
    "page of 20 of the jobs": _reads_path("/v1/jobs?page=1&count=20"),
    "page of 20 of the customers": _reads_path("/v1/customers?page=1&count=20"),
    "page of 20 of all the client's transactions": _reads_path("/v1/transactions?page=1&count=20"),
    "submit 20 rows → `Completed` seen": _submit,
    "refresh → `Completed` seen": _refresh,
}


def measure(folder: Path, database: str) -> Sequence[Row]:
    figures = [_measure_with(folder / str(count), database, count) for count in CUSTOMERS]
    return [Row(name, _growth([measured[name] for measured in figures])) for name in ACTS]


def _measure_with(folder: Path, database: str, count: int) -> dict[str, float]:
    with new_home(folder, database) as home:
        with home.store() as store:
            customers = fill(store, home.client_id, count, ROWS_EACH)
        with running(home) as service:
            return {name: _median(service, act, customers) for name, act in ACTS.items()}


def _median(service: Service, act: Act, customers: Sequence[UUID]) -> float:
    http, took = service.session(), list[float]()
    for index in range(TIMES):
        began = time.perf_counter()
        act(service, http, customers[index * 7 % len(customers)])
        took.append(time.perf_counter() - began)
    return median(took)


def _growth(figures: Sequence[float]) -> str:
    exponent = math.log(figures[-1] / figures[0]) / math.log(CUSTOMERS[-1] / CUSTOMERS[0])
    return f"{' → '.join(map(milliseconds, figures))} ({exponent:.2f})"
