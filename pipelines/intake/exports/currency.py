"""Find the currency that an export states: in a heading, beside an amount, or in a column of its own.

`¥` and `kr` do not identify one: several countries print them.
"""

import re

import polars as pl

from pipelines.intake.currencies import CODES, CURRENCY_BY_SYMBOL

_SYMBOLS = {
    **CURRENCY_BY_SYMBOL,
    "R$": "BRL", "₩": "KRW", "₽": "RUB", "₺": "TRY", "฿": "THB", "₫": "VND", "₪": "ILS", "₦": "NGN", "₱": "PHP",
    "₴": "UAH", "ZŁ": "PLN", "KČ": "CZK",
}  # fmt: skip
_NAMES = {**_SYMBOLS, **{code: code for code in CODES}}
_UNNAMED = r"RS\.?|KR\.?|[$¥]"
_NAMED = "|".join(re.escape(name) for name in sorted(_NAMES, key=len, reverse=True))
MARKS = f"{_NAMED}|{_UNNAMED}"  # matches text in upper case


def stated_beside(amount: pl.Expr) -> pl.Expr:
    """Return the ISO code of the currency printed beside an amount's digits, or null."""
    mark = amount.str.to_uppercase().str.replace_all(r"\s", "").str.extract(f"({_NAMED})")
    return mark.replace_strict(_NAMES, default=None, return_dtype=pl.String)


def stated_in_heading(heading: str) -> str | None:
    """Return the ISO code in a heading such as `Amount (GBP)`, `Amount GBP`, `Balance in EUR`, `Debit £`."""
    words = re.sub(r"[()\[\],:/]", " ", heading.upper()).split()
    return next((_NAMES[word] for word in reversed(words) if word in _NAMES), None)


def stated_in_line(cells: list[str]) -> str | None:
    """Return the ISO code in a line such as `Currency: INR` before the heading, in one cell or two."""
    found = re.search(r"\b(?:CURRENCY|CCY|WÄHRUNG)\b\W*([A-Z]{3})\b", " ".join(cells).upper())
    return found[1] if found and found[1] in CODES else None
