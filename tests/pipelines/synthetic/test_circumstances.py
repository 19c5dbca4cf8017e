"""Applications, honest lookalikes, silent failures and missed wages: they occur often enough, with true labels."""

from datetime import date, timedelta
from decimal import Decimal
from statistics import mean, median
from typing import get_args

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipelines.synthetic import Business, Lookalike, business, portfolio
from pipelines.synthetic.businesses.circumstances import circumstances
from pipelines.synthetic.frames import transactions

UNTIL = date(2025, 6, 30)
KINDS: tuple[Lookalike, ...] = get_args(Lookalike)
OUTSIDERS = ("disputed_bill", "creditor_dividend", "tax_interest_once")  # they add adverse rows and change nothing else
of_a_large_portfolio = pytest.mark.slow  # 700 businesses are drawn, only to test the generator of synthetic data


def table(businesses: list[Business]) -> pl.DataFrame:
    return pl.concat(transactions(number, one) for number, one in enumerate(businesses))


@pytest.fixture(scope="module")
def usual() -> list[Business]:
    return list(portfolio(350, 8, seed=17, until=UNTIL))


@pytest.fixture(scope="module")
def honest() -> list[Business]:
    """Return the same businesses with many lookalikes."""
    return list(portfolio(350, 8, seed=17, until=UNTIL, lookalikes=True))


@pytest.fixture(scope="module")
def rows(honest: list[Business]) -> pl.DataFrame:
    return table(honest)


def test_the_same_seed_gives_the_same_lookalikes() -> None:
    many, again = (list(portfolio(8, 2, seed=3, until=UNTIL, lookalikes=True)) for _ in range(2))
    assert_frame_equal(table(many), table(again))
    assert [one.lookalikes for one in many] == [one.lookalikes for one in again]
    assert [one.applied_on for one in many] == [one.applied_on for one in again]
    assert any(one.lookalikes for one in many)
    assert_frame_equal(
        transactions(0, business(7, 2, 3, UNTIL, lookalikes=True)),
        transactions(0, many[7]),
    )


def test_a_business_without_lookalikes_is_the_same_in_both_portfolios() -> None:
    pairs = [
        (one, other)
        for n in range(8)
        if not (other := business(n, 2, 3, UNTIL, lookalikes=True)).lookalikes
        and not (one := business(n, 2, 3, UNTIL)).lookalikes
    ]
    assert pairs
    for one, other in pairs:
        assert_frame_equal(transactions(0, one), transactions(0, other))
        assert one.outcome == other.outcome


@of_a_large_portfolio
def test_each_lookalike_is_carried_by_a_tenth(honest: list[Business]) -> None:
    shares = {kind: mean(kind in one.lookalikes for one in honest) for kind in KINDS}
    assert {kind: share for kind, share in shares.items() if not 0.1 <= share <= 0.25} == {}


@of_a_large_portfolio
def test_each_lookalike_occurs_in_a_usual_portfolio_and_most_businesses_have_none(usual: list[Business]) -> None:
    assert {kind for one in usual for kind in one.lookalikes} == set(KINDS)
    assert 0.5 < mean(not one.lookalikes for one in usual) < 0.8


@of_a_large_portfolio
def test_labels_on_rows_are_those_of_the_business(honest: list[Business]) -> None:
    for number, one in enumerate(honest):
        assert sorted(transactions(number, one)["lookalike"].drop_nulls().unique().cast(pl.String)) == [*one.lookalikes]


@of_a_large_portfolio
def test_no_business_in_trouble_carries_a_lookalike(honest: list[Business]) -> None:
    assert {one.condition for one in honest if one.lookalikes} == {"sound", "start_up"}


@of_a_large_portfolio
def test_balances_add_up(honest: list[Business]) -> None:
    for one in honest:
        for account in one.accounts:
            steps = account.transactions.select(pl.col("balance").diff() - pl.col("amount")).to_series().drop_nulls()
            assert (steps == 0).all(), one.lookalikes


