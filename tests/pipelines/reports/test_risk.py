"""The risk score is transparent: every point can be recomputed by hand, and what is missing earns none."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.reports.risk import FEATURES, MOST_POINTS, Feature
from tests.pipelines.reports.examples import LOAN, SAVINGS, START, Row, any_row, chained, counted, report, row


def risk(rows: Sequence[Row], days_later: int = 0) -> dict[str, Any]:
    """The report as of so many days after the last row."""
    return report("risk", rows, max(each["date"] for each in rows) + timedelta(days=days_later))


def reading(rows: Sequence[Row], feature: str) -> Decimal | None:
    return readings(risk(rows))[feature]


def readings(data: dict[str, Any]) -> dict[str, Decimal | None]:
    return {driver["feature"]: driver["reading"] for driver in data["drivers"]}


def codes(data: dict[str, Any]) -> list[str]:
    return [error["code"].removeprefix("Risk.") for error in data["errorCodes"]]


def sound_business() -> list[Row]:
    """A year of daily takings and costs, no debt, a comfortable balance."""
    rows = [each for day in range(365) for each in _trading_day(day)]
    return chained(rows, opening="5000")


def _trading_day(day: int) -> list[Row]:
    return [row(day, "200", kind="revenue/card_settlement"), row(day, "-150", kind="cost_of_sales/suppliers")]


def test_a_sound_business_earns_every_point() -> None:
    data = risk(sound_business())
    assert [driver["points"] for driver in data["drivers"]] == [driver["maxPoints"] for driver in data["drivers"]]
    assert {name: data[name] for name in ("value", "rating", "pdConfidenceScore", "pdConfidenceRating")} == {
        "value": Decimal("0.0000"),
        "rating": "A",
        "pdConfidenceScore": Decimal("100.00"),
        "pdConfidenceRating": "high",
    }
    assert codes(data) == ["Uncalibrated"]


def test_a_driver_says_what_was_read_and_what_it_earned() -> None:
    first = risk(sound_business())["drivers"][0]
    assert first == {
        "feature": "monthsOfHistory",
        "reading": Decimal("13.0000"),
        "unit": "months",
        "points": 15,
        "maxPoints": 15,
        "reason": FEATURES[0].why,
    }


def test_a_customer_without_posted_rows_earned_nothing() -> None:
    data = risk([row(0, "5", status="pending")])
    assert (data["value"], data["rating"]) == (1, "E")
    assert (data["pdConfidenceScore"], data["pdConfidenceRating"]) == (0, "low")
    assert codes(data) == ["Uncalibrated", "NoTransactions"]
    assert set(readings(data).values()) == {None}


def test_one_row_is_too_little_for_any_rate() -> None:
    data = risk([row(0, "5", kind="revenue/card_settlement")])
    assert [name for name, value in readings(data).items() if value is not None] == ["monthsOfHistory"]
    assert codes(data) == ["Uncalibrated", "InsufficientHistory", "NoBalances"]
    assert data["rating"] == "E"


def test_old_data_lower_the_confidence_and_are_named() -> None:
    fresh, stale = risk(sound_business()), risk(sound_business(), days_later=91)
    assert stale["value"] == fresh["value"]
    assert fresh["pdConfidenceScore"] - stale["pdConfidenceScore"] == 10
    assert codes(stale) == ["Uncalibrated", "StaleData"]


def test_a_silence_of_years_is_no_history() -> None:
    assert reading([row(0, "5"), row(3000, "5")], "monthsOfHistory") == 2


def test_revenue_that_halves_is_a_trend_of_a_half() -> None:
    rows = [row(day, "200" if day < 90 else "100", kind="revenue/card_settlement") for day in range(180)]
    assert reading(rows, "revenueTrend") == Decimal("0.5000")


def test_there_is_no_trend_before_half_a_year() -> None:
    rows = [row(day, "200", kind="revenue/card_settlement") for day in range(179)]
    assert reading(rows, "revenueTrend") is None


def test_overdrawn_days_are_those_of_the_worst_account() -> None:
    overdrawn = [row(0, "-10", balance=Decimal(-10)), row(50, "20", balance=Decimal(10)), row(99, "1")]
    healthy = [row(day, "1", account_id=SAVINGS, balance=Decimal(900)) for day in (0, 99)]
    known_days = 99  # nothing is known of the last one
    assert reading([*overdrawn, *healthy], "overdrawnDayShare") == _rounded(Decimal(50) / known_days)


def test_an_approved_overdraft_is_no_distress() -> None:
    rows = [row(day, "-1", balance=Decimal(-500), credit_limit=Decimal(500)) for day in (0, 99)]
    assert reading(rows, "overdrawnDayShare") == 0


def test_what_is_owed_on_a_loan_is_not_an_overdraft() -> None:
    rows = [row(day, "-1", account_id=LOAN, account_type="loan", balance=Decimal(-500)) for day in (0, 99)]
    assert reading(rows, "overdrawnDayShare") is None


def test_own_transfers_are_neither_revenue_nor_cost() -> None:
    outside = [row(day, "-10", kind="debt_service/term_loan_repayment") for day in range(60)]
    income = [row(day, "100", kind="revenue/card_settlement") for day in range(60)]
    moved = [row(day, "-5000", kind="debt_service/term_loan_repayment", is_transfer=True) for day in range(60)]
    assert reading([*outside, *income, *moved], "debtServiceToRevenue") == Decimal("0.1000")


def test_a_refusal_with_its_fee_is_one_dishonour() -> None:
    returned = [row(0, "90", kind="other_income/returned_payment"), row(0, "-10", kind="distress/dishonour_fee")]
    bounced_receipt = row(3, "-70", kind="revenue/dishonoured_receipt")
    assert reading([*returned, bounced_receipt, row(89, "1")], "dishonoursPerMonth") == Decimal("0.3333")


def test_revenue_eaten_up_by_refunds_divides_nothing() -> None:
    rows = [row(day, "-10", kind="revenue/refund_paid") for day in range(60)]
    repaid = [row(day, "-10", kind="debt_service/term_loan_repayment") for day in range(60)]
    data = risk([*rows, *repaid])
    assert readings(data)["debtServiceToRevenue"] is None
    assert "NoRevenue" in codes(data)


def test_the_rating_follows_the_points_lost() -> None:
    sound = sound_business()
    no_balances = [{**each, "balance": None} for each in sound]
    returned = {"category": "returned_payment", "category_group": "other_income"}
    dishonoured = [each if each["amount"] > 0 else {**each, **returned} for each in no_balances]
    versions = (sound, no_balances, dishonoured, dishonoured[:120], dishonoured[:1])
    rated = [(data["rating"], data["value"]) for data in map(risk, versions)]
    assert rated == [
        ("A", Decimal(0)),
        ("B", Decimal("0.35")),  # neither overdrawn days nor buffer known
        ("C", Decimal("0.50")),  # and a returned payment every day
        ("E", Decimal("0.80")),  # and two months of history, too short for a trend
        ("E", Decimal(1)),
    ]


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
class TestEveryFeature:
    def test_a_better_reading_never_earns_less(self, feature: Feature) -> None:
        limits = sorted(limit for limit, _ in feature.bands)
        around = sorted({*limits, *(limit + Decimal("0.0001") for limit in limits), *(limit - 1 for limit in limits)})
        earned = points(feature, around)
        assert earned == sorted(earned, reverse=not feature.more_is_better)
        assert max(earned) == feature.most

    def test_a_reading_at_the_limit_has_reached_it(self, feature: Feature) -> None:
        limits, expected = zip(*feature.bands, strict=True)
        assert points(feature, list(limits)) == list(expected)

    def test_a_missing_reading_earns_nothing(self, feature: Feature) -> None:
        assert points(feature, [None]) == [0]


def points(feature: Feature, values: Sequence[Decimal | None]) -> list[int]:
    frame = pl.DataFrame({feature.name: values}, schema={feature.name: pl.Decimal(38, 4)})
    return frame.select(feature.points()).to_series().to_list()


def test_the_points_of_all_features_make_a_hundred() -> None:
    assert MOST_POINTS == 100


# The oracle: sums and days, one by one.


def _rounded(value: Decimal, places: int = 4) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN)


def _share(part: Decimal, whole: Decimal) -> Decimal | None:
    return _rounded(part / whole) if whole > 0 else None


def expected_readings(rows: Sequence[Row]) -> dict[str, Decimal | None]:
    through, first = max(each["date"] for each in rows), min(each["date"] for each in rows)
    span = (through - first).days + 1
    age = {id(each): (through - each["date"]).days for each in rows}
    window = [each for each in rows if age[id(each)] < 180]
    outside = [each for each in window if not each["is_transfer"] and each["category_group"] != "transfer"]
    revenue = [each for each in outside if each["category_group"] == "revenue"]
    out = -_sum(each for each in outside if each["amount"] < 0)
    late = _sum(each for each in revenue if age[id(each)] < 90)
    service = -_sum(each for each in outside if each["category_group"] == "debt_service" and each["amount"] < 0)
    gambled = -_sum(each for each in window if each["category"] == "gambling" and each["amount"] < 0)
    dishonours = sum(each["category"] == "returned_payment" for each in window)
    overdrawn, balance_days = expected_balances(rows, through)
    rates = {
        "overdrawnDayShare": overdrawn,
        "dishonoursPerMonth": _rounded(dishonours / _rounded(Decimal(min(span, 180)) / 30)),
        "debtServiceToRevenue": _share(service, _sum(revenue)),
        "gamblingShare": _share(gambled, out),
        "bufferDays": None if balance_days is None else _share(balance_days, out),
    }
    return {
        "monthsOfHistory": Decimal(len({days // 30 for days in age.values()})),
        "revenueTrend": _share(late, _sum(revenue) - late) if span >= 180 else None,
        **(rates if span >= 30 else dict.fromkeys(rates)),
    }


def _sum(rows: Any) -> Decimal:
    return sum((each["amount"] for each in rows), Decimal(0))


def expected_balances(rows: Sequence[Row], through: date) -> tuple[Decimal | None, Decimal | None]:
    """Day by day through the window; rows here have at most one balance a day and account."""
    shares, balance_days = [], Decimal(0)
    for account in {each["account_id"] for each in rows if each["account_type"] != "loan"}:
        stated: dict[date, Decimal | None] = {}
        for each in rows:
            if each["account_id"] == account:
                stated[each["date"]] = stated.get(each["date"]) or each["balance"]
        known = [value for value in _held(stated, through) if value is not None]
        if known:
            shares.append(_rounded(Decimal(sum(value < 0 for value in known)) / len(known)))
            balance_days += sum(known)
    return (max(shares), balance_days) if shares else (None, None)


def _held(stated: dict[date, Decimal | None], through: date) -> list[Decimal | None]:
    held: list[Decimal | None] = []
    for age in range(180):
        day = through - timedelta(days=age)
        last = max((each for each in stated if each <= day), default=None)
        held.append(None if last is None else stated[last])
    return held


def one_balance_a_day(rows: Sequence[Row]) -> list[Row]:
    """Keeps the first balance of each account and day, and only on rows that move it."""
    seen: set[tuple[bytes, date]] = set()
    result = []
    for each in rows:
        key = (each["account_id"], each["date"])
        keeps = each["balance"] and each["amount"] and key not in seen
        result.append({**each, "balance": each["balance"] if keeps else None})
        seen |= {key} if keeps else set()
    return result


@settings(max_examples=80, deadline=None)
@given(st.lists(any_row(), min_size=1, max_size=30).map(one_balance_a_day).filter(counted))
def test_readings_are_those_of_counting_by_hand(rows: list[Row]) -> None:
    data = report("risk", rows, START)
    assert readings(data) == expected_readings(counted(rows))
    assert data["value"] == 1 - Decimal(sum(driver["points"] for driver in data["drivers"])) / 100
