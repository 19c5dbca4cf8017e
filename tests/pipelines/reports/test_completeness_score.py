"""The score agrees with counting days one by one, and removing data never raises it."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import chain
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from tests.pipelines.reports.completeness_examples import completeness, daily, in_savings, score, some_of, statements
from tests.pipelines.reports.examples import (
    LOAN,
    MAIN,
    SAVINGS,
    START,
    Row,
    add_balances,
    any_row,
    mark_balances,
    posted_rows,
    row,
)

ALLOWED = {"transaction": 14, "savings": 35, "loan": 35}
PROVEN, OPEN, PLAUSIBLE, NON_TRADING = Decimal(1), Decimal("0.85"), Decimal("0.7"), Decimal("0.25")


def test_a_proven_year_up_to_yesterday_has_no_missingness() -> None:
    data = completeness(mark_balances(add_balances(daily(range(-2, 366)))), 365)
    assert data["summary"] == {
        "completenessScore": Decimal("90.02"),  # the year, and of the years before a proven and a plausible day
        "completenessTier": "complete",
        "totalMissingness": Decimal("0.0000"),
    }


def test_three_proven_years_are_complete() -> None:
    assert score(mark_balances(add_balances(daily(range(-2, 1096)))), 1095) == 100


def test_without_balances_the_same_year_is_only_plausible() -> None:
    assert completeness(daily(range(366)), 365)["summary"] == {
        "completenessScore": Decimal("63.00"),  # 365 days of 365, worth 0.7
        "completenessTier": "substantial",
        "totalMissingness": Decimal("0.0000"),
    }


@pytest.mark.parametrize(
    ("age", "points"), [(0, "0"), (1, "0.17"), (365, "0.17"), (366, "0.01"), (1095, "0.01"), (1096, "0")]
)
def test_a_day_counts_most_in_the_last_year_and_little_in_the_two_before(age: int, points: str) -> None:
    assert score([row(0, "5")], age) == Decimal(points)  # a plausible day


def test_a_removed_week_costs_its_proven_days() -> None:
    rows = add_balances(daily(range(1100)))
    whole, cut = score(mark_balances(rows), 1099), score(mark_balances(rows[:1000] + rows[1007:]), 1099)
    # Eight days are only plausible, and the one before them is open.
    assert whole - cut == pytest.approx((8 * Decimal("0.3") + Decimal("0.15")) * 90 / 365, abs=Decimal("0.01"))


def test_transfers_to_a_missing_account_make_their_days_open() -> None:
    rows = [row(day, "10", **({"kind": "transfer/own_transfer"} if day % 7 == 0 else {})) for day in range(-1, 1096)]
    met = [{**each, "is_transfer": True} for each in rows]
    missing = score(mark_balances(add_balances(met)), 1095) - score(mark_balances(add_balances(rows)), 1095)
    assert missing == pytest.approx(Decimal("0.15") * 100 / 7, abs=Decimal("0.01"))


# The oracle: the days of each account, one by one, in a dict.


def _round(value: Decimal, places: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN)


def _holds(rows: Sequence[Row], previous: date | None) -> bool:
    return previous is not None and all(
        each.get("balance_verified") is True and each.get("statement_verdict") != "unreconciled" for each in rows
    )


def _is_open(each: Row) -> bool:
    return each["category"] == "own_transfer" and not each["is_transfer"]


def worth_by_day(rows: Sequence[Row]) -> dict[date, Decimal]:
    by_day: dict[date, list[Row]] = defaultdict(list)
    for each in rows:
        by_day[each["date"]].append(each)
    days = sorted(by_day)
    worth: dict[date, Decimal] = {}
    for place, day in enumerate(days):
        previous = days[place - 1] if place else None
        following = days[place + 1] if place + 1 < len(days) else None
        holds = _holds(by_day[day], previous)
        silent = (day - previous).days - 1 if previous else 0
        for back in range(1, silent + 1 if holds else min(silent + 1, ALLOWED[rows[0]["account_type"]])):
            worth[day - timedelta(days=back)] = PROVEN if holds else PLAUSIBLE
        is_whole = following is not None and _holds(by_day[following], day) and not any(map(_is_open, by_day[day]))
        worth[day] = (PROVEN if is_whole else OPEN) if holds else PLAUSIBLE
    return worth


def expected_summary(rows: Sequence[Row], as_of: date) -> tuple[Decimal, Decimal]:
    accounts: dict[bytes, list[Row]] = defaultdict(list)
    for each in posted_rows(rows):
        if each["date"] <= as_of:
            accounts[each["account_id"]].append(each)
    best: dict[date, Decimal] = defaultdict(Decimal)
    seen: dict[date, Decimal] = defaultdict(Decimal)
    for of_account in accounts.values():
        weight = Decimal(1) if of_account[0]["account_type"] == "transaction" else NON_TRADING
        for day, worth in worth_by_day(of_account).items():
            best[day] = max(best[day], weight * worth)
            seen[day] = max(seen[day], weight)
    year = [as_of - timedelta(days=age) for age in range(1, 366)]
    before = [as_of - timedelta(days=age) for age in range(366, 1096)]
    points = _round(sum((best[day] for day in year), Decimal(0)) * 90 / 365, 4)
    points += _round(sum((best[day] for day in before), Decimal(0)) * 10 / 730, 4)
    missing = (365 - sum((seen[day] for day in year), Decimal(0))) / 365
    return _round(points, 2), _round(missing, 4)


@examples(4)
@given(st.lists(any_row(most_days=1200), min_size=1, max_size=25), st.integers(0, 1300), st.randoms())
def test_the_summary_agrees_with_counting_days_one_by_one(drawn: list[Row], as_of: int, random: Random) -> None:
    verdicts = (None, None, None, "reconciled", "partial", "unreconciled")
    rows = [{**each, "statement_verdict": random.choice(verdicts)} for each in drawn]
    today = START + timedelta(days=as_of)
    summary = completeness(rows, today)["summary"]
    assert (summary["completenessScore"], summary["totalMissingness"]) == expected_summary(rows, today)


# What may be left out without raising the score.


@examples(4)
@given(st.lists(any_row(most_days=1200), min_size=1, max_size=25), st.integers(0, 1300), st.data())
def test_removing_whole_accounts_never_raises_the_score(rows: list[Row], as_of: int, data: st.DataObject) -> None:
    retained = data.draw(st.sets(st.sampled_from((MAIN, SAVINGS, LOAN)), min_size=1, max_size=2))
    less = [each for each in rows if each["account_id"] in retained]
    assert not less or score(less, as_of) <= score(rows, as_of)


@examples(4)
@given(statements(), statements(), st.data(), st.integers(0, 900))
def test_removing_an_account_with_paired_transfers_never_raises_the_score(
    main: list[Row], other: list[Row], data: st.DataObject, as_of: int
) -> None:
    both = [mark_balances(rows) for rows in (main, in_savings(other))]
    left = data.draw(st.sampled_from(both))
    alone = [{**each, "is_transfer": False} for each in left]  # their other sides are gone
    assert score(alone, as_of) <= score([*chain(*both)], as_of)


@examples(4)
@given(st.lists(any_row(most_days=600), min_size=1, max_size=25), st.integers(0, 700))
def test_removing_balances_never_raises_the_score(rows: list[Row], as_of: int) -> None:
    without = [{**each, "balance": None, "balance_verified": None} for each in rows]
    assert score(without, as_of) <= score(rows, as_of)


@examples(5)
@given(statements(), st.data(), st.integers(0, 900))
def test_removing_rows_of_a_sound_statement_never_raises_the_score(
    whole: list[Row], data: st.DataObject, as_of: int
) -> None:
    less = data.draw(some_of(whole, "position"))
    assert score(mark_balances(less), as_of) <= score(mark_balances(whole), as_of)


@examples(4)
@given(statements(), st.data(), st.integers(0, 900))
def test_removing_rows_without_balances_never_raises_the_score(
    whole: list[Row], data: st.DataObject, as_of: int
) -> None:
    rows = [{**each, "balance": None} for each in whole]
    more = data.draw(some_of(rows, "position"))
    less = data.draw(some_of(more, "position"))
    assert score(less, as_of) <= score(more, as_of)


@examples(5)
@given(statements(), statements(), st.data(), st.integers(0, 900))
def test_removing_whole_days_of_incomplete_accounts_never_raises_the_score(
    main: list[Row], other: list[Row], data: st.DataObject, as_of: int
) -> None:
    more = [data.draw(some_of(rows, "date")) for rows in (main, in_savings(other))]
    less = [data.draw(some_of(rows, "date")) for rows in more]
    assert score(mark_balances(chain(*less)), as_of) <= score(mark_balances(chain(*more)), as_of)
