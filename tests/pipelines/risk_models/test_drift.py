"""Drift of readings, of coverage, and of outcomes from what a scorecard was fitted to."""

from decimal import Decimal

import numpy as np
import polars as pl

from pipelines.scorecards.drift import drift, predicted_and_observed, reference
from pipelines.scorecards.scorecard import COVERAGE, COVERAGE_OF, READING


def readings(shift: float = 0, coverage: str = "1") -> pl.DataFrame:
    values = np.random.default_rng(1).normal(size=500) + shift
    return pl.DataFrame({"buffer": values}).select(
        pl.col("buffer").cast(READING), pl.lit(Decimal(coverage), COVERAGE).alias(COVERAGE_OF + "buffer")
    )


def moved(now: pl.DataFrame) -> dict[str, object]:
    [found] = drift(reference(readings(), ["buffer"]), now)
    return found


def test_the_same_readings_have_not_moved() -> None:
    found = moved(readings())
    assert (found["stabilityIndex"], found["moved"]) == (0, False)


def test_shifted_or_missing_readings_have_moved() -> None:
    assert moved(readings(shift=1))["moved"]
    blank = readings().with_columns(buffer=pl.when(pl.int_range(pl.len()) % 2 == 0).then("buffer"))
    assert moved(blank)["moved"]


def test_coverage_that_fell_by_a_tenth_has_moved() -> None:
    found = moved(readings(coverage="0.9"))
    assert (found["coverageThen"], found["coverageNow"], found["moved"]) == (1, 0.9, True)
    assert not moved(readings(coverage="0.95"))["moved"]


def test_outcomes_outside_the_interval_of_chance_have_moved() -> None:
    defaulted = np.repeat([1, 0], [10, 90]).astype(np.int8)
    assert not predicted_and_observed(np.full(100, 0.08), defaulted)["moved"]
    found = predicted_and_observed(np.full(100, 0.02), defaulted)
    assert (found["predicted"], found["observed"], found["moved"]) == (0.02, 0.1, True)
