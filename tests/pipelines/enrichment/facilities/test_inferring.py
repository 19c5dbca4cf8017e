"""Facilities are inferred from what payments do; rent, leases, wages, premiums, bonds and tax are not mistaken."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipelines.enrichment.facilities import add_inferred, mark_facilities, summarise_facilities
from tests.conftest import examples
from tests.pipelines.enrichment.examples import held_rows
from tests.pipelines.enrichment.facilities.test_facilities import other_row_on, returned_payment, working_days
from tests.pipelines.enrichment.facilities.test_facilities import row as named

MONDAY = date(2025, 1, 6)
LATER = date(2026, 6, 30)
Row = dict[str, Any]


def row(day: date, amount: str, text: str = "DIRECT DEBIT QX2080666", party: str | None = None, **fields: Any) -> Row:
    """Return a row that no list and no words recognise."""
    side = "credit" if Decimal(amount) > 0 else "debit"
    unknown = {"category": f"unknown_{side}", "category_group": "unknown", "category_source": "fallback"}
    of_party = {"counterparty_group": party, "counterparty_name": party}
    return {"date": day, "amount": Decimal(amount), "description": text, **unknown, **of_party, **fields}


def every(days: int, count: int, amount: str, first: date = MONDAY, **fields: Any) -> list[Row]:
    return [row(first + timedelta(days=days * nth), amount, **fields) for nth in range(1, count + 1)]


def weekly(count: int, amount: str, **fields: Any) -> list[Row]:
    return every(7, count, amount, **fields)


def monthly(count: int, amount: str, **fields: Any) -> list[Row]:
    return [row(date(2025 + n // 12, n % 12 + 1, 15), amount, **fields) for n in range(1, count + 1)]


def summary(*rows: Row) -> list[dict[str, Any]]:
    return summarise_facilities(mark_facilities(held_rows(*rows)), LATER).to_dicts()


def summarise_only(*rows: Row) -> dict[str, Any]:
    (facility,) = summary(*rows)
    return facility


# -- examples


def test_a_loan_without_any_name_is_inferred_from_its_number() -> None:
    loan = summarise_only(row(MONDAY, "40000"), *weekly(20, "-900"))
    assert (loan["inferred"], loan["product"], loan["lender_name"]) == (True, "term_loan", None)
    assert (loan["funding_date"], loan["funding_amount"]) == (MONDAY, Decimal(40_000))
    assert (loan["repaid_total"], loan["frequency"]) == (Decimal(18_000), "weekly")
    assert loan["next_expected"] == MONDAY + timedelta(weeks=21)
    assert (loan["status"], loan["missed_dates"]) == ("active", [])


def test_a_loan_is_inferred_from_an_unknown_party() -> None:
    loan = summarise_only(
        row(MONDAY, "40000", "CREDIT KESTREL", "kestrel"), *weekly(20, "-900", text="DEBIT KESTREL", party="kestrel")
    )
    assert (loan["inferred"], loan["lender_name"]) == (True, "kestrel")


def test_what_remains_is_between_the_balance_and_all_instalments_left() -> None:
    """52 weekly payments of 900 for 40,000: after 20 of them, 28,800 are left to pay, worth 26,103 today."""
    loan = summarise_only(row(MONDAY, "40000"), *weekly(20, "-900"))
    assert loan["remaining_high"] == Decimal(32 * 900)
    assert float(loan["remaining_low"]) == pytest.approx(26_103, rel=0.001)
    assert loan["remaining_low"] <= loan["estimated_remaining"] <= loan["remaining_high"]


def test_a_returned_repayment_is_missed() -> None:
    payments = weekly(20, "-900")
    loan = summarise_only(
        row(MONDAY, "40000"), *payments, returned_payment(payments[11]["date"] + timedelta(days=2), "900")
    )
    assert loan["missed_dates"] == [payments[11]["date"]]
    assert loan["repaid_total"] == Decimal(19 * 900)


def test_a_return_that_only_the_model_recognised_is_no_funding() -> None:
    payments = weekly(20, "-900")
    back = {**returned_payment(payments[11]["date"] + timedelta(days=2), "900"), "category_source": "learned"}
    loan = summarise_only(row(MONDAY, "40000"), *payments, {**back, "description": payments[0]["description"]})
    assert (loan["funding_amount"], loan["repaid_total"]) == (Decimal(40_000), Decimal(19 * 900))


@pytest.mark.parametrize(
    ("funding", "repayments", "product"),
    [
        ("10000", [row(day, "-120") for day in working_days(MONDAY + timedelta(days=1), 60)], "cash_advance"),
        ("10000", weekly(20, "-430"), "cash_advance"),
        ("40000", every(14, 10, "-1800"), "term_loan"),
        ("40000", monthly(10, "-1000"), "term_loan"),
        ("40000", monthly(10, "-800"), "asset_finance"),
        ("400000", monthly(10, "-2500"), "mortgage"),
        ("6000", every(14, 6, "-1060"), "trade_credit"),
        ("1500", every(14, 6, "-325"), "payday_credit"),
    ],
)
def test_the_kind_follows_from_rhythm_and_price(funding: str, repayments: list[Row], product: str) -> None:
    assert summarise_only(row(MONDAY, funding), *repayments)["product"] == product


def test_draws_that_are_repaid_by_one_amount_are_a_line_of_credit() -> None:
    draws = [row(MONDAY + timedelta(days=70 * nth), "5000") for nth in range(3)]
    line = summarise_only(*draws, *weekly(28, "-400"))
    assert (line["product"], line["funding_amount"]) == ("line_of_credit", Decimal(15_000))


def advances(count: int, factor: str = "1.03", texts: Sequence[str] = ()) -> list[Row]:
    rows = []
    for nth in range(count):
        day, size = MONDAY + timedelta(days=30 * nth), Decimal(5000 + 700 * nth)
        number = texts[nth] if texts else f"ADV {6628 + nth}"
        rows += [row(day, str(size), number)]
        rows += [row(day + timedelta(days=35), str(-(size * Decimal(factor)).quantize(Decimal("0.01"))), number)]
    return rows


def test_advances_that_are_repaid_one_by_one_at_one_price_are_invoice_finance() -> None:
    finance = summarise_only(*advances(6))
    assert (finance["product"], finance["repayment_count"], finance["inferred"]) == ("invoice_finance", 6, True)


def test_an_advance_that_is_not_repaid_yet_counts_as_funding() -> None:
    *earlier, _ = advances(6)
    finance = summarise_only(*earlier)
    assert (finance["repayment_count"], finance["funding_amount"]) == (5, Decimal(6 * 5000 + 15 * 700))


def takings(days: Sequence[date]) -> dict[date, Decimal]:
    """Return takings of each day that seem random: from AUD 500 to 2,500."""
    return {day: Decimal(500 + 797 * nth % 2_001) for nth, day in enumerate(days)}


def settlement_rows(taken: Mapping[date, Decimal]) -> list[Row]:
    settlement = columns_of_category("card_settlement", "revenue")
    return [row(day, str(amount), "SETTLEMENT", "acquirer", **settlement) for day, amount in taken.items()]


def share(taken: Mapping[date, Decimal], percent: int, **fields: Any) -> list[Row]:
    """Return a debit for each day after the first: the share of what was taken on the day with takings before."""
    sizes = [(amount * percent / 100).quantize(Decimal("0.01")) for amount in taken.values()]
    return [row(day, str(-size), **fields) for day, size in zip([*taken][1:], sizes, strict=False)]


def test_debits_that_are_a_share_of_the_takings_repay_an_advance() -> None:
    taken = takings(working_days(MONDAY, 40))
    debits = share(taken, 12)
    advance = summarise_only(row(MONDAY, "9000"), *settlement_rows(taken), *debits)
    assert (advance["product"], advance["inferred"], advance["funding_amount"]) == ("cash_advance", True, Decimal(9000))
    assert (advance["repayment_count"], advance["repaid_total"]) == (39, -sum(each["amount"] for each in debits))


def test_a_weekly_share_of_the_takings_repays_an_advance() -> None:
    taken = takings(working_days(MONDAY, 60))
    weeks = [MONDAY + timedelta(days=7 * nth) for nth in range(1, 12)]
    collected = {
        day: sum((amount for at, amount in taken.items() if day - timedelta(days=7) <= at < day), Decimal(0))
        for day in weeks
    }
    debits = [row(day, str((-amount / 10).quantize(Decimal("0.01")))) for day, amount in collected.items()]
    advance = summarise_only(row(MONDAY, "9000"), *settlement_rows(taken), *debits)
    assert (advance["product"], advance["repayment_count"]) == ("cash_advance", 11)


def test_equal_monthly_payments_to_a_tax_office_are_a_payment_plan() -> None:
    office = {"category": "bas", "category_group": "tax", "category_source": "counterparty", "confidence": 0.9}
    plan = summarise_only(*monthly(8, "-1500", text="TAX OFFICE", party="tax-office", **office))
    assert (plan["product"], plan["inferred"], plan["repayment_count"]) == ("tax_payment_plan", True, 8)
    assert plan["funding_date"] is None


def test_a_plan_with_a_missed_instalment_is_still_one_plan() -> None:
    office = {"category": "bas", "category_group": "tax", "category_source": "counterparty", "confidence": 0.9}
    instalments = monthly(8, "-1500", text="TAX OFFICE", party="tax-office", **office)
    plan = summarise_only(*instalments[:4], *instalments[5:])
    assert (plan["repayment_count"], plan["missed_dates"]) == (7, [date(2025, 6, 16)])


def test_a_facility_that_a_list_names_is_completed_and_keeps_its_id() -> None:
    repayments = [
        {**each, "category": "term_loan_repayment", "category_source": "counterparty"} for each in weekly(20, "-900")
    ]
    rows = mark_facilities(held_rows(row(MONDAY, "40000"), *repayments))
    assert rows["facility_id"].null_count() == 1
    (loan,) = summarise_facilities(rows, LATER).to_dicts()
    assert (loan["inferred"], loan["funding_amount"]) == (False, Decimal(40_000))
    assert rows["facility_id"].drop_nulls().unique().to_list() == [loan["facility_id"]]


def test_inferred_facilities_are_only_possibly_stacked() -> None:
    inferred = [row(MONDAY, "40000"), *weekly(20, "-900")]
    lumi = [named(MONDAY, "20000", "term_loan_funding")]
    lumi += [named(MONDAY + timedelta(days=7 * n), "-450", "term_loan_repayment") for n in range(1, 21)]
    stacked = {
        each["inferred"]: (each["stacked_with"], each["possibly_stacked_with"]) for each in summary(*inferred, *lumi)
    }
    assert stacked == {False: (0, 1), True: (0, 1)}


# -- near misses


def columns_of_category(category: str, group: str) -> Row:
    return {"category": category, "category_group": group, "category_source": "pattern", "confidence": 0.95}


DAYS_TAKEN = takings(working_days(MONDAY, 40))
NEAR_MISSES = {
    "rent after a deposit of somebody else": [
        row(MONDAY, "20000", "DEPOSIT 9911", "acme"),
        *monthly(10, "-900", text="RENT", party="landlord"),
    ],
    "a landlord that returned the bond before a new lease": [
        row(MONDAY, "3600", "BOND", "landlord"),
        *monthly(10, "-900", text="RENT", party="landlord"),
    ],
    "a lease": monthly(12, "-650", text="LEASE 2080666", party="lessor"),
    "wages after a customer's payment": [row(MONDAY, "8000", "INV 4", "acme"), *weekly(30, "-900", party="worker")],
    "wages of a worker who paid something back": [
        row(MONDAY, "900", "REPAID", "worker"),
        *weekly(30, "-900", text="PAY", party="worker"),
    ],
    "premiums after a claim": [
        row(MONDAY, "1200", "CLAIM 2080666", "insurer"),
        *monthly(12, "-210", text="POLICY 2080666", party="insurer"),
    ],
    "a bond that is paid and comes back": [
        row(MONDAY, "-4000", "BOND 2080666", "board"),
        row(date(2026, 1, 5), "4000", "BOND 2080666", "board"),
    ],
    "rent that words name, after a credit of the landlord": [
        row(MONDAY, "9000", party="landlord"),
        *monthly(10, "-900", party="landlord", **columns_of_category("rent", "premises")),
    ],
    "three repayments": [row(MONDAY, "3000"), *monthly(3, "-1060")],
    "debits of different amounts": [
        row(MONDAY, "40000"),
        *(row(MONDAY + timedelta(days=7 * n), str(-800 - 31 * n)) for n in range(1, 20)),
    ],
    "debits without rhythm": [
        row(MONDAY, "40000"),
        *(row(MONDAY + timedelta(days=n * n), "-900") for n in range(1, 16)),
    ],
    "debits that never could repay the credit": [row(MONDAY, "400000"), *weekly(20, "-20")],
    "far more debits than credit": [row(MONDAY, "5000"), *weekly(40, "-900")],
    "a credit long before the debits": [row(MONDAY - timedelta(days=120), "40000"), *weekly(20, "-900")],
    "a credit after the debits": [*weekly(20, "-900"), row(MONDAY + timedelta(weeks=30), "40000")],
    "a number that many parties print": [
        row(MONDAY, "40000", "FROM A 2080666", "a"),
        row(MONDAY, "-10", "TO B 2080666", "b"),
        *weekly(20, "-900", text="TO C 2080666", party="c"),
    ],
    "transfers between own accounts": [
        row(MONDAY, "40000", is_transfer=True),
        *weekly(20, "-900", is_transfer=True),
    ],
    "quarterly instalments of income tax": [
        row(date(2025, month, 28), "-1500", party="tax-office", **columns_of_category("payg_instalment", "tax"))
        for month in (1, 4, 7, 10)
    ],
    "tax withheld from constant wages, with GST in every third month": [
        row(
            date(2025, month, 21),
            "-1500" if month % 3 else "-9000",
            party="tax-office",
            **columns_of_category("bas", "tax"),
        )
        for month in range(1, 12)
    ],
    "activity statements": [
        row(date(2025, month, 21), str(-1500 - 13 * month), party="tax-office", **columns_of_category("bas", "tax"))
        for month in range(1, 12)
    ],
    "advances that all print one number": advances(6, texts=["ADV 6628"] * 6),
    "a party that is paid many amounts, each regularly": [
        row(MONDAY, "30000", party="acme"),
        *(each for nth in range(51) for each in weekly(4, str(-100 - nth), party="acme")),
    ],
    "fees that are a share of the takings": [
        *settlement_rows(DAYS_TAKEN),
        *share(DAYS_TAKEN, 6, text="FEE", party="acquirer"),
    ],
    "royalties of a franchise that once paid for advertising": [
        *settlement_rows(DAYS_TAKEN),
        *share(DAYS_TAKEN, 6, party="franchisor"),
        row([*DAYS_TAKEN][20], "6000", party="franchisor"),
    ],
    "debits of different amounts beside takings": [
        row(MONDAY, "9000"),
        *settlement_rows(DAYS_TAKEN),
        *(row(day, str(-60 - 331 * nth % 200)) for nth, day in enumerate([*DAYS_TAKEN][1:])),
    ],
    "wages that vary as little as the takings beside them": [
        row(MONDAY, "9000", party="worker"),
        *settlement_rows({day: amount / 200 + 1_500 for day, amount in DAYS_TAKEN.items()}),
        *(row(day, str(-150 - Decimal(nth) / 100), party="worker") for nth, day in enumerate([*DAYS_TAKEN][1:])),
    ],
    "a share of the takings that is far more than the credit": [
        row(MONDAY, "1000"),
        *settlement_rows(DAYS_TAKEN),
        *share(DAYS_TAKEN, 12),
    ],
    "refunds of sales at a price of their own": [
        *advances(3),
        row(date(2025, 8, 1), "5000", "ORDER 7711"),
        row(date(2025, 9, 1), "-5000", "ORDER 7711"),
    ],
}


@pytest.mark.parametrize("rows", NEAR_MISSES.values(), ids=NEAR_MISSES.keys())
def test_near_misses_are_no_facility(rows: list[Row]) -> None:
    assert summary(*rows, other_row_on(date(2026, 3, 1))) == []


# -- in general

terms = st.tuples(
    st.integers(2_000, 90_000),  # AUD lent
    st.sampled_from([(7, 52), (14, 26), (30, 12)]),
    st.floats(1.03, 1.5),
    st.integers(4, 12),  # repayments seen
)


@given(terms)
@examples(15)
def test_any_level_loan_is_inferred_with_what_was_funded_and_paid(
    drawn: tuple[int, tuple[int, int], float, int],
) -> None:
    lent, (days, payments), factor, seen = drawn
    instalment = Decimal(round(lent * factor / payments))
    loan = summarise_only(row(MONDAY, str(lent)), *every(days, seen, str(-instalment)))
    assert (loan["funding_amount"], loan["repaid_total"]) == (Decimal(lent), instalment * seen)
    assert loan["inferred"]


@given(terms, st.randoms(use_true_random=False))
@examples(7)
def test_the_order_of_rows_and_other_customers_change_nothing(drawn: Any, random: Any) -> None:
    lent, (days, payments), factor, seen = drawn
    one = [row(MONDAY, str(lent)), *every(days, seen, str(-round(lent * factor / payments)))]
    numbered: list[Row] = [{**each, "position": n, "transaction_id": n.to_bytes(16)} for n, each in enumerate(one)]
    other = [{**each, "customer_number": 2, "position": 99 + each["position"]} for each in numbered]
    mixed = [*numbered, *({**each, "transaction_id": (1000 + each["position"]).to_bytes(16)} for each in other)]
    random.shuffle(mixed)
    first = held_rows(*mixed).pipe(add_inferred).filter(pl.col("customer_number") == 1).sort("position")
    assert_frame_equal(first, held_rows(*numbered).pipe(add_inferred).sort("position"))


def test_no_column_of_the_rows_is_changed_but_the_facility() -> None:
    rows = mark_facilities(held_rows(row(MONDAY, "40000"), *weekly(20, "-900")))
    added = add_inferred(rows)
    assert_frame_equal(added.select(rows.columns).drop("facility_id"), rows.drop("facility_id"))
    assert rows["facility_id"].null_count() == rows.height
    assert added["facility_id"].n_unique() == 1


@pytest.mark.timeout(60)  # a regression: one pass for each number took minutes; now it takes seconds
def test_ten_thousand_credits_that_share_a_number_with_the_next_are_one_dealing() -> None:
    number, is_credit = 100_000 + pl.col("nth"), pl.col("amount") > 0
    text = pl.when(is_credit).then(pl.format("{} {}", number, number + 1)).otherwise(pl.format("{}", number))
    rows = (
        held_rows(row(MONDAY, "1000"), *weekly(4, "-100"))
        .join(pl.DataFrame({"nth": range(10_000)}), how="cross")
        .with_row_index("place")
        .with_columns(description=text, transaction_id=pl.col("place").cast(pl.String).cast(pl.Binary))
        .drop("nth", "place")
    )
    (facility,) = summarise_facilities(rows, LATER).to_dicts()
    assert facility["funding_amount"] == Decimal(10_000_000)