@of_a_large_portfolio
def test_applications_are_in_the_last_days_of_the_statements(usual: list[Business]) -> None:
    longest = max(circumstances().days_after_application)
    days = [(UNTIL - one.applied_on).days for one in usual]
    assert set(days) <= set(circumstances().days_after_application)
    assert 0.3 < days.count(0) / len(days) < 0.5
    assert max(days) == longest <= 10


@of_a_large_portfolio
def test_recent_money_comes_in_the_month_before_the_application(honest: list[Business], rows: pl.DataFrame) -> None:
    applied = pl.DataFrame({"customer": range(len(honest)), "applied_on": [one.applied_on for one in honest]})
    recent = rows.filter(pl.col("lookalike").cast(pl.String).str.starts_with("recent_")).join(
        applied.cast({"customer": pl.UInt32}), on="customer", validate="m:1"
    )
    assert set(recent["category"]) == {"grant", "insurance_payout", "asset_sale"}
    ago = (recent["applied_on"] - recent["date"]).dt.total_days()
    assert ago.is_between(0, 30).all()


@of_a_large_portfolio
@pytest.mark.parametrize("kind", ["returned_deposit", "overpaid_invoice"])
def test_what_is_returned_is_returned_in_full(rows: pl.DataFrame, kind: Lookalike) -> None:
    labelled = rows.filter(pl.col("lookalike") == kind)
    sums = labelled.group_by("customer").agg(pl.col("amount").sum())["amount"].to_list()
    assert len(sums) > 30
    assert mean(amount == 0 for amount in sums) > 0.85  # others lack an account or money to return


@of_a_large_portfolio
def test_what_is_held_for_others_is_passed_on_within_days(rows: pl.DataFrame) -> None:
    held = (
        rows.filter(pl.col("lookalike") == "money_held")
        .group_by("customer")
        .agg(
            received=pl.col("amount").filter(pl.col("amount") > 0).sum().cast(pl.Float64),
            passed_on=-pl.col("amount").filter(pl.col("amount") < 0).sum().cast(pl.Float64),
        )
    )
    shares = held.select(pl.col("passed_on") / pl.col("received")).to_series().to_list()
    assert median(shares) > 0.75
    assert max(shares) <= 1


@of_a_large_portfolio
def test_insolvency_trade_is_weekly(rows: pl.DataFrame) -> None:
    weeks = (
        rows.filter(pl.col("lookalike") == "insolvency_trade", pl.col("amount") > 0)
        .group_by("customer")
        .agg(weeks=pl.col("date").dt.truncate("1w").n_unique(), span=pl.col("date").max() - pl.col("date").min())
    )
    assert (weeks["weeks"] >= weeks["span"].dt.total_days() / 7 * 0.9).all()


@of_a_large_portfolio
def test_a_workers_garnishee_is_paid_on_pay_days(rows: pl.DataFrame) -> None:
    wages = rows.filter(pl.col("category") == "wages")
    deducted = wages.filter(pl.col("lookalike") == "employee_garnishee")
    paid = wages.filter(pl.col("lookalike").is_null()).select("customer", "date").unique()
    assert deducted.join(paid, on=["customer", "date"], how="anti").height / deducted.height < 0.01
    names = {"Child Support Agency", "Child Support Agy", "Local Court", "Sheriffs Office"}
    assert set(deducted["counterparty"]) <= names


@of_a_large_portfolio
def test_a_refinanced_loan_is_paid_out_by_the_new_one(honest: list[Business]) -> None:
    paid_out = 0
    for number, one in enumerate(honest):
        mine = transactions(number, one).filter(pl.col("lookalike") == "refinanced")
        by_number = {facility.number: facility for facility in one.facilities}
        for facility, amount in mine.filter(pl.col("amount") < 0).select("facility", "amount").iter_rows():
            assert by_number[facility].remaining == 0
            assert by_number[facility].status == "repaid"
            funded = mine.filter(pl.col("amount") > 0)
            assert funded["facility"].item() != facility
            assert Decimal(0) < -amount <= funded["amount"].item() * Decimal("1.1")  # arrears are paid, too
            paid_out += 1
    assert paid_out > 30


