"""Look up the bank of a BSB by its first digits (`rules/bsb.yaml`)."""

import re
from collections.abc import Mapping
from functools import cache

import polars as pl

from pipelines.vocabulary.rule_files import RuleError, load_rules

FILE = "bsb.yaml"


def look_up_bank(bsb: pl.Expr) -> pl.Expr:
    """Return the bank's name; null for an invalid BSB or a bank that is not in the list."""
    digits = bsb.str.replace_all(r"\D", "")
    banks = load()
    lengths = sorted({len(prefix) for prefix in banks}, reverse=True)
    known = pl.coalesce(digits.str.head(length).replace_strict(banks, default=None) for length in lengths)
    return pl.when(digits.str.len_chars() == 6).then(known)


@cache
def load() -> Mapping[str, str]:
    """Load the banks' names by first digits, once per process.

    Raises:
        RuleError: names each faulty entry.
    """
    return parse_banks(load_rules(FILE))


def parse_banks(banks: Mapping[str, str]) -> Mapping[str, str]:
    """Check the entries and return them. Raise RuleError with all faults at once."""
    faults = [
        f"{FILE}, {prefix}: takes two to six digits in quotes, and a name"
        for prefix, name in banks.items()
        if not re.fullmatch("[0-9]{2,6}", str(prefix)) or not isinstance(prefix, str) or not name
    ]
    if faults:
        raise RuleError("\n".join(faults))
    return banks
