"""The summary: how complete the customer's data are, as one figure. The package's docstring has the formula."""

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Column, Derived, Source, Table, Total
from pipelines.reports.completeness.coverage import EARLIER_DAYS, YEAR_DAYS, best_days, epoch
from pipelines.vocabulary.report_values import name_band, ratio, score

# Points and tiers are our judgement.
YEAR_POINTS, EARLIER_POINTS = 90, 10
TIERS = (("complete", 80), ("substantial", 60), ("partial", 30))  # lowest score of each; below: insufficient


def points(year: pl.Expr, before: pl.Expr) -> pl.Expr:
    """Return 0 to 100 points for the worth of the last year's days and of the two years before."""
    return ratio(year * YEAR_POINTS, pl.lit(YEAR_DAYS)) + ratio(before * EARLIER_POINTS, pl.lit(EARLIER_DAYS))


def score_of_worth() -> pl.Expr:
    return score(points(pl.col("yearWorth"), pl.col("beforeWorth")))


SCORE_WORDS = (
    f"{YEAR_POINTS} × what the last {YEAR_DAYS} days are worth / {YEAR_DAYS} + {EARLIER_POINTS} × "
    f"what the {EARLIER_DAYS} days before are worth / {EARLIER_DAYS}"
)


def documented_days(facts: Facts) -> pl.LazyFrame:
    return best_days(facts).with_columns(in_year=pl.col("day") >= epoch(facts.as_of) - YEAR_DAYS)


SUMMARY = Table(
    id="summary",
    name="Completeness",
    hierarchy="customer",
    type="summary",
    keys=(),
    listed=lambda facts: facts.customers.lazy(),
    sources=(
        Source(
            documented_days,
            (
                Total("yearWorth", "ratio", pl.when("in_year").then("worth")),
                Total("beforeWorth", "ratio", pl.when(~pl.col("in_year")).then("worth")),
                Total("yearSeen", "ratio", pl.when("in_year").then("weight")),
                Total("daysSeen", "days", pl.when("in_year").then(pl.lit(1))),
            ),
        ),
    ),
    derived=(
        Derived("completenessScore", "points", ("yearWorth", "beforeWorth"), score_of_worth(), SCORE_WORDS),
        Derived(
            "completenessTier",
            "text",
            ("completenessScore",),
            name_band(pl.col("completenessScore"), TIERS, "insufficient"),
            "the band of completenessScore",
        ),
        Derived(
            "totalMissingness",
            "ratio",
            ("yearSeen",),
            ratio(YEAR_DAYS - pl.col("yearSeen"), pl.lit(YEAR_DAYS)),
            f"the share of the last {YEAR_DAYS} days that no account documents",
        ),
    ),
    hidden=("yearWorth", "beforeWorth", "yearSeen", "daysSeen"),
    order=(),
)


def customers_freshness(facts: Facts) -> pl.LazyFrame:
    history = facts.history.lazy().select(BY_CUSTOMER, dataThrough="data_through", firstDate="first_date")
    joined = facts.customers.lazy().join(history, on=BY_CUSTOMER, how="left", validate="1:1")
    return joined.with_columns(asOf=pl.lit(facts.as_of))


FRESHNESS = Table(
    id="freshness",
    name="Freshness",
    hierarchy="customer",
    type="summary",
    keys=(),
    details=(Column("firstDate", "date"), Column("dataThrough", "date"), Column("asOf", "date")),
    listed=customers_freshness,
    sources=(),
    derived=(
        Derived(
            "daysBehind",
            "days",
            ("dataThrough", "asOf"),
            (pl.col("asOf") - pl.col("dataThrough")).dt.total_days().clip(lower_bound=0),
            "days from dataThrough to asOf",
        ),
    ),
    hidden=("asOf",),
    order=(),
)
