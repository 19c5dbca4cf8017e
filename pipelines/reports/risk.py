"""Risk, first form: a transparent points score over features free of scale.

    points = sum over FEATURES of the points of the band its reading falls in       (0–100)
    value  = 1 − points / 100                                                       (0–1)

**`value` is not a probability of default.** It is the share of the points that were not earned; the weights are
judgement, fitted to no outcomes, and `errorCodes` says so with `Risk.Uncalibrated`, always.

Points are earned by evidence: a reading that is missing (no balances, no revenue to divide by, too short a history)
earns none. So missing data never helps, never divides by zero, and costs confidence besides.

Every feature looks at the WINDOW days that end at the customer's last row; all money leaves own transfers out.
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import polars as pl

from pipelines import schemas
from pipelines.reports import words
from pipelines.reports.accounts import BY_ACCOUNT, cash_balances
from pipelines.reports.figures import RATIO, banded, ratio, reason, reasons, score
from pipelines.reports.periods import BY_CUSTOMER, customers, data_through, days_before, days_behind

WINDOW = 180  # days: what lenders ask of a small business, and two quarters of tax
MONTH = 30  # days
FULL_HISTORY = 12  # months: every season once
SHORT_HISTORY = 3  # months
STALE_AFTER = 90  # days


@dataclass(frozen=True)
class Feature:
    """A reading and its bands: `points` of the first band whose limit the reading reaches, else none.

    A limit is reached from above when more is better (reading ≥ limit), from below otherwise (reading ≤ limit).
    Bands run from the best limit to the worst, with falling points.
    """

    name: str
    unit: str
    more_is_better: bool
    bands: tuple[tuple[Decimal, int], ...]
    why: str

    @property
    def most(self) -> int:
        return self.bands[0][1]

    def points(self) -> pl.Expr:
        reading = pl.col(self.name)
        limits = ((pl.lit(limit, RATIO), points) for limit, points in self.bands)
        reached = (
            pl.when(reading >= limit if self.more_is_better else reading <= limit).then(points)
            for limit, points in limits
        )
        return pl.coalesce(*reached, 0)


def _bands(text: str) -> tuple[tuple[Decimal, int], ...]:
    """`"12:15 6:10"` → limits and their points."""
    pairs = (band.split(":") for band in text.split())
    return tuple((Decimal(limit), int(points)) for limit, points in pairs)


FEATURES = (
    Feature(
        "monthsOfHistory",
        "months",
        more_is_better=True,
        bands=_bands("12:15 9:12 6:8 3:4"),
        why="A business seen through a year has shown every season; one seen for a month has shown little.",
    ),
    Feature(
        "revenueTrend",
        "ratio",
        more_is_better=True,
        bands=_bands("1.00:15 0.85:10 0.70:5"),
        why="Revenue of the last 90 days to the 90 days before: takings that shrink pay less debt.",
    ),
    Feature(
        "overdrawnDayShare",
        "ratio",
        more_is_better=False,
        bands=_bands("0:20 0.05:14 0.15:7 0.30:3"),
        why="Days closed below zero (or below the approved limit) in the worst account: the plainest sign of strain.",
    ),
    Feature(
        "dishonoursPerMonth",
        "per month",
        more_is_better=False,
        bands=_bands("0:15 0.25:9 0.75:4"),
        why="A payment the bank refused was a promise that could not be kept.",
    ),
    Feature(
        "debtServiceToRevenue",
        "ratio",
        more_is_better=False,
        bands=_bands("0.10:15 0.20:11 0.30:6 0.40:2"),
        why="What lenders already take of each dollar of revenue leaves less for the next one.",
    ),
    Feature(
        "gamblingShare",
        "ratio",
        more_is_better=False,
        bands=_bands("0:5 0.01:3 0.05:1"),
        why="Money gambled, as a share of all money out, is no cost of the business.",
    ),
    Feature(
        "bufferDays",
        "days",
        more_is_better=True,
        bands=_bands("30:15 14:11 7:6 3:2"),
        why="How many days of usual payments the average balance would cover when income stops.",
    ),
)
MOST_POINTS = sum(feature.most for feature in FEATURES)
RATINGS = (("A", 80), ("B", 65), ("C", 50), ("D", 35))  # from these points on; below: E
CONFIDENCE = (("high", 70), ("medium", 40))  # from that score on; below: low


def risk_report(transactions: pl.LazyFrame, as_of: date) -> pl.LazyFrame:
    """TRANSACTIONS → one row per customer: `value`, `rating`, `pdConfidenceScore`, `pdConfidenceRating`,
    `errorCodes`, `drivers`.

    A customer without posted rows earned nothing: value 1, rating E, confidence 0, `Risk.NoTransactions`.
    """
    return (
        customers(transactions)
        .join(readings(transactions.filter(schemas.posted())), on=BY_CUSTOMER, how="left", validate="1:1")
        .with_columns(points=pl.sum_horizontal(*(f.points() for f in FEATURES)))
        .with_columns(confidence=confidence(as_of))
        .pipe(as_report, as_of)
    )


def readings(posted: pl.LazyFrame) -> pl.LazyFrame:
    """Posted rows → one row per customer: a column per feature (RATIO, null when missing) and the evidence."""
    aged = posted.with_columns(age=days_before(pl.col("date").max().over(BY_CUSTOMER)))
    return (
        history(aged)
        .join(flows(aged.filter(pl.col("age") < WINDOW)), on=BY_CUSTOMER, how="left", validate="1:1")
        .join(balances(posted), on=BY_CUSTOMER, how="left", validate="1:1")
        .with_columns(span=(pl.col("data_through") - pl.col("first_date")).dt.total_days() + 1)
        .with_columns(**feature_readings())
    )


def history(aged: pl.LazyFrame) -> pl.LazyFrame:
    """First and last day, and in how many periods of MONTH days, counted back from the last row, anything happened.

    A silence of years between two rows is no history: hence periods with rows, not the distance.
    """
    return aged.group_by(BY_CUSTOMER).agg(
        first_date=pl.col("date").min(),
        data_through=pl.col("date").max(),
        months=(pl.col("age") // MONTH).n_unique(),
    )


def flows(window: pl.LazyFrame) -> pl.LazyFrame:
    """The window's rows → one row per customer: sums in AUD, counts, and the share of value with a category."""
    late, early = pl.col("age") < WINDOW // 2, pl.col("age") >= WINDOW // 2
    amount, size, out = pl.col("amount"), pl.col("amount").abs(), words.money_out()
    return window.group_by(BY_CUSTOMER).agg(
        revenue=amount.filter(words.is_revenue()).sum(),
        late_revenue=amount.filter(words.is_revenue() & late).sum(),
        early_revenue=amount.filter(words.is_revenue() & early).sum(),
        money_out=out.filter(words.is_external()).sum(),
        debt_service=out.filter(words.is_debt_service()).sum(),
        gambling=out.filter(words.is_gambling()).sum(),
        dishonours=dishonours(),
        categorised=ratio(size.filter(words.is_categorised()).sum(), size.sum()),
    )


