"""Signs that a name which a person may have, too, is a business's: DAVID JONES, HAMILTON MURPHY.

A name is personal if it is a given and a family name, or two family names, and nothing else; one of the two at least is
no ordinary word (`is_personal`). In a list, it decides only where there is a second sign that the business is meant:

- the payment is by card, is collected by direct debit or as a bill, or prints a shop's number (#312);
- a word of `rules/business_signs.yaml` is there: right behind the name one that any business uses (PTY, STORE), or
  anywhere one of the listed purpose (RECRUITMENT);
- the name is that of partners (KAY AND BURTON), and is printed with the sign for AND.

A number without # shows nothing: DAVID JONES 4411 may be a person and a reference. A trade right behind the name makes
it another business's (DAVID JONES CATERING), unless it is a word of the listed purpose.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

import polars as pl

from pipelines.enrichment.names import name_words
from pipelines.enrichment.names.names import is_by_card as says_card
from pipelines.enrichment.wording.places import TOWN_AND_STATE
from pipelines.vocabulary.rule_files import load_rules
from pipelines.vocabulary.schemas import AccountType, Channel, Direction

FILE, TRADES = "business_signs.yaml", "trades.yaml"
ANY = "any"  # the entry of `FILE` for all purposes
SHOP_WORDS = ("STORE", "STORES", "SHOP", "SUPERSTORE", "SUPERCENTER", "SUPERMARKET", "SUPERMARKETS", "EXPRESS")
SIGNS = ("shows_business", "joins_names")
BY_CARD = "BYCARD"  # added to the words of a payment by card, for rules (<BY CARD> of `spellings.yaml`)
_SHOPS_NUMBER = r"#[0-9]{3,6}(?: |$)"
_OF_PEOPLE, _SURE = frozenset("GSXgsx"), frozenset("GSX")  # letters of `name_words`
_OF_BUSINESS = frozenset("LBCw")


@lru_cache(maxsize=2**15)  # each client's lists contain the shipped ones
def is_personal(name: str) -> bool:
    """Return whether a listed name, or a phrase with `*`, may be a person's.

    A cut word that some word of business begins with is none: LAW* stands for LAWYERS. Nor is a trade (STEEL).
    """
    words = name.removeprefix("^ ").removesuffix(" $").replace("'", "").split()
    if len(words) != 2:
        return False
    letters = {name_words.load().letters.get(word.removesuffix("*")) for word in words}
    if not (letters <= _OF_PEOPLE and letters & _SURE):
        return False
    return words[-1] not in list_trades() and not _stands_for_business(words[-1])


def _stands_for_business(word: str) -> bool:
    words, stem = _business_words(), word[:-1]
    place = bisect_left(words, stem)
    return word.endswith("*") and place < len(words) and words[place].startswith(stem)


@cache
def list_trades() -> list[str]:
    """List the words of trades that make a name right before them part of another business's name."""
    return [word for words in load_rules(TRADES).values() for word in words.split()]


@cache
def list_later_trades() -> list[str]:
    """List the words of trades that make a shop's name of one word, anywhere before them, another business's."""
    return str(load_rules(TRADES)["later"]).split()


@cache
def _business_words() -> Sequence[str]:
    return sorted(word for word, letter in name_words.load().letters.items() if letter in _OF_BUSINESS)


@cache
def load_words() -> Mapping[str, frozenset[str]]:
    """Return the words that show a business, by its purpose, and for all purposes (ANY)."""
    return {purpose: frozenset(words.split()) for purpose, words in load_rules(FILE).items()}


@cache
def is_card() -> pl.Expr:
    """Return whether a payment is by card: its rail or a terminal's place says so, or the account is a credit card."""
    of_card = pl.col("account_type").eq_missing(pl.lit("credit_card", AccountType))
    return pl.col("channel").is_in(["card", "eftpos"]) | pl.col("location").is_not_null() | of_card


def add_signs(narratives: pl.DataFrame) -> pl.DataFrame:
    """Add `is_by_card`, `is_at_shop` and SIGNS.

    `is_by_card`: the text says so or prints a terminal's place, or the account is a credit card. `is_at_shop`: the
    same, or the text prints a shop's number, or ends with a town and a state where the bank names no channel. SIGNS:
    whether the payment shows a business, and whether the text joins names (KAY & BURTON).

    Args:
        narratives: `text`, `channel`, `location`, `account_type` and `direction`.
    """
    text, channel = pl.col("text"), pl.col("channel")
    of_terminal = (channel == pl.lit("other", Channel)) & text.str.contains(TOWN_AND_STATE)
    collected = channel.is_in(["direct_debit", "bpay"])  # private persons collect neither way
    debit = pl.col("direction") == pl.lit("debit", Direction)
    return (
        narratives.with_columns(is_by_card=says_card() | is_card())
        .with_columns(is_at_shop=pl.col("is_by_card") | of_terminal | _has_shops_number())
        .with_columns(
            shows_business=pl.col("is_at_shop") | (collected & debit), joins_names=text.str.contains_any(["&", "+"])
        )
    )


@cache
def _has_shops_number() -> pl.Expr:
    numbered = pl.when(pl.col("text").str.contains("#", literal=True)).then("text")  # few texts are searched
    return numbered.str.contains(_SHOPS_NUMBER).fill_null(value=False)


def find_persons(named: pl.DataFrame) -> pl.Series:
    """Return whether each personal name found in a text is probably a person's, or another business's.

    Args:
        named: `text` (as of `phrases.words_of`), `name` (the literal that was found in it), its `purpose`, `is_joined`
            (whether it is also listed with AND), and SIGNS.
    """
    next_word = pl.col("text").str.split(pl.col("name")).list.get(1).str.extract(r"^\S* (\S+)")
    words = pl.col("text").str.split(" ")
    is_listed, is_of_purpose = next_word.is_in(list(load_words()[ANY])).fill_null(value=False), pl.lit(value=False)
    trade = next_word.is_in(list_trades()).fill_null(value=False)
    for purpose, signs in load_words().items():
        of_purpose = pl.col("purpose") == purpose
        is_of_purpose |= of_purpose & (words.list.set_intersection(list(signs)).list.len() > 0)
        trade &= ~(of_purpose & next_word.is_in(list(signs)).fill_null(value=False))
    joined = pl.col("is_joined") & pl.col("joins_names")
    return named.select(trade | ~(pl.col("shows_business") | joined | is_listed | is_of_purpose)).to_series()
