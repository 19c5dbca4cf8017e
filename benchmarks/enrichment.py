"""Measure the speed of enrichment: rules, the learned model, and whole customers from 10,000 rows to 10 million.

The peers are the same rules in pandas and in DuckDB, and the physical floor: reading, hashing and writing the bytes.
"""

import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path

import polars as pl

from benchmarks.accepted import accept_all
from benchmarks.alone import measure_alone
from benchmarks.filling import UNTIL
from benchmarks.peers_of_rules import INPUT_COLUMNS, InDuckDB, InPandas, Lists
from benchmarks.table import Row, mebibytes, seconds
from pipelines.enrichment.counterparties.categories import SURE
from pipelines.enrichment.counterparties.narratives import KEY, read_narratives
from pipelines.enrichment.enrichment import enrich
from pipelines.enrichment.learned.model_file import load_base
from pipelines.enrichment.reading import NOTHING_HELD
from pipelines.synthetic import portfolio
from pipelines.vocabulary.schemas import ACCEPTED, Direction


@dataclass(frozen=True)
class Scale:
    """The size of the measurements."""

    slices: int  # of the portfolio, each of different businesses
    businesses: int  # per slice; each has about 1,150 rows
    held: int  # slices that are enriched again
    sizes: Sequence[int]  # rows enriched again when a feed arrives, ascending
    released: int  # rows enriched again by a new release
    distinct: int  # narratives
    often: int  # rows, with each narrative OFTEN times
    in_pandas: int  # narratives for the peer in pandas
    in_duckdb: int


FULL = Scale(6, 450, 2, (10_000, 100_000, 1_000_000, 10_000_000), 1_000_000, 500_000, 4_000_000, 30_000, 200_000)
MONTHS = 12
TITLE = "How fast enrichment is"
ABOUT = (
    f"A synthetic portfolio: {FULL.slices} slices, each of {FULL.businesses} whole businesses over {MONTHS} months. "
    f"Enrichment takes one slice at a time, as in the service. Ten million rows are {FULL.held} slices, taken again "
    "and again; nothing is cached from one to the next. When a feed arrives, each customer's last day is new, and the "
    "other rows were read before. Each figure comes from a separate process after a warm-up. "
    "Only the floor includes reading and writing files, which are in the page cache. Few of the portfolio's narratives "
    "repeat, because most print a reference or a day; we don't know how often those of a lender do. The peers follow "
    "the same rules and lists, but do less: no fields, clean descriptions, names that are in no list, or alternatives."
)
WARMING = 500  # rows
OFTEN = 20
MIN_MEASURED = 100_000  # rows; fewer are enriched several times
MIN_AGREEMENT = 0.95
NARRATIVE = ("clean_description", "text", "direction")

NOTHING_NEW = pl.DataFrame(schema=ACCEPTED)


@dataclass(frozen=True)
class Timed:
    """A number of rows or narratives, and the seconds that they took."""

    count: int
    took_s: float

    @property
    def rate(self) -> float:
        return self.count / self.took_s

    def describe(self, unit: str = "rows") -> str:
        return f"{self.rate:,.0f} {unit}/s"


def measure(scale: Scale = FULL) -> Sequence[Row]:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-enrichment-") as folder:
        return _measure(Path(folder), scale)


def _measure(folder: Path, scale: Scale) -> list[Row]:
    new = _write_files(folder, scale)
    (repeating, narratives), _ = measure_alone(_measure_in_order, new, folder / "unsure.parquet")
    often, _ = measure_alone(_measure_repeated, new, scale.often)
    distinct, _ = measure_alone(_measure_distinct, new, scale.distinct, folder / "distinct.parquet")
    learned, _ = measure_alone(_measure_learned, folder / "unsure.parquet")
    peers = [
        measure_alone(peer, folder / "distinct.parquet", most)[0]
        for peer, most in ((_in_pandas, scale.in_pandas), (_in_duckdb, scale.in_duckdb))
    ]
    (taken_in, held), new_peak = measure_alone(_measure_new_rows, new[: scale.held])
    again = [measure_alone(_measure_feed, held, rows) for rows in scale.sizes]
    released, _ = measure_alone(_measure_release, held, scale.released)
    floor, _ = measure_alone(_measure_floor, held, scale.sizes[-1], folder / "floor.parquet")
    return [
        *_rows_of_rules(repeating, narratives, often, distinct, learned),
        *_rows_of_peers(distinct, peers),
        Row(
            f"`enrich()`, {taken_in.count:,} new rows: rate, peak RSS", f"{taken_in.describe()}, {mebibytes(new_peak)}"
        ),
        Row(f"`enrich()`, {released.count:,} held rows by a new release", released.describe()),
        *_rows_of_enrichment(scale.sizes, again),
        *_rows_of_floor(floor, again[-1][0]),
    ]