def dishonours() -> pl.Expr:
    """Payments of the customer that the bank refused, counted by the payment that came back: some banks charge no fee,
    and others one for several. What bounced of a customer's customers is no fault of this one.
    """
    return words.is_returned_payment().sum()


def balances(posted: pl.LazyFrame) -> pl.LazyFrame:
    """Posted rows → one row per customer with balances: `overdrawn_share` (of the worst cash account's known days)
    and `balance_days` (AUD × days held over the window, all cash accounts)."""
    overdrawn = pl.col("closing_balance") < -pl.col("credit_limit").fill_null(0)
    days, known = pl.col("days_held"), pl.col("closing_balance").is_not_null()
    by_account = (
        balances_held(posted)
        .filter(known & (days > 0))
        .group_by(BY_ACCOUNT)
        .agg(
            overdrawn_share=ratio(days.filter(overdrawn).sum(), days.sum()),
            balance_days=(pl.col("closing_balance") * days).sum(),
        )
    )
    return by_account.group_by(BY_CUSTOMER).agg(pl.col("overdrawn_share").max(), pl.col("balance_days").sum())


def balances_held(posted: pl.LazyFrame) -> pl.LazyFrame:
    """Closing balances of cash accounts, each with `days_held`: the window's days until the account's next one.

    Not positive for one that was replaced before the window began.
    """
    through = pl.col("data_through")
    opens = through - pl.duration(days=WINDOW - 1)
    until = pl.coalesce(pl.col("date").shift(-1).over(BY_ACCOUNT), through + pl.duration(days=1))
    held = (until - pl.max_horizontal("date", opens)).dt.total_days()
    return (
        cash_balances(posted)
        .join(data_through(posted), on=BY_CUSTOMER, how="left", validate="m:1")
        .sort(*BY_ACCOUNT, "date")
        .with_columns(days_held=held)
    )


