"""Measure how fast a long queue drains, and check that nothing is lost under overload."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import aiohttp
from sqlalchemy import func, select

from benchmarks.filling import UNTIL, new_customer
from benchmarks.service import Home, Service, new_home, running
from benchmarks.table import Row, seconds
from pipelines.intake.accounts import identify
from pipelines.intake.lines import as_lines
from pipelines.intake.rows import land_lines
from pipelines.synthetic import plain_rows
from storage.core.models import LIVE, JobStatus
from storage.core.models import customers as customer_table
from storage.core.models import jobs as job_table
from storage.core.store import Store
from storage.customers import customers
from storage.jobs import jobs

TITLE = "Overload"
JOBS, CUSTOMERS, ROWS = 60_000, 6_000, 20
OVERLOAD_S, CONNECTIONS = 60.0, 400
DRAINED_WITHIN_S = 1_800
ABOUT = (
    f"First, {JOBS:,} jobs of {ROWS} rows wait in the queue, ten for each of {CUSTOMERS:,} customers. Then submissions "
    f"arrive over HTTP for {OVERLOAD_S:.0f} s at twice the rate just measured, on up to {CONNECTIONS} connections, "
    "more than the service serves at once. The benchmark fails unless every accepted job is `Completed` afterwards and "
    "every row is stored exactly once."
)


def measure(folder: Path, database: str) -> Sequence[Row]:
    with new_home(folder / "queue", database) as home:
        with home.store() as store:
            _submit_history(store, home)
        with running(home) as service:
            drained = _drain(home)
        _check(home, JOBS, JOBS * ROWS)
    rate = JOBS / drained
    with new_home(folder / "overload", database) as home, running(home) as service:
        answers = asyncio.run(_overload(service, 2 * rate))
        backlog = _count_live_jobs(home)
        emptied = _drain(home)
        _check(home, answers[202], answers[202] * ROWS)
    refused = sum(count for status, count in answers.items() if status != 202)
    return [
        Row(f"{JOBS:,} queued jobs drained in", seconds(drained)),
        Row("rate", f"{rate:,.0f} jobs/s", "≥ 100 jobs/s"),
        Row(f"offered over HTTP for {OVERLOAD_S:.0f} s", f"{2 * rate:,.0f} jobs/s"),
        Row("accepted", f"{answers[202]:,}"),
        Row("refused with 429 or 503, all with Retry-After", f"{refused:,}"),
        Row("backlog when the submissions ended", f"{backlog:,} jobs", "bounded"),
        Row("until it was empty", seconds(emptied)),
    ]


def _submit_history(store: Store, home: Home) -> None:
    now = datetime.now(UTC)
    for _ in range(CUSTOMERS):
        with store.db.writing() as w:
            customer = customers.create(w, home.client_id, new_customer(), "benchmark", now).customer
        fields = dict.fromkeys(("account_name", "bank_name", "account_type", "credit_limit"))
        account, _ = identify(
            customer.customer_id, bsb="062000", account_number="10000000", digest=store.vault.digest, **fields
        )
        rows = plain_rows(ROWS * (JOBS // CUSTOMERS), customer.number % 50, UNTIL)
        parts = [land_lines(as_lines(rows[at : at + ROWS]), store.vault.digest) for at in range(0, len(rows), ROWS)]
        named = [(uuid4(), part) for part in parts]
        files = [store.lake.put_frame(f"landing/{now:%Y-%m-%d}/{job_id}.parquet", part) for job_id, part in named]
        with store.db.writing() as w:
            for (job_id, part), file in zip(named, files, strict=True):
                jobs.submit_enrichment(
                    w, customer, account, appended=True, landing=file, job_id=job_id, rows=part.height, warnings=[],
                    who="benchmark", now=now,
                )  # fmt: skip


def _drain(home: Home) -> float:
    """Return the seconds until no job is live."""
    began = time.perf_counter()
    while time.perf_counter() - began < DRAINED_WITHIN_S:
        if not _count_live_jobs(home):
            return time.perf_counter() - began
        time.sleep(0.25)
    raise TimeoutError(f"the queue was not empty within {DRAINED_WITHIN_S} s")


def _count_live_jobs(home: Home) -> int:
    with home.store() as store, store.db.reading() as r:
        return r.execute(select(func.count()).where(job_table.c.status.in_(LIVE))).scalar_one()


def _check(home: Home, accepted: int, rows: int) -> None:
    with home.store() as store, store.db.reading() as r:
        done = select(func.count()).where(job_table.c.status == JobStatus.COMPLETED)
        held = select(func.coalesce(func.sum(customer_table.c.enriched_rows), 0))
        found = (r.execute(done).scalar_one(), r.execute(held).scalar_one())
    if found != (accepted, rows):
        raise RuntimeError(f"{accepted} jobs with {rows} rows were accepted, found: {found}")


async def _overload(service: Service, per_second: float) -> dict[int, int]:
    """Submit at a fixed rate for new customers, whatever the responses; return the number of responses by status."""
    counts = {202: 0}
    headers = {"x-api-key": service.home.key}
    many, patient = aiohttp.TCPConnector(limit=CONNECTIONS), aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(headers=headers, connector=many, timeout=patient) as http:
        urls = [await _new_customer(http, service.base_url) for _ in range(500)]
        body = {"accountNumber": "12345678", "mode": "append", "transactions": plain_rows(ROWS, 1, UNTIL)}

        async def submit(number: int) -> None:
            async with http.post(urls[number % len(urls)], json=body) as response:
                await response.read()
                if response.status != 202 and not (response.status in (429, 503) and "Retry-After" in response.headers):
                    raise RuntimeError(f"{response.status}: {await response.text()}")
                counts[response.status] = counts.get(response.status, 0) + 1

        began, sent, waiting = time.perf_counter(), 0, set[asyncio.Task[None]]()
        while (elapsed := time.perf_counter() - began) < OVERLOAD_S:
            while sent < elapsed * per_second:
                task = asyncio.create_task(submit(sent))
                waiting.add(task)
                task.add_done_callback(waiting.discard)
                sent += 1
            await asyncio.sleep(0.01)
        await asyncio.gather(*waiting)
    return counts


async def _new_customer(http: aiohttp.ClientSession, base_url: str) -> str:
    async with http.post(f"{base_url}/v1/customer", json={"abn": new_customer().abn}) as response:
        return f"{base_url}/v1/customer/{(await response.json())['data']['customerId']}/transactions"