def _rows_of_rules(repeating: Timed, narratives: int, often: Timed, distinct: Timed, learned: Timed) -> list[Row]:
    share = f"{repeating.count:,} rows, {narratives:,} distinct narratives"
    return [
        Row(f"cleaned and categorised by rules: the portfolio's {share}", repeating.describe()),
        Row("the same by distinct narrative", f"{narratives / repeating.took_s:,.0f} narratives/s"),
        Row(f"the same, {often.count:,} rows, each narrative {OFTEN} times", often.describe(), "≥ 3,000,000 rows/s"),
        Row(f"the same, {distinct.count:,} rows, no description twice", distinct.describe(), "≥ 250,000 rows/s"),
        Row(
            f"learned model, {learned.count:,} distinct narratives of which no rule is sure",
            learned.describe("narratives"),
            "≥ 30,000 narratives/s",
        ),
    ]


def _rows_of_peers(ours: Timed, peers: "Sequence[Peer]") -> Iterator[Row]:
    for peer in peers:
        what = f"peer: the rules in {peer.name}, {peer.timed.count:,} distinct narratives, extrapolated"
        yield Row(what, peer.timed.describe("narratives"))
        yield Row(f"narratives in which {peer.name} and we agree on the category", f"{peer.agreement:.2%}", "≥ 95 %")
        yield Row(f"ours, as a multiple of {peer.name}", f"{ours.rate / peer.timed.rate:,.1f} ×")


def _rows_of_enrichment(sizes: Sequence[int], again: Sequence[tuple[Timed, int]]) -> Iterator[Row]:
    for rows, (timed, peak) in zip(sizes, again, strict=True):
        target = "≥ 300,000 rows/s, ≤ 4,096 MiB" if rows == sizes[-1] else ""
        yield Row(
            f"`enrich()`, {rows:,} rows when a feed arrives: rate, peak RSS",
            f"{timed.describe()}, {mebibytes(peak)}",
            target,
        )
    growth = math.log(again[0][0].rate / again[-1][0].rate) / math.log(sizes[-1] / sizes[0])
    what = f"exponent of the cost per row, {sizes[0]:,} → {sizes[-1]:,} rows"
    yield Row(what, f"{growth:.2f}", "flat (near 0)")


def _rows_of_floor(floor: Timed, ours: Timed) -> list[Row]:
    return [
        Row(f"floor: {floor.count:,} rows read, descriptions hashed, all written", seconds(floor.took_s)),
        Row("`enrich()` of as many rows takes", f"{floor.rate / ours.rate:,.1f} × the floor"),
    ]


def _write_files(folder: Path, scale: Scale) -> list[Path]:
    """Write the portfolio's slices as files of ACCEPTED."""
    files = [folder / f"new-{number}.parquet" for number in range(scale.slices)]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as processes:
        list(processes.map(partial(_write_slice, scale.businesses), range(scale.slices), files))
    return files


def _write_slice(businesses: int, seed: int, file: Path) -> None:
    accept_all(portfolio(businesses, MONTHS, seed, UNTIL)).select(ACCEPTED.names()).write_parquet(file)


def _measure_in_order(files: Sequence[Path], unsure: Path) -> tuple[Timed, int]:
    """Measure rows in their order; return also the number of distinct narratives, and write those of which no rule is
    sure.
    """
    rows = _narratives(files)
    read_narratives(rows.head(WARMING))
    began = time.perf_counter()
    described = read_narratives(rows)
    took = time.perf_counter() - began
    described.filter(pl.col("confidence") < SURE).unique(NARRATIVE, maintain_order=True).write_parquet(unsure)
    return Timed(rows.height, took), rows.select(KEY).n_unique()


