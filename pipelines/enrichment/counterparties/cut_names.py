"""Complete listed names that a bank cut short: TYRO BUSINESS LO is TYRO BUSINESS LOAN.

Banks cut names at 12 to 22 letters, usually in the middle of a word. Such a beginning stands for a listed name if

- it is all that follows the words about the payment, or it ends at the 16th letter, where the remitter's name ends in a
  file of direct entries;
- it has at least MIN_LETTERS, with whole words before the cut one, and MIN_CUT or more of the cut word;
- what is left of the cut word is not a word itself: BLUE MOUNTAIN does not stand for BLUE MOUNTAINS CITY COUNCIL;
- all listed names that begin so belong to one counterparty with one purpose, or begin with the shortest of them.

Names of debt collectors, bookmakers and insolvency firms count only as a whole.

The lists and rules are then tried on the whole name as well as on the words as printed.
"""

from functools import cache

import polars as pl

from pipelines.enrichment.names import name_words
from pipelines.enrichment.wording.phrases import bare_words, read_together

MIN_LETTERS = 12  # the shortest field that banks print names in
REMITTER = 16  # letters of a remitter's name in a file of direct entries (Australian Payments Network)
MIN_CUT = 2  # letters of the cut word: one may be the P of PTY or an initial (our judgement)
SHORT_CUT = 3  # letters: a cut word this short may be another word, so two whole words must precede it (our judgement)
_OF_PEOPLE = frozenset("GSXgsxP")  # letters (`name_words`) of words that a short rest often equals by chance: LO, LI
_LAST_NUMBERS = r"(?: [0-9][0-9A-Z]*)+$"
_AFTER_ALL = chr(0x10FFFF)  # sorts after every letter


class CutNames:
    """The listed names in order, so that names with the same beginning are neighbours."""

    def __init__(self, listed: pl.DataFrame) -> None:
        """Prepare the search.

        Args:
            listed: `phrase` (see `phrases`), and `party`, as of a `Directory`.
        """
        phrase = pl.col("phrase")
        whole_words = phrase.str.replace(r"[^ ]+\*$", "").str.split(" ").explode(empty_as_null=True)
        named = listed.select("party", name=bare_words(phrase)).filter(pl.col("name").str.contains(" ", literal=True))
        ordered = named.unique().sort("name", "party")
        self._names, self._parties = ordered["name"], ordered["party"]
        self._runs = self._parties.rle_id()  # equal for neighbours of the same party
        self._words = {*listed.select(whole_words).to_series().unique().to_list(), *name_words.load().letters}

    def find_whole(self, clean: pl.Series) -> pl.Series:
        """Return for each clean description the listed name that it has cut short, or null."""
        beginnings = clean.alias("clean").to_frame().select(_list_beginnings())
        return pl.select(pl.coalesce(read_together(beginnings.get_columns(), self._complete))).to_series()

    def _complete(self, cut: pl.Series) -> pl.Series:
        """Return the listed name that each text of bare words was cut from, or null."""
        places = pl.DataFrame(
            {
                "cut": cut,
                "first": self._names.search_sorted(cut),
                "last": self._names.search_sorted(cut + _AFTER_ALL).cast(pl.Int64) - 1,
            }
        ).with_row_index("row")
        begun = places.filter(pl.col("first") <= pl.col("last"), _is_long_enough())
        begun = begun.filter(~self._are_words(begun.select(_rest_of_word()).to_series()))
        name = self._names.gather(begun["first"])
        is_of_one = self._runs.gather(begun["first"]) == self._runs.gather(begun["last"])
        ends = pl.DataFrame({"name": name, "last": self._names.gather(begun["last"])})
        goes_on = ends.select(pl.col("last").str.starts_with(pl.col("name") + " ")).to_series()
        counts = (is_of_one | goes_on) & self._parties.gather(begun["first"]).is_not_null()
        whole = begun.select("row", whole=name).filter(counts)
        return places.join(whole, on="row", how="left", maintain_order="left", validate="1:1")["whole"]

    def _are_words(self, rests: pl.Series) -> pl.Series:
        """Return whether the rest of each cut word is a word by itself."""
        listed = (rest in (_short_words() if len(rest) <= SHORT_CUT else self._words) for rest in rests)
        return pl.Series(listed, dtype=pl.Boolean)


@cache
def _short_words() -> frozenset[str]:
    """Return the words of which a short one is taken for a word by itself."""
    return frozenset(word for word, letter in name_words.load().letters.items() if letter not in _OF_PEOPLE)


@cache
def _list_beginnings() -> list[pl.Expr]:
    """Return the parts of `clean` that may be the beginning of a name, as bare words."""
    text = pl.col("clean")
    return [
        bare_words(text).str.replace(_LAST_NUMBERS, "").alias("all"),
        bare_words(name_words.skip_payment_words(text)).str.replace(_LAST_NUMBERS, "").alias("after_payment"),
        bare_words(text.str.extract(rf"^(.{{{REMITTER}}}) ")).alias("of_remitter"),
    ]


@cache
def _is_long_enough() -> pl.Expr:
    letters = _rest_of_word().str.len_chars()
    needed = pl.when(letters <= SHORT_CUT).then(2).otherwise(1)
    words_before = pl.col("cut").str.count_matches(" ", literal=True)
    return (pl.col("cut").str.len_chars() >= MIN_LETTERS) & (letters >= MIN_CUT) & (words_before >= needed)


@cache
def _rest_of_word() -> pl.Expr:
    """Return what is left of the cut word."""
    return pl.col("cut").str.extract(" ([^ ]+)$")
