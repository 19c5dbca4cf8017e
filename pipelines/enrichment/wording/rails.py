"""Patterns of what banks print around a name, by country, from `rules/rails.yaml`."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from pipelines.enrichment.wording.value_dates import DAY
from pipelines.enrichment.wording.wording import EDGE, any_of
from pipelines.vocabulary.rule_files import load_rules

FILE = "rails.yaml"
_STANDS_FOR = {"<DAY>": DAY, "<ID>": "(?:[A-Z-]{0,12}[0-9][0-9A-Z-]{0,23})"}


@cache
def load_openings() -> Sequence[tuple[str, str]]:
    """Return the openings of each channel, in the order of trial."""
    return [(entry["channel"], _read_patterns(entry["rails"])) for entry in load_section("rails")]


@cache
def load_cuts() -> str:
    """Return a pattern for what is cut from a line wherever it is, the customer's own name included."""
    return any_of(*(_read_patterns(entry["patterns"]) for name in ("customer", "cuts") for entry in load_section(name)))


@cache
def load_glued() -> str:
    """Return a pattern for what is cut from a line even if it begins within a word."""
    return any_of(*(_read_patterns(entry["patterns"]) for entry in load_section("glued")))


@cache
def load_customers_name() -> str:
    """Return a pattern for the customer's own name in a line."""
    return any_of(*(EDGE + _read_patterns(entry["patterns"]) for entry in load_section("customer")))


def load_section(name: str) -> Sequence[Any]:
    """Return the entries of a section of the file."""
    entries: Sequence[Any] = load_rules(FILE)[name]
    return entries


def _read_patterns(patterns: Sequence[str]) -> str:
    whole = any_of(*patterns)
    for mark, pattern in _STANDS_FOR.items():
        whole = whole.replace(mark, pattern)
    return whole
