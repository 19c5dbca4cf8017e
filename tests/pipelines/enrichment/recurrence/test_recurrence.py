"""Recurring series: which payments belong together, their period, changes, missed payments and next date."""

import sys
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from time import process_time
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipelines.enrichment.recurrence import SERIES, describe_series, mark_series
from pipelines.enrichment.recurrence.schedules import (
    DAILY,
    NO_ANCHOR,
    SCHEDULES,
    TWICE_MONTHLY,
    Schedule,
    find_nearest_due,
)
from pipelines.vocabulary.schemas import TRANSACTIONS
from tests.conftest import examples
from tests.pipelines.enrichment import recurring
from tests.pipelines.enrichment.examples import OTHER_ACCOUNT, held_rows
from tests.pipelines.enrichment.recurring import is_business_day, month_day, move_to_open_day, nth_weekday

Row = dict[str, Any]
MONTHS_OF_2025 = [(2025, month) for month in range(1, 13)]
MARKS = ["series_id", "series_period", "series_next_date"]


def payments(days: Iterable[date], amounts: str | Sequence[str] = "-100", **fields: Any) -> list[Row]:
    """Return a payment on each day to one counterparty. Amounts are repeated if there are fewer."""
    sizes = [amounts] if isinstance(amounts, str) else amounts
    facts = {"counterparty_group": "Acme", "channel": "direct_debit", **fields}
    return [{"date": day, "amount": Decimal(sizes[n % len(sizes)]), **facts} for n, day in enumerate(days)]


def monthly(day: int, count: int = 12) -> list[date]:
    return [move_to_open_day(month_day(year, month, day), "settlement", 1) for year, month in MONTHS_OF_2025[:count]]


def every_days(days: int, count: int, start: date = date(2025, 1, 7)) -> list[date]:
    return [move_to_open_day(start + timedelta(days=days * n), "settlement", 1) for n in range(count)]


def describe_rows(*rows: Row) -> list[dict[str, Any]]:
    return describe_series(held_rows(*rows)).to_dicts()


def describe_only(*rows: Row) -> dict[str, Any]:
    (one,) = describe_rows(*rows)
    return one


def last_business_days() -> list[date]:
    return [move_to_open_day(month_day(year, month, 31), "settlement", -1) for year, month in MONTHS_OF_2025]


def business_days(count: int) -> list[date]:
    days = (date(2025, 2, 3) + timedelta(days=n) for n in range(count * 2))
    return [day for day in days if is_business_day(day, "settlement")][:count]


EVERY_PERIOD = [
    (business_days(30), "business_daily", "every business day"),
    (every_days(7, 10), "weekly", "Tuesday"),
    (every_days(14, 8), "fortnightly", "Tuesday"),
    (every_days(28, 7), "four_weekly", "Tuesday"),
    (sorted([*monthly(1, 8), *monthly(15, 8)]), "twice_monthly", "day 1 of the month and day 15 of the month"),
    (monthly(10, 6), "monthly", "day 10 of the month"),
    (last_business_days(), "monthly", "last business day of the month"),
    ([nth_weekday(*month, 1, 1) for month in MONTHS_OF_2025], "monthly", "second Tuesday of the month"),
    ([nth_weekday(*month, 3, -1) for month in MONTHS_OF_2025], "monthly", "last Thursday of the month"),
    (
        [date(2024, 1, 15), date(2024, 4, 15), date(2024, 7, 15), date(2024, 10, 15), date(2025, 1, 15)],
        "quarterly",
        "day 15 of the month in January, April, July, October",
    ),
    (
        [date(2024, 10, 28), date(2025, 2, 28), date(2025, 4, 28), date(2025, 7, 28)],
        "quarterly",
        "BAS due dates: 28 October, 28 February, 28 April, 28 July",
    ),
    (monthly(21), "monthly", "day 21 of the month"),
    ([date(2023, 5, 9), date(2024, 5, 9), date(2025, 5, 9)], "yearly", "day 9 of the month in May"),
]


