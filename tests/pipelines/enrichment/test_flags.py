"""Flags of rows: dishonours, refunds and returned charges, and the rows that they belong to."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from random import Random
from statistics import median
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipelines.enrichment.flags import FLAGS, add_flags
from pipelines.enrichment.matching.reversals import GIVEN_BACK_DAYS, REFUND_DAYS
from tests.pipelines.enrichment.examples import OTHER_ACCOUNT, held_rows

MONDAY = date(2026, 3, 2)
Row = dict[str, Any]


def row(day: int = 0, amount: str = "-100", category: str = "suppliers", **fields: Any) -> Row:
    """Return a row `day` days after MONDAY, with a counterparty unless given otherwise."""
    described = {"category_group": "cost_of_sales", "counterparty_group": "acme", "is_transfer": False, **fields}
    return {"date": MONDAY + timedelta(days=day), "amount": Decimal(amount), "category": category, **described}


def list_flags(*rows: Row) -> list[list[str]]:
    return add_flags(held_rows(*rows))["flags"].to_list()


def positions_with(name: str, *rows: Row) -> list[int]:
    """Return the positions of rows with the flag."""
    return [position for position, found in enumerate(list_flags(*rows)) if name in found]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"amount": Decimal(0)}, ["information"]),
        ({"amount": Decimal(-1200)}, ["round_amount"]),
        ({"amount": Decimal(-1250)}, []),
        ({"category": "gambling", "channel": "atm"}, ["cash", "gambling"]),
        ({"category": "returned_payment", "amount": Decimal(5)}, ["dishonour"]),
        ({"category": "dishonour_fee", "category_group": "distress"}, []),
        ({"category_group": "revenue"}, ["revenue"]),
        ({"category_group": "revenue", "is_transfer": True}, []),
        ({"category_group": "tax"}, ["tax"]),
        ({"category_group": "payroll"}, ["payroll"]),
        ({"related_party": "Jane Owner"}, ["related_party"]),
        ({"category": "related_entity"}, ["related_party"]),
        ({"category": "director_loan_in"}, ["related_party"]),
        ({"statement_verdict": "unreconciled"}, ["unreconciled_statement"]),
        ({"statement_verdict": "partial"}, []),
    ],
)
def test_flags_that_depend_on_the_row_alone(fields: Row, expected: list[str]) -> None:
    assert list_flags(fields) == [expected]


def test_flags_are_sorted_and_replace_an_existing_column() -> None:
    rows = held_rows({"category": "gambling", "channel": "atm", "amount": Decimal(-2000), "flags": ["old"]})
    once = add_flags(rows)
    assert once["flags"].to_list() == [["cash", "gambling", "round_amount"]]
    assert_frame_equal(add_flags(once), once)


# -- dishonours -------------------------------------------------------------------------------------------------------


def returned_payment(day: int, amount: str = "100", **fields: Any) -> Row:
    return row(day, amount, "returned_payment", category_group="other_income", **fields)


def fee(day: int) -> Row:
    return row(day, "-15", "dishonour_fee", category_group="distress", counterparty_group=None)


def test_dishonour_counts_once_with_or_without_a_fee() -> None:
    assert list_flags(row(0), returned_payment(1), fee(1)) == [["dishonoured"], ["dishonour"], []]
    assert list_flags(row(0), returned_payment(1)) == [["dishonoured"], ["dishonour"]]


def test_fee_alone_is_not_a_dishonour() -> None:
    assert list_flags(fee(0)) == [[]]


def test_return_without_its_payment_is_still_a_dishonour() -> None:
    assert list_flags(returned_payment(0)) == [["dishonour"]]


@pytest.mark.parametrize(
    "other",
    [
        row(0, "-100.01"),
        row(0, account_id=OTHER_ACCOUNT),
        row(0, customer_number=2),
        row(-1),  # the Sunday before: six business days until the return
        row(9),  # after it
        row(0, status="pending"),
        row(0, superseded_seq=9),
        row(0, is_transfer=True),
    ],
)
def test_return_needs_the_same_amount_and_account_within_a_week(other: Row) -> None:
    assert positions_with("dishonoured", other, returned_payment(8)) == []


def test_return_prefers_the_same_counterparty_to_a_later_payment() -> None:
    theirs = row(0, counterparty_group="power")
    assert positions_with("dishonoured", theirs, row(1), returned_payment(2, counterparty_group="power")) == [0]


def test_name_cut_short_matches_and_another_name_does_not() -> None:
    item = row(0, counterparty_group=None, counterparty_name="Super Clearing House")
    cut = returned_payment(1, counterparty_group=None, counterparty_name="SUPER CLEAR")
    other = returned_payment(1, counterparty_group=None, counterparty_name="Telstra")
    assert positions_with("dishonoured", item, cut) == [0]
    assert positions_with("dishonoured", item, other) == []


def test_two_returns_mark_two_payments() -> None:
    assert positions_with("dishonoured", row(0), row(0), row(0), returned_payment(1), returned_payment(1)) == [1, 2]


def test_bounced_receipt_is_dishonoured_but_not_a_dishonour_by_the_customer() -> None:
    cheque = row(0, "500", "cheque_deposit", category_group="revenue")
    back = row(2, "-500", "dishonoured_receipt", category_group="revenue")
    assert positions_with("dishonoured", cheque, back) == [0]
    assert positions_with("dishonour", cheque, back) == []


# -- charges given back -----------------------------------------------------------------------------------------------


def charge(day: int, amount: str = "-15", category: str = "overdrawn_fee", **fields: Any) -> Row:
    described = {"category_group": "distress", "counterparty_group": None, "channel": "fee", **fields}
    return row(day, amount, category, **described)


def test_a_charge_that_the_bank_gives_back_is_marked() -> None:
    cases = {
        "by its own category": charge(GIVEN_BACK_DAYS, "15"),
        "as a refund": charge(3, "15", "refund_received"),
    }
    for named, back in cases.items():
        assert positions_with("dishonoured", charge(0), back) == [0], named
        assert positions_with("dishonoured", charge(0), charge(0), back) == [1], named


def test_a_charge_is_not_given_back_by() -> None:
    cases = {
        "another amount": charge(1, "14.99"),
        "a credit before it": charge(-1, "15"),
        "a credit months later": charge(GIVEN_BACK_DAYS + 1, "15"),
        "another account": charge(1, "15", account_id=OTHER_ACCOUNT),
        "a shop's refund": charge(1, "15", "refund_received", counterparty_group="acme"),
        "a transfer with such a text": charge(1, "15", channel="transfer"),
        "interest received": charge(1, "15", "interest_received"),
    }
    for named, other in cases.items():
        assert positions_with("dishonoured", charge(0), other) == [], named


# -- refunds ----------------------------------------------------------------------------------------------------------


def refund(day: int, amount: str = "100", **fields: Any) -> Row:
    return row(day, amount, "refund_received", category_group="other_income", **fields)


def test_refund_matches_its_purchase_months_later() -> None:
    assert positions_with("refund_matched", row(0), refund(REFUND_DAYS)) == [1]
    assert positions_with("refund_matched", row(0), refund(REFUND_DAYS + 1)) == []


def test_refund_paid_matches_its_sale() -> None:
    sale = row(0, "250", "customer_transfer", category_group="revenue")
    given = row(5, "-250", "refund_paid", category_group="revenue")
    assert positions_with("refund_matched", sale, given) == [1]


@pytest.mark.parametrize(
    "other",
    [
        row(0, counterparty_group="somebody else"),
        row(0, "-99.99"),
        row(9),
        row(0, "100"),
        row(0, is_transfer=True),
        row(0, counterparty_group=None),
    ],
)
def test_refund_without_a_fitting_purchase_is_not_matched(other: Row) -> None:
    assert positions_with("refund_matched", other, refund(8)) == []


def test_purchase_is_matched_with_one_refund() -> None:
    assert positions_with("refund_matched", row(0), refund(1), refund(2)) == [1]


def test_refund_of_the_whole_amount_is_matched_before_partial_ones() -> None:
    assert positions_with("refund_matched", row(0, "-100"), row(1, "-150"), refund(2, "60"), refund(3, "100")) == [2, 3]


def test_partial_refund_matches_an_earlier_purchase_if_the_latest_is_too_small() -> None:
    assert positions_with("refund_matched", row(0, "-30"), row(1, "-17"), refund(2, "20")) == [2]


def test_bounced_payment_is_not_matched_with_a_refund() -> None:
    assert positions_with("refund_matched", row(0), returned_payment(1), refund(2)) == []


# -- duplicate charges ------------------------------------------------------------------------------------------------


def test_the_later_of_two_equal_charges_is_marked() -> None:
    assert positions_with("duplicate_charge", row(0), row(3)) == [1]
    assert positions_with("duplicate_charge", row(0), row(4)) == []


@pytest.mark.parametrize(
    "again",
    [
        row(1, "-100.01"),
        row(1, "100"),
        row(1, counterparty_group="other"),
        row(1, account_id=OTHER_ACCOUNT),
        row(1, is_transfer=True),
        row(1, status="pending"),
        row(1, category="bank_fees"),
        row(1, category="gambling", category_group="high_risk"),
        row(1, series_period="business_daily"),
    ],
)
def test_different_charges_are_not_duplicates(again: Row) -> None:
    assert positions_with("duplicate_charge", row(0), again) == []


def test_small_equal_charges_are_not_duplicates() -> None:
    assert positions_with("duplicate_charge", row(0, "-9.99"), row(0, "-9.99")) == []
    assert positions_with("duplicate_charge", row(0, "-10"), row(0, "-10")) == [1]


def test_daily_remittances_are_not_duplicates() -> None:
    assert positions_with("duplicate_charge", *(row(day) for day in range(10))) == []


def test_weekly_bill_charged_twice_is_a_duplicate() -> None:
    bills = [row(7 * week) for week in range(6)]
    assert positions_with("duplicate_charge", *bills, row(15)) == [6]


def test_second_try_of_a_bounced_payment_is_not_a_duplicate() -> None:
    assert positions_with("duplicate_charge", row(0), returned_payment(1), row(3)) == []


# -- outliers ---------------------------------------------------------------------------------------------------------

AMOUNTS = ("-95", "-98", "-100", "-101", "-103", "-105", "-97")


def bills(*amounts: str, **fields: Any) -> list[Row]:
    return [row(31 * month, amount, **fields) for month, amount in enumerate(amounts)]


def test_unusual_amount_for_the_counterparty_is_an_outlier() -> None:
    assert positions_with("outlier", *bills(*AMOUNTS, "-400")) == [7]
    assert positions_with("outlier", *bills(*AMOUNTS, "-20")) == [7]
    assert positions_with("outlier", *bills(*AMOUNTS, "-108")) == []


def test_seven_rows_are_too_few_for_outliers() -> None:
    assert positions_with("outlier", *bills(*AMOUNTS[1:], "-400")) == []


def test_money_in_is_not_compared_with_money_out() -> None:
    assert positions_with("outlier", *bills(*AMOUNTS, "-99"), row(300, "400")) == []


def test_rows_of_a_series_are_compared_only_with_each_other() -> None:
    series = bills(*AMOUNTS, "-400", series_id=b"s" * 16, counterparty_group=None)
    assert positions_with("outlier", *series) == [7]
    mixed = [{**bill, "counterparty_group": "acme"} for bill in series[:7]] + bills("-400")
    assert positions_with("outlier", *mixed) == []


def test_small_difference_from_equal_amounts_is_not_an_outlier() -> None:
    assert positions_with("outlier", *bills(*["-100"] * 20, "-100.50")) == []
    assert positions_with("outlier", *bills(*["-100"] * 20, "-150")) == [20]


# -- all of it --------------------------------------------------------------------------------------------------------

CATEGORIES = {
    "suppliers": "cost_of_sales",
    "customer_transfer": "revenue",
    "refund_received": "other_income",
    "refund_paid": "revenue",
    "returned_payment": "other_income",
}
lines = st.tuples(
    st.integers(0, 12),
    st.sampled_from(["-30", "-20", "20", "30", "0"]),
    st.sampled_from(sorted(CATEGORIES)),
    st.sampled_from(["acme", "power", None]),
    st.booleans(),
)


def make_rows(some: Sequence[tuple[int, str, str, str | None, bool]]) -> list[Row]:
    return [
        {
            **row(day, amount, category, category_group=CATEGORIES[category], counterparty_group=party),
            "position": position,
            "transaction_id": position.to_bytes(16),
            **({"account_id": OTHER_ACCOUNT} if other else {}),
        }
        for position, (day, amount, category, party, other) in enumerate(some)
    ]


@given(st.lists(lines, max_size=14), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(some: list[tuple[int, str, str, str | None, bool]], random: Random) -> None:
    rows = make_rows(some)
    mixed = add_flags(held_rows(*random.sample(rows, len(rows))))
    assert_frame_equal(mixed.sort("position"), add_flags(held_rows(*rows)))


@given(st.lists(lines, max_size=14))
def test_no_more_payments_are_undone_than_were_made(some: list[tuple[int, str, str, str | None, bool]]) -> None:
    """Per account and amount, there are no more returned payments than returns; likewise refunds by counterparty."""
    found = add_flags(held_rows(*make_rows(some))).with_columns(size=pl.col("amount").abs())
    has = pl.col("flags").list.contains
    by_amount = found.group_by("account_id", "size").agg(back=has("dishonoured").sum(), returns=has("dishonour").sum())
    assert by_amount.filter(pl.col("back") > pl.col("returns")).is_empty()
    matched = found.filter(has("refund_matched"))
    for party, size, out in matched.select("counterparty_group", "size", pl.col("amount") < 0).iter_rows():
        same = (pl.col("counterparty_group") == party) & ((pl.col("amount") < 0) != out)
        assert not found.filter(same, pl.col("size") >= size).is_empty()


def duplicates_by_hand(rows: Sequence[Row]) -> list[int]:
    """Return the positions of charges that repeat one of the same account, counterparty and amount in three days."""
    charges: dict[tuple[Any, ...], list[tuple[date, int]]] = {}
    for position, each in enumerate(rows):
        if each["amount"] <= -10:
            key = (each.get("account_id"), each["amount"], each["counterparty_group"])
            charges.setdefault(key, []).append((each["date"], position))
    later: list[int] = []
    for found in charges.values():
        ordered = sorted(found)
        gaps = [(after - before).days for (before, _), (after, _) in pairwise(ordered)]
        if len(ordered) < 5 or median(gaps) > 3:
            later += [position for (_, position), gap in zip(ordered[1:], gaps, strict=True) if gap <= 3]
    return sorted(later)


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["-9", "-10", "-20"]), st.booleans()), max_size=14))
def test_duplicate_charges_agree_with_plain_python(some: list[tuple[int, str, bool]]) -> None:
    rows = make_rows([(day, amount, "suppliers", "acme", other) for day, amount, other in some])
    assert positions_with("duplicate_charge", *rows) == duplicates_by_hand(rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    "category", ["suppliers", "refund_received", "returned_payment"], ids=["charges", "refunds", "returns"]
)
def test_two_million_equal_rows_of_one_customer_are_handled(category: str) -> None:
    count = 2_000_000
    amount = "-25" if category == "suppliers" else "25"
    two = held_rows(row(0, "-25"), row(0, amount, category, category_group=CATEGORIES[category]))
    rows = two.select(pl.all().repeat_by(count // 2).explode())
    numbered = rows.with_columns(transaction_id=pl.int_range(pl.len()).cast(pl.String).cast(pl.Binary))
    found = add_flags(numbered).explode("flags")["flags"].value_counts().rows()
    expected = {
        "suppliers": {},
        "refund_received": {"refund_matched": count // 2},
        "returned_payment": {"dishonoured": count // 2, "dishonour": count // 2},
    }
    assert {name: times for name, times in found if name} == expected[category]


def test_flag_names_are_lower_case_words() -> None:
    assert all(name.replace("_", "").islower() for name in FLAGS)
