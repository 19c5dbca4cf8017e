"""Coverage: which days of each account are accounted for, and what proves it.

The unit of evidence is the *step* from one day with rows to the next in the same account:

| evidence        | when                                                | the step's days count as        |
|-----------------|-----------------------------------------------------|---------------------------------|
| `chain_holds`   | every balance of the day follows from the one before | proven, however long the pause  |
| `no_balance`    | some row of the day can't be checked                | plausible, at most ALLOWED_SILENCE of them |
| `balance_break` | a balance that does not follow: rows are missing    | unseen                          |
| `start`         | the account's first day                             | unseen                          |

An account whose first balance shows that it started from zero has nothing before it: that step is `chain_holds`.
The days after the last row are in no step. Days are counted as days since 1970 (epoch) here, to do sums with them.
"""

import polars as pl

from pipelines.reports.accounts import BY_ACCOUNT

# Days without a row that mean little in an account without balances. Fixed by the kind of account, not by its own
# rhythm: an allowance that adapts would grow for whoever removes rows.
ALLOWED_SILENCE = {"transaction": 14, "credit_card": 21, "savings": 35, "loan": 35, "term_deposit": 95, "other": 35}
PAUSES_FOR_RHYTHM = 5


def steps(posted: pl.LazyFrame, accounts: pl.LazyFrame) -> pl.LazyFrame:
    """Posted rows and `described` accounts → one row per account and day with rows.

    Columns: the account's keys and details; `day`, `previous_day` (null on the first), `pause` in days; `rows`,
    `rows_with_balance`; `evidence`, `credited_from` (first day the step accounts for, up to `day`; null
    when none), `plausible_pause`, `is_gap`.
    """
    return (
        active_days(posted)
        .pipe(paused)
        .join(accounts, on=BY_ACCOUNT, how="left", validate="m:1")
        .with_columns(evidence=evidence(), allowed_silence=allowed_silence())
        .with_columns(credited_from=credited_from(), plausible_pause=plausible_pause())
        .with_columns(is_gap=is_gap())
    )


def active_days(posted: pl.LazyFrame) -> pl.LazyFrame:
    """One row per account and day with rows: how many, how many with balances, and what the balances say."""
    verified = pl.col("balance_verified")
    first = verified.is_null()  # of an account's first day that chains, only the row that opens it
    return posted.group_by(*BY_ACCOUNT, day=pl.col("date").dt.epoch("d")).agg(
        rows=pl.len(),
        rows_with_balance=pl.col("balance").count(),
        breaks=verified.eq_missing(other=False).any(),
        chain_holds=verified.eq_missing(other=True).all(),
        starts_at_zero=(first.sum() == 1) & (first & (pl.col("balance") == pl.col("amount"))).any(),
    )


def paused(days: pl.LazyFrame) -> pl.LazyFrame:
    """Adds the account's day with rows before (null on its first) and the pause between them in days."""
    in_order = days.sort(*BY_ACCOUNT, "day").with_columns(previous_day=pl.col("day").shift(1).over(BY_ACCOUNT))
    return in_order.with_columns(pause=pl.col("day") - pl.col("previous_day"))


def evidence() -> pl.Expr:
    begins = pl.col("previous_day").is_null()
    return (
        pl.when("breaks")
        .then(pl.lit("balance_break"))
        .when(begins & ~pl.col("starts_at_zero"))
        .then(pl.lit("start"))
        .when(begins | pl.col("chain_holds"))
        .then(pl.lit("chain_holds"))
        .otherwise(pl.lit("no_balance"))
    )


def is_proven() -> pl.Expr:
    return pl.col("evidence") == "chain_holds"


def is_unproven() -> pl.Expr:
    return pl.col("evidence") == "no_balance"


def is_break() -> pl.Expr:
    return pl.col("evidence") == "balance_break"


def allowed_silence() -> pl.Expr:
    kind = pl.col("account_type").cast(pl.String)
    return kind.replace_strict(ALLOWED_SILENCE, default=ALLOWED_SILENCE["other"], return_dtype=pl.Int32)


def credited_from() -> pl.Expr:
    """A proven step accounts for its whole pause (from 1970 if the account started then), a plausible one for the
    allowed silence before its rows."""
    after_previous = pl.col("previous_day") + 1
    allowed = pl.max_horizontal(after_previous, pl.col("day") - pl.col("allowed_silence") + 1)
    return pl.when(is_proven()).then(after_previous.fill_null(0)).when(is_unproven()).then(allowed)


def plausible_pause() -> pl.Expr:
    """The longest pause that the account's own rhythm explains: a week beyond twice its 90th-percentile pause.

    Twice, because one missed beat is no alarm; the week is for holidays. With fewer than five pauses there is no
    rhythm yet and the allowed silence stands in.
    """
    usual = pl.col("pause").quantile(0.9, "higher").over(BY_ACCOUNT)
    has_rhythm = pl.col("pause").count().over(BY_ACCOUNT) >= PAUSES_FOR_RHYTHM
    return pl.when(has_rhythm).then(7 + 2 * usual).otherwise(pl.col("allowed_silence")).cast(pl.Int32)


def is_gap() -> pl.Expr:
    """Rows are proven missing, or the silence is implausible and no balance proves it harmless."""
    return is_break() | (is_unproven() & (pl.col("pause") > pl.col("plausible_pause")))


def days_credited(first_day: int, last_day: int) -> pl.Expr:
    """Days between these two (epoch, inclusive) that the step accounts for; null when it accounts for none."""
    begins = pl.col("credited_from").clip(lower_bound=first_day)
    ends = pl.col("day").clip(upper_bound=last_day)
    return (ends - begins + 1).clip(lower_bound=0)


def days_covered() -> pl.Expr:
    """Days of the account's own history, from its first row on, that the step accounts for; null for none."""
    in_history = pl.coalesce(pl.col("previous_day") + 1, "day")
    begins = pl.max_horizontal("credited_from", in_history)
    return pl.when(pl.col("credited_from").is_not_null()).then(pl.col("day") - begins + 1)
