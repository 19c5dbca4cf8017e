"""Daily balances and flows, and profiles by day of the week and day of the month."""

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Column, Derived, Source, Table, Total
from pipelines.reports.aggregate.balances import ALL_ACCOUNTS
from pipelines.reports.aggregate.cash_flow import add_no_keys, months
from pipelines.reports.aggregate.flows import COUNTS, MONEY_IN, MONEY_OUT, NET, by_day, flows

_DATE = pl.col("date")


def _days(facts: Facts) -> pl.LazyFrame:
    return facts.cached(by_day).lazy().select(BY_CUSTOMER, "date")


def _closing_parts(facts: Facts) -> pl.LazyFrame:
    """Return the balances at the end of each day with rows."""
    stated = ALL_ACCOUNTS.balance_rows(facts).rename({"date": "step"})
    return _in_steps(facts).drop("balance").join(stated, on=(BY_CUSTOMER, "step"), validate="m:m")


def _closings(facts: Facts) -> pl.LazyFrame:
    return _in_steps(facts).drop("step")


def _in_steps(facts: Facts) -> pl.LazyFrame:
    """Return each day with rows, with the first day of the step that it lies in (`step`) and the step's `balance`."""
    steps = facts.cached(ALL_ACCOUNTS.steps).lazy().select(BY_CUSTOMER, "date", "balance", step="date")
    steps = steps.sort("date", BY_CUSTOMER)
    days = _days(facts).sort("date", BY_CUSTOMER)
    return days.join_asof(steps, on="date", by=BY_CUSTOMER, check_sortedness=False)


DAILY_BALANCE = Table(
    id="daily_balance",
    name="Daily balance",
    hierarchy="customer",
    type="time_series",
    meaning="A row for each day with transactions. Between two such days no money moved.",
    keys=(Column("date", "date", meaning="the day"),),
    listed=_days,
    sources=(
        flows(add_no_keys, ("date",), by_day, (MONEY_IN, MONEY_OUT), finer=False),
        Source(
            _closing_parts,
            (
                Total(
                    "balance",
                    "AUD",
                    pl.col("closing_balance"),
                    complete=True,
                    meaning="of all cash accounts seen so far, at the end of the day; null when one is unknown",
                ),
            ),
            summed=_closings,
        ),
    ),
    derived=(NET,),
    order=("date",),
)

_FIRST, _LAST = pl.col("firstDate"), pl.col("lastDate")
_SPAN = (Column("firstDate", "date"), Column("lastDate", "date"))


def _mean(name: str, total: str, words: str) -> Derived:
    known = pl.when(pl.col("daysInHistory") != 0).then("daysInHistory")
    return Derived(name, "AUD", (total, "daysInHistory"), pl.col(total) / known, f"{total} / daysInHistory: {words}")


def _on_weekday(frame: pl.LazyFrame, _: Facts) -> pl.LazyFrame:
    return frame.with_columns(weekday=_DATE.dt.weekday().cast(pl.Int64))


def _weekdays(facts: Facts) -> pl.LazyFrame:
    weekdays = pl.LazyFrame({"weekday": range(1, 8)}, schema={"weekday": pl.Int64()})
    return _spans(facts).join(weekdays, how="cross")


def _spans(facts: Facts) -> pl.LazyFrame:
    return facts.history.lazy().select(BY_CUSTOMER, firstDate="first_date", lastDate="data_through")


def _weekdays_between() -> pl.Expr:
    days = (_LAST - _FIRST).dt.total_days() + 1
    until_first = (pl.col("weekday") - _FIRST.dt.weekday().cast(pl.Int64)) % 7
    return (days - until_first + 6) // 7


WEEKDAY_PROFILE = Table(
    id="weekday_profile",
    name="Days of the week",
    hierarchy="customer",
    type="summary",
    meaning="The whole history by day of the week; always seven rows.",
    keys=(Column("weekday", "count", meaning="1 for Monday to 7 for Sunday"),),
    details=_SPAN,
    listed=_weekdays,
    sources=(flows(_on_weekday, ("weekday",), by_day, (MONEY_IN, MONEY_OUT, *COUNTS)),),
    derived=(
        Derived(
            "daysInHistory",
            "days",
            ("weekday", "firstDate", "lastDate"),
            _weekdays_between(),
            "number of such days from the first to the last row, with or without transactions",
        ),
        _mean("meanMoneyIn", "moneyIn", "mean of such days"),
        _mean("meanMoneyOut", "moneyOut", "mean of such days"),
    ),
    hidden=("firstDate", "lastDate"),
    order=("weekday",),
)


def _on_day(frame: pl.LazyFrame, _: Facts) -> pl.LazyFrame:
    return frame.with_columns(day=_DATE.dt.day().cast(pl.Int64))


def _days_of_month(facts: Facts) -> pl.LazyFrame:
    """Return days 1 to 31, and how many months of the history have that day."""
    days = pl.LazyFrame({"day": range(1, 32)}, schema={"day": pl.Int64()})
    length = pl.col("month").dt.days_in_month()
    lengths = (
        facts.cached(months)
        .lazy()
        .group_by(BY_CUSTOMER)
        .agg(
            pl.len().cast(pl.Int64), *((length >= day).sum().cast(pl.Int64).alias(f"of_{day}") for day in (29, 30, 31))
        )
    )
    long_enough = pl.coalesce(*(pl.when(pl.col("day") == day).then(f"of_{day}") for day in (29, 30, 31)), "len")
    return (
        _spans(facts)
        .join(lengths, on=BY_CUSTOMER, validate="1:1")
        .join(days, how="cross")
        .select(BY_CUSTOMER, "firstDate", "lastDate", "day", monthsWithDay=long_enough)
    )


def _days_between() -> pl.Expr:
    day = pl.col("day")
    begun_later = day < _FIRST.dt.day()
    ended_earlier = (day > _LAST.dt.day()) & (day <= _LAST.dt.days_in_month())
    return pl.col("monthsWithDay") - begun_later.cast(pl.Int64) - ended_earlier.cast(pl.Int64)


DAY_OF_MONTH_PROFILE = Table(
    id="day_of_month_profile",
    name="Days of the month",
    hierarchy="customer",
    type="summary",
    meaning="The whole history by day of the month; always 31 rows.",
    keys=(Column("day", "count", meaning="1 to 31"),),
    details=(*_SPAN, Column("monthsWithDay", "count")),
    listed=_days_of_month,
    sources=(flows(_on_day, ("day",), by_day, (MONEY_IN, MONEY_OUT, *COUNTS)),),
    derived=(
        Derived(
            "daysInHistory",
            "days",
            ("day", "firstDate", "lastDate", "monthsWithDay"),
            _days_between(),
            "number of such days from the first to the last row, with or without transactions: months that have the "
            "day, minus the first if the history begins after it, minus the last if the history ends before it",
        ),
        _mean("meanMoneyIn", "moneyIn", "mean of such days"),
        _mean("meanMoneyOut", "moneyOut", "mean of such days"),
    ),
    hidden=("firstDate", "lastDate", "monthsWithDay"),
    order=("day",),
)
