"""Measure the speed of simulations and check them against a ruleset evaluation of every customer on every day."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from pathlib import Path
from statistics import median
from uuid import UUID

import polars as pl

from benchmarks import reports
from benchmarks.alone import measure_alone
from benchmarks.many_rulesets import LOAN_START
from benchmarks.reports import AS_OF
from benchmarks.table import Row, mebibytes, seconds
from pipelines.decisions.readings import Attributes
from pipelines.figures.facts import COLUMNS, Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.monitoring import Ruleset, compute_transitions, observe_customers
from pipelines.monitoring.library import load_library
from pipelines.monitoring.simulation import Simulation, simulate
from pipelines.monitoring.snapshots import AttributeChange, AttributeHistories, Day, attribute_at
from pipelines.monitoring.transitions import FIRING
from pipelines.vocabulary.schemas import posted


@dataclass(frozen=True)
class Scale:
    """The size of the measurements."""

    customers: int
    rows_each: int
    days: int
    evaluated_daily: int  # customers
    businesses: int  # that are enriched; the portfolio repeats them with other numbers


FULL = Scale(100, 1_000, 365, 5, 40)
TITLE = "How fast simulations are"
ABOUT = (
    f"Every ruleset of the library, one after the other, over {FULL.days} days of {FULL.customers:,} customers with "
    f"{FULL.rows_each:,} rows each, of the portfolio of the reports' benchmark; reading it is included. Rulesets that "
    f"need more than running totals are slow. For comparison, the simple way: each of {FULL.evaluated_daily} customers "
    "is evaluated on each of the days by the code that evaluates customers in production, in a separate process, and "
    "what fires is compared."
)
RULESET_ID = UUID(int=1)
KEEP = 1_000_000  # firings

Fired = set[tuple[int, date, str]]  # customer, day, rule


def measure(scale: Scale = FULL) -> Sequence[Row]:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-simulation-") as folder:
        return _measure(Path(folder), scale)


def _measure(folder: Path, scale: Scale) -> list[Row]:
    size = reports.Scale(scale.businesses, scale.rows_each, (scale.customers,), 0, 0)
    files, _ = measure_alone(reports.write_portfolio, folder, size)
    took, peak = measure_alone(_try_library, files, scale)
    ours, _ = measure_alone(_try_few, files[0], scale, _try_ruleset)
    daily, _ = measure_alone(_try_few, files[0], scale, _evaluate_daily)
    days = scale.customers * scale.days
    fastest, slowest = (choose(took, key=lambda slug: took[slug]) for choose in (min, max))
    expected = sum(map(len, daily.fired.values()))
    different = sum(len(daily.fired[slug] ^ ours.fired[slug]) for slug in took)
    return [
        Row(f"a ruleset over {days:,} days of customers, median of {len(took)}", seconds(median(took.values()))),
        Row(f"the fastest, {fastest}", seconds(took[fastest])),
        Row(f"the slowest, {slowest}", seconds(took[slowest])),
        Row("days of customers, a ruleset each", f"{len(took) * days / sum(took.values()):,.0f}/s"),
        Row("peak RSS", mebibytes(peak), "≤ 2 GiB"),
        Row(f"of {scale.evaluated_daily} customers: ours", f"{ours.rate:,.0f}/s"),
        Row("the same, a ruleset evaluation each day", f"{daily.rate:,.0f}/s"),
        Row("ours, as a multiple of a ruleset evaluation each day", f"{ours.rate / daily.rate:,.0f} ×"),
        Row("firings that differ from those of a ruleset evaluation each day", f"{different:,} of {expected:,}", "0"),
    ]


def _try_library(files: Sequence[Path], scale: Scale) -> dict[str, float]:
    """Return the seconds for each ruleset."""
    took = dict[str, float]()
    for slug, ruleset in _library():
        began = time.perf_counter()
        for file in files:
            _try_ruleset(ruleset, _read_rows(file), _days(scale))
        took[slug] = time.perf_counter() - began
    return took


@dataclass(frozen=True)
class OfFew:
    """The result for a few customers. `rate`: days of a customer per second, for one ruleset."""

    rate: float
    fired: dict[str, Fired]  # by ruleset


def _try_few(file: Path, scale: Scale, try_one: Callable[[Ruleset, pl.DataFrame, Sequence[Day]], Fired]) -> OfFew:
    rows = _read_rows(file)
    few = rows.filter(pl.col(BY_CUSTOMER) < rows[BY_CUSTOMER][0] + scale.evaluated_daily)
    began = time.perf_counter()
    fired = {slug: try_one(ruleset, few, _days(scale)) for slug, ruleset in _library()}
    days = len(fired) * scale.evaluated_daily * scale.days
    return OfFew(days / (time.perf_counter() - began), fired)


def _try_ruleset(ruleset: Ruleset, rows: pl.DataFrame, days: Sequence[Day]) -> Fired:
    parts = simulate(Simulation(RULESET_ID, ruleset, days), rows, _attribute_histories(rows), KEEP)
    return {firing for part in parts for firing in part.firings.select(BY_CUSTOMER, "date", "rule").iter_rows()}


def _evaluate_daily(ruleset: Ruleset, rows: pl.DataFrame, days: Sequence[Day]) -> Fired:
    """Evaluate a ruleset day after day, as in production."""
    plan, past, posted_rows = (
        Simulation(RULESET_ID, ruleset, days).plan,
        _attribute_histories(rows),
        rows.filter(posted()),
    )
    firing, fired = FIRING.to_frame(), Fired()
    for day in days:
        known = posted_rows.filter(pl.col("date") <= day.date)
        seen = observe_customers(plan, Facts(known, day.date), _attributes_at(past, known, day), day.at)
        changed = compute_transitions(seen.outcomes, firing, plan.repeats, day.date, str(UTC))
        now = datetime.combine(day.date, time_of_day.min, UTC)
        new = changed.fired.with_columns(fired_at=pl.lit(now, FIRING["fired_at"]))
        gone = pl.concat([changed.reset, changed.fired])
        firing = pl.concat([firing.join(gone, on=gone.columns, how="anti"), new])
        fired |= {(number, day.date, rule) for number, rule in changed.fired.select(BY_CUSTOMER, "rule").iter_rows()}
    return fired


def _attributes_at(past: AttributeHistories, known: pl.DataFrame, day: Day) -> Attributes:
    return {
        number: {name: attribute_at(changes, day.at) for name, changes in past[number].items()}
        for number in known[BY_CUSTOMER].unique()
    }


def _attribute_histories(rows: pl.DataFrame) -> AttributeHistories:
    """Return the past of customers who all have a loan that began on the same day."""
    began = AttributeChange(datetime.combine(LOAN_START, time_of_day.min, UTC), LOAN_START.isoformat(), None)
    return {number: {"loanStart": [began]} for number in rows[BY_CUSTOMER].unique()}


def _library() -> Iterator[tuple[str, Ruleset]]:
    return ((slug, Ruleset.model_validate(each.document)) for slug, each in load_library().items())


def _read_rows(file: Path) -> pl.DataFrame:
    return pl.read_parquet(file, columns=list(COLUMNS))


def _days(scale: Scale) -> list[Day]:
    every = (AS_OF - timedelta(days=behind) for behind in reversed(range(scale.days)))
    return [Day(day, datetime.combine(day, time_of_day(14), UTC)) for day in every]
