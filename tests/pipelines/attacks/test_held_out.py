"""The held-out attacks and lookalikes on a business that can have all of them."""

from decimal import Decimal

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipelines.attacks.attack import Attack
from pipelines.attacks.ledger import LEDGER, remove_rows
from pipelines.attacks.registry import attacks, draw_held_out, load_descriptions
from tests.pipelines.attacks.business import APPLICANT, APPLIED, CHANGES, LEDGER_BEFORE, list_inserted
from tests.pipelines.attacks.ledgers import breaks

HELD_OUT = {slug: each for slug, each in CHANGES.items() if each.held_out}


def test_drawn_third_is_implemented_with_its_lookalikes() -> None:
    expected = {name for slug in draw_held_out() for name in (slug, *load_descriptions()[slug].lookalikes)}
    assert HELD_OUT.keys() == expected
    assert len(draw_held_out()) * 3 >= len(load_descriptions()) >= 15


def test_every_attack_has_a_lookalike_in_words() -> None:
    assert [slug for slug, each in load_descriptions().items() if not each.lookalikes or len(each.words) < 80] == []


@pytest.mark.parametrize("first", ["in", "out"])
def test_round_trip_returns_each_sum_to_the_same_party(first: str) -> None:
    rows = list_inserted("round_trip", first=first, count=3)
    assert rows.height == 6
    assert rows["counterparty"].n_unique() == 1
    assert rows["amount"].sum() == 0
    assert (rows["amount"][0] > 0) == (first == "in")


def test_delayed_round_trip_takes_three_to_six_weeks() -> None:
    rows = list_inserted("round_trip_delayed", count=1)
    assert 21 <= (rows["date"][1] - rows["date"][0]).days <= 44


def test_money_held_for_others_leaves_a_fee_and_goes_to_somebody_else() -> None:
    rows = list_inserted("money_held_for_others", count=1)
    assert rows["amount"].sum() > 0
    assert rows["counterparty"].n_unique() == 2


def test_money_parked_at_the_end_of_the_last_month_is_still_there() -> None:
    rows = list_inserted("month_end_parking", months=3)
    assert rows["amount"].gt(0).to_list() == [True, False, True, False, True]
    assert rows["date"][-1] == APPLIED


def test_stacked_loans_come_from_different_lenders() -> None:
    rows = list_inserted("loans_stacked", lenders=4).filter(pl.col("category") == "term_loan_funding")
    assert rows["counterparty"].n_unique() == 4


def test_refinancing_pays_off_who_was_repaid_before() -> None:
    rows = list_inserted("refinancing").filter(pl.col("description").str.contains("final payout"))
    assert rows["counterparty"].to_list() == ["Bigloan"]


@pytest.mark.parametrize(("balances", "are_broken"), [("printed", True), ("corrected", False), ("left_out", False)])
def test_adverse_rows_are_withheld(balances: str, are_broken: bool) -> None:
    after = attacks()["adverse_rows_withheld"].apply(APPLICANT, "7", balances=balances)
    assert after.filter(pl.col("category") == "dishonour_fee").is_empty()
    assert bool(breaks(after)) == are_broken


def test_own_transfers_read_like_customers_and_keep_their_money() -> None:
    after = attacks()["own_transfers_as_receipts"].apply(APPLICANT, "7")
    changed = after.filter(pl.col("touch") == "reworded")
    assert changed.height == 13
    assert changed["description"].str.contains("(?i)^Osko Deposit .*inv").all()
    assert_frame_equal(after.drop("description", "touch"), LEDGER_BEFORE.drop("description", "touch"))


def test_texts_print_the_day_of_the_payment() -> None:
    row = list_inserted("round_trip", count=1).row(0, named=True)
    assert f"{row['date']:%d%b}18:25" in row["description"]


def test_parameters_are_listed_with_their_defaults() -> None:
    assert attacks()["loans_stacked"].parameters == {"lenders": 3, "share": Decimal("0.5"), "within": 30}
    with pytest.raises(TypeError, match="lender_count"):
        attacks()["loans_stacked"].apply(APPLICANT, "7", lender_count=3)


def test_evidence_remains_only_where_it_is_supplied() -> None:
    attack: Attack = attacks()["adverse_rows_withheld"]
    without = LEDGER_BEFORE[:20].vstack(LEDGER_BEFORE[21:])
    assert attack.leaves_evidence(LEDGER_BEFORE, without)
    assert not attack.leaves_evidence(LEDGER_BEFORE, remove_rows(LEDGER_BEFORE, LEDGER_BEFORE["row"][20:21].to_list()))
    hidden = pl.lit(None, LEDGER["balance"]).alias("balance")
    assert not attack.leaves_evidence(LEDGER_BEFORE.with_columns(hidden), without.with_columns(hidden))
