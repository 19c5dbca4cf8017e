"""Measure the cost of a long history: a hundred new rows for a customer with two million."""

import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.filling import UNTIL, fill
from benchmarks.refresh import peak_rss
from benchmarks.service import new_home, running
from benchmarks.table import Row, mebibytes, seconds
from pipelines.synthetic import plain_rows

TITLE = "A long history"
HISTORY, ROWS = 2_000_000, 100
ABOUT = f"One customer with {HISTORY:,} rows, recomputed and replaced whole when {ROWS} rows arrive."


def measure(folder: Path, database: str) -> Sequence[Row]:
    with new_home(folder, database) as home:
        with home.store() as store:
            [customer] = fill(store, home.client_id, 1, HISTORY)
        before = _bytes(home.settings.home / "lake")
        with running(home) as service, peak_rss(service) as peak:
            http = service.session()
            body = {"accountNumber": "99999999", "transactions": plain_rows(ROWS, 1, UNTIL)}
            began = time.perf_counter()
            service.wait_for_job(http, service.submit(http, str(customer), body))
            elapsed = time.perf_counter() - began
        written = _bytes(home.settings.home / "lake") - before
    return [
        Row(f"{ROWS} rows submitted until `Completed` seen", seconds(elapsed)),
        Row("written to the lake", mebibytes(written)),
        Row("peak RSS of the largest process", mebibytes(max(peak))),
    ]


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
