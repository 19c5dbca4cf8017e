"""The currency that an export states: in a heading, beside an amount, or in a column of its own.

A bare `$` names no currency: a dozen countries print it. `¥` and `kr` don't either.
"""

import re

import polars as pl

DEFAULT = "AUD"  # the service's own currency, assumed where nothing states another

# ISO 4217, active codes of countries' currencies.
_ACTIVE = """
AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP
CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR
ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT
MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD
SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND
VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG
"""
CODES = frozenset(_ACTIVE.split())
_SYMBOLS = {
    "A$": "AUD",
    "AU$": "AUD",
    "US$": "USD",
    "NZ$": "NZD",
    "C$": "CAD",
    "CA$": "CAD",
    "HK$": "HKD",
    "S$": "SGD",
    "R$": "BRL",
    "£": "GBP",
    "€": "EUR",
    "₹": "INR",
    "₩": "KRW",
    "₽": "RUB",
    "₺": "TRY",
    "฿": "THB",
    "₫": "VND",
    "₪": "ILS",
    "₦": "NGN",
    "₱": "PHP",
    "₴": "UAH",
    "ZŁ": "PLN",
    "KČ": "CZK",
}
_NAMES = {**_SYMBOLS, **{code: code for code in CODES}}
_UNNAMED = r"RS\.?|KR\.?|[$¥]"
_NAMED = "|".join(re.escape(each) for each in sorted(_NAMES, key=len, reverse=True))
MARKS = f"{_NAMED}|{_UNNAMED}"  # of text in upper case


def stated_beside(amount: pl.Expr) -> pl.Expr:
    """The ISO code of the currency that is printed beside an amount's digits; null where none is."""
    mark = amount.str.to_uppercase().str.replace_all(r"\s", "").str.extract(f"({_NAMED})")
    return mark.replace_strict(_NAMES, default=None, return_dtype=pl.String)


def stated_in_heading(heading: str) -> str | None:
    """The ISO code in a heading such as `Amount (GBP)`, `Amount GBP`, `Balance in EUR`, `Debit £`."""
    words = re.sub(r"[()\[\],:/]", " ", heading.upper()).split()
    return next((_NAMES[word] for word in reversed(words) if word in _NAMES), None)


def stated_in_line(cells: list[str]) -> str | None:
    """The ISO code in a line before the heading that says `Currency: INR`, in one cell or in two."""
    found = re.search(r"\b(?:CURRENCY|CCY|WÄHRUNG)\b\W*([A-Z]{3})\b", " ".join(cells).upper())
    return found[1] if found and found[1] in CODES else None
