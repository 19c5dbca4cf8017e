"""What an attack is: a change to a ledger, described in words, with parameters. The same seed gives the same change."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import partial
from random import Random
from types import NoneType
from typing import Any, Literal, Self, TypeAlias, get_args, get_type_hints

import msgspec
import polars as pl

from pipelines.attacks.ledger import PRINTED_DAY, count_breaks
from pipelines.vocabulary.taxonomy import GROUPS
from pipelines.vocabulary.typed import convert

# How many moved, reworded or remaining rows a reader notices, whatever their texts say; our judgement.
MIN_SETTLEMENTS = 5  # of a processor, moved to days that have one already
MIN_FEES = 2  # dishonour fees whose dishonours are hidden
MIN_INVOICES = 3  # whose numbers were not issued yet
MIN_INSTALMENTS = 6  # of the same sum, more often than monthly or beside rows that have such texts anyway
LONGEST_PERIOD = 15  # days between instalments, on average; above it, they have the rhythm of a monthly bill
# Largest values of parameters; our judgement: the days of a year, and a multiple of what a business turns over.
MAX_COUNT, MAX_SHARE = 365, 1000
INVOICE = re.compile(r"(?i)\binv(?:oice)?[ .:#-]*(\d{3,9})\b")
Evidence = Literal["words", "balances", "accounts", "true_days", "instalments", "fees"]
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

    def with_parameters(self, texts: Mapping[str, str]) -> Self:
        """Return the manipulation with other defaults of the parameters that it has; other names are ignored.

        Raises:
            ValueError: a text is not a value of its parameter.
        """
        types = get_type_hints(self.change)
        values = {name: _parse_parameter(self.slug, name, texts[name], types[name]) for name in texts if name in types}
        return replace(self, change=partial(self.change, **values))

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


def _parse_parameter(slug: str, name: str, text: str, kind: Any) -> object:
    """Return the value of a parameter of this type.

    Raises:
        ValueError: the text is not one.
    """
    try:
        value = convert(text, kind, strict=False)
    except msgspec.ValidationError:
        value = None
    is_count = isinstance(value, int) and 1 <= value <= MAX_COUNT  # True and False are numbers, too
    is_share = isinstance(value, Decimal) and value.is_finite() and 0 <= value <= MAX_SHARE
    if is_count or is_share or isinstance(value, bool | str):
        return value
    raise ValueError(f"{name} of {slug} must be {_describe_values(kind)}")


def _describe_values(kind: Any) -> str:
    whole = f"a whole number from 1 to {MAX_COUNT}"
    known = {int: whole, Decimal: f"a number from 0 to {MAX_SHARE}", bool: "true or false", str: "a text"}
    if kind in known:
        return known[kind]
    return " or ".join(
        each if isinstance(each, str) else _describe_values(each) for each in get_args(kind) if each is not NoneType
    )


def _moved_rows_show_their_day(untouched: pl.DataFrame, changed: pl.DataFrame) -> bool:
    moved = changed.filter(pl.col("touch") == "moved")
    settlements = _add_to_settlements(untouched, moved.filter(pl.col("category") == "card_settlement"))
    ahead = _are_ahead(untouched, moved.filter(pl.col("amount") > 0))
    return any(map(PRINTED_DAY.search, moved["description"])) or ahead >= MIN_INVOICES or settlements >= MIN_SETTLEMENTS


def _add_to_settlements(untouched: pl.DataFrame, moved: pl.DataFrame) -> int:
    """Return how many of the settlements come on top of one that the processor made on that day anyway."""
    stays = untouched.join(moved, on="row", how="anti")
    return moved.join(stays, on=["account", "counterparty", "date"], how="semi", nulls_equal=True).height


def _are_ahead(untouched: pl.DataFrame, moved: pl.DataFrame) -> int:
    """Return how many receipts pay invoices with numbers above all those that had been paid until then."""
    number = pl.col("description").str.extract(INVOICE.pattern).cast(pl.Int64)
    paid = untouched.filter(pl.col("amount") > 0).select("date", number=number).drop_nulls().sort("date")
    highest = paid.with_columns(highest=pl.col("number").cum_max()).unique("date", keep="last").sort("date")
    numbered = moved.select("date", number=number).drop_nulls().sort("date")
    compared = numbered.join_asof(highest.select("date", "highest"), on="date")
    return compared.filter(pl.col("highest").is_null() | (pl.col("number") > pl.col("highest"))).height


def _has_reworded_instalments(untouched: pl.DataFrame, changed: pl.DataFrame) -> bool:
    group = pl.col("category").replace_strict(GROUPS, default=None, return_dtype=pl.String)
    words = pl.col("description").str.replace_all(r"\d", "")
    instalments = changed.filter(pl.col("touch") == "reworded", group == "debt_service").sort("date")
    usual = untouched.join(instalments, on="row", how="anti").select(words.unique()).to_series()
    equal = instalments.group_by("account", "amount").agg(
        pl.len(),
        period=pl.col("date").diff().dt.total_days().mean(),
        is_beside_others=words.is_in(usual.implode()).any(),
    )
    shown = (pl.col("period") <= LONGEST_PERIOD) | pl.col("is_beside_others")
    return equal.filter(pl.col("len") >= MIN_INSTALMENTS, shown).height > 0


# A forger who corrects the balances leaves no evidence in them.
_SHOWS: Mapping[Evidence, Callable[[pl.DataFrame, pl.DataFrame], bool]] = {
    "words": lambda untouched, _: bool((untouched["description"] != "").any()),
    "balances": lambda untouched, changed: count_breaks(changed) > count_breaks(untouched),
    "accounts": lambda untouched, _: untouched["account"].n_unique() > 1,
    "true_days": _moved_rows_show_their_day,
    "instalments": _has_reworded_instalments,
    "fees": lambda _, changed: (changed["category"] == "dishonour_fee").sum() >= MIN_FEES,
}
