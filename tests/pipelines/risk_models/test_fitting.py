"""A fit corrects the default scorecard by a few slopes, judges itself on unseen customers, and stays monotone."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cache

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from pipelines.scorecards import comparison, correction, fitting, judging, measures, scorecard_file, unseen
from pipelines.scorecards.calibrating import calibrate
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.fitting import fit
from pipelines.scorecards.scorecard import COVERAGE, COVERAGE_OF, POINTS, READING, Scorecard
from pipelines.scorecards.training import Prior, TrainingCases
from pipelines.vocabulary.errors import Unprocessable

CASES = 240
METRICS = [feature.metric for feature in DEFAULT.features]
BUFFER, BOUNCED, TREND = "buffer_days_180d", "dishonours_per_month_180d", "revenue_trend_90d"
PRIORS = {
    "loan": Prior("Loan", "Given with the outcomes."),
    "backwards": Prior("Backwards", "Known to be bad, though here it goes with good.", more_is_better=False),
    "constant": Prior("Constant", "Always the same."),
}


@cache
def a_portfolio(seed: int = 3, loan: float = 1.5, cases: int = CASES) -> TrainingCases:
    """Return cases that default by their buffer, which the scorecard reads, and their loan, which it doesn't."""
    draws = np.random.default_rng(seed)
    health, size = draws.normal(size=cases), draws.normal(size=cases)
    odds = -1.6 - 1.2 * health + loan * size
    known = {
        feature.metric: np.full(cases, float(feature.bands[0].limit or 0))
        for feature in DEFAULT.features  # as good as can be
    } | {
        BUFFER: (15 + 10 * health).round(2),
        BOUNCED: (0.4 - 0.3 * health + 0.2 * draws.normal(size=cases)).clip(0).round(2),
        TREND: (0.8 + 0.2 * draws.normal(size=cases)).round(2),
    }
    readings = pl.DataFrame(known).select(pl.all().cast(READING))
    covered = readings.with_columns(pl.lit(Decimal(1), COVERAGE).alias(COVERAGE_OF + name) for name in readings.columns)
    further = {"loan": np.exp(3 * size), "backwards": draws.normal(size=cases) - odds, "constant": np.ones(cases)}
    return TrainingCases(
        scored=DEFAULT.score(covered),
        further=pl.DataFrame(further),
        priors=PRIORS,
        defaulted=(draws.random(cases) < 1 / (1 + np.exp(-odds))).astype(np.int8),
        customers=np.arange(cases),
    )


@cache
def a_fit() -> Scorecard:
    return fit(a_portfolio(), "client", "test")