def feature_readings() -> dict[str, pl.Expr]:
    """The reading of every feature by name; null where the history is too short or there is nothing to divide by."""
    months_seen = ratio(pl.min_horizontal("span", pl.lit(WINDOW)), pl.lit(MONTH))
    a_month = pl.col("span") >= MONTH
    return {
        "monthsOfHistory": pl.col("months").cast(RATIO),
        "revenueTrend": pl.when(pl.col("span") >= WINDOW).then(share_of("late_revenue", "early_revenue")),
        "overdrawnDayShare": pl.when(a_month).then(pl.col("overdrawn_share")),
        "dishonoursPerMonth": pl.when(a_month).then(ratio(pl.col("dishonours"), months_seen)),
        "debtServiceToRevenue": pl.when(a_month).then(share_of("debt_service", "revenue")),
        "gamblingShare": pl.when(a_month).then(share_of("gambling", "money_out")),
        "bufferDays": pl.when(a_month).then(share_of("balance_days", "money_out")),
    }


def share_of(part: str, whole: str) -> pl.Expr:
    """`part / whole` where there is a whole: of revenue eaten up by refunds no share can be told."""
    return ratio(pl.col(part), pl.when(pl.col(whole) > 0).then(pl.col(whole)))


def confidence(as_of: date) -> pl.Expr:
    """0–100: how much the figure rests on, not how good it is.

    40 for a year of history, 30 for the readings available (by their weight), 20 for the share of value with a
    category, 10 for fresh data (none from 90 days on); each in proportion.
    """
    weight = pl.sum_horizontal(*(pl.when(pl.col(f.name).is_not_null()).then(f.most).otherwise(0) for f in FEATURES))
    months = pl.min_horizontal("months", pl.lit(FULL_HISTORY))
    age = days_behind(as_of).clip(upper_bound=STALE_AFTER)
    parts = (
        ratio(40 * months, pl.lit(FULL_HISTORY)),
        ratio(30 * weight, pl.lit(MOST_POINTS)),
        20 * pl.col("categorised"),
        ratio(10 * (STALE_AFTER - age), pl.lit(STALE_AFTER)),
    )
    known = pl.col("months").is_not_null()
    return score(pl.when(known).then(pl.sum_horizontal(*parts)).otherwise(0))


def as_report(scored: pl.LazyFrame, as_of: date) -> pl.LazyFrame:
    """Readings, points and confidence → the report's members."""
    points = pl.col("points")
    return scored.select(
        BY_CUSTOMER,
        value=ratio(MOST_POINTS - points, pl.lit(MOST_POINTS)),
        rating=banded(points, RATINGS, "E"),
        pdConfidenceScore="confidence",
        pdConfidenceRating=banded(pl.col("confidence"), CONFIDENCE, "low"),
        errorCodes=error_codes(as_of),
        drivers=pl.concat_list(*(driver(feature) for feature in FEATURES)),
    ).sort(BY_CUSTOMER)


def driver(feature: Feature) -> pl.Expr:
    """What one feature read and earned. A null reading is a missing one and earned nothing."""
    return pl.struct(
        pl.lit(feature.name).alias("feature"),
        pl.col(feature.name).alias("reading"),
        pl.lit(feature.unit).alias("unit"),
        feature.points().cast(pl.Int32).alias("points"),
        pl.lit(feature.most, pl.Int32).alias("maxPoints"),
        pl.lit(feature.why).alias("reason"),
    )


def error_codes(as_of: date) -> pl.Expr:
    """Why the figure should not be leaned on; `Risk.Uncalibrated` always."""
    behind, months = days_behind(as_of), pl.col("months")
    return reasons(
        reason(
            "Risk.Uncalibrated",
            pl.lit(value=True),
            pl.lit("The value is a points score that was never fitted to outcomes: indicative, not a probability."),
        ),
        reason("Risk.NoTransactions", months.is_null(), pl.lit("There are no posted transactions.")),
        reason(
            "Risk.InsufficientHistory",
            months < SHORT_HISTORY,
            pl.format("Only {} months of history; at least {} are needed.", months, pl.lit(SHORT_HISTORY)),
        ),
        reason(
            "Risk.NoBalances",
            months.is_not_null() & pl.col("balance_days").is_null(),
            pl.lit("No account states its balance: overdrawn days and buffer are unknown."),
        ),
        reason(
            "Risk.NoRevenue",
            pl.col("revenue") <= 0,
            pl.format("No net revenue was recognised in the last {} days.", pl.lit(WINDOW)),
        ),
        reason("Risk.StaleData", behind > STALE_AFTER, pl.format("The last row is {} days old.", behind)),
    )
