"""Reconciliation: opening + in − out = closing, for each account, its months and its submissions.

Only the days between known balances are reconciled: from the first day with a known closing balance through the last. A
day without one is reconciled with the next day that has one, in that day's period. So nothing is left out in between,
and the periods' differences add up to the account's. The order of rows within a day doesn't matter
(`closing_balances`). A difference other than zero is money that moved and is missing, or that is listed and didn't
move.
"""

from collections.abc import Sequence
from functools import partial

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER, posted_month
from pipelines.figures.tables import Column, Derived, Source, Table, Total
from pipelines.reports.completeness.accounts import ACCOUNT_ID
from pipelines.reports.completeness.cached import cached
from pipelines.reports.completeness.coverage import steps

_DAY = (*BY_ACCOUNT, "date")


@cached
def bounded_days(facts: Facts) -> pl.LazyFrame:
    """Return an account's days from the first known closing balance through the last, by account and date.

    `moved_in` and `moved_out` (AUD); `month` and `submission` (the nth of the customer's) of the day whose closing
    balance it is reconciled with; `begun`, the first of consecutive days that this submission brought. If the day's own
    closing balance is known: `closing`, `stated_by`, and the `opening` that it continues, `opened_by`.
    """
    stated = (
        facts.stated_closings.lazy()
        .drop_nulls("closing_balance")
        .select(*_DAY, stated_by="transaction_id", closing="closing_balance")
    )
    is_known, submission = pl.col("closing").is_not_null(), pl.col("received_seq").rank("dense").over(BY_CUSTOMER)
    # The first day's opening is its closing minus what moved on it.
    first_opening = pl.col("closing") - pl.col("moved_in") + pl.col("moved_out")
    before = pl.col("closing", "stated_by").forward_fill().shift(1).over(BY_ACCOUNT).name.suffix("_before")
    return (
        steps(facts)
        .select(
            *BY_ACCOUNT, "accountId", "moved_in", "moved_out", date=pl.col("day").cast(pl.Date), submission=submission
        )
        .join(stated, on=_DAY, how="left", validate="1:1")
        .sort(_DAY)
        .with_columns(
            month=pl.when(is_known).then(posted_month()).backward_fill().over(BY_ACCOUNT),
            submission=pl.when(is_known).then("submission").backward_fill().over(BY_ACCOUNT).cast(pl.Int64),
            known=is_known.cum_sum().over(BY_ACCOUNT),
        )
        .filter(pl.col("known") > 0, pl.col("month").is_not_null())
        .with_columns(run=pl.col("submission").rle_id().over(BY_ACCOUNT))
        .with_columns(before, begun=pl.col("date").first().over(*BY_ACCOUNT, "run"))
        .with_columns(
            opening=pl.when(is_known).then(pl.coalesce("closing_before", first_opening)),
            opened_by=pl.when(is_known).then(pl.coalesce("stated_by_before", "stated_by")),
        )
    )


def moved_rows(facts: Facts) -> pl.LazyFrame:
    """Return the rows of `bounded_days`."""
    periods = bounded_days(facts).select(*_DAY, "accountId", "month", "submission", "begun")
    rows = facts.rows.lazy().select(*_DAY, "transaction_id", "money_in", "money_out")
    return rows.join(periods, on=_DAY, how="inner", validate="m:1")


def _bounds(keys: Sequence[str], facts: Facts) -> pl.LazyFrame:
    """Return a period's opening and closing balance, each with the row that states it."""
    known = bounded_days(facts).drop_nulls("closing")
    periods = known.group_by(BY_CUSTOMER, *keys)
    opening = periods.agg(pl.col("opening").first(), transaction_id=pl.col("opened_by").first())
    closing = periods.agg(pl.col("closing").last(), transaction_id=pl.col("stated_by").last())
    return pl.concat([opening, closing], how="diagonal")


def _periods(keys: Sequence[str], facts: Facts) -> pl.LazyFrame:
    """Return the periods with their days and all totals."""
    date, opening, closing = pl.col("date"), pl.col("opening").drop_nulls(), pl.col("closing").drop_nulls()
    periods = bounded_days(facts).group_by(BY_CUSTOMER, *keys)
    return periods.agg(
        fromDate=date.first(),
        throughDate=date.last(),
        openingBalance=opening.first(),
        closingBalance=closing.last(),
        moneyIn=pl.col("moved_in").sum(),
        moneyOut=pl.col("moved_out").sum(),
    )


def _table(table_id: str, name: str, *periods: Column) -> Table:
    keys = (ACCOUNT_ID, *periods)
    names = [key.name for key in keys]
    return Table(
        id=table_id,
        name=name,
        hierarchy="account",
        type="time_series" if periods else "summary",
        keys=keys,
        details=(Column("fromDate", "date"), Column("throughDate", "date")),
        listed=partial(_periods, names),
        sources=(
            Source(
                partial(_bounds, names),
                (
                    Total("openingBalance", "AUD", pl.col("opening")),
                    Total("closingBalance", "AUD", pl.col("closing")),
                ),
                is_listed=True,
            ),
            Source(
                moved_rows,
                (Total("moneyIn", "AUD", pl.col("money_in")), Total("moneyOut", "AUD", pl.col("money_out"))),
                is_listed=True,
            ),
        ),
        derived=(
            Derived(
                "difference",
                "AUD",
                ("openingBalance", "moneyIn", "moneyOut", "closingBalance"),
                pl.col("closingBalance") - pl.col("openingBalance") - pl.col("moneyIn") + pl.col("moneyOut"),
                "closingBalance − openingBalance − moneyIn + moneyOut: what is missing or, if negative, too much",
            ),
        ),
        order=tuple(names),
    )


BY_ACCOUNTS = _table("reconciliation", "Reconciliation")
BY_MONTHS = _table("reconciliationByMonth", "Reconciliation by month", Column("month", "month"))
BY_SUBMISSIONS = _table(
    "reconciliationBySubmission", "Reconciliation by submission", Column("submission", "count"), Column("begun", "date")
)
