"""Super and activity statements: due dates, payments attributed to periods, and agreement with an oracle."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from random import Random
from typing import Any

import holidays
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.figures.context import ATTRIBUTES, NO_CONTEXT, Context
from pipelines.figures.tables import Table
from pipelines.reports.aggregate.due_dates import business_days_after, statement_due, super_due
from pipelines.reports.aggregate.payment_order import attribute_to_oldest
from pipelines.reports.aggregate.super_obligations import SUPER_OBLIGATIONS
from pipelines.reports.aggregate.tax_obligations import TAX_OBLIGATIONS
from pipelines.reports.aggregate.tax_rules import OBLIGATIONS, parse_obligations
from pipelines.vocabulary.rule_files import RuleError
from tests.conftest import examples
from tests.pipelines.reports.examples import Row, posted_rows, row
from tests.pipelines.reports.tables import Value, assert_explained, facts_of, values

TODAY = date(2027, 12, 31)
CENT = Decimal("0.01")
WAGES, SUPER = "payroll/wages", "payroll/superannuation"
BAS, WITHHOLDING, TAX_BACK = "tax/bas", "tax/payg_withholding", "tax/tax_refund"
SALE, COST = "revenue/card_settlement", "cost_of_sales/suppliers"


def context_with(**attributes: str) -> Context:
    rows = [{"customer_number": 1, "name": name, "value": value} for name, value in attributes.items()]
    return Context(attributes=pl.DataFrame(rows, schema=ATTRIBUTES))


REGISTERED = context_with(gstRegistered="true")


def table_values(table: Table, rows: Iterable[Row], context: Context = NO_CONTEXT) -> list[Value]:
    return values(table, facts_of(rows, TODAY, context))


def columns(table: Table, rows: Iterable[Row], *names: str, context: Context = NO_CONTEXT) -> list[tuple[Any, ...]]:
    return [tuple(value[name] for name in names) for value in table_values(table, rows, context)]


def evaluate_day(day: pl.Expr) -> date:
    only: date = pl.select(day).item()
    return only


def empty_history(first: date, last: date) -> list[Row]:
    """Return a history from one day to another, with nothing else in it."""
    return [row(first, "0"), row(last, "0")]


# When things are due


@pytest.mark.parametrize(
    ("quarter", "due"),
    [
        (date(2025, 9, 30), date(2025, 10, 28)),
        (date(2024, 12, 31), date(2025, 1, 28)),
        (date(2025, 3, 31), date(2025, 4, 28)),
        (date(2026, 6, 30), date(2026, 7, 28)),
        (date(2023, 9, 30), date(2023, 10, 30)),  # a Saturday
        (date(2023, 12, 31), date(2024, 1, 29)),  # a Sunday, and Australia Day was the Friday
    ],
)
def test_super_of_a_quarter_is_due_on_the_28th_of_the_month_after(quarter: date, due: date) -> None:
    assert evaluate_day(super_due(pl.lit(quarter))) == due


@pytest.mark.parametrize(
    ("quarter", "due"),
    [
        (date(2025, 9, 30), date(2025, 10, 28)),
        (date(2024, 12, 31), date(2025, 2, 28)),
        (date(2023, 12, 31), date(2024, 2, 28)),  # of a leap year
        (date(2025, 12, 31), date(2026, 3, 3)),  # a Saturday, and Monday is Labour Day in Western Australia
        (date(2024, 3, 31), date(2024, 4, 29)),  # a Sunday
        (date(2024, 6, 30), date(2024, 7, 29)),
    ],
)
def test_an_activity_statement_is_due_on_the_28th_and_in_february_for_december(quarter: date, due: date) -> None:
    assert evaluate_day(statement_due(pl.lit(quarter))) == due


@pytest.mark.parametrize(
    ("payday", "due"),
    [
        (date(2026, 7, 1), date(2026, 7, 10)),
        (date(2026, 7, 4), date(2026, 7, 14)),  # a Saturday: the first day is the Monday
        (date(2026, 7, 29), date(2026, 8, 10)),  # Picnic Day in the Northern Territory
        (date(2026, 12, 24), date(2027, 1, 7)),  # Christmas, Boxing Day and its Monday, New Year
    ],
)
def test_super_of_a_payday_is_due_seven_business_days_later(payday: date, due: date) -> None:
    assert evaluate_day(business_days_after(pl.lit(payday), 7)) == due


# Super


def test_a_paid_quarter_of_super_is_met() -> None:
    rows = [
        *empty_history(date(2025, 7, 1), date(2025, 12, 31)),
        row(date(2025, 7, 10), "-810", kind=WAGES),
        row(date(2025, 9, 30), "-810", kind=WAGES),
        row(date(2025, 10, 28), "-240", kind=SUPER),
    ]
    assert table_values(SUPER_OBLIGATIONS, rows)[0] == {
        "periodStart": "2025-07-01",
        "periodEnd": "2025-09-30",
        "kind": "quarterly",
        "dueDate": "2025-10-28",
        "partial": False,
        "due": True,
        "rate": Decimal("0.12"),
        "assumedWithholding": Decimal("0.19"),
        "wagesPaid": Decimal(1620),
        "superPaid": Decimal(240),
        "assumedGross": Decimal(2000),
        "expectedSuper": Decimal(240),
        "shortfall": Decimal(0),
        "status": "met",
    }


@pytest.mark.parametrize(
    ("paid", "status"),
    [("-240", "met"), ("-216", "met"), ("-215.99", "short"), ("-24", "short"), ("-23.99", "missing"), ("0", "missing")],
)
def test_met_leaves_room_for_the_assumptions(paid: str, status: str) -> None:
    rows = [
        *empty_history(date(2025, 7, 1), date(2025, 10, 28)),
        row(date(2025, 7, 10), "-1620", kind=WAGES),
        row(date(2025, 9, 1), paid, kind=SUPER),
    ]
    assert columns(SUPER_OBLIGATIONS, rows, "status")[0] == (status,)


def test_super_paid_a_day_late_does_not_count_for_the_quarter() -> None:
    rows = [
        *empty_history(date(2025, 7, 1), date(2025, 12, 31)),
        row(date(2025, 7, 10), "-1620", kind=WAGES),
        row(date(2025, 10, 29), "-240", kind=SUPER),
    ]
    assert columns(SUPER_OBLIGATIONS, rows, "periodEnd", "superPaid", "status") == [
        ("2025-09-30", 0, "missing"),
        ("2025-12-31", 240, "no_wages"),
    ]


def test_a_quarter_is_judged_once_the_history_reaches_its_due_date() -> None:
    wages = row(date(2025, 7, 10), "-1620", kind=WAGES)
    for last, status in ((date(2025, 10, 27), "not_due"), (date(2025, 10, 28), "missing")):
        assert columns(SUPER_OBLIGATIONS, [*empty_history(date(2025, 7, 1), last), wages], "status")[0] == (status,)


def test_the_rate_changes_with_the_financial_year() -> None:
    days = (
        date(2023, 6, 30),
        date(2023, 7, 1),
        date(2024, 6, 30),
        date(2024, 7, 1),
        date(2025, 6, 30),
        date(2025, 7, 1),
    )
    rates = {
        v["periodEnd"]: v["rate"] for v in table_values(SUPER_OBLIGATIONS, [row(day, "-1", kind=WAGES) for day in days])
    }
    ends = ("2023-06-30", "2023-09-30", "2024-06-30", "2024-09-30", "2025-06-30", "2025-09-30")
    assert [rates[end] for end in ends] == [
        Decimal(rate) for rate in ("0.105", "0.11", "0.11", "0.115", "0.115", "0.12")
    ]


def test_payday_super_begins_with_wages_of_1_july_2026() -> None:
    rows = [
        row(date(2026, 6, 30), "-810", kind=WAGES),
        row(date(2026, 7, 1), "-405", kind=WAGES),
        row(date(2026, 8, 1), "0"),
    ]
    names = ("kind", "periodStart", "periodEnd", "dueDate", "expectedSuper", "status")
    assert columns(SUPER_OBLIGATIONS, rows, *names) == [
        ("quarterly", "2026-04-01", "2026-06-30", "2026-07-28", 120, "missing"),
        ("payday", "2026-07-01", "2026-07-01", "2026-07-10", 60, "missing"),
    ]


def weekly(first: date, weeks: int, lag: int, *, super_share: str = "0.12") -> list[Row]:
    """Return wages of 810 (gross 1,000) every week, with super on them some days later."""
    days = [first + timedelta(weeks=week) for week in range(weeks)]
    wages = [row(day, "-810", kind=WAGES) for day in days]
    return [*wages, *(row(day + timedelta(days=lag), -1000 * Decimal(super_share), kind=SUPER) for day in days)]


@pytest.mark.parametrize("lag", [-2, 0, 5, 8])
def test_super_with_every_payday_is_met_though_the_periods_overlap(lag: int) -> None:
    rows = [*weekly(date(2026, 7, 9), 12, lag), row(date(2026, 10, 31), "0")]
    assert set(columns(SUPER_OBLIGATIONS, rows, "kind", "superPaid", "status")) == {("payday", 120, "met")}


def test_super_with_every_payday_is_met_on_both_sides_of_1_july_2026() -> None:
    rows = [*weekly(date(2026, 1, 1), 40, 0), row(date(2026, 12, 1), "0")]
    assert {status for (status,) in columns(SUPER_OBLIGATIONS, rows, "status")} == {"met"}


def test_a_monthly_payer_is_late_for_most_paydays_from_july_2026() -> None:
    wages = [row(date(2026, 7, 2) + timedelta(weeks=week), "-810", kind=WAGES) for week in range(9)]
    paid = [row(date(2026, month, 21), "-520", kind=SUPER) for month in (8, 9)]
    statuses = [
        status for (status,) in columns(SUPER_OBLIGATIONS, [*wages, *paid, row(date(2026, 10, 1), "0")], "status")
    ]
    # A payment on 21 August is still in time for the payday of the 13th, and counts for those of the 20th and 27th.
    assert statuses == ["missing"] * 6 + ["met"] * 3


def test_in_july_2026_payments_go_to_the_previous_quarter_first() -> None:
    rows = [
        row(date(2026, 4, 1), "-810", kind=WAGES),
        row(date(2026, 7, 2), "-810", kind=WAGES),
        row(date(2026, 7, 3), "-200", kind=SUPER),
        row(date(2026, 8, 1), "0"),
    ]
    assert columns(SUPER_OBLIGATIONS, rows, "superPaid", "shortfall", "status") == [(120, 0, "met"), (80, 40, "short")]


def test_the_quarter_before_the_history_takes_what_is_paid_by_its_due_date() -> None:
    quarterly = [row(date(2025, month, 26), "-1560", kind=SUPER) for month in (1, 4, 7)]  # January's is for 2024
    wages = [row(date(2025, 1, 3) + timedelta(weeks=week), "-810", kind=WAGES) for week in range(29)]
    rows = [row(date(2025, 1, 2), "0"), *quarterly, *wages]
    # What April brought beyond 13 weeks at 11.5 % is not an early payment: what was due before 2 January isn't known.
    assert columns(SUPER_OBLIGATIONS, rows, "expectedSuper", "superPaid") == [(1495, 1560), (1495, 1495), (360, 65)]


def test_own_transfers_and_returned_money_are_no_super() -> None:
    rows = [
        *empty_history(date(2025, 7, 1), date(2025, 12, 31)),
        row(date(2025, 8, 1), "-100", kind=SUPER, is_transfer=True),
        row(date(2025, 8, 1), "50", kind=SUPER),
        row(date(2025, 8, 1), "-30", kind=WAGES, is_transfer=True),
    ]
    assert columns(SUPER_OBLIGATIONS, rows, "wagesPaid", "superPaid", "status") == [(0, 0, "no_wages")] * 2


def test_the_last_five_years_are_listed_and_none_before_rates_are_known() -> None:
    periods = [
        end for (end,) in columns(SUPER_OBLIGATIONS, empty_history(date(1970, 1, 1), date(2026, 6, 30)), "periodEnd")
    ]
    assert (len(periods), periods[0], periods[-1]) == (20, "2021-09-30", "2026-06-30")
    assert table_values(SUPER_OBLIGATIONS, empty_history(date(1970, 1, 1), date(2014, 6, 30))) == []
    assert [
        end for (end,) in columns(SUPER_OBLIGATIONS, empty_history(date(1970, 1, 1), date(2014, 7, 1)), "periodEnd")
    ] == ["2014-09-30"]


def test_first_and_last_quarter_are_partial() -> None:
    rows = empty_history(date(2025, 7, 2), date(2026, 3, 30))
    assert [partial for (partial,) in columns(SUPER_OBLIGATIONS, rows, "partial")] == [True, False, True]


# Activity statements


def quarter_of_trade(first: date) -> list[Row]:
    """Return rows that imply GST of 1,000 − 400 and withheld tax of 190: 790 in all."""
    return [row(first, "11000", kind=SALE), row(first, "-4400", kind=COST), row(first, "-810", kind=WAGES)]


def test_a_paid_activity_statement_is_met() -> None:
    rows = [
        *quarter_of_trade(date(2025, 7, 1)),
        row(date(2025, 8, 21), "-90", kind=WITHHOLDING),
        row(date(2025, 10, 28), "-720", kind=BAS),
        row(date(2025, 9, 1), "-11", kind="tax/payg_instalment"),
        row(date(2025, 9, 1), "-12", kind="tax/income_tax"),
        row(date(2025, 9, 1), "-13", kind="tax/tax_payment_plan"),
        row(date(2025, 9, 1), "-14", kind="tax/tax_interest"),
    ]
    assert table_values(TAX_OBLIGATIONS, rows, REGISTERED)[0] == {
        "periodStart": "2025-07-01",
        "periodEnd": "2025-09-30",
        "dueDate": "2025-10-28",
        "partial": False,
        "due": True,
        "gstRegistered": True,
        "taxableShare": Decimal(1),
        "assumedWithholding": Decimal("0.19"),
        "revenueOfTaxedKinds": Decimal(11000),
        "taxedCosts": Decimal(4400),
        "wagesPaid": Decimal(810),
        "instalments": Decimal(11),
        "incomeTax": Decimal(12),
        "paymentPlan": Decimal(13),
        "interestAndPenalties": Decimal(14),
        "paid": Decimal(810),
        "daysLate": None,
        "taxableRevenue": Decimal(11000),
        "gstOnSales": Decimal(1000),
        "gstInCosts": Decimal(400),
        "impliedGst": Decimal(600),
        "assumedGross": Decimal(1000),
        "impliedWithholding": Decimal(190),
        "impliedTotal": Decimal(790),
        "variance": Decimal(20),
        "status": "met",
    }


@pytest.mark.parametrize(
    ("paid", "status"),
    [("-592.50", "met"), ("-592.49", "short"), ("-79", "short"), ("-78.99", "missing"), ("0", "missing")],
)
def test_a_statement_is_met_short_or_missing(paid: str, status: str) -> None:
    rows = [*quarter_of_trade(date(2025, 7, 1)), row(date(2025, 10, 28), paid, kind=BAS)]
    assert columns(TAX_OBLIGATIONS, rows, "status", context=REGISTERED)[0] == (status,)


def test_a_payment_after_an_unpaid_due_date_is_late() -> None:
    rows = [
        *(each for month in (7, 10) for each in quarter_of_trade(date(2025, month, 1))),
        row(date(2025, 11, 10), "-790", kind=BAS),
        row(date(2026, 3, 3), "-790", kind=BAS),
    ]
    assert columns(TAX_OBLIGATIONS, rows, "paid", "daysLate", "status", context=REGISTERED)[:2] == [
        (790, 13, "late"),
        (790, None, "met"),
    ]


def test_money_that_was_late_for_one_quarter_does_not_pay_the_next() -> None:
    rows = [
        *(each for month in (7, 10) for each in quarter_of_trade(date(2025, month, 1))),
        row(date(2025, 11, 10), "-790", kind=BAS),
        row(date(2026, 3, 10), "-790", kind=BAS),
    ]
    assert columns(TAX_OBLIGATIONS, rows, "paid", "daysLate", "status", context=REGISTERED)[:2] == [
        (790, 13, "late"),
        (790, 7, "late"),
    ]


def test_an_early_payment_is_not_late_for_a_paid_quarter() -> None:
    """Larger employers pay withheld tax every month."""
    rows = [
        *(each for month in (7, 10) for each in quarter_of_trade(date(2025, month, 1))),
        row(date(2025, 10, 28), "-790", kind=BAS),
        row(date(2025, 11, 21), "-90", kind=WITHHOLDING),
        row(date(2025, 12, 22), "-90", kind=WITHHOLDING),
        row(date(2026, 3, 3), "-610", kind=BAS),
    ]
    assert columns(TAX_OBLIGATIONS, rows, "paid", "daysLate", "status", context=REGISTERED)[:2] == [
        (790, None, "met"),
        (790, None, "met"),
    ]


def test_a_refund_has_status_refunded() -> None:
    rows = [*quarter_of_trade(date(2025, 7, 1)), row(date(2025, 10, 28), "50", kind=TAX_BACK)]
    assert columns(TAX_OBLIGATIONS, rows, "paid", "status", context=REGISTERED)[0] == (-50, "refunded")


def test_an_unregistered_business_owes_only_withheld_tax() -> None:
    rows = [*quarter_of_trade(date(2025, 7, 1)), row(date(2025, 9, 30), "0")]
    context = context_with(gstRegistered="false")
    assert columns(TAX_OBLIGATIONS, rows, "impliedGst", "impliedTotal", "status", context=context) == [
        (0, 190, "not_due")
    ]
    assert columns(TAX_OBLIGATIONS, empty_history(date(2025, 7, 1), date(2025, 7, 2)), "status") == [
        ("nothing_implied",)
    ]


# The oracles: loops.


def exact(amount: Decimal) -> Decimal:
    return amount.quantize(CENT, ROUND_HALF_EVEN)


CLOSED = {
    day
    for state in ("ACT", "NSW", "NT", "QLD", "SA", "TAS", "VIC", "WA")
    for day in holidays.country_holidays("AU", subdiv=state, years=range(2013, 2029))
}


def is_business_day(day: date) -> bool:
    return day.weekday() < 5 and day not in CLOSED


def from_then(day: date) -> date:
    while not is_business_day(day):
        day += timedelta(days=1)
    return day


def days_after(day: date, count: int) -> date:
    while count:
        day += timedelta(days=1)
        count -= is_business_day(day)
    return day


def quarter(day: date) -> tuple[date, date]:
    first = date(day.year, (day.month - 1) // 3 * 3 + 1, 1)
    after = date(day.year + (first.month == 10), (first.month + 2) % 12 + 1, 1)
    return first, after - timedelta(days=1)


def previous(day: date) -> tuple[date, date]:
    return quarter(quarter(day)[0] - timedelta(days=1))


def payments_of_kinds(rows: Iterable[Row], *kinds: str) -> list[Row]:
    """Return the rows of a kind that go to others."""
    named = {kind.partition("/")[2] for kind in kinds}
    return [each for each in rows if each["category"] in named and not each["is_transfer"]]


def debits(rows: Iterable[Row]) -> list[Row]:
    return [each for each in rows if each["amount"] < 0]


PAYDAYS_FROM = date(2026, 7, 1)


def all_quarters(posted: Sequence[Row]) -> list[tuple[date, date]]:
    last = max(each["date"] for each in posted)
    begin = previous(min(each["date"] for each in posted))
    found = []
    while begin[0] <= last:
        found.append(begin)
        begin = quarter(begin[1] + timedelta(days=1))
    return found


def super_by_hand(posted: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Return `periodStart, periodEnd, dueDate, wages, expected, paid` of every listed period."""
    first, last = min(each["date"] for each in posted), max(each["date"] for each in posted)
    wages, paid = debits(payments_of_kinds(posted, WAGES)), debits(payments_of_kinds(posted, SUPER))
    debts: list[dict[str, Any]] = []
    with_wages = 2 * len({each["date"] for each in paid}) >= len({each["date"] for each in wages})
    for start, end in all_quarters(posted):
        due = from_then(end + timedelta(days=28))
        if end < PAYDAYS_FROM and due >= first:
            mine = [each for each in wages if start <= each["date"] <= end]
            debts.append(
                {"start": start, "end": end, "due": due, "wages": mine, "open": start < first and not with_wages}
            )
    before = None
    for payday in sorted({each["date"] for each in wages if each["date"] >= PAYDAYS_FROM}):
        start = max(payday - timedelta(days=7), PAYDAYS_FROM, before + timedelta(days=1) if before else PAYDAYS_FROM)
        mine = [each for each in wages if each["date"] == payday]
        debts.append({"start": start, "end": payday, "due": days_after(payday, 7), "wages": mine, "open": False})
        before = payday
    for debt in debts:
        end = debt["end"]
        rates = ((date(2025, 7, 1), "0.12"), (date(2024, 7, 1), "0.115"), (date(2023, 7, 1), "0.11"))
        rate = next(Decimal(rate) for since, rate in rates if end >= since)
        withheld = Decimal("0.19") if end >= date(2024, 7, 1) else Decimal("0.21")
        debt["sum"] = -sum((each["amount"] for each in debt["wages"]), Decimal(0))
        debt["expected"] = exact(exact(debt["sum"] / (1 - withheld)) * rate)
        debt["paid"], debt["excess"] = Decimal(0), Decimal(0)
    for each in sorted(paid, key=lambda each: each["date"]):
        pay_the_oldest(debts, each["date"], -each["amount"])
    return [
        (debt["start"], debt["end"], debt["due"], debt["sum"], debt["expected"], debt["paid"] + debt["excess"])
        for debt in debts
        if debt["end"] >= first and debt["end"] > five_years_before(last)
    ]


