"""Drift: how far readings, their coverage and outcomes differ from those of the cases that a scorecard was fitted to.

Readings are compared by the population stability index. Its classes are tenths of the cases that the scorecard was
fitted to, and one more for a missing reading. Readings are commonly called stable if the index is below 0.10, and moved
from MOVED on.
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from pipelines.scorecards.measures import Outcomes, Values
from pipelines.scorecards.scorecard import COVERAGE_OF

MOVED = 0.25  # the usual line of the population stability index
MOVED_COVERAGE = 0.10  # our judgement
_TENTHS = np.arange(1, 10) / 10
_Z = NormalDist().inv_cdf(0.975)
_MIN_SHARE = 0.001  # share of a class; the index is not defined for an empty one


def make_reference(readings: pl.DataFrame, metrics: Sequence[str]) -> dict[str, Any]:
    """Return what `compare_readings` needs of each metric: limits of tenths, shares of the classes, mean coverage.

    Args:
        readings: each metric's readings, and their coverage in COVERAGE_OF + metric.
    """
    return {metric: _summarise(readings, metric) for metric in metrics}


def _summarise(readings: pl.DataFrame, metric: str) -> dict[str, Any]:
    known = _known_readings(readings, metric)
    limits = np.unique(np.quantile(known, _TENTHS)).round(4).tolist() if known.size else []
    return {
        "limits": limits,
        "shares": [round(float(share), 4) for share in _shares(readings, metric, limits)],
        "coverage": _coverage(readings, metric),
    }


def compare_readings(reference: Mapping[str, Any], readings: pl.DataFrame) -> list[dict[str, Any]]:
    """Compare readings with a `make_reference`, metric by metric, the most moved first; return [] without cases."""
    if readings.is_empty():
        return []
    compared = [_compare_metric(metric, each, readings) for metric, each in reference.items()]
    return sorted(compared, key=lambda each: -each["stabilityIndex"])


def _compare_metric(metric: str, reference: Mapping[str, Any], readings: pl.DataFrame) -> dict[str, Any]:
    before = np.array(reference["shares"]).clip(min=_MIN_SHARE)
    now = _shares(readings, metric, reference["limits"]).clip(min=_MIN_SHARE)
    index = round(float(((now - before) * np.log(now / before)).sum()), 4)
    coverage = _coverage(readings, metric)
    return {
        "metric": metric,
        "stabilityIndex": index,
        "coverageThen": reference["coverage"],
        "coverageNow": coverage,
        "moved": index >= MOVED or _has_moved(reference["coverage"], coverage),
    }


def _has_moved(before: float | None, now: float | None) -> bool:
    """Return whether the coverage has moved. It is None if the evidence is not expected: becoming so counts, too."""
    if before is None or now is None:
        return before != now
    return round(abs(now - before), 4) >= MOVED_COVERAGE


def compare_default_rates(values: Values, defaulted: Outcomes) -> dict[str, Any]:
    """Compare the mean predicted value with the share that defaulted and with its 95 % interval (Wilson)."""
    low, high = _wilson_interval(float(defaulted.mean()), defaulted.size)
    predicted = float(values.mean())
    return {
        "cases": int(defaulted.size),
        "predicted": round(predicted, 4),
        "observed": round(float(defaulted.mean()), 4),
        "observedInterval": [round(low, 4), round(high, 4)],
        "moved": not low <= predicted <= high,
    }


def _known_readings(readings: pl.DataFrame, metric: str) -> Values:
    return readings[metric].drop_nulls().cast(pl.Float64).to_numpy()


def _shares(readings: pl.DataFrame, metric: str, limits: Sequence[float]) -> Values:
    """Return the share of the cases in each class: up to each limit, above the last, and missing."""
    known = _known_readings(readings, metric)
    counts = np.bincount(np.searchsorted(limits, known), minlength=len(limits) + 1)
    shares: Values = np.append(counts, readings.height - known.size) / max(1, readings.height)
    return shares


def _coverage(readings: pl.DataFrame, metric: str) -> float | None:
    mean = readings[COVERAGE_OF + metric].cast(pl.Float64).mean()
    return None if mean is None else round(float(mean), 4)  # pyrefly: ignore[bad-argument-type]


def _wilson_interval(share: float, cases: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of `cases` cases (Wilson 1927)."""
    spread = _Z * _Z / cases
    middle = (share + spread / 2) / (1 + spread)
    half = _Z / (1 + spread) * sqrt(share * (1 - share) / cases + spread / (4 * cases))
    return max(middle - half, 0.0), min(middle + half, 1.0)
