"""The lists that narratives are read with: counterparties, brands, their names cut short, and rules of words."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import polars as pl

from pipelines.enrichment.counterparties import brands, counterparties, patterns
from pipelines.enrichment.counterparties.brands import Brands
from pipelines.enrichment.counterparties.counterparties import PURPOSES, Directory
from pipelines.enrichment.counterparties.cut_names import CutNames
from pipelines.enrichment.counterparties.patterns import Rulebook
from pipelines.vocabulary.rule_files import load_rules


@dataclass(frozen=True, eq=False)
class Lists:
    directory: Directory
    brands: Brands
    cut_names: CutNames
    rulebook: Rulebook
    name: str | None = None  # of the content: rows read with lists of this name are not read again; None: always
    is_own: bool = False  # with a client's own rules, which may match far more than the shipped ones


def combine(directory: Directory, listed_brands: Brands, rulebook: Rulebook | None = None) -> Lists:
    """Return the lists with their names cut short, and the rules (the shipped ones by default)."""
    cut_names = CutNames(pl.concat([directory.phrases, listed_brands.phrases]))
    return Lists(directory, listed_brands, cut_names, rulebook or patterns.load())


@cache
def load() -> Lists:
    """Load the lists of `rules/`, once per process."""
    return replace(combine(counterparties.load(), brands.load()), name="shipped")


def load_without(is_left_out: Callable[[str], bool]) -> Lists:
    """Return the lists of `rules/` without counterparties and brands of which any name makes `is_left_out` true."""
    parties = [party for party in counterparties.load_parties() if not any(map(is_left_out, (party.name, *party.says)))]
    listed = brands.read_list()
    remaining = [not any(map(is_left_out, names)) for names in listed.select("name", "spelling").rows()]
    return combine(Directory(parties), Brands(listed.filter(pl.Series(remaining, dtype=pl.Boolean))))


def businesses() -> Iterator[tuple[str, str, str]]:
    """Yield the name of each business in either list, its name as printed, and the category of payments to it."""
    purposes = {slug: fields for slug, fields in load_rules(PURPOSES).items() if fields["kind"] == "business"}
    categories = {slug: fields["debit"] for slug, fields in purposes.items() if "debit" in fields}
    for name, purpose, spelling in brands.read_list().select("name", "purpose", "spelling").rows():
        if purpose in categories:
            yield name, spelling, categories[purpose]
    for party in counterparties.load_parties():
        if party.purpose.slug in categories and not party.purpose.is_adverse:
            yield party.name, party.name, categories[party.purpose.slug]
