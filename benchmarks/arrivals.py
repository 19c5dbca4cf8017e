"""Measure how long a client of an idle service waits from sending a PDF statement to its rows."""

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import requests

from benchmarks.service import Service, new_home, running
from benchmarks.table import Row, percentile, seconds
from pipelines.synthetic.pdf import LAYOUTS, PrintedStatement, statement_pdf

TITLE = "From a bank statement to its rows"
SEED, PAGES, ROUNDS, POLL_S = 73_000, 10, 2, 0.02
ABOUT = (
    f"Statements of {PAGES} pages, one after another, {ROUNDS} in each of {len(LAYOUTS)} layouts, each for a customer "
    f"without history; the client polls every {POLL_S * 1000:.0f} ms."
)
ENDED = ("Completed", "CompletedWithErrors", "Failed")


def measure(folder: Path, database: str) -> Sequence[Row]:
    files = [statement_pdf(layout, SEED + n, pages=PAGES) for n in range(ROUNDS) for layout in LAYOUTS]
    with new_home(folder, database) as home, running(home) as service:
        http = service.session()
        waits = [_measure_wait(service, http, service.customer(http), made) for made in files]
    extracted, completed = zip(*waits, strict=True)
    return [
        Row(f"submit {PAGES} pages → extracted seen, p50 of {len(files)}", seconds(median(extracted)), "≤ 1.0 s"),
        Row("the same, p95", seconds(percentile(extracted, 0.95))),
        Row("submit → `Completed` seen, enriched too, p50", seconds(median(completed))),
        Row("the same, p95", seconds(percentile(completed, 0.95))),
    ]


def _measure_wait(
    service: Service, http: requests.Session, customer_id: str, made: PrintedStatement
) -> tuple[float, float]:
    """Return the seconds until the rows were read, and until they were enriched.

    Raises:
        RuntimeError: the job did not end `Completed`.
    """
    began = time.perf_counter()
    job_id = _send(service, http, customer_id, made)
    extracted = 0.0
    while True:
        response = http.get(f"{service.base_url}/v1/jobs/{job_id}/status", timeout=60)
        response.raise_for_status()
        job, passed = response.json()["data"], time.perf_counter() - began
        if not extracted and job["stages"][0]["status"] in ENDED:
            extracted = passed
        if job["status"] in ENDED:
            break
        time.sleep(POLL_S)
    if job["status"] != "Completed":
        raise RuntimeError(f"{made.layout} ended {job['status']}: {job}")
    return extracted, passed


def _send(service: Service, http: requests.Session, customer_id: str, made: PrintedStatement) -> str:
    response = http.post(
        f"{service.base_url}/v1/customer/{customer_id}/statements",
        files={"file": (f"{made.layout}.pdf", made.content, "application/pdf")},
        timeout=60,
    )
    response.raise_for_status()
    return str(response.json()["data"]["jobId"])
