from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrich.counterparties import Directory, Party, Purpose, checked, load, words
from pipelines.enrich.taxonomy import RuleError, load_rules

FUEL, LENDER = Purpose("business", "refund_received", "fuel"), Purpose("lender", debit="term_loan_repayment")
PURPOSES = {"fuel": {"kind": "business", "debit": "fuel"}}


def found(text: str, *parties: Party) -> str | None:
    names = Directory(parties).look_up(pl.Series([text]))["counterparty_name"]
    return str(names.item()) if len(names) else None


@pytest.mark.parametrize(
    ("phrase", "text", "is_found"),
    [
        ("AMPOL", "EFTPOS AMPOL GEELONG", True),
        ("AMPOL", "AMPOL", True),
        ("AMPOL", "CRAMPOLI PTY", False),
        ("AMPOL", "AMPOLS", False),
        ("AMPOL*", "AMPOLGEELONG", True),
        ("AMPOL*", "GRAMPOL", False),
        ("7 ELEVEN", "7-ELEVEN 2231", True),
        ("MCDONALDS", "MCDONALD'S ALBURY", True),
        ("MCDONALDS", "MCDONALD\u2019S ALBURY", True),
        ("UNITED PETROL*", "UNITED  PETROLEU", True),
    ],
)
def test_a_phrase_is_found_on_whole_words(phrase: str, text: str, is_found: bool) -> None:
    assert (found(text, Party("X", FUEL, [phrase])) == "X") is is_found


def test_the_longest_phrase_wins() -> None:
    processor, lender = Party("Tyro", FUEL, ["TYRO"]), Party("Tyro Lending", LENDER, ["TYRO BUSINESS LOAN"])
    assert found("TYRO BUSINESS LOAN 44", processor, lender) == "Tyro Lending"
    assert found("TYRO PAYMENTS", processor, lender) == "Tyro"


def test_a_name_beside_a_word_that_makes_it_somebody_elses_is_not_found() -> None:
    square = Party("Square", FUEL, ["SQUARE"], ["MARKET SQUARE"])
    assert found("MARKET SQUARE CAFE", square) is None
    assert found("SQUARE AU", square) == "Square"


def test_a_lender_has_an_id_and_nobody_else() -> None:
    directory = Directory([Party("Moula Money", LENDER, ["MOULA"]), Party("Ampol", FUEL, ["AMPOL"])])
    ids = directory.look_up(pl.Series(["MOULA", "AMPOL"])).sort("text")["counterparty_lender_id"]
    assert ids.to_list() == [None, "moula-money"]


some_words = st.lists(st.sampled_from(["AB", "ABC", "B", "BC", "C", "A'B", "É", "7"]), min_size=1, max_size=4)
some_phrases = st.tuples(some_words.map(" ".join), st.sampled_from(["", "*"])).map("".join)


@given(st.lists(some_phrases, min_size=1, max_size=6, unique_by=words), st.lists(some_words.map("-".join), max_size=6))
def test_the_look_up_agrees_with_one_text_and_phrase_at_a_time(phrases: list[str], texts: list[str]) -> None:
    directory = Directory([Party(phrase, FUEL, [phrase]) for phrase in phrases])
    names = directory.look_up(pl.Series(texts, dtype=pl.String).unique()).rows_by_key("text", named=True, unique=True)
    for text in texts:
        assert names.get(text, {}).get("counterparty_name") == by_hand(text, phrases)


def by_hand(text: str, phrases: Sequence[str]) -> str | None:
    """The longest phrase whose words follow one another in the text, the last one whole or begun."""
    fits = [phrase for phrase in phrases if any(_stands(phrase, words(text).split()[at:]) for at in range(9))]
    literals = {phrase: f" {words(phrase)}" + " " * (not phrase.endswith("*")) for phrase in fits}
    return min(fits, key=lambda phrase: (-len(literals[phrase]), literals[phrase]), default=None)


def _stands(phrase: str, here: Sequence[str]) -> bool:
    *whole, last = words(phrase).split()
    following = list(here[: len(whole) + 1])
    if len(following) <= len(whole) or following[:-1] != whole:
        return False
    return following[-1].startswith(last) if phrase.endswith("*") else following[-1] == last


@pytest.mark.parametrize(
    ("purposes", "lists", "reason"),
    [
        (PURPOSES, {"a.yaml": {"food": {"X": ["XX"]}}}, "a.yaml: there is no purpose food"),
        (PURPOSES, {"a.yaml": {"fuel": {"X": []}}}, "a.yaml, fuel, X: takes a list of phrases"),
        (PURPOSES, {"a.yaml": {"fuel": {"X": ["-"]}}}, "a.yaml, fuel, X: takes a list of phrases"),
        (PURPOSES, {"a.yaml": {"fuel": {"X": [7]}}}, "a.yaml, fuel, X: takes a list of phrases"),
        (PURPOSES, {"a.yaml": {"fuel": {"X": {"says": ["XX"], "not": ["Y"]}}}}, "a.yaml, fuel, X: takes a list"),
        (PURPOSES, {"a.yaml": {"fuel": {"X": ["X X"], "Y": ["X-X"]}}}, "'X-X' stands already under a.yaml, fuel, X"),
        ({"fuel": {"kind": "shop"}}, {}, "purposes.yaml, fuel: there is no kind shop"),
        ({"fuel": {"debit": "fuel"}}, {}, "purposes.yaml, fuel: it takes kind, credit and debit"),
        ({"fuel": {"kind": "business", "credit": "fuel"}}, {}, "no category fuel belongs on the side credit"),
        ({"fuel": {"kind": "business", "debit": "petrol"}}, {}, "no category petrol belongs on the side debit"),
    ],
)
def test_a_broken_list_refuses_to_load_with_its_place_and_reason(
    purposes: dict[str, Any], lists: dict[str, Any], reason: str
) -> None:
    with pytest.raises(RuleError, match=reason):
        checked(purposes, lists)


def test_the_lists_load_and_know_whom_everybody_knows() -> None:
    texts = {"BUNNINGS 456000 ALEXANDRIA": "Bunnings", "AGL SALES P/L": "AGL", "SPORTSBET MELB": "Sportsbet"}
    assert {text: found_in_lists(text) for text in texts} == texts


def found_in_lists(text: str) -> str:
    return str(load().look_up(pl.Series([text]))["counterparty_name"].item())


LENDERS = [entry for entry in load_rules("patterns.yaml") if entry.get("of", {}).get("kind") == "lender"]


@pytest.mark.parametrize("entry", LENDERS, ids=lambda entry: entry["pattern"])
def test_a_lender_has_one_name_and_one_id_in_the_rules_and_in_the_lists(entry: Mapping[str, Any]) -> None:
    of = entry["of"]
    assert of["lender_id"] == Party(of["name"], LENDER, ()).lender_id
    listed = load().look_up(pl.Series(entry["matches"]).unique())
    assert set(listed["counterparty_lender_id"].drop_nulls()) <= {of["lender_id"]}
