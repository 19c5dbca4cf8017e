"""Measure the speed of reports and metrics for one customer, and for a portfolio of ten million rows.

The peers are some of the same aggregates in DuckDB and in pandas over the same files, and the physical floor: reading
the needed columns.
"""

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random

import polars as pl

from assets.reports.reports import SLICES_AT_ONCE
from benchmarks.accepted import accept_all
from benchmarks.alone import measure_alone
from benchmarks.filling import UNTIL
from benchmarks.peers_of_figures import Totals, in_duckdb, in_pandas
from benchmarks.table import Row, mebibytes, milliseconds, percentile, seconds
from pipelines import metrics
from pipelines.enrichment.enrichment import enrich
from pipelines.figures.facts import COLUMNS, Facts
from pipelines.reports import REPORTS
from pipelines.synthetic import portfolio
from pipelines.vocabulary.schemas import ACCEPTED, SORT_KEY, TRANSACTIONS


@dataclass(frozen=True)
class Scale:
    """The size of the measurements."""

    businesses: int  # that are enriched; the portfolio repeats them with other numbers
    rows_each: int
    customers: Sequence[int]  # of the portfolios, ascending
    in_pandas: int  # customers
    repeats: int  # of the reports of one customer


FULL = Scale(40, 1_000, (100, 1_000, 10_000), 1_000, 30)
ONE_CUSTOMER_ROWS = 2_000
CUSTOMERS_PER_FILE = 200
TITLE = "How fast reports are"
ABOUT = (
    f"Businesses of the synthetic portfolio, each cut to its last {FULL.rows_each:,} rows. The portfolios repeat "
    f"{FULL.businesses} of them under other numbers, in files of {CUSTOMERS_PER_FILE} customers, two files at a time "
    "as in the service. Reading the files, which are in the page cache, and writing JSON are included. Each figure "
    "comes from a separate process. The peers compute only a part (months, categories, payers, windows), pandas in "
    "floats."
)
AS_OF = date(2026, 11, 1)


@dataclass(frozen=True)
class Timed:
    rows: int
    took_s: float

    def describe(self) -> str:
        return f"{seconds(self.took_s)}, {self.rows / self.took_s:,.0f} rows/s"


def measure(scale: Scale = FULL) -> Sequence[Row]:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-reports-") as folder:
        return _measure(Path(folder), scale)


