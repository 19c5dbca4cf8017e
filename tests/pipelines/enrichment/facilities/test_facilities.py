"""Loans, advances and payment plans are inferred from fundings and repayments, with their terms and their state."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipelines.enrichment.facilities import FACILITIES, mark_facilities, summarise_facilities
from pipelines.enrichment.facilities.products import PRODUCTS
from pipelines.enrichment.facilities.terms import ASSUMED
from pipelines.vocabulary.taxonomy import TAXONOMY
from tests.conftest import examples
from tests.pipelines.enrichment.examples import ACCOUNT, OTHER_ACCOUNT, held_rows

MONDAY = date(2025, 1, 6)
LATER = date(2026, 6, 30)
Row = dict[str, Any]


def row(day: date, amount: str, category: str, lender: str | None = "Lumi", **fields: Any) -> Row:
    named = {"counterparty_name": lender, "counterparty_lender_id": lender and lender.lower()}
    group = TAXONOMY.categories[category].group
    return {
        "date": day,
        "amount": Decimal(amount),
        "category": category,
        "category_group": group,
        "is_transfer": False,
        **named,
        **fields,
    }


def drawdown(day: date, amount: str, product: str = "term_loan", **fields: Any) -> Row:
    return row(day, amount, PRODUCTS[product].fundings[0], **fields)


def repayment(day: date, amount: str, product: str = "term_loan", **fields: Any) -> Row:
    return row(day, amount, PRODUCTS[product].repayments[0], **fields)


def weekly(first: date, count: int, amount: str, **fields: Any) -> list[Row]:
    return [repayment(first + timedelta(weeks=week), amount, **fields) for week in range(count)]


def monthly(count: int, amount: str, day: int = 15, **fields: Any) -> list[Row]:
    return [repayment(date(2025 + n // 12, n % 12 + 1, day), amount, **fields) for n in range(count)]


def working_days(first: date, count: int) -> list[date]:
    """Return the weekdays of 2025, except the national holidays of its first half."""
    holidays = {date(2025, 1, 1), date(2025, 1, 27), date(2025, 4, 18), date(2025, 4, 21), date(2025, 4, 25)}
    found: list[date] = []
    day = first
    while len(found) < count:
        if day.weekday() < 5 and day not in holidays | {date(2025, 6, 9)}:
            found.append(day)
        day += timedelta(days=1)
    return found


def remittances(first: date, count: int, amount: str, **fields: Any) -> list[Row]:
    return [repayment(day, amount, "cash_advance", **fields) for day in working_days(first, count)]


def other_row_on(day: date, **fields: Any) -> Row:
    """Return an unrelated row, which shows that the statements go on until this day."""
    return row(day, "-4.50", "meals", None, **fields)


def returned_payment(day: date, amount: str) -> Row:
    return row(day, amount, "returned_payment", None)


def summary(*rows: Row, as_of: date = LATER) -> list[dict[str, Any]]:
    """Return the summary of each facility."""
    return summarise_facilities(mark_facilities(held_rows(*rows)), as_of).to_dicts()


def summarise_only(*rows: Row, as_of: date = LATER) -> dict[str, Any]:
    (facility,) = summary(*rows, as_of=as_of)
    return facility


def members(*rows: Row) -> list[list[int]]:
    """Return the positions of each facility's rows."""
    found = mark_facilities(held_rows(*rows)).filter(pl.col("facility_id").is_not_null())
    return sorted(found.group_by("facility_id").agg(pl.col("position").sort())["position"].to_list())


# -- examples


def test_term_loan_that_is_being_repaid() -> None:
    loan = summarise_only(drawdown(MONDAY, "40000"), *weekly(MONDAY + timedelta(days=7), 20, "-900"))
    assert loan["lender_name"] == "Lumi"
    assert loan["lender_id"] == "lumi"
    assert loan["product"] == "term_loan"
    assert (loan["funding_date"], loan["funding_amount"]) == (MONDAY, Decimal(40_000))
    assert (loan["frequency"], loan["repayment_count"]) == ("weekly", 20)
    assert (loan["repayment_mean"], loan["repayment_spread"]) == (Decimal(900), 0.0)
    assert loan["repaid_total"] == Decimal(18_000)
    assert loan["status"] == "active"
    assert loan["missed_dates"] == []
    assert loan["next_expected"] == MONDAY + timedelta(weeks=21)
    assert loan["account_ids"] == [ACCOUNT]


