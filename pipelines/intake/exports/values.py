"""Rewrite days and amounts as banks print them in the form that `intake.rows` reads: `2026-03-02`, `-1234.50`.

A text that can't be read becomes null. Nothing is computed, so the digits of a result are those of its text.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from functools import cache, partial
from typing import Literal, TypeVar

import polars as pl

from pipelines.intake.exports.currency import MARKS
from pipelines.intake.minus_signs import MINUSES

T = TypeVar("T")

# After `_normalise_date`: "/" between the parts of a date, and months cut to three letters.
_YEAR_FIRST = r"^[0-9]{4}/[0-9]{1,2}/[0-9]{1,2}$"
_DIGITS_ALONE = r"^(?:19|20)[0-9]{6}$"
_NUMBERS = r"^[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}$"
_SHORT_YEAR = r"^[0-9]{1,2}/[0-9]{1,2}/[0-9]{2}$"
_NAMED = r"^[0-9]{1,2}/[a-z]{3}/[0-9]{4}$"
_NAMED_SHORT_YEAR = r"^[0-9]{1,2}/[a-z]{3}/[0-9]{2}$"
_NAME_FIRST = r"^[a-z]{3}/[0-9]{1,2}/[0-9]{4}$"
_DAY_FIRST = ((_NUMBERS, "%d/%m/%Y"), (_SHORT_YEAR, "%d/%m/%y"))
_MONTH_FIRST = ((_NUMBERS, "%m/%d/%Y"), (_SHORT_YEAR, "%m/%d/%y"))
_SHORT_YEAR_FIRST = ((_NUMBERS, "%d/%m/%Y"), (_SHORT_YEAR, "%y/%m/%d"))
_PLAIN = (
    (_YEAR_FIRST, "%Y/%m/%d"),
    (_DIGITS_ALONE, "%Y%m%d"),
    (_NAMED, "%d/%b/%Y"),
    (_NAMED_SHORT_YEAR, "%d/%b/%y"),
    (_NAME_FIRST, "%b/%d/%Y"),
)
_WEEKDAY = r"^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*[,.]?\s+"
# No delimiter may follow a time: otherwise the rest of a line that was split by the wrong delimiter would count as one.
_CLOCK = r"(?:t|,?\s+)[0-9]{1,2}:[0-9]{2}[^,;|\t]*$"
_UNIVERSAL = r"(?i)^[0-9]{4}-[0-9]{2}-[0-9]{2}[t ][^,;|\t]*z$"  # its day depends on the zone, which `validate` knows

# What may be printed around an amount's digits, and the sign that it means. Other combinations are contradictory or
# unknown.
_SIGNS = {
    **dict.fromkeys(("", "+", "CR", "+CR"), ""),
    **dict.fromkeys(("-", "()", "DR", "-DR", "()DR"), "-"),
}
_NO_SIGN = rf"{MARKS}|AU|[\s'’]"
_WHOLE = r"([0-9][.,])--?$"  # `1.234,-` and `1234.-` have no cents, and no sign
_WITH_CENTS = r"[0-9][0-9., '’]*[.,][0-9]{2}"
_RESEMBLING = rf"^\W{{0,4}}{_WITH_CENTS}\W{{0,2}}\p{{L}}{{0,6}}\W?$"
_AMOUNT = r"^[^0-9.,]*[0-9.,]+[^0-9.,]*$"
# The second form groups digits by lakh and crore, as banks in South Asia do: 1,23,456.00.
_DOTTED = (
    r"^(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]*)?|[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}(?:\.[0-9]*)?"
    r"|[0-9]+\.?[0-9]*|\.[0-9]+)$"
)
_COMMAED = r"^(?:[1-9][0-9]{0,2}(?:\.[0-9]{3})+(?:,[0-9]*)?|[0-9]+,?[0-9]*|,[0-9]+)$"


class First(Enum):
    """The part of a date in numbers that comes first: `3/2/2026` is 3 February or 2 March, `26/2/3` 26 February 2003
    or 3 February 2026. A year of four digits can be recognised.
    """

    DAY = _DAY_FIRST
    MONTH = _MONTH_FIRST
    SHORT_YEAR = _SHORT_YEAR_FIRST


def day(text: pl.Expr, first: First = First.DAY) -> pl.Expr:
    """Return a printed date as ISO text, without a time after it. A date-time in UTC is not changed."""
    return read_distinct(text, _read_days, first.value)


def read_distinct(text: pl.Expr, read: Callable[[pl.DataFrame, T], pl.Series], option: T) -> pl.Expr:
    """Read texts with `read`, null if there are none. Files repeat dates and many amounts, so only the distinct texts
    are read, and no pattern is prepared for a column without any.
    """
    return text.map_batches(partial(_map_distinct, read, option), return_dtype=pl.String)


def _map_distinct(read: Callable[[pl.DataFrame, T], pl.Series], option: T, texts: pl.Series) -> pl.Series:
    if texts.null_count() == len(texts):
        return texts.clear(len(texts))
    distinct = texts.drop_nulls().unique()
    return texts.replace_strict(distinct, read(distinct.to_frame("text"), option), default=None, return_dtype=pl.String)


def _read_days(texts: pl.DataFrame, numbers: Sequence[tuple[str, str]]) -> pl.Series:
    """Read days whose months are numbers in the first of these forms that fits, and all others."""
    return texts.with_columns(_normalised_date()).select(_day_in_forms((*_PLAIN, *numbers))).to_series()


@cache
def _normalised_date() -> pl.Expr:
    return _normalise_date(pl.col("text")).alias("date")


@cache
def _day_in_forms(forms: Sequence[tuple[str, str]]) -> pl.Expr:
    """Return `date` in the first of these forms that fits."""
    date, text = pl.col("date"), pl.col("text")
    read = (pl.when(date.str.contains(shape)).then(date).str.to_date(form, strict=False) for shape, form in forms)
    iso = pl.coalesce(read).dt.to_string("%Y-%m-%d")
    return pl.when(text.str.contains(_UNIVERSAL)).then(text).otherwise(iso)


def is_day(text: pl.Expr) -> pl.Expr:
    """Match texts that are dates, whichever part comes first."""
    return read_distinct(text, _read_days, (*_DAY_FIRST, *_MONTH_FIRST, *_SHORT_YEAR_FIRST)).is_not_null()


def is_ambiguous_day(text: pl.Expr) -> pl.Expr:
    """Match dates in numbers whose first or second number may be the month."""
    return _normalise_date(text).str.contains(rf"{_NUMBERS}|{_SHORT_YEAR}")


def has_short_year(text: pl.Expr) -> pl.Expr:
    """Match dates in numbers of at most two digits."""
    return _normalise_date(text).str.contains(_SHORT_YEAR)


def _normalise_date(text: pl.Expr) -> pl.Expr:
    return (
        text.str.strip_chars()
        .str.to_lowercase()
        .str.replace(_WEEKDAY, "")
        .str.replace(_CLOCK, "")
        .str.replace_all(r"([a-z]{3})[a-z]*", "$1")
        .str.replace_all(r"([0-9])([a-z])", "$1/$2")
        .str.replace_all(r"([a-z])([0-9])", "$1/$2")
        .str.replace_all(r"[\s,./-]+", "/")
    )


def money(text: pl.Expr, *, decimal_comma: bool = False) -> pl.Expr:
    """Return a printed amount as plain digits: `$1,234.50 DR`, `(1,234.50)` and `1234.50-` become `-1234.50`."""
    return read_distinct(text, _read_money, (decimal_comma,))


def is_money(text: pl.Expr) -> pl.Expr:
    """Match texts that are amounts, with a decimal point or a decimal comma."""
    return read_distinct(text, _read_money, (False, True)).is_not_null()


def _read_money(texts: pl.DataFrame, decimal_commas: Sequence[bool]) -> pl.Series:
    return (
        texts.select(_compact())
        .select(_number())
        .select(_sign_and_digits())
        .select(_amount(decimal_commas))
        .to_series()
    )


@cache
def _compact() -> pl.Expr:
    compact = pl.col("text").str.to_uppercase().str.replace_all(f"[{MINUSES}]", "-").str.replace_all(_NO_SIGN, "")
    return compact.str.replace(_WHOLE, "$1").alias("compact")


@cache
def _number() -> pl.Expr:
    return pl.when(pl.col("compact").str.contains(_AMOUNT)).then("compact").alias("number")


@cache
def _sign_and_digits() -> list[pl.Expr]:
    number = pl.col("number")
    sign = number.str.replace_all(r"[0-9.,]", "").replace_strict(_SIGNS, default=None, return_dtype=pl.String)
    return [sign.alias("sign"), number.str.extract(r"([0-9.,]+)").alias("printed")]


@cache
def _amount(decimal_commas: Sequence[bool]) -> pl.Expr:
    digits = pl.coalesce(_digits(pl.col("printed"), decimal_comma=each) for each in decimal_commas)
    return pl.col("sign") + digits.str.strip_suffix(".").str.replace(r"^\.", "0.")


def _digits(printed: pl.Expr, *, decimal_comma: bool) -> pl.Expr:
    """Return the digits with a decimal point and nothing between groups; null if they are grouped in another way."""
    if decimal_comma:
        plain = printed.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
        return pl.when(printed.str.contains(_COMMAED)).then(plain)
    return pl.when(printed.str.contains(_DOTTED)).then(printed.str.replace_all(",", "", literal=True))


def resembles_amount(text: pl.Expr) -> pl.Expr:
    """Match texts that people take for an amount with cents, whether it can be read or not: `[12.00]`, `12.00 OD`."""
    return read_distinct(pl.when(has_cents(text)).then(text), _select_matching, _RESEMBLING).is_not_null()


def _select_matching(texts: pl.DataFrame, pattern: str) -> pl.Series:
    text = pl.col("text")
    return texts.select(pl.when(text.str.contains(pattern)).then(text)).to_series()


def has_cents(text: pl.Expr) -> pl.Expr:
    """Match texts with two decimals after a point or a comma."""
    return text.str.contains(r"[.,][0-9]{2}[^0-9]*$")


def needs_decimal_comma(text: pl.Expr) -> pl.Expr:
    """Match amounts that make sense only with a decimal comma: `13,15`, `1.234,-`, `1.500.000`."""
    return money(text, decimal_comma=True).is_not_null() & money(text).is_null()


def needs_decimal_point(text: pl.Expr) -> pl.Expr:
    """Match amounts that make sense only with a decimal point: `13.15`, `1,500,000`."""
    is_printed = has_cents(text) | text.str.contains(r"[0-9],[0-9]{2,3},[0-9]{3}")
    return is_printed & money(text).is_not_null() & money(text, decimal_comma=True).is_null()


def may_group(text: pl.Expr, mark: Literal[".", ","]) -> pl.Expr:
    """Match amounts like `1.500` (or `1,500`): one thousand five hundred, or one and a half with three decimals."""
    return text.str.contains(rf"^[^0-9.,]*[1-9][0-9]{{0,2}}[{mark}][0-9]{{3}}[^0-9.,]*$")


def negate(plain: pl.Expr) -> pl.Expr:
    """Return the amount with the opposite sign."""
    minus = plain.str.starts_with("-")
    return pl.when(minus).then(plain.str.strip_prefix("-")).otherwise("-" + plain)


def exact(plain: pl.Expr) -> pl.Expr:
    """Cast plain digits to a decimal, to check whether balances follow; null if they don't fit."""
    return plain.cast(pl.Decimal(38, 4), strict=False)
