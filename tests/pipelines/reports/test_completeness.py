"""Completeness notices what is missing, and never rewards whoever leaves rows out."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pipelines.reports.examples import (
    SAVINGS,
    START,
    Row,
    any_row,
    chained,
    checked,
    counted,
    report,
    row,
)

ALLOWED = {"transaction": 14, "savings": 35, "loan": 35}


def completeness(rows: Sequence[Row], as_of: date | int) -> dict[str, Any]:
    day = as_of if isinstance(as_of, date) else START + timedelta(days=as_of)
    return report("completeness", rows, day)


def score(rows: Sequence[Row], as_of: int) -> Decimal:
    points = completeness(rows, as_of)["summary"]["completenessScore"]
    assert isinstance(points, Decimal)
    return points


def codes(data: dict[str, Any]) -> list[str]:
    return [reason["code"].removeprefix("Completeness.") for reason in data["reasons"]]


def daily(days: range, **others: object) -> list[Row]:
    return [row(day, "10", **others) for day in days]


def test_a_proven_year_up_to_today_misses_nothing() -> None:
    year = checked(chained(daily(range(365)), opening=0))
    data = completeness(year, 364)
    assert data["summary"] == {
        "completenessScore": Decimal("100.00"),  # from zero: there was nothing before
        "completenessTier": "complete",
        "totalMissingness": Decimal("0.0000"),
    }
    assert data["reasons"] == []


def test_without_balances_the_same_year_is_only_plausible() -> None:
    data = completeness(daily(range(365)), 364)
    assert data["summary"] == {
        "completenessScore": Decimal("71.80"),  # 364 × 0.8 days of 365, times 90; the first day has nothing before
        "completenessTier": "substantial",
        "totalMissingness": Decimal("0.0027"),
    }
    assert codes(data) == ["NoBalances"]


def test_a_customer_without_posted_rows_is_told_so() -> None:
    data = completeness([row(0, "5", status="pending")], 10)
    assert data == {
        "summary": {
            "completenessScore": Decimal("0.00"),
            "completenessTier": "insufficient",
            "totalMissingness": Decimal("1.0000"),
        },
        "freshness": {"dataThrough": None, "daysBehind": None},
        "accounts": [],
        "gaps": [],
        "reasons": [
            {"code": "Completeness.NoTransactions", "message": "There are no posted transactions."},
        ],
    }


def test_one_row_proves_next_to_nothing() -> None:
    data = completeness([row(0, "5")], 0)
    assert data["summary"]["completenessScore"] == 0
    assert codes(data) == ["NoBalances", "ShortHistory"]


def test_a_balance_that_does_not_follow_is_a_gap_between_two_days() -> None:
    rows = chained(daily(range(10)))
    data = completeness(checked(rows[:4] + rows[6:]), 9)
    assert data["gaps"] == [
        {
            "accountId": "00000000-0000-0000-0000-000000000001",
            "evidence": "balance_break",
            "lastSeen": date(2025, 1, 4),
            "nextSeen": date(2025, 1, 7),
            "silentDays": 2,
        }
    ]
    assert "BalanceBreaks" in codes(data)


def test_a_silence_that_a_balance_proves_harmless_is_no_gap() -> None:
    rows = [*daily(range(30)), *daily(range(120, 150))]
    assert [gap["silentDays"] for gap in completeness(rows, 149)["gaps"]] == [90]
    assert completeness(checked(chained(rows)), 149)["gaps"] == []


def test_a_monthly_account_may_be_silent_for_weeks_and_a_daily_one_may_not() -> None:
    monthly = [row(day, "10", account_id=SAVINGS, account_type="savings") for day in range(0, 360, 30)]
    every_day = [*daily(range(300)), *daily(range(330, 360))]
    data = completeness([*monthly, *every_day], 360)
    assert [account["plausiblePauseDays"] for account in data["accounts"]] == [9, 67]
    assert [account["silences"] for account in data["accounts"]] == [1, 0]


def test_every_account_tells_its_own_coverage() -> None:
    main = checked(chained([row(0, "10"), row(1, "10"), row(40, "10")]))
    data = completeness([*main, row(20, "10", account_id=SAVINGS, account_type="savings")], 50)
    first, second = data["accounts"]
    assert first == {
        "accountId": "00000000-0000-0000-0000-000000000001",
        "accountName": "Harbour Coffee",
        "bankName": "Bank",
        "accountNumberMasked": "xxxx2233",
        "accountType": "transaction",
        "identified": True,
        "score": Decimal("9.86"),  # 40 proven days of 365, times 90
        "firstDate": date(2025, 1, 1),
        "lastDate": date(2025, 2, 10),
        "daysBehind": 10,
        "daysSpanned": 41,
        "daysCovered": 40,
        "daysWithActivity": 3,
        "plausiblePauseDays": 14,
        "silences": 0,
        "transactionCount": 3,
        "balanceShare": Decimal("1.0000"),
        "balanceBreaks": 0,
    }
    assert (second["transactionCount"], second["daysBehind"], second["balanceShare"]) == (1, 30, 0)
    assert data["freshness"] == {"dataThrough": date(2025, 2, 10), "daysBehind": 10}


def test_the_unidentified_account_and_old_data_are_reasons() -> None:
    rows = daily(range(100), account_identified=False, account_number=None)
    data = completeness(rows, 120)
    assert codes(data) == ["UnidentifiedAccount", "NoBalances", "Stale"]
    assert data["accounts"][0]["accountNumberMasked"] is None


def test_some_balances_are_better_than_none_and_worse_than_all() -> None:
    rows = chained(daily(range(100)))
    some = [{**each, "balance": None} if place % 2 else each for place, each in enumerate(rows)]
    assert "PartialBalances" in codes(completeness(some, 99))


@pytest.mark.parametrize(("age", "points"), [(0, "0.25"), (364, "0.25"), (365, "0.01"), (1094, "0.01"), (1095, "0")])
def test_a_day_counts_most_in_the_last_year_and_little_in_the_two_before(age: int, points: str) -> None:
    two_days = checked(chained([row(0, "1"), row(1, "1")]))  # the second one is proven
    assert score(two_days, 1 + age) == Decimal(points)


# The oracle: the days of each account, one by one, in a dict.


def _rounded(value: Decimal, places: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN)


def credits_by_day(rows: Sequence[Row], as_of: date) -> dict[date, Decimal]:
    by_day: dict[date, list[Row]] = defaultdict(list)
    for each in rows:
        by_day[each["date"]].append(each)
    credited: dict[date, Decimal] = {}
    previous: date | None = None
    for day in sorted(by_day):
        credited |= _step(by_day[day], previous, day, as_of)
        previous = day
    return credited


def _step(rows: Sequence[Row], previous: date | None, day: date, as_of: date) -> dict[date, Decimal]:
    marks = [each.get("balance_verified") for each in rows]
    if False in marks:
        return {}
    if previous is None:
        opened = (
            any(mark is None and each.get("balance") == each["amount"] for mark, each in zip(marks, rows, strict=True))
            and marks.count(None) == 1
        )
        pause, worth = (day - as_of).days + 3000 if opened else 0, Decimal(1)
    elif all(marks):
        pause, worth = (day - previous).days, Decimal(1)
    else:
        pause, worth = min((day - previous).days, ALLOWED[rows[0]["account_type"]]), Decimal("0.8")
    return {day - timedelta(days=back): worth for back in range(pause)}


def expected_summary(rows: Sequence[Row], as_of: date) -> tuple[Decimal, Decimal]:
    accounts: dict[bytes, list[Row]] = defaultdict(list)
    for each in counted(rows):
        accounts[each["account_id"]].append(each)
    if not accounts:
        return Decimal(0), Decimal(1)
    points, unseen = Decimal(0), 0
    for of_account in accounts.values():
        credited = credits_by_day(of_account, as_of)
        recent = [credited.get(as_of - timedelta(days=age), Decimal(0)) for age in range(365)]
        before = [credited.get(as_of - timedelta(days=age), Decimal(0)) for age in range(365, 1095)]
        points += _rounded(sum(recent, Decimal(0)) * 90 / 365, 4) + _rounded(sum(before, Decimal(0)) * 10 / 730, 4)
        unseen += recent.count(Decimal(0))
    mean = _rounded(_rounded(points / len(accounts), 4), 2)
    return mean, _rounded(Decimal(unseen) / (365 * len(accounts)), 4)


@settings(max_examples=60, deadline=None)
@given(st.lists(any_row(most_days=1200), min_size=1, max_size=25), st.integers(0, 1300))
def test_the_summary_is_that_of_counting_days_one_by_one(rows: list[Row], as_of: int) -> None:
    today = START + timedelta(days=as_of)
    summary = completeness(rows, today)["summary"]
    assert (summary["completenessScore"], summary["totalMissingness"]) == expected_summary(rows, today)


@st.composite
def statements(draw: st.DrawFn) -> list[Row]:
    """An account's rows with chaining balances, up to three a day, in ten days at most.

    Amounts are distinct powers of two, so that what is taken out never cancels to zero.
    """
    days = sorted(draw(st.lists(st.integers(0, 500), min_size=1, max_size=10, unique=True)))
    booked = [day for day in days for _ in range(draw(st.integers(1, 3)))]
    amounts = [Decimal(2**place) * draw(st.sampled_from((1, -1))) for place in range(len(booked))]
    whole = chained((row(day, amount) for day, amount in zip(booked, amounts, strict=True)), opening=0)
    return [{**each, "position": place} for place, each in enumerate(whole)]


def some_of(draw: st.DrawFn, rows: list[Row], by: str) -> list[Row]:
    """The rows with some of the values of a column, at least one."""
    values = sorted({each[by] for each in rows})
    kept = draw(st.sets(st.sampled_from(values), min_size=1))
    return [each for each in rows if each[by] in kept]


@settings(max_examples=80, deadline=None)
@given(statements(), st.data(), st.integers(0, 900))
def test_taking_any_rows_out_of_a_sound_statement_never_raises_the_score(
    whole: list[Row], data: st.DataObject, as_of: int
) -> None:
    less = data.draw(st.composite(some_of)(whole, "position"))
    assert score(checked(less), as_of) <= score(checked(whole), as_of)


@settings(max_examples=60, deadline=None)
@given(statements(), st.data(), st.integers(0, 900))
def test_nor_does_taking_any_rows_out_where_no_balance_is_stated(
    whole: list[Row], data: st.DataObject, as_of: int
) -> None:
    rows = [{**each, "balance": None} for each in whole]
    more = data.draw(st.composite(some_of)(rows, "position"))
    less = data.draw(st.composite(some_of)(more, "position"))
    assert score(less, as_of) <= score(more, as_of)


@settings(max_examples=80, deadline=None)
@given(statements(), statements(), st.data(), st.integers(0, 900))
def test_nor_does_taking_whole_days_out_of_accounts_that_lack_some_already(
    main: list[Row], other: list[Row], data: st.DataObject, as_of: int
) -> None:
    savings = [{**each, "account_id": SAVINGS, "account_type": "savings"} for each in other]
    more = [data.draw(st.composite(some_of)(rows, "date")) for rows in (main, savings)]
    less = [data.draw(st.composite(some_of)(rows, "date")) for rows in more]
    assert score(checked(chain(*less)), as_of) <= score(checked(chain(*more)), as_of)


def test_a_deleted_week_costs_a_proven_account_that_week() -> None:
    rows = chained(daily(range(365)))
    whole, cut = score(checked(rows), 364), score(checked(rows[:100] + rows[107:]), 364)
    assert whole - cut == pytest.approx(Decimal(8) * 90 / 365, abs=Decimal("0.01"))