def test_the_rate_of_a_loan_follows_from_its_level_repayments() -> None:
    """52 weekly payments of 900 for 40,000 cost 0.61 % a week. After 20 of them, the other 32 are worth 26,103."""
    loan = summarise_only(drawdown(MONDAY, "40000"), *weekly(MONDAY + timedelta(days=7), 20, "-900"))
    i = 0.006100267
    balance = 900 * (1 - (1 + i) ** -32) / i
    assert loan["remaining_method"] == "amortised"
    assert float(loan["estimated_remaining"]) == pytest.approx(balance, rel=0.001)
    assert loan["remaining_confidence"] == 0.6


def test_rate_is_assumed_with_less_confidence_if_no_term_fits() -> None:
    payments = [repayment(MONDAY + timedelta(days=days), amount) for days, amount in ((30, "-500"), (95, "-2100"))]
    loan = summarise_only(drawdown(MONDAY, "10000"), *payments)
    assert loan["remaining_method"] == "amortised"
    assert loan["remaining_confidence"] == pytest.approx(0.36)


def test_a_loan_whose_repayments_end_after_enough_is_likely_repaid() -> None:
    loan = summarise_only(
        drawdown(MONDAY, "5000"), *weekly(MONDAY + timedelta(days=7), 26, "-220"), other_row_on(date(2025, 12, 1))
    )
    assert loan["repaid_total"] == Decimal(5_720)
    assert loan["status"] == "likely_repaid"
    assert loan["estimated_remaining"] == 0
    assert loan["next_expected"] is None
    assert loan["missed_payments"] == 0


def test_a_loan_whose_repayments_end_too_early_is_in_arrears() -> None:
    loan = summarise_only(
        drawdown(MONDAY, "5000"), *weekly(MONDAY + timedelta(days=7), 10, "-220"), other_row_on(date(2025, 4, 20))
    )
    assert loan["status"] == "in_arrears"
    assert loan["missed_dates"] == [date(2025, 3, 24), date(2025, 3, 31), date(2025, 4, 7), date(2025, 4, 14)]


def test_loan_is_not_in_arrears_when_statements_of_its_account_end() -> None:
    shown = [drawdown(MONDAY, "5000"), *weekly(MONDAY + timedelta(days=7), 10, "-220")]
    assert summarise_only(*shown, other_row_on(date(2025, 4, 20), account_id=OTHER_ACCOUNT))["status"] == "active"


def test_a_loan_drawn_before_the_statements_has_no_funding_and_no_estimate() -> None:
    loan = summarise_only(*monthly(6, "-1200", product="mortgage"))
    assert loan["funding_date"] is None
    assert loan["funding_amount"] is None
    assert loan["frequency"] == "monthly"
    assert (loan["estimated_remaining"], loan["remaining_confidence"]) == (None, 0.0)
    assert loan["remaining_method"] == "unknown"


def test_a_cash_advance_remits_every_business_day() -> None:
    advance = summarise_only(drawdown(MONDAY, "10000", "cash_advance"), *remittances(date(2025, 1, 7), 60, "-120"))
    assert advance["frequency"] == "business_daily"
    assert advance["missed_payments"] == 0
    assert advance["repaid_total"] == Decimal(7_200)
    assert advance["estimated_remaining"] == Decimal(13_000) - Decimal(7_200)
    assert advance["remaining_method"] == "assumed_factor"
    assert advance["remaining_confidence"] == 0.4
    assert not advance["inferred"]


def test_split_settlement_shows_in_the_ratio_of_card_payouts_to_other_takings() -> None:
    funding = date(2025, 4, 7)
    rows = [drawdown(funding, "20000", "cash_advance", lender="Tyro"), *takings(funding, withheld=Decimal("0.2"))]
    advance = summarise_only(*rows)
    assert advance["inferred"]
    assert advance["repaid_total"] == 0
    assert advance["withheld_share"] == pytest.approx(0.2, abs=0.03)
    passed_on = sum(r["amount"] for r in rows if r["category"] == "card_settlement" and r["date"] >= funding)
    assert float(advance["withheld_estimate"]) == pytest.approx(float(passed_on) / 4, rel=0.2)
    assert advance["estimated_remaining"] == Decimal(26_000) - advance["withheld_estimate"]
    assert 0.2 <= advance["inferred_confidence"] <= 0.7
    assert advance["remaining_confidence"] < 0.4