def _measure_repeated(files: Sequence[Path], most: int) -> Timed:
    """Measure rows in random order whose narratives each occur OFTEN times."""
    few = _narratives(files).unique(KEY, maintain_order=True).head(most // OFTEN)
    rows = pl.concat([few] * OFTEN).sample(fraction=1, shuffle=True, seed=0)
    read_narratives(rows.head(WARMING))
    began = time.perf_counter()
    read_narratives(rows)
    return Timed(rows.height, time.perf_counter() - began)


def _measure_distinct(files: Sequence[Path], most: int, file: Path) -> Timed:
    """Measure rows with distinct descriptions in random order, and write them with their categories."""
    every = _narratives(files).unique("description", maintain_order=True)
    rows = every.sample(min(most, every.height), shuffle=True, seed=0)
    read_narratives(rows.head(WARMING))
    began = time.perf_counter()
    described = read_narratives(rows)
    took = time.perf_counter() - began
    described.with_row_index("row").select("row", "category", pl.col(INPUT_COLUMNS).cast(pl.String)).write_parquet(file)
    return Timed(rows.height, took)


def _narratives(files: Sequence[Path]) -> pl.DataFrame:
    side = pl.when(pl.col("amount") < 0).then(pl.lit("debit")).otherwise(pl.lit("credit"))
    return (
        pl.scan_parquet(list(files))
        .select("description", "account_type", "amount", "date", direction=side.cast(Direction))
        .collect()
    )


def _measure_learned(unsure: Path) -> Timed:
    rows = pl.read_parquet(unsure)
    load_base().predict(rows.head(WARMING))
    began = time.perf_counter()
    load_base().predict(rows)
    return Timed(rows.height, time.perf_counter() - began)


@dataclass(frozen=True)
class Peer:
    """The speed of a peer, and the share of narratives in which its category is ours."""

    name: str
    timed: Timed
    agreement: float


def _in_pandas(file: Path, most: int) -> Peer:
    rows = pl.read_parquet(file, n_rows=most)
    narratives, peer = rows.select(INPUT_COLUMNS).to_pandas(), InPandas(Lists())
    began = time.perf_counter()
    found = peer.categories(narratives)
    return _compare_peer("pandas", found, rows, time.perf_counter() - began)


def _in_duckdb(file: Path, most: int) -> Peer:
    rows = pl.read_parquet(file, n_rows=most)
    sample, peer = file.with_name("duckdb.parquet"), InDuckDB(Lists())
    rows.write_parquet(sample, row_group_size=max(rows.height // 16, 1))
    began = time.perf_counter()
    found = peer.categories(sample)
    return _compare_peer("DuckDB", found, rows, time.perf_counter() - began)


def _compare_peer(name: str, found: Sequence[str], rows: pl.DataFrame, took_s: float) -> Peer:
    """Compare a peer's categories with ours.

    Raises:
        RuntimeError: the peer's categories differ too much, so comparing its speed would be meaningless.
    """
    agreement = float((pl.Series(found, dtype=pl.String) == rows["category"]).mean() or 0)  # pyrefly: ignore[bad-argument-type]
    if agreement < MIN_AGREEMENT:
        raise RuntimeError(f"{name} agrees with our rules on {agreement:.2%} of the narratives only")
    return Peer(name, Timed(rows.height, took_s), agreement)


def _measure_new_rows(files: Sequence[Path]) -> tuple[Timed, list[Path]]:
    """Measure new rows, slice by slice, and write the enriched rows beside them."""
    written, count, took = list[Path](), 0, 0.0
    _warm(enrich(NOTHING_HELD, pl.read_parquet(files[0], n_rows=WARMING)).transactions)
    for file in files:
        new = pl.read_parquet(file)
        began = time.perf_counter()
        rows = enrich(NOTHING_HELD, new).transactions.collect()
        took += time.perf_counter() - began
        written.append(file.with_name(file.name.replace("new", "held")))
        rows.write_parquet(written[-1])
        count += new.height
    return Timed(count, took), written


def _measure_feed(files: Sequence[Path], rows: int) -> Timed:
    """Measure rows whose customers receive their last day, slice by slice."""
    count, took = 0, 0.0
    _warm(enrich(*_split_last_day(pl.read_parquet(files[0], n_rows=WARMING))).transactions)
    for _ in range(max(1, MIN_MEASURED // rows)):
        for every in _portions(files, rows):
            held, new = _split_last_day(every)
            began = time.perf_counter()
            enrich(held, new).transactions.collect()
            took += time.perf_counter() - began
            count += every.height
    return Timed(count, took)


def _split_last_day(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return each customer's rows before its last day, and those of the last day as another submission."""
    last = pl.col("date") == pl.col("date").max().over("customer_number")
    new = rows.filter(last).select(ACCEPTED.names())
    return rows.filter(~last), new.with_columns(pl.col("received_seq") + rows["received_seq"].max())


def _measure_release(files: Sequence[Path], rows: int) -> Timed:
    """Measure held rows that another release has read, slice by slice."""
    count, took = 0, 0.0
    for each in _portions(files, rows):
        held = each.with_columns(read_by=pl.lit("another release"))
        began = time.perf_counter()
        enrich(held, NOTHING_NEW).transactions.collect()
        took += time.perf_counter() - began
        count += held.height
    return Timed(count, took)


def _warm(rows: pl.LazyFrame) -> None:
    rows.collect()


def _portions(files: Sequence[Path], rows: int) -> Iterator[pl.DataFrame]:
    """Yield slices until they have `rows` rows or a few more; the last is cut after a whole customer."""
    left = rows
    for file in cycle(files):
        held = pl.read_parquet(file)
        yield held if held.height <= left else _whole_customers(held, left)
        left -= held.height
        if left <= 0:
            return


def _whole_customers(held: pl.DataFrame, rows: int) -> pl.DataFrame:
    return held.filter(pl.col("customer_number") <= held["customer_number"][rows - 1])


def _measure_floor(files: Sequence[Path], rows: int, file: Path) -> Timed:
    count, began = 0, time.perf_counter()
    for held in _portions(files, rows):
        held.select(pl.col("description").hash().sum()).item()
        held.write_parquet(file)
        count += held.height
    return Timed(count, time.perf_counter() - began)
