"""The risk report: points agree with counting by hand, missing readings earn none, and every figure is explained."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines import metrics
from pipelines.figures.context import PEERS, ClientPortfolio, Context
from pipelines.figures.facts import Facts
from pipelines.figures.json_text import as_data
from pipelines.figures.lineage import pointer, value_of
from pipelines.reports.risk import explain_risk, risk_report
from pipelines.reports.risk.rating import EVIDENCE_CEILINGS, add_interval, add_rating, rating
from pipelines.reports.risk.sensitivity import sensitivity
from pipelines.risk_models.events import CEILINGS
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.expected import Expected
from pipelines.scorecards.scorecard import POINTS, Band, Feature, Link, Scorecard
from pipelines.vocabulary.errors import NotFound
from pipelines.vocabulary.report_values import RATIO
from tests.conftest import examples
from tests.pipelines.reports.examples import (
    MAIN,
    START,
    Row,
    add_balances,
    any_row,
    facts,
    mark_balances,
    posted_rows,
    report,
    row,
    transactions,
)
from tests.pipelines.risk_models.examples import (
    Readings,
    any_coverage,
    any_readings,
    frame,
    points_by_hand,
    rating_by_hand,
    total_by_hand,
    value_by_hand,
)

Data = dict[str, Any]


def risk(rows: Sequence[Row], days_later: int = 0) -> Data:
    """Return the report as of this many days after the last row."""
    return report("risk", rows, max(each["date"] for each in rows) + timedelta(days=days_later))


def parse_json(text: str) -> Data:
    data: Data = json.loads(text, parse_float=Decimal)
    return data


def readings(data: Data) -> dict[str, Decimal | None]:
    return {driver["metric"]: driver["reading"] for driver in data["drivers"]}


def codes(data: Data) -> list[str]:
    return [error["code"].removeprefix("Risk.") for error in data["errorCodes"]]


def sound_business() -> list[Row]:
    """Return a year of daily takings and costs, no debt, a comfortable balance."""
    rows = [each for day in range(365) for each in _trading_day(day)]
    return mark_balances(add_balances(rows, opening="30000"))


def _trading_day(day: int) -> list[Row]:
    return [row(day, "200", kind="revenue/card_settlement"), row(day, "-150", kind="cost_of_sales/suppliers")]


def test_a_sound_business_earns_all_points_of_its_readings() -> None:
    data = risk(sound_business())
    missing = {driver["metric"] for driver in data["drivers"] if driver["points"] < driver["maxPoints"]}
    assert (
        missing
        == {name for name, reading in readings(data).items() if reading is None}
        <= {"income_concentration_180d"}
    )
    assert data["rating"] == "A"
    assert data["pdConfidenceRating"] == "high"
    assert codes(data) == ["Uncalibrated"]
    assert data["calibration"] == "none"
    assert data["model"] == {"name": "default", "version": "5", "calibration": "none"}


def test_a_driver_shows_its_reading_and_points() -> None:
    driver = next(each for each in risk(sound_business())["drivers"] if each["metric"] == "dishonours_per_month_180d")
    assert driver == {
        "metric": "dishonours_per_month_180d",
        "name": metrics.METRICS["dishonours_per_month_180d"].name,
        "reading": Decimal("0.0000"),
        "unit": "per month",
        "points": Decimal("8.00"),
        "maxPoints": Decimal("8.00"),
        "coverage": Decimal("1.0000"),
        "state": "known",
        "direction": "lower_is_better",
        "peerPercentile": None,
        "reason": "A payment that the bank refused is a promise that the business could not keep.",
    }


def test_a_customer_without_posted_rows_earns_nothing() -> None:
    data = risk([row(0, "5", status="pending")])
    assert (data["value"], data["rating"]) == (value_by_hand(DEFAULT, Decimal(0)), "E")
    assert (data["pdConfidenceScore"], data["pdConfidenceRating"]) == (0, "low")
    assert codes(data) == ["Uncalibrated", "NoTransactions"]
    assert set(readings(data).values()) == {None}


def test_one_row_gives_hardly_any_readings() -> None:
    data = risk([row(0, "5", kind="revenue/card_settlement")])
    assert codes(data) == ["Uncalibrated", "InsufficientHistory", "NoBalances"]
    assert data["rating"] == "E"
    assert data["covered"] < Decimal("0.1")
    assert data["interval"]["high"] > Decimal("0.8") > data["interval"]["low"]


def test_old_data_lower_the_confidence_and_give_a_code() -> None:
    fresh, stale = risk(sound_business()), risk(sound_business(), days_later=91)
    assert stale["value"] == fresh["value"]
    assert fresh["pdConfidenceScore"] - stale["pdConfidenceScore"] == 10
    assert codes(stale) == ["Uncalibrated", "StaleData"]
    assert stale["interval"] == fresh["interval"]


def overdrawn(limit: Decimal | None) -> Data:
    rows = [row(day, "-1", kind="cost_of_sales/suppliers", credit_limit=limit) for day in range(100)]
    return risk(
        add_balances([*rows, row(100, "200", kind="revenue/card_settlement", credit_limit=limit)], opening=-100)
    )


def test_an_approved_overdraft_is_no_distress() -> None:
    assert readings(overdrawn(Decimal(500)))["overdrawn_day_share_180d"] == 0
    assert "LimitUnknown" not in codes(overdrawn(Decimal(500)))


def test_an_overdrawn_account_of_unknown_limit_gives_a_code() -> None:
    data = overdrawn(None)
    share = readings(data)["overdrawn_day_share_180d"]
    assert share is not None
    assert share > Decimal("0.9")
    assert "LimitUnknown" in codes(data)
    [message] = [each["message"] for each in data["errorCodes"] if each["code"] == "Risk.LimitUnknown"]
    assert "on 100 of the last 180 days" in message


def test_uncategorised_rows_earn_no_points_for_absent_distress() -> None:
    categorised, uncategorised = risk(sound_business()), risk(without_words(sound_business()))
    assert "Uncategorised" in codes(uncategorised)
    silent = next(each for each in uncategorised["drivers"] if each["metric"] == "dishonours_per_month_180d")
    assert (silent["reading"], silent["points"], silent["coverage"], silent["state"]) == (0, 0, 0, "unknown")
    assert readings(uncategorised)["buffer_days_180d"] == readings(categorised)["buffer_days_180d"]
    assert uncategorised["value"] > categorised["value"]
    assert uncategorised["covered"] < categorised["covered"]
    assert uncategorised["pdConfidenceScore"] < categorised["pdConfidenceScore"]


def without_words(rows: Sequence[Row]) -> list[Row]:
    return [{**each, "category": "unknown_debit", "category_group": "unknown"} for each in rows]


def test_an_answer_of_the_model_counts_if_it_is_sure() -> None:
    for confidence, counts in ((0.7, True), (0.69, False)):
        rows = [{**each, "category_source": "learned", "confidence": confidence} for each in sound_business()]
        driver = next(each for each in risk(rows)["drivers"] if each["metric"] == "dishonours_per_month_180d")
        assert driver["coverage"] == (1 if counts else 0), confidence


def expecting(rows: Sequence[Row], *names: str) -> Data:
    portfolio = ClientPortfolio(frozenset({1}), expected=Expected.of(names))
    as_of = max(each["date"] for each in rows)
    return parse_json(risk_report(Facts(transactions(rows).collect(), as_of, Context([portfolio])))["data"].item())


def test_evidence_that_is_not_expected_costs_no_points() -> None:
    rows = with_ids(without_words(sound_business()))
    expected, not_expected = risk(rows), expecting(rows, "balances", "accounts", "months")
    assert (expected["rating"], not_expected["rating"]) == ("E", "A")
    states = {each["metric"]: each["state"] for each in not_expected["drivers"]}
    assert states["dishonours_per_month_180d"] == "not_expected"
    assert states["revenue_trend_90d"] == "provisional"
    assert states["buffer_days_180d"] == "known"
    assert "ProvisionalRevenue" in codes(not_expected)
    assert "NoRevenue" in codes(expected)
    assert not {"Uncategorised", "NoRevenue"} & set(codes(not_expected))


def test_half_of_a_year_covers_half_of_the_days() -> None:
    year = sound_business()
    half = year[len(year) // 2 :]
    coverage = {each["metric"]: each["coverage"] for each in risk(half)["drivers"]}
    assert coverage["buffer_days_180d"] == 1
    assert Decimal("0.45") < coverage["revenue_volatility_12m"] < Decimal("0.55")
    assert {each["coverage"] for each in expecting(half, "words", "balances")["drivers"]} == {1}


def test_a_month_left_out_between_balances_is_not_seen() -> None:
    rows = [each for each in sound_business() if not 300 <= (each["date"] - START).days < 330]
    coverage = {each["metric"]: each["coverage"] for each in risk(rows)["drivers"]}
    assert Decimal("0.82") < coverage["buffer_days_180d"] < Decimal("0.85")


# Ceilings


def with_ceiling(letter: str | None, covered: str = "1", points: str = "95", calibration: Any = "none") -> Data:
    scorecard = replace(DEFAULT, calibration=calibration)
    value = scorecard.link.value(Decimal(points))
    columns = {"covered": Decimal(covered), "value": value, "points": Decimal(points)}
    kinds = {"covered": RATIO, "value": RATIO, "points": POINTS}
    scored = pl.DataFrame({"customer_number": [1], **columns}, schema_overrides=kinds)
    ceilings = pl.DataFrame([(1, letter, ["insolvency"])] if letter else [], schema=CEILINGS, orient="row")
    [row] = add_interval(add_rating(scored, scorecard, ceilings), scorecard).to_dicts()
    return {**row, "before": value}


@pytest.mark.parametrize(
    ("event", "covered", "rating", "limited_by"),
    [
        (None, "1", "A", []),
        (None, "0.8499", "B", ["evidence"]),
        (None, "0.7499", "C", ["evidence"]),
        ("D", "1", "D", ["insolvency"]),
        ("D", "0.75", "D", ["insolvency"]),
        ("C", "0.67", "C", ["evidence", "insolvency"]),
        ("B", "0.49", "E", ["evidence"]),
    ],
)
def test_the_worst_ceiling_binds(event: str | None, covered: str, rating: str, limited_by: list[str]) -> None:
    row = with_ceiling(event, covered)
    assert (row["rating"], row["limitedBy"]) == (rating, limited_by)
    assert row["valueBeforeCeilings"] == row["before"]
    assert rating_of(row["value"]) == rating
    assert row["low"] <= row["value"] <= row["high"]


def test_a_ceiling_that_the_value_is_worse_than_does_not_bind() -> None:
    row = with_ceiling("B", points="10")
    assert (row["rating"], row["limitedBy"], row["value"]) == ("E", [], row["before"])


def test_a_calibrated_value_stays_under_a_ceiling() -> None:
    row = with_ceiling("E", calibration="client")
    assert (row["rating"], row["value"]) == ("E", row["before"])


def rating_of(value: Decimal) -> str:
    return str(pl.select(rating(pl.lit(value, RATIO))).item())


def test_revenue_exceeded_by_refunds_counts_as_none() -> None:
    rows = [row(day, "-10", kind="revenue/refund_paid") for day in range(60)]
    assert "NoRevenue" in codes(risk(rows))


@pytest.mark.parametrize(
    ("value", "expected"),
    [("0.0200", "A"), ("0.0201", "B"), ("0.0500", "B"), ("0.1200", "C"), ("0.3000", "D"), ("0.3001", "E")],
)
def test_a_rating_includes_its_limit(value: str, expected: str) -> None:
    assert pl.select(rating(pl.lit(Decimal(value), pl.Decimal(38, 4)))).item() == expected


# The oracle: what was read, counted by hand


@examples(1)
@given(st.lists(any_row(), min_size=1, max_size=30).filter(posted_rows))
def test_the_report_agrees_with_counting_by_hand(rows: list[Row]) -> None:
    data = report("risk", rows, START + timedelta(days=400))
    points = {each["metric"]: each["points"] for each in data["drivers"]}
    read, coverage = readings(data), {each["metric"]: each["coverage"] for each in data["drivers"]}
    assert points == {
        each.metric: points_by_hand(each, read[each.metric], coverage[each.metric]) for each in DEFAULT.features
    }
    total = total_by_hand(DEFAULT, read, coverage)
    assert data["valueBeforeCeilings"] == value_by_hand(DEFAULT, total)
    assert data["rating"] == max(rating_by_hand(DEFAULT, total), ceiling_by_hand(data["covered"]))
    assert data["interval"]["low"] <= data["value"] <= data["interval"]["high"]
    known = metrics.values(facts(rows, START + timedelta(days=400))).row(0, named=True)
    assert all(reading in (None, known[name]) for name, reading in read.items())


def ceiling_by_hand(covered: Decimal) -> str:
    return next((letter for letter, least in EVIDENCE_CEILINGS if covered >= least), "E")


@examples(1)
@given(st.lists(any_row(), min_size=1, max_size=25), st.randoms())
def test_shuffled_rows_and_other_customers_change_nothing(rows: list[Row], random: Any) -> None:
    placed = [{"position": place, **each} for place, each in enumerate(rows)]
    shuffled = random.sample(placed, len(placed))
    other = [{**each, "customer_number": 2, "amount": -each["amount"]} for each in placed]
    as_of = START + timedelta(days=400)
    together = risk_report(Facts(transactions([*shuffled, *other]).collect(), as_of))
    alone = risk_report(Facts(transactions(placed).collect(), as_of))
    assert together.filter(pl.col("customer_number") == 1).equals(alone)


# Sensitivity


def changes(readings_: Readings, scorecard: Scorecard = DEFAULT, coverage: Readings | None = None) -> list[Data]:
    scored = add_rating(scorecard.score(frame(readings_, coverage=coverage)), scorecard, pl.DataFrame(schema=CEILINGS))
    listed = as_data(sensitivity(scored, scorecard))["data"]
    return [change for data in listed for change in parse_json(data)["sensitivity"]]


@examples(3)
@given(any_readings(DEFAULT), any_coverage(DEFAULT))
def test_each_change_crosses_a_line_with_a_round_figure(readings_: Readings, coverage: Readings) -> None:
    listed = changes(readings_, coverage=coverage)
    total = total_by_hand(DEFAULT, readings_, coverage)
    covered = DEFAULT.score(frame(readings_, coverage=coverage))["covered"].item()
    ceiling = ceiling_by_hand(covered)
    for change in listed:
        parts = [change, *([change["also"]] if change["also"] else [])]
        moved = {**readings_, **{part["metric"]: part["to"] for part in parts}}
        assert all(part["from"] == readings_[part["metric"]] for part in parts)
        assert change["ratingFrom"] == max(rating_by_hand(DEFAULT, total), ceiling)
        assert change["ratingTo"] == max(rating_by_hand(DEFAULT, total_by_hand(DEFAULT, moved, coverage)), ceiling)
        assert change["ratingTo"] != change["ratingFrom"]
        assert all(len(part["to"].normalize().as_tuple().digits) <= 3 for part in parts)
        assert {part["metric"] for part in parts} <= CHANGEABLE
    assert len(listed) <= 3


def test_a_change_does_not_contradict_readings_that_stay() -> None:
    """The mean balance lies between what days below 7 and 30 days of outflow allow, and nobody without debt repays."""
    for low, week, month in ((2, "0.5", "1"), (1, "1", "1"), (12, "0", "0.4"), (40, "0", "0")):
        stay = {
            "min_balance_days_180d": Decimal(low),
            "below_7d_outflow_share_180d": Decimal(week),
            "below_30d_outflow_share_180d": Decimal(month),
        }
        shares = float(week), float(month) - float(week), 1 - float(month)
        least = max(low, sum(share * least for share, least in zip(shares, (low, 7, 30), strict=True)))
        most = shares[0] * 7 + shares[1] * 30 if month == "1" else None
        for now in (least, least + 0.5):
            for change in changes({**AT_BEST, **stay, "buffer_days_180d": Decimal(str(now)).quantize(FINE)}, TIGHT):
                for part in [change, *([change["also"]] if change["also"] else [])]:
                    if part["metric"] == "buffer_days_180d":
                        assert least <= part["to"]
                        assert most is None or part["to"] <= most
    of_debt = tuple(feature for feature in DEFAULT.features if feature.metric in DEBT)
    without = dict.fromkeys(DEBT, Decimal(0))
    near = Scorecard("near", "1", "none", of_debt, Link(Decimal("13.5"), Decimal("0.1")))
    assert {change["metric"] for change in changes(without, near)} == {"debt_service_to_revenue_180d"}
    repaying = {**without, "debt_service_to_revenue_180d": Decimal("0.1"), "lenders_repaid_45d": Decimal(1)}
    lower = Scorecard("lower", "1", "none", of_debt, Link(Decimal(12), Decimal("0.1")))
    assert {"lenders_repaid_45d", "stacked_running_180d"} <= {each["metric"] for each in changes(repaying, lower)}


CHANGEABLE = {
    *("buffer_days_180d", "inflow_to_outflow_180d", "revenue_trend_90d", "income_concentration_180d"),
    *("debt_service_to_revenue_180d", "lenders_repaid_45d", "stacked_running_180d", "months_of_history"),
}
DEBT = ("debt_service_to_revenue_180d", "lenders_repaid_45d", "stacked_running_180d", "new_debt_to_revenue_180d")
FINE = Decimal("0.0001")
AT_BEST = {each.metric: each.bands[0].limit for each in DEFAULT.features}
# So steep that one driver alone changes the rating.
TIGHT = Scorecard("tight", "1", "none", DEFAULT.features, Link(Decimal(97), Decimal("0.1")))


def test_no_smaller_change_of_one_driver_is_enough() -> None:
    bands = (Band(Decimal(30), Decimal(60)), Band(Decimal(10), Decimal(0)), Band(None, Decimal(0)))
    feature = Feature("buffer_days_180d", more_is_better=True, bands=bands, reason="Why.", stepped=False)
    tiny = Scorecard("tiny", "1", "none", (feature,), Link(Decimal(30), Decimal(10)))
    [up] = changes({"buffer_days_180d": Decimal("12.5")}, tiny)
    assert (up["to"], up["ratingFrom"], up["ratingTo"]) == (25, "E", "D")


def test_pairs_are_tried_where_no_driver_alone_is_enough() -> None:
    nothing = {feature.metric: None for feature in DEFAULT.features}
    bad = {
        each.metric: (each.bands[-2].limit or 0) + (-1000 if each.more_is_better else 1000) for each in DEFAULT.features
    }
    halved = {**nothing, **{each.metric: each.bands[0].limit for each in DEFAULT.features[3:12]}}
    alone = changes(halved)
    assert alone
    far = {slug: Decimal(value) for slug, value in bad.items()}
    near_the_line = {**far, **{each.metric: each.bands[0].limit for each in DEFAULT.features[:3]}}
    listed = changes(near_the_line)
    assert all(change["also"] for change in listed)


def test_a_change_is_described_in_words() -> None:
    bands = (Band(Decimal(30), Decimal(60)), Band(Decimal(7), Decimal(20)), Band(None, Decimal(0)))
    feature = Feature("buffer_days_180d", more_is_better=True, bands=bands, reason="Why.")
    tiny = Scorecard("tiny", "1", "none", (feature,), Link(Decimal(30), Decimal(10)))
    name = metrics.METRICS["buffer_days_180d"].name
    [up] = changes({"buffer_days_180d": Decimal("12.5")}, tiny)
    assert up["words"] == f"{name} going from 12.5 days to 30 days would lift the rating from E to C."
    [near] = changes({"buffer_days_180d": Decimal("29.9804")}, tiny)
    assert near["words"] == f"{name} going from 29.9804 days to 30 days would lift the rating from E to C."
    [known] = changes({"buffer_days_180d": None}, tiny)
    assert known["words"] == f"{name}, if known to be 30 days, would lift the rating from E to C."


def test_a_figure_with_too_many_digits_is_rounded_within_its_band() -> None:
    bands = (Band(Decimal("449.9999"), Decimal(60)), Band(None, Decimal(0)))
    feature = Feature("buffer_days_180d", more_is_better=True, bands=bands, reason="Why.")
    tiny = Scorecard("tiny", "1", "none", (feature,), Link(Decimal(30), Decimal(10)))
    assert [each["to"] for each in changes({"buffer_days_180d": Decimal(3)}, tiny)] == [450]
    assert [each["to"] for each in changes({"buffer_days_180d": Decimal(500)}, tiny)] == [449]


# Peers, and a client's own scorecard


def report_among(peers: pl.DataFrame | None = None, scorecard: Scorecard | None = None) -> tuple[Facts, Data]:
    portfolio = ClientPortfolio(frozenset({1}), peers, scorecard)
    rows = transactions(with_ids(sound_business())).collect()
    seen = Facts(rows, max(rows["date"]), Context([portfolio]))
    return seen, parse_json(risk_report(seen)["data"].item())


def with_ids(rows: Sequence[Row]) -> list[Row]:
    return [{**each, "transaction_id": place.to_bytes(16, "big")} for place, each in enumerate(rows)]


def test_a_reading_has_a_percentile_among_the_clients_customers() -> None:
    quantiles = [Decimal(each) for each in range(0, 202, 2)]
    peers = pl.DataFrame([("buffer_days_180d", quantiles)], schema=PEERS, orient="row")
    seen, data = report_among(peers)
    place = next(n for n, each in enumerate(data["drivers"]) if each["metric"] == "buffer_days_180d")
    buffer = data["drivers"][place]
    assert buffer["reading"] is not None
    assert buffer["peerPercentile"] == max(n for n, each in enumerate(quantiles) if each <= buffer["reading"])
    assert {each["peerPercentile"] for each in data["drivers"]} == {None, buffer["peerPercentile"]}
    path = ("drivers", str(place), "peerPercentile")
    assert explain_risk(seen, data, path).value == buffer["peerPercentile"]
    with pytest.raises(NotFound):
        explain_risk(report_among()[0], data, path)


def a_fitted_scorecard() -> Scorecard:
    bands = (Band(Decimal("40.5"), Decimal("61.25")), Band(Decimal(7), Decimal("20.5")), Band(None, Decimal(0)))
    feature = Feature("buffer_days_180d", more_is_better=True, bands=bands, reason="Why.", missing=Decimal("10.5"))
    return Scorecard("fitted", "abc", "client", (feature,), Link(Decimal("11.5"), Decimal("9.25")))


def test_a_clients_own_scorecard_scores_its_customers_and_says_so() -> None:
    seen, data = report_among(scorecard=a_fitted_scorecard())
    assert [each["metric"] for each in data["drivers"]] == ["buffer_days_180d"]
    assert data["model"] == {"name": "fitted", "version": "abc", "calibration": "client"}
    assert codes(data) == []
    assert data["value"] == value_by_hand(a_fitted_scorecard(), data["drivers"][0]["points"])
    for path, figure in figures(data):
        assert value_of(explain_risk(seen, data, path)) == figure, path


# Lineage


def figures(data: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every number of the report with its path."""
    if isinstance(data, (Mapping, list)):
        parts = data.items() if isinstance(data, Mapping) else enumerate(data)
        for name, each in parts:
            yield from figures(each, (*path, str(name)))
    elif isinstance(data, int | Decimal) and not isinstance(data, bool):
        yield path, data


