"""Receipts that were moved to earlier days are found by their invoices' numbers and by their processor's rhythm."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal

from pipelines.integrity import findings
from pipelines.integrity.finding import finding_rows
from tests.pipelines.reports.completeness_examples import facts_of
from tests.pipelines.reports.examples import START, Row, row

DAYS = 300
WEEKDAYS = [day for day in range(DAYS) if (START + timedelta(days=day)).weekday() < 5]


def moved_days(rows: Sequence[Row]) -> list[int]:
    """Return the days, counted from START, of the rows that seem to be moved."""
    facts = facts_of(sorted(rows, key=lambda each: each["date"]), DAYS - 1)
    assert set(findings(facts)["finding"]) <= {"receipts_moved"}
    return [(day - START).days for day in finding_rows(facts)["date"]]


def invoices(paid_on: Mapping[int, int]) -> list[Row]:
    """Return receipts for invoices: one each four days, or on another day that `paid_on` states by number."""
    days = {number: paid_on.get(number, 4 * (number - 1000)) for number in range(1000, 1000 + DAYS // 4)}
    return [row(day, "900", kind="revenue/customer_transfer", description=f"Inv {n} paid") for n, day in days.items()]


def test_invoices_paid_long_before_those_of_lower_numbers_are_moved() -> None:
    assert moved_days(invoices({1060: 100, 1065: 110})) == [100, 110]
    assert moved_days(invoices({1060: 100})) == []
    assert moved_days(invoices({1030: 40, 1035: 50})) == []  # nobody moves those of the year before
    assert moved_days(invoices({1050: 180, 1055: 190, 1060: 200})) == []


def test_moved_invoices_show_although_many_of_the_latest_numbers_are_moved() -> None:
    latest = {number: 4 * (number - 1000) - 90 for number in (1062, 1065, 1068, 1071, 1074)}
    assert moved_days(invoices(latest)) == [158, 170, 182]


def test_one_number_that_two_receipts_print_is_not_enough() -> None:
    paid_twice = row(112, "900", kind="revenue/customer_transfer", description="Inv 1060 paid")
    assert moved_days([*invoices({1060: 100}), paid_twice]) == []


def test_invoices_that_are_paid_in_no_order_show_nothing() -> None:
    assert moved_days(invoices({1060: 100, 1065: 110, 1010: 240, 1015: 250})) == []


def test_small_receipts_show_the_order_of_invoices_too() -> None:
    small = [{**each, "amount": Decimal("19.00")} for each in invoices({1060: 100, 1065: 110})]
    assert moved_days(small) == [100, 110]


def test_invoices_paid_late_are_not_moved() -> None:
    assert moved_days(invoices({1010: 200, 1012: 210, 1014: 220})) == []


def test_numbers_of_payers_show_nothing() -> None:
    own = [
        row(day, "900", kind="revenue/customer_transfer", description=f"Inv {number}")
        for day, number in ((100, 9012), (110, 9410), (120, 52113), (250, 9100), (260, 9500))
    ]
    assert moved_days([*invoices({}), *own]) == []


def test_numbers_without_order_show_nothing() -> None:
    assert moved_days(invoices({number: (37 * number) % DAYS for number in range(1000, 1075)})) == []


def settlements(days: Iterable[int]) -> list[Row]:
    return [row(day, "800", kind="revenue/card_settlement", counterparty_group="processor") for day in days]


LAST = [day for day in WEEKDAYS if day >= DAYS - 42]
MISSING, MOVED_TO = LAST[::4], WEEKDAYS[100 : 100 + len(LAST[::4])]


def test_settlements_that_are_missing_now_and_on_top_of_others_before_are_moved() -> None:
    left = [day for day in WEEKDAYS if day not in MISSING]
    assert moved_days(settlements([*left, *MOVED_TO])) == sorted([*MOVED_TO, *MOVED_TO])


def test_settlements_of_a_weekend_that_are_posted_one_by_one_are_usual() -> None:
    days = [day for day in WEEKDAYS for _ in range(3 if (START + timedelta(days=day)).weekday() == 0 else 1)]
    assert moved_days(settlements(days)) == []
    left = [day for day in days if day not in MISSING]
    assert set(MOVED_TO) <= set(moved_days(settlements([*left, *MOVED_TO])))


def test_weekly_payouts_of_several_platforms_are_judged_together() -> None:
    def payouts(days: Mapping[int, int]) -> list[Row]:
        return [
            row(days.get(day, day), "300", kind="revenue/platform_payout", counterparty_group=f"platform {start}")
            for start in range(1, 5)
            for day in range(start, DAYS, 7)
        ]

    moved_to = {day: day - 101 for day in range(DAYS - 40, DAYS, 3)}  # another weekday
    assert moved_days(payouts({})) == []
    assert len(moved_days(payouts(moved_to))) >= 4


def test_a_closed_business_lacks_settlements_that_are_nowhere_else() -> None:
    left = [day for day in WEEKDAYS if day not in MISSING]
    assert moved_days(settlements(left)) == []
    doubled = WEEKDAYS[100:110]  # after public holidays, say
    assert moved_days(settlements([*WEEKDAYS, *doubled])) == []
    closed = [day for day in WEEKDAYS if not DAYS - 30 < day < DAYS - 14]
    assert moved_days(settlements([*closed, *doubled])) == []


def test_a_processor_without_a_rhythm_shows_nothing() -> None:
    left = [day for day in WEEKDAYS if day not in MISSING]
    assert moved_days(settlements([*left, *left[:200:3]])) == []
