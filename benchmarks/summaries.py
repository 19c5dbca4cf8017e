"""Measure the list of a million customers: its first page and later ones, in each order, filtered and searched."""

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from sqlalchemy import URL, insert, text

from benchmarks.service import Service, new_home, running
from benchmarks.table import Row, milliseconds, percentile
from pipelines.vocabulary.report_status import ReportStatus
from storage.core.models import customer_summaries, customers
from storage.core.store import Store

TITLE = "A list of a million customers"
CUSTOMERS, SLICE = 1_000_000, 10_000
RARE = 10_000  # one customer in 10,000
ON_SQLITE = """
SELECT type, name, sql FROM sqlite_master
WHERE tbl_name IN ('customers', 'customer_summaries') AND type IN ('index', 'trigger') AND sql IS NOT NULL
"""
ON_POSTGRESQL = """
SELECT 'index', indexname, indexdef FROM pg_indexes WHERE tablename IN ('customers', 'customer_summaries')
AND indexname NOT IN (SELECT conname FROM pg_constraint)
"""
TIMES = 100
WORDS = (
    *("Harbour", "Coffee", "Northern", "Plumbing", "Bright", "Electrical", "Riverina", "Transport", "Golden", "Bakery"),
    *("Summit", "Roofing", "Coastal", "Dental", "Pacific", "Freight", "Sunrise", "Cafe", "Granite", "Landscapes"),
)
ABOUT = (
    f"{CUSTOMERS:,} customers of one client, as a client on the same machine reads pages of 20, {TIMES} times each, "
    "one after the other. A rare filter or search finds about a hundred customers, a frequent one hundreds of "
    "thousands. Ratings follow risk values, and a hundred customers with the best one are blocked. Late "
    "pages are those after page 900, each by the cursor of the one before."
)
AIM = "p50 ≤ 100 ms, p99 ≤ 400 ms"
SORTS = ("created", "name", "-rating", "-riskValue", "completeness", "dataThrough", "-openAlerts")
PAGES = {
    **{f"first page, by {sort}": f"page=1&sort={sort}" for sort in SORTS},
    "page 1,000, by name": "page=1000&sort=name",
    "one rating, by name": "page=1&rating=B&sort=name",
    "rare outcome, by name": "page=1&outcome=indeterminate&sort=name",
    "two frequent filters that few fit together, by name": "page=1&outcome=blocked&rating=A&sort=name",
    "the last rating of the order, by riskValue": "page=1&rating=E&sort=riskValue",
    "with open alerts and stale reports, by name": "page=1&openAlerts=true&reportStatus=stale&sort=name",
    "search for one customer": "page=1&search=number-777777",
    "search for part of an ABN": "page=1&search=7777 77",
    "search without a match": "page=1&search=zebra crossing",
    **{f"search for a frequent word, by {sort}": f"page=1&search=coffee&sort={sort}" for sort in SORTS},
    "search for two frequent words, by name": "page=1&search=harbour coffee&sort=name",
    "search for a frequent word in a rare outcome": "page=1&search=coffee&outcome=indeterminate",
}
LATE = {f"late pages of a frequent search, by {sort}": f"page=900&search=coffee&sort={sort}" for sort in SORTS}


def measure(folder: Path, database: str) -> Sequence[Row]:
    with new_home(folder, database) as home:
        with home.store() as store:
            _fill(store, home.client_id)
        with running(home) as service:
            list_ = _List(service)
            first = {name: [list_.read(query)[0] for _ in range(TIMES)] for name, query in PAGES.items()}
            late = {name: list_.read_on(query) for name, query in LATE.items()}
            return [Row(name, _describe(took_s), AIM) for name, took_s in (first | late).items()]


