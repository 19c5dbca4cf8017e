"""Gaps: where rows are missing, and what shows it.

| evidence           | when                                                                                           |
|--------------------|------------------------------------------------------------------------------------------------|
| `balance_break`    | the balance doesn't continue between these two, by this much money; `likely` names the cause    |
| `silence`          | a pause that no balance proves harmless and that the account's own rhythm makes improbable      |
| `series_missing`   | a calendar month without any of two or more payments that recur in the account                 |
| `statement_period` | a week or more between the periods of two submissions of the account, not proven harmless      |
| `statement_missing` | days between the periods of two PDF statements of the account, not proven harmless            |

Gaps show a reader where rows are missing. The score follows another rule (`coverage`), because an account with fewer
rows has a slower rhythm and would seem to miss less.
"""

from collections.abc import Sequence

import polars as pl

from pipelines.figures import rhythm
from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER, posted_month
from pipelines.figures.tables import Column, Derived, Source, Table, Total
from pipelines.reports.completeness.accounts import ACCOUNT_ID, add_account_id
from pipelines.reports.completeness.breaks import breaks
from pipelines.reports.completeness.cached import cached
from pipelines.reports.completeness.coverage import is_break, is_uncheckable, steps
from pipelines.reports.completeness.documents import has_statements, missing_periods
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.report_values import uuid_text
from pipelines.vocabulary.schemas import UUID

# Our judgement:
SHORTEST_SILENCE = 5  # days without rows: a long weekend and a day
MIN_SERIES = 2
MONTHLY_OR_OFTENER = ("business_daily", "weekly", "fortnightly", "four_weekly", "twice_monthly", "monthly")
MIN_STATEMENT = 14  # days that a submission must cover to count as a statement, which a daily feed doesn't
MIN_HOLE = 7  # days between two statements
_COUNTS = tuple(
    f"{which}{day}Days" for day in ("Working", "Weekend") for which in ("active", "other", "silent")
)  # of an account's days, for the probability of a silence
_GAPS = pl.Schema(
    {
        BY_CUSTOMER: pl.Int64(),
        "account_id": UUID,
        "evidence": pl.String(),
        "lastSeen": pl.Date(),
        "nextSeen": pl.Date(),
        "after_id": UUID,
        "before_id": UUID,
        "likely": pl.String(),
        "missingSeries": pl.Int64(),
        **dict.fromkeys(_COUNTS, pl.Int64()),
    }
)
_NO_GAPS = _GAPS.to_frame()


@cached
def gaps(facts: Facts) -> pl.LazyFrame:
    """Return one row per gap: _GAPS, and `accountId`, `afterTransactionId`, `beforeTransactionId` as reported."""
    kinds = [gap.pipe(collect) for gap in (gaps_by_break(facts), *_gaps_in_unproven_steps(facts))]
    if has_statements(facts):
        kinds.append(missing_periods(facts).pipe(collect))
    frames = [_as_gaps(gap) for gap in kinds if not gap.is_empty()]
    details = pl.concat([_NO_GAPS, *frames], how="diagonal").lazy()
    gaps = details.pipe(add_account_id, facts)
    return gaps.with_columns(afterTransactionId=uuid_text("after_id"), beforeTransactionId=uuid_text("before_id"))


def _as_gaps(gaps: pl.DataFrame) -> pl.DataFrame:
    return gaps.select(pl.col(name).cast(_GAPS[name]) for name in gaps.columns if name in _GAPS)


def _gaps_in_unproven_steps(facts: Facts) -> Sequence[pl.LazyFrame]:
    """Return gaps in unproven steps. Where all balances hold, there is nothing to look for, which saves time."""
    unproven = steps(facts).filter(is_uncheckable() | is_break()).pipe(collect)
    if unproven.is_empty():
        return ()
    return silences(facts), without_series(facts), between_statements(facts)


def gaps_by_break(facts: Facts) -> pl.LazyFrame:
    named = breaks(facts).rename({"last_seen": "lastSeen", "next_seen": "nextSeen"})
    return named.with_columns(evidence=pl.lit("balance_break"))


def silences(facts: Facts) -> pl.LazyFrame:
    """Return improbable pauses of unproven steps, with the counts of days that the probability is computed from."""
    pauses = steps(facts).filter(is_uncheckable(), pl.col("pause") - 1 >= SHORTEST_SILENCE)
    return (
        rhythm.count_pause_days(pauses, steps(facts))
        .filter(rhythm.is_improbable())
        .with_columns(
            evidence=pl.lit("silence"),
            lastSeen=pl.col("previous_day").cast(pl.Date),
            nextSeen=pl.col("day").cast(pl.Date),
        )
    )


