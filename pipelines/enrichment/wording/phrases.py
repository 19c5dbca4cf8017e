"""Find phrases in texts. The lists of counterparties and the rules share this search.

A phrase is one or more adjacent whole words. Phrases and texts are compared as bare words: upper case, without
apostrophes, and with a space for everything that is neither a letter nor a digit.

Numbers in a text that occur in no phrase are only references. Each becomes `0`, or `0000` if it has six digits or more,
together with any letters that follow it: INV4410 becomes INV 0. So texts that differ only in references become equal.
Numbers that occur in a phrase stay, such as the 7 of 7 ELEVEN.

`*` at the end of a phrase matches any continuation of its last word, because banks cut names short. `^` as the first
word stands for the beginning of the text, `$` as the last word for its end. All phrases are searched for at once
(Aho–Corasick), so the time per text does not depend on the length of the lists.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

import polars as pl

_INVISIBLE = r"[\p{Cf}\u{FE00}-\u{FE0F}]"  # zero-width and direction marks, variation selectors
_NUMBER, _LONG_NUMBER = r"\p{N}[\p{L}\p{N}]*", r"\p{N}{6,}[\p{L}\p{N}]*"
_ANY, _ANY_LONG = "0", "0000"
_PROTECTED = {str(digit): chr(0xE000 + digit) for digit in range(10)}  # private-use letters hide digits to be kept
_MARKS = {"\ue00a": _ANY, "\ue00b": _ANY_LONG}  # each stands for a replaced number until spaces are added around it
_NO_WORDS = r"^*\|[]{}"  # of regular expressions and other patterns; a $ within words is only a sign
_FEW = 20_000  # texts; for more than these, filtering the phrases by the texts' words costs more time than it saves
_FOUND = pl.Schema({"text_number": pl.UInt32(), "phrase": pl.UInt32()})


def find_phrase_fault(phrase: str) -> str | None:
    """Return what is wrong with a listed phrase, and what to write; None if it is sound."""
    inner = phrase.removeprefix("^ ").removesuffix(" $").removesuffix("*")
    if not any(each.isalnum() for each in inner):
        return f"{phrase!r} has no letter or digit: write words of the bank's text"
    if any(sign in inner for sign in _NO_WORDS):
        return f"{phrase!r} is not plain words: only ^ at the beginning, and * or $ at the end, have a meaning"
    return None


def words_of(text: pl.Expr, numbers: tuple[str, ...] = ()) -> pl.Expr:
    """Return upper-case text in the form that phrases are searched in, with marked ends: ` ^ TELSTRA 0 $ `.

    Args:
        numbers: words with digits that are part of phrases (`Phrasebook.numbers`), to be kept.
    """
    protected = " " + bare_words(text) + " "
    for _ in range(2 if numbers else 0):  # adjacent words share a space, so one pass replaces only every other word
        protected = protected.str.replace_many(*_hide_digits(numbers))
    any_short, any_long = _MARKS
    marked = protected.str.replace_all(_LONG_NUMBER, any_long).str.replace_all(_NUMBER, any_short)
    read = {f"{gap}{mark}": f" {number}" for gap in (" ", "") for mark, number in _MARKS.items()}
    restored = read | {hidden: digit for digit, hidden in _PROTECTED.items()}
    return pl.format(" ^{}$ ", marked.str.replace_many(list(restored), list(restored.values()), leftmost=True))


@lru_cache(maxsize=8)  # of the lists; those of declared parties change
def _hide_digits(numbers: tuple[str, ...]) -> tuple[pl.Expr, pl.Expr]:
    """Return the numbers as words, and with their digits hidden: each one list."""
    words = pl.Series([f" {number} " for number in numbers])
    hidden = words.str.replace_many(_PROTECTED)
    return pl.lit(words.implode()), pl.lit(hidden.implode())


def search_literals(phrases: Sequence[str]) -> list[str]:
    """Return the text to search for, for each phrase: its words between spaces. No space follows a final `*`."""
    phrase = pl.col("phrase")
    begins = pl.when(phrase.str.starts_with("^ ")).then(pl.lit(" ^ ")).otherwise(pl.lit(" "))
    ends = pl.when(phrase.str.ends_with(" $")).then(pl.lit(" $ ")).otherwise(pl.lit(" "))
    closed = pl.when(phrase.str.ends_with("*")).then(pl.lit("")).otherwise(ends)
    literal = pl.concat_str(begins, bare_words(phrase.str.to_uppercase()), closed)
    return pl.DataFrame({"phrase": phrases}, {"phrase": pl.String}).select(literal).to_series().to_list()


def bare_words(text: pl.Expr) -> pl.Expr:
    """Return the words of upper-case text with single spaces between them. Numbers stay as they are.

    Apostrophes and invisible marks are removed. Everything else but letters and digits becomes a space.
    """
    visible = text.str.replace_all(_INVISIBLE, "").str.replace_all("['’]", "")
    parted = visible.str.replace_all(r"[^\p{L}\p{N} ]+", " ")
    return parted.str.replace_all(" {2,}", " ").str.strip_chars(" ")


def read_together(columns: Sequence[pl.Series], read: Callable[[pl.Series], pl.Series]) -> list[pl.Series]:
    """Read the texts of several columns at once: to prepare a search takes longer than to search a few texts."""
    height, found = len(columns[0]), read(pl.concat(columns))
    return [found.slice(nth * height, height) for nth in range(len(columns))]


class Phrasebook:
    """Phrases, numbered from 0 and prepared for the search. The same phrase may occur more than once."""

    def __init__(self, phrases: Sequence[str]) -> None:
        searched = pl.DataFrame({"literal": search_literals(phrases)}, {"literal": pl.String})
        self._numbers = searched.with_row_index("phrase")
        self._literals = searched["literal"].unique(maintain_order=True)
        self._words = pl.Series([_first_whole_word(literal) for literal in self._literals], dtype=pl.String)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """Words with digits in the phrases, except those that stand for any number."""
        words = {word for literal in self._literals for word in literal.split()}
        return tuple(sorted(word for word in words - {_ANY, _ANY_LONG} if any(each.isnumeric() for each in word)))

    def find(self, texts: pl.Series) -> pl.DataFrame:
        """Return a row for each occurrence: `text_number` (position in `texts`) and `phrase` (its number), in no order.

        Args:
            texts: as `words_of` makes them.
        """
        literals = self._literals if len(texts) > _FEW else self._select_possible(texts)
        if literals.is_empty():
            return pl.DataFrame(schema=_FOUND)
        return (
            pl.DataFrame({"text": texts})
            .with_row_index("text_number")
            .select("text_number", literal=pl.col("text").str.extract_many(literals.implode(), overlapping=True))
            .explode("literal")
            .drop_nulls()
            .join(self._numbers, on="literal")
            .select("text_number", "phrase")
        )

    def _select_possible(self, texts: pl.Series) -> pl.Series:
        """Return only literals that share a word with the texts: preparing a search for thousands takes long."""
        words = texts.str.split(" ").explode().unique()
        return self._literals.filter(self._words.is_in(words.implode()) | self._words.is_null())


def _first_whole_word(literal: str) -> str | None:
    """Return the literal's first word that is whole in every matching text; None if its only word ended in `*`."""
    whole = literal.split() if literal.endswith(" ") else literal.split()[:-1]
    return next((word for word in whole if word not in ("^", "$")), None)
