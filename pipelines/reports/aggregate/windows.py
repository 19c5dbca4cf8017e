"""Flows over other periods: the last days, financial years, quarters, and months compared with a year before."""

from collections.abc import Callable

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Column, Derived, Source, Table, Total
from pipelines.reports.aggregate.balances import (
    ALL_ACCOUNTS,
    BALANCE_DAYS,
    MEAN_BALANCE,
    day_parts,
    day_sums,
    least_part,
)
from pipelines.reports.aggregate.cash_flow import MONTH, add_no_keys, months
from pipelines.reports.aggregate.flows import (
    KEY_FLOWS,
    MONEY_IN,
    MONEY_OUT,
    NET,
    REVENUE,
    AddKeys,
    by_day,
    by_month,
    flows,
)
from pipelines.vocabulary.report_values import ratio

WINDOWS = (30, 60, 90, 180, 365)  # days
_DAY = pl.duration(days=1)


def windows(facts: Facts) -> pl.DataFrame:
    """Return `days`, `firstDate` and `lastDate` of each customer's windows, and whether the history is that long."""
    first = pl.col("data_through") - pl.duration(days="days") + _DAY
    days = pl.DataFrame({"days": WINDOWS}, schema={"days": pl.Int64()})
    return facts.history.join(days, how="cross").select(
        BY_CUSTOMER, "days", firstDate=first, lastDate="data_through", coversHistory=pl.col("first_date") <= first
    )


def in_windows(frame: pl.LazyFrame, facts: Facts) -> pl.LazyFrame:
    spans = facts.cached(windows).lazy().select(BY_CUSTOMER, "days", "firstDate")
    return frame.join(spans, on=BY_CUSTOMER, validate="m:m").filter(pl.col("date") >= pl.col("firstDate"))


def _steps_in_windows(steps: pl.LazyFrame, facts: Facts) -> pl.LazyFrame:
    """Return the part of each balance step that lies in each window. A step is a run of days with the same balance.

    `window` is the window's length in days; `days` is how many days of the step lie in it.
    """
    spans = facts.cached(windows).lazy().select(BY_CUSTOMER, "firstDate", window="days")
    before = (pl.col("firstDate") - pl.col("date")).dt.total_days().clip(lower_bound=0)
    cut = steps.join(spans, on=BY_CUSTOMER, validate="m:m").with_columns(days=pl.col("days") - before)
    return cut.filter(pl.col("days") > 0)


def _window_parts(facts: Facts) -> pl.LazyFrame:
    cut = _steps_in_windows(ALL_ACCOUNTS.balance_rows(facts), facts)
    return cut.with_columns(least_part((BY_CUSTOMER, "window")), *day_parts()).with_columns(days="window")


def _window_sums(facts: Facts) -> pl.LazyFrame:
    cut = _steps_in_windows(facts.cached(ALL_ACCOUNTS.steps).lazy(), facts)
    return cut.group_by(BY_CUSTOMER, "window").agg(*day_sums()).rename({"window": "days"})


ROLLING_WINDOWS = Table(
    id="rolling_windows",
    name="Last 30 to 365 days",
    hierarchy="customer",
    type="summary",
    meaning="Windows that end on the day of the customer's last row, not today. Balances as in `monthly_cash_flow`.",
    keys=(Column("days", "days", meaning="length of the window"),),
    details=(
        Column("firstDate", "date", meaning="its first day"),
        Column("lastDate", "date", meaning="its last day, that of the customer's last row"),
        Column(
            "coversHistory",
            "boolean",
            meaning="the history reaches back to `firstDate`; if not, part of the window is empty",
        ),
    ),
    listed=lambda facts: facts.cached(windows).lazy(),
    sources=(
        flows(in_windows, ("days",), by_day, (MONEY_IN, MONEY_OUT, *KEY_FLOWS)),
        Source(_window_parts, BALANCE_DAYS, summed=_window_sums),
    ),
    derived=(MEAN_BALANCE, NET),
    hidden=("balanceDays",),
    order=("days",),
)


def _financial_year(month: pl.Expr) -> pl.Expr:
    """Return the 1 July that begins the Australian financial year of a month."""
    return month.dt.offset_by("-6mo").dt.truncate("1y").dt.offset_by("6mo")


def _quarter(month: pl.Expr) -> pl.Expr:
    return month.dt.truncate("1q")


def _add_start(start: Callable[[pl.Expr], pl.Expr]) -> AddKeys:
    return lambda frame, _: frame.with_columns(start=start(pl.col("month")))