def test_steady_card_payouts_give_no_withheld_share() -> None:
    funding = date(2025, 4, 7)
    advance = summarise_only(drawdown(funding, "20000", "cash_advance"), *takings(funding, withheld=Decimal(0)))
    assert not advance["inferred"]
    assert advance["withheld_estimate"] is None


def test_nothing_is_inferred_from_card_takings_alone() -> None:
    funding = date(2025, 4, 7)
    card = [r for r in takings(funding, withheld=Decimal("0.2")) if r["category"] == "card_settlement"]
    assert not summarise_only(drawdown(funding, "20000", "cash_advance"), *card)["inferred"]


def takings(funding: date, withheld: Decimal) -> Iterator[Row]:
    """Return card payouts, and transfers of about half as much, in the eight weeks before a funding and after it."""
    random = Random(4)
    for day in range(-56, 56):
        date_ = funding + timedelta(days=day)
        passed_on = 1 - withheld if day >= 0 else 1
        card, other = Decimal(random.randrange(900, 1100)), Decimal(random.randrange(400, 600))
        yield row(date_, str((card * passed_on).quantize(Decimal("0.01"))), "card_settlement", None)
        yield row(date_, str(other), "customer_transfer", None)


def test_a_new_funding_while_the_old_one_is_repaid_renews_it() -> None:
    again = date(2025, 3, 3)
    old, new = summary(
        drawdown(MONDAY, "10000", "cash_advance"),
        *remittances(date(2025, 1, 7), 38, "-120"),
        drawdown(again, "15000", "cash_advance"),
        *remittances(date(2025, 3, 4), 30, "-180"),
    )
    assert old["status"] == "renewed"
    assert old["renewed_by"] == new["facility_id"]
    assert (old["estimated_remaining"], old["remaining_method"]) == (Decimal(0), "rolled_over")
    assert (new["status"], new["funding_date"], new["repaid_total"]) == ("active", again, Decimal(5_400))
    assert (old["stacked_with"], new["stacked_with"]) == (0, 0)


def test_top_up_with_the_same_repayment_is_a_renewal() -> None:
    payments = weekly(MONDAY + timedelta(days=7), 30, "-220")
    old, new = summary(drawdown(MONDAY, "10000"), *payments, drawdown(date(2025, 5, 1), "6000"))
    assert (old["status"], old["repayment_count"]) == ("renewed", 16)
    assert (new["status"], new["repayment_count"]) == ("active", 14)


def test_two_streams_of_one_lender_are_two_facilities() -> None:
    first, second = MONDAY, date(2025, 2, 5)
    old, new = summary(
        drawdown(first, "10000"),
        *weekly(first + timedelta(days=7), 20, "-250"),
        drawdown(second, "5000"),
        *weekly(second + timedelta(days=7), 16, "-130"),
    )
    assert (old["repaid_total"], new["repaid_total"]) == (Decimal(5_000), Decimal(2_080))
    assert (old["funding_amount"], new["funding_amount"]) == (Decimal(10_000), Decimal(5_000))
    assert (old["status"], new["status"]) == ("active", "active")
    assert (old["stacked_with"], new["stacked_with"]) == (1, 1)


def test_repriced_loan_stays_one_facility_next_to_another_of_the_same_lender() -> None:
    mortgage: Row = {"product": "mortgage", "lender": "ANZ"}
    before, after = monthly(6, "-2500", **mortgage), monthly(12, "-2620", **mortgage)[6:]
    other = monthly(12, "-1200", day=20, **mortgage)
    assert sorted(len(rows) for rows in members(*before, *after, *other)) == [12, 12]


def test_one_facility_may_be_repaid_from_two_accounts() -> None:
    payments = weekly(MONDAY + timedelta(days=7), 10, "-220")
    moved = [{**payment, "account_id": OTHER_ACCOUNT} for payment in payments[5:]]
    loan = summarise_only(drawdown(MONDAY, "10000"), *payments[:5], *moved)
    assert loan["account_ids"] == [ACCOUNT, OTHER_ACCOUNT]
    assert loan["repayment_count"] == 10


