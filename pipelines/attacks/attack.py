"""What an attack is: a change to a ledger, described in words, with parameters. The same seed gives the same change."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from random import Random
from typing import Any, Literal, TypeAlias

import polars as pl

from pipelines.attacks.ledger import PRINTED_DAY, count_breaks
from pipelines.vocabulary.taxonomy import GROUPS

# How many moved or reworded rows a reader notices, whatever their texts say; our judgement.
MIN_SETTLEMENTS = 5  # of a processor, moved to days that have one already
MIN_INVOICES = 3  # whose numbers were not issued yet
MIN_INSTALMENTS = 6  # of the same sum
INVOICE = re.compile(r"(?i)\binv(?:oice)?[ .:#-]*\d{3,}")
Evidence = Literal["words", "balances", "accounts", "true_days", "instalments"]
Detectability = Literal["visible", "partly", "invisible"]
"""`visible`: the supplied rows show it. `partly`: they do if what `needs` names is supplied. `invisible`: never."""


@dataclass(frozen=True, eq=False)
class Applicant:
    """A customer on the day of the application. The ledger (schema LEDGER) ends on that day or before."""

    ledger: pl.DataFrame
    applied_on: date
    name: str = ""  # of the business, as statements print it
    owner: str = ""
    related: tuple[str, ...] = ()  # companies and trusts of the same people


Change: TypeAlias = Callable[..., pl.DataFrame]
"""Takes `(applicant, rng, **parameters)` and returns the changed ledger; unchanged if the applicant can't do it."""


@dataclass(frozen=True)
class Manipulation:
    """A change to a ledger: an attack or a lookalike."""

    slug: str
    words: str  # what is done, and what it leaves behind
    held_out: bool  # written without knowledge of the rules
    change: Change

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return the names of the parameters with their defaults."""
        declared = inspect.signature(self.change).parameters.values()
        return {each.name: each.default for each in declared if each.kind is each.KEYWORD_ONLY}

    def apply(self, applicant: Applicant, seed: str, **parameters: object) -> pl.DataFrame:
        """Return the changed ledger. It depends only on these values.

        Args:
            seed: should contain the customer, too, so that customers are changed in different ways.

        Raises:
            TypeError: there is no such parameter.
        """
        return self.change(applicant, Random(f"{seed}/{self.slug}"), **parameters)


@dataclass(frozen=True)
class Attack(Manipulation):
    """A change that makes a business look better than it is."""

    detectability: Detectability
    needs: tuple[Evidence, ...]  # what the ledger must contain, besides dates and amounts, for the attack to be visible

    def leaves_evidence(self, untouched: pl.DataFrame, changed: pl.DataFrame) -> bool:
        """Return whether the attack, as it was carried out, left the evidence that it needs to be seen."""
        return self.detectability != "invisible" and all(_SHOWS[each](untouched, changed) for each in self.needs)


@dataclass(frozen=True)
class Lookalike(Manipulation):
    """An honest change that looks like an attack: a finding on it is a false alarm."""

    resembles: str  # slug of the attack


def _moved_rows_show_their_day(_: pl.DataFrame, changed: pl.DataFrame) -> bool:
    moved = changed.filter(pl.col("touch") == "moved")
    texts, settlements = moved["description"], moved.filter(pl.col("category") == "card_settlement")
    numbered = sum(1 for text in texts if INVOICE.search(text))
    return any(map(PRINTED_DAY.search, texts)) or numbered >= MIN_INVOICES or settlements.height >= MIN_SETTLEMENTS


def _has_reworded_instalments(_: pl.DataFrame, changed: pl.DataFrame) -> bool:
    group = pl.col("category").replace_strict(GROUPS, default=None, return_dtype=pl.String)
    instalments = changed.filter(pl.col("touch") == "reworded", group == "debt_service")
    equal = instalments.group_by("account", "amount").len()["len"]
    return bool((equal >= MIN_INSTALMENTS).any())


# A forger who corrects the balances leaves no evidence in them.
_SHOWS: Mapping[Evidence, Callable[[pl.DataFrame, pl.DataFrame], bool]] = {
    "words": lambda untouched, _: bool((untouched["description"] != "").any()),
    "balances": lambda untouched, changed: count_breaks(changed) > count_breaks(untouched),
    "accounts": lambda untouched, _: untouched["account"].n_unique() > 1,
    "true_days": _moved_rows_show_their_day,
    "instalments": _has_reworded_instalments,
}
