"""All versions of the measured policy decide the same; otherwise comparing their speed would be meaningless."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from benchmarks import evaluating, policies, reports
from benchmarks.peers_of_policies import GUARDED, TABLE, InCel, InZen, Peer, prepare
from benchmarks.ten_rules import (
    count_wrong,
    decide_exactly,
    document,
    list_metrics,
    on_the_cent,
    policy,
    stricter_policy,
    with_gaps,
)
from pipelines.decisions import check, plan_policy

CUSTOMERS = 3_000
SMALL = policies.Scale(5_000, 500, 3, reports.Scale(6, 1_000, (12,), 1, 1))


def test_the_policy_is_valid_and_has_the_reported_size() -> None:
    checked = check.check_document(document())
    assert (checked.faults, checked.warnings) == ([], [])
    assert sum(len(step.rules) for step in policy().steps) == 10
    assert len(plan_policy(policy()).labels("metric")) == 15
    assert plan_policy(stricter_policy()).metrics.keys() == plan_policy(policy()).metrics.keys()


def test_customers_with_gaps_reach_every_outcome() -> None:
    described = decide_exactly(list_metrics(with_gaps(CUSTOMERS, 5)))
    assert {each.outcome for each in described} == {"blocked", "conditional", "proceed", "indeterminate"}
    assert {each.limit is None for each in described if each.outcome in ("conditional", "proceed")} == {True, False}


def test_metrics_are_missing_with_the_reported_share() -> None:
    missing = with_gaps(CUSTOMERS, 5).select((pl.selectors.decimal().null_count() / CUSTOMERS).name.keep())
    assert all(0.12 < share < 0.18 for share in missing.row(0))


def test_a_cent_decides_for_customers_on_the_cent() -> None:
    """All pass as they are, and none with one cent less."""
    cent = pl.lit("0.01").cast(pl.Decimal(38, 4))
    customers = on_the_cent(300, 5)
    worse = customers.with_columns(
        (pl.col("debt_service_180d") + cent), pl.col("revenue_90d") - cent, pl.col("operating_cash_flow_180d") - cent
    )
    assert {each.outcome for each in decide_exactly(list_metrics(customers))} == {"proceed"}
    assert {each.outcome for each in decide_exactly(list_metrics(worse))} == {"blocked", "conditional"}


@pytest.mark.parametrize(
    "customers", [with_gaps(CUSTOMERS, 6), on_the_cent(CUSTOMERS, 6)], ids=["with gaps", "on the cent"]
)
def test_guarded_gorules_decides_as_we_do(customers: pl.DataFrame) -> None:
    described = InZen(GUARDED).verdicts(prepare(list_metrics(customers)))
    assert (
        count_wrong(described, decide_exactly(list_metrics(customers))).describe()
        == f"0 verdicts, 0 limits of {CUSTOMERS:,}"
    )


@pytest.mark.slow  # needs thousands of customers, only to test peers of a benchmark
@pytest.mark.parametrize("made", [lambda: InZen(TABLE), InCel], ids=["GoRules", "CEL"])
def test_peers_decide_as_we_do_without_gaps_and_off_the_cent(made: Callable[[], Peer]) -> None:
    complete = list_metrics(with_gaps(CUSTOMERS * 10, 7).drop_nulls(pl.selectors.decimal()))
    assert len({each.outcome for each in decide_exactly(complete)}) == 3
    assert (
        count_wrong(made().verdicts(prepare(complete)), decide_exactly(complete))
        .describe()
        .startswith("0 verdicts, 0 limits")
    )


@pytest.mark.slow  # as above
def test_a_double_is_off_by_a_cent() -> None:
    """Customers on the cent show this: a peer with doubles decides some of them wrongly."""
    customers = list_metrics(on_the_cent(CUSTOMERS, 6))
    assert count_wrong(InCel().verdicts(prepare(customers)), decide_exactly(customers)).verdicts > 0


@pytest.mark.slow  # runs a benchmark
def test_measurements_without_a_service_run(monkeypatch: pytest.MonkeyPatch) -> None:
    # In this process, not in one of its own.
    monkeypatch.setattr(policies, "measure_alone", lambda measurement, *given: (measurement(*given), 0))
    rows = {row.what: row for row in policies.measure(SMALL)}
    assert rows["wrong with gaps: ours"].figure == "0 verdicts, 0 limits of 500"
    assert rows["wrong on the cent: ours"].figure == "0 verdicts, 0 limits of 500"
    assert "12 customers of 1,000 rows" in " ".join(rows)
    assert 0 < int(rows["customers that it decides differently"].figure) <= 12


@pytest.mark.slow
def test_measurements_of_a_service_run(tmp_path: Path) -> None:
    rows = evaluating.measure(tmp_path, "SQLite", evaluating.Scale(4, 8, 4, 2, 50))
    assert [row.target for row in rows if row.target] == ["≤ 40 ms", *("≥ 60/s", "≤ 300 ms") * 2]