def test_facilities_that_run_at_the_same_time_are_stacked() -> None:
    one = [drawdown(MONDAY, "10000"), *weekly(MONDAY + timedelta(days=7), 20, "-250")]
    other = [
        drawdown(date(2025, 3, 3), "8000", "cash_advance", lender="Bizcap"),
        *remittances(date(2025, 3, 4), 40, "-100", lender="Bizcap"),
    ]
    lease = monthly(6, "-900", product="asset_finance", lender="Toyota")
    stacked = {facility["lender_name"]: facility["stacked_with"] for facility in summary(*one, *other, *lease)}
    assert stacked == {"Lumi": 1, "Bizcap": 1, "Toyota": 0}


def test_a_returned_repayment_is_missed_and_not_paid() -> None:
    payments = weekly(MONDAY, 12, "-220")
    loan = summarise_only(*payments, returned_payment(payments[11]["date"] + timedelta(days=2), "220"))
    assert loan["repayment_count"] == 11
    assert loan["repaid_total"] == Decimal(2_420)
    assert loan["missed_dates"] == [payments[11]["date"]]
    assert loan["status"] == "in_arrears"


def test_successful_second_try_makes_up_for_the_first() -> None:
    payments = weekly(MONDAY, 12, "-220")
    day = payments[9]["date"]
    again = repayment(day + timedelta(days=3), "-220")
    loan = summarise_only(*payments, returned_payment(day + timedelta(days=1), "220"), again)
    assert loan["missed_dates"] == [day]
    assert (loan["repayment_count"], loan["repaid_total"]) == (12, Decimal(2_640))
    assert loan["status"] == "active"
    assert loan["frequency"] == "weekly"


def test_rows_of_a_facility_sum_to_funded_less_repaid() -> None:
    payments = weekly(MONDAY + timedelta(days=7), 8, "-220")
    back = returned_payment(payments[3]["date"] + timedelta(days=1), "220")
    (rows,) = members(drawdown(MONDAY, "5000"), *payments, back)
    assert rows == list(range(10))


def test_a_payment_plan_with_the_tax_office_misses_an_instalment() -> None:
    instalments = monthly(8, "-1500", product="tax_payment_plan", lender=None, counterparty_name="ATO")
    plan = summarise_only(*instalments[:6], instalments[7])
    assert plan["product"] == "tax_payment_plan"
    assert plan["frequency"] == "monthly"
    assert plan["missed_dates"] == [date(2025, 7, 15)]
    assert plan["status"] == "in_arrears"


def test_a_payment_plan_that_stops_is_broken() -> None:
    instalments = monthly(6, "-1500", product="tax_payment_plan", lender=None)
    assert summarise_only(*instalments, other_row_on(date(2025, 9, 30)))["status"] == "in_arrears"


def test_loan_by_an_owner_is_a_separate_facility() -> None:
    owner = {"lender": None, "related_party": "Jane Owner"}
    loan = summarise_only(
        drawdown(MONDAY, "20000", "director_loan", **owner),
        repayment(date(2025, 3, 1), "-5000", "director_loan", **owner),
        drawdown(date(2025, 4, 1), "4000", "director_loan", **owner),
    )
    assert (loan["product"], loan["funding_amount"]) == ("director_loan", Decimal(24_000))
    assert (loan["estimated_remaining"], loan["remaining_method"]) == (Decimal(19_000), "drawn_less_repaid")
    assert loan["status"] == "active"


def test_a_line_that_was_repaid_before_it_was_drawn_has_an_unknown_balance() -> None:
    line = summarise_only(
        repayment(MONDAY, "-500", "line_of_credit"),
        drawdown(date(2025, 2, 1), "2000", "line_of_credit"),
    )
    assert (line["estimated_remaining"], line["remaining_method"]) == (None, "unknown")


def test_long_silence_begins_another_facility() -> None:
    later = weekly(date(2025, 10, 6), 5, "-220")
    assert len(members(*weekly(MONDAY, 5, "-220"), *later)) == 2


def test_a_drawdown_paid_out_in_parts_is_one() -> None:
    loan = summarise_only(
        drawdown(MONDAY, "6000"), drawdown(MONDAY + timedelta(days=1), "4000"), *weekly(date(2025, 1, 14), 9, "-220")
    )
    assert (loan["funding_date"], loan["funding_amount"]) == (MONDAY, Decimal(10_000))


