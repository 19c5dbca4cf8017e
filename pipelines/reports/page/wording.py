"""How the page writes figures and names: Australian dollars and dates, in the usual notation."""

import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal

from pipelines.reports.page.fields import as_day, as_number
from pipelines.vocabulary.taxonomy import TAXONOMY

UNKNOWN = "–"
MINUS = "−"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NUMBERS = frozenset({"AUD", "AUD days", "AUD squared", "count", "days", "ratio", "points", "probability"})
_SHORT = frozenset({"date", "month", "boolean"})
_PROSE = frozenset({"description", "feeAssumption", "message", "words"})

# Columns whose texts are our codes, written with underscores; the texts of other columns are shown as they are.
_CODES = frozenset(
    {
        "accountType",
        "basis",
        "gstRegisteredFrom",
        "reason",
        "remainingMethod",
        "taxableShareFrom",
        "category",
        "categoryGroup",
        "classification",
        "direction",
        "evidence",
        "flow",
        "kind",
        "line",
        "method",
        "period",
        "product",
        "state",
        "status",
        "trend",
        "type",
        "weekday",
    }
)
_HEADINGS: Mapping[str, str] = {
    "transactionCount": "Transactions",
    "repaymentCount": "Repayments",
    "lenderName": "Lender",
    "accountNumberMasked": "Number",
    "bankName": "Bank",
    "accountId": "Account",
    "fromAccountId": "From account",
    "toAccountId": "To account",
    "accountName": "Name",
    "minBalance": "Lowest balance",
    "meanBalance": "Mean balance",
    "creditCount": "Credits",
    "debitCount": "Debits",
    "bas": "BAS",
    "gst": "GST",
}
_CODE = re.compile("[a-z][A-Za-z0-9_]*")
_ACRONYMS = re.compile(r"\b(ato|bas|gst|payg|abn|bsb|atm|eftpos|hhi|pd)\b", re.IGNORECASE)
_SHARE = re.compile("[sS]hare|(growth|Growth|Rate|rate|coverage|Coverage|Withholding)$")
_MONEY = re.compile("([aA]mount|[bB]alance|[tT]otal|[dD]ifference|[tT]urnover|[vV]ariance|[rR]evenue)$|^money|^total")
_SIZES = ((10**12, "tn"), (10**9, "b"), (10**6, "m"), (10**3, "k"))


def money(amount: Decimal | None) -> str:
    """Format like `$1,234.50` or `−$1,234.50`, to the cent."""
    return UNKNOWN if amount is None else _signed(amount, f"${abs(amount):,.2f}")


def dollars(amount: Decimal | None) -> str:
    """Format like `$1,234`, to the nearest dollar, for headlines."""
    if amount is None:
        return UNKNOWN
    size = f"{abs(amount):,.0f}"
    return "$0" if size == "0" else _signed(amount, f"${size}")


def short_money(amount: float) -> str:
    """Format like `$1.5k` or `−$20m`, for the scale of a chart."""
    size, sign = next(((size, sign) for size, sign in _SIZES if abs(amount) >= size), (1, ""))
    return f"{MINUS if amount < 0 else ''}${abs(amount) / size:,.4g}{sign}"


def plain(number: Decimal | None) -> str:
    """Format like `1,234.5`, without trailing zeros."""
    if number is None:
        return UNKNOWN
    text = f"{abs(number):,f}"
    return _signed(number, text.rstrip("0").rstrip(".") if "." in text else text)


def percent(share: Decimal | None) -> str:
    """Format a share of 0.3215 like `32.15 %`."""
    return UNKNOWN if share is None else f"{plain(share * 100)} %"


def day(value: date | None) -> str:
    """Format like `3 Mar 2026`."""
    return UNKNOWN if value is None else f"{value.day} {month(value)}"


def month(value: date | None) -> str:
    """Format like `Mar 2026`."""
    return UNKNOWN if value is None else f"{MONTHS[value.month - 1]} {value.year}"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def abn(digits: str) -> str:
    """Format like `51 824 753 556`; a text without exactly eleven digits stays as it is."""
    return re.sub(r"^(\d{2})(\d{3})(\d{3})(\d{3})$", r"\1 \2 \3 \4", digits)


def words_of(code: str) -> str:
    """Write a code as words: `merchant_cash_advance` as `Merchant cash advance`, `moneyIn` as `Money in`.

    A category has its own name; a text that is no code stays as it is.
    """
    if (known := TAXONOMY.categories.get(code) or TAXONOMY.groups.get(code)) is not None:
        return known.name
    if not _CODE.fullmatch(code):
        return code
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[a-z])(?=[0-9])|_", " ", code).lower()
    return _ACRONYMS.sub(lambda each: each[0].upper(), spaced[:1].upper() + spaced[1:])


def heading(column: str) -> str:
    return _HEADINGS.get(column) or words_of(column)


def figure(value: object, unit: str, column: str = "") -> str:
    """Format a value of a table's column for people, by the unit that the column declares."""
    number, a_day = as_number(value), as_day(value)
    if unit == "AUD":
        return money(number)
    if number is not None:
        return percent(number) if is_share(column, unit) else plain(number)
    if a_day is not None:
        return month(a_day) if unit == "month" else day(a_day)
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, str):
        return words_of(value) if column in _CODES else value
    return UNKNOWN


def cell_kind(unit: str, column: str) -> str:
    """Return the kind of a column's cells, which is their CSS class."""
    if unit in _SHORT or column.lower().endswith("date"):
        return "short"
    if unit in _NUMBERS:
        return "number"
    return "prose" if column in _PROSE else "text"


def likely_unit(value: object, name: str) -> str:
    """Guess the unit of a figure that has none: money has cents, counts are whole. Empty for a plain number."""
    if not isinstance(value, Decimal):
        return ""
    if _SHARE.search(name):
        return "ratio"
    return "AUD" if _MONEY.search(name) else ""


def is_share(column: str, unit: str) -> bool:
    """Tell whether a ratio is the share of a part in its whole, which is shown as a percentage."""
    return unit == "ratio" and _SHARE.search(column) is not None


def shortened(text: str, most: int) -> str:
    """Cut a text to `most` characters: lines of a chart don't wrap."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _signed(number: Decimal, size: str) -> str:
    return f"{MINUS}{size}" if number < 0 else size
