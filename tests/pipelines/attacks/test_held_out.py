"""The held-out attacks and lookalikes on a business that can have all of them."""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipelines.attacks.attack import Applicant, Attack, Manipulation
from pipelines.attacks.ledger import LEDGER, as_ledger, touched_rows
from pipelines.attacks.registry import attacks, described, draw_held_out, lookalikes
from tests.pipelines.attacks.ledgers import breaks

APPLIED = date(2026, 6, 30)
FIRST = date(2025, 7, 1)
LEAVE_GAPS = {"adverse_rows_withheld", "export_without_fees"}
NOTHING_DRAWN = {"export_without_fees", "account_withheld", "adverse_rows_withheld"}  # with default parameters
MADE: Mapping[str, Manipulation] = {**attacks(), **lookalikes()}
HELD_OUT = {slug: each for slug, each in MADE.items() if each.held_out}
Row = tuple[str, str, date, str, str, str, str | None]


def rows() -> Iterator[Row]:
    for week in range(52):
        day = FIRST + timedelta(weeks=week)
        yield (
            "10001",
            "transaction",
            day,
            "Osko Deposit 03Jul18:25 MEI ZHANG inv1",
            "9000.00",
            "customer_transfer",
            "Mei Zhang",
        )
        yield "10001", "transaction", day, "Osko Payment to Ana Vale wages", "-7000.00", "wages", "Ana Vale"
        yield "10001", "transaction", day, "Direct Debit BIGLOAN", "-300.00", "term_loan_repayment", "Bigloan"
        if week % 4 == 0:
            yield "10001", "transaction", day, "Account fee", "-10.00", "bank_fees", None
            yield "10001", "transaction", day, "Dishonour fee", "-15.00", "dishonour_fee", None
            yield "10001", "transaction", day, "Tfr from xx0002", "500.00", "own_transfer", None
            yield "20002", "savings", day, "Tfr to xx0001", "-500.00", "own_transfer", None
            yield "20002", "savings", day, "Interest", "3.00", "interest_received", None


def untouched() -> pl.DataFrame:
    schema = {name: LEDGER[name] for name in ("account", "account_type", "date", "description")}
    further = {"amount": pl.String(), "category": pl.String(), "counterparty": pl.String()}
    frame = pl.DataFrame(list(rows()), schema={**schema, **further}, orient="row")
    exact = frame.with_columns(pl.col("amount").cast(LEDGER["amount"]), bank=pl.lit("Some Bank"))
    return as_ledger(exact.with_columns(balance=pl.col("amount").cum_sum().over("account") + 10_000))


LEDGER_BEFORE = untouched()
APPLICANT = Applicant(LEDGER_BEFORE, APPLIED, name="Vale Joinery", owner="Tom Vale")


def inserted(slug: str, **parameters: object) -> pl.DataFrame:
    after = MADE[slug].apply(APPLICANT, "7", **parameters)
    return after.filter(pl.col("touch") == "inserted").sort("date", maintain_order=True)


def test_drawn_third_is_implemented_with_its_lookalikes() -> None:
    expected = {name for slug in draw_held_out() for name in (slug, *described()[slug].lookalikes)}
    assert HELD_OUT.keys() == expected
    assert len(draw_held_out()) * 3 >= len(described()) >= 15


def test_every_attack_has_a_look_alike_in_words() -> None:
    assert [slug for slug, each in described().items() if not each.lookalikes or len(each.words) < 80] == []


@pytest.mark.parametrize("slug", HELD_OUT)
def test_held_out_change(slug: str) -> None:
    change = HELD_OUT[slug]
    after = change.apply(APPLICANT, "7")
    assert after.schema == LEDGER
    assert_frame_equal(after, change.apply(APPLICANT, "7"))
    touched = touched_rows(LEDGER_BEFORE, after)
    assert touched.height > 0
    assert touched["date"].is_between(FIRST, APPLIED).all()
    assert (breaks(after) == []) == (slug not in LEAVE_GAPS)
    others = ~pl.col("account").is_in(touched["account"].implode())
    assert_frame_equal(after.filter(others), LEDGER_BEFORE.filter(others))


@pytest.mark.parametrize("slug", sorted(HELD_OUT.keys() - NOTHING_DRAWN))
def test_seed_decides(slug: str) -> None:
    assert not HELD_OUT[slug].apply(APPLICANT, "7").equals(HELD_OUT[slug].apply(APPLICANT, "8"))


@pytest.mark.parametrize("slug", HELD_OUT)
def test_applicant_without_balances_words_or_labels(slug: str) -> None:
    bare = LEDGER_BEFORE.with_columns(
        description=pl.lit(""), balance=pl.lit(None, LEDGER["balance"]), category=pl.lit(None, pl.String)
    )
    after = HELD_OUT[slug].apply(Applicant(bare, APPLIED), "7")
    of_old_accounts = after.filter(pl.col("account").is_in(bare["account"].implode()))
    assert of_old_accounts["balance"].null_count() == of_old_accounts.height
    assert set(of_old_accounts["description"]) == {""}


@pytest.mark.parametrize("first", ["in", "out"])
def test_round_trip_returns_each_sum_to_the_same_party(first: str) -> None:
    rows = inserted("round_trip", first=first, count=3)
    assert rows.height == 6
    assert rows["counterparty"].n_unique() == 1
    assert rows["amount"].sum() == 0
    assert (rows["amount"][0] > 0) == (first == "in")


def test_delayed_round_trip_takes_three_to_six_weeks() -> None:
    rows = inserted("round_trip_delayed", count=1)
    assert 21 <= (rows["date"][1] - rows["date"][0]).days <= 44


def test_money_held_for_others_leaves_a_fee_and_goes_to_somebody_else() -> None:
    rows = inserted("money_held_for_others", count=1)
    assert rows["amount"].sum() > 0
    assert rows["counterparty"].n_unique() == 2


def test_money_parked_at_the_end_of_the_last_month_is_still_there() -> None:
    rows = inserted("month_end_parking", months=3)
    assert rows["amount"].gt(0).to_list() == [True, False, True, False, True]
    assert rows["date"][-1] == APPLIED


def test_stacked_loans_come_from_different_lenders() -> None:
    rows = inserted("loans_stacked", lenders=4).filter(pl.col("category") == "term_loan_funding")
    assert rows["counterparty"].n_unique() == 4


def test_refinancing_pays_off_who_was_repaid_before() -> None:
    rows = inserted("refinancing").filter(pl.col("description").str.contains("final payout"))
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
    row = inserted("round_trip", count=1).row(0, named=True)
    assert f"{row['date']:%d%b}18:25" in row["description"]


def test_parameters_are_listed_with_their_defaults() -> None:
    assert attacks()["loans_stacked"].parameters == {"lenders": 3, "share": Decimal("0.5"), "within": 30}
    with pytest.raises(TypeError, match="lender_count"):
        attacks()["loans_stacked"].apply(APPLICANT, "7", lender_count=3)


def test_evidence_remains_only_where_it_is_supplied() -> None:
    attack: Attack = attacks()["adverse_rows_withheld"]
    assert attack.leaves_evidence(LEDGER_BEFORE)
    assert not attack.leaves_evidence(LEDGER_BEFORE.with_columns(balance=pl.lit(None, LEDGER["balance"])))