def without_series(facts: Facts) -> pl.LazyFrame:
    """Return months without any of the payments that recur before and after them, unless balances prove the month."""
    paid = facts.rows.lazy().filter(pl.col("series_period").is_in(MONTHLY_OR_OFTENER))
    series = paid.group_by(*BY_ACCOUNT, "series_id").agg(first=pl.col("date").min(), last=pl.col("date").max())
    dates = pl.col("date")
    by_month = paid.group_by(*BY_ACCOUNT, month=posted_month()).agg(begun=dates.min(), ended=dates.max())
    following = pl.col("month").shift(-1).over(BY_ACCOUNT)
    silent = (
        by_month.sort(*BY_ACCOUNT, "month")
        .with_columns(nextSeen=pl.col("begun").shift(-1).over(BY_ACCOUNT), following=following)
        .filter(pl.col("following") > pl.col("month").dt.offset_by("1mo"))
        .select(*BY_ACCOUNT, "nextSeen", "following", lastSeen="ended", month=pl.col("month").dt.offset_by("1mo"))
    )
    spans = (pl.col("first") <= pl.col("lastSeen")) & (pl.col("last") >= pl.col("nextSeen"))
    expected = (
        silent.join(series, on=BY_ACCOUNT, how="inner", validate="m:m")
        .filter(spans)
        .group_by(*BY_ACCOUNT, "lastSeen", "nextSeen", "month", "following")
        .agg(missingSeries=pl.len())
        .filter(pl.col("missingSeries") >= MIN_SERIES)
    )
    month, month_after = pl.col("month").dt.epoch("d"), pl.col("following").dt.epoch("d")
    within = (pl.col("day") >= month) & (pl.col("previous_day") < month_after)
    return (
        expected.join(steps(facts).filter(is_uncheckable() | is_break()), on=BY_ACCOUNT, how="inner", validate="m:m")
        .filter(within)
        .unique([*BY_ACCOUNT, "lastSeen"])
        .with_columns(evidence=pl.lit("series_missing"))
    )


def between_statements(facts: Facts) -> pl.LazyFrame:
    """Return holes of a week or more between two submissions of an account that each cover a fortnight or more."""
    first, last = pl.col("day").min(), pl.col("day").max()
    covered = steps(facts).group_by(*BY_ACCOUNT, "received_seq").agg(first=first, last=last)
    until = pl.col("last").cum_max().shift(1).over(BY_ACCOUNT)
    long = pl.col("last") - pl.col("first") + 1 >= MIN_STATEMENT
    holes = (
        covered.sort(*BY_ACCOUNT, "first", "received_seq")
        .with_columns(until=until, after_statement=long.shift(1).over(BY_ACCOUNT), is_statement=long)
        .filter("is_statement", "after_statement", pl.col("first") - pl.col("until") > MIN_HOLE)
    )
    ends = steps(facts).filter(is_uncheckable() | is_break()).select(*BY_ACCOUNT, first="day")
    return holes.join(ends, on=[*BY_ACCOUNT, "first"], how="semi").with_columns(
        evidence=pl.lit("statement_period"),
        lastSeen=pl.col("until").cast(pl.Date),
        nextSeen=pl.col("first").cast(pl.Date),
    )


def sides_of_breaks(facts: Facts) -> pl.LazyFrame:
    """Return the rows on both sides of each break, with what they contribute to the `missing` amount between them.

    Where only the order of rows is wrong, nothing is missing.
    """
    sides = (
        breaks(facts)
        .filter(pl.col("likely") != "ordering")
        .pipe(add_account_id, facts)
        .select(
            BY_CUSTOMER,
            "accountId",
            "after_id",
            "before_id",
            "balance",
            lastSeen="last_seen",
            nextSeen="next_seen",
            opens=pl.col("opening") - pl.col("carried"),
            evidence=pl.lit("balance_break"),
            afterTransactionId=uuid_text("after_id"),
            beforeTransactionId=uuid_text("before_id"),
        )
    )
    return pl.concat(
        [
            sides.with_columns(transaction_id="after_id", missing=-pl.col("balance")),
            sides.with_columns(transaction_id="before_id", missing="opens"),
        ]
    )


GAPS = Table(
    id="gaps",
    name="Gaps",
    hierarchy="account",
    type="summary",
    is_usually_empty=True,
    keys=(
        ACCOUNT_ID,
        Column("evidence", "text"),
        Column("lastSeen", "date"),
        Column("nextSeen", "date"),
        Column("afterTransactionId", "text"),
        Column("beforeTransactionId", "text"),
    ),
    details=(
        Column("likely", "text"),
        Column("missingSeries", "count"),
        *(Column(name, "days") for name in _COUNTS),
    ),
    listed=gaps,
    sources=(Source(sides_of_breaks, (Total("missingAmount", "AUD", pl.col("missing"), complete=True),)),),
    derived=(
        Derived(
            "silentDays",
            "days",
            ("lastSeen", "nextSeen"),
            ((pl.col("nextSeen") - pl.col("lastSeen")).dt.total_days() - 1).clip(lower_bound=0),
            "days between lastSeen and nextSeen",
        ),
        Derived(
            "probability",
            "probability",
            _COUNTS,
            rhythm.probability(),
            "(1 − p)^silentWorkingDays × (1 − q)^silentWeekendDays, p and q by Laplace's rule from the account's other "
            "days",
        ),
    ),
    hidden=_COUNTS,
    order=("accountId", "nextSeen", "evidence", "afterTransactionId", "beforeTransactionId"),
)
