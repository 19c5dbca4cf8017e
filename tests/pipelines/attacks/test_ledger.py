"""Rows that an attack adds, removes, moves or changes leave exactly the traces in the balances that it intends."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipelines.attacks.ledger import (
    LEDGER,
    Movement,
    add_account,
    as_ledger,
    change_amounts,
    change_texts,
    hide_balances,
    insert_rows,
    move_rows,
    remove_rows,
    touched_rows,
)
from tests.pipelines.attacks.ledgers import FIRST, account, any_ledger, balances, breaks, ledger

TEN = Decimal("10.00")
Change = Callable[[pl.DataFrame, Random], pl.DataFrame]


def some_row(rows: pl.DataFrame, rng: Random) -> int:
    return rng.randrange(rows.height)


def insert_somewhere(rows: pl.DataFrame, rng: Random) -> pl.DataFrame:
    day = FIRST + timedelta(days=rng.randrange(-2, 15))
    return insert_rows(rows, [Movement(rng.choice(rows["account"].to_list()), day, "new", TEN)])


CHANGES: Mapping[str, Change] = {
    "insert": insert_somewhere,
    "remove": lambda rows, rng: remove_rows(rows, [some_row(rows, rng)]),
    "amount": lambda rows, rng: change_amounts(rows, {some_row(rows, rng): TEN}),
    "move": lambda rows, rng: move_rows(rows, {some_row(rows, rng): FIRST + timedelta(days=rng.randrange(15))}),
    "text": lambda rows, rng: change_texts(rows, {some_row(rows, rng): ""}),
    "hide": lambda rows, rng: hide_balances(rows, [some_row(rows, rng)]),
}


def test_inserted_row_changes_the_balances_after_it() -> None:
    before = ledger(account("1", "10.00", "20.00", "30.00"), account("2", "5.00"))
    after = insert_rows(before, [Movement("1", FIRST, "loan", Decimal("7.50"), "term_loan_funding", "Lender")])
    assert after["description"].to_list() == ["row 0", "loan", "row 1", "row 2", "row 0"]
    assert balances(after) == ["110.00", "117.50", "137.50", "167.50", "105.00"]


def test_row_inserted_before_all_others_moves_the_opening_balance_up() -> None:
    before = ledger(account("1", "10.00"))
    after = insert_rows(before, [Movement("1", FIRST - timedelta(days=1), "loan", TEN)])
    assert balances(after) == ["110.00", "120.00"]


def test_balances_are_not_invented_where_none_are_printed() -> None:
    before = ledger(account("1", "10.00", "20.00", printed=False))
    assert balances(insert_rows(before, [Movement("1", FIRST, "loan", TEN)])) == [None, None, None]


def test_balances_hidden_on_purpose_stay_hidden() -> None:
    hidden = hide_balances(ledger(account("1", "10.00", "20.00", "30.00")), [1])
    assert balances(hidden) == ["110.00", None, "160.00"]
    assert balances(change_amounts(hidden, {0: Decimal("11.00")})) == ["111.00", None, "161.00"]


def test_removed_row_leaves_a_gap_only_if_asked() -> None:
    before = ledger(account("1", "10.00", "20.00", "30.00"))
    assert balances(remove_rows(before, [1])) == ["110.00", "140.00"]
    assert balances(remove_rows(before, [1], rebalance=False)) == ["110.00", "160.00"]


def test_changed_amount_contradicts_the_balances_only_if_asked() -> None:
    before = ledger(account("1", "10.00", "20.00"))
    assert balances(change_amounts(before, {0: Decimal("15.00")})) == ["115.00", "135.00"]
    assert balances(change_amounts(before, {0: Decimal("15.00")}, rebalance=False)) == ["110.00", "130.00"]


def test_moved_row_changes_the_balances_in_between() -> None:
    before = ledger(account("1", "10.00", "20.00", "30.00", "40.00"))
    after = move_rows(before, {2: FIRST})
    assert after["description"].to_list() == ["row 0", "row 2", "row 1", "row 3"]
    assert balances(after) == ["110.00", "140.00", "160.00", "200.00"]


def test_moving_a_row_keeps_the_order_of_the_accounts() -> None:
    before = ledger(account("2", "10.00", "20.00"), account("1", "30.00"))
    assert move_rows(before, {0: FIRST + timedelta(days=1)})["row"].to_list() == [1, 0, 2]


def test_break_in_the_balances_stays_as_large_as_it_was() -> None:
    before = remove_rows(ledger(account("1", "10.00", "20.00", "30.00", "40.00")), [1], rebalance=False)
    assert breaks(before) == [Decimal("20.00")]
    assert breaks(insert_rows(before, [Movement("1", FIRST, "loan", TEN)])) == [Decimal("20.00")]


def test_newest_first_is_turned_round() -> None:
    rows = account("1", "10.00", "20.00", "30.00")
    same_day = rows.with_columns(date=pl.when(pl.col("amount") > 15).then(FIRST + timedelta(days=1)).otherwise("date"))
    assert_frame_equal(as_ledger(same_day.reverse()), as_ledger(same_day))


def test_touched_rows_are_named_and_removed_ones_too() -> None:
    before = ledger(account("1", "10.00", "20.00", "30.00", "40.00"), account("2", "50.00"))
    after = change_texts(remove_rows(before, [1]), {2: "other"})
    after = insert_rows(change_amounts(after, {3: TEN}), [Movement("2", FIRST, "new", TEN)])
    assert touched_rows(before, after).select("row", "touch").rows() == [
        (2, "reworded"),
        (3, "repriced"),
        (None, "inserted"),
        (1, "removed"),
    ]


def test_added_account_is_touched_as_a_whole() -> None:
    before = ledger(account("1", "10.00"))
    after = add_account(before, account("2", "1.00", "2.00"))
    assert touched_rows(before, after)["account"].to_list() == ["2", "2"]


@pytest.mark.slow  # the subject is manipulated data, for every kind of change
@pytest.mark.parametrize("name", CHANGES)
@settings(max_examples=20)
@given(before=any_ledger(), seed=st.integers(0, 1_000))
def test_consistent_ledger_stays_consistent(name: str, before: pl.DataFrame, seed: int) -> None:
    after = CHANGES[name](before, Random(seed))
    assert after.schema == LEDGER
    assert breaks(after) == []
    assert after.equals(after.sort("date", maintain_order=True).sort("account", maintain_order=True))


@pytest.mark.slow  # as above
@pytest.mark.parametrize("name", CHANGES)
@settings(max_examples=20)
@given(before=any_ledger(), seed=st.integers(0, 1_000))
def test_other_rows_and_accounts_stay(name: str, before: pl.DataFrame, seed: int) -> None:
    after = CHANGES[name](before, Random(seed))
    touched = touched_rows(before, after)
    assert touched.height == 1
    others = pl.col("account") != touched["account"][0]
    assert_frame_equal(after.filter(others), before.filter(others))
    untouched = ~pl.col("row").is_in(touched["row"].to_list())
    same = [column for column in LEDGER if column != "balance"]
    left = after.filter(pl.col("touch").is_null()).select(same)
    assert_frame_equal(left, before.filter(untouched | touched["row"].is_null().any()).select(same))
