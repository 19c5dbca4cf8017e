"""Drift of readings, of coverage, and of outcomes from what a scorecard was fitted to."""

from decimal import Decimal

import numpy as np
import polars as pl

from pipelines.scorecards.drift import compare_default_rates, compare_readings, make_reference
from pipelines.scorecards.scorecard import COVERAGE, COVERAGE_OF, READING


def readings(shift: float = 0, coverage: str = "1") -> pl.DataFrame:
    values = np.random.default_rng(1).normal(size=500) + shift
    return pl.DataFrame({"buffer": values}).select(
        pl.col("buffer").cast(READING), pl.lit(Decimal(coverage), COVERAGE).alias(COVERAGE_OF + "buffer")
    )


def compare_buffer(now: pl.DataFrame) -> dict[str, object]:
    [compared] = compare_readings(make_reference(readings(), ["buffer"]), now)
    return compared


def test_the_same_readings_have_not_moved() -> None:
    compared = compare_buffer(readings())
    assert (compared["stabilityIndex"], compared["moved"]) == (0, False)


def test_shifted_or_missing_readings_have_moved() -> None:
    assert compare_buffer(readings(shift=1))["moved"]
    blank = readings().with_columns(buffer=pl.when(pl.int_range(pl.len()) % 2 == 0).then("buffer"))
    assert compare_buffer(blank)["moved"]


def test_coverage_that_fell_by_a_tenth_has_moved() -> None:
    compared = compare_buffer(readings(coverage="0.9"))
    assert (compared["coverageThen"], compared["coverageNow"], compared["moved"]) == (1, 0.9, True)
    assert not compare_buffer(readings(coverage="0.95"))["moved"]


def test_outcomes_outside_the_interval_of_chance_have_moved() -> None:
    defaulted = np.repeat([1, 0], [10, 90]).astype(np.int8)
    assert not compare_default_rates(np.full(100, 0.08), defaulted)["moved"]
    compared = compare_default_rates(np.full(100, 0.02), defaulted)
    assert (compared["predicted"], compared["observed"], compared["moved"]) == (0.02, 0.1, True)
    assert compared["observedInterval"] == [0.0552, 0.1744]  # as scipy's binomtest computes it


def test_the_interval_of_none_and_of_all_ends_at_the_share() -> None:
    none, every = (
        compare_default_rates(np.full(10, 0.5), np.full(10, outcome, np.int8))["observedInterval"] for outcome in (0, 1)
    )
    assert (none, every) == ([0.0, 0.2775], [0.7225, 1.0])
