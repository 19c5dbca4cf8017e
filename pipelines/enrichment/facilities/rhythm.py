"""Find how often a facility is repaid, and which repayments are missing.

A **slot** is a day on which a repayment was due, as far as payments show: one was made, or bounced. A payment soon
after one that bounced is its second try and not a slot. The frequency follows from the median gap between slots. If a
gap is longer by whole periods, that many repayments are missing in it.
"""

from bisect import bisect_left, bisect_right
from datetime import date
from functools import cache

import polars as pl

from pipelines.enrichment.calendars import SETTLEMENT, closed_weekdays
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.schemas import SeriesPeriod

# The numbers are our judgement.
MIN_SLOTS = 3
RETRY_DAYS = 5  # a bounced debit is tried again within these days; does not apply to what is due this often anyway
GRACE_DAYS, GRACE_BUSINESS_DAYS = 5, 2  # how late a repayment may be before it counts as missed
LONGEST_SILENCE_DAYS, LONGEST_SILENCE = 100, 6  # days, or repayments if longer: then none counts as missing

# Days from one repayment to the next.
PERIOD_DAYS = {
    "business_daily": 7 / 5,
    "weekly": 7.0,
    "fortnightly": 14.0,
    "four_weekly": 28.0,
    "twice_monthly": 365.25 / 24,
    "monthly": 365.25 / 12,
    "quarterly": 365.25 / 4,
    "yearly": 365.25,
}
_MONTHS = {"monthly": 1, "quarterly": 3, "yearly": 12}


def list_closed_days(first: date, last: date) -> pl.Series:
    """List the weekdays between the two dates on which direct entry does not settle, as one list of days."""
    closed = closed_weekdays()[SETTLEMENT]
    return pl.Series([closed[bisect_left(closed, first) : bisect_right(closed, last)]], dtype=pl.List(pl.Date()))


def find_slots(attempts: pl.DataFrame) -> pl.DataFrame:
    """Find the days on which repayments were due: `facility_id`, `date`, `bounced`, sorted.

    Args:
        attempts: `facility_id`, `date`, `bounced` of each repayment, made or tried.
    """
    by_day = attempts.lazy().group_by("facility_id", "date")
    of_day = by_day.agg(pl.col("bounced").all()).sort("facility_id", "date")
    gap = (pl.col("date") - pl.col("date").shift(1).over("facility_id")).dt.total_days()
    seldom = gap.median().over("facility_id") > RETRY_DAYS
    retry = pl.col("bounced").shift(1).over("facility_id") & (gap <= RETRY_DAYS) & seldom
    return of_day.filter(~retry.fill_null(value=False)).pipe(collect)


def find_frequencies(due: pl.LazyFrame, closed: pl.Series) -> pl.LazyFrame:
    """Find the frequency of slots: `facility_id` and `frequency`, null if they are irregular."""
    before = pl.col("date").shift(1).over("facility_id")
    gaps = due.with_columns(
        days=(pl.col("date") - before).dt.total_days(),
        business_days=pl.business_day_count(before, "date", holidays=closed),
    )
    return gaps.group_by("facility_id").agg(frequency=_frequency()).cast({"frequency": SeriesPeriod})


@cache
def _frequency() -> pl.Expr:
    """Return the frequency by the median gap: in business days for daily repayments, else in calendar days.

    Equal gaps of two weeks are fortnightly, uneven ones twice a month. Four weeks and a month differ in the same way.
    """
    days, middle = pl.col("days"), pl.col("days").median()
    two_weeks, four_weeks = (((days - length).abs() <= 1).mean() >= 0.7 for length in (14, 28))
    every = (
        pl.when(pl.col("business_days").median() <= 1)
        .then(pl.lit("business_daily"))
        .when(middle.is_between(6, 8))
        .then(pl.lit("weekly"))
        .when(middle.is_between(13, 15) & two_weeks)
        .then(pl.lit("fortnightly"))
        .when(middle.is_between(13, 17))
        .then(pl.lit("twice_monthly"))
        .when(middle.is_between(27, 29) & four_weeks & (pl.len() > MIN_SLOTS))
        .then(pl.lit("four_weekly"))
        .when(middle.is_between(27, 34))
        .then(pl.lit("monthly"))
        .when(middle.is_between(85, 97))
        .then(pl.lit("quarterly"))
        .when(middle.is_between(355, 376))
        .then(pl.lit("yearly"))
    )
    return pl.when(pl.len() >= MIN_SLOTS).then(every)


def find_missing(due: pl.LazyFrame, closed: pl.Series) -> pl.LazyFrame:
    """List missing repayments: `facility_id`, `date`, `overdue`.

    `overdue` ones are missing after the last slot, up to `through`; the others were passed over between slots.

    Args:
        due: slots with `frequency` and `through`.
    """
    following = pl.col("date").shift(-1).over("facility_id")
    return (
        due.filter(pl.col("frequency").is_not_null())
        .sort("facility_id", "date")
        .with_columns(following=following, overdue=following.is_null())
        .with_columns(missing=_count_missing(closed))
        .filter(pl.col("missing") > 0)
        .with_columns(nth=pl.int_ranges(1, pl.col("missing") + 1))
        .explode("nth")
        .select("facility_id", "overdue", date=expected_date(pl.col("nth"), closed))
        .sort("facility_id", "date")
    )


def _count_missing(closed: pl.Series) -> pl.Expr:
    """Count the repayments missing between a slot and the next, or until `through`."""
    until = pl.coalesce("following", "through")
    days, working = (until - pl.col("date")).dt.total_days(), business_days_since("date", until, closed)
    daily = pl.col("frequency") == "business_daily"
    # The smaller of two counts: by calendar days alone, a payment that is only late over Easter would look missed.
    periods = pl.min_horizontal(days / period_days(), working / (period_days() * 5 / 7)).round()
    passed = pl.when(daily).then(working).otherwise(periods) - 1
    late = pl.when(daily).then(working - GRACE_BUSINESS_DAYS).otherwise(((days - GRACE_DAYS) / period_days()).floor())
    most = pl.max_horizontal(LONGEST_SILENCE, (LONGEST_SILENCE_DAYS / period_days()).floor())
    return pl.when("overdue").then(late).otherwise(passed).clip(0, most).cast(pl.Int64)


def business_days_since(day: str, until: pl.Expr, closed: pl.Series) -> pl.Expr:
    """Count the business days after `day`, up to and including `until`."""
    return pl.business_day_count(pl.col(day).dt.offset_by("1d"), until.dt.offset_by("1d"), holidays=closed).cast(
        pl.Int64
    )


@cache
def period_days() -> pl.Expr:
    return pl.col("frequency").cast(pl.String).replace_strict(PERIOD_DAYS, default=None, return_dtype=pl.Float64())


def expected_date(nth: pl.Expr, closed: pl.Series, day: str = "date") -> pl.Expr:
    """Return the expected date of the nth repayment after `day`, moved from a closed day to the next business day."""
    months = pl.col("frequency").cast(pl.String).replace_strict(_MONTHS, default=None, return_dtype=pl.Int64())
    by_month = pl.col(day).dt.offset_by(pl.format("{}mo", months * nth))
    by_days = pl.col(day).dt.offset_by(pl.format("{}d", (period_days() * nth).round().cast(pl.Int64)))
    daily = pl.col(day).dt.add_business_days(nth, holidays=closed, roll="backward")
    return (
        pl.when(pl.col("frequency") == "business_daily")
        .then(daily)
        .otherwise(pl.coalesce(by_month, by_days).dt.add_business_days(0, holidays=closed, roll="forward"))
    )