@pytest.mark.parametrize(
    ("days", "frequency"),
    [
        ([0, 7, 14, 21, 28], "weekly"),
        ([0, 14, 28, 42, 57], "fortnightly"),
        ([0, 28, 56, 84, 112], "four_weekly"),
        ([0, 14, 31, 45, 59, 73, 90], "twice_monthly"),  # the 1st and the 15th
        ([0, 31, 59, 90, 120], "monthly"),
        ([0, 91, 181, 273], "quarterly"),
        ([0, 365, 730], "yearly"),
        ([0, 3, 40, 45], None),
        ([0, 30], None),
    ],
)
def test_frequency_follows_from_the_median_gap(days: list[int], frequency: str | None) -> None:
    start = date(2025, 1, 1)
    loans = summary(*(repayment(start + timedelta(days=day), "-100") for day in days), as_of=date(2030, 1, 1))
    assert loans[0]["frequency"] == frequency


def test_payment_delayed_by_easter_is_not_missed() -> None:
    fridays = [date(2025, 3, 28), date(2025, 4, 4), date(2025, 4, 11)]
    loan = summarise_only(
        *(repayment(day, "-100") for day in [*fridays, date(2025, 4, 22), date(2025, 4, 28), date(2025, 5, 2)])
    )
    assert loan["missed_dates"] == []


@pytest.mark.parametrize(
    "other",
    [
        {"status": "pending"},
        {"superseded_seq": 9},
        {"is_transfer": True},
        {"category": "suppliers"},
        {"category": "interest_charged"},
        {"amount": Decimal(0)},
    ],
)
def test_rows_that_are_not_repayments_are_ignored(other: Row) -> None:
    assert members({**repayment(MONDAY, "-100"), **other}) == []


def test_rows_after_the_requested_day_are_ignored() -> None:
    payments = weekly(MONDAY, 10, "-220")
    assert summarise_only(*payments, as_of=payments[4]["date"])["repayment_count"] == 5


def test_no_rows_give_no_facilities() -> None:
    assert_frame_equal(summarise_facilities(mark_facilities(held_rows()), LATER), FACILITIES.to_frame())
    assert summary(other_row_on(MONDAY)) == []


# -- in general

lines = st.tuples(
    st.integers(0, 300),
    st.sampled_from(["12000", "5000", "-100", "-250.10", "-250.10", "-7.77", "100"]),
    st.sampled_from(["term_loan", "cash_advance", "line_of_credit", "back"]),
    st.sampled_from(["Lumi", "Moula", None]),
    st.booleans(),
)
Line = tuple[int, str, str, str | None, bool]


def make_rows(some: Sequence[Line]) -> list[Row]:
    rows = []
    for position, (day, amount, product, lender, other) in enumerate(some):
        side = "fundings" if Decimal(amount) > 0 else "repayments"
        category = "returned_payment" if product == "back" else getattr(PRODUCTS[product], side)[0]
        place = {"position": position, "transaction_id": position.to_bytes(16)}
        account = OTHER_ACCOUNT if other else ACCOUNT
        rows.append(row(MONDAY + timedelta(days=day), amount, category, lender, **place, account_id=account))
    return rows


