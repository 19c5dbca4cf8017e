"""Words of businesses' names that terminals shorten."""

from typing import Any

import polars as pl
import pytest

from pipelines.enrichment.counterparties import abbreviations
from pipelines.enrichment.counterparties.abbreviations import complete_trades, load, spell_out
from pipelines.enrichment.names import name_words
from pipelines.vocabulary.rule_files import RuleError

OF_PEOPLE = frozenset("GSX")  # letters (`name_words`) of names that are no ordinary words


def spell(clean: str, *, by_card: bool = True) -> str | None:
    spelt: str | None = spell_out(pl.Series([clean]), pl.Series([by_card])).str.strip_chars().item()
    return spelt


@pytest.mark.parametrize(
    ("printed", "in_full"),
    [
        ("MUDGEE PUMP & IRRIGATI", "MUDGEE PUMP IRRIGATION"),
        ("KAROO GUEST HSE", "KAROO GUEST HOUSE"),
        ("ROSSI PLBG HTNG", "ROSSI PLUMBING HEATING"),  # adjacent words
        ("THE LOST WOMBAT CAF", "THE LOST WOMBAT CAFE"),
        ("THE LOST WOMBAT CAFE", None),
        ("BUG OFF EXTERMINATIN", "BUG OFF EXTERMINATING"),  # a word of rules, which no list of abbreviations has
        ("TOKYO STEAK & HIBACH", "TOKYO STEAK HIBACHI"),
        ("HARRIS & SONS", None),
    ],
)
def test_shortened_words_are_spelt_out(printed: str, in_full: str | None) -> None:
    assert spell(printed) == in_full


def test_only_the_last_word_of_a_card_payment_may_be_cut_short() -> None:
    assert spell("WOMBAT CAF", by_card=False) is None
    assert spell("CAF WOMBAT") is None
    assert spell("REPA SMITH PLBG") == "REPA SMITH PLUMBING"


def test_a_beginning_stands_for_the_only_trade_that_begins_so() -> None:
    trades = {
        "BILLIARDS": frozenset(["entertainment"]),
        "CARPENTERS": frozenset(["subcontractors"]),
        "CARPENTRY": frozenset(["subcontractors"]),
        "CARPET": frozenset(["household"]),
    }
    completed = complete_trades(trades, frozenset(["BILLION", "CARPENTER"]))
    assert completed == {
        **dict.fromkeys(("BILLIA", "BILLIAR", "BILLIARD"), "BILLIARDS"),  # BILLI may be BILLION
        **dict.fromkeys(("CARPEN", "CARPENT", "CARPENTE"), "CARPENTERS"),  # either trade is of one category
        "CARPENTR": "CARPENTRY",
    }


def test_no_abbreviation_is_a_persons_name() -> None:
    letters = name_words.load().letters
    printed = {word for section in load().values() for word in section}
    assert {word for word in printed if letters.get(word) in OF_PEOPLE} == set()


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ({"PARKING": "PKG", "PACKAGING": "PKG"}, "PKG stands for PARKING, too"),
        ({"REPAIR": "REP*", "REPA": "RPA"}, "REPA is itself a word of the list"),
    ],
)
def test_an_ambiguous_list_is_refused(monkeypatch: pytest.MonkeyPatch, words: dict[str, str], fault: str) -> None:
    def broken(_: str) -> Any:
        return {"anywhere": words, "last": {}}

    monkeypatch.setattr(abbreviations, "load_rules", broken)
    load.cache_clear()
    with pytest.raises(RuleError, match=fault):
        load()
    load.cache_clear()
