"""Gaps are found where rows are missing, with exact evidence, and periods reconcile to the cent."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipelines.reports.completeness.gaps import GAPS
from pipelines.reports.completeness.reconciliation import BY_ACCOUNTS, BY_MONTHS, BY_SUBMISSIONS
from tests.conftest import examples
from tests.pipelines.reports.completeness_examples import (
    add_ids,
    codes,
    completeness,
    daily,
    in_savings,
    rows_of,
    some_of,
    statements,
)
from tests.pipelines.reports.examples import START, Row, add_balances, mark_balances, row


def gaps(rows: Sequence[Row], as_of: int = 400) -> list[dict[str, Any]]:
    return rows_of(GAPS, rows, as_of)


def place(printed: str) -> int:
    return UUID(printed).int


def test_a_break_names_its_two_rows_and_the_missing_amount() -> None:
    rows = add_ids(add_balances(daily(range(10))))
    [gap] = gaps(mark_balances(rows[:4] + rows[6:]), 9)
    assert gap == {
        "accountId": "00000000-0000-0000-0000-000000000001",
        "evidence": "balance_break",
        "lastSeen": "2025-01-04",
        "nextSeen": "2025-01-07",
        "afterTransactionId": "00000000-0000-0000-0000-000000000004",
        "beforeTransactionId": "00000000-0000-0000-0000-000000000007",
        "likely": "rows_missing",
        "missingSeries": None,
        "missingAmount": Decimal("20.00"),
        "silentDays": 2,
        "probability": None,
    }


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_row_missing_within_a_busy_day_is_found_between_its_neighbours(newest_first: bool) -> None:
    posted = [row(day, amount) for day in range(3) for amount in ("-1", "-2.5", "7", "11")]
    rows = add_ids(add_balances(posted))
    rows = rows[::-1] if newest_first else rows
    [gap] = gaps(mark_balances([each for each in rows if each["transaction_id"][-1] != 6]), 9)
    assert (place(gap["afterTransactionId"]), place(gap["beforeTransactionId"])) == (5, 7)
    assert gap["missingAmount"] == Decimal("-2.50")


def test_a_row_missing_on_the_very_first_day_is_found() -> None:
    rows = add_ids(add_balances([row(0, "1"), row(0, "2"), row(0, "4"), row(5, "8")]))
    assert gaps(mark_balances(rows), 9) == []
    [gap] = gaps(mark_balances([rows[0], *rows[2:]]), 9)
    assert (gap["missingAmount"], gap["lastSeen"], gap["nextSeen"]) == (2, "2025-01-01", "2025-01-01")


def test_a_turned_sign_and_a_repeated_row_are_distinguished_from_missing_rows() -> None:
    rows = add_balances([row(day, f"{10 + day}") for day in range(10)])
    turned = [{**each, "amount": -each["amount"]} if place == 4 else each for place, each in enumerate(rows)]
    [sign] = gaps(mark_balances(add_ids(turned)), 9)
    assert (sign["likely"], sign["missingAmount"]) == ("sign", Decimal("28.00"))
    [twice] = gaps(mark_balances(add_ids([*rows[:5], rows[4], *rows[5:]])), 9)
    assert (twice["likely"], twice["missingAmount"]) == ("repeated_row", Decimal("-14.00"))
    assert place(twice["beforeTransactionId"]) - place(twice["afterTransactionId"]) == 1


def test_the_order_of_rows_within_a_day_hides_no_money() -> None:
    whole = add_ids(
        add_balances([row(day // 3, amount) for day, amount in enumerate(("1", "-2", "4", "8", "16", "-32"))])
    )
    for order in ((0, 1, 2, 3, 4, 5), (2, 1, 0, 5, 4, 3), (1, 0, 2, 4, 3, 5)):
        rows = [{**whole[nth], "position": position} for position, nth in enumerate(order)]
        assert {(gap["likely"], gap["missingAmount"]) for gap in gaps(mark_balances(rows), 9)} <= {("ordering", None)}


def test_rows_without_balances_are_added_up_to_the_next_balance() -> None:
    rows = add_balances([row(day // 2, f"{2**day}") for day in range(20)])
    once_a_day = [{**each, "balance": each["balance"] if nth % 2 else None} for nth, each in enumerate(rows)]
    assert gaps(mark_balances(add_ids(once_a_day)), 9) == []
    [gap] = gaps(mark_balances(add_ids(once_a_day[:8] + once_a_day[10:])), 9)
    assert gap["missingAmount"] == 2**8 + 2**9
    middle_unknown = [{**each, "balance": None} if 6 <= nth < 10 else each for nth, each in enumerate(rows)]
    [gap] = gaps(mark_balances(add_ids(middle_unknown[:7] + middle_unknown[8:])), 9)
    assert gap["missingAmount"] == 2**7


# The oracle: what lies between two rows of a sound statement of which some were taken away.


@examples(5)
@given(statements(), st.data())
def test_every_break_has_the_place_and_amount_of_the_removed_rows(whole: list[Row], data: st.DataObject) -> None:
    """Remove whole days, so that neighbours are known: everything between two days that now follow is missing there."""
    whole = add_ids(whole)
    retained = data.draw(some_of(whole, "date"))
    days = sorted({each["date"] for each in retained})
    expected = {}
    for last, following in pairwise(days):
        missing = sum((each["amount"] for each in whole if last < each["date"] < following), Decimal(0))
        if missing:
            expected[str(last), str(following)] = missing
    found = gaps(mark_balances(retained), 900)
    assert {(gap["lastSeen"], gap["nextSeen"]): gap["missingAmount"] for gap in found} == expected
    assert {gap["evidence"] for gap in found} <= {"balance_break"}


@examples(5)
@given(statements(), st.data())
def test_missing_amounts_add_up_to_the_removed_rows(whole: list[Row], data: st.DataObject) -> None:
    """Remove any rows but the first and the last: the breaks' amounts add up, wherever in a day rows are missing."""
    whole = add_ids(whole)
    retained = data.draw(some_of(whole, "position"))
    retained = sorted(
        {each["position"]: each for each in (whole[0], *retained, whole[-1])}.values(),
        key=lambda each: each["position"],
    )
    assume(len({each["date"] for each in retained}) > 1)
    taken = sum((each["amount"] for each in whole if each not in retained), Decimal(0))
    assert sum((gap["missingAmount"] for gap in gaps(mark_balances(retained), 900)), Decimal(0)) == taken


