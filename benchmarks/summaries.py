"""Measure the list of a million customers: its first page and later ones, in each order, filtered and searched."""

import random
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any
from uuid import UUID

from sqlalchemy import insert, text

from benchmarks.service import Service, new_home, running
from benchmarks.table import Row, milliseconds
from pipelines.vocabulary.report_status import ReportStatus
from storage.core.models import customer_summaries, customers
from storage.core.store import Store

TITLE = "A list of a million customers"
CUSTOMERS, SLICE = 1_000_000, 10_000
TIMES = 20
WORDS = (
    *("Harbour", "Coffee", "Northern", "Plumbing", "Bright", "Electrical", "Riverina", "Transport", "Golden", "Bakery"),
    *("Summit", "Roofing", "Coastal", "Dental", "Pacific", "Freight", "Sunrise", "Cafe", "Granite", "Landscapes"),
)
ABOUT = (
    f"{CUSTOMERS:,} customers of one client, as a client on the same machine reads pages of 20; medians of {TIMES}. "
    "A rare filter or search finds about a hundred of them, a frequent one hundreds of thousands."
)
PAGES = {
    "first page, in order of creation": "page=1",
    "first page, by name": "page=1&sort=name",
    "first page, riskiest first": "page=1&sort=-riskValue",
    "page 1,000, by name": "page=1000&sort=name",
    "page 1,000, lowest completeness first": "page=1000&sort=completeness",
    "one rating, by name": "page=1&rating=B&sort=name",
    "rare outcome, by name": "page=1&outcome=indeterminate&sort=name",
    "with open alerts and stale reports, by name": "page=1&openAlerts=true&reportStatus=stale&sort=name",
    "search for one customer": "page=1&search=number-777777",
    "search for part of an ABN": "page=1&search=7777 77",
    "search for a frequent word, by name": "page=1&search=coffee&sort=name",
    "search for a frequent word, page 1,000": "page=1000&search=coffee&sort=name",
    "search without a match": "page=1&search=zebra crossing",
}


def measure(folder: Path, database: str) -> Sequence[Row]:
    with new_home(folder, database) as home:
        with home.store() as store:
            _fill(store, home.client_id)
        with running(home) as service:
            return [Row(name, milliseconds(median(_times(service, query)))) for name, query in PAGES.items()]


def _times(service: Service, query: str) -> list[float]:
    http, took = service.session(), list[float]()
    for _ in range(TIMES):
        began = time.perf_counter()
        http.get(f"{service.base_url}/v1/customers/summaries?{query}&count=20", timeout=60).raise_for_status()
        took.append(time.perf_counter() - began)
    return took


def _fill(store: Store, client_id: UUID) -> None:
    """Write customers with random summaries, without reports that they would follow from."""
    drawn = random.Random(7)
    for first in range(1, CUSTOMERS + 1, SLICE):
        some = [_customer(drawn, client_id, number) for number in range(first, first + SLICE)]
        with store.db.writing() as w:
            w.execute(insert(customers), [customer for customer, _ in some])
            w.execute(insert(customer_summaries), [summary for _, summary in some])
    with store.db.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text("ANALYZE customer_summaries"))


def _customer(drawn: random.Random, client_id: UUID, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    name = f"{' '.join(drawn.choices(WORDS, k=3))} Pty Ltd"
    abn, reference = f"{drawn.randrange(10**11):011}", f"number-{number}"
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
        "rating": drawn.choice("ABCDE"),
        "risk_value": round(drawn.random(), 4),
        "calibration": "none",
        "completeness_score": round(100 * drawn.random(), 2),
        "completeness_tier": "partial",
        "report_status": drawn.choice([*ReportStatus]),
        "data_through": date(2026, 7, 1) - timedelta(days=drawn.randrange(300)),
        "outcome": "indeterminate" if number % 10_000 == 0 else drawn.choice(["proceed", "conditional", "blocked"]),
        "open_alerts": max(0, drawn.randrange(-8, 4)),
    }
    return customer, summary
