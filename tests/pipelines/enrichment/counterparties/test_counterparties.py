"""Names are found in texts by the lists of counterparties; broken lists are refused when they load."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrichment.counterparties.counterparties import (
    PURPOSES as PURPOSES_FILE,
)
from pipelines.enrichment.counterparties.counterparties import (
    Directory,
    Party,
    Purpose,
    load,
    load_lists,
    load_parties,
    parse_parties,
)
from pipelines.enrichment.wording.phrases import words_of
from pipelines.vocabulary.rule_files import RuleError, load_rules

FUEL = Purpose("fuel", "business", "refund_received", "fuel")
LENDER = Purpose("term_loan", "lender", debit="term_loan_repayment")
PURPOSES = {"fuel": {"kind": "business", "debit": "fuel"}}


def look_up(directory: Directory, *texts: str) -> pl.DataFrame:
    prepared = pl.DataFrame({"text": texts}, {"text": pl.String}).select(words_of(pl.col("text"))).to_series()
    return directory.find(prepared).sort("text_number")


def find_name(text: str, *parties: Party) -> str | None:
    names = look_up(Directory(parties), text)["counterparty_name"]
    return str(names.item()) if len(names) else None


def test_the_longest_phrase_wins() -> None:
    processor, lender = Party("Tyro", FUEL, ["TYRO"]), Party("Tyro Lending", LENDER, ["TYRO BUSINESS LOAN"])
    assert find_name("TYRO BUSINESS LOAN 44", processor, lender) == "Tyro Lending"
    assert find_name("TYRO PAYMENTS", processor, lender) == "Tyro"


def test_name_with_an_excluding_phrase_is_not_found() -> None:
    square = Party("Square", FUEL, ["SQUARE"], ["MARKET SQUARE"])
    assert find_name("MARKET SQUARE CAFE", square) is None
    assert find_name("SQUARE AU", square) == "Square"


def test_only_lenders_have_a_lender_id() -> None:
    directory = Directory([Party("Moula Money", LENDER, ["MOULA"]), Party("Ampol", FUEL, ["AMPOL"])])
    assert look_up(directory, "MOULA", "AMPOL")["counterparty_lender_id"].to_list() == ["moula-money", None]


@pytest.mark.parametrize(
    ("purposes", "lists", "reason"),
    [
        (PURPOSES, {"a.yaml": {"food": {"X": ["XX"]}}}, "a.yaml: there is no purpose food"),
        (PURPOSES, {"a.yaml": {"fuel": {"X": []}}}, "a.yaml, fuel, X: takes a list of phrases"),
        (PURPOSES, {"a.yaml": {"fuel": {"X": ["-"]}}}, "a.yaml, fuel, X: takes a list of phrases"),
        (PURPOSES, {"a.yaml": {"fuel": {"X": [7]}}}, "a.yaml, fuel, X: takes a list of phrases"),
        (PURPOSES, {"a.yaml": {"fuel": {"X": {"says": ["XX"], "not": ["Y"]}}}}, "a.yaml, fuel, X: takes a list"),
        (PURPOSES, {"a.yaml": {"fuel": {"X": ["X X"], "Y": ["X-X"]}}}, "'X-X' is already listed under a.yaml, fuel, X"),
        ({"fuel": {"kind": "shop"}}, {}, "purposes.yaml, fuel: there is no kind shop"),
        ({"fuel": {"debit": "fuel"}}, {}, "purposes.yaml, fuel: takes kind, credit and debit"),
        ({"fuel": {"kind": "business", "credit": "fuel"}}, {}, "no category fuel belongs on the side credit"),
        ({"fuel": {"kind": "business", "debit": "petrol"}}, {}, "no category petrol belongs on the side debit"),
    ],
)
def test_a_broken_list_refuses_to_load_with_its_place_and_reason(
    purposes: dict[str, Any], lists: dict[str, Any], reason: str
) -> None:
    with pytest.raises(RuleError, match=reason):
        parse_parties(purposes, lists)


def test_the_shipped_lists_have_no_faults() -> None:
    assert parse_parties(load_rules(PURPOSES_FILE), load_lists()) == [*load_parties()]


def test_lists_load_and_contain_well_known_counterparties() -> None:
    texts = {"BUNNINGS 456000 ALEXANDRIA": "Bunnings", "AGL SALES P/L": "AGL", "SPORTSBET MELB": "Sportsbet"}
    assert {text: find_listed(text) for text in texts} == texts


def test_an_adverse_name_inside_the_name_of_another_business_is_not_found(subtests: pytest.Subtests) -> None:
    others = ("STAR ENTERTAINMENT LIGHTING", "CREDIT CORP BUILDING SUPPLIES", "PROSPA TILES", "WORRELLS PLUMBING P/L")
    same = {
        "STAR ENTERTAINMENT GRP SYDNEY": "The Star Sydney",
        "CREDIT CORP SERVICE 30081726-4": "Credit Corp",
        "PROSPA ADVANCE P PAL8812044": "Prospa",
        "WORRELLS BENDIGO DOCA CONTRIB": "Worrells",
        "PROSPA TILES DIRECT DEBIT PROSPA 5514": "Prospa",
    }
    adverse = {party.name for party in load_parties() if party.purpose.is_adverse}
    for text in others:
        with subtests.test(text):
            assert {*look_up(load(), text)["counterparty_name"]} & adverse == set()
    for text, name in same.items():
        with subtests.test(text):
            assert find_listed(text) == name


def test_names_of_collecting_firms_are_found_with_joined_words() -> None:
    energy, cafe = Purpose("energy", "business", debit="utilities"), Purpose("meals", "business", debit="meals")
    national = Party("National Fuel", energy, ["NATIONAL FUEL GAS*"])
    assert find_name("DIRECT WITHDRAWAL NATIONALFUELGASCO 4411", national) == "National Fuel"
    assert find_name("NATIONALFUEL", national) is None
    assert find_name("ONERGY", Party("On Ergy", energy, ["ON ERGY"])) is None  # too short: it may be another word
    assert find_name("NATIONALFUELGAS", Party("National Fuel", cafe, ["NATIONAL FUEL GAS"])) is None
    assert find_name("NATIONALFUELGAS", Party("National Fuel", energy, ["NATIONAL FUEL GAS"], is_own=True)) is None


def test_a_trade_right_behind_a_firms_name_of_one_word_makes_it_another_business(subtests: pytest.Subtests) -> None:
    landlord = Purpose("rent", "business", debit="rent")
    westfield = Party("Westfield", landlord, ["WESTFIELD"])
    names = {
        "WESTFIELD PLUMBING LTD": None,
        "WESTFIELD RENT SHOP 4": "Westfield",
        "WESTFIELD RENT SMITH PLUMBING": "Westfield",  # the customer's own name is further behind
    }
    for text, name in names.items():
        with subtests.test(text):
            assert find_name(text, westfield) == name


def find_listed(text: str) -> str:
    return str(look_up(load(), text)["counterparty_name"].item())


def test_lender_has_one_id_for_all_its_products() -> None:
    lenders = {party.name: party.lender_id for party in load_parties() if party.lender_id}
    assert len(lenders) >= 120
    assert len(set(lenders.values())) == len(lenders)


@given(st.lists(st.sampled_from(["TYRO", "LOAN", "SQUARE", "MARKET", "X"]), max_size=5))
def test_the_look_up_agrees_with_plain_python(text: list[str]) -> None:
    listed = [
        Party("Tyro", FUEL, ["TYRO"]),
        Party("Tyro Lending", LENDER, ["TYRO LOAN"]),
        Party("Square", FUEL, ["SQUARE", "SQUARE LOAN"], ["MARKET SQUARE"]),
    ]
    line = f" {' '.join(text)} "
    matching = [
        (phrase, party.name)
        for party in listed
        if not any(f" {other} " in line for other in party.unless)
        for phrase in party.says
        if f" {phrase} " in line
    ]
    longest = min(matching, key=lambda each: (-len(each[0]), each[0]), default=(None, None))
    assert find_name(line, *listed) == longest[1]