@pytest.fixture(autouse=True)
def few_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeat the cross-validation less often: nothing here depends on it, and it takes most of the time."""
    monkeypatch.setattr(unseen, "REPEATS", 1)
    monkeypatch.setattr(correction, "REPEATS", 1)
    monkeypatch.setattr(measures, "RESAMPLES", 200)
    monkeypatch.setattr(correction, "SPREADS", (0.4,))


def values(scorecard: Scorecard, training: TrainingCases) -> NDArray[np.float64]:
    loan = [pl.col("loan").cast(READING), pl.lit(Decimal(1), COVERAGE).alias(COVERAGE_OF + "loan")]
    read = pl.concat([training.scored, training.further.select(loan)], how="horizontal")
    return scorecard.score(read)["value"].cast(pl.Float64).to_numpy()


def most(training: TrainingCases) -> int:
    return correction.most_slopes(training.defaulted) - 1


def without_loan(training: TrainingCases) -> TrainingCases:
    return replace(training, priors={name: prior for name, prior in PRIORS.items() if name != "loan"})


@pytest.mark.service  # one more whole fit
def test_what_the_scorecard_does_not_know_makes_the_fit_better() -> None:
    facts = a_fit().facts
    assert facts["comparison"]["better"]
    assert facts["comparison"]["lowerIn"] >= comparison.MIN_LOWER
    assert facts["auc"] > facts["defaultScorecardAuc"] + 0.05
    low, high = facts["aucInterval"]
    assert low < facts["auc"] < high
    assert "loan" in {feature.metric for feature in a_fit().features}


@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.service) for seed in (3, 4))])
def test_without_anything_to_learn_the_fit_is_near_the_recalibrated_default_and_not_better(seed: int) -> None:
    draws = np.random.default_rng(seed)
    training = a_portfolio()
    odds = training.log_odds()
    likely = 1 / (1 + np.exp(1.2 - 1.5 * (odds - odds.mean()) / odds.std()))
    exact = replace(without_loan(training), defaulted=(draws.random(CASES) < likely).astype(np.int8))
    assert not fit(exact, "client", "test").facts["comparison"]["better"]
    alone = correction.recalibrate(exact.log_odds(), exact.defaulted)
    recalibrated = alone.intercept + alone.slope * exact.log_odds()
    assert np.corrcoef(fitting._fit(exact, most(exact)).log_odds(exact), recalibrated)[0, 1] > 0.9


def test_slopes_are_no_more_than_a_tenth_of_the_defaults() -> None:
    few = a_portfolio(seed=5, loan=0.5, cases=130)
    assert 20 <= few.defaulted.sum() < 40
    assert fit(few, "client", "test").facts["slopes"] <= few.defaulted.sum() // 10
    assert a_fit().facts["slopes"] <= a_portfolio().defaulted.sum() // 10


def test_no_correction_of_a_path_has_a_sign_against_what_is_known() -> None:
    draws = np.random.default_rng(4)
    columns = draws.normal(size=(200, 8))
    odds = -1.5 + columns @ np.linspace(1, -1, 8)
    cases = correction.Cases(
        scorecard=-odds / 4 - 2,  # contradicts the outcomes
        columns=columns,
        own=3,
        least=np.zeros(8),
        defaulted=(draws.random(200) < 1 / (1 + np.exp(-odds))).astype(np.int8),
        customers=np.arange(200),
    )
    found = correction.fit_corrections(cases, 7)
    assert found[0].slope == 0
    assert max(each.slopes for each in found) <= 8
    assert max(np.count_nonzero(each.weights[3:]) for each in found) > 1
    assert all((each.weights >= 0).all() for each in found)


def test_all_cases_of_a_customer_are_in_one_fold() -> None:
    customers = np.repeat(np.arange(40), 3)
    defaulted = np.tile([0, 0, 1, 0, 0, 0], 20).astype(np.int8)
    parts = list(correction.folds(customers, defaulted, 5, 1))
    assert (np.sum(parts, axis=0) == 1).all()
    for part in parts:
        assert not set(customers[part]) & set(customers[~part])
        assert defaulted[part].sum() == 4


def test_contradicting_and_constant_readings_are_left_out() -> None:
    assert not {"backwards", "constant"} & {feature.metric for feature in a_fit().features}


def test_missing_data_never_help() -> None:
    assert all(feature.missing == feature.bands[-1].points == 0 for feature in a_fit().features)


def test_points_lead_back_to_the_log_odds_of_the_correction() -> None:
    odds = fitting._fit(a_portfolio(), most(a_portfolio())).log_odds(a_portfolio())
    assert np.abs(values(a_fit(), a_portfolio()) - 1 / (1 + np.exp(-odds))).max() < 0.005


@pytest.mark.service  # one more whole fit
def test_evidence_that_is_not_expected_counts_on_neither_side() -> None:
    training = a_portfolio()
    read = training.scored.select(name for slug in METRICS for name in (slug, COVERAGE_OF + slug))
    fewer = read.with_columns(pl.lit(None, COVERAGE).alias(COVERAGE_OF + TREND))
    seen = replace(training, scored=DEFAULT.score(fewer))
    odds = fitting._fit(seen, most(seen)).log_odds(seen)
    assert np.abs(values(fit(seen, "client", "test"), seen) - 1 / (1 + np.exp(-odds))).max() < 0.005


def test_calibration_changes_the_link_alone_and_is_judged_by_its_probabilities() -> None:
    training = a_portfolio()
    found = calibrate(training, "client", "test")
    assert found.features == DEFAULT.features
    alone = correction.recalibrate(training.log_odds(), training.defaulted)
    expected = 1 / (1 + np.exp(-alone.intercept - alone.slope * training.log_odds()))
    assert np.abs(values(found, training) - expected).max() < 0.001
    comparison = found.facts["comparison"]
    assert (comparison["better"], comparison["aucChange"]) == (True, None)


def test_calibration_that_changes_nothing_is_not_better() -> None:
    """The outcomes are drawn from the default scorecard's own probabilities."""
    training = a_portfolio(seed=6)
    likely = 1 / (1 + np.exp(-2 * training.log_odds() - 7))
    odds = np.log(likely / (1 - likely))
    scored = training.scored.with_columns(points=pl.Series(30 - 10 * odds / np.log(2)).cast(POINTS))
    drawn = (np.random.default_rng(1).random(CASES) < likely).astype(np.int8)
    assert not calibrate(replace(training, scored=scored, defaulted=drawn), "client", "t").facts["comparison"]["better"]


def test_the_same_cases_give_the_same_file() -> None:
    assert scorecard_file.dumps(fit(a_portfolio(), "client", "test")) == scorecard_file.dumps(a_fit())


def fit_refused(defaulted: NDArray[np.int8], **others: object) -> str:
    with pytest.raises(Unprocessable) as raised:
        fit(replace(a_portfolio(), defaulted=defaulted, **others), "client", "test")  # pyrefly: ignore[bad-argument-type]
    return raised.value.detail