def test_a_silence_proven_harmless_by_a_balance_is_no_gap() -> None:
    rows = [*daily(range(30)), *daily(range(120, 150))]
    assert [gap["silentDays"] for gap in gaps(rows, 149)] == [90]
    assert gaps(mark_balances(add_balances(rows)), 149) == []


def test_a_monthly_account_may_be_silent_for_weeks_and_a_daily_one_may_not() -> None:
    monthly = in_savings(row(day, "10") for day in range(0, 360, 30))
    every_day = [*daily(range(300)), *daily(range(330, 360))]
    assert [gap["accountId"][-1] for gap in gaps([*monthly, *every_day], 360)] == ["1"]


@examples(4)
@given(st.sets(st.integers(0, 120), min_size=2, max_size=80), st.integers(6, 40))
def test_a_silence_states_its_probability(active: set[int], pause: int) -> None:
    days = sorted({*active, *(day + 120 + pause for day in active)})
    rows = daily(days)
    listed = {(gap["lastSeen"], gap["nextSeen"]): gap for gap in gaps(rows, 400) if gap["evidence"] == "silence"}
    dates = [START + timedelta(days=day) for day in days]
    for last, following in pairwise(dates):
        between = [last + timedelta(days=n) for n in range(1, (following - last).days)]
        expected = Fraction(1)
        for is_working in (True, False):
            kind = [day for day in _days(dates[0], dates[-1]) if (day.weekday() < 5) == is_working]
            silent = [day for day in between if (day.weekday() < 5) == is_working]
            share = Fraction(sum(day in kind for day in dates) + 1, len(kind) - len(silent) + 2)
            expected *= (1 - share) ** len(silent)
        found = listed.pop((str(last), str(following)), None)
        if len(between) >= 5 and expected < Fraction(9, 10**7):
            assert found is not None
        if found is not None:
            assert len(between) >= 5
            assert abs(Fraction(found["probability"]) - expected) < Fraction(1, 10**9)
    assert listed == {}


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def series(number: int, days: Sequence[int], **others: object) -> list[Row]:
    each = {"series_id": number.to_bytes(16, "big"), "series_period": "monthly"}
    return [row(day, "-30", **each, **others) for day in days]