@pytest.mark.parametrize(("days", "period", "anchor"), EVERY_PERIOD)
def test_every_period_is_found_and_named(days: list[date], period: str, anchor: str) -> None:
    one = describe_only(*payments(days))
    assert (one["period"], one["anchor"], one["occurrences"]) == (period, anchor, len(days))
    assert (one["missed"], one["doubled"], one["regularity"]) == (0, 0, 1.0)


@pytest.mark.parametrize(
    ("days", "next_date"),
    [
        (business_days(30), date(2025, 3, 17)),
        (every_days(7, 10), date(2025, 3, 18)),
        (monthly(10, 6), date(2025, 7, 10)),
        (monthly(10, 9), date(2025, 10, 10)),
        (monthly(26, 11), date(2025, 12, 29)),  # Boxing Day and a weekend are closed
        (last_business_days()[:7], date(2025, 8, 29)),
        ([date(2024, 10, 28), date(2025, 2, 28), date(2025, 4, 28), date(2025, 7, 28)], date(2025, 10, 28)),
    ],
)
def test_the_next_payment_is_expected_on_a_business_day(days: list[date], next_date: date) -> None:
    assert describe_only(*payments(days))["next_date"] == next_date


def test_new_payments_platform_pays_on_sundays() -> None:
    sundays = [date(2025, 6, 1) + timedelta(days=7 * n) for n in range(8)]
    one = describe_only(*payments(sundays, channel="npp"))
    assert (one["anchor"], one["next_date"]) == ("Sunday", date(2025, 7, 27))


def test_a_holiday_of_the_accounts_state_moves_a_payment_made_there() -> None:
    tuesdays = [
        move_to_open_day(date(2025, 9, 2) + timedelta(days=7 * n), "VIC", 1) for n in range(12)
    ]  # Cup Day among them
    one = describe_only(*payments(tuesdays, channel="transfer", bsb="063-000"))
    assert (one["anchor"], one["occurrences"], one["regularity"]) == ("Tuesday", 12, 1.0)


def test_missed_payment_is_listed_and_the_series_goes_on() -> None:
    one = describe_only(*payments(every_days(7, 12)[:5] + every_days(7, 12)[6:]))
    assert (one["occurrences"], one["missed_dates"]) == (11, [date(2025, 2, 11)])


def test_a_doubled_payment_belongs_to_its_series() -> None:
    days = monthly(10, 8)
    one = describe_only(*payments([*days, days[3]]))
    assert (one["occurrences"], one["doubled"]) == (8, 1)


def test_rising_rent_stays_one_series_and_lists_the_change() -> None:
    one = describe_only(*payments(monthly(1), ["-2000"] * 7 + ["-2150"] * 5))
    change = {"date": monthly(1)[7], "from": Decimal("-2000.00"), "to": Decimal("-2150.00")}
    assert (one["occurrences"], one["amount_changes"]) == (12, [change])
    assert (one["usual_amount"], one["next_amount"]) == (Decimal("-2000.00"), Decimal("-2150.00"))


def test_varying_bill_is_one_series_without_changes() -> None:
    one = describe_only(*payments(monthly(18), ["-210.10", "-480.25", "-330.40", "-900", "-150", "-260.05", "-75"]))
    assert (one["occurrences"], one["amount_changes"]) == (12, [])
    assert one["next_amount"] == Decimal("-330.40")  # the middle one of the last five


def test_two_loans_of_one_lender_are_two_series() -> None:
    rows = [*payments(monthly(5), "-400"), *payments(monthly(20), "-950")]
    assert [
        (one["period"], one["usual_amount"]) for one in sorted(describe_rows(*rows), key=lambda one: one["first_date"])
    ] == [
        ("monthly", Decimal("-400.00")),
        ("monthly", Decimal("-950.00")),
    ]


def test_two_loans_paid_on_one_day_are_two_series() -> None:
    rows = [*payments(monthly(5), "-1000"), *payments(monthly(5), "-1100")]
    assert sorted(one["usual_amount"] for one in describe_rows(*rows)) == [Decimal("-1100.00"), Decimal("-1000.00")]


