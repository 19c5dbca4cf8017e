"""Find the currency that an export states: in a heading, beside an amount, or in a column of its own.

`¥`, `Rs` and `kr` don't identify a currency, because several countries use them. They only rule out dollars.
"""

import re

import polars as pl

from pipelines.intake.currencies import CODES, CURRENCY_BY_SYMBOL, UNKNOWN

_NAMES = {**CURRENCY_BY_SYMBOL, "ZŁ": "PLN", "KČ": "CZK", **{code: code for code in CODES}}
# A colon and the name of a currency that is not a dollar.
_NAMED_OTHERWISE = re.compile(r"\b(?:CURRENCY|CCY|WÄHRUNG)(?: CODE)? ?: ?(?!.*(?:DOLLAR|AUSTRAL))[^\W\d]{2,}")
_SHARED = r"RS\.?|KR\.?|¥"
_NAMED = "|".join(re.escape(each) for each in sorted(_NAMES, key=len, reverse=True))
MARKS = rf"{_NAMED}|{_SHARED}|\$"  # of text in upper case


# Codes that names of accounts and files have; other codes are also words.
_IN_NAMES = "AUD|USD|EUR|GBP|NZD|CAD|SGD|HKD|JPY|CNY|CHF|INR|ZAR|THB|AED|SEK|NOK|DKK"
_IN_NAME = rf"(?:^|[^A-Za-z])({_IN_NAMES})(?:[^A-Za-z]|$)"


def stated_beside(amount: pl.Expr) -> pl.Expr:
    """Return the ISO code of the currency that is printed beside an amount's digits; UNKNOWN for a mark that several
    currencies share; null where none is printed.
    """
    printed = amount.str.to_uppercase().str.replace_all(r"\s", "")
    named = printed.str.extract(f"({_NAMED})").replace_strict(_NAMES, default=None, return_dtype=pl.String)
    return pl.coalesce(named, pl.when(printed.str.contains(_SHARED)).then(pl.lit(UNKNOWN)))


def stated_in_heading(heading: str) -> str | None:
    """Return the ISO code in a heading such as `Amount (GBP)`, `Amount GBP`, `Balance in EUR`, `Debit £`; UNKNOWN for
    `Amount (Rs)`.
    """
    words = re.sub(r"[()\[\],:/]", " ", heading.upper()).split()
    named = next((_NAMES[word] for word in reversed(words) if word in _NAMES), None)
    return named or (UNKNOWN if any(re.fullmatch(_SHARED, word) for word in words) else None)


def named_currency(name: pl.Expr) -> pl.Expr:
    """Return the ISO code in the name of an account, such as `USD Saver`; null if it has none or is null."""
    return name.str.extract(_IN_NAME)


def named_in(names: list[str]) -> str | None:
    """Return the first ISO code in the names of accounts or files, such as `export_USD`."""
    return next((found[1] for name in names if (found := re.search(_IN_NAME, name))), None)


def stated_in_line(cells: list[str]) -> str | None:
    """Return the ISO code in a line before the heading that says `Currency: INR`, in one cell or in two; UNKNOWN for
    `Currency: Rupees`.
    """
    line = " ".join(cells).upper()
    found = re.search(r"\b(?:CURRENCY|CCY|WÄHRUNG)\b\W*([A-Z]{3})\b", line)
    if found and found[1] in CODES:
        return found[1]
    return UNKNOWN if _NAMED_OTHERWISE.search(line) else None