class _List:
    """The list of customers, as a client reads it."""

    def __init__(self, service: Service) -> None:
        self._http, self._address = service.session(), f"{service.base_url}/v1/customers/summaries"

    def read(self, query: str) -> tuple[float, str]:
        """Read a page; return the seconds that it took, and the cursor of the next one."""
        began = time.perf_counter()
        response = self._http.get(f"{self._address}?{query}&count=20", timeout=60)
        took_s = time.perf_counter() - began
        response.raise_for_status()
        return took_s, response.json()["data"]["nextCursor"]

    def read_on(self, query: str) -> list[float]:
        """Read the pages that follow a page, by their cursors; return the seconds that each took."""
        took_s, (_, cursor) = list[float](), self.read(query)
        for _ in range(TIMES):
            seconds, cursor = self.read(query.replace("page=900", f"cursor={cursor}"))
            took_s.append(seconds)
        return took_s


def _describe(took_s: Sequence[float]) -> str:
    p50, p99 = (milliseconds(percentile(took_s, share)) for share in (0.5, 0.99))
    return f"p50 {p50}, p99 {p99}"


def _fill(store: Store, client_id: UUID) -> None:
    """Write customers with random summaries, without reports that they would follow from."""
    drawn = random.Random(7)
    with _indexed_afterwards(store):
        for first in range(1, CUSTOMERS + 1, SLICE):
            some = [_customer(drawn, client_id, number) for number in range(first, first + SLICE)]
            with store.db.writing() as w:
                w.execute(insert(customers), [customer for customer, _ in some])
                w.execute(insert(customer_summaries), [summary for _, summary in some])


@contextmanager
def _indexed_afterwards(store: Store) -> Iterator[None]:
    """Drop the indexes of the filled tables, and the triggers that keep the index of parts, and make them again at the
    end of the block: much faster than to change them row by row.
    """
    with store.db.writing() as w:
        made = w.execute(text(ON_SQLITE if store.db.is_sqlite else ON_POSTGRESQL)).all()
        for kind, name, _ in made:
            w.execute(text(f"DROP {kind} {name}"))
    yield
    if not store.db.is_sqlite:
        _finish_on_postgresql(store.db.url, [sql for _, _, sql in made])
        return
    with store.db.writing() as w:
        for _, _, sql in made:
            w.exec_driver_sql(sql)
        w.exec_driver_sql("INSERT INTO customer_summaries_parts(customer_summaries_parts) VALUES ('rebuild')")


def _finish_on_postgresql(url: URL, indexes: Sequence[str]) -> None:
    """Make the indexes, and do what the server does by itself after a while, without limits on statements."""
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in (*indexes, "VACUUM ANALYZE customers", "VACUUM ANALYZE customer_summaries"):
            connection.execute(statement.encode())


def _customer(drawn: random.Random, client_id: UUID, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    name = f"{' '.join(drawn.choices(WORDS, k=3))} Pty Ltd"
    abn, reference = f"{drawn.randrange(10**11):011}", f"number-{number}"
    risk_value = round(0.2 * drawn.random() if number % RARE == 1 else drawn.random(), 4)
    rating = "ABCDE"[min(int(5 * risk_value), 4)]
    customer = {
        "number": number,
        "customer_id": UUID(int=drawn.getrandbits(128), version=4),
        "client_id": client_id,
        "abn": abn,
        "abn_checksum_valid": True,
        "name": name,
        "reference": reference,
        "created_at": datetime(2026, 7, 1, tzinfo=UTC),
    }
    summary = {
        "customer_number": number,
        "client_id": client_id,
        "name_key": name.casefold(),
        "search_text": f"{name}\n{abn}\n{reference}".casefold(),
        "rating": rating,
        "risk_value": risk_value,
        "calibration": "none",
        "completeness_score": round(100 * drawn.random(), 2),
        "completeness_tier": "partial",
        "report_status": drawn.choice([*ReportStatus]),
        "data_through": date(2026, 7, 1) - timedelta(days=drawn.randrange(300)),
        "outcome": _outcome(drawn, number, rating),
        "open_alerts": max(0, drawn.randrange(-8, 4)),
    }
    return customer, summary


def _outcome(drawn: random.Random, number: int, rating: str) -> str:
    if number % RARE == 0:
        return "indeterminate"
    if rating == "A":
        return "blocked" if number % RARE == 1 else drawn.choice(["proceed", "conditional"])
    return drawn.choice(["proceed", "conditional", "blocked"])
