"""Measure speed and accuracy of policies on whole portfolios. The peers are GoRules and CEL, with the same policy and
customers.

Ready metrics represent a portfolio whose figures are known; transactions represent one whose figures are not. On
transactions, the backtest of two versions of a policy is also measured.
"""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import polars as pl

from assets.portfolio.portfolio_jobs import run
from benchmarks import reports, ten_rules
from benchmarks.alone import measure_alone
from benchmarks.filling import UNTIL, fill
from benchmarks.peers_of_policies import GUARDED, TABLE, InCel, InZen, Peer, prepare
from benchmarks.reports import Timed
from benchmarks.service import Home, new_home
from benchmarks.table import Row, mebibytes, seconds
from benchmarks.ten_rules import MISSING_SHARE, REQUESTED, Verdict, Wrong, count_wrong
from pipelines.decisions import Plan, evaluate_plan, plan_policy, readings
from storage.core.store import Store
from storage.decisions import policies as stored_policies
from storage.decisions.backtests import Against, Knowledge, Request
from storage.portfolio import portfolio_jobs
from storage.portfolio.portfolio_jobs import BACKTEST, NewPortfolioJob


@dataclass(frozen=True)
class Scale:
    """The size of the measurements."""

    customers: int  # with ready metrics
    sampled: int  # customers with gaps, and as many on the cent, for the peers
    one_by_one: int
    portfolio: reports.Scale  # of transactions


FULL = Scale(1_000_000, 10_000, 200, reports.FULL)
AT_ONCE = 20_000  # customers in memory, with a column for every node of the policy
TITLE = "How fast policies decide"
ABOUT = (
    "A policy of 10 rules in 3 steps over 15 metrics, with one limit (benchmarks/ten_rules.yaml). Ready metrics are "
    f"random, {MISSING_SHARE:.0%} of them missing, and are read and evaluated {AT_ONCE:,} customers at a time; the "
    "time to generate them is not included. Peers take ready dictionaries of floats, one customer after the other; "
    "benchmarks/peers_of_policies.py shows how their policies are written. Plain Python with exact decimals says what "
    f"is right, for {FULL.sampled:,} customers with gaps and {FULL.sampled:,} without, each of whom has one figure "
    "that equals its threshold to the cent. Metrics from transactions are measured on the portfolio of the reports' "
    "benchmark; the backtest is the service's, in a home of its own on SQLite. Each figure comes from a separate "
    "process."
)
NOW = datetime(2026, 11, 1, tzinfo=UTC)
INPUTS: Mapping[str, readings.Value] = {"requestedAmount": REQUESTED}
PEERS: Mapping[str, Callable[[], Peer]] = {
    "GoRules, a decision table": lambda: InZen(TABLE),
    "GoRules, nulls guarded by hand": lambda: InZen(GUARDED),
    "CEL": InCel,
}


def measure(scale: Scale = FULL) -> Sequence[Row]:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-policies-") as folder:
        return [*_measure_on_ready_metrics(scale), *_measure_on_transactions(Path(folder), scale.portfolio)]


# On ready metrics

Mistakes = Mapping[str, Wrong]  # by kind of customers


def _measure_on_ready_metrics(scale: Scale) -> list[Row]:
    bulk, peak = measure_alone(_measure_bulk_rate, scale.customers)
    single, _ = measure_alone(_measure_single_rate, scale.one_by_one)
    ours, _ = measure_alone(_mistakes_of_ours, scale.sampled)
    peers = {name: measure_alone(_measure_loop_rate, name, scale.sampled)[0] for name in PEERS}
    rates = {"ours": single, **{name: rate for name, (rate, _) in peers.items()}}
    mistakes = {"ours": ours, **{name: found for name, (_, found) in peers.items()}}
    return [
        Row(f"verdict and limit of {scale.customers:,} customers", f"{bulk:,.0f}/s", "≥ 500,000/s"),
        Row("its peak RSS, including the metrics", mebibytes(peak)),
        *(Row(f"one customer at a time: {name}", f"{rate:,.0f}/s") for name, rate in rates.items()),
        *(Row(f"ours in bulk, as a multiple of {name}", f"{bulk / rates[name]:,.0f} ×") for name in peers),
        *(
            Row(f"wrong {about}: {name}", each.describe(), "0" if name == "ours" else "")
            for name, found in mistakes.items()
            for about, each in found.items()
        ),
    ]


def _measure_bulk_rate(count: int) -> float:
    """Return customers per second."""
    return _measure_rate(ten_rules.with_gaps(count, 1), AT_ONCE)


def _measure_single_rate(count: int) -> float:
    return _measure_rate(ten_rules.with_gaps(count, 1), 1)


