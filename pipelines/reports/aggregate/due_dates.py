"""Quarters, and the days on which superannuation and activity statements are due."""

from collections.abc import Sequence
from datetime import date
from functools import cache
from itertools import chain
from typing import Literal, TypeAlias

import polars as pl

from pipelines.enrichment.calendars import FIRST_DAY, LAST_DAY, STATES, closed_weekdays
from pipelines.figures.facts import Facts
from pipelines.reports.aggregate.tax_rules import OBLIGATIONS

Roll: TypeAlias = Literal["forward", "backward"]
_EVERY_DAY = pl.date_range(FIRST_DAY, LAST_DAY, eager=True)


@cache
def holidays() -> Sequence[date]:
    """Return weekdays on which any state has a holiday: the tax office counts none of them as a business day."""
    return sorted(set(chain.from_iterable(closed_weekdays()[state] for state in STATES)))


def on_business_day(day: pl.Expr) -> pl.Expr:
    """Return the day, or the next business day: a payment due on a weekend or holiday may be made then."""
    return _look_up(day, 0, "forward")


def business_days_after(day: pl.Expr, count: int) -> pl.Expr:
    """Return the day that is this many business days later. The day itself is not counted, even if it is one."""
    return _look_up(day, count, "backward")


def _look_up(day: pl.Expr, count: int, roll: Roll) -> pl.Expr:
    place = (day - pl.lit(FIRST_DAY)).dt.total_days()
    return pl.lit(_shifted_days(count, roll)).gather(place.clip(0, _EVERY_DAY.len() - 1))


@cache
def _shifted_days(count: int, roll: Roll) -> pl.Series:
    """Return every day from FIRST_DAY on, shifted by business days. Cached, because it goes through all holidays."""
    return _EVERY_DAY.dt.add_business_days(count, holidays=holidays(), roll=roll)


def quarter_start(day: pl.Expr) -> pl.Expr:
    return day.dt.truncate("1q")


def quarter_end(day: pl.Expr) -> pl.Expr:
    return quarter_start(day).dt.offset_by("3mo").dt.offset_by("-1d")


def super_due(end: pl.Expr) -> pl.Expr:
    """Return the due date of super for a quarter, by its last day: the 28th of the month after."""
    return on_business_day(end.dt.offset_by(f"{OBLIGATIONS.super_guarantee.due_day}d"))


def statement_due(end: pl.Expr) -> pl.Expr:
    """Return the due date of a quarter's activity statement, by its last day: the 28th of the month after; in February
    for the December quarter.
    """
    month_after = end.dt.offset_by("1d")
    month = pl.when(end.dt.month() == 12).then(month_after.dt.offset_by("1mo")).otherwise(month_after)
    return on_business_day(month.dt.offset_by(f"{OBLIGATIONS.activity_statements.due_day - 1}d"))


def quarters(facts: Facts) -> pl.LazyFrame:
    """Return a row per customer and quarter: from the quarter before the history to its last one, as far back as the
    rules go.

    Columns: `customer_number, first_date, data_through, periodStart, periodEnd`.
    """
    begins = quarter_start(pl.col("first_date")).dt.offset_by("-3mo")
    known = pl.max_horizontal(begins, quarter_start(pl.lit(OBLIGATIONS.first_day)))
    starts = pl.date_ranges(known, "data_through", "3mo", closed="both")
    return (
        facts.history.lazy()
        .filter(known <= pl.col("data_through"))
        .with_columns(periodStart=starts)
        .explode("periodStart")
        .with_columns(periodEnd=quarter_end(pl.col("periodStart")))
    )


def mark_periods(periods: pl.LazyFrame) -> pl.LazyFrame:
    """Add `partial` (the history doesn't cover the whole period) and `due` (it reaches the due date)."""
    starts_late = pl.col("first_date") > pl.col("periodStart")
    ends_early = pl.col("data_through") < pl.col("periodEnd")
    return periods.with_columns(partial=starts_late | ends_early, due=pl.col("data_through") >= pl.col("dueDate"))


def listed_periods(periods: pl.LazyFrame) -> pl.LazyFrame:
    """Return the periods of the history's last `years_listed` years, without those that end before it begins."""
    since = pl.col("data_through").dt.offset_by(f"-{OBLIGATIONS.years_listed}y")
    return periods.filter(pl.col("periodEnd") >= pl.col("first_date"), pl.col("periodEnd") > since)
