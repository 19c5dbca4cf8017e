"""Coverage: which days of each account are documented, what proves it, and what each day is worth.

The unit of evidence is the *step* from one day with rows to the next in the same account:

| evidence        | when                                                 | its silent days          | the day itself |
|-----------------|------------------------------------------------------|--------------------------|----------------|
| `chain_holds`   | every balance of the day follows from the one before | PROVEN, however many     | PROVEN or OPEN |
| `no_balance`    | some row of the day can't be checked                 | PLAUSIBLE, within limits | PLAUSIBLE      |
| `balance_break` | a balance doesn't follow: rows are missing           | as without balances      | PLAUSIBLE      |
| `start`         | the account's first day                              | none                     | PLAUSIBLE      |

The limit: of an unproven step, at most ALLOWED_SILENCE days are plausible, the day itself included.
Rows of a statement whose balances contradict them (verdict `unreconciled`) prove nothing, whatever balances they state:
a day with such a row can't be checked.

A proven day is OPEN instead of PROVEN if nothing shows that it is whole: it is the account's last day, the next step
doesn't hold, or it has an own transfer whose other side is missing. The three cases have the same worth. So removing
such a transfer never raises the worth of its day: afterwards a balance of the day doesn't follow, or the next step
doesn't hold, or the day is still the last. This is what makes the score monotone (see the package).

A day without evidence is worth nothing. Days are counted as days since 1970 (epoch) here, to calculate with them.
"""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from functools import cache

import polars as pl

from pipelines.figures.accounts import BALANCE, BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.reports.completeness.cached import cached
from pipelines.vocabulary.report_values import RATIO, uuid_text
from pipelines.vocabulary.schemas import StatementVerdict
from pipelines.vocabulary.taxonomy import TRANSFER

PROVEN, OPEN, PLAUSIBLE = Decimal("1"), Decimal("0.85"), Decimal("0.7")  # our judgement, like the limits below
# How many days without a row are normal in an account without balances. Fixed by the kind of account, not by its own
# rhythm: an adaptive allowance would grow if rows were removed.
ALLOWED_SILENCE = {"transaction": 14, "credit_card": 21, "savings": 35, "loan": 35, "term_deposit": 95, "other": 35}
# Accounts that are not used for trading say little about the business's money.
NON_TRADING = ("savings", "credit_card", "loan", "term_deposit")
NON_TRADING_WEIGHT = Decimal("0.25")
YEAR_DAYS, EARLIER_DAYS = 365, 730  # days, counted back from the day before as_of


def epoch(day: date) -> int:
    return (day - date(1970, 1, 1)).days


def is_one_sided() -> pl.Expr:
    """Match own transfers whose other side is in none of the accounts supplied."""
    return (pl.col("category") == TRANSFER.slug) & ~pl.col("is_transfer").fill_null(value=False)


@cached
def steps(facts: Facts) -> pl.LazyFrame:
    """Return the steps of all accounts: one row for each day with rows, by account and day.

    Returns:
        `customer_number`, `account_id`, `account_type`, `accountId` as reported.
        `day`, `previous_day` (null on the first), `pause` between them in days.
        `rows`, `rows_with_balance`, `moved_in` and `moved_out` (AUD), `transaction_id` of one of the rows,
        `received_seq` of the latest, `open_rows`: the number of own transfers without their other side.
        `is_checked`: whether every balance follows. `is_unreconciled`: whether a statement contradicts its rows.
        `evidence`; `seen_from`, the first of the days up to `day` that it documents; `silent_worth`, `day_worth`.
    """
    return (
        active_days(facts.rows.lazy())
        .sort(*BY_ACCOUNT, "day")
        .join(
            facts.accounts.lazy().select(
                *BY_ACCOUNT, pl.col("account_type").cast(pl.String), accountId=uuid_text("account_id")
            ),
            on=BY_ACCOUNT,
            how="left",
            validate="m:1",
            maintain_order="left",
        )
        .with_columns(previous_day=pl.col("day").shift(1).over(BY_ACCOUNT))
        .with_columns(pause=pl.col("day") - pl.col("previous_day"), evidence=evidence())
        .with_columns(seen_from=seen_from(), day_worth=day_worth(), silent_worth=silent_worth())
        .drop("is_broken", "chains")
    )


def active_days(posted: pl.LazyFrame) -> pl.LazyFrame:
    """Return one row per account and day with rows: how many, how many with balances, and what the balances prove."""
    verified = pl.col("balance_verified")
    # On the first day of a chain, only the row that opens it can't be checked.
    unchecked = (verified.is_null() & pl.col("balance").is_not_null()).sum()
    return posted.group_by(*BY_ACCOUNT, day=pl.col("date").dt.epoch("d")).agg(
        pl.col("transaction_id").min(),
        pl.col("received_seq").max(),
        rows=pl.len(),
        rows_with_balance=pl.col("balance").count(),
        moved_in=pl.col("money_in").cast(BALANCE).sum(),
        moved_out=pl.col("money_out").cast(BALANCE).sum(),
        is_broken=verified.eq_missing(other=False).any() | (unchecked > 1),
        chains=(verified.eq_missing(other=True) & ~is_contradicted()).all(),
        open_rows=is_one_sided().sum().cast(pl.Int64),
        is_checked=verified.eq_missing(other=True).all(),
        is_unreconciled=is_contradicted().any(),
    )