def _periods(start: Callable[[pl.Expr], pl.Expr], length: str) -> Callable[[Facts], pl.LazyFrame]:
    """Return a function that lists the periods which the history touches, and whether it covers them fully."""
    last = pl.col("start").dt.offset_by(length) - _DAY

    def list_periods(facts: Facts) -> pl.LazyFrame:
        touched = facts.cached(months).lazy().with_columns(start=start(pl.col("month")))
        periods = touched.group_by(BY_CUSTOMER, "start").agg(pl.col("first_date", "data_through").first())
        complete = (pl.col("first_date") <= pl.col("start")) & (pl.col("data_through") >= last)
        through = pl.min_horizontal(last, "data_through")
        first = pl.max_horizontal("start", "first_date")
        return periods.select(
            BY_CUSTOMER,
            "start",
            name=_name(pl.col("start"), length),
            firstDate=first,
            lastDate=through,
            complete=complete,
        )

    return list_periods


def _name(start: pl.Expr, length: str) -> pl.Expr:
    """Format a year like 2025-26, a calendar quarter like 2025-Q3."""
    if length == "1y":
        following = (start.dt.year() + 1) % 100
        return pl.format("{}-{}", start.dt.year(), following.cast(pl.String).str.zfill(2))
    return pl.format("{}-Q{}", start.dt.year(), start.dt.quarter())


def _by_period(
    table: str, name: str, meaning: str, name_meaning: str, start: Callable[[pl.Expr], pl.Expr], length: str
) -> Table:
    return Table(
        id=table,
        name=name,
        hierarchy="customer",
        type="time_series",
        meaning=meaning,
        keys=(Column("start", "date", meaning="its first day"),),
        details=(
            Column("name", "text", meaning=name_meaning),
            Column("firstDate", "date", meaning="the first of its days that the history covers"),
            Column("lastDate", "date", meaning="the last of its days that the history covers"),
            Column("complete", "boolean", meaning="the history covers all its days"),
        ),
        listed=_periods(start, length),
        sources=(flows(_add_start(start), ("start",), by_month, (MONEY_IN, MONEY_OUT, *KEY_FLOWS)),),
        derived=(NET,),
        order=("start",),
    )


FINANCIAL_YEAR = _by_period(
    "financial_year",
    "Financial years",
    "Australian financial years, July to June. The last one, while not complete, is the year to date.",
    'both years, like "2025-26"',
    _financial_year,
    "1y",
)
QUARTERS = _by_period(
    "quarters",
    "Quarters",
    "The quarters that business activity statements are lodged for, which are calendar quarters.",
    'calendar year and quarter, like "2025-Q3" for July to September',
    _quarter,
    "3mo",
)


def _year_later(frame: pl.LazyFrame, _: Facts) -> pl.LazyFrame:
    return frame.with_columns(pl.col("month").dt.offset_by("12mo"))


def _before(total: Total) -> Total:
    return Total(
        f"{total.name}YearBefore",
        total.unit,
        total.part,
        meaning=f"`{total.name}` of the same month of the year before",
    )


def _growth(total: Total) -> Derived:
    now, before = pl.col(total.name), pl.col(f"{total.name}YearBefore")
    return Derived(
        f"{total.name}Growth",
        "ratio",
        (total.name, f"{total.name}YearBefore"),
        ratio(now - before, pl.when(before > 0).then(before)),
        f"({total.name} − {total.name}YearBefore) / {total.name}YearBefore; null unless the year before is above zero",
    )


def _seasons(facts: Facts) -> pl.LazyFrame:
    """Return the months for which the history also has the same month of the year before; `partial` if either is."""
    every = facts.cached(months).lazy()
    earlier = every.select(BY_CUSTOMER, pl.col("month").dt.offset_by("12mo"), partial_before="partial")
    return every.join(earlier, on=(BY_CUSTOMER, "month"), validate="1:1").select(
        BY_CUSTOMER, "month", partial=pl.col("partial") | pl.col("partial_before")
    )


_COMPARED = (REVENUE, MONEY_IN, MONEY_OUT)
_YEAR_BEFORE = flows(_year_later, ("month",), by_month, _COMPARED)


def _renamed_sums(facts: Facts) -> pl.LazyFrame:
    later = _year_later(facts.cached(by_month).lazy(), facts)
    return later.select(BY_CUSTOMER, "month", *(pl.col(each.name).alias(_before(each).name) for each in _COMPARED))


SEASONALITY = Table(
    id="seasonality",
    name="Months beside the year before",
    hierarchy="customer",
    type="time_series",
    meaning="A row for each month for which the history also has the same month of the year before.",
    keys=(MONTH,),
    details=(Column("partial", "boolean", meaning="the history does not cover one of the two months fully"),),
    listed=_seasons,
    sources=(
        flows(add_no_keys, ("month",), by_month, _COMPARED, finer=False),
        Source(_YEAR_BEFORE.rows, tuple(_before(each) for each in _COMPARED), summed=_renamed_sums),
    ),
    derived=tuple(_growth(each) for each in _COMPARED),
    order=("month",),
)
