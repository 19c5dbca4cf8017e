"""The same transactions give the same bytes, whatever the number of threads, the hash seed or the process."""

import hashlib
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from benchmarks.accepted import accept_all
from pipelines.enrichment.enrichment import enrich
from pipelines.synthetic import portfolio
from pipelines.vocabulary.schemas import ACCEPTED, TRANSACTIONS

AS_OF = date(2026, 10, 31)
PRINT_HASH_OF_ALL_FIGURES = """
import hashlib, sys
from datetime import date
import polars as pl
from pipelines import metrics
from pipelines.figures.facts import Facts
from pipelines.reports import REPORTS

facts = Facts(pl.read_parquet(sys.argv[1]), date.fromisoformat(sys.argv[2]))
texts = [text for report in REPORTS.values() for text in report.compute(facts)["data"]]
texts.append(metrics.values(facts).write_csv())
print(pl.thread_pool_size(), hashlib.sha256("\\n".join(texts).encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def enriched_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sent = accept_all(portfolio(3, 8, 21, until=AS_OF)).select(ACCEPTED.names())
    rows = enrich(pl.DataFrame(schema=TRANSACTIONS), sent).transactions.collect()
    path = tmp_path_factory.mktemp("portfolio") / "transactions.parquet"
    rows.write_parquet(path)
    return path


def compute_hash(path: Path, threads: int, hash_seed: int) -> tuple[int, str]:
    """Return how many threads Polars had, and the hash of everything that was computed."""
    environment = {**os.environ, "POLARS_MAX_THREADS": str(threads), "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, "-c", PRINT_HASH_OF_ALL_FIGURES, str(path), AS_OF.isoformat()]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    had, digest = done.stdout.split()
    return int(had), digest


@pytest.mark.service  # starts other processes
def test_reports_and_metrics_are_the_same_bytes_in_every_process(enriched_file: Path) -> None:
    runs = [compute_hash(enriched_file, threads, seed) for threads, seed in ((1, 0), (2, 1), (5, 2))]
    assert [had for had, _ in runs] == [1, 2, 5]
    assert len({digest for _, digest in runs}) == 1
    assert runs[0][1] != hashlib.sha256(b"").hexdigest()
