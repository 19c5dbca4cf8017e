"""Money from a payer with the customer's own name is an own transfer, not revenue."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from pipelines.enrichment.enrichment import enrich
from pipelines.enrichment.knowledge import CUSTOMERS, Knowledge
from pipelines.vocabulary.schemas import TRANSACTIONS
from tests.pipelines.enrichment.examples import accepted_rows

NOTHING = pl.DataFrame(schema=TRANSACTIONS)
CUSTOMER = pl.DataFrame([(1, "Harbour Coffee Pty Ltd", "51824753556")], CUSTOMERS, orient="row")


def enrich_one(description: str, amount: str, customers: pl.DataFrame = CUSTOMER) -> dict[str, Any]:
    row = accepted_rows({"description": description, "amount": Decimal(amount)})
    return enrich(NOTHING, row, knowledge=Knowledge(customers=customers)).transactions.collect().to_dicts()[0]


def enrich_paid(payments: Sequence[tuple[str, str]], number: str | None = None) -> list[dict[str, Any]]:
    """Enrich a payment of 5000 from `text` to each of several customers of a `name`, which is faster at once."""
    customers = pl.DataFrame([(n, name, number) for n, (name, _) in enumerate(payments)], CUSTOMERS, orient="row")
    paid = [{"description": text, "amount": Decimal(5000)} for _, text in payments]
    return _enrich_alone(paid, Knowledge(customers=customers))


def _enrich_alone(rows: Sequence[dict[str, Any]], knowledge: Knowledge) -> list[dict[str, Any]]:
    """Enrich each row as the only one of a customer of its own."""
    alone = [{**row, "customer_number": n, "account_id": n.to_bytes(16)} for n, row in enumerate(rows)]
    enriched = enrich(NOTHING, accepted_rows(*alone), knowledge=knowledge).transactions.collect()
    assert enriched["customer_number"].sort().to_list() == list(range(len(rows)))
    return enriched.sort("customer_number").to_dicts()


def test_money_from_the_customer_itself_is_not_revenue(subtests: pytest.Subtests) -> None:
    texts = ("Transfer From HARBOUR COFFEE PTY LTD", "Osko Payment From Harbour Coffee P/L")
    rows = enrich_paid([("Harbour Coffee Pty Ltd", text) for text in texts], "51824753556")
    for text, row in zip(texts, rows, strict=True):
        with subtests.test(text):
            of_transfer = row["counterparty_kind"], row["category"], row["category_group"]
            assert of_transfer == ("own", "own_transfer", "transfer")
            assert row["category_basis"] == "the customer's own name"


def test_own_name_is_recognised_if_a_bank_cut_it() -> None:
    whole = pl.DataFrame([(1, "Sandstone Building Supplies", None)], CUSTOMERS, orient="row")
    assert enrich_one("DEPOSIT SANDSTONE BUILDI TRANSFER", "5000", whole)["category"] == "own_transfer"


def test_own_name_is_recognised_if_its_words_have_another_meaning(subtests: pytest.Subtests) -> None:
    payments = (
        ("Eastern Ice Creamery", "Deposit Eastern Ice Crea Transfer"),
        ("Wattle Kitchen", "Deposit Wattle Kitchen Transfer"),
        ("Bayside Auto Repairs", "Deposit Bayside Auto Rep Transfer"),
        ("Doyle Caravan Park", "Direct Credit 404446 Doyle Caravan Pa"),
        ("Parkview Early Learning", "Direct Credit from Parkview Early L Ref: Transfer"),
        ("Sandstone Online", "Transfer in · Sandstone Online"),
    )
    for (_, text), row in zip(payments, enrich_paid(payments), strict=True):
        with subtests.test(text):
            assert (row["counterparty_kind"], row["category"]) == ("own", "own_transfer")


def test_customers_name_after_a_payers_name_does_not_count() -> None:
    whole = pl.DataFrame([(1, "Martin Electrical", None)], CUSTOMERS, orient="row")
    row = enrich_one("DIRECT CREDIT PARKVIEW PROPERT MARTIN ELECTRICAL", "5000", whole)
    assert row["counterparty_kind"] != "own"
    assert row["category"] == "customer_transfer"


def test_other_names_are_not_changed() -> None:
    row = enrich_one("Transfer From HARBOUR PLUMBING PTY LTD", "5000")
    assert row["category"] == "customer_transfer"
    assert row["counterparty_kind"] != "own"


def test_sure_category_is_not_changed() -> None:
    assert enrich_one("HARBOUR COFFEE PTY LTD WAGES", "-900")["category"] == "wages"


def test_nothing_is_marked_without_the_customers_name() -> None:
    nameless = pl.DataFrame([(1, None, "51824753556")], CUSTOMERS, orient="row")
    assert enrich_one("Transfer From HARBOUR COFFEE PTY LTD", "5000", nameless)["category"] == "customer_transfer"


HELD_BY = "Marinos Day Spa Business Everyday Account"


def enrich_held(*payments: tuple[str, str] | tuple[str, str, str]) -> list[dict[str, Any]]:
    """Enrich payments (text, amount, and the account's name unless it is HELD_BY), each of a customer of its own."""
    names = ("description", "amount", "account_name")
    rows = [dict(zip(names, (*payment, HELD_BY), strict=False)) for payment in payments]
    return _enrich_alone([{**row, "amount": Decimal(row["amount"])} for row in rows], Knowledge())


def test_money_to_and_from_the_holder_of_an_account_is_the_customers_own() -> None:
    payments = (
        ("INTERNET EXTERNAL TRANSFER FROM MARINOS DAY SPA REF NO 53611339", "5000"),
        ("OSKO PAYMENT FROM MARINOS DAY SPA INVOICE 77", "5000"),
        ("OSKO PAYMENT FROM MARINOS DAY SPA ANZ", "5000"),
        ("OSKO PAYMENT FROM MARINOS DAY SPA COMMBANK", "5000"),
        ("Direct Credit 123 MARINOS DAY SPA", "5000"),
        ("INTERNET EXTERNAL TRANSFER TO MARINOS DAY SPA REF NO 53611339", "-5000"),
        ("PAY ANYONE 7784495969 MARINOS DAY SPA TRANSFER", "-5000"),
    )
    for (text, _), row in zip(payments, enrich_held(*payments), strict=True):
        assert (row["counterparty_kind"], row["category"]) == ("own", "own_transfer"), text


def test_a_payer_beside_the_holders_name_is_the_other_side() -> None:
    payers = {
        "OSKO PAYMENT 0131411424 MARINOS DAY SPA CHARLOTTE KAUR": "Charlotte Kaur",
        "Inter-Bank Credit marinos day spa Lachlan Ferrari": "Lachlan Ferrari",
        "MARINOS DAY SPA H & N BYRNE": "H & N Byrne",
        "ANA WILSON · MARINOS DAY SPA": "Ana Wilson",
        "Transfer in · C & N Nguyen · Marinos Day Spa": "C & N Nguyen",
        "From A & E De Luca - marinos day spa": "A & E De Luca",
        "N Nguyen - Marinos Day Spa": "Nguyen",
        "HARGREAVES LOGIST · MARINOS DAY SPA": "Hargreaves Logist",
        "marinos day spa Mitchell Rebecca": "Mitchell Rebecca",
    }
    for text, row in zip(payers, enrich_held(*((text, "304") for text in payers)), strict=True):
        assert (row["counterparty_name"], row["category"]) == (payers[text], "customer_transfer"), text


def test_the_rest_of_the_own_name_is_no_other_party() -> None:
    payments = (
        ("Jacaranda Lawn & Garden", "Internet Deposit 06Sep13:32 Transfer Jacaranda Lawn & Garden"),
        ("Jacaranda Lawn & Garden", "Internet Deposit 06Sep13:32 Transfer Jacaranda Lawn & Gar"),
        ("Southern Cross Caravan Park", "NPP CR SOUTHERN CROSS CARAVAN PARK TRANSFER LDBZ3H0S"),
        ("Coastal Building Supplies", "OSKO PAYMENT 0131411424 COASTAL BUILDING SUPPLIES TRANSFER"),
    )
    rows = enrich_held(*((text, "3000", f"{name} Business Account") for name, text in payments))
    for (_, text), row in zip(payments, rows, strict=True):
        assert (row["counterparty_kind"], row["category"]) == ("own", "own_transfer"), text


def test_words_of_the_own_name_explain_nothing() -> None:
    text = "Internet Transfer To Riverbend Caravan Park"
    row, other = enrich_held(
        (text, "-400", "Riverbend Caravan Park Business Account"), (text, "-400", "Hillside Motel")
    )
    assert (row["counterparty_kind"], row["category"]) == ("own", "own_transfer")
    assert (other["counterparty_kind"], other["category"]) == ("business", "travel")


def test_what_an_account_is_for_explains_payments_that_are_no_transfers() -> None:
    for name, text, category in (
        ("Loan Repayments", "DIRECT DEBIT LOAN REPAYMENTS", "term_loan_repayment"),
        ("Superannuation", "INTERNET TRANSFER SUPERANNUATION", "superannuation"),
    ):
        without, named = enrich_held((text, "-400", "Business Account"), (text, "-400", f"{name} Account"))
        assert named["category"] == without["category"] == category, text


def test_what_else_a_text_with_the_holders_name_says_counts() -> None:
    cases = (
        ("MARINOS DAY SPA WAGES", "-900", "wages"),
        ("Direct Debit MARINOS DAY SPA RENT", "-900", "rent"),
        ("EFTPOS SETTLEMENT MARINOS DAY SPA", "900", "card_settlement"),
    )
    for (text, _, category), row in zip(cases, enrich_held(*(case[:2] for case in cases)), strict=True):
        assert row["category"] == category, text


def test_an_account_called_after_a_bank_or_by_its_purpose_has_no_holder() -> None:
    row, stripe = enrich_held(
        ("Transfer From HARBOUR PLUMBING PTY LTD", "5000", "Business Everyday Account"),
        ("STRIPE PAYOUT 9X2", "900", "Stripe Business Account"),
    )
    assert row["category"] == "customer_transfer"
    assert (stripe["counterparty_kind"], stripe["category"]) == ("processor", "platform_payout")