def test_outcomes_of_one_class_or_too_few_are_refused() -> None:
    nobody, everybody = np.zeros(CASES, np.int8), np.ones(CASES, np.int8)
    assert "all 240 cases were repaid" in fit_refused(nobody)
    assert "all 240 cases defaulted" in fit_refused(everybody)
    few = nobody.copy()
    few[:19] = 1
    assert "19 of 240 cases defaulted; at least 20" in fit_refused(few)
    assert "only 19 of 240 did not default" in fit_refused(1 - few)


def test_cases_that_all_have_the_same_points_are_refused() -> None:
    some = (np.arange(CASES) % 2).astype(np.int8)
    one = a_portfolio().scored.head(1)
    assert "all cases the same points" in fit_refused(some, scored=pl.concat([one] * CASES))


def test_exchanged_outcomes_are_refused() -> None:
    assert "exchanged" in fit_refused(1 - a_portfolio().defaulted)


class TestBetter:
    truth = np.tile(np.array([1, 0, 0, 0], np.int8), 50)
    customers = np.arange(200)

    def compare(self, one: NDArray[np.float64], other: NDArray[np.float64]) -> Mapping[str, object]:
        return judging.compare(one[None], other[None], self.truth, self.customers, 1)

    def test_is_a_lower_loss_in_most_bootstraps(self) -> None:
        base, good = np.full(200, np.log(1 / 3)), np.where(self.truth == 1, 0.5, -1.5)
        found = self.compare(good, base)
        assert (found["better"], found["lowerIn"]) == (True, 1)
        assert not self.compare(base, good)["better"]
        assert not self.compare(base, base)["better"]

    def test_is_refused_if_it_ranks_worse(self) -> None:
        """The loss falls because the level is right, though the ranks are lost."""
        ranks = np.where(self.truth == 1, -4.5, -5.0)
        found = self.compare(np.full(200, np.log(1 / 3)), ranks)
        assert found["lowerIn"] == 1
        assert not found["better"]

    def test_customers_are_drawn_with_all_of_their_cases(self) -> None:
        differences = np.array([-1.0, 1.0] * 20)
        assert measures.bootstrap_share_lower(differences, np.arange(40), 1) == pytest.approx(0.5, abs=0.15)
        assert measures.bootstrap_share_lower(differences - 0.01, np.repeat(np.arange(20), 2), 1) == 1

    def test_is_said_in_a_sentence(self) -> None:
        sentence = comparison.describe_comparison({"against": "other", **self.compare(np.zeros(200), np.zeros(200))})
        assert sentence.startswith("not better than the other: log loss on unseen customers 0.6931, not 0.6931")


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
    assert Decimal(str(measures.calibration_table(defaulted, [risk])[0]["predicted"])) == Decimal("0.1")


def test_tenths_count_each_case_once_however_often_it_was_forecast() -> None:
    defaulted = np.array([0, 1] * 6, np.int8)
    forecasts = [np.arange(12) / 20, np.arange(12) / 20 + 0.001]
    table = measures.calibration_table(defaulted, forecasts)
    assert [each["cases"] for each in table] == [2, 2, *[1] * 8]
    assert table[0] == {"tenth": 1, "cases": 2, "predicted": 0.0255, "defaulted": 0.5}
    assert table[-1]["predicted"] == 0.5505


@pytest.mark.service  # its fit has more columns than any other
def test_many_readings_that_each_say_a_little_are_one_column() -> None:
    """One of them alone helps little, and a slope for each would take more outcomes than there are."""
    draws = np.random.default_rng(6)
    training, cause = a_portfolio(seed=7, loan=0.0), draws.normal(size=CASES)
    scorecard = training.log_odds()
    odds = -1.4 - 1.8 * cause + 0.7 * (scorecard - scorecard.mean()) / scorecard.std()
    little = {f"little {n}": cause + 2.5 * draws.normal(size=CASES) for n in range(12)}
    exact = replace(
        training,
        further=pl.DataFrame(little),
        priors={name: Prior(name, "Says a little.", more_is_better=True) for name in little},
        defaulted=(draws.random(CASES) < 1 / (1 + np.exp(-odds))).astype(np.int8),
    )
    found = fit(exact, "client", "test")
    assert found.facts["comparison"]["better"]
    columns = [each["column"] for each in found.facts["coefficients"]]
    assert "mean rank of all readings with a known direction" in columns
    read = [
        each
        for name in little
        for each in (pl.col(name).cast(READING), pl.lit(Decimal(1), COVERAGE).alias(COVERAGE_OF + name))
    ]
    scored = found.score(pl.concat([exact.scored, exact.further.select(read)], how="horizontal"))
    odds_of_points = np.log(1 / scored["value"].cast(pl.Float64).to_numpy() - 1)
    expected = fitting._fit(exact, most(exact)).log_odds(exact)
    assert np.abs(odds_of_points + expected).max() < 0.05