@of_a_large_portfolio
def test_companies_of_a_group_pool_cash_with_each_other(honest: list[Business], rows: pl.DataFrame) -> None:
    pooled = rows.filter(pl.col("lookalike") == "cash_pooling")
    assert set(pooled["category"]) == {"related_entity"}
    related = pooled.group_by("customer").agg(pl.col("counterparty").unique())
    for number, names in related.iter_rows():
        assert names == [honest[number].related[0]]


@of_a_large_portfolio
def test_a_dishonour_from_timing_is_paid_at_the_next_attempt(rows: pl.DataFrame) -> None:
    attempts = rows.filter(pl.col("lookalike") == "timing_dishonour", pl.col("category") != "dishonour_fee")
    sums = attempts.group_by("customer").agg(
        returned=pl.col("amount").filter(pl.col("category") == "returned_payment").sum(), left=pl.col("amount").sum()
    )
    assert sums.height > 30
    assert mean(left == -returned for left, returned in sums.select("left", "returned").iter_rows()) > 0.9


@of_a_large_portfolio
def test_owners_equity_is_not_distributed(honest: list[Business]) -> None:
    for number, one in enumerate(honest):
        if "lasting_equity" in one.lookalikes:
            assert "Distribution" not in " ".join(transactions(number, one)["description"])


@of_a_large_portfolio
def test_adverse_rows_change_neither_causes_nor_probability(usual: list[Business], honest: list[Business]) -> None:
    changed = [
        (one, other)
        for one, other in zip(usual, honest, strict=True)
        if (added := set(other.lookalikes) - set(one.lookalikes)) and added <= set(OUTSIDERS)
    ]
    assert len(changed) > 10
    for one, other in changed:
        assert (one.condition, one.outcome.latents) == (other.condition, other.outcome.latents)
    before, after = (mean(pair[at].outcome.probability for pair in changed) for at in (0, 1))
    assert after == pytest.approx(before, abs=0.01)


def adverse(one: Business) -> set[str]:
    known = {*circumstances().adverse_categories, "returned_payment", "dishonour_fee"}
    return known & {category for account in one.accounts for category in account.transactions["category"].unique()}


@of_a_large_portfolio
def test_no_adverse_row_gives_trouble_away(usual: list[Business]) -> None:
    troubled = [one for one in usual if one.condition in ("distressed", "failing")]
    others = [one for one in usual if one.condition in ("sound", "start_up")]
    assert 0.15 < mean(not adverse(one) for one in troubled) < 0.45
    for category in ("debt_collector", "tax_interest", "insolvency", "returned_payment", "late_fee"):
        seen = sum(category in adverse(one) for one in others)
        assert seen / (seen + sum(category in adverse(one) for one in troubled)) > 0.15, category


@of_a_large_portfolio
def test_silence_does_not_change_what_happens_next(usual: list[Business]) -> None:
    troubled = [one for one in usual if one.condition in ("distressed", "failing")]
    silent = [one.outcome.probability for one in troubled if not adverse(one)]
    loud = [one.outcome.probability for one in troubled if adverse(one)]
    assert mean(silent) > 0.6 * mean(loud)
    assert mean(silent) > 1.5 * mean(one.outcome.probability for one in usual)


@of_a_large_portfolio
def test_wages_are_missed_where_money_has_run_out(usual: list[Business]) -> None:
    shares = {
        state: mean(one.missed_wages > 0 for one in usual if one.condition == state)
        for state in ("sound", "distressed", "failing")
    }
    assert shares["sound"] < 0.02
    assert 0.05 < shares["distressed"] < 0.4
    assert 0.3 < shares["failing"] < 0.9
    lately = UNTIL - timedelta(days=60)
    for one in usual:
        if one.missed_wages:
            balances = one.accounts[0].transactions.filter(pl.col("date") > lately)["balance"].to_list()
            assert min(balances, default=0) < 20_000
