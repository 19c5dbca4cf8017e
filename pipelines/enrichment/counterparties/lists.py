"""All lists of names that one build knows: counterparties, brands, and the beginnings that banks leave of both."""

from dataclasses import dataclass
from functools import cache

import polars as pl

from pipelines.enrichment.counterparties import brands, counterparties
from pipelines.enrichment.counterparties.brands import Brands
from pipelines.enrichment.counterparties.counterparties import Directory
from pipelines.enrichment.counterparties.cut_names import CutNames


@dataclass(frozen=True, eq=False)
class Lists:
    directory: Directory
    brands: Brands
    cut_names: CutNames


def combine(directory: Directory, listed_brands: Brands) -> Lists:
    """Return the lists, with the beginnings of both."""
    return Lists(directory, listed_brands, CutNames(pl.concat([directory.phrases, listed_brands.phrases])))


@cache
def load() -> Lists:
    """Load the lists of `rules/`, once per process.

    Raises:
        RuleError: names the file, the counterparty and the reason of every fault.
    """
    return combine(counterparties.load(), brands.load())
