"""Why steps are not proven, and which customers' histories are stale or short."""

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.reports.completeness.breaks import breaks
from pipelines.reports.completeness.cached import cached
from pipelines.reports.completeness.coverage import epoch, is_break, is_proven, steps

STALE_AFTER = 14  # days; our judgement, like the next
SHORT_HISTORY = 90  # days
_BREAKS = ("is_missing", "is_rounded", "is_shuffled")
CAUSES = (*_BREAKS, "is_unstated", "is_unreconciled")


@cached
def steps_with_causes(facts: Facts) -> pl.LazyFrame:
    """Return `coverage.steps` with the causes for which each is not proven, by account and day.

    Returns:
        CAUSES: whether rows are missing, balances are rounded, rows are in another order, balances are not stated, or a
        statement contradicts its rows.
        `next_holds`: whether the account's next step is proven. `is_last`: whether it has none.
        `stated`: the customer's rows with balances. `all_stated`: whether all rows of the account have one.
        `is_stale`, `is_short` and `begins` of the customer (`_histories`).
    """
    is_of_break = [(pl.col(name).fill_null(value=False) & is_break()).alias(name) for name in _BREAKS]
    is_partly_stated = pl.col("rows_with_balance") < pl.col("rows")
    is_unchecked = ~pl.col("is_checked") & ~pl.any_horizontal(_BREAKS)
    return (
        steps(facts)
        .join(_causes_of_breaks(facts), on=[*BY_ACCOUNT, "day"], how="left", validate="1:1")
        .with_columns(is_of_break)
        .with_columns(
            is_unstated=(is_partly_stated | is_unchecked) & pl.col("previous_day").is_not_null() & ~is_proven(),
            next_holds=is_proven().shift(-1).over(BY_ACCOUNT).fill_null(value=False),
            stated=pl.col("rows_with_balance").sum().over(BY_CUSTOMER),
            all_stated=(pl.col("rows_with_balance") == pl.col("rows")).all().over(BY_ACCOUNT),
            is_last=pl.int_range(pl.len()).over(BY_ACCOUNT) == pl.len().over(BY_ACCOUNT) - 1,
        )
        .join(_histories(facts), on=BY_CUSTOMER, validate="m:1")
        .sort(*BY_ACCOUNT, "day")
    )


def _causes_of_breaks(facts: Facts) -> pl.LazyFrame:
    """Return the likely causes (_BREAKS) of the balance breaks of each account and day."""
    likely = pl.col("likely")
    return (
        breaks(facts)
        .group_by(*BY_ACCOUNT, day=pl.col("next_seen").dt.epoch("d"))
        .agg(
            is_rounded=(likely == "rounding").any(),
            is_shuffled=(likely == "ordering").any(),
            is_missing=~likely.is_in(("rounding", "ordering")).all(),
        )
    )


def _histories(facts: Facts) -> pl.LazyFrame:
    """Return each customer's `is_stale`, `is_short`, and `begins`: the first of the 90 days up to the last row."""
    first, through = (pl.col(name).dt.epoch("d") for name in ("first_date", "data_through"))
    return facts.history.lazy().select(
        BY_CUSTOMER,
        is_stale=epoch(facts.as_of) - through > STALE_AFTER,
        is_short=through - first + 1 < SHORT_HISTORY,
        begins=through - SHORT_HISTORY + 1,
    )
