"""Completeness: is this all of the customer's money, and how far can it be relied on?

    credit             = proven days + 0.8 × plausible days            (see coverage)
    account score      = 90 × credit in the last 365 days / 365 + 10 × credit in the 730 days before / 730
    completenessScore  = mean of the account scores
    totalMissingness   = share of the last 365 days without any credit, mean over accounts

0.8, because a listing without balances can hide a row on any day. A year shows every season and every tax quarter;
the two years before it add a little. The days count back from `as_of`, so that a missing end (an old statement)
costs exactly what a missing middle costs: a score in which either were cheaper would reward whoever cuts it out.

Removing data never raises the score: no day gains credit when

- any rows are removed from an account without balances, or from one whose balances all hold;
- whole days are removed from any account whose rows all carry balances,

the balances being checked again, an account keeping at least one row, and what was removed not cancelling to zero
(which balances can't see). Where a day has lost some of its rows before, losing the rest can move the break into the
next step and so trade the one pause for the other. An account left out altogether is not noticed in this form.

Gaps are listed by another rule than the score's: the account's own rhythm (`coverage.plausible_pause`). It tells a
reader where to look; it may not set the score, because a sparser account has a slower rhythm.
"""

from datetime import date

import polars as pl

from pipelines import schemas
from pipelines.reports import coverage
from pipelines.reports.accounts import BY_ACCOUNT, DETAILS, described, printed_details
from pipelines.reports.figures import RATIO, banded, listed, ratio, reason, reasons, score, uuid_text
from pipelines.reports.periods import BY_CUSTOMER, customers, days_behind

PLAUSIBLE_CREDIT = "0.8"
YEAR, BEFORE = 365, 730  # days, counted back from as_of
YEAR_POINTS, BEFORE_POINTS = 90, 10
TIERS = (("complete", 80), ("substantial", 60), ("partial", 30))  # from that score on; below: insufficient
STALE_AFTER = 14  # days
SHORT_HISTORY = 90  # days


def completeness_report(transactions: pl.LazyFrame, as_of: date) -> pl.LazyFrame:
    """TRANSACTIONS → one row per customer: `summary`, `freshness`, `accounts`, `gaps`, `reasons`.

    A customer without posted rows has score 0, missingness 1 and the reason `Completeness.NoTransactions`.
    """
    posted = transactions.filter(schemas.posted())
    steps = coverage.steps(posted, described(posted))
    accounts = steps.pipe(account_readings, as_of)
    return (
        customers(transactions)
        .join(accounts.pipe(by_customer), on=BY_CUSTOMER, how="left", validate="1:1")
        .join(accounts.pipe(printed_accounts, as_of), on=BY_CUSTOMER, how="left", validate="1:1")
        .join(steps.pipe(printed_gaps), on=BY_CUSTOMER, how="left", validate="1:1")
        .pipe(as_report, as_of)
    )


def account_readings(steps: pl.LazyFrame, as_of: date) -> pl.LazyFrame:
    """One row per account: its details, coverage, breaks and silences, and `account_score` (0–100)."""
    today = (as_of - date(1970, 1, 1)).days
    year = coverage.days_credited(today - YEAR + 1, today)
    before = coverage.days_credited(today - YEAR - BEFORE + 1, today - YEAR)
    worth = pl.when(coverage.is_proven()).then(pl.lit("1")).otherwise(pl.lit(PLAUSIBLE_CREDIT)).cast(RATIO)
    readings = steps.group_by(BY_ACCOUNT).agg(
        pl.col(*DETAILS, "plausible_pause").first(),
        pl.col("rows", "rows_with_balance").sum(),
        breaks=coverage.is_break().sum(),
        first_date=pl.col("day").min().cast(pl.Date),
        last_date=pl.col("day").max().cast(pl.Date),
        days_with_activity=pl.len(),
        days_covered=coverage.days_covered().sum(),
        silences=(coverage.is_gap() & coverage.is_unproven()).sum(),
        days_seen=year.sum(),
        year_credit=(year * worth).sum(),
        before_credit=(before * worth).sum(),
    )
    return readings.with_columns(account_score=account_score())


def account_score() -> pl.Expr:
    recent = ratio(pl.col("year_credit") * YEAR_POINTS, pl.lit(YEAR))
    return recent + ratio(pl.col("before_credit") * BEFORE_POINTS, pl.lit(BEFORE))


