"""Phrases found in texts: the one search that the lists of counterparties and the rules share.

A phrase is one or more whole words side by side. Phrase and text are compared as bare words: upper case, apostrophes
gone, whatever is neither letter nor digit a gap. A number that stands in no phrase tells nothing but this payment from
the next, so it reads `0`, or `0000` with six digits or more, and so does what follows it in its word: INV4410 reads
INV 0, while the biller's code 75556 and the 7 of 7 ELEVEN stay. Thereby texts that differ in references only become
one. A phrase that ends in `*` lets its last word go on, for banks cut names; `^` as its first word stands for the
beginning of the text and `$` as its last for the end. All phrases are looked for at once (Aho–Corasick), so a text
costs the same whether the lists are short or long.
"""

from collections.abc import Sequence
from functools import cached_property

import polars as pl

_INVISIBLE = r"[\p{Cf}\u{FE00}-\u{FE0F}]"  # zero-width and direction marks, variation selectors
_NUMBER, _LONG_NUMBER = r"\p{N}[\p{L}\p{N}]*", r"\p{N}{6,}[\p{L}\p{N}]*"
_ANY, _ANY_LONG = "0", "0000"
_PROTECTED = {str(digit): chr(0xE000 + digit) for digit in range(10)}  # letters of nobody, while numbers are replaced
_MARKS = {"\ue00a": _ANY, "\ue00b": _ANY_LONG}  # each stands for a replaced number until gaps are set
_FEW = 20_000  # texts: with more, looking their words up first costs more than it spares
_FOUND = pl.Schema({"text_number": pl.UInt32(), "phrase": pl.UInt32()})


def words_of(text: pl.Expr, numbers: Sequence[str] = ()) -> pl.Expr:
    """Upper-case text as phrases are looked for in it, its beginning and end marked: ` ^ TELSTRA 0 $ `.

    Args:
        numbers: words with digits that phrases ask for (`Phrasebook.numbers`).
    """
    retained = [f" {number} " for number in numbers]
    protected = " " + bare_words(text) + " "
    for _ in range(2 if retained else 0):  # neighbours share a gap: each pass finds every other one
        protected = protected.str.replace_many(retained, [_hide_digits(number) for number in retained])
    any_short, any_long = _MARKS
    marked = protected.str.replace_all(_LONG_NUMBER, any_long).str.replace_all(_NUMBER, any_short)
    read = {f"{gap}{mark}": f" {number}" for gap in (" ", "") for mark, number in _MARKS.items()}
    restored = read | {hidden: digit for digit, hidden in _PROTECTED.items()}
    return pl.format(" ^{}$ ", marked.str.replace_many(list(restored), list(restored.values()), leftmost=True))


def _hide_digits(text: str) -> str:
    return "".join(_PROTECTED.get(each, each) for each in text)


def search_literals(phrases: Sequence[str]) -> list[str]:
    """What is looked for: the words with the gaps that bound them; none at the end where the last word may go on."""
    phrase = pl.col("phrase")
    begins = pl.when(phrase.str.starts_with("^ ")).then(pl.lit(" ^ ")).otherwise(pl.lit(" "))
    ends = pl.when(phrase.str.ends_with(" $")).then(pl.lit(" $ ")).otherwise(pl.lit(" "))
    closed = pl.when(phrase.str.ends_with("*")).then(pl.lit("")).otherwise(ends)
    made = pl.concat_str(begins, bare_words(phrase.str.to_uppercase()), closed)
    return pl.DataFrame({"phrase": phrases}, {"phrase": pl.String}).select(made).to_series().to_list()


def bare_words(text: pl.Expr) -> pl.Expr:
    """The words of upper-case text with single spaces between them, numbers as they are. Apostrophes and marks that
    nobody sees are gone, and all else but letters and digits is a gap.
    """
    visible = text.str.replace_all(_INVISIBLE, "").str.replace_all("['’]", "")
    parted = visible.str.replace_all(r"[^\p{L}\p{N} ]+", " ")
    return parted.str.replace_all(" {2,}", " ").str.strip_chars(" ")


class Phrasebook:
    """Phrases by number, made ready for the search. The same words may be asked for under several numbers."""

    def __init__(self, phrases: Sequence[str]) -> None:
        asked = pl.DataFrame({"literal": search_literals(phrases)}, {"literal": pl.String})
        self._numbers = asked.with_row_index("phrase")
        self._literals = asked["literal"].unique(maintain_order=True)
        self._words = pl.Series([_first_whole_word(literal) for literal in self._literals], dtype=pl.String)

    @cached_property
    def numbers(self) -> list[str]:
        """The words with digits that its phrases hold, but for those that stand for any number."""
        words = {word for literal in self._literals for word in literal.split()}
        return sorted(word for word in words - {_ANY, _ANY_LONG} if any(each.isnumeric() for each in word))

    def find(self, texts: pl.Series) -> pl.DataFrame:
        """`text_number` (position in `texts`) and `phrase` (number) of all that is found, in no order; a phrase that
        stands in a text twice is found twice.

        Args:
            texts: as `words_of` makes them.
        """
        literals = self._literals if len(texts) > _FEW else self._possible(texts)
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

    def _possible(self, texts: pl.Series) -> pl.Series:
        """Literals of which the texts hold a word: the search is made ready anew each time, and thousands take long."""
        said = texts.str.split(" ").explode().unique()
        return self._literals.filter(self._words.is_in(said.implode()) | self._words.is_null())


def _first_whole_word(literal: str) -> str | None:
    """The first word that stands in every text where the literal does; none where its only word may go on."""
    whole = literal.split() if literal.endswith(" ") else literal.split()[:-1]
    return next((word for word in whole if word not in ("^", "$")), None)
