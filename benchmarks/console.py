"""Measure the console's pages over ten million rows: the time until a whole page is received, and its size."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import requests

from benchmarks.filling import fill
from benchmarks.service import Home, Service, new_home, running
from benchmarks.table import Row, milliseconds, percentile
from pipelines.decisions import examples
from storage.access import users
from storage.access.roles import Role

TITLE = "Pages of the console"
CUSTOMERS, ROWS_EACH = 5_000, 2_000
REPORTED = 5  # customers whose pages are read
VISITS = 30  # of each page, below the limit of requests per minute
ABOUT = (
    f"{CUSTOMERS:,} customers with {ROWS_EACH:,} rows each; {REPORTED} of them have reports. A signed-in admin on the "
    f"same machine opens each page {VISITS} times, one after the other, over HTTP; the pages' files are not counted."
)
AIM = "p50 ≤ 100 ms, p99 ≤ 400 ms, ≤ 250 kB"
OF_A_CUSTOMER = (
    *("", "/reports", "/transactions", "/transactions?text=transfer"),
    *("/decisions", "/monitoring", "/history"),
)
OTHERS = (
    *("/work", "/customers", "/customers?search=123", "/policies", "/approvals", "/rulesets"),
    *("/admin/jobs", "/admin/audit"),
)


@dataclass
class Visits:
    took_s: list[float] = field(default_factory=list)
    size: int = 0  # bytes of the largest

    def describe(self) -> str:
        p50, p99 = (milliseconds(percentile(self.took_s, share)) for share in (0.5, 0.99))
        return f"p50 {p50}, p99 {p99}, {self.size / 1000:,.0f} kB"


def measure(folder: Path, database: str) -> Sequence[Row]:
    with new_home(folder, database) as home:
        with home.store() as store:
            customers = [str(each) for each in fill(store, home.client_id, CUSTOMERS, ROWS_EACH)][:REPORTED]
        with running(home) as service:
            http = service.session()
            for job_id in [service.refresh(http, each) for each in customers]:
                service.wait_for_job(http, job_id)
            _publish(http, service)
            visits = _visit(_sign_in(home, service), service, customers)
    return [Row(name, each.describe(), AIM) for name, each in visits.items()]


def _publish(http: requests.Session, service: Service) -> None:
    for slug, document in examples.load().items():
        http.put(f"{service.base_url}/v1/decision-policies/{slug}", json=document, timeout=60).raise_for_status()
        http.post(f"{service.base_url}/v1/decision-policies/{slug}/publish", json={}, timeout=60).raise_for_status()


def _sign_in(home: Home, service: Service) -> requests.Session:
    """Return a session of a new admin."""
    now = datetime.now(UTC)
    with home.store() as store, store.db.writing() as w:
        user = users.create(w, home.client_id, "bench@example.com", "Bench", Role.ADMIN, now)
        token = users.create_link(w, user, now + timedelta(minutes=5))
    http = requests.Session()
    http.trust_env = False
    origin = {"origin": service.base_url}
    http.post(f"{service.base_url}/sign-in/link", {"token": token}, headers=origin, timeout=60).raise_for_status()
    return http


def _visit(http: requests.Session, service: Service, customers: Sequence[str]) -> Mapping[str, Visits]:
    visits: dict[str, Visits] = {}
    for nth in range(VISITS):
        of_customer = [f"/customers/{customers[nth % REPORTED]}{path}" for path in OF_A_CUSTOMER]
        for path in (*OTHERS, *of_customer):
            name = re.sub("[0-9a-f-]{36}", "{id}", path)
            began = time.perf_counter()
            response = http.get(service.base_url + path, timeout=60)
            visits.setdefault(name, Visits()).took_s.append(time.perf_counter() - began)
            response.raise_for_status()
            visits[name].size = max(visits[name].size, len(response.content))
    return visits