def _measure_rate(customers: pl.DataFrame, at_once: int) -> float:
    plan = plan_policy(ten_rules.policy())
    _decide(plan, customers.head(at_once))  # warm up the process
    began = time.perf_counter()
    for start in range(0, customers.height, at_once):
        _decide(plan, customers.slice(start, at_once))
    return customers.height / (time.perf_counter() - began)


def _decide(plan: Plan, customers: pl.DataFrame) -> pl.DataFrame:
    """Return `outcome` and the limit by `metrics.values` of customers."""
    return evaluate_plan(plan, readings.read_leaves(plan, customers, {}, INPUTS, NOW)).select("outcome", "amount_0")


def _mistakes_of_ours(count: int) -> Mistakes:
    plan = plan_policy(ten_rules.policy())
    verdicts = {
        about: [Verdict(*each) for each in _decide(plan, customers).rows()]
        for about, customers in _sample(count).items()
    }
    return _count_mistakes(verdicts, count)


def _measure_loop_rate(name: str, count: int) -> tuple[float, Mistakes]:
    """Return customers per second, and the mistakes."""
    peer = PEERS[name]()
    ready = {about: prepare(ten_rules.list_metrics(customers)) for about, customers in _sample(count).items()}
    began = time.perf_counter()
    verdicts = {about: peer.verdicts(customers) for about, customers in ready.items()}
    took = time.perf_counter() - began
    return sum(map(len, ready.values())) / took, _count_mistakes(verdicts, count)


def _sample(count: int) -> Mapping[str, pl.DataFrame]:
    return {"with gaps": ten_rules.with_gaps(count, 2), "on the cent": ten_rules.on_the_cent(count, 3)}


def _count_mistakes(verdicts: Mapping[str, Sequence[Verdict]], count: int) -> Mistakes:
    return {
        about: count_wrong(verdicts[about], ten_rules.decide_exactly(ten_rules.list_metrics(customers)))
        for about, customers in _sample(count).items()
    }


# On transactions


def _measure_on_transactions(folder: Path, portfolio: reports.Scale) -> list[Row]:
    files, _ = measure_alone(reports.write_portfolio, folder, portfolio)
    every, _ = measure_alone(reports.measure_metrics, files)
    read, _ = measure_alone(_measure_read_metrics, files)
    portfolio_size = f"{portfolio.customers[-1]:,} customers of {portfolio.rows_each:,} rows"
    return [
        Row(f"all metrics of {portfolio_size}", every.describe(), "≤ 15 s"),
        Row("only the metrics that the policy reads", read.describe()),
        *_measure_backtest(folder / "home", portfolio.customers[-1], portfolio.rows_each),
    ]


def _measure_read_metrics(files: Sequence[Path]) -> Timed:
    return reports.measure_metrics(files, plan_policy(ten_rules.policy()).metrics)


def _measure_backtest(folder: Path, customers: int, rows_each: int) -> list[Row]:
    with new_home(folder, "SQLite") as home:
        with home.store() as store:
            fill(store, home.client_id, customers, rows_each)
            job_id = _request_backtest(store, home.client_id)
        (took, changed), peak = measure_alone(_run_backtest, home, job_id)
    return [
        Row("backtest of two versions over as many customers, in the service's lake", seconds(took), "≤ 30 s"),
        Row("customers that it decides differently", f"{changed:,}"),
        Row("its peak RSS", mebibytes(peak), "≤ 2 GiB"),
    ]


def _request_backtest(store: Store, client_id: UUID) -> UUID:
    """Return the job of a backtest of two versions over the client's portfolio."""
    now = datetime.now(UTC)
    with store.db.writing() as w:
        before, after = (
            stored_policies.save_draft(w, client_id, policy, [], "benchmark", now).version
            for policy in (ten_rules.policy(), ten_rules.stricter_policy())
        )
        stored = stored_policies.get(w, client_id, ten_rules.policy().slug)
        asked = Request(Against.VERSION, before, (UNTIL,), Knowledge.NOW, INPUTS)
        new = NewPortfolioJob(BACKTEST, client_id, stored.policy_id, after, asked.as_json())
        return portfolio_jobs.request(w, new, "benchmark", now).job_id


def _run_backtest(home: Home, job_id: UUID) -> tuple[float, int]:
    """Return the seconds from the start of the service's run to the end of the job, and the number of changed
    customers.
    """
    with home.store() as store:
        began = time.perf_counter()
        done = run(store, job_id, lambda: datetime.now(UTC))
        took = time.perf_counter() - began
        with store.db.reading() as r:
            return took, portfolio_jobs.read_listing(r, done).total
