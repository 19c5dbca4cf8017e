"""Names that a person may have, too, decide only where the payment shows that the listed business is meant."""

import polars as pl
import pytest

from pipelines.enrichment.counterparties import counterparties
from pipelines.enrichment.counterparties.business_signs import ANY, is_personal, load_words
from pipelines.enrichment.counterparties.narratives import read_narratives
from pipelines.enrichment.own_rules import parse_own_rules
from pipelines.vocabulary.schemas import AccountType, Direction

NARRATIVES = {"description": pl.String(), "direction": Direction, "account_type": AccountType}


def categories(*texts: str, direction: str = "debit") -> dict[str, str]:
    rows = pl.DataFrame([(text, direction, "transaction") for text in texts], NARRATIVES, orient="row")
    return dict(zip(texts, read_narratives(rows)["category"], strict=True))


def test_a_persons_name_alone_decides_nothing(subtests: pytest.Subtests) -> None:
    debits = (
        *("DAVID JONES", "DAVID JONES 4411", "OSKO MICHAEL PAGE", "OSKO PAYMENT TO MICHAEL PAGE"),
        *("PAYMENT MARSHALL WHITE", "OSKO HAMILTON MURPHY", "MARSHALL FREEMAN", "PAYMENT TO ROBERT WALTERS"),
        *("TRANSFER TO GRANT THORNTON", "FPO KAY BURTON", "PAY ANYONE TO SMITH HANCOCK", "TO TED BAKER"),
        *("OSKO MICHAEL HILL JAMES", "OSKO DAVID JONES AND MARY JONES", "OSKO CHANDLER MACDONALD"),
    )
    for text, category in categories(*debits).items():
        with subtests.test(text):
            assert category == "unknown_debit"
    credits_ = ("DIRECT CREDIT DAVID JONES", "OSKO TRAVIS PERKINS", "DEPOSIT HAMILTON MURPHY")
    for text, category in categories(*credits_, direction="credit").items():
        with subtests.test(text):
            assert category in ("customer_transfer", "unknown_credit")


def test_a_card_a_collection_or_a_word_of_business_is_a_second_sign(subtests: pytest.Subtests) -> None:
    cases = {
        "VISA PURCHASE DAVID JONES SYDNEY NSW AU": "shopping",
        "EFTPOS DAVID JONES BONDI": "shopping",
        "DAVID JONES LTD": "shopping",
        "DAVID JONES #312": "shopping",
        "OSKO MICHAEL PAGE RECRUITMENT": "labour_hire",
        "PAYMENT TO ROBERT WALTERS PTY LTD": "labour_hire",
        "PAYMENT MARSHALL WHITE REALTY": "rent",
        "OSKO HAMILTON MURPHY ADVISORY": "insolvency",
        "OSKO SMITH HANCOCK TRUSTEE": "insolvency",
        "MARSHALL FREEMAN COLLECTIONS": "debt_collector",
        "DIRECT DEBIT 441122 MARSHALL FREEMAN": "debt_collector",
        "VISA PURCHASE HARVEY NORMAN FURNITURE AUBURN": "equipment",
        "PAYMENT TO GILBERT + TOBIN": "professional_fees",
        "PAYMENT TO KAY & BURTON": "rent",
        "PAYMENT TO KAY AND BURTON": "rent",
    }
    for text, category in categories(*cases).items():
        with subtests.test(text):
            assert category == cases[text]


def test_a_trade_behind_the_name_makes_it_another_business() -> None:
    found = categories("VISA PURCHASE DAVID JONES CATERING", "OSKO HAMILTON MURPHY PLUMBING PTY LTD")
    assert not set(found.values()) & {"shopping", "insolvency"}


def test_a_trade_further_behind_makes_a_shops_name_of_one_word_another_business(subtests: pytest.Subtests) -> None:
    others = ("SHELL HARBOUR PLUMBING NSW", "COLES ROOFING", "VISA PURCHASE SUBWAY ELECTRICAL PTY LTD")
    for text, category in categories(*others).items():
        with subtests.test(text):
            assert category not in ("fuel", "groceries", "meals")
    same = {
        "SHELL 4411 SHELLHARBOUR": "fuel",
        "PLUMBING ROSEWATER COLES": "groceries",
        "BUNNINGS ROOFING": "materials",
    }
    assert categories(*same) == same


def test_names_with_other_words_need_no_sign() -> None:
    cases = {
        "PAYMENT TO WORRELLS SOLVENCY": "insolvency",
        "PAYMENT TO LIBERTY STEEL": "materials",
        "PAYMENT TO HILTON SYDNEY": "travel",
        "PAYMENT TO CARTER HOLT HARVEY": "materials",
    }
    assert categories(*cases) == cases


def test_names_of_people_and_only_these_are_personal(subtests: pytest.Subtests) -> None:
    for name in ("DAVID JONES", "^ PAUL SMITH", "HAMILTON MURPHY", "O'BRIEN PALMER", "ALLAN GRAY*"):
        with subtests.test(name):
            assert is_personal(name)
    for name in ("COLES", "BARRY NILSSON LAW*", "NEUMANN STEEL", "WILSON PARK*", "DAVID JONES LTD", "KING PRICE"):
        with subtests.test(name):
            assert not is_personal(name)


def test_a_clients_own_names_need_no_sign() -> None:
    own = parse_own_rules({"counterparties/own.yaml": "fuel: {Jane Smith: [JANE SMITH]}"}).lists
    rows = pl.DataFrame([("OSKO JANE SMITH", "debit", "transaction")], NARRATIVES, orient="row")
    assert read_narratives(rows, own)["category"].to_list() == ["fuel"]


def test_words_of_business_are_listed_for_purposes_that_exist() -> None:
    assert load_words().keys() - {ANY} <= set(counterparties.list_purposes())
