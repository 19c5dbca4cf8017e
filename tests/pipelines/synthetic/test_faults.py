"""Faults put into a synthetic history change only the rows concerned, and those are labelled."""

from datetime import date
from decimal import Decimal
from random import Random

import polars as pl
import pytest

from pipelines.synthetic import LABELLED, Business, portfolio
from pipelines.synthetic.ledger.faults import (
    FAULTS,
    Fault,
    with_fault,
    with_gap,
    with_overlap,
    with_row_repeated,
    with_sign_flipped,
    without_row,
)

pytestmark = pytest.mark.slow  # the generator of synthetic data alone

UNTIL = date(2025, 6, 30)


def statement(*amounts: str) -> pl.DataFrame:
    """Return a row a day from 1 June on, with balances from an opening balance of zero."""
    rows = pl.DataFrame(
        {
            "date": [date(2025, 6, day) for day in range(1, len(amounts) + 1)],
            "amount": [Decimal(amount) for amount in amounts],
            "injected": [None] * len(amounts),
        },
        schema={name: LABELLED[name] for name in ("date", "amount", "injected")},
    )
    return rows.with_columns(pl.col("amount").cum_sum().alias("balance"), pl.lit(0, pl.UInt8).alias("submission"))


def test_a_gap_is_labelled_where_the_balance_jumps() -> None:
    rows = with_gap(statement("10.00", "20.00", "30.00", "40.00"), date(2025, 6, 2), date(2025, 6, 3))
    assert rows["balance"].to_list() == [Decimal("10.00"), Decimal("100.00")]
    assert rows["injected"].to_list() == [None, "gap"]


def test_rows_that_cancel_out_are_left_alone_because_nothing_would_jump() -> None:
    rows = statement("10.00", "20.00", "-20.00", "40.00")
    assert with_gap(rows, date(2025, 6, 2), date(2025, 6, 3)).equals(rows)


def test_an_overlap_sends_whole_days_twice() -> None:
    rows = with_overlap(statement("10.00", "20.00", "30.00"), date(2025, 6, 2), date(2025, 6, 2))
    assert rows.select("amount", "submission", "injected").rows() == [
        (Decimal("10.00"), 0, None),
        (Decimal("20.00"), 0, None),
        (Decimal("20.00"), 1, "duplicate"),
        (Decimal("30.00"), 1, None),
    ]


@pytest.fixture(scope="module")
def pairs_of_portfolios() -> list[tuple[Business, Business]]:
    clean = portfolio(30, 4, seed=3, until=UNTIL)
    return list(zip(clean, portfolio(30, 4, seed=3, until=UNTIL, faults=True), strict=True))


def test_all_kinds_of_fault_and_none_occur(pairs_of_portfolios: list[tuple[Business, Business]]) -> None:
    kinds = [tuple(hurt.accounts[0].transactions["injected"].drop_nulls().unique()) for _, hurt in pairs_of_portfolios]
    assert set(kinds) == {(), ("gap",), ("duplicate",)}


def test_without_its_repetitions_an_overlapping_account_is_the_clean_one(
    pairs_of_portfolios: list[tuple[Business, Business]],
) -> None:
    for clean, hurt in pairs_of_portfolios:
        sent = hurt.accounts[0].transactions
        if (sent["injected"] == "duplicate").any():
            once = sent.filter(pl.col("injected").ne_missing("duplicate")).drop("submission", "transfer_pair")
            assert once.equals(clean.accounts[0].transactions.drop("submission", "transfer_pair"))


def test_every_gap_breaks_the_chain_at_its_label_only(pairs_of_portfolios: list[tuple[Business, Business]]) -> None:
    gaps = 0
    for _, hurt in pairs_of_portfolios:
        rows = hurt.accounts[0].transactions
        if (rows["injected"] == "gap").any():
            jumps = pl.col("balance") - pl.col("balance").shift() != pl.col("amount")
            assert rows.filter(jumps)["injected"].to_list() == ["gap"]
            gaps += 1
    assert gaps > 0


def test_a_leg_whose_other_side_is_missing_is_no_pair(pairs_of_portfolios: list[tuple[Business, Business]]) -> None:
    for _, hurt in pairs_of_portfolios:
        legs = pl.concat(
            account.transactions.filter(pl.col("injected").ne_missing("duplicate"))["transfer_pair"].drop_nulls()
            for account in hurt.accounts
        )
        assert set(legs.value_counts()["count"]) <= {2}


def test_a_missing_row_labels_the_next() -> None:
    rows = without_row(statement("10.00", "20.00", "30.00"), 1)
    assert rows["balance"].to_list() == [Decimal("10.00"), Decimal("60.00")]
    assert rows["injected"].to_list() == [None, "row_deleted"]


def test_a_flipped_sign_leaves_the_balance_as_the_bank_stated_it() -> None:
    rows = with_sign_flipped(statement("10.00", "20.00", "30.00"), 1)
    assert rows["amount"].to_list() == [Decimal("10.00"), Decimal("-20.00"), Decimal("30.00")]
    assert rows["balance"].to_list() == [Decimal("10.00"), Decimal("30.00"), Decimal("60.00")]
    assert rows["injected"].to_list() == [None, "sign_flipped", None]


def test_a_repeated_row_stands_behind_the_one_it_repeats() -> None:
    once = statement("10.00", "20.00").with_columns(transaction_id=pl.lit("a"))
    rows = with_row_repeated(once, 0)
    assert rows["balance"].to_list() == [Decimal("10.00"), Decimal("10.00"), Decimal("30.00")]
    assert rows["injected"].to_list() == [None, "row_repeated", None]
    assert rows["transaction_id"].to_list() == ["a", "a-again", "a"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_business_is_hurt_by_one_fault_and_no_other(fault: Fault) -> None:
    changed = 0
    for n, clean in enumerate(portfolio(12, 4, seed=3, until=UNTIL)):
        harmed = with_fault(clean, fault, Random(n))
        if harmed is None:
            continue
        changed += 1
        if fault == "account_dropped":
            assert len(harmed.accounts) == len(clean.accounts) - 1
            assert harmed.accounts[0].account_number == clean.accounts[0].account_number
        else:
            assert harmed.accounts[0].transactions["injected"].drop_nulls().to_list() == [fault]
    assert changed > 5


@pytest.mark.parametrize(("fault", "most_days"), [("week_deleted", 7), ("month_deleted", 31)])
def test_deleted_days_are_at_most_a_week_or_a_month(fault: Fault, most_days: int) -> None:
    for n, clean in enumerate(portfolio(6, 4, seed=3, until=UNTIL)):
        harmed = with_fault(clean, fault, Random(n))
        assert harmed is not None
        before, after = clean.accounts[0].transactions["date"], harmed.accounts[0].transactions["date"]
        gone = before.filter(~before.is_in(after.implode())).unique().sort()
        assert (gone[-1] - gone[0]).days < most_days
        assert before[0] == after[0]
        assert before[-1] == after[-1]
