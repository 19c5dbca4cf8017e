"""Receipts that were moved to earlier days are found by their invoices' numbers and by their processor's rhythm."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

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


def test_invoices_paid_long_before_their_neighbours_are_moved() -> None:
    assert moved_days(invoices({1050: 100, 1055: 110, 1060: 120})) == [100, 110, 120]
    assert moved_days(invoices({1050: 100, 1055: 110})) == []
    assert moved_days(invoices({1050: 180, 1055: 190, 1060: 200})) == []


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


MISSING = [day for day in WEEKDAYS if day >= DAYS - 40][::4]


def test_settlements_that_are_missing_now_and_doubled_before_are_moved() -> None:
    doubled = WEEKDAYS[100 : 100 + len(MISSING)]
    left = [day for day in WEEKDAYS if day not in MISSING]
    assert moved_days(settlements([*left, *doubled])) == sorted([*doubled, *doubled])


def test_fewer_opening_days_or_a_second_terminal_alone_show_nothing() -> None:
    left = [day for day in WEEKDAYS if day not in MISSING]
    assert moved_days(settlements(left)) == []
    assert moved_days(settlements([*WEEKDAYS, *WEEKDAYS[100:110]])) == []
    assert moved_days(settlements([*left, *left[:200]])) == []
