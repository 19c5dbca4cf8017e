"""Read value dates that banks print in descriptions, often without the year."""

from functools import cache

import polars as pl

from pipelines.enrichment.wording.wording import EDGE, any_of

MAX_DAYS_APART = 60  # a printed day further from the posting date is not the value date (our judgement)

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_MONTH = any_of(*MONTHS)
_NUMBERED = "[0-3]?[0-9]/[01]?[0-9](?:/(?:20)?[0-9]{2})?"  # 12/03, 12/3/2026
_NAMED = f"[0-3]?[0-9] ?{_MONTH}(?: ?20[0-9]{{2}}|[0-9]{{2}}{EDGE})?"  # 12MAR, 12MAR26, 12 MAR 2026
DAY = any_of(_NUMBERED, _NAMED)
CLOCK = f"[0-2]?[0-9]:[0-5][0-9](?::[0-5][0-9])?(?: ?[AP]M{EDGE})?"
WHEN = any_of(f"[0-3]?[0-9]{_MONTH}{CLOCK}", f"{DAY},?(?: {CLOCK})?")  # 12MAR10:14, 12/03, 04JUL24 17:22

VALUE_DATE = EDGE + any_of("(?:VALUE |EFFECTIVE )?DATE:?", "EFFEC") + f" {DAY}(?: TIME {CLOCK})?{EDGE}"
# Days without a label: two digits each, or with a year. A range of days is a period that the payment is for.
UNLABELLED = EDGE + any_of(
    f"[0-3][0-9]/[01][0-9](?:/(?:20)?[0-9]{{2}})?(?:-{_NUMBERED})?,?(?: {CLOCK})?",
    f"[0-3]?[0-9] {_MONTH} 20[0-9]{{2}}{EDGE}(?: {CLOCK})?",
    f"[0-3][0-9]{_MONTH}{CLOCK}",
    f"[0-3][0-9]{_MONTH}(?:20[0-9]{{2}}|[0-9]{{2}})?{EDGE}(?: {CLOCK})?",
)
_CLOCK_AND_REST = r",? ?(?:TIME )?[0-9]{1,2}:.*$|,$"
_YEAR = any_of("/[0-9]{1,2}/", f"{_MONTH} ?") + "(?:20)?[0-9]{2}$"
_NUMBERS = {name: str(number) for number, name in enumerate(MONTHS, start=1)}

_IN_YEARS = {"in_same_year": 0, "in_year_before": -1, "in_year_after": 1}  # of the posting date

# On these channels, a day without a label was typed by a person and says what the payment is for.
_TYPED = ("npp", "transfer", "bpay", "direct_credit", "direct_debit")


def add_stated_day(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Add `stated_day`, `stated_month` and `stated_year` of the day that the bank printed; null if there is none.

    Args:
        frame: columns `value_date` (the match of VALUE_DATE), `rail`, `rest` (of the text) and `channel`.
    """
    labelled = pl.coalesce("value_date", pl.col("rail").str.extract(WHEN, 0))
    open_to_say = pl.col("labelled").is_null() & ~pl.col("channel").is_in(_TYPED)
    unlabelled = pl.when(open_to_say).then("rest").str.extract(UNLABELLED, 0)
    return (
        frame.with_columns(labelled=labelled)
        .with_columns(unlabelled=unlabelled)
        .with_columns(printed=_without_clock(pl.coalesce("labelled", _without_span(pl.col("unlabelled")))))
        .with_columns(
            stated_day=pl.col("printed").str.extract("[0-9]+", 0).cast(pl.Int8),
            stated_month=_month(pl.col("printed")),
            stated_year=_year(pl.col("printed")),
        )
    )


def _without_span(unlabelled: pl.Expr) -> pl.Expr:
    """Return the printed day, or null where it is a range of days."""
    return pl.when(~unlabelled.str.contains("-", literal=True)).then(unlabelled)


def _without_clock(printed: pl.Expr) -> pl.Expr:
    """Remove the time. It may be part of the same word: 12MAR10:14 is not in the year 2010."""
    return printed.str.replace(_CLOCK_AND_REST, "")


def _month(printed: pl.Expr) -> pl.Expr:
    return printed.str.extract(f"/[0-9]{{1,2}}|{_MONTH}", 0).str.strip_chars("/").replace(_NUMBERS).cast(pl.Int8)


def _year(printed: pl.Expr) -> pl.Expr:
    year = printed.str.extract(_YEAR, 0).str.extract("[0-9]+$", 0).cast(pl.Int32)
    return pl.when(year < 100).then(year + 2000).otherwise(year)


def add_effective_date(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `effective_date`: the value date as sent, else as printed; null without either.

    A printed day without a year gets the year that brings it closest to the posting date. A day is ignored if it does
    not exist or is more than MAX_DAYS_APART days from the posting date.

    Args:
        rows: `date` (of posting), `value_date` (as sent, or null), `stated_day`, `stated_month` and `stated_year`.
    """
    stated = rows.select("date", "value_date", "stated_month", *_stated_days())
    return rows.with_columns(stated.select(effective_date=_first_sound_day()).to_series())


@cache
def _stated_days() -> list[pl.Expr]:
    """Return the stated day in each year that it may be in. The 30th of February becomes a day of March."""
    day, month, posting_year = pl.col("stated_day"), pl.col("stated_month"), pl.col("date").dt.year()
    exists = day.is_between(1, 31) & month.is_between(1, 12)
    years = {name: pl.coalesce("stated_year", posting_year + step) for name, step in _IN_YEARS.items()}
    return [
        (
            pl.date(pl.when(exists & year.is_between(1900, 9999)).then(year), pl.when(exists).then(month), 1)
            + pl.duration(days=day.cast(pl.Int64) - 1)
        ).alias(name)
        for name, year in years.items()
    ]


@cache
def _first_sound_day() -> pl.Expr:
    """Return the value date, else the first stated day that exists and is near the posting date."""
    days = [pl.col(name) for name in _IN_YEARS]
    near = [(day - pl.col("date")).dt.total_days().abs() <= MAX_DAYS_APART for day in days]
    sound = (
        pl.when(close, day.dt.month() == pl.col("stated_month")).then(day)
        for day, close in zip(days, near, strict=True)
    )
    return pl.coalesce("value_date", *sound)