def test_a_wage_and_an_allowance_to_one_person_are_two_series() -> None:
    wages = payments(every_days(7, 50), ["-1150", "-1080.50", "-1211"])
    rows = [*wages, *payments(monthly(15, 11), "-200")]
    assert sorted((one["period"], one["occurrences"]) for one in describe_rows(*rows)) == [
        ("monthly", 11),
        ("weekly", 50),
    ]


def test_a_subscription_among_purchases_is_found_by_its_amount() -> None:
    rng = Random(5)
    bought = [date(2025, 1, 1) + timedelta(days=rng.randrange(350)) for _ in range(40)]
    rows = [*payments(bought, [f"-{n * 17 + 20}.35" for n in range(40)]), *payments(monthly(12), "-59.99")]
    one = describe_only(*rows)
    assert (one["period"], one["usual_amount"], one["occurrences"]) == ("monthly", Decimal("-59.99"), 12)


def test_sign_and_account_separate_series() -> None:
    rows = [
        *payments(every_days(7, 10), "-50"),
        *payments(every_days(7, 10), "50"),
        *payments(every_days(7, 10), "-50", account_id=OTHER_ACCOUNT),
    ]
    assert len(describe_rows(*rows)) == 3


def test_equal_texts_without_a_counterparty_are_one_series() -> None:
    rows = payments(monthly(3, 6), counterparty_group=None, clean_description="RENT 12 HIGH ST")
    others = payments(monthly(17, 6), counterparty_group=None, clean_description="GYM")
    assert sorted(one["description"] for one in describe_rows(*rows, *others)) == ["GYM", "RENT 12 HIGH ST"]


@pytest.mark.parametrize("fields", [{"status": "pending"}, {"superseded_seq": 3}, {"amount": Decimal(0)}])
def test_pending_superseded_and_zero_rows_are_ignored(fields: Row) -> None:
    rows = [{**row, **fields} for row in payments(monthly(10))]
    assert describe_rows(*rows) == []
    assert mark_series(held_rows(*rows)).select(MARKS).null_count().row(0) == (12, 12, 12)


@pytest.mark.parametrize(
    "days",
    [
        monthly(10, 2),
        every_days(7, 3),
        business_days(7),
        [
            date(2025, 1, 6),
            date(2025, 1, 23),
            date(2025, 4, 2),
            date(2025, 4, 10),
            date(2025, 7, 25),
            date(2025, 11, 12),
        ],
        [date(2025, 3, 3)] * 40,
    ],
)
def test_too_few_or_irregular_payments_are_no_series(days: list[date]) -> None:
    assert describe_rows(*payments(days, ["-31", "-405.20", "-77", "-1150"])) == []


def test_two_yearly_payments_must_have_the_same_size() -> None:
    days = [date(2024, 5, 9), date(2025, 5, 9)]
    assert describe_only(*payments(days, ["-500", "-520"]))["period"] == "yearly"
    assert describe_rows(*payments(days, ["-500", "-800"])) == []


def test_series_has_ended_after_payments_stop() -> None:
    rows = payments(monthly(10, 6))
    still_booking = {"date": date(2025, 12, 30), "counterparty_group": "Other"}
    one = describe_only(*rows, still_booking)
    assert (one["status"], one["next_date"], one["next_amount"], one["missed"]) == ("ended", None, None, 0)


def test_one_overdue_payment_is_missed_and_the_series_goes_on() -> None:
    one = describe_only(*payments(monthly(10, 6)), {"date": date(2025, 7, 20), "counterparty_group": "Other"})
    assert (one["status"], one["missed_dates"], one["next_date"]) == ("active", [date(2025, 7, 10)], date(2025, 8, 11))


def test_an_id_stays_when_rows_are_appended() -> None:
    loans = [*payments(monthly(5), "-400"), *payments(monthly(5), "-950")]
    before = mark_series(held_rows(*(row for row in loans if row["date"] < date(2025, 9, 1))))
    after = mark_series(held_rows(*loans))
    seen = before.select("date", "amount", "series_id").join(after, on=["date", "amount"], suffix="_after")
    assert seen.height == 16
    assert seen["series_id"].to_list() == seen["series_id_after"].to_list()
    assert after["series_id"].n_unique() == 2
    assert {len(each) for each in after["series_id"]} == {16}


