"""Phrases are found on whole words, in any text, as by a search for one phrase at a time."""

import re
from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrichment.wording.phrases import Phrasebook, words_of


def prepare(*texts: str, numbers: tuple[str, ...] = ()) -> pl.Series:
    upper = pl.DataFrame({"text": [text.upper() for text in texts]}, {"text": pl.String})
    return upper.select(words_of(pl.col("text"), numbers)).to_series()


def contains(phrase: str, text: str) -> bool:
    portfolio = Phrasebook([phrase])
    return not portfolio.find(prepare(text, numbers=portfolio.numbers)).is_empty()


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
        ("BPAY 75556", "BPAY 75556 1234567", True),
        ("BPAY 75556", "BPAY 17301 1234567", False),
        ("INV", "INV4410", True),
        ("TO 0000", "TRANSFER TO 013442887190", True),
        ("TO 0000", "TRANSFER TO 4821", False),
        ("^ INTEREST", "INTEREST PAID", True),
        ("^ INTEREST", "LOAN INTEREST", False),
        ("INTEREST $", "LOAN INTEREST", True),
        ("INTEREST $", "INTEREST PAID", False),
        ("^ FEE $", "FEE", True),
        ("PROSPA", "PROS\u200bPA", True),
        ("CAFE", "LE CAF\u00c9", False),
        ("CAF\u00c9", "LE CAF\u00c9", True),
    ],
)
def test_a_phrase_is_found_on_whole_words(phrase: str, text: str, is_found: bool) -> None:
    assert contains(phrase, text) is is_found


def test_phrases_that_overlap_and_repeat_are_all_found() -> None:
    hits = Phrasebook(["TYRO", "TYRO LOAN", "LOAN", "TYRO"]).find(prepare("TYRO LOAN TYRO", "LOAN"))
    assert sorted(hits.unique().rows()) == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 2)]
    assert hits.height == 7


def test_nothing_is_found_without_phrases_or_texts() -> None:
    assert Phrasebook([]).find(prepare("A")).is_empty()
    assert Phrasebook(["A"]).find(prepare()).is_empty()


some_words = st.lists(st.sampled_from(["AB", "ABC", "B", "BC", "C", "A'B", "É", "7", "1234", "X1234567"]), max_size=4)
some_phrases = st.tuples(some_words.filter(bool).map(" ".join), st.sampled_from(["", "*"])).map("".join)


@given(st.lists(some_phrases, max_size=6), st.lists(some_words.map("-".join), max_size=6))
def test_the_search_agrees_with_one_text_and_phrase_at_a_time(phrases: list[str], texts: list[str]) -> None:
    portfolio = Phrasebook(phrases)
    hits = portfolio.find(prepare(*texts, numbers=portfolio.numbers))
    assert sorted(hits.unique().rows()) == [
        (number, each)
        for number, text in enumerate(texts)
        for each, phrase in enumerate(phrases)
        if any(_occurs(phrase, words(text, portfolio.numbers)[at:]) for at in range(20))
    ]


def _occurs(phrase: str, here: list[str]) -> bool:
    *whole, last = re.findall(r"[^\W_]+", phrase.replace("'", ""))
    following = here[: len(whole) + 1]
    if len(following) <= len(whole) or following[:-1] != whole:
        return False
    return following[-1].startswith(last) if phrase.endswith("*") else following[-1] == last


def words(text: str, numbers: Sequence[str]) -> list[str]:
    """Apply the rule in plain Python: a number that is in no phrase is replaced, with the rest of its word."""
    read: list[str] = []
    for word in re.findall(r"[^\W_]+", text.upper().replace("'", "")):
        letters, number = re.fullmatch(r"(\D*)(.*)", word).groups()  # pyrefly: ignore[missing-attribute]  # fits any word
        if word in numbers or not number:
            read.append(word)
        else:
            read += [each for each in (letters, "0000" if re.match(r"\d{6}", number) else "0") if each]
    return read


def test_texts_that_differ_only_in_references_become_equal() -> None:
    one, other, third = prepare("TELSTRA INV4410 12/03", "TELSTRA INV0092 05/11", "TELSTRA 4 INV")
    assert one == other != third


@given(st.text(max_size=60))
def test_any_text_becomes_words_with_single_gaps_and_marked_ends(text: str) -> None:
    made = prepare(text).item()
    assert made.startswith(" ^ ")
    assert made.endswith(" $ ")
    assert all(each.isalnum() or each in " ^$" for each in made if each.isascii())
    assert "  " not in made[2:-2].strip()


@pytest.mark.parametrize("text", ["A" * 10_000, "(" * 10_000, "😀" * 500, "\u202e" * 100, "9" * 10_000])
def test_hostile_texts_are_searched_like_any_other(text: str) -> None:
    assert contains("RENT", text + " RENT")
