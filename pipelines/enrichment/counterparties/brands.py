"""Look up brands in a public list: shops, restaurants, hotels and other places with a trade.

`rules/brands/brands.tsv` comes from the name-suggestion-index (`rules/brands/README.md`). Nobody here has checked how
statements print these names, so they count less than the curated lists (`counterparties`). A brand is looked for only
if no listed counterparty is named, and only at the beginning of the cleaned text, after the words of the payment. What
else a payment must show is in the column `needs`:

- `alone`: nothing follows the name but numbers, a legal form or a word such as STORE. Such a name consists of ordinary
  words, which others use, too.
- `card`: the same, and the payment is by card or in a shop. Such a name has several trades, is short, or consists of
  people's names.
- `whole`: either nothing else follows the name, or the payment is by card or in a shop. Such a name is a single word
  that is in none of our lists.
- `nothing`: the name is enough.

A payment is by card if the text says so or prints a terminal's place, or if the account is a credit card. It is in a
shop if a word such as STORE follows the name. A number shows neither: COOK 4411 may be a person and a reference. A word
of `rules/trades.yaml` after the name makes it another business's name, and so does any word of business after a single
word (JONES PRINTING). A word for streets makes it an address.
"""

from functools import cache
from importlib.resources import files
from typing import Literal, get_args

import polars as pl

from pipelines.enrichment.counterparties.counterparties import NAMED, PURPOSES, Directory, Party, Purpose, list_trades
from pipelines.enrichment.names import name_words
from pipelines.enrichment.names.names import is_by_card
from pipelines.enrichment.wording.phrases import read_together, words_of
from pipelines.enrichment.wording.places import TOWN_AND_STATE
from pipelines.vocabulary.rule_files import RuleError, load_rules
from pipelines.vocabulary.schemas import AccountType, Channel

BRANDS, TRADES = "brands/brands.tsv", "brands/trades.yaml"
Needs = Literal["nothing", "whole", "card", "alone"]
COLUMNS = pl.Schema(
    {"name": pl.String(), "purpose": pl.String(), "needs": pl.Enum(get_args(Needs)), "spelling": pl.String()}
)
_STARTS = "^ "
_OF_SHOPS = ("STORE", "STORES", "SHOP", "SUPERSTORE", "SUPERCENTER", "SUPERMARKET", "SUPERMARKETS", "EXPRESS")
_NUMBERS = "^0[0 ]*$"  # nothing but numbers (`words_of`): a shop's, or a reference
_ENDS = ("", "PLC", "LTD", "LIMITED", "INC", "COM", "CO UK")  # after a name that is whole


class Brands:
    """The list, prepared for the look-up."""

    def __init__(self, listed: pl.DataFrame) -> None:
        purposes = {slug: Purpose(slug, **fields) for slug, fields in load_rules(PURPOSES).items()}
        if unknown := set(listed["purpose"]) - purposes.keys():
            raise RuleError(f"{BRANDS}: there is no purpose {', '.join(sorted(unknown))}")
        phrases = listed.with_columns(phrase=pl.concat_str(pl.lit(_STARTS), "spelling"))
        said = phrases.select("name", "purpose", "phrase").rows()
        self._directory = Directory([Party(name, purposes[purpose], [phrase]) for name, purpose, phrase in said])
        self._needs = phrases.select("phrase", "needs")

    @property
    def phrases(self) -> pl.DataFrame:
        """Every `phrase`, and its `party`, as of a `Directory`."""
        return self._directory.phrases

    def find(self, narratives: pl.DataFrame) -> pl.DataFrame:
        """Find the brands that narratives name: schema NAMED, at most one row for each.

        Args:
            narratives: `text`, `clean_description`, `whole_name` (of `cut_names`), `channel`, `location`,
                `account_type`; `text_number` is a position in it.
        """
        beginnings = narratives.select(_list_beginnings()).get_columns()
        words = pl.select(words=pl.concat_str(read_together(beginnings, self._read_words))).to_series()
        named = self._directory.find(words)
        if named.is_empty():
            return named
        texts = narratives.select(words, by_card=_is_by_card()).with_row_index("text_number")
        found = named.join(self._needs, on="phrase").join(texts, on="text_number")
        return found.filter(_shows_enough(), ~_is_of_others()).select(NAMED.names())

    def _read_words(self, texts: pl.Series) -> pl.Series:
        return texts.to_frame("text").select(words_of(pl.col("text"), self._directory.numbers)).to_series()


@cache
def _list_beginnings() -> list[pl.Expr]:
    """Return the texts that may begin with a brand."""
    clean = pl.col("clean_description")
    return [clean, name_words.skip_payment_words(clean).alias("skipped"), pl.col("whole_name").fill_null("")]


@cache
def _later_words() -> pl.Expr:
    """Return the words behind the name."""
    behind = pl.col("words").str.split(pl.format(" {} ", "phrase")).list.get(1)
    return behind.str.split("$").list.first().str.strip_chars(" ")


@cache
def _next_word() -> pl.Expr:
    """Return the first word behind the name."""
    return _later_words().str.split(" ").list.first()


@cache
def _shows_enough() -> pl.Expr:
    """Return whether the payment shows what its brand needs."""
    at_a_shop = pl.col("by_card") | _next_word().is_in(_OF_SHOPS)
    is_alone = _next_word().is_in(_OF_SHOPS) | _later_words().is_in(_ENDS) | _later_words().str.contains(_NUMBERS)
    enough = {
        "alone": is_alone,
        "card": is_alone & at_a_shop,
        "whole": is_alone | at_a_shop,
        "nothing": pl.lit(value=True),
    }
    return pl.any_horizontal((pl.col("needs") == needs) & shown for needs, shown in enough.items())


@cache
def _is_of_others() -> pl.Expr:
    """Return whether the word behind the name makes it another business's name, or an address."""
    is_one_word = ~pl.col("phrase").str.strip_prefix(_STARTS).str.contains(" ", literal=True)
    of_business = _next_word().is_in(_words_with("B")) & ~_next_word().is_in(_OF_SHOPS)
    return _next_word().is_in([*list_trades(), *_words_with("a")]) | (is_one_word & of_business)


@cache
def _is_by_card() -> pl.Expr:
    """Return whether a payment is by card: the text says so or prints a terminal's place, or the account is a card.

    A town and a state at the end count only where the bank names no other channel, such as a transfer.
    """
    of_terminal = (pl.col("channel") == pl.lit("other", Channel)) & pl.col("text").str.contains(TOWN_AND_STATE)
    of_card = pl.col("account_type").eq_missing(pl.lit("credit_card", AccountType))
    rail = pl.col("channel").is_in(["card", "eftpos"])
    return is_by_card() | rail | pl.col("location").is_not_null() | of_terminal | of_card


def _words_with(letters: str) -> list[str]:
    """Return the listed words with these letters (`name_words.LISTS`)."""
    return [word for word, letter in name_words.load().letters.items() if letter in letters and word.isalpha()]


@cache
def load() -> Brands:
    """Load the list of `rules/`, once per process.

    Raises:
        RuleError: a purpose is unknown.
    """
    return Brands(read_list())


def read_list() -> pl.DataFrame:
    """Return the brands of `rules/` (columns COLUMNS)."""
    text = files("pipelines.enrichment").joinpath("rules", BRANDS).read_bytes()
    return pl.read_csv(text, separator="\t", schema=COLUMNS, quote_char=None)
