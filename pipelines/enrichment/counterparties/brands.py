"""Look up brands in a public list: shops, restaurants, hotels and other places with a trade.

`rules/brands/brands.tsv` comes from the name-suggestion-index (`rules/brands/README.md`). Nobody here has checked how
statements print these names, so they count less than the curated lists (`counterparties`). A brand is looked for only
if no listed counterparty is named, and only at the beginning of the cleaned text, after the words about the payment.
What else a payment must show is in the column `needs`:

- `alone`: nothing follows the name but numbers, a legal form or a word such as STORE. Such a name consists of ordinary
  words, which others use, too.
- `whole`: the same, or the payment is by card or in a shop, and nothing else follows the name but a place or words
  about the payment. Such a name is a single word that is in none of our lists. By card, OF and a town may follow, too,
  as behind franchises (CULVERS OF PIQUA).
- `card`: the payment is by card or in a shop, and nothing else follows; a place may follow only if it is by card. Such
  a name has several trades, is short, or consists of people's names. Behind the shop's number, any words are the place.
- `nothing`: the name is enough.

A payment is by card or in a shop if `business_signs` say so, or if a word such as STORE follows the name. A number
shows neither: COOK 4411 may be a person and a reference. Other words behind a name make it a longer one: NEXT LEVEL
TRAINING is not the shop NEXT, with a card or without. A word of `rules/trades.yaml` after the name makes it another
business's name, and so does any word of business after a single word (JONES PRINTING). A word for streets makes it an
address.
"""

from functools import cache
from importlib.resources import files
from typing import Literal, get_args

import polars as pl

from pipelines.enrichment.counterparties.business_signs import SHOP_WORDS, list_trades
from pipelines.enrichment.counterparties.counterparties import NAMED, PURPOSES, Directory, Party, Purpose
from pipelines.enrichment.names import name_words
from pipelines.enrichment.wording.phrases import read_together, words_of
from pipelines.enrichment.wording.places import any_place_word
from pipelines.enrichment.wording.wording import any_of
from pipelines.vocabulary.rule_files import RuleError, load_rules

BRANDS, TRADES = "brands/brands.tsv", "brands/trades.yaml"
Needs = Literal["nothing", "whole", "card", "alone"]
COLUMNS = pl.Schema(
    {"name": pl.String(), "purpose": pl.String(), "needs": pl.Enum(get_args(Needs)), "spelling": pl.String()}
)
_STARTS = "^ "
# What may follow a name that is whole; a number (`words_of`) is a shop's or a reference.
_ENDS = any_of("0+", *SHOP_WORDS, "PLC|LTD|LIMITED|INC|LLC|DIRECT|DIR|COM|CO UK|CO NZ|COM AU|CO ZA")
_NUMBERED = rf"^(?:{_ENDS} ){{0,2}}0+(?: [A-Z]+){{1,3}}$"  # GREGGS PLC 6397 ELLAND
_OF_A_TOWN = "^OF(?: [A-Z]+){1,2}$"
_PAYMENT_WORDS = "CARD|PURCHASE|REFUND|CONTACTLESS|PAYMENT|PAYPAL|APPLE PAY|GOOGLE PAY|ONLINE|MKTP|HTTPS|WWW"


class Brands:
    """The list, prepared for the look-up."""

    def __init__(self, listed: pl.DataFrame) -> None:
        purposes = {slug: Purpose(slug, **fields) for slug, fields in load_rules(PURPOSES).items()}
        if unknown := set(listed["purpose"]) - purposes.keys():
            raise RuleError(f"{BRANDS}: there is no purpose {', '.join(sorted(unknown))}")
        phrases = listed.with_columns(phrase=pl.concat_str(pl.lit(_STARTS), "spelling"))
        named = phrases.select("name", "purpose", "phrase").rows()
        self._directory = Directory([Party(name, purposes[purpose], [phrase]) for name, purpose, phrase in named])
        self._needs = phrases.select("phrase", "needs")

    @property
    def phrases(self) -> pl.DataFrame:
        """Every `phrase`, and its `party`, as of a `Directory`."""
        return self._directory.phrases

    def find(self, narratives: pl.DataFrame) -> pl.DataFrame:
        """Find the brands that narratives name: schema NAMED, at most one row for each.

        Args:
            narratives: `clean_description`, `whole_name` (of `cut_names`), `is_at_shop` and `is_by_card` (of
                `business_signs`); `text_number` is a position in it.
        """
        beginnings = narratives.select(_list_beginnings()).get_columns()
        words = pl.select(words=pl.concat_str(read_together(beginnings, self._read_words))).to_series()
        named = self._directory.find(words)
        if named.is_empty():
            return named
        texts = narratives.select(words, "is_at_shop", "is_by_card").with_row_index("text_number")
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
    at_a_shop = pl.col("is_at_shop") | _next_word().is_in(SHOP_WORDS)
    is_alone = _later_words().str.contains(_only(_ENDS))
    is_of_shop = at_a_shop & _later_words().str.contains(_only(any_of(_ENDS, any_place_word(), _PAYMENT_WORDS)))
    is_numbered = pl.col("is_by_card") & _later_words().str.contains(_NUMBERED)
    is_franchise = pl.col("is_by_card") & _later_words().str.contains(_OF_A_TOWN)
    enough = {
        "alone": is_alone,
        "card": (is_of_shop & (is_alone | pl.col("is_by_card"))) | is_numbered,
        "whole": is_alone | is_of_shop | is_numbered | is_franchise,
        "nothing": pl.lit(value=True),
    }
    return pl.any_horizontal((pl.col("needs") == needs) & shown for needs, shown in enough.items())


def _only(words: str) -> str:
    """Return a pattern for nothing but these words."""
    return f"^(?:(?:{words})(?: |$))*$"


@cache
def _is_of_others() -> pl.Expr:
    """Return whether the word behind the name makes it another business's name, or an address."""
    is_one_word = ~pl.col("phrase").str.strip_prefix(_STARTS).str.contains(" ", literal=True)
    of_business = _next_word().is_in(_words_with("B")) & ~_next_word().is_in(SHOP_WORDS)
    return _next_word().is_in([*list_trades(), *_words_with("a")]) | (is_one_word & of_business)


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
