"""What holds for every attack and lookalike, and what is special about those of `payments` and `rewriting`."""

from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipelines.attacks.attack import Applicant
from pipelines.attacks.ledger import LEDGER, as_ledger, change_texts, move_rows, remove_rows, touched_rows
from pipelines.attacks.registry import attacks, load_descriptions
from pipelines.attacks.rewriting import ADVERSE
from tests.pipelines.attacks.business import (
    APPLICANT,
    APPLIED,
    CHANGES,
    FIRST,
    LEDGER_BEFORE,
    list_inserted,
    list_touched,
)
from tests.pipelines.attacks.ledgers import breaks

pytestmark = pytest.mark.slow  # the subject is manipulated data, not the product

# Changes after which balances contradict the rows, although balances are corrected where a change can do so.
LEAVES_GAPS = {"export_without_fees"}
NOTHING_DRAWN = {
    *("export_without_fees", "account_withheld", "adverse_rows_withheld", "adverse_texts_reworded"),
    *("dishonours_withheld", "dishonour_fees_charged_later"),
}


def consistent(slug: str) -> Mapping[str, str]:
    return {"balances": "corrected"} if "balances" in CHANGES[slug].parameters else {}


def test_everything_described_is_implemented() -> None:
    assert CHANGES.keys() == {name for slug, each in load_descriptions().items() for name in (slug, *each.lookalikes)}


@pytest.mark.parametrize("slug", CHANGES)
def test_change(slug: str) -> None:
    change = CHANGES[slug]
    after = change.apply(APPLICANT, "7", **consistent(slug))
    assert after.schema == LEDGER
    assert_frame_equal(after, change.apply(APPLICANT, "7", **consistent(slug)))
    rows = touched_rows(LEDGER_BEFORE, after)
    assert rows.height > 0
    assert rows["date"].is_between(FIRST, APPLIED).all()
    assert (breaks(after) == []) == (slug not in LEAVES_GAPS)
    others = ~pl.col("account").is_in(rows["account"].implode())
    assert_frame_equal(after.filter(others), LEDGER_BEFORE.filter(others))


@pytest.mark.parametrize("slug", sorted(CHANGES.keys() - NOTHING_DRAWN))
def test_seed_decides(slug: str) -> None:
    seeds = [str(seed) for seed in range(6)]
    assert len({CHANGES[slug].apply(APPLICANT, seed).write_json() for seed in seeds}) > 1


@pytest.mark.parametrize("slug", CHANGES)
def test_change_invents_no_balances_or_texts(slug: str) -> None:
    bare = LEDGER_BEFORE.with_columns(
        description=pl.lit(""), balance=pl.lit(None, LEDGER["balance"]), category=pl.lit(None, pl.String)
    )
    after = CHANGES[slug].apply(Applicant(bare, APPLIED), "7")
    of_old_accounts = after.filter(pl.col("account").is_in(bare["account"].implode()))
    assert of_old_accounts["balance"].null_count() == of_old_accounts.height
    assert set(of_old_accounts["description"]) == {""}


@pytest.mark.parametrize("slug", ["round_trip_related", "round_trip_similar_name", "round_trip_split"])
def test_what_comes_in_goes_out_again(slug: str) -> None:
    rows = list_inserted(slug)
    assert rows["amount"].sum() == 0
    assert rows["counterparty"].n_unique() > 1


def test_related_companies_are_used_if_there_are_any() -> None:
    applicant = Applicant(LEDGER_BEFORE, APPLIED, owner="Tom Vale", related=("Zeta Pty Ltd",))
    rows = CHANGES["round_trip_related"].apply(applicant, "7").filter(pl.col("touch") == "inserted")
    assert set(rows.filter(pl.col("amount") > 0)["counterparty"]) == {"Zeta Pty Ltd"}
    assert set(rows.filter(pl.col("amount") < 0)["counterparty"]) <= {"Vale Holdings", "Tom Vale"}


def test_split_receipt_has_no_pair_of_equal_amounts() -> None:
    amounts = list_inserted("round_trip_split")["amount"].abs()
    assert amounts.n_unique() == len(amounts)


def test_pooled_money_comes_back() -> None:
    rows = list_inserted("group_cash_pooling")
    assert (rows["amount"] < 0).any()
    assert rows["amount"].cum_sum().le(0).all()