@examples(4)
@given(st.lists(lines, max_size=16), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(some: list[Line], random: Random) -> None:
    rows = make_rows(some)
    straight = mark_facilities(held_rows(*rows))
    mixed = mark_facilities(held_rows(*random.sample(rows, len(rows))))
    assert_frame_equal(mixed.sort("position"), straight)
    assert_frame_equal(summarise_facilities(mixed, LATER), summarise_facilities(straight, LATER))


@examples(4)
@given(st.lists(lines, max_size=16))
def test_amounts_agree_with_plain_python(some: list[Line]) -> None:
    """Amounts are summed by hand over each facility's rows, in Decimal. Returning credits show what bounced."""
    rows = mark_facilities(held_rows(*make_rows(some)))
    by_id = {facility["facility_id"]: facility for facility in summarise_facilities(rows, LATER).to_dicts()}
    held = rows.filter(pl.col("facility_id").is_not_null())
    assert set(held["facility_id"]) == set(by_id)
    for (facility_id,), own in held.group_by("facility_id"):
        facility = by_id[facility_id]
        amounts = own.select("category", "amount").rows()
        start = Decimal(0)
        lent = sum((amount for category, amount in amounts if amount > 0 and category != "returned_payment"), start)
        back = sum((amount for category, amount in amounts if category == "returned_payment"), start)
        gone = -sum((amount for _, amount in amounts if amount < 0), start)
        assert (facility["funding_amount"] or 0) == lent
        assert facility["repaid_total"] == gone - back
        assert facility["estimated_remaining"] == remaining_by_hand(facility, lent, gone - back)


def remaining_by_hand(facility: dict[str, Any], lent: Decimal, repaid_: Decimal) -> Decimal | None:
    """Compute the remaining amount by the stated method. For loans with interest, only check that it is ≥ 0."""
    match facility["remaining_method"]:
        case "assumed_factor":
            total = lent * Decimal(ASSUMED[facility["product"]].factor or 0)
            return max(Decimal(0), total.quantize(Decimal("0.01"), ROUND_HALF_EVEN) - repaid_)
        case "drawn_less_repaid":
            return max(Decimal(0), lent - repaid_)
        case "payments_ended" | "rolled_over":
            return Decimal(0)
        case "unknown":
            return None
        case _:
            assert facility["estimated_remaining"] >= 0
            return Decimal(facility["estimated_remaining"])


@examples(4)
@given(
    st.integers(1_000, 500_000),
    st.lists(st.tuples(st.integers(1, 900), st.integers(1, 4_000)), max_size=6, unique_by=lambda payment: payment[0]),
)
def test_balance_of_a_loan_agrees_with_a_ledger_in_plain_python(lent: int, payments: list[tuple[int, int]]) -> None:
    """Interest on the balance from one row to the next: the prospective ledger against the retrospective formula."""
    rows = [repayment(MONDAY + timedelta(days=day), str(-amount), "mortgage") for day, amount in sorted(payments)]
    joined = mark_facilities(held_rows(drawdown(MONDAY, str(lent), "mortgage"), *rows))
    found = summarise_facilities(joined.with_columns(facility_id=pl.lit(b"f" * 16)), date(2028, 1, 1)).to_dicts()[0]
    assume(found["remaining_method"] == "amortised" and found["remaining_confidence"] < 0.6)
    rate, balance, last = ASSUMED["mortgage"].yearly_rate or 0, float(lent), 0
    for day, amount in sorted(payments):
        balance = balance * (1 + rate) ** ((day - last) / 365) - amount
        last = day
    assert float(found["estimated_remaining"]) == pytest.approx(max(0, balance), rel=1e-4, abs=1)


@examples(3)
@given(st.integers(3, 20), st.integers(0, 10))
def test_ids_stay_when_later_rows_are_added(count: int, more: int) -> None:
    rows = [drawdown(MONDAY, "10000"), *weekly(MONDAY + timedelta(days=7), count + more, "-220")]
    first = mark_facilities(held_rows(*rows[: 1 + count]))
    later = mark_facilities(held_rows(*rows, drawdown(LATER, "5000", lender="Moula")))
    assert later["facility_id"].head(1 + count).to_list() == first["facility_id"].to_list()


def test_customers_are_separate() -> None:
    rows = weekly(MONDAY, 5, "-220")
    theirs = [{**each, "customer_number": 2, "account_id": b"z" * 16} for each in rows]
    assert [facility["customer_number"] for facility in summary(*rows, *theirs)] == [1, 2]


def test_amounts_at_both_ends_of_the_range_are_exact() -> None:
    largest = "9999999999999.99"
    rows = [drawdown(MONDAY, largest, "cash_advance")]
    rows += [repayment(MONDAY + timedelta(days=day), "-" + largest, "cash_advance") for day in range(1, 8)]
    rows += [repayment(MONDAY + timedelta(days=9), "-0.01", "cash_advance")]
    advance = summarise_only(*rows)
    assert advance["repaid_total"] == 7 * Decimal(largest) + Decimal("0.01")
    assert advance["estimated_remaining"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("category", ["term_loan_repayment", "term_loan_funding", "cash_advance_funding"])
def test_two_million_equal_rows_of_one_customer_are_handled(category: str) -> None:
    count = 2_000_000
    amount = "-100" if category.endswith("repayment") else "100"
    rows = held_rows(row(MONDAY, amount, category)).select(pl.all().repeat_by(count).explode())
    numbered = rows.with_columns(transaction_id=pl.int_range(pl.len()).cast(pl.String).cast(pl.Binary))
    found = summarise_facilities(mark_facilities(numbered), LATER)
    assert found.height == 1
    assert found.select(pl.coalesce("funding_amount", "repaid_total")).item() == 100 * count
