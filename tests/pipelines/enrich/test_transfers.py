from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrich.transfers import MAX_BUSINESS_DAYS, MAX_CALENDAR_DAYS, transfers
from tests.pipelines.enrich.examples import ACCOUNT, OTHER_ACCOUNT, known

MONDAY = date(2026, 3, 2)
Row = dict[str, Any]


def out(day: date = MONDAY, amount: str = "-100", **fields: Any) -> Row:
    return {"account_id": ACCOUNT, "date": day, "amount": Decimal(amount), **fields}


def into(day: date = MONDAY, amount: str = "100", **fields: Any) -> Row:
    return {"account_id": OTHER_ACCOUNT, "date": day, "amount": Decimal(amount), **fields}


def pairs(*rows: Row) -> list[tuple[int, ...]]:
    """Positions of the rows that were paired with each other."""
    linked = transfers(known(*rows)).filter("is_transfer").collect()
    groups = linked.group_by("transfer_pair_id").agg(pl.col("position").sort())["position"].to_list()
    return sorted(tuple(group) for group in groups)


def test_the_same_amount_out_of_one_account_and_into_another_is_a_pair() -> None:
    assert pairs(out(), into()) == [(0, 1)]


def test_both_sides_take_the_category_of_a_transfer() -> None:
    linked = transfers(known(out(), into())).collect()
    assert linked["category"].to_list() == ["own_transfer"] * 2
    assert linked["category_group"].to_list() == ["transfer"] * 2


@pytest.mark.parametrize(
    "other",
    [
        into(amount="100.01"),
        into(account_id=ACCOUNT),
        into(customer_number=2),
        into(status="pending"),
        into(superseded_seq=9),
        into(MONDAY + timedelta(days=4)),  # Friday: four business days
        into(amount="-100"),
        into(counterparty_kind="business"),  # a named merchant gave money back
        into(category="interest_received"),
    ],
)
def test_anything_else_is_no_pair(other: Row) -> None:
    assert pairs(out(), other) == []


def test_a_weekend_in_between_is_no_obstacle() -> None:
    thursday = date(2026, 3, 5)
    assert pairs(out(thursday), into(thursday + timedelta(days=5))) == [(0, 1)]


def test_the_nearer_in_time_is_taken() -> None:
    assert pairs(out(), into(MONDAY + timedelta(days=2)), into(MONDAY)) == [(0, 2)]


def test_each_row_has_one_partner() -> None:
    assert pairs(out(), out(), into(), into(), into()) == [(0, 2), (1, 3)]


def test_many_equal_amounts_on_one_day_are_all_paired() -> None:
    found = pairs(*(out() for _ in range(5_000)), *(into() for _ in range(5_000)))
    assert len(found) == 5_000
    assert {len(pair) for pair in found} == {2}


sides = st.builds(
    lambda account, day, sign: {
        "account_id": account,
        "date": MONDAY + timedelta(days=day),
        "amount": Decimal(100 * sign),
    },
    st.sampled_from([ACCOUNT, OTHER_ACCOUNT, b"c" * 16]),
    st.integers(0, 12),
    st.sampled_from([1, -1]),
)


@given(st.lists(sides, max_size=8))
def test_every_pair_is_one_and_no_possible_pair_is_left_over(rows: list[Row]) -> None:
    found = pairs(*rows)
    taken = [position for pair in found for position in pair]
    assert len(taken) == len(set(taken))
    assert all(len(pair) == 2 and possible(rows[pair[0]], rows[pair[1]]) for pair in found)
    left = [row for position, row in enumerate(rows) if position not in taken]
    assert not any(possible(a, b) for a in left for b in left)


@given(st.lists(sides, max_size=8))
def test_nobody_is_paired_far_who_could_be_paired_near(rows: list[Row]) -> None:
    """No amount out and amount in are both paired with something farther than each other."""
    partner = {one: other for pair in pairs(*rows) for one, other in (pair, pair[::-1])}
    for left, one in enumerate(rows):
        for right, other in enumerate(rows):
            if one["amount"] < 0 < other["amount"] and possible(one, other) and left in partner and right in partner:
                near = distance(one, other)
                assert distance(one, rows[partner[left]]) <= near or distance(rows[partner[right]], other) <= near


def distance(out: Row, into: Row) -> int:
    days: int = abs((into["date"] - out["date"]).days)
    return days


def possible(a: Row, b: Row) -> bool:
    """The rule in plain Python: opposite, in two accounts, within six calendar and three business days."""
    first, last = sorted((a["date"], b["date"]))
    days = [first + timedelta(days=n) for n in range((last - first).days)]
    business = sum(day.weekday() < 5 for day in days)
    apart = len(days) <= MAX_CALENDAR_DAYS and business <= MAX_BUSINESS_DAYS
    return bool(a["account_id"] != b["account_id"] and a["amount"] == -b["amount"] and apart)
