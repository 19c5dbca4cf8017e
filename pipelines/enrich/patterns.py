"""The rules of `rules/patterns.yaml`, checked against their own examples before any of them is used.

A rule is a regular expression over a description, a side of the account, and what follows from both. Long numbers are
references and change with every payment, so rules read a text in which each run of four or more digits is `0000`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from polars.exceptions import ComputeError

from pipelines.enrich.taxonomy import TAXONOMY, Category, RuleError, Sign, load_rules
from pipelines.schemas import CounterpartyKind

FILE = "patterns.yaml"
COUNTERPARTY_CONFIDENCE = 0.95  # a named counterparty whose payments mean one thing
PATTERN_CONFIDENCE = 0.85  # words that mean one thing; a rule that is less sure says so itself

_REQUIRED = {"category", "pattern", "matches", "not"}
_ALLOWED = _REQUIRED | {"sign", "of", "confidence"}


@dataclass(frozen=True)
class Counterparty:
    name: str
    kind: str
    lender_id: str | None = None


@dataclass(frozen=True)
class Rule:
    """A pattern on one side of the account, and what it says. Confidence is a stated constant, not calibrated."""

    pattern: str
    sign: Sign
    category: Category
    counterparty: Counterparty | None
    confidence: float


def without_long_numbers(text: pl.Expr) -> pl.Expr:
    """`text` as rules read it: each run of four or more digits is `0000`."""
    return text.str.replace_all(r"\d{4,}", "0000")


def load() -> tuple[Rule, ...]:
    """The rules in the order of trial; an entry with a conclusion for each side becomes two.

    Raises:
        RuleError: naming the file, and each broken rule with the reason.
    """
    return checked(load_rules(FILE))


def checked(entries: list[Mapping[str, Any]]) -> tuple[Rule, ...]:
    """Entries of the file as rules, or every fault of theirs at once."""
    faults = [
        f"{FILE}, rule {number} ({entry.get('category')}): {fault}"
        for number, entry in enumerate(entries, start=1)
        for fault in _faults(entry)
    ]
    if faults:
        raise RuleError("\n".join(faults))
    return tuple(rule for entry in entries for rule in _rules(entry))


def _rules(entry: Mapping[str, Any]) -> Iterator[Rule]:
    counterparty = Counterparty(**entry["of"]) if "of" in entry else None
    confidence = entry.get("confidence", COUNTERPARTY_CONFIDENCE if counterparty else PATTERN_CONFIDENCE)
    for sign, slug in _conclusions(entry):
        yield Rule(entry["pattern"], sign, TAXONOMY.categories[slug], counterparty, confidence)


def _conclusions(entry: Mapping[str, Any]) -> list[tuple[Sign, str]]:
    """Side and category; a category that stands alone is concluded on the side that it belongs on."""
    category = entry["category"]
    if isinstance(category, dict):
        return list(category.items())
    return [(entry.get("sign", TAXONOMY.categories[category].sign), category)]


def _faults(entry: Mapping[str, Any]) -> Iterator[str]:
    if odd := _REQUIRED - entry.keys() | entry.keys() - _ALLOWED:
        yield f"missing or unknown: {', '.join(sorted(odd))}"
        return
    yield from _conclusion_faults(entry)
    yield from _counterparty_faults(entry.get("of"))
    yield from _example_faults(entry)


def _conclusion_faults(entry: Mapping[str, Any]) -> Iterator[str]:
    category = entry["category"]
    slugs = category.values() if isinstance(category, dict) else [category]
    if unknown := [slug for slug in slugs if slug not in TAXONOMY.categories]:
        yield f"there is no category {', '.join(unknown)}"
        return
    for sign, slug in _conclusions(entry):
        if TAXONOMY.categories[slug].sign not in (sign, "either"):
            yield f"{slug} does not belong on the side {sign}"
    if not 0 <= entry.get("confidence", 0) <= 1:
        yield "confidence is not between 0 and 1"


def _counterparty_faults(of: Mapping[str, str] | None) -> Iterator[str]:
    if of is None:
        return
    if not {"name", "kind"} <= of.keys() <= {"name", "kind", "lender_id"}:
        yield "`of` takes name, kind and lender_id"
    elif of["kind"] not in CounterpartyKind.categories:
        yield f"there is no kind {of['kind']}"
    elif (of["kind"] == "lender") != ("lender_id" in of):
        yield "a lender has a lender_id, and nobody else"


def _example_faults(entry: Mapping[str, Any]) -> Iterator[str]:
    """Examples are tried with the engine that will use the rule."""
    matches, misses = entry["matches"], entry["not"]
    if len(matches) < 2 or not misses:
        yield "needs two examples that match and one that does not"
    try:
        texts = pl.DataFrame({"text": [*matches, *misses]}, schema={"text": pl.String})
        found = texts.select(without_long_numbers(pl.col("text")).str.contains(entry["pattern"]))["text"]
    except (ComputeError, TypeError) as error:
        yield f"can't be tried: {error}"
        return
    yield from (f"does not match {text!r}" for text, hit in zip(matches, found, strict=False) if not hit)
    yield from (f"matches {text!r}" for text, hit in zip(misses, found[len(matches) :], strict=True) if hit)
