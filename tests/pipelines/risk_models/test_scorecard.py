"""Readings earn points and points give a probability: exact, monotone, and leaving data out earns nothing."""

from decimal import ROUND_DOWN, Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.metrics import METRICS
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.scorecard import POINTS, Band, Feature, Link, Scorecard
from tests.pipelines.risk_models.examples import (
    Readings,
    any_coverage,
    any_reading,
    any_readings,
    frame,
    total_by_hand,
    value_by_hand,
)
from tests.root import ROOT

D = Decimal


def a_feature(**others: object) -> Feature:
    usual = {"metric": "buffer_days_180d", "more_is_better": True, "reason": "Why."}
    bands = (Band(D(30), D(5)), Band(D(7), D(2)), Band(None, D(0)))
    return Feature(**{**usual, "bands": bands, **others})  # pyrefly: ignore[bad-argument-type]


def a_scorecard(*features: Feature, link: Link = DEFAULT.link) -> Scorecard:
    return Scorecard("tiny", "1", "none", features, link)


def test_a_reading_earns_the_points_of_the_first_band_it_reaches() -> None:
    readings = [D("30"), D("29.9999"), D("7"), D("6.9999"), D("-3"), None]
    read = frame(*({"buffer_days_180d": reading} for reading in readings))
    scored = a_scorecard(a_feature()).score(read)
    assert scored["points_of_buffer_days_180d"].to_list() == [5, 2, 2, 0, 0, 0]
    assert [a_feature().points_of(reading) for reading in readings] == [5, 2, 2, 0, 0, 0]


def test_worth_runs_in_a_straight_line_between_limits() -> None:
    bands = (Band(D(30), D(5)), Band(D(10), D(2)), Band(D(0), D(0)), Band(None, D(0)))
    feature = a_feature(bands=bands, stepped=False)
    readings = [D("31"), D("30"), D("20"), D("10"), D("5"), D("0"), D("-3"), None]
    assert [feature.points_of(reading) for reading in readings] == [5, 5, D("3.5"), 2, 1, 0, 0, 0]
    assert feature.points_of(D("20"), D("0.5")) == D("1.75")


def test_a_line_ends_where_its_last_limit_does() -> None:
    with pytest.raises(ValueError, match="the last band must continue"):
        a_scorecard(a_feature(stepped=False))


def test_what_is_not_expected_counts_on_neither_side() -> None:
    both = a_scorecard(a_feature(), a_feature(metric="min_balance_days_180d"))
    read = {"buffer_days_180d": D(7), "min_balance_days_180d": D(30)}
    [scored] = both.score(frame(read, coverage={"buffer_days_180d": D(1), "min_balance_days_180d": None})).to_dicts()
    assert (scored["earned"], scored["expected"], scored["covered"], scored["points"]) == (2, 5, 1, 4)
    nothing = both.score(frame(read, coverage=dict.fromkeys(read)))
    assert nothing.select("points", "covered").row(0) == (0, 0)


def test_where_less_is_better_limits_are_reached_from_below() -> None:
    bands = (Band(D(0), D(5)), Band(D("0.1"), D(2)), Band(None, D(0)))
    feature = a_feature(more_is_better=False, bands=bands)
    assert [feature.points_of(D(each)) for each in ("-1", "0", "0.0001", "0.1", "0.1001")] == [5, 5, 2, 2, 0]


def test_a_move_ends_at_the_nearest_reading_of_the_band() -> None:
    assert list(a_feature().moves()) == [
        (D(5), D(30), None),
        (D(2), D(7), D("29.9999")),
        (D(0), None, D("6.9999")),
    ]


