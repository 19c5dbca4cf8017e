"""Turn texts into shapes: one letter per word, by lists of words.

`OSKO PAYMENT TO JOHN SMITH WAGES` has the shape `WWFGSW`: two words of the payment rail, a marker that a name follows,
a given name, a family name, a purpose. There are many texts and few shapes, so names are found in shapes
(`name_shapes`), and each word is looked up once. The lists are in `rules/`. A word in several lists counts for the
first of `LISTS`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import polars as pl

from pipelines.vocabulary.rule_files import RuleError, load_rules
from pipelines.vocabulary.schemas import CounterpartyKind

WORDS_FILE, GIVEN_FILE, FAMILY_FILE, BROKERS_FILE = (
    "name_words.yaml",
    "given_names.yaml",
    "surnames.yaml",
    "intermediaries.yaml",
)
# Lists of `name_words.yaml` with the letter of their words. `acronyms` and `not_acronyms` concern the display only.
LISTS: Mapping[str, str] = {
    "titles": "T",
    "titles_or_debits": "R",
    "legal_forms": "L",
    "markers": "F",
    "purposes": "W",
    "edge_purposes": "w",
    "months_or_names": "J",
    "particles": "P",
    "streets": "a",
    "connectors": "o",
    "countries": "C",
    "states": "Z",
    "business": "B",
}
SHOWN_LISTS = ("acronyms", "not_acronyms")
WEAK = "also_words"  # the list of names that are ordinary words as well
STARRED, LEADING = "M", "m"  # letters of intermediaries' prefixes, with an asterisk and without
UNKNOWN = "U"
REFERENCE_LETTERS = 8  # of a bank's random reference, of those that have no digit by chance; our judgement
MIN_RARE_PAIRS = 2  # of letters in such a reference; our judgement
MAX_CHARACTERS, MAX_WORDS = 400, 40  # of a text that are read: names are near its start

_SIGNS: Mapping[str, str] = {  # signs that separate words, or are words themselves
    **dict.fromkeys("&+", " & "),
    **dict.fromkeys("();|\\\u2013", " - "),
    **dict.fromkeys(',:[]{}"#<>=?!_~%$@^\u201c\u201d', " "),
}
_SPELLINGS: Mapping[str, str] = {  # the first that fits counts; a sign is replaced together with the spaces around it
    **{f"ANZ {channel}": "ONLINE" for channel in ("INTERNET BANKING", "M-BANKING", "MOBILE BANKING")},
    **{f" {word} FEE": " FEE" for word in ("MGMT", "MGT", "MANAGEMENT")},
    **{f" LIVING {word}": " EXPENSES" for word in ("EXPENSES", "EXPENSE", "EXP")},
    "CASH & CARRY": "CASH-&-CARRY",
    **dict.fromkeys((" * ", " *", "* ", "*", "_* ", "_*"), "* "),
    ". ": " ",
    "\u2019": "'",
    "\u2018": "'",
    "`": "'",
    **{spelt: to for sign, to in _SIGNS.items() for spelt in (f" {sign} ", f" {sign}", f"{sign} ", sign)},
}
_UNLISTED_LETTERS = (  # letters of words in no list; the first pattern that fits counts
    (r"\*$", "Y"),  # a name before an asterisk: CANVA* I04281
    (r"^[A-Z]$", "I"),
    (r"\.(?:COM|NET|ORG|AU|CO|IO|ME|INFO|APP|AI|US|NZ|UK|BIZ|STORE|SHOP|TV)(?:$|[./])", "N"),
    (r"^(?:[A-Z]{6,}[0-9]{1,2}|[0-9][A-Z]{1,2}|[0-9]-[A-Z]{3,}|4X4|24/7|360|365)$", UNKNOWN),  # SERVICEM8, 2XU
    (r"^[0-9]{1,2}$", "d"),
    (r"[0-9]", "D"),
    (r"\p{L}", UNKNOWN),
    ("", "_"),  # a lone sign
)


@dataclass(frozen=True)
class Vocabulary:
    """Every listed word with its letter, intermediaries by the words that name them, and how words are displayed."""

    letters: Mapping[str, str]
    brokers: Mapping[str, str]  # SQ* → Square
    broker_kinds: Mapping[str, str]  # Square → processor
    joined: Mapping[str, str]  # AMZN MKTP → AMZN-MKTP*, so that the name of an intermediary is one word
    acronyms: frozenset[str]
    not_acronyms: frozenset[str]


@cache
def split_words() -> pl.Expr:
    """Split `clean_description` into words: List(String). A sign is either part of a word or a word itself."""
    signs = {**load().joined, **_SPELLINGS}
    return (
        (pl.col("clean_description").str.head(MAX_CHARACTERS) + " ")
        .str.replace_many(list(signs), list(signs.values()), leftmost=True)
        .str.strip_chars(" .")
        .str.split(" ")
        .list.head(MAX_WORDS)
    )


def read_shapes(found: pl.Series) -> pl.Series:
    """Return the shape of each text: one letter per word. Words repeat, so each distinct one is looked up once."""
    word = found.explode().drop_nulls().unique()
    listed = pl.Series([load().letters.get(each) or _letter_of_reference(each) for each in word], dtype=pl.String)
    letter = pl.DataFrame({"word": word, "listed": listed}).select(_letter()).to_series()
    shape = pl.element().replace_strict(word, letter, default="", return_dtype=pl.String)
    return found.to_frame("words").select(pl.col("words").list.eval(shape).list.join("")).to_series()


def _letter_of_reference(word: str) -> str | None:
    """Return the letter of a number if a word is probably a bank's random reference (NFYFMMQZ), else None.

    Two or more of its pairs of letters occur at most once in all listed words. Of eight-letter words in the lists of
    counterparties and brands, which were not used, about one in a thousand is like that.
    """
    if len(word) != REFERENCE_LETTERS or not word.isalpha():
        return None
    pairs = _count_pairs()
    return "D" if sum(pairs[first + second] <= 1 for first, second in pairwise(word)) >= MIN_RARE_PAIRS else None


@cache
def _count_pairs() -> Counter[str]:
    return Counter(first + second for word in load().letters for first, second in pairwise(word))


def skip_payment_words(clean: pl.Expr) -> pl.Expr:
    """Return upper-case text from where a name may begin: without words of payment, numbers and intermediaries."""
    return clean.str.replace(_starred_prefix(), "").str.replace(_payment_words(), "")


@cache
def any_starred() -> str:
    """Return a pattern for an intermediary with an asterisk: SQ *, ZETTLE_*."""
    starred = [re.escape(_split_spelling(word)) for word in load().brokers if word.endswith("*")]
    return rf"(?:^|[^A-Z0-9])(?:{'|'.join(starred)})[ _]?\*"


@cache
def _starred_prefix() -> str:
    """Return a pattern for the text up to the last intermediary with an asterisk."""
    return f"^(?:.* )?(?:{any_starred()}) ?"


@cache
def _payment_words() -> str:
    """Return a pattern for all the words of payment, intermediaries and numbers that a text begins with."""
    of_payment = [word for word, letter in load().letters.items() if letter in ("W", "F", LEADING)]
    return rf"^(?:(?:{'|'.join(map(re.escape, of_payment))}|[0-9][^ ]*)[^A-Z0-9]+)+"


@cache
def _letter() -> pl.Expr:
    """Return the letter of a listed `word`, else that of the first pattern which fits."""
    *cases, (_, last) = _UNLISTED_LETTERS
    fitting = (pl.when(pl.col("word").str.contains(pattern)).then(pl.lit(letter)) for pattern, letter in cases)
    return pl.coalesce("listed", *fitting, pl.lit(last))


@cache
def load() -> Vocabulary:
    """Load the lists of `rules/`, once per process.

    Raises:
        RuleError: names the file, the entry and the reason of every fault.
    """
    return parse_vocabulary({name: load_rules(name) for name in (WORDS_FILE, GIVEN_FILE, FAMILY_FILE, BROKERS_FILE)})


def parse_vocabulary(lists: Mapping[str, Any]) -> Vocabulary:
    """Parse the content of the files, given by name.

    Raises:
        RuleError: with all faults together.
    """
    faults = [*_list_faults(lists), *_broker_faults(lists[BROKERS_FILE])]
    if faults:
        raise RuleError("\n".join(faults))
    of_words, brokers = lists[WORDS_FILE], lists[BROKERS_FILE]
    named = {word: name for name, word, _ in _list_prefixes(brokers)}
    return Vocabulary(
        letters={
            **_letters_of_names(lists),
            **_letters_of_lists(of_words),
            **{word: letter for _, word, letter in _list_prefixes(brokers)},
        },
        brokers=named,
        broker_kinds={name: broker["kind"] for name, broker in brokers.items()},
        joined=dict(_list_joined_spellings(brokers)),
        acronyms=frozenset(of_words["acronyms"].split()),
        not_acronyms=frozenset(of_words["not_acronyms"].split()),
    )


def _letters_of_lists(of_words: Mapping[str, str]) -> dict[str, str]:
    found = {"&": "&", "AND": "&", "OF": "O", "THE": "H", "-": "_"}
    for name, letter in reversed(list(LISTS.items())):
        found |= dict.fromkeys(of_words[name].split(), letter)
    return found


def _letters_of_names(lists: Mapping[str, Any]) -> dict[str, str]:
    """Return the letters of names: G given, S family, X both; in lower case if they are ordinary words as well."""
    given, weak_given = _strong_and_weak(lists[GIVEN_FILE])
    family, weak_family = _strong_and_weak(lists[FAMILY_FILE])
    all_given, all_family = given | weak_given, family | weak_family
    both, strong, weak = all_given & all_family, given | family, weak_given & weak_family
    letter: dict[str, str] = {}
    for word in all_given | all_family:
        sign = "X" if word in both else "G" if word in all_given else "S"
        letter[word] = sign if word in strong and word not in weak else sign.lower()
    return letter


def _strong_and_weak(names: Mapping[str, str]) -> tuple[set[str], set[str]]:
    every = {
        name: {form for word in text.split() for form in (word, word.replace("'", ""))} for name, text in names.items()
    }
    weak = every.pop(WEAK)
    return set().union(*every.values()) - weak, weak


def _list_prefixes(brokers: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield each intermediary's canonical name, a word that names it, and that word's letter."""
    for name, broker in brokers.items():
        for phrase in broker.get("starred", ()):
            yield name, f"{_join_spelling(phrase)}*", STARRED
        for phrase in broker.get("leading", ()):
            yield (name, f"{_join_spelling(phrase)}*", STARRED) if " " in phrase else (name, phrase, LEADING)