def test_subcontractors_get_less_than_the_job_pays() -> None:
    rows = list_inserted("job_paid_to_subcontractors", count=1)
    paid = Decimal(-rows.filter(pl.col("amount") < 0)["amount"].sum())
    received = Decimal(rows.filter(pl.col("amount") > 0)["amount"].sum())
    assert Decimal("0.69") < paid / received < Decimal("0.91")


def test_injected_sums_are_round_and_late() -> None:
    rows = list_inserted("last_minute_injection")
    assert rows["amount"].to_list() == [amount // 500 * 500 for amount in rows["amount"]]
    assert rows["date"].ge(APPLIED - timedelta(days=12)).all()


def test_season_was_the_same_a_year_ago() -> None:
    days = set(list_inserted("seasonal_cash_takings", weeks=4)["date"])
    assert len(days) == 4  # the history is too short for the year before
    longer = Applicant(
        pl.concat([LEDGER_BEFORE.with_columns(date=pl.col("date").dt.offset_by("-400d")), LEDGER_BEFORE]), APPLIED
    )
    rows = CHANGES["seasonal_cash_takings"].apply(longer, "7", weeks=4)
    assert rows.filter(pl.col("touch") == "inserted").height == 8


def test_circle_has_nobody_on_both_sides() -> None:
    rows = list_inserted("invoice_circle")
    sides = rows.group_by(is_in=pl.col("amount") > 0).agg(pl.col("counterparty").unique())
    assert sorted(sides["counterparty"].list.len()) == [1, 1]
    assert rows["counterparty"].n_unique() == 2


def test_disguised_loan_is_repaid_by_direct_debit_under_other_names() -> None:
    rows = list_inserted("loan_as_revenue")
    lent, repaid = rows.filter(pl.col("amount") > 0), rows.filter(pl.col("amount") < 0)
    assert lent["description"].str.contains("(?i)inv").all()
    assert repaid["description"].str.starts_with("Direct Debit ").all()
    assert not set(lent["counterparty"]) & set(repaid["counterparty"])


@pytest.mark.parametrize(("balances", "are_broken"), [("printed", True), ("corrected", False)])
def test_bad_month_is_withheld(balances: str, are_broken: bool) -> None:
    after = CHANGES["month_withheld"].apply(APPLICANT, "7", accounts="all", balances=balances)
    gone = touched_rows(LEDGER_BEFORE, after)["date"].dt.month_start()
    assert gone.n_unique() == 1
    assert after.filter(pl.col("date").dt.month_start() == gone[0]).is_empty()
    assert bool(breaks(after)) == are_broken


def test_blanked_texts_are_those_of_bad_rows() -> None:
    rows = list_touched("texts_blanked", "reworded", share=Decimal(0), text="---")
    assert set(rows["description"]) == {"---"}
    assert set(rows["category"]) <= set(ADVERSE)


def test_garnishee_reads_like_a_supplier() -> None:
    rows = list_touched("adverse_texts_reworded", "reworded").filter(pl.col("category") == "garnishee")
    assert rows["description"].str.contains("Officeworks").all()


def test_hidden_refunds_read_like_purchases() -> None:
    rows = list_touched("refunds_hidden", "reworded", method="text")
    assert rows["description"].str.starts_with("Visa Purchase").all()


def test_netted_refunds_leave_the_money_as_it_is() -> None:
    after = CHANGES["refunds_netted_by_processor"].apply(APPLICANT, "7")
    assert after.height < LEDGER_BEFORE.height
    assert after["amount"].sum() == LEDGER_BEFORE["amount"].sum()


def test_backdated_receipts_keep_their_texts() -> None:
    rows = list_touched("receipts_backdated", "moved")
    before = LEDGER_BEFORE.filter(pl.col("row").is_in(rows["row"].implode()))
    assert rows["date"].lt(date(2026, 5, 16)).all()
    assert rows.sort("row")["description"].to_list() == before.sort("row")["description"].to_list()


def test_digit_is_put_in_front_of_some_receipts() -> None:
    rows = list_touched("amounts_inflated", "repriced", raised_by=Decimal(0), balances="printed")
    before = dict(LEDGER_BEFORE.select("row", "amount").iter_rows())
    assert all(str(amount)[1:] == str(before[row]) for row, amount in rows.select("row", "amount").iter_rows())


def backdated(description: pl.Expr, category: str = "customer_transfer") -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a year of daily receipts, and the same with five of the last ones moved half a year ahead."""
    days = [APPLIED - timedelta(days=ago) for ago in reversed(range(360))]
    given = pl.DataFrame({"account": "1", "date": days, "amount": Decimal(100), "balance": None}).with_columns(
        description=description, category=pl.lit(category), counterparty=pl.lit("a")
    )
    untouched = as_ledger(given)
    return untouched, move_rows(untouched, {row: days[row - 180] for row in range(350, 355)})


def test_moved_receipts_are_evidence_only_if_they_show_their_day() -> None:
    shows = attacks()["receipts_backdated"].leaves_evidence
    day, nth = pl.col("date").dt.strftime("%d%b"), pl.int_range(pl.len()).cast(pl.String).str.zfill(4)
    assert shows(*backdated("Osko Deposit " + day))
    assert not shows(*backdated(pl.lit("Osko Deposit")))
    assert shows(*backdated("Inv " + nth))
    assert not shows(*backdated(pl.lit("Inv 1234")))  # had been paid before
    assert shows(*backdated(pl.lit("Settlement"), "card_settlement"))


def test_moved_settlements_are_evidence_only_on_days_that_have_one() -> None:
    shows = attacks()["receipts_backdated"].leaves_evidence
    untouched, changed = backdated(pl.lit("Settlement"), "card_settlement")
    gone = untouched.filter(~pl.col("row").is_between(165, 180)), changed.filter(~pl.col("row").is_between(165, 180))
    assert not shows(*gone)


def test_inflated_amounts_are_evidence_only_if_the_printed_balances_stay() -> None:
    attack = attacks()["amounts_inflated"]
    left = [
        attack.leaves_evidence(LEDGER_BEFORE, attack.apply(APPLICANT, "7", balances=balances))
        for balances in ("printed", "corrected")
    ]
    assert left == [True, False]


def test_reworded_texts_are_evidence_only_if_instalments_are_among_them() -> None:
    attack = attacks()["adverse_texts_reworded"]
    left = [attack.leaves_evidence(LEDGER_BEFORE, attack.apply(APPLICANT, "7", loans=loans)) for loans in (True, False)]
    assert left == [True, False]


def test_dishonours_are_left_out_with_their_payments_and_only_their_fees_are_evidence() -> None:
    attack = attacks()["dishonours_withheld"]
    after = attack.apply(APPLICANT, "7")
    left_out = LEDGER_BEFORE.join(after, on="row", how="anti")
    assert left_out["counterparty"].to_list() == ["Gymco"] * 26
    assert left_out["amount"].sum() == 0
    assert breaks(after) == []
    assert attack.leaves_evidence(LEDGER_BEFORE, after)
    fees = after.filter(pl.col("category") == "dishonour_fee")["row"].to_list()
    assert not attack.leaves_evidence(LEDGER_BEFORE, remove_rows(after, fees[1:]))


def reworded(every: int, text: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return bills of 30 days and a lender's instalments, and the same with another text of the instalments."""
    paid = [("Xero 123", "software", ago) for ago in range(1, 360, 30)]
    paid += [("Prospa", "term_loan_repayment", ago) for ago in range(2, 360, every)]
    given = pl.DataFrame(paid, schema=["description", "category", "ago"], orient="row").with_columns(
        account=pl.lit("1"), date=APPLIED - pl.duration(days="ago"), amount=pl.lit(Decimal(-100)), balance=None
    )
    untouched = as_ledger(given.drop("ago"))
    loans = untouched.filter(pl.col("category") == "term_loan_repayment")["row"].to_list()
    return untouched, change_texts(untouched, dict.fromkeys(loans, text))


def test_reworded_instalments_are_evidence_by_their_rhythm_or_beside_others_of_the_same_text() -> None:
    shows = attacks()["adverse_texts_reworded"].leaves_evidence
    assert [shows(*reworded(every, text)) for every in (7, 30) for text in ("Xero 456", "MYOB")] == [
        True,
        True,
        True,
        False,
    ]