def pay_the_oldest(debts: Sequence[dict[str, Any]], day: date, amount: Decimal) -> None:
    quarters = [debt for debt in debts if debt["end"] < PAYDAYS_FROM]
    paydays = [debt for debt in debts if debt["end"] >= PAYDAYS_FROM]
    for debt in (*quarters, *paydays):
        if debt["start"] <= day <= debt["due"]:
            part = amount if debt["open"] else min(amount, debt["expected"] - debt["paid"])
            debt["paid"] += part
            amount -= part
    begun = [debt for debt in (quarters if day < PAYDAYS_FROM else paydays) if debt["start"] <= day]
    if begun and day <= begun[-1]["due"]:
        begun[-1]["excess"] += amount


def tax_by_hand(posted: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Return `periodEnd, dueDate, impliedGst, impliedTotal, paid, daysLate` of every listed quarter, if registered."""
    first, last = min(each["date"] for each in posted), max(each["date"] for each in posted)
    due = {end: statement_day(end) for _, end in all_quarters(posted)}
    known = [(start, end) for start, end in all_quarters(posted) if due[end] >= first]
    implied = {end: compute_implied_tax([e for e in posted if start <= e["date"] <= end], end) for start, end in known}
    payments = sorted(
        [*debits(payments_of_kinds(posted, BAS, WITHHOLDING)), *payments_of_kinds(posted, TAX_BACK)],
        key=lambda each: each["date"],
    )
    paid: dict[date, Decimal] = defaultdict(Decimal)
    late: dict[date, int] = {}
    unpaid = False
    for start, end in known:
        # Payments between the due date of the quarter before and this quarter's end; and from there to its due date.
        early = [e for e in payments if start <= e["date"] <= end and e["date"] > statement_day(previous(end)[1])]
        after = [e for e in payments if end < e["date"] <= due[end]]
        before = previous(end)[1]
        retained = list(after)
        for each in early:
            if unpaid and each["amount"] < 0:
                paid[before] -= each["amount"]
                late.setdefault(before, (each["date"] - due[before]).days)
            else:
                retained.append(each)
        paid[end] -= sum((each["amount"] for each in retained), Decimal(0))
        enough = exact(max(implied[end][1], Decimal(0)) * Decimal("0.25"))
        unpaid = -sum((each["amount"] for each in retained if is_paid(each)), Decimal(0)) < enough
    return [
        (end, due[end], *implied[end], paid[end], late.get(end))
        for _, end in known
        if end >= first and end > five_years_before(last)
    ]


def five_years_before(day: date) -> date:
    return date(day.year - 5, day.month, 28 if (day.month, day.day) == (2, 29) else day.day)


def is_paid(each: Row) -> bool:
    return bool(each["amount"] < 0 and each["category"] != "tax_refund")


def statement_day(end: date) -> date:
    month = 2 if end.month == 12 else end.month + 1
    return from_then(date(end.year + (end.month == 12), month, 28))


def compute_implied_tax(rows: Sequence[Row], end: date) -> tuple[Decimal, Decimal]:
    sales = sum((each["amount"] for each in payments_of_kinds(rows, SALE)), Decimal(0))
    costs = -sum((each["amount"] for each in payments_of_kinds(rows, COST)), Decimal(0))
    wages = -sum((each["amount"] for each in debits(payments_of_kinds(rows, WAGES))), Decimal(0))
    gross = exact(wages / (Decimal("0.81") if end >= date(2024, 7, 1) else Decimal("0.79")))
    gst = exact(sales / 11) - exact(costs / 11)
    return gst, gst + gross - wages


KINDS = (WAGES, WAGES, SUPER, SUPER, SALE, COST, BAS, BAS, WITHHOLDING, TAX_BACK)
EPOCHS = (date(2024, 1, 15), date(2026, 3, 1), date(2026, 6, 20))  # before, across and close to payday super


@st.composite
def histories(draw: st.DrawFn) -> list[Row]:
    start = draw(st.sampled_from(EPOCHS))
    days = draw(st.sampled_from((20, 150, 500)))
    each = st.builds(
        lambda day, cents, kind, status, own: row(
            start + timedelta(days=day),
            Decimal(cents if kind == SALE or (kind == TAX_BACK and cents % 5) else -cents).scaleb(-2),
            kind=kind,
            status=status,
            is_transfer=own,
        ),
        st.integers(0, days),
        st.integers(0, 300_000),
        st.sampled_from(KINDS),
        st.sampled_from(("posted",) * 9 + ("pending",)),
        st.sampled_from((False,) * 9 + (True,)),
    )
    return draw(st.lists(each, min_size=1, max_size=40))


def as_dates(value: Value, *names: str) -> tuple[Any, ...]:
    dated = ("periodStart", "periodEnd", "dueDate")
    return tuple(date.fromisoformat(value[name]) if name in dated else value[name] for name in names)


@given(histories())
def test_super_obligations_agree_with_the_oracle(rows: list[Row]) -> None:
    names = ("periodStart", "periodEnd", "dueDate", "wagesPaid", "expectedSuper", "superPaid")
    posted = posted_rows(rows)
    assert [as_dates(value, *names) for value in table_values(SUPER_OBLIGATIONS, rows)] == (
        super_by_hand(posted) if posted else []
    )


def test_a_refund_that_is_paid_back_does_not_pay_the_quarter() -> None:
    wages, back = row(date(2024, 7, 1), "-1000", kind=WAGES), row(date(2024, 7, 30), "-145", kind=TAX_BACK)
    rows = [*empty_history(date(2024, 1, 15), date(2024, 12, 1)), wages, back, row(date(2024, 10, 29), "-1", kind=BAS)]
    late = columns(TAX_OBLIGATIONS, rows, "periodEnd", "daysLate")
    assert dict(late)["2024-09-30"] == 1


@given(histories())
def test_tax_obligations_agree_with_the_oracle(rows: list[Row]) -> None:
    names = ("periodEnd", "dueDate", "impliedGst", "impliedTotal", "paid", "daysLate")
    posted = posted_rows(rows)
    assert [as_dates(value, *names) for value in table_values(TAX_OBLIGATIONS, rows, REGISTERED)] == (
        tax_by_hand(posted) if posted else []
    )


both_tables = pytest.mark.parametrize("table", [SUPER_OBLIGATIONS, TAX_OBLIGATIONS], ids=lambda table: table.id)


@both_tables
@examples(1)
@given(histories())
def test_every_number_comes_from_rows(table: Table, rows: list[Row]) -> None:
    amounts = {place.to_bytes(16, "big"): abs(each["amount"]) for place, each in enumerate(rows)}
    assert_explained(table, facts_of(rows, TODAY, REGISTERED), amounts)


@both_tables
@examples(2)
@given(st.lists(histories(), min_size=2, max_size=3), st.randoms(use_true_random=False))
def test_customers_together_in_any_order_have_the_same_obligations_as_alone(
    table: Table, customers: list[list[Row]], random: Random
) -> None:
    each = [
        [{**row, "customer_number": number, "position": place} for place, row in enumerate(rows)]
        for number, rows in enumerate(customers)
    ]
    together = [row for rows in each for row in rows]
    alone = [value for rows in each for value in table_values(table, rows)]
    assert table_values(table, random.sample(together, len(together))) == alone


@both_tables
def test_no_rows_give_no_obligations(table: Table) -> None:
    assert table_values(table, []) == []
    assert table_values(table, [row(date(2025, 1, 1), "5", status="pending")]) == []


@both_tables
def test_obligations_of_the_largest_amounts_are_exact(table: Table) -> None:
    most = Decimal("9999999999999.99")
    rows = [row(date(2026, 7, 1), -most, kind=kind) for kind in (WAGES, SUPER, COST, BAS) for _ in range(60)]
    [value, *_] = [each for each in table_values(table, rows, REGISTERED) if each["wagesPaid"]]
    assert value["wagesPaid"] == most * 60
    assert value["assumedGross"] == exact(most * 60 / Decimal("0.81"))


# What payments settle


def debt(end: int, begins: int, until: int, need: str) -> Mapping[str, Any]:
    days = {"periodEnd": end, "begins": begins, "until": until}
    return {"customer_number": 1, **{name: date(2026, 1, day) for name, day in days.items()}, "need": Decimal(need)}


def payment(day: int, amount: str) -> Mapping[str, Any]:
    return {"customer_number": 1, "payment": day, "date": date(2026, 1, day), "amount": Decimal(amount)}


def resolutions(
    debts: Sequence[Mapping[str, Any]], payments: Sequence[Mapping[str, Any]]
) -> tuple[list[Any], list[Any]]:
    parts, rest = attribute_to_oldest(pl.DataFrame(debts), pl.DataFrame(payments))
    described_parts = [(row["payment"], row["periodEnd"].day, row["part"]) for row in parts.iter_rows(named=True)]
    return sorted(described_parts), sorted(rest.select("payment", "amount").iter_rows())


def test_a_payment_settles_the_oldest_first_and_goes_on_to_the_next() -> None:
    debts = [debt(10, 1, 20, "100"), debt(20, 11, 30, "50"), debt(25, 15, 31, "50")]
    assert resolutions(debts, [payment(5, "60"), payment(12, "60"), payment(16, "200")]) == (
        [(5, 10, 60), (12, 10, 40), (12, 20, 20), (16, 20, 30), (16, 25, 50)],
        [(16, 120)],
    )


def test_a_payment_settles_neither_closed_nor_future_debts() -> None:
    debts = [debt(10, 5, 12, "100"), debt(20, 15, 25, "50")]
    assert resolutions(debts, [payment(2, "1"), payment(6, "150"), payment(13, "30"), payment(26, "9")]) == (
        [(6, 10, 100)],
        [(2, 1), (6, 50), (13, 30), (26, 9)],
    )


def test_unpaid_debts_stay_unpaid_after_they_close() -> None:
    debts = [debt(10, 1, 12, "100"), debt(20, 11, 25, "50")]
    assert resolutions(debts, [payment(9, "10"), payment(13, "80")]) == ([(9, 10, 10), (13, 20, 50)], [(13, 30)])


# The rules


def rules(**changes: Mapping[str, object]) -> dict[str, Any]:
    steps = [{"from": date(2014, 7, 1), "share": "0.1"}, {"from": date(2020, 7, 1), "share": "0.2"}]
    document: dict[str, Any] = {
        "years_listed": 5,
        "super_guarantee": {
            "rates": steps,
            "due_day": 28,
            "payday_super_from": date(2026, 7, 1),
            "business_days": 7,
            "days_ahead": 7,
            "met_from": "0.9",
            "missing_below": "0.1",
        },
        "withholding": {"shares": steps},
        "activity_statements": {"due_day": 28, "met_from": "0.75", "missing_below": "0.1", "unpaid_below": "0.25"},
    }
    return {
        name: {**section, **changes.get(name, {})} if isinstance(section, dict) else section
        for name, section in document.items()
    }


def test_rules_are_read_exactly() -> None:
    assert parse_obligations(rules()).withheld.steps == (
        (date(2014, 7, 1), Decimal("0.1")),
        (date(2020, 7, 1), Decimal("0.2")),
    )
    assert OBLIGATIONS.super_guarantee.rates.steps[-1] == (date(2025, 7, 1), Decimal("0.12"))


@pytest.mark.parametrize(
    ("section", "changes", "fault"),
    [
        ("super_guarantee", {"rates": []}, "rates must be a list"),
        ("super_guarantee", {"rates": [{"from": date(2020, 1, 1), "share": 0.1}]}, "rates has an entry that"),
        ("super_guarantee", {"payday_super_from": date(2026, 7, 2)}, "payday_super_from must start a quarter"),
        ("super_guarantee", {"business_days": 0}, "business_days must be a whole number"),
        ("super_guarantee", {"met_from": "1.5"}, "met_from must be a share"),
        ("activity_statements", {"rate": "0.1"}, "activity_statements.s keys must be"),
        (
            "withholding",
            {"shares": [{"from": date(2021, 1, 1), "share": "0.1"}, {"from": date(2020, 1, 1), "share": "0.1"}]},
            "shares must go from the earliest",
        ),
    ],
)
def test_rules_with_a_fault_are_refused(section: str, changes: dict[str, object], fault: str) -> None:
    with pytest.raises(RuleError, match=fault):
        parse_obligations(rules(**{section: changes}))