def is_contradicted() -> pl.Expr:
    """Match rows of a PDF statement that its own balances contradict."""
    return pl.col("statement_verdict").eq_missing(pl.lit("unreconciled", StatementVerdict))


def evidence() -> pl.Expr:
    """Return the evidence of a step, as in the table above."""
    return (
        pl.when("is_broken")
        .then(pl.lit("balance_break"))
        .when(pl.col("previous_day").is_null())
        .then(pl.lit("start"))
        .when("chains")
        .then(pl.lit("chain_holds"))
        .otherwise(pl.lit("no_balance"))
    )


def is_proven() -> pl.Expr:
    return pl.col("evidence") == "chain_holds"


def is_uncheckable() -> pl.Expr:
    """Match steps to a day with a row that no balance can check."""
    return pl.col("evidence") == "no_balance"


def is_break() -> pl.Expr:
    return pl.col("evidence") == "balance_break"


def allowed_silence() -> pl.Expr:
    """Return how many days of an unproven step are plausible, the day itself included."""
    kind = pl.col("account_type")
    return kind.replace_strict(ALLOWED_SILENCE, default=ALLOWED_SILENCE["other"], return_dtype=pl.Int32)


@cache
def seen_from() -> pl.Expr:
    """Return the first day that a step documents: a proven step covers its whole pause, others the allowed silence."""
    after_previous = (pl.col("previous_day") + 1).fill_null(pl.col("day"))
    return (
        pl.when(is_proven())
        .then(after_previous)
        .otherwise(pl.max_horizontal(after_previous, pl.col("day") - allowed_silence() + 1))
    )


@cache
def day_worth() -> pl.Expr:
    holds_after = is_proven().shift(-1).over(BY_ACCOUNT).fill_null(value=False)
    return pl.when(~is_proven()).then(worth(PLAUSIBLE)).otherwise(worth_if_proven(holds_after))


def worth_if_proven(holds_after: pl.Expr) -> pl.Expr:
    """Return what a proven day is worth: PROVEN if the next step holds and no transfer is one-sided, else OPEN."""
    return pl.when(holds_after & (pl.col("open_rows") == 0)).then(worth(PROVEN)).otherwise(worth(OPEN))


def silent_worth() -> pl.Expr:
    return pl.when(is_proven()).then(worth(PROVEN)).otherwise(worth(PLAUSIBLE))


def stretches(facts: Facts) -> pl.LazyFrame:
    """Return runs of days with the same worth, in the three years that end with the day before `as_of`.

    An account's keys, type and `accountId`, `first_day`, `last_day`, `worth` of each day, and the `transaction_id`
    that documents them.
    """
    own = (*BY_ACCOUNT, "account_type", "accountId", "transaction_id")
    silent = steps(facts).select(*own, first_day="seen_from", last_day=pl.col("day") - 1, worth="silent_worth")
    days = steps(facts).select(*own, first_day="day", last_day="day", worth="day_worth")
    return pl.concat([silent, days]).pipe(clip_stretches, facts.as_of)


def clip_stretches(stretches: pl.LazyFrame, as_of: date) -> pl.LazyFrame:
    """Clip stretches to the three years before `as_of`."""
    today = epoch(as_of)
    return (
        stretches.with_columns(pl.col("first_day").clip(lower_bound=today - YEAR_DAYS - EARLIER_DAYS))
        .with_columns(pl.col("last_day").clip(upper_bound=today - 1))
        .filter(pl.col("first_day") <= pl.col("last_day"))
    )


def days_within(first: int, last: int) -> pl.Expr:
    """Return how many of a stretch's days lie between these two (epoch, both included)."""
    begins, ends = pl.col("first_day").clip(lower_bound=first), pl.col("last_day").clip(upper_bound=last)
    return (ends - begins + 1).clip(lower_bound=0)


def year_days(as_of: date) -> pl.Expr:
    return days_within(epoch(as_of) - YEAR_DAYS, epoch(as_of) - 1)


def before_days(as_of: date) -> pl.Expr:
    return days_within(epoch(as_of) - YEAR_DAYS - EARLIER_DAYS, epoch(as_of) - YEAR_DAYS - 1)


@cached
def best_days(facts: Facts) -> pl.LazyFrame:
    """Return the customer's days, each as documented by its best account: `customer_number`, `day`, `worth`
    weighted by the kind of account, `weight`, and the `transaction_id` that documents it.
    """
    return best_of(stretches(facts), (BY_CUSTOMER,))


def best_of(stretches: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Return the days of stretches, as in `best_days`, by these keys."""
    weight = pl.when(pl.col("account_type").is_in(NON_TRADING)).then(worth(NON_TRADING_WEIGHT)).otherwise(worth(PROVEN))
    weighted = stretches.select(
        *keys,
        "transaction_id",
        worth=(pl.col("worth") * weight).cast(RATIO),
        weight=weight.fill_null(1),
        day=pl.int_ranges("first_day", pl.col("last_day") + 1, dtype=pl.Int32),
    )
    best = pl.col("worth") == pl.col("worth").max()
    return (
        weighted.explode("day")
        .group_by(*keys, "day")
        .agg(
            pl.col("worth", "weight").max(),
            pl.col("transaction_id").filter(best).min(),
        )
    )


@cache
def worth(value: Decimal) -> pl.Expr:
    return pl.lit(value, RATIO)