def _list_joined_spellings(brokers: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for broker in brokers.values():
        for phrase in (*broker.get("starred", ()), *broker.get("leading", ())):
            if " " in phrase:
                for spelt in (phrase, phrase.replace("* ", " *"), phrase.replace("* ", "*")):
                    yield f"{spelt} ", f"{_join_spelling(phrase)}* "


def _split_spelling(word: str) -> str:
    """Return an intermediary's prefix as printed, without its asterisk. This reverses `_join_spelling`."""
    return word.removesuffix("*").replace("-", " ")


def _join_spelling(phrase: str) -> str:
    return phrase.replace("* ", "-").replace(" ", "-")


def _list_faults(lists: Mapping[str, Any]) -> Iterator[str]:
    wanted: Mapping[str, Sequence[str]] = {
        WORDS_FILE: (*LISTS, *SHOWN_LISTS),
        GIVEN_FILE: (WEAK,),
        FAMILY_FILE: (WEAK,),
    }
    for file, needed in wanted.items():
        yield from (f"{file}: the list {name} is missing" for name in needed if name not in lists[file])
        for name, text in lists[file].items():
            if not isinstance(text, str) or not text.split():
                yield f"{file}, {name}: takes words, separated by spaces"
            elif text != text.upper():
                small = next(word for word in text.split() if word != word.upper())
                yield f"{file}, {name}: takes words in upper case, not {small}"
            if file == WORDS_FILE and name not in needed:
                yield f"{file}: there is no list {name}"


def _broker_faults(brokers: Mapping[str, Any]) -> Iterator[str]:
    first: dict[str, str] = {}
    for name, broker in brokers.items():
        if not isinstance(broker, dict) or not {"kind"} < broker.keys() <= {"kind", "starred", "leading"}:
            yield f"{BROKERS_FILE}, {name}: takes kind, and starred or leading prefixes"
            continue
        if broker["kind"] not in CounterpartyKind.categories:
            yield f"{BROKERS_FILE}, {name}: there is no kind {broker['kind']}"
        for _, word, _ in _list_prefixes({name: broker}):
            if first.setdefault(word, name) != name:
                yield f"{BROKERS_FILE}, {name}: {word!r} is already listed under {first[word]}"