@pytest.mark.parametrize(
    ("feature", "fault"),
    [
        (a_feature(bands=(Band(D(7), D(2)), Band(D(30), D(5)), Band(None, D(0)))), "limits must run"),
        (a_feature(bands=(Band(D(30), D(2)), Band(D(7), D(2)), Band(None, D(0)))), "points must fall"),
        (a_feature(bands=(Band(D(30), D(2)), Band(D(7), D(1)))), "only the last band"),
        (a_feature(bands=(Band(D(30), D(2)), Band(None, D(-1)))), "must not be negative"),
        (a_feature(more_is_better=False), "limits must run"),
    ],
)
def test_a_scorecard_that_is_not_monotone_is_refused(feature: Feature, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        a_scorecard(feature)


def test_a_metric_counts_once_and_more_points_lower_the_odds() -> None:
    with pytest.raises(ValueError, match=r"counts twice; more points must lower"):
        a_scorecard(a_feature(), a_feature(), link=Link(D(20), D(-1)))


@pytest.mark.parametrize(
    ("points", "value"), [(100, "0.0051"), (80, "0.0202"), (60, "0.0762"), (24, "0.5000"), (0, "0.8407")]
)
def test_ten_points_more_halve_the_odds(points: int, value: str) -> None:
    assert str(DEFAULT.link.value(D(points))) == value
    assert value_by_hand(DEFAULT, D(points)) == D(value)


def test_extreme_points_give_probabilities_of_0_and_1() -> None:
    assert DEFAULT.link.value(D(10) ** 9) == 0
    assert DEFAULT.link.value(D(-(10**9))) == 1


def test_values_agree_with_value() -> None:
    points = pl.Series([D("0.00"), D("55.55"), None, D("100.00"), D("55.55")], dtype=POINTS)
    assert DEFAULT.link.values(points).to_list() == [
        None if each is None else DEFAULT.link.value(each) for each in points
    ]


@given(any_readings(DEFAULT), any_coverage(DEFAULT))
def test_points_and_value_agree_with_counting_by_hand(readings: Readings, coverage: Readings) -> None:
    [scored] = DEFAULT.score(frame(readings, coverage=coverage)).to_dicts()
    assert scored["points"] == total_by_hand(DEFAULT, readings, coverage)
    assert scored["value"] == value_by_hand(DEFAULT, scored["points"])
    expected = [each for each in DEFAULT.features if coverage[each.metric] is not None]
    covered = sum((each.max_points * (coverage[each.metric] or D(0)) for each in expected), D(0))
    share = covered / max(sum((each.max_points for each in expected), D(0)), D(1))
    assert scored["covered"] == share.quantize(D("0.0001"), ROUND_DOWN)


@given(any_readings(DEFAULT), st.data())
def test_less_coverage_never_helps(readings: Readings, data: st.DataObject) -> None:
    share = st.integers(0, 10_000).map(lambda number: D(number).scaleb(-4))
    more = {slug: data.draw(share) for slug in readings}
    less = {slug: each * data.draw(share).quantize(D("0.01")) for slug, each in more.items()}
    points = [DEFAULT.score(frame(readings, coverage=each))["points"].item() for each in (less, more)]
    assert points[0] <= points[1]


@given(st.data())
def test_a_better_reading_never_raises_the_value(data: st.DataObject) -> None:
    readings = dict(data.draw(any_readings(DEFAULT)))
    feature = data.draw(st.sampled_from(DEFAULT.features))
    known = any_reading(feature).filter(lambda reading: reading is not None)
    worse, better = sorted(data.draw(st.tuples(known, known)), reverse=not feature.more_is_better)  # pyrefly: ignore[no-matching-overload]
    before, after = DEFAULT.score(frame({**readings, feature.metric: worse}, {**readings, feature.metric: better}))[
        "value"
    ]
    assert after <= before


@given(any_readings(DEFAULT), st.sets(st.sampled_from([feature.metric for feature in DEFAULT.features])))
def test_a_missing_reading_never_helps(readings: Readings, missing: set[str]) -> None:
    less = {name: None if name in missing else reading for name, reading in readings.items()}
    with_all, without = DEFAULT.score(frame(readings, less))["value"]
    assert without >= with_all


class TestTheDefault:
    def test_has_a_hundred_points(self) -> None:
        assert DEFAULT.max_points == 100

    def test_counts_have_steps_and_all_else_runs_in_lines(self) -> None:
        counts = {each.metric for each in DEFAULT.features if METRICS[each.metric].unit in ("count", "months")}
        assert {each.metric for each in DEFAULT.features if each.stepped} == counts

    def test_reads_about_twenty_registry_metrics(self) -> None:
        slugs = {feature.metric for feature in DEFAULT.features}
        assert slugs <= METRICS.keys()
        assert 18 <= len(slugs) <= 26

    @pytest.mark.parametrize("feature", DEFAULT.features, ids=lambda feature: feature.metric)
    def test_agrees_with_the_registry_on_what_is_better(self, feature: Feature) -> None:
        better = {"higher_is_better": True, "lower_is_better": False, "neutral": feature.more_is_better}
        assert feature.more_is_better == better[METRICS[feature.metric].direction]

    @pytest.mark.parametrize("feature", DEFAULT.features, ids=lambda feature: feature.metric)
    def test_missing_readings_earn_nothing_and_reasons_are_given(self, feature: Feature) -> None:
        assert feature.missing == feature.bands[-1].points == 0
        assert len(feature.reason) > 30
        assert (feature.step == 1) == (METRICS[feature.metric].unit in ("count", "months"))

    @pytest.mark.parametrize("feature", DEFAULT.features, ids=lambda feature: feature.metric)
    def test_documentation_lists_bands_and_reasons(self, feature: Feature) -> None:
        sign = "≥" if feature.more_is_better else "≤"
        bands = ", ".join(f"{band.points} at {sign} {band.limit}" for band in feature.bands[:-1])
        document = (ROOT / "docs" / "explanation" / "risk.md").read_text()
        assert f"| `{feature.metric}` | {bands} | {feature.reason} |" in document

    def test_is_not_calibrated(self) -> None:
        assert DEFAULT.calibration == "none"
