"""The headings of reports' columns, and how their values are written."""

import re
from collections.abc import Mapping
from decimal import Decimal

from pipelines.pages.wording import UNKNOWN, day, money, month, percent, plain, score, spell_out
from pipelines.reports.page.fields import as_day, as_number

_NUMBERS = frozenset({"AUD", "AUD days", "AUD squared", "count", "days", "ratio", "points", "probability"})
_SHORT = frozenset({"date", "month", "boolean"})
_PROSE = frozenset({"description", "feeAssumption", "message", "words"})

# Columns that hold codes of ours; any other text is somebody's own and stays as it is.
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
_SHARE = re.compile("[sS]hare|(growth|Growth|Rate|rate|[cC]overage|^covered|[mM]issingness|Withholding)$")
_SCORE = re.compile("[sS]core$|^points(Gained)?$")
_MONEY = re.compile("([aA]mount|[bB]alance|[tT]otal|[dD]ifference|[tT]urnover|[vV]ariance|[rR]evenue)$|^money|^total")


def write_heading(column: str) -> str:
    """Return a column's heading in plain words."""
    return _HEADINGS.get(column) or spell_out(column)


def figure(value: object, unit: str, column: str = "") -> str:
    """Format a value by its column's unit, and a code by its column's name."""
    number, a_day = as_number(value), None if unit == "text" else as_day(value)
    if unit == "AUD":
        return money(number)
    if number is not None:
        write = percent if is_share(column, unit) else score if unit == "points" else plain
        return write(number)
    if a_day is not None:
        return month(a_day) if unit == "month" else day(a_day)
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, str):
        return spell_out(value) if column in _CODES else value
    return UNKNOWN


def cell_kind(unit: str, column: str) -> str:
    """Return the kind of a column's cells (`Column.kind`), which decides their alignment and width."""
    if unit in _SHORT or column.lower().endswith("date"):
        return "short"
    if unit in _NUMBERS:
        return "number"
    return "prose" if column in _PROSE else "text"


def likely_unit(value: object, name: str) -> str:
    """Guess a figure's unit by its name: money has cents, counts are whole. Empty for other figures."""
    if not isinstance(value, Decimal):
        return ""
    if _SHARE.search(name):
        return "ratio"
    if _SCORE.search(name):
        return "points"
    return "AUD" if _MONEY.search(name) else ""


def is_share(column: str, unit: str) -> bool:
    """Return whether a ratio is that of a part to its whole, which is written as a percentage."""
    return unit == "ratio" and _SHARE.search(column) is not None
