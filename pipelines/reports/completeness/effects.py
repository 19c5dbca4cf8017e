"""Effects: by how many points the completeness score would rise if a reason were resolved, alone or with all others.

Resolving a reason changes the worth of days (`coverage`), never downwards:

| reason                                    | if it is resolved                                                       |
|-------------------------------------------|-------------------------------------------------------------------------|
| `BalanceBreaks`, `Rounding`, `RowOrder`   | the account's balances follow on the days with these breaks             |
| `NoBalances`, `PartialBalances`           | every row states a balance, and it follows                              |
| `UnreconciledStatement`                   | the statement's balances prove the rows of its period                   |
| `Silences`, `SeriesMissing`, `Statement…` | the days between the gap's two rows have rows: they are plausible       |
| `OneSidedTransfers`, `MentionedAccount`   | these transfers have their other side                                   |
| `Stale`                                   | all accounts have rows up to `as_of`                                    |
| `ShortHistory`                            | all accounts have rows since 90 days before the last one                |
| `FewDaysSeen`                             | an account documents every day of the last year                         |

Supplied days are proven if all rows of the account state balances, else plausible. If a day stays unproven for another
reason, resolving the first alone has no effect on it; resolving all has. Reasons without a row here don't change the
score, or their effect is unknown until the data are supplied (UNKNOWN).
"""

from decimal import Decimal

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Column, Derived, Source, Table, Total
from pipelines.reports.completeness.cached import cached
from pipelines.reports.completeness.causes import steps_with_causes
from pipelines.reports.completeness.coverage import (
    EARLIER_DAYS,
    NON_TRADING,
    PLAUSIBLE,
    PROVEN,
    YEAR_DAYS,
    best_days,
    best_of,
    clip_stretches,
    epoch,
    worth,
)
from pipelines.reports.completeness.resolved_days import ALL, no_subject, resolved_days
from pipelines.reports.completeness.score import EARLIER_POINTS, YEAR_POINTS, documented_days, points, score_of_worth
from pipelines.vocabulary.report_values import RATIO, score

# Reasons whose effect is unknown.
UNKNOWN = ("NoTransactions", "AccountEnds", "RejectedRows", "UnsharedLender", "BasVariance")
_BY = (BY_CUSTOMER, "code", "subject")


@cached
def gained_days(facts: Facts) -> pl.LazyFrame:
    """Return the days that are worth more if a reason is resolved: _BY, `transaction_id` of a row that documents it.

    `year_gain` and `before_gain` of the day, and `is_new` if no account documents it now, in the last year.
    """
    days = resolved_days(facts).pipe(clip_stretches, facts.as_of).pipe(best_of, _BY)
    now = best_days(facts).select(BY_CUSTOMER, "day", now="worth")
    gain = (pl.col("worth") - pl.col("now").fill_null(0)).cast(RATIO)
    in_year = pl.col("day") >= epoch(facts.as_of) - YEAR_DAYS
    return (
        days.join(now, on=[BY_CUSTOMER, "day"], how="left", validate="m:1")
        .filter(gain > 0)
        .select(
            *_BY,
            "transaction_id",
            year_gain=pl.when(in_year).then(gain),
            before_gain=pl.when(~in_year).then(gain),
            is_new=in_year & pl.col("now").is_null(),
        )
        # With all reasons resolved, `FewDaysSeen` counts every unseen day as proven, whichever account documents it.
        .filter(~(pl.col("is_new") & (pl.col("code") == ALL)))
    )


def _unseen_worth(facts: Facts) -> pl.LazyFrame:
    """Return what a customer's unseen days are worth if only their reason is resolved (`alone`).

    They are then proven if an account that is used for trading states all its balances.
    """
    trading = ~pl.col("account_type").is_in(NON_TRADING).fill_null(value=False)
    proven = (trading & pl.col("all_stated")).any()
    worths = pl.when(proven).then(worth(PROVEN)).otherwise(worth(PLAUSIBLE))
    return steps_with_causes(facts).group_by(BY_CUSTOMER).agg(alone=worths)


def listed_effects(facts: Facts) -> pl.LazyFrame:
    """Return the reasons with an effect, and ALL for every customer: _BY, and `unseenWorth` (0: none are added)."""
    alone = _unseen_worth(facts).with_columns(subject=no_subject())
    unseen = alone.select(BY_CUSTOMER, code=pl.lit("FewDaysSeen"), subject="subject", unseenWorth="alone")
    everything = alone.select(BY_CUSTOMER, code=pl.lit(ALL), subject="subject", unseenWorth=worth(PROVEN))
    others = gained_days(facts).filter(pl.col("code") != ALL).select(*_BY, unseenWorth=worth(Decimal(0))).unique()
    return pl.concat([unseen, everything, others])


_RESOLVED_YEAR = pl.col("yearWorth") + pl.col("yearGain") + pl.col("unseenWorth") * pl.col("unseenDays")
_RESOLVED_BEFORE = pl.col("beforeWorth") + pl.col("beforeGain")

EFFECTS = Table(
    id="effects",
    name="Effects of resolving reasons",
    hierarchy="customer",
    type="summary",
    keys=(Column("code", "text"), Column("subject", "text")),
    details=(Column("unseenWorth", "ratio"),),
    listed=listed_effects,
    sources=(
        Source(
            gained_days,
            (
                Total("yearGain", "ratio", pl.col("year_gain")),
                Total("beforeGain", "ratio", pl.col("before_gain")),
                Total("newDays", "days", pl.when("is_new").then(pl.lit(1))),
            ),
        ),
        Source(
            documented_days,
            (
                Total("yearWorth", "ratio", pl.when("in_year").then("worth")),
                Total("beforeWorth", "ratio", pl.when(~pl.col("in_year")).then("worth")),
                Total("daysSeen", "days", pl.when("in_year").then(pl.lit(1))),
            ),
            keys=(),
        ),
    ),
    derived=(
        Derived("now", "points", ("yearWorth", "beforeWorth"), score_of_worth(), "completenessScore"),
        Derived(
            "unseenDays",
            "days",
            ("daysSeen", "newDays"),
            YEAR_DAYS - pl.col("daysSeen") - pl.col("newDays"),
            f"{YEAR_DAYS} − daysSeen − newDays",
        ),
        Derived(
            "completenessScore",
            "points",
            ("yearWorth", "yearGain", "unseenWorth", "unseenDays", "beforeWorth", "beforeGain"),
            score(points(_RESOLVED_YEAR, _RESOLVED_BEFORE)),
            f"{YEAR_POINTS} × (yearWorth + yearGain + unseenWorth × unseenDays) / {YEAR_DAYS} + {EARLIER_POINTS} × "
            f"(beforeWorth + beforeGain) / {EARLIER_DAYS}",
        ),
        Derived(
            "effect",
            "points",
            ("completenessScore", "now"),
            pl.col("completenessScore") - pl.col("now"),
            "completenessScore once it is resolved − completenessScore now",
        ),
    ),
    order=("code", "subject"),
)
