"""A name that the bank cut short stands for the listed name, if it can be no other."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrichment.counterparties.cut_names import MIN_LETTERS, CutNames
from pipelines.enrichment.counterparties.narratives import read_narratives
from pipelines.vocabulary.schemas import AccountType, Direction

LISTED = {
    "TYRO": "Tyro",
    "TYRO BUSINESS LOAN*": "Tyro loans",
    "ZORBAL FINANCIAL": "Zorbal",
    "ZORBAL FINANCIAL COMM*": "Zorbal mortgages",
    "QWIXEL CARPETS": "Qwixel Carpets",
    "QWIXEL CARPENTRY": "Qwixel Carpentry",
    "BLUE MOUNTAINS CITY COUNCIL": "Council",
    "MOUNTAIN GEAR": "Mountain Gear",
    "NEMIROS PLUMAGE": "Nemiros",
    "NEMIROS PLUMBOSHOP": "Nemiros Plumboshop",
    "NEMIROS PLUMTREE": "Nemiros",
    "RADIUM CAPITAL": None,
    "ZORBALMART": "Zorbalmart",
}


def find_whole_names(*texts: str) -> list[str | None]:
    listed = pl.DataFrame(
        {"phrase": LISTED.keys(), "party": LISTED.values()}, {"phrase": pl.String, "party": pl.String}
    )
    return CutNames(listed).find_whole(pl.Series(texts)).to_list()


def decide_narratives(*texts: str, direction: str = "debit") -> dict[str, tuple[str | None, str]]:
    """Return the counterparty and the category of each narrative."""
    schema = {"description": pl.String(), "direction": Direction, "account_type": AccountType}
    rows = pl.DataFrame([(text, direction, "transaction") for text in texts], schema, orient="row")
    return dict(zip(texts, read_narratives(rows).select("counterparty_name", "category").rows(), strict=True))


def test_a_beginning_that_only_one_listed_name_has_is_completed(subtests: pytest.Subtests) -> None:
    cases = {
        "TYRO BUSINESS LO": "TYRO BUSINESS LOAN",
        "PAYMENT TO ZORBAL FINANCIA": "ZORBAL FINANCIAL",
        "SQ *QWIXEL CARPENT": "QWIXEL CARPENTRY",
        "QWIXEL CARPENT 4411 0093": "QWIXEL CARPENTRY",
        "ZORBAL FINANCIA": "ZORBAL FINANCIAL",
    }
    for text, name in cases.items():
        with subtests.test(text):
            assert find_whole_names(text) == [name]


def test_near_misses_are_not_completed(subtests: pytest.Subtests) -> None:
    cases = {
        "QWIXEL CARPE": "two names begin so",
        "NEMIROS PLUM": "a name of another stands between two of one",
        "QWIXEL CARP": "too short",
        "QWIXEL CARPET": "the rest is a word of business",
        "TYRO BUSINESS L": "one letter may be an initial",
        "ZORBAL FINAN SMITH": "more words follow",
        "BLUE MOUNTAIN": "the rest is a word of another name",
        "ZORBALMAR": "no whole word before the cut one",
        "ZORBALMART FINANC": "another name",
        "RADIUM CAPITA": "tells against a customer",
        "": "no words",
    }
    for text, reason in cases.items():
        with subtests.test(reason):
            assert find_whole_names(text) == [None]


def test_the_remitters_name_ends_at_its_16th_letter() -> None:
    assert find_whole_names("ZORBAL FINANCIAL", "QWIXEL CARPENTRY", "ZORBALS FINANCIA") == [None, None, None]
    assert find_whole_names("TYRO BUSINESS LO REPAYMENT 12", "TYRO BUSINESS LOA REPAYMENT") == [
        "TYRO BUSINESS LOAN",
        None,
    ]


@given(st.integers(MIN_LETTERS, len("BLUE MOUNTAINS CITY COUNCIL")))
def test_what_is_completed_begins_with_the_text(letters: int) -> None:
    text = "BLUE MOUNTAINS CITY COUNCIL"[:letters]
    (name,) = find_whole_names(text)
    assert name is None or name.startswith(text)


def test_listed_names_are_found_by_their_beginning(subtests: pytest.Subtests) -> None:
    cases = {
        "DIRECT DEBIT 408812 LIBERTY FINANCIA 0012345": ("Liberty Financial", "term_loan_repayment"),
        "PLANET FITNES": ("Planet Fitness", "fitness"),
        "TST* BLUE BOTTLE COFFE": ("Blue Bottle Coffee", "meals"),
        "PAYPAL *PLANET FITNES": ("Planet Fitness", "fitness"),
        "AUSTRALIAN TAXAT": ("Australian Taxation Office", "bas"),
    }
    for text, found in decide_narratives(*cases).items():
        with subtests.test(text):
            assert found == cases[text]


def test_a_products_words_count_more_than_the_names_usual_purpose(subtests: pytest.Subtests) -> None:
    loans = ("TYRO BUSINESS LO", "TYRO PAYMENTS BUSINESS LOAN", "ZELLER LOAN FUNDS", "SUMUP LOAN 4411", "STRIPE LOAN")
    sales = ("TYRO SETTLEMENT LESS LOAN REPAYMENT", "TYRO PAYMENTS", "TYRO SETTLEMENT LOAN NGUYEN NAILS")
    paid_out, paid_back = decide_narratives(*loans, *sales, direction="credit"), decide_narratives(*loans)
    for text in loans:
        with subtests.test(text):
            assert (paid_out[text][1], paid_back[text][1]) == ("cash_advance_funding", "cash_advance_repayment")
    for text in sales:
        with subtests.test(text):
            assert paid_out[text][1] == "card_settlement"


def test_names_that_tell_against_a_customer_count_only_as_a_whole() -> None:
    found = decide_narratives("JIRSCH SUTHERLAND", "JIRSCH SUTHERLAN REMOVAL 5230", direction="credit")
    assert [category == "insolvency" for _, category in found.values()] == [True, False]