def test_a_month_without_any_of_its_recurring_payments_is_a_gap() -> None:
    paid = [0, 31, 59, 120, 151]  # none in April
    rows = [*series(1, paid), *series(2, [day + 5 for day in paid]), *daily(range(0, 156, 5))]
    [gap] = [each for each in gaps(rows, 160) if each["evidence"] == "series_missing"]
    assert (gap["lastSeen"], gap["nextSeen"], gap["missingSeries"]) == ("2025-03-06", "2025-05-01", 2)
    assert (
        gaps(mark_balances(add_balances(sorted(rows, key=lambda each: each["date"]))), 160) == []
    )  # balances prove the month
    assert not any(
        each["evidence"] == "series_missing" for each in gaps([*series(1, paid), *daily(range(0, 156, 5))], 160)
    )


def test_a_hole_between_two_statements_is_a_gap() -> None:
    first, second = daily(range(0, 60, 4)), daily(range(70, 130, 4), received_seq=2)
    [gap] = gaps([*first, *second], 130)
    assert (gap["evidence"], gap["lastSeen"], gap["nextSeen"]) == ("statement_period", "2025-02-26", "2025-03-12")
    assert gaps([*first, *daily(range(62, 130, 4), received_seq=2)], 130) == []


def test_gaps_state_what_would_resolve_them() -> None:
    rows = add_ids(add_balances(daily(range(100))))
    data = completeness(mark_balances(rows[:40] + rows[50:]), 100)
    assert codes(data)[-1] == "BalanceBreaks"
    assert data["reasons"][-1]["settledBy"] == "supply account ending 2233 again from 9 Feb 2025 to 20 Feb 2025"


# Reconciliation.


def test_an_account_reconciles_in_all_by_month_and_by_submission() -> None:
    rows = add_balances(
        [row(day, amount) for day, amount in ((0, "10"), (20, "-4"), (40, "6"), (45, "-1"))], opening=100
    )
    late = [{**each, "received_seq": 2 if place > 1 else 1} for place, each in enumerate(rows)]
    data = completeness(mark_balances(late), 50)
    whole = {
        "accountId": "00000000-0000-0000-0000-000000000001",
        "fromDate": "2025-01-01",
        "throughDate": "2025-02-15",
        "openingBalance": 100,
        "closingBalance": 111,
        "moneyIn": 16,
        "moneyOut": 5,
        "difference": 0,
    }
    assert data["reconciliation"] == [whole]
    figures = ("openingBalance", "moneyIn", "moneyOut", "closingBalance", "difference")
    for table in ("reconciliationByMonth", "reconciliationBySubmission"):
        assert [tuple(each[name] for name in figures) for each in data[table]] == [
            (100, 10, 4, 106, 0),
            (106, 6, 1, 111, 0),
        ]
    assert [each["submission"] for each in data["reconciliationBySubmission"]] == [1, 2]


@examples(6)
@given(statements(), st.data())
def test_differences_are_the_amount_of_the_removed_rows(whole: list[Row], data: st.DataObject) -> None:
    days = data.draw(some_of(whole, "date"))
    retained = mark_balances(days)
    first, last = days[0]["date"], days[-1]["date"]
    taken = [each for each in whole if each not in days and first <= each["date"] <= last]
    [account] = rows_of(BY_ACCOUNTS, retained, 900)
    assert account["difference"] == sum((each["amount"] for each in taken), Decimal(0))
    assert account["moneyIn"] == sum((each["amount"] for each in days if each["amount"] > 0), Decimal(0))
    for table in (BY_MONTHS, BY_SUBMISSIONS):
        periods = rows_of(table, retained, 900)
        assert sum((each["difference"] for each in periods), Decimal(0)) == account["difference"]
        for before, after in pairwise(periods):
            assert before["closingBalance"] == after["openingBalance"]


def test_without_balances_nothing_can_be_reconciled() -> None:
    data = completeness(daily(range(10)), 10)
    assert (data["reconciliation"], data["reconciliationByMonth"]) == ([], [])
