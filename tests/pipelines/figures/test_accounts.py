"""Closing balances are right whatever order the bank lists a day's rows in."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.figures.accounts import closing_balances, derive_unknown, describe_accounts, state_details
from tests.pipelines.reports.examples import MAIN, Row, add_balances, cents, row, transactions


def closing(rows: list[Row]) -> dict[date, Decimal | None]:
    frame = closing_balances(transactions(rows)).select("date", "closing_balance").collect()
    return dict(frame.iter_rows())


TRADING_DAY = add_balances([row(0, "50"), row(0, "-20"), row(0, "5")])


def test_a_day_closes_with_its_last_balance_oldest_first() -> None:
    assert closing(TRADING_DAY) == {date(2025, 1, 1): Decimal("1035.00")}


def test_a_day_closes_with_its_last_balance_newest_first() -> None:
    assert closing(TRADING_DAY[::-1]) == {date(2025, 1, 1): Decimal("1035.00")}


@given(st.lists(cents(), min_size=1, max_size=6).filter(sum), st.randoms())
def test_a_day_closes_with_its_last_balance_in_any_order(amounts: list[Decimal], random: object) -> None:
    rows = add_balances([row(0, amount) for amount in amounts])
    shuffled = rows.copy()
    random.shuffle(shuffled)  # pyrefly: ignore[missing-attribute]  # hypothesis types its Random as object
    assert closing(shuffled) == {date(2025, 1, 1): rows[-1]["balance"]}


def test_a_day_that_ends_where_it_began_leaves_the_balance_as_it_was() -> None:
    assert closing(add_balances([row(0, "50"), row(1, "70"), row(1, "-70")])) == {date(2025, 1, 1): Decimal(1050)}


def test_a_broken_chain_is_closed_by_the_piece_received_last() -> None:
    broken = [row(0, "10", balance=Decimal(110)), row(0, "5", balance=Decimal(505))]
    assert closing(broken) == {date(2025, 1, 1): Decimal(505)}


def test_a_balance_that_other_rows_start_from_does_not_close_the_day() -> None:
    stated = [("10", 110), ("-10", 90), ("50", 100)]  # two rows start from the 100 that came last
    rows = [row(0, amount, balance=Decimal(balance)) for amount, balance in stated]
    assert closing(rows) == {date(2025, 1, 1): Decimal(90)}


def test_a_day_without_balances_is_unknown() -> None:
    assert closing([*TRADING_DAY, row(1, "5")]) == {date(2025, 1, 1): Decimal(1035), date(2025, 1, 2): None}


def test_one_balance_at_the_end_of_a_day_is_enough() -> None:
    assert closing([row(0, "10"), row(0, "5", balance=Decimal(15))]) == {date(2025, 1, 1): Decimal(15)}


def derived(rows: list[Row]) -> list[Decimal | None]:
    return derive_unknown(closing_balances(transactions(rows)).collect())["closing_balance"].to_list()


WEEK = add_balances([row(day, amount) for day, amount in enumerate(("10", "-70", "-5", "80", "1"))])


@given(st.sets(st.integers(0, 4), max_size=4))
def test_balances_that_are_left_out_follow_from_the_others(left_out: set[int]) -> None:
    some = [{**each, "balance": None} if day in left_out else each for day, each in enumerate(WEEK)]
    assert derived(some) == [each["balance"] for each in WEEK]


def test_an_account_without_any_balance_has_none() -> None:
    assert derived([row(0, "5"), row(1, "5")]) == [None, None]


def test_the_lower_balance_counts_if_rows_are_missing_in_between() -> None:
    missing_credit = [row(0, "1", balance=Decimal(10)), row(1, "1"), row(2, "1", balance=Decimal(99))]
    missing_debit = [row(0, "1", balance=Decimal(99)), row(1, "1"), row(2, "1", balance=Decimal(10))]
    assert [derived(missing_credit)[1], derived(missing_debit)[1]] == [Decimal(11), Decimal(9)]


def test_a_row_after_the_last_stated_balance_of_a_day_counts() -> None:
    before, received = row(0, "1", balance=Decimal(100)), row(1, "900", balance=Decimal(1000))
    paid, after = row(1, "-990"), row(2, "1", balance=Decimal(11))
    assert derived([before, received, paid, after]) == [Decimal(100), Decimal(10), Decimal(11)]
    assert derived([before, received, paid]) == [Decimal(100), Decimal(10)]
    there_and_back = [row(1, "5", balance=Decimal(105)), row(1, "-5", balance=Decimal(100)), row(1, "-60")]
    assert derived([before, *there_and_back]) == [Decimal(100), Decimal(40)]


def details(rows: list[Row], *names: str) -> list[tuple[object, ...]]:
    return describe_accounts(state_details(transactions(rows))).select(names).collect().rows()


def test_an_account_is_described_by_the_last_submission() -> None:
    rows = [row(9, "1", account_name="Zebra"), row(0, "1", account_name="Able", received_seq=2)]
    assert details(rows, "account_id", "account_name") == [(MAIN, "Able")]


def test_a_detail_that_the_last_submission_leaves_out_is_as_stated_before() -> None:
    stated = {"account_type": "credit_card", "credit_limit": Decimal(5000)}
    silent = {"account_type": None, "credit_limit": None, "account_name": "Able", "received_seq": 2}
    rows = [row(0, "1", **stated), row(1, "1", **silent)]
    assert details(rows, "account_name", "account_type", "credit_limit") == [("Able", "credit_card", Decimal(5000))]


def test_of_two_statements_in_one_submission_the_later_one_describes_the_account() -> None:
    march, april = ({"credit_limit": Decimal(limit)} for limit in (9000, 200))
    assert details([row(40, "1", **april), row(9, "1", **march)], "credit_limit") == [(Decimal(200),)]


@pytest.mark.parametrize("replaced", [{"superseded_seq": 2}, {"superseded_seq": 2, "status": "pending"}])
def test_a_detail_that_only_revised_rows_state_still_holds(replaced: Row) -> None:
    stating = row(0, "1", account_type="credit_card", credit_limit=Decimal(5000), **replaced)
    silent = row(0, "2", account_type=None, credit_limit=None, received_seq=2)
    assert details([stating, silent], "account_type", "credit_limit") == [("credit_card", Decimal(5000))]


def test_a_detail_that_only_retracted_rows_state_does_not_hold() -> None:
    retracted = row(0, "1", account_type="credit_card", superseded_seq=3, retracted_seq=3)
    assert details([retracted, row(1, "1", account_type=None)], "account_type") == [(None,)]


def test_an_account_without_posted_rows_is_not_listed() -> None:
    assert details([row(0, "1", status="pending"), row(0, "1", superseded_seq=2)], "account_id") == []
