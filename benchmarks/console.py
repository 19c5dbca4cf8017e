"""Measure every page of the console over ten million rows: the time until a whole page is received, and its size."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import requests

from api.service.commands.lender import Lender
from benchmarks.filled_console import fill_console, insert_ids, list_pages
from benchmarks.filling import fill
from benchmarks.service import Home, Service, new_home, running
from benchmarks.table import Row, milliseconds, percentile
from storage.access import users
from storage.access.roles import Role
from storage.access.users import User

TITLE = "Pages of the console"
CUSTOMERS, ROWS_EACH = 5_000, 2_000
REPORTED = 5  # customers whose pages are read
VISITS = 30  # of each page, below the limit of requests per minute
FIRST_PAGE_READ_S = 2.0  # meanwhile a new process loads what reports of another day need
ABOUT = (
    f"{CUSTOMERS:,} customers with {ROWS_EACH:,} rows each; {REPORTED} of them have reports, and a few small ones have "
    "an example of everything else that has a page. A signed-in admin on the same machine opens each page of the "
    f"console {VISITS} times, one after the other, over HTTP; the pages' files are not counted. "
    f"Each customer's pages are opened {VISITS // REPORTED} times: reports of another day are computed the first time "
    f"and then come from memory. After signing in, the admin reads the first page for {FIRST_PAGE_READ_S:.0f} s."
)
AIM = "p50 ≤ 100 ms, p99 ≤ 400 ms, ≤ 250 kB"
_SIGN_IN, _FILE, _ELSEWHERE = "before signing in", "a file", "leads to another page"
NOT_MEASURED: Mapping[str, str] = {  # by path: why not
    **dict.fromkeys(("/sign-in", "/sign-in/link", "/sign-in/openid", "/sign-in/openid/back"), _SIGN_IN),
    **dict.fromkeys(("/", "/admin"), _ELSEWHERE),
    "/customers/{customer_id}/attachments/{attachment_id}": _FILE,
    "/customers/{customer_id}/statements/{statement_id}/pages/{page_number}.png": _FILE,
    "/customers/{customer_id}/reports.pdf": _FILE,
    "/evaluations/{evaluation_id}/letter.pdf": _FILE,
}
_REPORTS = "/customers/{customer_id}/reports"
QUERIES: Mapping[str, Sequence[str]] = {  # by path: what is asked besides the page itself
    "/customers": ("?search=123",),
    "/customers/{customer_id}/transactions": ("?text=transfer",),
    _REPORTS: ("?asOf=2026-09-30",),
    f"{_REPORTS}/annex": ("?table=Monthly cash flow",),
    f"{_REPORTS}/figure": (
        "?kind=risk&figure=/value",
        "?kind=completeness&figure=/summary/completenessScore",
        "?kind=aggregate&figure=/tables/top_counterparties/values/0/amount",
        "?kind=metrics&figure=/months_of_history",
    ),
    f"{_REPORTS}/compare/changes": (
        "?report=completeness",
        "?report=aggregate",
        "?fromAsOf=2026-09-30&asOf=2026-10-31&table=aggregate/monthly_cash_flow",
    ),
}


@dataclass
class Visits:
    took_s: list[float] = field(default_factory=list)
    size: int = 0  # bytes of the largest

    def describe(self) -> str:
        p50, p99 = (milliseconds(percentile(self.took_s, share)) for share in (0.5, 0.99))
        return f"p50 {p50}, p99 {p99}, {self.size / 1000:,.0f} kB"


def choose_addresses(pages: Iterable[str]) -> list[str]:
    """Return the addresses to measure, with parameters in braces: every page but NOT_MEASURED, and QUERIES."""
    measured = [page for page in pages if page not in NOT_MEASURED]
    return [page + query for page in measured for query in ("", *QUERIES.get(page, ()))]


def measure(folder: Path, database: str) -> Sequence[Row]:
    with new_home(folder, database) as home, running(home) as service:
        http = service.session()
        with home.store() as store:
            user = _create_user(home)
            ids = fill_console(Lender(service.base_url, home.key))
            customers = [str(each) for each in fill(store, home.client_id, CUSTOMERS, ROWS_EACH)][:REPORTED]
            addresses = choose_addresses(list_pages(store))
        for job_id in [service.refresh(http, each) for each in customers]:
            service.wait_for_job(http, job_id)
        large = [{"customer_id": each, "transaction_id": _find_transaction(http, service, each)} for each in customers]
        visits = _visit(_sign_in(home, service, user), service, addresses, [{**ids, **each} for each in large])
    return [Row(address, each.describe(), AIM) for address, each in visits.items()]


def _create_user(home: Home) -> User:
    with home.store() as store, store.db.writing() as w:
        return users.create(w, home.client_id, "bench@example.com", "Bench", Role.ADMIN, datetime.now(UTC))


def _find_transaction(http: requests.Session, service: Service, customer_id: str) -> str:
    address = f"{service.base_url}/v1/customer/{customer_id}/transactions?page=1&count=1"
    [found] = http.get(address, timeout=60).json()["data"]["transactions"]
    return str(found["transactionId"])


def _sign_in(home: Home, service: Service, user: User) -> requests.Session:
    """Return a session of the user."""
    with home.store() as store, store.db.writing() as w:
        token = users.create_link(w, user, datetime.now(UTC) + timedelta(minutes=5))
    http = requests.Session()
    http.trust_env = False
    origin = {"origin": service.base_url}
    http.post(f"{service.base_url}/sign-in/link", {"token": token}, headers=origin, timeout=60).raise_for_status()
    time.sleep(FIRST_PAGE_READ_S)
    return http


def _visit(
    http: requests.Session, service: Service, addresses: Sequence[str], ids: Sequence[Mapping[str, str]]
) -> Mapping[str, Visits]:
    """Visit the pages in turn, each time those of another customer; `ids` has the parameters of each customer."""
    visits = {address: Visits() for address in addresses}
    for nth in range(VISITS):
        for address, measured in visits.items():
            began = time.perf_counter()
            response = http.get(service.base_url + insert_ids(address, ids[nth % len(ids)]), timeout=60)
            measured.took_s.append(time.perf_counter() - began)
            response.raise_for_status()
            measured.size = max(measured.size, len(response.content))
    return visits
