"""Currency codes, and the symbols that mean exactly one currency, for exports and PDF statements.

A bare `$` does not identify a currency: a dozen countries print it.
"""

CURRENCY = "AUD"  # the service's own: money is in it where nothing says otherwise
UNKNOWN = "XXX"  # ISO 4217's "no currency": here a mark that several currencies share, or an unknown name; never AUD

# ISO 4217: active codes of countries' currencies. ANG (replaced by XCG in 2025) and BGN (by EUR in 2026) stay, because
# earlier statements are in them.
_ACTIVE = """
AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP
CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR
ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT
MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD
SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND
VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
"""
CODES = frozenset(_ACTIVE.split())
CURRENCY_BY_SYMBOL = {
    "A$": "AUD", "AU$": "AUD", "US$": "USD", "NZ$": "NZD", "C$": "CAD", "CA$": "CAD", "HK$": "HKD", "S$": "SGD",
    "£": "GBP", "€": "EUR", "₹": "INR",
    "R$": "BRL", "MX$": "MXN", "NT$": "TWD", "₩": "KRW", "₽": "RUB", "₺": "TRY", "฿": "THB", "₫": "VND", "₪": "ILS",
    "₦": "NGN", "₱": "PHP", "₴": "UAH",
}  # fmt: skip
# Words printed before or after an amount.
CURRENCY_BY_WORD = {
    "R": "ZAR", "RM": "MYR", "Rp": "IDR", "Rp.": "IDR", "KSh": "KES", "Ksh": "KES", "Ft": "HUF", "zł": "PLN",
    "Kč": "CZK", "S/": "PEN", "Dhs": "AED",
    "kr": UNKNOWN, "kr.": UNKNOWN, "Kr": UNKNOWN, "Kr.": UNKNOWN, "KR": UNKNOWN, "Rs": UNKNOWN, "Rs.": UNKNOWN,
    "RS": UNKNOWN, "Fr": UNKNOWN, "Fr.": UNKNOWN, "SFr.": UNKNOWN, "Bs": UNKNOWN, "Bs.": UNKNOWN, "Dh": UNKNOWN,
}  # fmt: skip
