import re
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrich.categories import DIRECTORY, RULES, categorise
from pipelines.enrich.counterparties import CONFIDENCE
from pipelines.enrich.taxonomy import TAXONOMY
from tests.pipelines.enrich.examples import known


def category(description: str, amount: str) -> str:
    slug: str = categorise(known({"description": description, "amount": Decimal(amount)})).collect()["category"].item()
    return slug


@pytest.mark.parametrize(
    ("description", "amount", "expected"),
    [
        ("Direct Credit 141000 TYRO PAYMENTS", "812.40", "card_settlement"),
        ("TYRO PAYMENTS FEES", "-12.40", "merchant_fees"),
        ("ATO BAS 0012345", "-4100", "bas"),
        ("ATO 0012345 REFUND", "410", "tax_refund"),
        ("Osko Payment J Smith Inv 12", "330", "customer_transfer"),
        ("something else altogether", "-1", "unknown_debit"),
        ("something else altogether", "1", "unknown_credit"),
        ("eftpos bunnings warehouse", "-50", "materials"),
        ("PROSPA LOAN 88120034", "20000", "term_loan_funding"),
        ("PROSPA LOAN 88120034", "-412.50", "term_loan_repayment"),
        ("SQUARE LOANS", "-80", "cash_advance_repayment"),
        ("Dishonoured TELSTRA 12345", "80", "returned_payment"),
        ("Dishonoured cheque J Smith", "-80", "dishonoured_receipt"),
        ("UBER EATS PAYOUT", "80", "platform_payout"),
        ("UBER *EATS SYDNEY", "-23", "meals"),
        ("UBER *TRIP SYDNEY", "-23", "travel"),
        ("Interest", "2.10", "interest_received"),
        ("Interest charged on purchases", "-2.10", "interest_charged"),
        ("PINTEREST ADS DUBLIN", "-2.10", "advertising"),
    ],
)
def test_common_narratives(description: str, amount: str, expected: str) -> None:
    assert category(description, amount) == expected


def test_a_fallback_says_that_nothing_is_known() -> None:
    row = categorise(known({"description": "zzz"})).collect().to_dicts()[0]
    assert (row["category_source"], row["confidence"], row["category_group"]) == ("fallback", 0.0, "unknown")


def test_a_named_counterparty_decides_and_is_shown() -> None:
    row = categorise(known({"description": "Direct Debit Prospa Advance PRO42193683"})).collect().to_dicts()[0]
    assert (row["category_source"], row["confidence"]) == ("counterparty", 0.95)
    assert (row["counterparty_name"], row["counterparty_kind"]) == ("Prospa", "lender")
    assert row["counterparty_lender_id"] == "prospa"


def test_words_alone_decide_without_naming_anyone() -> None:
    row = categorise(known({"description": "Osko to J Smith drawings"})).collect().to_dicts()[0]
    assert (row["category_source"], row["counterparty_name"]) == ("pattern", None)


words = st.sampled_from(["ATO", "TYRO", "FEE", "PROSPA", "RENT", "Uber", "interest", "12345678", "J SMITH", "refund"])


@given(st.lists(st.tuples(st.lists(words, min_size=1, max_size=4), st.sampled_from([1, -1])), min_size=1, max_size=6))
def test_the_first_rule_of_the_side_that_holds_decides(lines: list[tuple[list[str], int]]) -> None:
    """The rule in plain Python; its regular expressions agree with Rust's on these words."""
    rows = known(*({"description": " ".join(text), "amount": Decimal(sign)} for text, sign in lines))
    found = categorise(rows).sort("position").collect()["category"].to_list()
    assert found == [by_hand(" ".join(text), sign) for text, sign in lines]


def by_hand(description: str, sign: int) -> str:
    text = re.sub(r"\d{4,}", "0000", description.upper())
    side = "credit" if sign > 0 else "debit"
    rule = next((each for each in RULES if each.sign in (side, "either") and re.search(each.pattern, text)), None)
    if rule is not None and rule.confidence >= CONFIDENCE:
        return rule.category.slug
    named = DIRECTORY.look_up(pl.Series([text]))[side].drop_nulls()
    unknown = f"unknown_{side}" if rule is None else rule.category.slug
    return named.item() if len(named) else unknown


@pytest.mark.parametrize(
    ("description", "amount", "expected"),
    [
        ("Direct Credit 355418 QBE INSURANCE AU CLM 771092188", "900", "insurance_payout"),  # not just any transfer
        ("PAYMENT TO MIDDYS ELECTRICAL INV 4471", "-90", "materials"),  # nor just any invoice
        ("PAYMENT TO MIDDLETON INV 4471", "-90", "suppliers"),
        ("TELSTRA DISHONOUR FEE", "-9", "dishonour_fee"),  # what the bank says is surer than a name
    ],
)
def test_a_name_says_more_than_the_way_of_payment(description: str, amount: str, expected: str) -> None:
    assert category(description, amount) == expected


def test_a_named_counterparty_stays_named_where_its_category_is_not_told() -> None:
    rows = known({"description": "V3317 04/04 PAYPAL 4029357733", "amount": Decimal(-9)})
    row = categorise(rows).collect().to_dicts()[0]
    assert (row["category"], row["counterparty_name"]) == ("unknown_debit", "PayPal")


def test_every_row_keeps_its_place() -> None:
    rows = known(*({"description": text} for text in ("RENT", "zzz", "RENT", "ATO BAS")))
    assert categorise(rows).collect()["description"].to_list() == ["RENT", "zzz", "RENT", "ATO BAS"]


def test_every_category_but_the_paired_and_the_unknown_has_a_rule() -> None:
    named = {rule.category.slug for rule in RULES}
    assert set(TAXONOMY.categories) - named == {"unknown_credit", "unknown_debit"}