def a_business_with_troubles() -> list[Row]:
    """Return a year in which nearly every driver has a reading."""
    kinds = (
        ("120", "revenue/card_settlement", 1),
        ("900", "revenue/customer_transfer", 9),
        ("-95", "cost_of_sales/suppliers", 1),
        ("-310", "debt_service/term_loan_repayment", 14),
        ("80", "other_income/returned_payment", 60),
        ("-15", "distress/dishonour_fee", 60),
        ("-20", "distress/overdrawn_fee", 90),
        ("-44", "high_risk/gambling", 33),
        ("-250", "owner/owner_drawings", 21),
    )
    rows = [
        row(day, amount, kind=kind, counterparty_group=kind, credit_limit=Decimal(100))
        for day in range(365)
        for amount, kind, every in kinds
        if day % every == 0
    ]
    return with_ids(mark_balances(add_balances(rows, opening=500)))


@pytest.mark.parametrize(
    "rows",
    [
        a_business_with_troubles(),
        pytest.param(with_ids(sound_business()[:250]), marks=pytest.mark.service),  # once more, with less to explain
        with_ids([row(0, "5", account_id=MAIN)]),
    ],
)
def test_every_figure_is_explained(rows: list[Row]) -> None:
    as_of = max(each["date"] for each in rows) + timedelta(days=3)
    seen, data = facts(rows, as_of), report("risk", rows, as_of)
    each_figure = list(figures(data))
    assert len(each_figure) > 40
    for path, figure in each_figure:
        assert value_of(explain_risk(seen, data, path)) == figure, path


