"""Spell out words of businesses' names that terminals and banks abbreviate or cut: PLBG, IRRIGATI, GUEST HSE.

The name of a business has 18 to 25 places in a card's line, so long words are shortened and the last one is often cut.
`rules/abbreviations.yaml` lists words of trades, with what is printed instead. Lists and rules are tried on the text in
full as well as on the words as printed.
"""

from collections.abc import Iterator, Mapping
from functools import cache

import polars as pl

from pipelines.enrichment.wording.phrases import bare_words
from pipelines.vocabulary.rule_files import Fault, RuleError, load_rules

FILE = "abbreviations.yaml"
ANYWHERE, LAST = "anywhere", "last"


def spell_out(clean: pl.Series, is_by_card: pl.Series) -> pl.Series:
    """Return the bare words of each text with its abbreviations in full; null where there are none.

    Args:
        clean: clean descriptions.
        is_by_card: whether each payment is by card: only there, the last word may be cut.
    """
    printed = clean.to_frame("clean").select(printed=" " + bare_words(pl.col("clean")) + " ").to_series()
    short, in_full = _pad(load()[ANYWHERE])
    last = printed.to_frame().select(pl.col("printed").str.extract(" ([A-Z]+) $")).to_series()
    is_cut = is_by_card & last.is_in(list(load()[LAST])).fill_null(value=False)
    few = (printed.str.contains_any(short) | is_cut).arg_true()
    spelt = printed.gather(few).str.replace_many(short, in_full).str.replace_many(short, in_full)  # words share a space
    cut = pl.DataFrame({"spelt": spelt, "last": last.gather(few), "is_cut": is_cut.gather(few)})
    return pl.repeat(None, len(clean), dtype=pl.String, eager=True).scatter(few, cut.select(_complete()).to_series())


@cache
def _complete() -> pl.Expr:
    """Return `spelt` with its last word in full where it is cut."""
    whole = pl.col("last").replace_strict(load()[LAST], default=None, return_dtype=pl.String)
    return pl.when("is_cut").then(pl.col("spelt").str.strip_suffix(pl.format("{} ", "last")) + whole).otherwise("spelt")


def _pad(words: Mapping[str, str]) -> tuple[list[str], list[str]]:
    return [f" {word} " for word in words], [f" {whole} " for whole in words.values()]


@cache
def load() -> Mapping[str, Mapping[str, str]]:
    """Load the list: for each section, what is printed and the word that it stands for, once per process.

    Raises:
        RuleError: an abbreviation stands for two words, or is itself a word of the list.
    """
    sections: Mapping[str, Mapping[str, str]] = load_rules(FILE)
    read = {section: list(_read_section(words)) for section, words in sections.items()}
    if faults := [*_find_faults(read)]:
        raise RuleError(*faults)
    return {section: dict(pairs) for section, pairs in read.items()}


def _read_section(words: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each abbreviation with its word. IRRIG* stands for all beginnings of IRRIGATION from IRRIG on."""
    for word, printed in words.items():
        for each in printed.split():
            if each.endswith("*"):
                yield from ((word[:length], word) for length in range(len(each) - 1, len(word)))
            else:
                yield each, word


def _find_faults(read: Mapping[str, list[tuple[str, str]]]) -> Iterator[Fault]:
    whole = {word for pairs in read.values() for _, word in pairs}
    for section, pairs in read.items():
        first: dict[str, str] = {}
        for printed, word in pairs:
            if first.setdefault(printed, word) != word:
                yield Fault(FILE, f"{printed} stands for {first[printed]}, too", (section, word), word)
            if printed in whole:
                yield Fault(FILE, f"{printed} is itself a word of the list", (section, word), word)
