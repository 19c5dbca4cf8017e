"""ISO 4217 codes, names of currencies, and symbols that mean exactly one currency."""

import re

from pipelines.intake import currencies

# Currencies in which banks offer accounts. Codes that are English words (ALL, TRY, TOP) are left out, because the words
# would be read as currencies.
CODES = frozenset(
    "AED AUD BDT BRL CAD CHF CLP CNH CNY COP CZK DKK EGP EUR FJD GBP HKD HUF IDR ILS INR ISK JPY KES KRW KWD LKR MXN "  # noqa: SIM905
    "MYR NGN NOK NPR NZD PGK PHP PKR PLN QAR RON RUB SAR SEK SGD THB TWD UAH USD VND XPF ZAR".split()
)
NAMES = {
    "australian dollars?": "AUD",
    "us dollars?": "USD",
    "united states dollars?": "USD",
    "new zealand dollars?": "NZD",
    "canadian dollars?": "CAD",
    "singapore dollars?": "SGD",
    "hong kong dollars?": "HKD",
    "pounds? sterling": "GBP",
    "british pounds?": "GBP",
    "euros?": "EUR",
    "indian rupees?": "INR",
    "swiss francs?": "CHF",
}
CURRENCY_BY_SYMBOL = {**currencies.CURRENCY_BY_SYMBOL, "¥": "JPY", "$A": "AUD", "FJ$": "FJD"}
SYMBOL = "|".join(re.escape(symbol) for symbol in sorted(CURRENCY_BY_SYMBOL, key=len, reverse=True))
