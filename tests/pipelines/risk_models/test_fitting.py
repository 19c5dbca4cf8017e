"""A fit finds the signal in the data, measures its own quality honestly, and is a monotone scorecard."""

from collections.abc import Mapping
from decimal import Decimal
from functools import cache

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from pipelines.scorecards import measures, scorecard_file
from pipelines.scorecards.fitting import Prior, fit
from pipelines.scorecards.scorecard import COVERAGE, COVERAGE_OF, READING, Scorecard
from pipelines.vocabulary.errors import Unprocessable

pytestmark = pytest.mark.slow  # cross-validated fits

CASES = 400
PRIORS = {
    "signal": Prior("Signal", "More is better.", more_is_better=True),
    "noise": Prior("Noise", "Nothing to do with it."),
    "backwards": Prior("Backwards", "Known to be bad, though here it goes with good.", more_is_better=False),
    "rarely": Prior("Rarely known", "Missing where things are bad."),
    "constant": Prior("Constant", "Always the same."),
}


@cache
def a_portfolio() -> tuple[pl.DataFrame, NDArray[np.int8], NDArray[np.float64]]:
    """Return readings, who defaulted, and the true log-odds."""
    draws = np.random.default_rng(3)
    signal, noise = draws.normal(size=CASES), draws.normal(size=CASES)
    odds = -1.6 - 1.5 * signal
    defaulted = (draws.random(CASES) < 1 / (1 + np.exp(-odds))).astype(np.int8)
    rarely = np.where(draws.random(CASES) < 0.2 + 0.5 * defaulted, np.nan, draws.normal(size=CASES))
    columns = {
        "signal": np.exp(3 * signal),  # skewed: ranks don't mind
        "noise": noise,
        "backwards": signal + draws.normal(size=CASES),
        "rarely": rarely,
        "constant": np.ones(CASES),
    }
    return pl.DataFrame(columns).fill_nan(None), defaulted, odds


@cache
def a_fit() -> Scorecard:
    readings, defaulted, _ = a_portfolio()
    return fit(readings, defaulted, PRIORS, np.zeros(CASES), "client", "test")


def test_the_fit_is_nearly_as_good_as_the_true_odds() -> None:
    _, defaulted, odds = a_portfolio()
    best = measures.auc(defaulted, odds)
    facts = a_fit().facts
    assert best - 0.05 < facts["auc"] <= best + 0.06  # missing data tell something, too
    low, high = facts["aucInterval"]
    assert low < facts["auc"] < high
    assert facts["brier"] < facts["brierOfBaseRate"]
    assert facts["defaultScorecardAuc"] == 0.5
    assert max(a_fit().features, key=lambda feature: feature.most).metric == "signal"


def test_contradicting_and_constant_features_are_left_out() -> None:
    assert {feature.metric for feature in a_fit().features} <= {"signal", "noise", "rarely"}


def test_missing_data_never_help() -> None:
    [rarely] = [feature for feature in a_fit().features if feature.metric == "rarely"]
    assert rarely.missing < min(band.points for band in rarely.bands)


def test_points_agree_with_the_regression() -> None:
    """Recompute the regression from the coefficients in the file, with ranks counted by hand."""
    readings, _, _ = a_portfolio()
    facts = a_fit().facts
    intercept, *columns = facts["coefficients"]
    odds = np.full(CASES, intercept["coefficient"])
    for each in columns:
        values = readings[each["column"]].to_list()
        found = np.array(
            [each["imputedRank"] if value is None else _rank(readings, each["column"], value) for value in values]
        )
        if each["of"] == "missing":
            found = np.array([float(value is None) for value in values])
        odds += each["coefficient"] * (found - each["mean"]) / each["scale"]
    slugs = [feature.metric for feature in a_fit().features]
    covered = (pl.lit(1, COVERAGE).alias(COVERAGE_OF + slug) for slug in slugs)
    decimals = readings.select(pl.col(slugs).cast(READING), *covered)
    by_points = a_fit().scored(decimals)["value"].cast(pl.Float64).to_numpy()
    assert np.abs(by_points - 1 / (1 + np.exp(-odds))).max() < 0.005


