"""Rows that were sent again, in pieces of any size, are found; honest rows that look alike are not."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from decimal import Decimal
from itertools import groupby
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.figures.sent_again import rows_sent_again
from tests.conftest import examples
from tests.pipelines.figures.sent_again_oracle import repeated_by_day
from tests.pipelines.reports.completeness_examples import facts_of
from tests.pipelines.reports.examples import MAIN, SAVINGS, Row, add_balances, mark_balances, row

DAYS = range(40)


def submissions(*sent: Sequence[Row]) -> list[Row]:
    """Return the rows as submitted one after the other."""
    return [{**each, "received_seq": seq} for seq, rows in enumerate(sent, 1) for each in rows]


def by_day(rows: Iterable[Row]) -> list[list[Row]]:
    return [list(day) for _, day in groupby(rows, lambda each: each["date"])]


def in_pieces(random: Random, rows: Sequence[Row], most: int) -> list[list[Row]]:
    pieces, left = list[list[Row]](), list(rows)
    while left:
        size = random.randint(1, most)
        pieces.append(left[:size])
        left = left[size:]
    return pieces


def trade(random: Random, days: Iterable[int] = DAYS) -> list[Row]:
    """Return one to five receipts and payments a day, some of them in sums that recur."""
    sums = [Decimal(random.randint(-90_000, 90_000)) / 100 for _ in range(4)]
    return [
        row(day, random.choice(sums) if random.random() < 0.3 else Decimal(random.randint(-90_000, 90_000)) / 100)
        for day in days
        for _ in range(random.randint(1, 5))
    ]


def found(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that are found, and compare them with the oracle."""
    numbered = [{**each, "transaction_id": nth.to_bytes(16, "big")} for nth, each in enumerate(rows, 1)]
    ids = rows_sent_again(facts_of(numbered, 500))["transaction_id"].to_list()
    again = [each for each in numbered if each["transaction_id"] in ids]
    expected = list[Row]()
    for account in (MAIN, SAVINGS):
        its = [each for each in numbered if each["account_id"] == account]
        of_days = repeated_by_day(sorted(its, key=lambda each: (each["date"], each["received_seq"]))).values()
        expected += [each for of_day in of_days for each in of_day]
    assert sorted(ids) == sorted(each["transaction_id"] for each in expected)
    return again


def moved(rows: Iterable[Row]) -> list[tuple[object, Decimal]]:
    return sorted((each["date"], each["amount"]) for each in rows)


@pytest.mark.parametrize("seed", range(4))
def test_feed_sent_again_is_found_whatever_its_pieces(seed: int) -> None:
    random = Random(seed)
    rows = trade(random)
    again = (
        [rows],  # as one file
        by_day(rows),
        in_pieces(random, rows, 2),
        in_pieces(random, random.sample(rows, len(rows)), 9),
    )
    for pieces in again:
        for first in (by_day(rows), in_pieces(random, rows, 3), [rows]):
            assert moved(found(submissions(*first, *pieces))) == moved(rows)


def test_two_feeds_that_send_the_same_days_by_turns_are_found() -> None:
    rows = trade(Random(1))
    by_turns = [day for each in by_day(rows) for day in (each[:1], each, each[1:])]
    assert moved(found(submissions(*by_turns))) == moved(rows)


def test_all_but_one_of_several_copies_are_found() -> None:
    rows = trade(Random(2))
    assert moved(found(submissions(rows, rows, *by_day(rows)))) == moved([*rows, *rows])


def test_rest_of_a_copy_is_found_if_matching_recognised_the_other_rows() -> None:
    random = Random(3)
    rows = trade(random)
    rest = [each for each in rows if random.random() < 0.5]
    assert moved(found(submissions(*by_day(rows), *by_day(rest)))) == moved(rest)


def test_receipts_that_were_sent_again_without_payments_are_found() -> None:
    rows = trade(Random(4))
    receipts = [each for each in rows if each["amount"] > 0]
    assert moved(found(submissions(rows, *by_day(receipts)))) == moved(receipts)


def test_days_sent_again_are_found_among_many_that_were_not() -> None:
    rows = trade(Random(5), range(400))
    last = [each for each in rows if each["date"] > rows[-1]["date"] - timedelta(days=20)]
    assert moved(found(submissions(*by_day(rows), *by_day(last)))) == moved(last)


def test_four_days_may_be_a_coincidence() -> None:
    rows = [row(day, f"{day + 1}") for day in DAYS]
    assert len(found(submissions(rows, rows[:5]))) == 5
    assert found(submissions(rows, rows[:4])) == []
    every_second = [each if nth % 2 else row(nth, "77") for nth, each in enumerate(rows)]
    assert found(submissions(rows, every_second)) == []


@pytest.mark.parametrize("seed", range(40))
def test_shops_that_sell_at_a_few_prices_are_no_repetition(seed: int) -> None:
    """Each sale is a submission of its own, as a bank's notification is, or a few are sent together."""
    random = Random(seed)
    prices = random.sample(("5", "8", "12.50"), random.randint(1, 3))
    sales = [row(day, random.choice(prices)) for day in range(300) for _ in range(random.randint(0, 12))]
    assert found(submissions(*([each] for each in sales))) == []
    assert found(submissions(*in_pieces(random, sales, 4))) == []


def test_equal_wages_and_fees_on_one_day_are_no_repetition() -> None:
    wages = [row(day, f"-{1000 + day // 100 * 50}") for day in range(0, 350, 7) for _ in range(3)]
    fees = [row(day, "-0.50") for day in range(350) for _ in range(2)]
    assert found(submissions(*([each] for each in wages))) == []
    assert found(submissions(*([each] for each in fees))) == []


def test_two_equal_rows_of_one_submission_are_two() -> None:
    rows = [row(day, f"{day + 1}") for day in DAYS for _ in range(2)]
    assert found(submissions(*by_day(rows))) == []
    assert moved(found(submissions(*by_day(rows), *by_day(rows)))) == moved(rows)


def test_equal_rows_of_several_submissions_are_two_if_their_balances_prove_it() -> None:
    rows = add_balances(row(day, f"{day + 1}") for day in DAYS for _ in range(2))
    assert found(mark_balances(submissions(*([each] for each in rows)))) == []
    without = [{**each, "balance": None} for each in rows]
    assert len(found(mark_balances(submissions(*([each] for each in without))))) == len(DAYS)


def test_feeds_that_cut_days_in_pieces_are_no_repetition() -> None:
    for seed in range(20):
        random = Random(seed)
        assert found(submissions(*in_pieces(random, trade(random, range(200)), 3))) == []


def test_accounts_are_judged_separately() -> None:
    rows = [row(day, f"{day + 1}") for day in DAYS]
    assert found(submissions(rows, [{**each, "account_id": SAVINGS} for each in rows])) == []


@examples(60)
@given(st.randoms(use_true_random=True), st.integers(5, 14), st.integers(1, 6))
def test_rows_found_are_those_of_the_oracle(random: Random, days: int, prices: int) -> None:
    sums = [Decimal(random.randint(-3, 5)) for _ in range(prices)]
    rows = [
        row(day, random.choice([*sums, Decimal(day + 10)]), account_id=random.choice((MAIN, MAIN, SAVINGS)))
        for day in range(days)
        for _ in range(random.randint(0, 3))
    ]
    again = [each for each in rows if random.random() < 0.9] * random.choice((1, 1, 1, 2))
    sent = [*in_pieces(random, rows, 6), *in_pieces(random, again, random.choice((2, 6, 50)))]
    verified = [{**each, "balance_verified": random.choice((True, True, None))} for each in submissions(*sent)]
    found(verified)
