"""Accounts: their periods, the days they cover, and the evidence for it."""

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT, reported_details
from pipelines.figures.facts import Facts
from pipelines.figures.tables import Column, Derived, Source, Table, Total
from pipelines.reports.completeness import coverage
from pipelines.reports.completeness.cached import cached
from pipelines.reports.completeness.score import SCORE_WORDS, score_of_worth
from pipelines.vocabulary.report_values import ratio

ACCOUNT_ID = Column("accountId", "text")
DETAILS = (
    Column("accountName", "text"),
    Column("bankName", "text"),
    Column("accountNumberMasked", "text"),
    Column("accountType", "text"),
    Column("identified", "boolean"),
)


@cached
def reported_accounts(facts: Facts) -> pl.LazyFrame:
    """Return each account's keys, its DETAILS as reported, and `accountId`."""
    return facts.accounts.lazy().select(*BY_ACCOUNT, *reported_details())


def add_account_id(rows: pl.LazyFrame, facts: Facts) -> pl.LazyFrame:
    """Add the account's id as reported. Ids are formatted once per account, not per row."""
    ids = reported_accounts(facts).select(*BY_ACCOUNT, "accountId")
    return rows.join(ids, on=BY_ACCOUNT, how="left", validate="m:1")


def accounts(facts: Facts) -> pl.LazyFrame:
    """Return the listed rows of ACCOUNTS."""
    day = pl.col("day")
    spans = (
        coverage.steps(facts)
        .group_by(BY_ACCOUNT)
        .agg(
            firstDate=day.min().cast(pl.Date),
            lastDate=day.max().cast(pl.Date),
            transactionCount=pl.col("rows").sum(),
            withBalance=pl.col("rows_with_balance").sum(),
            longestPause=pl.max_horizontal(pl.col("pause").max(), coverage.allowed_silence().first()),
        )
    )
    return (
        reported_accounts(facts)
        .join(spans, on=BY_ACCOUNT, how="left", validate="1:1")
        .with_columns(asOf=pl.lit(facts.as_of))
        .drop("account_id")
    )


def stretches_of_accounts(facts: Facts) -> pl.LazyFrame:
    """Return the stretches of days, with how many of them are in the last year (`in_year`) and before (`in_before`)."""
    days = {"in_year": coverage.year_days(facts.as_of), "in_before": coverage.before_days(facts.as_of)}
    return coverage.stretches(facts).with_columns(**days)


def rows_of_accounts(facts: Facts) -> pl.LazyFrame:
    """Return the posted rows with their balance and the account's id."""
    return facts.rows.lazy().select(*BY_ACCOUNT, "transaction_id", "balance").pipe(add_account_id, facts)


def _days_spanned() -> pl.Expr:
    return (pl.col("lastDate") - pl.col("firstDate")).dt.total_days() + 1


def _days_covered() -> pl.Expr:
    """Return the days of the account's own history that a step covers."""
    return pl.col("day") - pl.col("seen_from") + 1


# The longest time between two days with rows so far, or what is allowed to accounts of this type if that is longer.
_LONGEST_PAUSE = Column("longestPause", "days")

ACCOUNTS = Table(
    id="accounts",
    name="Accounts",
    hierarchy="account",
    type="summary",
    keys=(ACCOUNT_ID,),
    details=(*DETAILS, Column("firstDate", "date"), Column("lastDate", "date"), Column("asOf", "date"), _LONGEST_PAUSE),
    listed=accounts,
    sources=(
        Source(
            rows_of_accounts,
            (
                Total("transactionCount", "count", pl.lit(1)),
                Total("withBalance", "count", pl.when(pl.col("balance").is_not_null()).then(pl.lit(1))),
            ),
            is_listed=True,
        ),
        Source(
            coverage.steps,
            (
                Total("daysWithActivity", "days", pl.lit(1)),
                Total("daysCovered", "days", _days_covered()),
                Total("balanceBreaks", "count", pl.when(coverage.is_break()).then(pl.lit(1))),
            ),
        ),
        Source(
            stretches_of_accounts,
            (
                Total("yearWorth", "ratio", pl.col("worth") * pl.col("in_year")),
                Total("beforeWorth", "ratio", pl.col("worth") * pl.col("in_before")),
            ),
        ),
    ),
    derived=(
        Derived("score", "points", ("yearWorth", "beforeWorth"), score_of_worth(), SCORE_WORDS),
        Derived(
            "daysBehind",
            "days",
            ("lastDate", "asOf"),
            (pl.col("asOf") - pl.col("lastDate")).dt.total_days().clip(lower_bound=0),
            "days from lastDate to asOf",
        ),
        Derived("daysSpanned", "days", ("firstDate", "lastDate"), _days_spanned(), "days from firstDate to lastDate"),
        Derived(
            "daysWithoutActivity",
            "days",
            ("daysSpanned", "daysWithActivity"),
            pl.col("daysSpanned") - pl.col("daysWithActivity"),
            "daysSpanned − daysWithActivity",
        ),
        Derived(
            "balanceShare",
            "ratio",
            ("withBalance", "transactionCount"),
            ratio(pl.col("withBalance"), pl.col("transactionCount")),
            "withBalance / transactionCount",
        ),
    ),
    hidden=("asOf", "longestPause", "withBalance", "yearWorth", "beforeWorth"),
    order=("accountId",),
)


def ranges(facts: Facts) -> pl.LazyFrame:
    """Return runs of days in an account's own history with the same evidence: `proven`, `plausible` or `unseen`."""
    own = (*BY_ACCOUNT, "accountId")
    steps = coverage.steps(facts)
    unseen_until = pl.col("seen_from") - 1
    unseen = steps.filter(pl.col("previous_day") < unseen_until).select(
        *own, evidence=pl.lit("unseen"), first=pl.col("previous_day") + 1, last=unseen_until
    )
    evidence = pl.when(coverage.is_proven()).then(pl.lit("proven")).otherwise(pl.lit("plausible"))
    seen = steps.select(*own, evidence=evidence, first="seen_from", last="day")
    every = pl.concat([unseen, seen], how="vertical_relaxed").sort(*BY_ACCOUNT, "first")
    changes = (pl.col("evidence") != pl.col("evidence").shift(1).over(BY_ACCOUNT)).fill_null(value=True)
    return (
        every.with_columns(run=changes.cum_sum())
        .group_by(*own, "run")
        .agg(
            pl.col("evidence").first(),
            firstDate=pl.col("first").min().cast(pl.Date),
            lastDate=pl.col("last").max().cast(pl.Date),
        )
    )


COVERAGE = Table(
    id="coverage",
    name="Dated coverage",
    hierarchy="account",
    type="time_series",
    keys=(ACCOUNT_ID, Column("firstDate", "date"), Column("lastDate", "date")),
    details=(Column("evidence", "text"),),
    listed=ranges,
    sources=(),
    derived=(Derived("days", "days", ("firstDate", "lastDate"), _days_spanned(), "days from firstDate to lastDate"),),
    order=("accountId", "firstDate"),
)
