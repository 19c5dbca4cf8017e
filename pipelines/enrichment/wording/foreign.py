"""Read amounts in other currencies, which card schemes and banks print beside the amount in Australian dollars."""

from collections.abc import Mapping

import polars as pl

from pipelines.enrichment.wording.wording import EDGE, any_of
from pipelines.vocabulary.schemas import MONEY

_CODES = "(?:USD|EUR|GBP|NZD|SGD|HKD|JPY|CAD|CNY|THB|IDR|INR|PHP|MYR|VND|CHF|SEK|DKK|NOK|ZAR|AED|KRW|TWD|FJD|PGK|LKR)"
_NAMED: Mapping[str, str] = {
    "NEW ZEALAND DOLLAR": "NZD",
    "HONG KONG DOLLAR": "HKD",
    "SINGAPORE DOLLAR": "SGD",
    "CANADIAN DOLLAR": "CAD",
    "TAIWAN DOLLAR": "TWD",
    "FIJI DOLLAR": "FJD",
    "U.S. DOLLAR": "USD",
    "NZ DOLLAR": "NZD",
    "US DOLLAR": "USD",
    "POUND STERLING": "GBP",
    "UK POUND": "GBP",
    "BRITISH POUND": "GBP",
    "JAPANESE YEN": "JPY",
    "SWISS FRANC": "CHF",
    "THAI BAHT": "THB",
    "INDIAN RUPEE": "INR",
    "INDONESIAN RUPIAH": "IDR",
    "MALAYSIAN RINGGIT": "MYR",
    "PHILIPPINE PESO": "PHP",
    "CHINESE YUAN": "CNY",
    "YUAN RENMINBI": "CNY",
    "KOREAN WON": "KRW",
    "SWEDISH KRONA": "SEK",
    "EURO": "EUR",
}
_NAMES = any_of(*(name.replace(".", r"\.") for name in _NAMED))

# Cents are required: CAD 2024 may be a drawing. At most fifteen digits before them, because MONEY holds sixteen.
AMOUNT = r"[0-9]{1,3}(?:,?[0-9]{3}){0,4}\.[0-9]{2}"
_EQUIVALENT = rf"(?:AUD )?EQUIV {AMOUNT} "
FOREIGN = (
    f"{EDGE}(?:{_EQUIVALENT})?"
    + any_of(rf"{_CODES} ?\$?{AMOUNT}", f"{AMOUNT} ?{_CODES}", f"{AMOUNT} {_NAMES}S?", f"{_NAMES}S? {AMOUNT}")
    + EDGE
)
# What is printed around the amount: labels, rates and the fee that it includes.
AROUND = any_of(
    f"{AMOUNT} AUD{EDGE}",
    f"(?:FRGN|FOREIGN|FOREIGN CURRENCY) (?:AMT|AMOUNT){EDGE}:?",
    "##[0-9]{4}",
    rf"(?:@|RATE|EXCHANGE RATE):? [0-9]{{1,6}}\.[0-9]{{2,6}}{EDGE}",
    rf"INCL?\.? (?:[0-9]{{1,4}}\.[0-9]{{2}} |O/S |FX |FOREIGN TRANS(?:ACTION)? |INTL TRANS(?:ACTION)? )?FEE"
    rf"(?: \$?{AMOUNT})?{EDGE}",
)


def extract_foreign(text: pl.Expr) -> pl.Expr:
    """Return the part of `text` that states an amount in another currency; null where there is none."""
    return text.str.extract(FOREIGN, 0).str.replace(f"^{_EQUIVALENT}", "")


def parse_amount(found: pl.Expr) -> pl.Expr:
    return found.str.extract(AMOUNT, 0).str.replace_all(",", "", literal=True).cast(MONEY)


def parse_currency(found: pl.Expr) -> pl.Expr:
    """Return the ISO 4217 code of the currency."""
    named = found.str.extract(_NAMES, 0).replace_strict(_NAMED, default=None, return_dtype=pl.String)
    return pl.coalesce(found.str.extract(_CODES, 0), named)