def test_every_row_is_marked_with_its_series() -> None:
    rows = [*payments(monthly(10)), {"date": date(2025, 5, 5), "counterparty_group": "Other"}]
    marked = mark_series(held_rows(*rows))
    one = describe_only(*rows)
    assert dict(marked.schema) == dict(TRANSACTIONS)
    assert marked.select(MARKS).rows() == [(one["series_id"], "monthly", date(2026, 1, 12))] * 12 + [(None, None, None)]


def test_no_rows_give_no_series() -> None:
    empty = pl.DataFrame(schema=TRANSACTIONS)
    assert_frame_equal(describe_series(empty), pl.DataFrame(schema=SERIES))
    assert_frame_equal(mark_series(empty), empty, check_column_order=False)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_order_of_rows_makes_no_difference(seed: int) -> None:
    rows = recurring.transactions(recurring.portfolio(30, seed))
    shuffled = rows.sample(fraction=1, shuffle=True, seed=seed)
    in_order, mixed = (mark_series(each) for each in (rows, shuffled))
    by = ["customer_number", "position"]
    assert_frame_equal(in_order.sort(by), mixed.sort(by))
    assert_frame_equal(describe_series(rows), describe_series(shuffled))


def test_size_of_chunks_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = recurring.transactions(recurring.portfolio(60, 4), a_customer=5).sample(fraction=1, shuffle=True, seed=4)
    together = mark_series(rows)
    monkeypatch.setattr(sys.modules[mark_series.__module__], "CHUNK_ROWS", 100)
    assert_frame_equal(mark_series(rows), together)


def test_the_rows_of_one_submission_take_little_time() -> None:
    frame = recurring.transactions(recurring.portfolio(40, 6)).head(500)
    times = []
    for _ in range(6):
        started = process_time()
        mark_series(frame)
        times.append(process_time() - started)
    assert min(times) < 0.1


@examples(3)
@given(
    days=st.lists(st.dates(date(1970, 1, 1), date(2100, 12, 31)), min_size=1, max_size=60),
    cents=st.lists(st.sampled_from([0, 1, -1, 999, -(10**15) + 1, 10**15 - 1]), min_size=1),
    channel=st.sampled_from([None, "card", "npp", "direct_debit"]),
)
def test_marks_agree_with_descriptions_for_any_rows(days: list[date], cents: list[int], channel: str | None) -> None:
    rows = [
        {**row, "amount": row["amount"].scaleb(-2)} for row in payments(days, list(map(str, cents)), channel=channel)
    ]
    frame = held_rows(*rows)
    marked, shown = mark_series(frame), describe_series(frame)
    assert shown.schema == SERIES
    counted = marked.drop_nulls("series_id").group_by("series_id").len()
    wanted = shown.select("series_id", least=pl.col("occurrences") + pl.col("doubled"))
    together = counted.join(wanted, on="series_id", how="full")
    assert together.null_count().sum_horizontal().item() == 0
    assert together.filter(pl.col("len") < pl.col("least")).is_empty()
    assert shown["regularity"].is_between(0, 1).all()


ANCHORED = [schedule for schedule in SCHEDULES if schedule.name not in (DAILY, TWICE_MONTHLY)]


def due_by_hand(schedule: Schedule, start: date) -> list[date]:
    """List five years of due dates of the schedule that has `start` as one of them."""
    days = [date(start.year - 2, 1, 1) + timedelta(days=n) for n in range(5 * 365)]
    at_end = start == month_day(start.year, start.month, 31)
    same_day = [day for day in days if day == month_day(day.year, day.month, 31 if at_end else start.day)]
    same_place = [
        day for day in days if day.weekday() == start.weekday() and (day.day - 1) // 7 == (start.day - 1) // 7
    ]
    last_place = [
        day for day in days if day.weekday() == start.weekday() and (day + timedelta(days=7)).month != day.month
    ]
    apart = {"weekly": 7, "fortnightly": 14, "four_weekly": 28}.get(schedule.name, 1)
    return {
        "monthly": same_day,
        "quarterly": [day for day in same_day if (day.month - start.month) % 3 == 0],
        "yearly": [day for day in same_day if day.month == start.month],
        "activity_statements": [day for day in days if (day.month, day.day) in recurring.BAS],
        "monthly_weekday": same_place,
        "monthly_last_weekday": last_place,
    }.get(schedule.name, [day for day in days if (day - start).days % apart == 0])


