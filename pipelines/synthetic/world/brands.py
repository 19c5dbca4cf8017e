"""Canonical names of brands, and which brands training must not see.

Statements print `OPTUS BILLING` or `FACEBK *{a10}`, and people say Optus or Facebook. Where the canonical name is not
the printed one in title case without its legal form, `brands.yaml` states it. A fifth of the brands is held out, and so
are two banks (`styles`): a model must not have met them before it is measured on them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import TypeVar

from pipelines.synthetic.data_files import Record, load
from pipelines.synthetic.world.model import Part

_Thing = TypeVar("_Thing")


class Brands(Record, frozen=True):
    """The content of `brands.yaml`, which explains the fields."""

    irreplaceable: frozenset[str]
    legal_forms: frozenset[str]
    small_words: frozenset[str]
    abbreviations: frozenset[str]
    printed: dict[str, tuple[str, ...]]


@cache
def brands() -> Brands:
    return load("brands.yaml", Brands)


@cache
def canonical(printed: str) -> str:
    """Return the name that people use for what a statement prints, without random numbers."""
    stem = printed.partition("{")[0].strip(" -")
    known = _canonical_by_printed()
    return known.get(stem) or known.get(stem.rstrip("*")) or _in_title_case(stem)


@cache
def _canonical_by_printed() -> Mapping[str, str]:
    return {printed: name for name, all_printed in brands().printed.items() for printed in all_printed}


def _in_title_case(printed: str) -> str:
    """Return the name in title case without its legal form. Small words and abbreviations stay as they are."""
    if not printed:
        return ""
    first, *others = printed.split()
    words = [first, *(word for word in others if word.upper() not in brands().legal_forms)]
    return " ".join(_word_in_title_case(word, place) for place, word in enumerate(words))


def _word_in_title_case(word: str, place: int) -> str:
    if word in brands().abbreviations or not word.isupper():
        return word
    return word.lower() if place and word in brands().small_words else word.capitalize()


@cache
def is_held_out(brand: str) -> bool:
    """Return whether training must not see a brand (canonical name): the same in every process and version."""
    if not brand or brand in brands().irreplaceable:
        return False
    return int.from_bytes(sha256(brand.casefold().encode()).digest()[:4]) % 5 == 0


def select_allowed(things: Sequence[_Thing], brand: Callable[[_Thing], str], part: Part | None) -> Sequence[_Thing]:
    """Return the things that businesses of a part of the portfolio may meet. For training there may be none."""
    if part != "train":
        return things
    return [thing for thing in things if not is_held_out(brand(thing))]


def available(things: Sequence[_Thing], brand: Callable[[_Thing], str], part: Part | None) -> Sequence[_Thing]:
    """Return the things that a business may choose from: those allowed, or for a test those held out, if any."""
    if part != "test":
        return select_allowed(things, brand, part)
    return [thing for thing in things if is_held_out(brand(thing))] or things
