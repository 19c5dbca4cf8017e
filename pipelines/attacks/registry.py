"""All attacks and lookalikes by slug: their words in `attacks.yaml` and the functions that change the ledger."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from random import Random

import msgspec

from pipelines.attacks import held_out, payments, rewriting
from pipelines.attacks.attack import Attack, Change, Detectability, Evidence, Lookalike
from pipelines.vocabulary.rule_files import parse
from pipelines.vocabulary.typed import convert

FILE = "attacks.yaml"
SHARE_HELD_OUT = 3  # one attack in this many is held out
_CHANGES: Mapping[str, Change] = {**held_out.CHANGES, **payments.CHANGES, **rewriting.CHANGES}


class Description(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An attack in words. `lookalikes`: a paragraph for each, by slug. `is_later`: added after the draw."""

    words: str
    detectability: Detectability
    needs: tuple[Evidence, ...]
    lookalikes: dict[str, str]
    is_later: bool = False


@cache
def load_descriptions() -> Mapping[str, Description]:
    """Return the words of all attacks, by slug."""
    text = files("pipelines.attacks").joinpath(FILE).read_text("utf-8")
    return convert(parse(text, FILE), dict[str, Description])


@cache
def draw_held_out() -> frozenset[str]:
    """Draw the third of the attacks that is held out."""
    slugs = sorted(slug for slug, each in load_descriptions().items() if not each.is_later)
    return frozenset(Random("held out").sample(slugs, -(-len(slugs) // SHARE_HELD_OUT)))


@cache
def attacks() -> Mapping[str, Attack]:
    """Return all attacks by slug."""
    return {
        slug: Attack(slug, each.words, slug in draw_held_out(), _CHANGES[slug], each.detectability, each.needs)
        for slug, each in load_descriptions().items()
    }


@cache
def lookalikes() -> Mapping[str, Lookalike]:
    """Return all lookalikes by slug."""
    return {
        slug: Lookalike(slug, words, attack in draw_held_out(), _CHANGES[slug], attack)
        for attack, each in load_descriptions().items()
        for slug, words in each.lookalikes.items()
    }