def day_number(day: date) -> int:
    return (day - date(1970, 1, 1)).days


def add_due_dates(days: list[date], anchor: int, schedule: Schedule) -> pl.DataFrame:
    """Return the days, each with the nearest due date (`due`)."""
    number = np.full(len(days), SCHEDULES.index(schedule))
    _, due = find_nearest_due(number, np.array([day_number(day) for day in days]), np.full(len(days), anchor))
    return pl.DataFrame({"day": days, "due": due}).with_columns(pl.col("due").cast(pl.Date))


@pytest.mark.parametrize("schedule", ANCHORED, ids=lambda schedule: schedule.name)
@examples(2)
@given(start=st.dates(date(1972, 1, 1), date(2095, 12, 31)))
def test_due_dates_agree_with_plain_python(schedule: Schedule, start: date) -> None:
    anchor = int(schedule.anchor_of(np.array([day_number(start)]))[0])
    if anchor == NO_ANCHOR:
        return
    days = [start + timedelta(days=n) for n in range(-300, 300)]
    found = add_due_dates(days, anchor, schedule)
    by_hand = due_by_hand(schedule, start)
    nearest = [min(abs((day - due).days) for due in by_hand) for day in days]
    assert set(found["due"]) <= set(by_hand)
    assert (found["day"] - found["due"]).dt.total_days().abs().to_list() == nearest


@given(start=st.dates(date(1990, 1, 1), date(2060, 12, 1)))
@examples(2)
def test_twice_a_month_falls_on_both_days_of_every_month(start: date) -> None:
    twice = next(schedule for schedule in SCHEDULES if schedule.name == TWICE_MONTHLY)
    days = [start + timedelta(days=n) for n in range(400)]
    found = add_due_dates(days, 14 * 32 + 31, twice)
    middle = [day for day in days if day.day == 14]
    ends = [day for day in days if (day + timedelta(days=1)).day == 1]
    on_due = found.filter(pl.col("day") == pl.col("due"))["day"].to_list()
    assert on_due == sorted([*middle, *ends])


def measure(cases: int, seed: int) -> recurring.Score:
    payments = recurring.portfolio(cases, seed)
    marked = mark_series(recurring.transactions(payments))
    return recurring.score_series(recurring.add_truth(marked, payments))


@pytest.mark.service  # a whole portfolio
def test_most_series_of_a_mixed_portfolio_are_found_and_few_others() -> None:
    score = measure(cases=400, seed=11)
    assert score.true > 100
    assert score.precision >= 0.95
    assert score.recall >= 0.95


@pytest.mark.slow
def test_precision_and_recall_over_a_large_portfolio() -> None:
    score = measure(cases=6_000, seed=12)
    assert score.precision >= 0.97, score
    assert score.recall >= 0.95, score


def test_trade_without_a_schedule_gives_hardly_any_series() -> None:
    rng = Random(13)
    payments = [payment for n in range(300) for payment in recurring.trade(f"trade {n}", rng)]
    found = describe_series(recurring.transactions(payments))
    assert found.height <= 6


@pytest.mark.slow
@pytest.mark.parametrize("parties", [1, 500_000])
def test_customer_with_many_rows_takes_bounded_time(parties: int) -> None:
    count = 2_000_000 if parties == 1 else 1_000_000
    number = pl.int_range(count)
    rows = pl.select(
        position=number.cast(pl.UInt32),
        counterparty_group=pl.format("party {}", number % parties),
        date=pl.lit(date(2025, 1, 6)) + pl.duration(days=(number // parties) * 7 % 364),
        amount=pl.lit("-4.50").cast(TRANSACTIONS["amount"]),
    )
    blank = held_rows({}).drop(rows.columns)
    frame = rows.join(blank, how="cross").select(TRANSACTIONS.names())
    started = process_time()
    mark_series(frame)
    assert process_time() - started < 60