def _rank(readings: pl.DataFrame, name: str, value: float) -> float:
    """Return the share of the known cases in worse bands, plus half of the own band's."""
    known = sorted(each for each in readings[name].round(4).to_list() if each is not None)
    limits = sorted({known[-(-(len(known) - 1) * tenth // 10)] for tenth in range(1, 10)} - {known[0]})
    band = sum(round(value, 4) >= limit for limit in limits)
    bands = [sum(each >= limit for limit in limits) for each in known]
    below, own = sum(each < band for each in bands), sum(each == band for each in bands)
    return float(below + own / 2) / len(known)


def test_probabilities_agree_with_observed_frequencies() -> None:
    table = a_fit().facts["calibrationTable"]
    assert len(table) == 10
    assert sum(each["cases"] for each in table) == 5 * CASES
    foretold = [each["foretold"] for each in table]
    assert foretold == sorted(foretold)
    gap = sum(abs(each["foretold"] - each["defaulted"]) for each in table) / 10
    assert gap < 0.08


def test_the_same_cases_give_the_same_file() -> None:
    readings, defaulted, _ = a_portfolio()
    again = fit(readings, defaulted, PRIORS, np.zeros(CASES), "client", "test")
    assert scorecard_file.dumps(again) == scorecard_file.dumps(a_fit())


def refused(defaulted: NDArray[np.int8], readings: pl.DataFrame | None = None) -> str:
    columns = a_portfolio()[0] if readings is None else readings
    known: Mapping[str, Prior] = {name: Prior(name, name) for name in columns.columns}
    with pytest.raises(Unprocessable) as raised:
        fit(columns, defaulted, known, np.zeros(CASES), "client", "test")
    return raised.value.detail


def test_outcomes_of_one_class_or_too_few_are_refused() -> None:
    nobody, everybody = np.zeros(CASES, np.int8), np.ones(CASES, np.int8)
    assert "all 400 cases were repaid" in refused(nobody)
    assert "all 400 cases defaulted" in refused(everybody)
    few = nobody.copy()
    few[:19] = 1
    assert "19 of 400 cases defaulted; at least 20" in refused(few)
    assert "only 19 of 400 did not default" in refused(1 - few)


def test_constant_readings_are_refused() -> None:
    some = np.arange(CASES, dtype=np.int64).astype(np.int8) % 2
    blank = pl.DataFrame({"a": [1.0] * CASES, "b": [None] * CASES}, schema={"a": pl.Float64, "b": pl.Float64})
    assert "no reading differs" in refused(some, blank)


def test_exchanged_outcomes_are_refused() -> None:
    readings, defaulted, _ = a_portfolio()
    known = {"signal": PRIORS["signal"]}
    with pytest.raises(Unprocessable, match="exchanged"):
        fit(readings.select("signal"), 1 - defaulted, known, np.zeros(CASES), "client", "test")


class TestTheFile:
    def test_round_trip_keeps_the_scorecard(self) -> None:
        loaded = scorecard_file.loads(scorecard_file.dumps(a_fit()))
        assert (loaded.features, loaded.link, loaded.facts) == (a_fit().features, a_fit().link, a_fit().facts)
        assert loaded.version == scorecard_file.fingerprint(a_fit())[:12]

    @pytest.mark.parametrize(
        ("old", "new"), [(b"tidemark-risk-1", b"tidemark-risk-9"), (b'"missing": "', b'"missing": "1'), (b"{", b"[")]
    )
    def test_changed_file_is_refused(self, old: bytes, new: bytes) -> None:
        file = scorecard_file.dumps(a_fit())
        assert old in file
        with pytest.raises(Unprocessable, match="can't be used"):
            scorecard_file.loads(file.replace(old, new, 1))

    def test_file_of_another_kind_is_refused(self) -> None:
        for file in (b"", b"null", b"{}", b'{"fingerprint": 1, "format": "tidemark-risk-1"}', b"\xff\xfe"):
            with pytest.raises(Unprocessable, match="can't be used"):
                scorecard_file.loads(file)


def test_auc_ks_and_brier_agree_with_counting_by_hand() -> None:
    defaulted = np.array([1, 0, 1, 0, 0], np.int8)
    risk = np.array([0.9, 0.8, 0.4, 0.4, 0.1])
    pairs = [(one, two) for one in (0.9, 0.4) for two in (0.8, 0.4, 0.1)]
    wins = sum(1 if one > two else 0.5 if one == two else 0 for one, two in pairs)
    assert measures.auc(defaulted, risk) == pytest.approx(wins / len(pairs))
    assert measures.brier(defaulted, risk) == pytest.approx((0.01 + 0.64 + 0.36 + 0.16 + 0.01) / 5)
    assert measures.ks(defaulted, risk) == pytest.approx(0.5)  # between 0.9 and 0.8
    assert Decimal(str(measures.calibration_table(defaulted, risk)[0]["foretold"])) == Decimal("0.1")
