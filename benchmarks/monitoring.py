"""Measure the speed of monitoring: a hundred rulesets over a portfolio, from computed metrics and from transactions.

The peers evaluate the same conditions, customer by customer, in plain Python and in CEL.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import polars as pl

from assets.reports.reports import SLICES_AT_ONCE
from benchmarks import reports
from benchmarks.alone import measure_alone
from benchmarks.many_rulesets import HARDSHIP_EVERY, attributes_of, plan_rulesets_of_rounds
from benchmarks.peers_of_monitoring import InCel, Outcomes, conditions_of, evaluate_in_python, prepare_customers
from benchmarks.reports import AS_OF
from benchmarks.table import Row, mebibytes, milliseconds, percentile, seconds
from pipelines.decisions.readings import Attributes
from pipelines.figures.facts import COLUMNS, Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.monitoring import (
    MonitoringPlan,
    Observations,
    compute_figures,
    compute_transitions,
    observe_customers,
    observe_figures,
)
from pipelines.monitoring.transitions import FIRING

Result = TypeVar("Result")


@dataclass(frozen=True)
class Scale:
    """The size of the measurements."""

    rulesets: int
    customers: int
    rows_each: Sequence[int]  # of the portfolios, ascending
    peer_customers: int  # that the peers evaluate
    repeats: int  # of one customer
    businesses: int  # that are enriched; the portfolios repeat them with other numbers


FULL = Scale(100, 10_000, (200, 1_000), 500, 20, 40)
TITLE = "How fast monitoring is"
ABOUT = (
    f"{FULL.rulesets} rulesets: those of the library, repeated in rounds with different thresholds "
    "(benchmarks/many_rulesets.py). Rounds share their metrics, which are computed once, but their conditions differ. "
    f"Every customer has a loan that began on the same day, and every {HARDSHIP_EVERY}th is muted. The portfolios are "
    f"those of the reports' benchmark, each customer cut to the last rows, in files of {reports.CUSTOMERS_PER_FILE} "
    "customers, two files at a time. Reading the files, which are in the page cache, and deciding what fires are "
    "included. The peers get ready dictionaries of metrics and evaluate every condition of every rule; they neither "
    "mute nor decide what fires. Plain Python calculates in exact decimals and is the oracle for ours. Each figure "
    "comes from a separate process."
)
NOW = datetime(2026, 11, 1, 3, tzinfo=UTC)


def measure(scale: Scale = FULL) -> Sequence[Row]:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-monitoring-") as folder:
        return _measure(Path(folder), scale)


def _measure(folder: Path, scale: Scale) -> list[Row]:
    portfolios = {rows: _portfolio(folder / str(rows), scale, rows) for rows in scale.rows_each}
    evaluations = {
        rows: measure_alone(_evaluate_portfolio, files, scale.rulesets) for rows, files in portfolios.items()
    }
    metrics = {rows: measure_alone(_compute_portfolio, files, scale.rulesets)[0] for rows, files in portfolios.items()}
    largest = portfolios[scale.rows_each[-1]]
    rules, _ = measure_alone(_evaluate_rules, largest, scale.rulesets)
    one, _ = measure_alone(_evaluate_customer, largest[0], scale)
    python, _ = measure_alone(_evaluate_in_python, largest, scale)
    in_cel, _ = measure_alone(_evaluate_in_cel, largest, scale)
    (last, _), counts = evaluations[scale.rows_each[-1]], _count_rules(scale.rulesets)
    portfolio = f"{scale.rulesets} rulesets, {scale.customers:,} customers"
    return [
        Row("rules, conditions and metrics of the rulesets", counts),
        Row(f"{portfolio}, metrics ready", seconds(rules.took_s), "≤ 5 s"),
        *(
            Row(f"{portfolio} of {rows:,} rows, from transactions", seconds(measured.took_s), "≤ 5 s")
            for rows, (measured, _) in evaluations.items()
        ),
        *(Row(f"of which metrics and reading, {rows:,} rows", seconds(took)) for rows, took in metrics.items()),
        *(Row(f"peak RSS, {rows:,} rows", mebibytes(peak), "≤ 2 GiB") for rows, (_, peak) in evaluations.items()),
        Row("evaluations of a rule, and those that fire", f"{last.evaluations:,}, {last.fired:,}"),
        Row("one customer, from transactions, p50", milliseconds(one)),
        Row("evaluations of a rule, metrics ready: ours", f"{rules.evaluations / rules.took_s:,.0f}/s"),
        Row("plain Python", f"{python.rate:,.0f}/s"),
        Row("CEL", f"{in_cel.rate:,.0f}/s"),
        Row("ours, as a multiple of plain Python", f"{rules.evaluations / rules.took_s / python.rate:,.0f} ×"),
        Row("ours, as a multiple of CEL", f"{rules.evaluations / rules.took_s / in_cel.rate:,.0f} ×"),
        Row(
            "evaluations in which ours differs from plain Python",
            f"{python.different:,} of {python.evaluations:,}",
            "0",
        ),
        Row("evaluations in which CEL differs from ours", f"{in_cel.different:,} of {in_cel.evaluations:,}"),
    ]


def _portfolio(folder: Path, scale: Scale, rows_each: int) -> list[Path]:
    folder.mkdir()
    size = reports.Scale(scale.businesses, rows_each, (scale.customers,), 0, 0)
    return measure_alone(reports.write_portfolio, folder, size)[0]


def _count_rules(rulesets: int) -> str:
    plan = plan_rulesets_of_rounds(rulesets)
    conditions = {plan.rulesets[ruleset_id].rules[code].condition for ruleset_id, code in plan.rules}
    read = len(plan.labels("metric"))
    return f"{len(plan.rules)} rules, {len(conditions)} different conditions, {read} metrics read"


# Ruleset evaluations


@dataclass(frozen=True)
class Measured:
    took_s: float
    evaluations: int  # of a rule for a customer
    fired: int


def _evaluate_portfolio(files: Sequence[Path], rulesets: int) -> Measured:
    """Evaluate the rulesets for all customers from their transactions; no rule has fired before."""

    def evaluate(file: Path) -> tuple[int, int]:
        return _decide(plan, observe_customers(plan, *_read_facts(file), NOW))

    plan, began = plan_rulesets_of_rounds(rulesets), time.perf_counter()
    found = _map_files(files, evaluate)
    return Measured(
        time.perf_counter() - began, sum(evaluations for evaluations, _ in found), sum(fired for _, fired in found)
    )


def _compute_portfolio(files: Sequence[Path], rulesets: int) -> float:
    """Return the seconds to compute the figures of a portfolio."""

    def compute(file: Path) -> int:
        facts, attributes = _read_facts(file)
        return compute_figures(plan, facts, (), attributes, NOW).height

    plan, began = plan_rulesets_of_rounds(rulesets), time.perf_counter()
    _map_files(files, compute)
    return time.perf_counter() - began


def _evaluate_rules(files: Sequence[Path], rulesets: int) -> Measured:
    """Evaluate only the rules, for all customers at once."""
    plan = plan_rulesets_of_rounds(rulesets)
    figures = _read_figures(plan, files)
    attributes = attributes_of(figures[BY_CUSTOMER].to_list())
    began = time.perf_counter()
    evaluations, fired = _decide(plan, observe_figures(plan, figures, attributes, NOW))
    return Measured(time.perf_counter() - began, evaluations, fired)


def _evaluate_customer(file: Path, scale: Scale) -> float:
    """Return the median seconds for one customer: the cost for a batch of one submission on an idle machine."""
    plan, rows = plan_rulesets_of_rounds(scale.rulesets), pl.read_parquet(file, columns=list(COLUMNS))
    mine = rows.filter(pl.col(BY_CUSTOMER) == rows[BY_CUSTOMER][0])
    attributes = attributes_of([int(mine[BY_CUSTOMER][0])])
    took = []
    for _ in range(scale.repeats):
        began = time.perf_counter()
        _decide(plan, observe_customers(plan, Facts(mine, AS_OF), attributes, NOW))
        took.append(time.perf_counter() - began)
    return percentile(took, 0.5)


def _decide(plan: MonitoringPlan, seen: Observations) -> tuple[int, int]:
    """Return the number of evaluations of a rule, and how many rules fired."""
    transitions = compute_transitions(seen.outcomes, FIRING.to_frame(), plan.repeats, AS_OF, "UTC")
    return seen.outcomes.height, transitions.fired.height


def _read_facts(file: Path) -> tuple[Facts, Attributes]:
    facts = Facts(pl.read_parquet(file, columns=list(COLUMNS)), AS_OF)
    return facts, attributes_of(facts.customers[BY_CUSTOMER].to_list())


def _map_files(files: Sequence[Path], compute: Callable[[Path], Result]) -> list[Result]:
    with ThreadPoolExecutor(SLICES_AT_ONCE) as pool:
        return list(pool.map(compute, files))


def _read_figures(plan: MonitoringPlan, files: Sequence[Path]) -> pl.DataFrame:
    """Return the figures of all customers in the files."""

    def compute(file: Path) -> pl.DataFrame:
        facts, attributes = _read_facts(file)
        return compute_figures(plan, facts, (), attributes, NOW)

    return pl.concat(_map_files(files, compute))


# The peers


@dataclass(frozen=True)
class Comparison:
    rate: float  # evaluations of a rule a second
    evaluations: int
    different: int  # from ours


def _evaluate_in_python(files: Sequence[Path], scale: Scale) -> Comparison:
    plan, figures = _sample(files, scale)
    conditions, customers = conditions_of(plan), prepare_customers(figures)
    began = time.perf_counter()
    outcomes = evaluate_in_python(conditions, customers)
    return _compare(plan, figures, outcomes, time.perf_counter() - began)


def _evaluate_in_cel(files: Sequence[Path], scale: Scale) -> Comparison:
    plan, figures = _sample(files, scale)
    peer = InCel(conditions_of(plan))
    customers = peer.prepare(prepare_customers(figures))
    began = time.perf_counter()
    outcomes = peer.outcomes(customers)
    return _compare(plan, figures, outcomes, time.perf_counter() - began)


def _sample(files: Sequence[Path], scale: Scale) -> tuple[MonitoringPlan, pl.DataFrame]:
    """Return the plan and the figures of the first customers."""
    plan = plan_rulesets_of_rounds(scale.rulesets)
    needed = -(-scale.peer_customers // reports.CUSTOMERS_PER_FILE)
    return plan, _read_figures(plan, files[:needed]).head(scale.peer_customers)


def _compare(plan: MonitoringPlan, figures: pl.DataFrame, outcomes: Sequence[Outcomes], took_s: float) -> Comparison:
    """Compare a peer's outcomes with ours, without muted customers."""
    numbers = figures[BY_CUSTOMER].to_list()
    ours = observe_figures(plan, figures, attributes_of(numbers), NOW).outcomes
    theirs = {
        (number, ruleset_id.bytes, code): holds
        for number, customer_outcomes in zip(numbers, outcomes, strict=True)
        for (ruleset_id, code), holds in zip(plan.rules, customer_outcomes, strict=True)
    }
    different = sum(theirs[number, ruleset_id, code] is not holds for number, ruleset_id, code, holds in ours.rows())
    return Comparison(len(theirs) / took_s, ours.height, different)