def by_customer(accounts: pl.LazyFrame) -> pl.LazyFrame:
    """Account readings → one row per customer: the score and what the reasons speak of."""
    expected_days = pl.len() * YEAR
    totals = accounts.group_by(BY_CUSTOMER).agg(
        pl.col("rows", "rows_with_balance", "breaks", "silences", "account_score", "days_seen").sum(),
        accounts=pl.len(),
        first_date=pl.col("first_date").min(),
        data_through=pl.col("last_date").max(),
        has_unidentified=(~pl.col("account_identified")).any(),
        days_expected=expected_days,
    )
    return totals.with_columns(
        score=score(ratio(pl.col("account_score"), pl.col("accounts"))),
        missingness=ratio(pl.col("days_expected") - pl.col("days_seen"), pl.col("days_expected")),
    ).drop("accounts")


def printed_accounts(accounts: pl.LazyFrame, as_of: date) -> pl.LazyFrame:
    """Account readings → `accounts`, one list per customer, in the order of the account ids."""
    spanned = (pl.col("last_date") - pl.col("first_date")).dt.total_days() + 1
    behind = (pl.lit(as_of) - pl.col("last_date")).dt.total_days().clip(lower_bound=0)
    printed = accounts.select(
        BY_CUSTOMER,
        *printed_details(),
        score=score(pl.col("account_score")),
        firstDate="first_date",
        lastDate="last_date",
        daysBehind=behind,
        daysSpanned=spanned,
        daysCovered="days_covered",
        daysWithActivity="days_with_activity",
        plausiblePauseDays="plausible_pause",
        silences="silences",
        transactionCount="rows",
        balanceShare=ratio(pl.col("rows_with_balance"), pl.col("rows")),
        balanceBreaks="breaks",
    )
    return printed.pipe(listed, "accounts", ["accountId"])


def printed_gaps(steps: pl.LazyFrame) -> pl.LazyFrame:
    """Steps → `gaps`, one list per customer: between which two days, for how long nothing, on what evidence."""
    printed = steps.filter(coverage.is_gap()).select(
        BY_CUSTOMER,
        accountId=uuid_text("account_id"),
        evidence=pl.when(coverage.is_break()).then(pl.lit("balance_break")).otherwise(pl.lit("silence")),
        lastSeen=pl.col("previous_day").cast(pl.Date),
        nextSeen=pl.col("day").cast(pl.Date),
        silentDays=(pl.col("pause") - 1).fill_null(0),
    )
    return printed.pipe(listed, "gaps", ["accountId", "nextSeen"])


def as_report(customer: pl.LazyFrame, as_of: date) -> pl.LazyFrame:
    """Everything joined → the report's members; a customer without posted rows gets the empty ones."""
    behind = days_behind(as_of)
    return customer.select(
        BY_CUSTOMER,
        summary=summary(),
        freshness=pl.struct(dataThrough="data_through", daysBehind=behind),
        accounts=pl.col("accounts").fill_null([]),
        gaps=pl.col("gaps").fill_null([]),
        reasons=completeness_reasons(behind),
    ).sort(BY_CUSTOMER)


def summary() -> pl.Expr:
    points = pl.col("score").fill_null(0)
    return pl.struct(
        completenessScore=points,
        completenessTier=banded(points, TIERS, "insufficient"),
        totalMissingness=pl.col("missingness").fill_null(1),
    )


def completeness_reasons(behind: pl.Expr) -> pl.Expr:
    """What keeps the score down, in words, and thereby what would raise it."""
    rows, with_balance = pl.col("rows"), pl.col("rows_with_balance")
    history = (pl.col("data_through") - pl.col("first_date")).dt.total_days() + 1
    return reasons(
        reason(
            "Completeness.NoTransactions",
            rows.is_null(),
            pl.lit("There are no posted transactions."),
        ),
        reason(
            "Completeness.UnidentifiedAccount",
            pl.col("has_unidentified"),
            pl.lit("Some rows came without account details and are kept as one unidentified account."),
        ),
        reason(
            "Completeness.NoBalances",
            with_balance == 0,
            pl.lit("No row carries a balance, so a missing row can't be noticed."),
        ),
        reason(
            "Completeness.PartialBalances",
            (with_balance > 0) & (with_balance < rows),
            pl.format("{} of {} rows carry a balance.", with_balance, rows),
        ),
        reason(
            "Completeness.BalanceBreaks",
            pl.col("breaks") > 0,
            pl.format(
                "Days whose balances do not follow from what came before: {}. Rows are missing or wrong.", "breaks"
            ),
        ),
        reason(
            "Completeness.Silences",
            pl.col("silences") > 0,
            pl.format("Silences longer than the account's rhythm makes plausible: {}.", "silences"),
        ),
        reason(
            "Completeness.Stale",
            behind > STALE_AFTER,
            pl.format("The last row is {} days old.", behind),
        ),
        reason(
            "Completeness.ShortHistory",
            history < SHORT_HISTORY,
            pl.format("The history covers only {} days.", history),
        ),
    )