def _measure(folder: Path, scale: Scale) -> list[Row]:
    one, _ = measure_alone(_measure_one_customer, scale.repeats)
    files, _ = measure_alone(write_portfolio, folder, scale)
    portfolios = [
        measure_alone(_measure_portfolio, files[: count // CUSTOMERS_PER_FILE or 1], count) for count in scale.customers
    ]
    all_metrics, _ = measure_alone(measure_metrics, files)
    (duckdb, duckdb_totals), _ = measure_alone(_measure_peer, in_duckdb, files)
    (pandas, _), _ = measure_alone(_measure_peer, in_pandas, files[: scale.in_pandas // CUSTOMERS_PER_FILE or 1])
    floor, _ = measure_alone(_measure_floor, files)
    (largest, totals), peak = portfolios[-1]
    _require_agreement(totals, duckdb_totals)
    rates = [timed.took_s / timed.rows for (timed, _), _ in portfolios]
    return [
        Row(f"one customer, {ONE_CUSTOMER_ROWS:,} rows: three reports, p50", milliseconds(one["reports"]), "≤ 60 ms"),
        *(Row(f"of these, {kind}", milliseconds(one[kind])) for kind in REPORTS),
        Row("the same customer: all metrics, p50", milliseconds(one["metrics"])),
        *(
            Row(
                f"{timed.rows:,} rows: three reports and all metrics",
                timed.describe(),
                "≤ 60 s" if timed is largest else "",
            )
            for (timed, _), _ in portfolios
        ),
        Row(
            "cost of a row in the largest portfolio, as a multiple of the smallest",
            f"{rates[-1] / rates[0]:.2f}",
            "flat",
        ),
        Row("peak RSS at the largest portfolio", mebibytes(peak), "≤ 2 GiB"),
        Row("all metrics alone, largest portfolio", all_metrics.describe(), "≤ 15 s"),
        Row("months, categories, payers, windows in DuckDB, largest portfolio", duckdb.describe()),
        Row(f"the same in pandas, {pandas.rows:,} rows", pandas.describe()),
        Row("floor: reading the columns needed, largest portfolio", floor.describe()),
        Row("ours, as a multiple of the floor", f"{largest.took_s / floor.took_s:.1f} ×"),
    ]


def _enrich(businesses: int, seed: int, months: int) -> pl.DataFrame:
    rows = accept_all(portfolio(businesses, months, seed, until=UNTIL)).select(ACCEPTED.names())
    return enrich(pl.DataFrame(schema=TRANSACTIONS), rows).transactions.collect()


def _measure_one_customer(repeats: int) -> dict[str, float]:
    """Return the median seconds over `repeats` for the reports and metrics of one customer."""
    every = _enrich(8, 11, 24)
    largest = every["customer_number"].value_counts().sort("count", "customer_number")["customer_number"][-1]
    rows = every.filter(pl.col("customer_number") == largest).tail(ONE_CUSTOMER_ROWS)
    took: dict[str, list[float]] = {name: [] for name in (*REPORTS, "reports", "metrics")}
    for _ in range(repeats):
        facts, began = Facts(rows, AS_OF), time.perf_counter()
        for kind, report in REPORTS.items():
            before = time.perf_counter()
            report.compute(facts)
            took[kind].append(time.perf_counter() - before)
        took["reports"].append(time.perf_counter() - began)
        before = time.perf_counter()
        metrics.values(Facts(rows, AS_OF))
        took["metrics"].append(time.perf_counter() - before)
    return {name: percentile(each, 0.5) for name, each in took.items()}


def write_portfolio(folder: Path, scale: Scale) -> list[Path]:
    """Write the largest portfolio as files."""
    every = _enrich(scale.businesses, 12, 14)
    originals = [each.tail(scale.rows_each) for each in every.partition_by("customer_number", maintain_order=True)]
    full = [each for each in originals if each.height == scale.rows_each]
    files = []
    for start in range(0, scale.customers[-1], CUSTOMERS_PER_FILE):
        numbers = range(start, min(start + CUSTOMERS_PER_FILE, scale.customers[-1]))
        copies = pl.concat(renumber(full[number % len(full)], number) for number in numbers)
        files.append(folder / f"{start:06d}.parquet")
        copies.sort(SORT_KEY).write_parquet(files[-1], compression="zstd", compression_level=3, row_group_size=30_000)
    return files


def renumber(rows: pl.DataFrame, number: int) -> pl.DataFrame:
    """Return the rows as another customer's, with transaction ids of their own."""
    ids = Random(number).randbytes(16 * rows.height)
    made = pl.Series("transaction_id", [ids[at : at + 16] for at in range(0, len(ids), 16)], pl.Binary)
    return rows.with_columns(pl.lit(number, pl.Int64).alias("customer_number"), made)


def _measure_portfolio(files: Sequence[Path], customers: int) -> tuple[Timed, Totals]:
    """Measure all reports and metrics of this many customers. Also return the totals to compare with the peers'."""

    def compute_file(file: Path) -> tuple[int, pl.DataFrame]:
        facts = Facts(_read_customers(file, customers), AS_OF)
        described = {kind: report.compute(facts) for kind, report in REPORTS.items()}
        facts.cached(metrics.values)
        return facts.rows.height, described["aggregate"] if file == files[0] else pl.DataFrame()

    began = time.perf_counter()
    with ThreadPoolExecutor(SLICES_AT_ONCE) as pool:
        each = list(pool.map(compute_file, files))
    took = time.perf_counter() - began
    return Timed(sum(rows for rows, _ in each), took), _totals(each[0][1]["data"])


def _read_customers(file: Path, customers: int) -> pl.DataFrame:
    return pl.scan_parquet(file).filter(pl.col("customer_number") < customers).select(COLUMNS).collect()


def _totals(texts: pl.Series) -> Totals:
    months = [
        month
        for text in texts
        for table in json.loads(text, parse_float=Decimal)["tables"]
        if table["id"] == "monthly_cash_flow"
        for month in table["values"]
    ]
    return {
        "money_in": float(sum(month["moneyIn"] for month in months)),
        "money_out": float(sum(month["moneyOut"] for month in months)),
    }


def _require_agreement(ours: Totals, peers: Totals) -> None:
    for name, total in ours.items():
        if abs(peers[name] - total) > 0.01:
            raise AssertionError(f"The peer says {name} is {peers[name]}, and we say {total}.")


def measure_metrics(files: Sequence[Path], wanted: metrics.Metrics = metrics.METRICS) -> Timed:
    """Measure metrics, with everything that they are computed from, for every customer in the files."""

    def compute_file(file: Path) -> int:
        facts = Facts(pl.read_parquet(file, columns=list(COLUMNS)), AS_OF)
        metrics.values(facts, wanted)
        return facts.rows.height

    began = time.perf_counter()
    with ThreadPoolExecutor(SLICES_AT_ONCE) as pool:
        rows = sum(pool.map(compute_file, files))
    return Timed(rows, time.perf_counter() - began)


def _measure_peer(compute: Callable[[Sequence[Path]], Totals], files: Sequence[Path]) -> tuple[Timed, Totals]:
    """Return the time for all files, and the totals of the first."""
    first = compute(files[:1])
    began = time.perf_counter()
    compute(files)
    took = time.perf_counter() - began
    return Timed(sum(pl.scan_parquet(file).select(pl.len()).collect().item() for file in files), took), first


def _measure_floor(files: Sequence[Path]) -> Timed:
    rows, began = 0, time.perf_counter()
    for file in files:
        rows += pl.read_parquet(file, columns=list(COLUMNS)).height
    return Timed(rows, time.perf_counter() - began)