def test_a_value_is_explained_without_searching_for_findings() -> None:
    """The search takes most of the time of an explanation, and a value needs only the report."""
    rows = a_business_with_troubles()
    as_of: date = rows[-1]["date"]
    data = report("risk", rows, as_of)
    assert value_of(explain_risk(_WithoutRows(transactions(rows).collect(), as_of), data, ("value",))) == data["value"]


class _WithoutRows(Facts):
    @property
    def rows(self) -> pl.DataFrame:
        raise AssertionError("the rows were read")


def test_a_reading_leads_to_its_transactions() -> None:
    rows = a_business_with_troubles()
    as_of: date = rows[-1]["date"]
    seen, data = facts(rows, as_of), report("risk", rows, as_of)
    place = next(n for n, each in enumerate(data["drivers"]) if each["metric"] == "dishonours_per_month_180d")
    traced = explain_risk(seen, data, ("drivers", str(place), "points", "reading"))
    assert value_of(traced) == data["drivers"][place]["reading"]
    assert value_of(explain_risk(seen, data, ("value", "dishonours_per_month_180d", "reading"))) == value_of(traced)


def test_an_unknown_risk_figure_is_not_found(subtests: pytest.Subtests) -> None:
    rows = with_ids(sound_business()[:4])
    seen, data = facts(rows, START), report("risk", rows, START)
    unknown = ("/rating", "/value/no_metric", "/drivers/99/points", "/drivers/-1/points", "/drivers/0/name", "/model")
    for path in unknown:
        with subtests.test(path), pytest.raises(NotFound):
            explain_risk(seen, data, pointer(path))


def test_a_portfolio_without_these_customers_gives_no_report() -> None:
    nobody = Facts(transactions([]).collect(), START, Context(portfolios=[ClientPortfolio(frozenset({1}))]))
    assert risk_report(nobody).rows() == []
