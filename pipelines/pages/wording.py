"""How pages write numbers, money, days and names: in Australian dollars and English, as people write them.

Figures are Decimal or int, and None is unknown. A day is a date or its ISO text, as JSON holds it.
"""

import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

from pipelines.vocabulary.taxonomy import TAXONOMY

UNKNOWN = "–"
MINUS = "−"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# Formats of metrics by their unit; other units are written as plain numbers.
FORMAT_OF_UNIT: Mapping[str, str] = {"ratio": "percent", "days": "days", "months": "months"}
_CODE = re.compile("[a-z][A-Za-z0-9_]*")
_ACRONYMS = re.compile(r"\b(ato|bas|gst|payg|abn|bsb|atm|eftpos|hhi|pd|ppsr)\b", re.IGNORECASE)
_SIZES = ((10**12, "tn"), (10**9, "b"), (10**6, "m"), (10**3, "k"))


def money(amount: Decimal | None) -> str:
    """Write to the cent: `$1,234.50`, `−$1,234.50`."""
    if amount is None:
        return UNKNOWN
    size = f"{abs(amount):,.2f}"
    return "$0.00" if size == "0.00" else _with_sign(amount, f"${size}")


def dollars(amount: Decimal | int | None) -> str:
    """Write to the nearest dollar, for headlines: `$1,234`."""
    if amount is None:
        return UNKNOWN
    size = f"{abs(amount):,.0f}"
    return "$0" if size == "0" else _with_sign(amount, f"${size}")


def short_money(amount: Decimal | float) -> str:
    """Write for the scale of a chart: `$1.5k`, `−$20m`."""
    size, sign = next(((size, sign) for size, sign in _SIZES if abs(amount) >= size), (1, ""))
    return _with_sign(amount, f"${abs(float(amount)) / size:,.4g}{sign}")


def plain(number: Decimal | None) -> str:
    """Write without trailing zeros: `1,234.5`."""
    if number is None:
        return UNKNOWN
    text = f"{abs(number):,f}"
    return _with_sign(number, text.rstrip("0").rstrip(".") if "." in text else text)


def percent(share: Decimal | None) -> str:
    """Write a share of 0.3215 as `32.15 %`, and 0.3 as `30.00 %`."""
    return UNKNOWN if share is None else f"{score(share * 100)} %"


def score(points: Decimal | None) -> str:
    """Write points of a score, or percentage points: `88.00`. Decimals beyond two stay, because rules may name them."""
    if points is None:
        return UNKNOWN
    text = plain(points)
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals:0<2}"


def round_to(number: Decimal, places: int) -> Decimal:
    """Round half to even. Unlike `round`, it doesn't fail for a number of more digits than the context's precision."""
    return Decimal(f"{number:.{places}f}")


def reading(value: Decimal | float | str | bool | None, value_format: str | None = None) -> str:
    """Write a value that a policy, ruleset or report read, in the format of its metric, attribute or input."""
    match value:
        case None | bool():
            return {None: UNKNOWN, True: "Yes", False: "No"}[value]
        case str():
            return value
    return _number(Decimal(value), value_format)


def write_reading(value: Decimal, unit: str) -> str:
    """Write a metric's value in its unit: `36.12 %`, `2.5 days`, `1 month`; in other units as a plain number."""
    return _number(value, FORMAT_OF_UNIT.get(unit))


def _number(number: Decimal, value_format: str | None) -> str:
    match value_format:
        case "currency":
            return money(number)
        case "percent":
            return percent(number)
        case "points":
            return score(number)
        case "days" | "months":
            rounded = round_to(number, 1)
            return f"{plain(rounded)} {value_format.removesuffix('s') if abs(rounded) == 1 else value_format}"
        case "yearMonth":
            return _year_month(number)
    return plain(number)


def _year_month(number: Decimal) -> str:
    """Write `Jun 2026` for 202606; other numbers without separators, as they were typed."""
    year, month_number = divmod(number, 100)
    if number % 1 or not 1 <= month_number <= 12 or not 1 <= year <= 9999:
        return _with_sign(number, f"{abs(number.normalize()):f}")
    return month(date(int(year), int(month_number), 1))


def whole_number(count: int) -> str:
    """Write `1,234`."""
    return f"{count:,}"


def change(count: int) -> str:
    """Write how a count changes: `+12`, `−3`, `±0`."""
    return f"{MINUS if count < 0 else '+'}{abs(count):,}" if count else "±0"


def quantity(count: int, noun: str, plural: str | None = None) -> str:
    """Write `1 row`, `1,234 rows`; `plural` is for nouns whose plural is not just an s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def extent(shown: int, total: int) -> str:
    """Write how many of all are shown: `all of them`, `the first 100 of 2,345`."""
    return "all of them" if shown == total else f"the first {shown:,} of {total:,}"


def day(value: date | str | None) -> str:
    """Write `3 Mar 2026`."""
    if isinstance(value, str):
        return day(date.fromisoformat(value))
    return UNKNOWN if value is None else f"{value.day} {month(value)}"


def moment(time: datetime) -> str:
    """Write `3 Mar 2026, 14:05`, in the time zone that the time has."""
    return f"{day(time.date())}, {time:%H:%M}"


def month(value: date | str | None) -> str:
    """Write `Mar 2026`."""
    if isinstance(value, str):
        return month(date.fromisoformat(value))
    return UNKNOWN if value is None else f"{MONTHS[value.month - 1]} {value.year}"


def abn(digits: str) -> str:
    """Write `51 824 753 556`; anything but eleven digits stays as it is."""
    return re.sub(r"^(\d{2})(\d{3})(\d{3})(\d{3})$", r"\1 \2 \3 \4", digits)


def bsb(digits: str | None) -> str:
    """Write `081-691`; anything but six digits stays as it is."""
    return re.sub(r"^(\d{3})(\d{3})$", r"\1-\2", digits or "")


def masked(number: str | None) -> str:
    """Write an account's number with its last four characters only, as lists of transactions do: `xxxxx4522`."""
    compact = re.sub(r"[\s-]", "", number or "").upper()
    hidden = len(compact) - (4 if len(compact) > 4 else 0)
    return "x" * hidden + compact[hidden:]


def spell_out(code: str) -> str:
    """Write a code as words: `Merchant cash advance` for `merchant_cash_advance`, `Money in` for `moneyIn`; other text
    stays as it is.
    """
    if (known := TAXONOMY.categories.get(code) or TAXONOMY.groups.get(code)) is not None:
        return known.name
    if not _CODE.fullmatch(code):
        return code
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[a-z])(?=[0-9])|_", " ", code).lower()
    return _ACRONYMS.sub(lambda each: each[0].upper(), spaced[:1].upper() + spaced[1:])


def title(code: str, value_format: str | None = None) -> str:
    """Write the name of a value, without the unit that `reading` writes with the value: `Term` for `termMonths`."""
    words = spell_out(code)
    return words.removesuffix(f" {value_format}") if value_format in ("days", "months") else words


def label(code: str, value_format: str | None = None) -> str:
    """Write the name of a value with the unit in which people type it: `Term (months)`, `Requested amount ($)`."""
    unit = {"currency": "$", "percent": "%", "days": "days", "months": "months"}.get(value_format or "")
    return title(code, value_format) if unit is None else f"{title(code, value_format)} ({unit})"


def shorten(text: str, most: int) -> str:
    """Cut text to `most` characters: lines of a chart don't wrap."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _with_sign(number: Decimal | float, size: str) -> str:
    return f"{MINUS}{size}" if number < 0 else size
