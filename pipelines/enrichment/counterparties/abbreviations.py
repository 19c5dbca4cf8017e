"""Spell out words of businesses' names that terminals and banks abbreviate or cut: PLBG, IRRIGATI, GUEST HSE.

The name of a business has 18 to 25 places in a card's line, so long words are shortened and the last one is often cut.
`rules/abbreviations.yaml` lists words of trades, with what is printed instead. A cut last word that is not listed
stands for a trade that a rule names by one word (EXTERMINATIN, HIBACH) if

- it has at least MIN_CUT letters, and is no word of our lists;
- all words of rules and lists that begin so are trades of one category, or the same word with another ending.

Lists and rules are tried on the text in full as well as on the words as printed.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import polars as pl

from pipelines.enrichment.counterparties import brands, counterparties, patterns
from pipelines.enrichment.names import name_words
from pipelines.enrichment.wording.phrases import bare_words
from pipelines.vocabulary.rule_files import Fault, RuleError, load_rules

FILE = "abbreviations.yaml"
ANYWHERE, LAST = "anywhere", "last"
MIN_CUT = 5  # letters of a cut word that is completed by a rule's word (our judgement)
MIN_SURE = 0.75  # confidence of rules whose words are completed; those below are mere hints (our judgement)
_AFTER_ALL = chr(0x10FFFF)  # sorts after every letter


def spell_out(clean: pl.Series, is_by_card: pl.Series) -> pl.Series:
    """Return the bare words of each text with its abbreviations in full; null where there are none.

    Args:
        clean: clean descriptions.
        is_by_card: whether each payment is by card: only there, the last word may be cut.
    """
    printed = clean.to_frame("clean").select(printed=" " + bare_words(pl.col("clean")) + " ").to_series()
    short, in_full = _pad(load()[ANYWHERE])
    last = printed.to_frame().select(pl.col("printed").str.extract(" ([A-Z]+) $")).to_series()
    is_cut = is_by_card & last.is_in(list(_load_cut_words())).fill_null(value=False)
    affected = (printed.str.contains_any(short) | is_cut).arg_true()
    # Twice, because adjacent words share a space, and one pass replaces only every other of them.
    spelt = printed.gather(affected).str.replace_many(short, in_full).str.replace_many(short, in_full)
    cut = pl.DataFrame({"spelt": spelt, "last": last.gather(affected), "is_cut": is_cut.gather(affected)})
    return pl.repeat(None, len(clean), dtype=pl.String, eager=True).scatter(
        affected, cut.select(_complete()).to_series()
    )


@cache
def _complete() -> pl.Expr:
    """Return `spelt` with its last word in full where it is cut."""
    whole = pl.col("last").replace_strict(_load_cut_words(), default=None, return_dtype=pl.String)
    return pl.when("is_cut").then(pl.col("spelt").str.strip_suffix(pl.format("{} ", "last")) + whole).otherwise("spelt")


def _pad(words: Mapping[str, str]) -> tuple[list[str], list[str]]:
    return [f" {word} " for word in words], [f" {whole} " for whole in words.values()]


@cache
def _load_cut_words() -> Mapping[str, str]:
    """Return what the last word of a card payment's name may be cut to, and the word in full."""
    sections = load()
    known = _list_known_words() | sections[ANYWHERE].keys()
    return {**complete_trades(_list_trades(), known), **sections[LAST]}


def complete_trades(trades: Mapping[str, frozenset[str]], known: frozenset[str]) -> dict[str, str]:
    """Return every beginning that stands for a trade, with the trade.

    Args:
        trades: the word of each trade, with the categories of the rules that name it.
        known: other words, which no beginning may equal, and with which it must not be confused.
    """
    words, others = sorted(trades), sorted(known | trades.keys())
    beginnings = {word[:length] for word in words for length in range(MIN_CUT, len(word))} - known - trades.keys()
    completed = {each: _find_words_with(words, each) for each in beginnings}
    return {
        each: candidates[0]
        for each, candidates in completed.items()
        if len({trades[word] for word in candidates}) == 1
        and all(_is_alike(word, candidates) for word in _find_words_with(others, each))
    }


def _find_words_with(ordered: Sequence[str], beginning: str) -> Sequence[str]:
    """Return the words that have this beginning, given all words in alphabetical order."""
    return ordered[bisect_left(ordered, beginning) : bisect_left(ordered, beginning + _AFTER_ALL)]


def _is_alike(word: str, others: Sequence[str]) -> bool:
    return any(word.startswith(other) or other.startswith(word) for other in others)


def _list_trades() -> Mapping[str, frozenset[str]]:
    """Return the single words of rules for payments to a trade, with the categories of these rules."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for rule in patterns.load_shipped():
        if rule.tier == "indicative" and rule.confidence >= MIN_SURE and "debit" in rule.category:
            for word in filter(str.isalpha, rule.any):
                found[word].add(rule.category["debit"])
    return {word: frozenset(categories) for word, categories in found.items()}


def _list_known_words() -> frozenset[str]:
    phrases = [phrase for party in counterparties.load_parties() for phrase in party.says]
    phrases += [*brands.read_list()["spelling"], *(phrase for rule in patterns.load_shipped() for phrase in rule.any)]
    return (
        frozenset(word for phrase in phrases for word in phrase.split() if word.isalpha())
        | name_words.load().letters.keys()
    )


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
