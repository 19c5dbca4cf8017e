"""Breaks: between which two transactions the running balance doesn't continue, and how much money is missing there.

The order of rows within a day is unknown, so a day is read as *pieces*: each row leads from its opening
(`balance - amount`) to its balance. Where one row's balance is another's opening, they follow each other, whatever the
order they were sent in. The unmatched openings and balances are the day's beginnings and ends: one of each in a whole
day. An end must be a beginning of the account's next day. Ends that are not, and beginnings that no end led to, are
paired in the order of days: between such a pair money is missing, exactly `opening - balance`.

Days on which only some rows state a balance add their amounts to the next; but if only the first or the last row
of a day does, it is taken to close the day. Enrichment has already checked all balances (`balance_verified`), so only
accounts with a balance that doesn't hold are read here.
"""

import polars as pl

from pipelines.figures.accounts import BALANCE, BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.reports.completeness.cached import cached
from pipelines.reports.completeness.coverage import is_break, steps
from pipelines.vocabulary.schemas import UUID

_DAY = (*BY_ACCOUNT, "date")
_BREAKS = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "account_id": UUID,
        "after_id": UUID,  # the row before the break
        "last_seen": pl.Date(),
        "balance": BALANCE,
        "before_id": UUID,  # the row after the break
        "next_seen": pl.Date(),
        "opening": BALANCE,  # of the row after the break: its balance minus its amount
        "carried": BALANCE,  # amount of rows without a balance in between
        "likely": pl.String(),  # `rows_missing`, `repeated_row` or `sign`
    }
)


@cached
def breaks(facts: Facts) -> pl.LazyFrame:
    """Return one row per break (schema _BREAKS), in order; `opening - carried - balance` is missing there."""
    broken = steps(facts).filter(is_break()).select(BY_ACCOUNT).unique().collect(engine="in-memory")
    if broken.is_empty():
        return pl.LazyFrame(schema=_BREAKS)
    pieces = _units(facts, broken.lazy()).pipe(_pieces).pipe(_unmatched)
    nth = {"nth": pl.int_range(pl.len()).over(BY_ACCOUNT)}
    order = (*BY_ACCOUNT, "date", "order")
    ends = pieces.filter(pl.col("left_over") > 0).sort(order).with_columns(**nth)
    begins = pieces.filter(pl.col("left_over") < 0).sort(order).with_columns(nth=nth["nth"] - 1)
    return (
        ends.join(begins, on=[*BY_ACCOUNT, "nth"], suffix="_begun", validate="1:1")
        .sort(*BY_ACCOUNT, "nth")
        .select(
            *BY_ACCOUNT,
            after_id="transaction_id",
            last_seen="date",
            balance=pl.col("value") + pl.col("carried"),
            before_id="transaction_id_begun",
            next_seen="date_begun",
            opening=pl.col("value_begun") + pl.col("carried_begun"),
            carried=pl.col("carried_begun") - pl.col("carried"),
            likely=_likely(pl.col("value_begun") - pl.col("value")),
        )
        .match_to_schema(_BREAKS)
    )


def _likely(missing: pl.Expr) -> pl.Expr:
    """Name the likely cause: a turned sign leaves twice the row's amount missing, a repeated row minus its amount."""
    return (
        pl.when(missing == -2 * pl.col("amount_begun"))
        .then(pl.lit("sign"))
        .when((missing == -pl.col("amount_begun")) & pl.col("has_twin_begun"))
        .then(pl.lit("repeated_row"))
        .otherwise(pl.lit("rows_missing"))
    )


def _units(facts: Facts, broken: pl.LazyFrame) -> pl.LazyFrame:
    """Return the units of `broken` accounts that state a balance: single rows, or whole days.

    A unit has its `amount`, the balance before it (`opening`) and after it (`closing`), both minus the amounts of
    unreadable days so far (`carried`). `order` counts from the day's first movement on, also where the bank lists the
    newest row first.
    """
    amount, known = pl.col("amount").cast(BALANCE), pl.col("balance").is_not_null()
    place = pl.int_range(pl.len()).over(_DAY)
    rows = (
        facts.rows.lazy()
        .select(*_DAY, "transaction_id", "amount", "balance", "description")
        .join(broken, on=BY_ACCOUNT, how="semi")
        .with_columns(
            amount=amount,
            balance=pl.col("balance").cast(BALANCE),
            order=place,
            rows=pl.len().over(_DAY),
            known=known.sum().over(_DAY),
            net=amount.sum().over(_DAY),
        )
        .with_columns(at_an_end=(pl.col("order") == 0) | (pl.col("order") == pl.col("rows") - 1))
        .with_columns(
            is_whole=pl.col("known") == pl.col("rows"),
            closes=(pl.col("known") == 1) & pl.col("at_an_end") & known,
            has_twin=pl.len().over(*_DAY, "amount", "description") > 1,
        )
        .with_columns(is_read=pl.col("is_whole") | pl.col("closes").any().over(_DAY))
        .sort(*_DAY, "order")
    )
    carried = pl.when(~pl.col("is_read")).then("amount").otherwise(pl.lit(0, BALANCE))
    moved = pl.when("is_whole").then("amount").otherwise("net")
    return (
        rows.with_columns(carried=carried.cum_sum().over(BY_ACCOUNT))
        .filter(pl.col("is_whole") | pl.col("closes"))
        .with_columns(order=pl.when(_newest_first()).then(-pl.col("order")).otherwise("order"))
        .select(
            *_DAY,
            "transaction_id",
            "order",
            "amount",
            "has_twin",
            "carried",
            closing=pl.col("balance") - pl.col("carried"),
            opening=pl.col("balance") - moved - pl.col("carried"),
        )
    )


def _newest_first() -> pl.Expr:
    """Tell whether the account's rows follow each other backwards more often than forwards."""
    opening = pl.col("balance") - pl.col("amount")
    before = pl.col("balance").shift(1).over(_DAY)
    opening_before = opening.shift(1).over(_DAY)
    forwards, backwards = opening == before, pl.col("balance") == opening_before
    return backwards.sum().over(BY_ACCOUNT) > forwards.sum().over(BY_ACCOUNT)


def _pieces(units: pl.LazyFrame) -> pl.LazyFrame:
    """Return a day's ends (`uses` > 0) and beginnings (< 0): balances that no row of the day continues or leads to."""
    own = ("transaction_id", "order", "amount", "has_twin", "carried")
    closings = units.select(*_DAY, *own, value="closing", uses=1)
    openings = units.select(*_DAY, *own, value="opening", uses=-1)
    # If a row is repeated, the first copy ends the piece before it, and the last one begins the piece after it.
    ends, begins = pl.col("uses") > 0, pl.col("uses") < 0
    details = pl.when(pl.col("uses").sum() > 0)
    return (
        pl.concat([closings, openings])
        .group_by(*_DAY, "value")
        .agg(
            pl.col("uses").sum(),
            **{
                name: details.then(pl.col(name).filter(ends).sort_by(pl.col("order").filter(ends)).first()).otherwise(
                    pl.col(name).filter(begins).sort_by(pl.col("order").filter(begins)).last()
                )
                for name in own
            },
        )
        .filter(pl.col("uses") != 0)
    )


def _unmatched(pieces: pl.LazyFrame) -> pl.LazyFrame:
    """Return ends that the account's next day doesn't continue, and beginnings that the day before didn't lead to.

    One row for each, with `left_over` 1 or -1. The account's very first beginning and last end are among them.
    """
    numbered = pieces.with_columns(nth_day=pl.col("date").rank("dense").over(BY_ACCOUNT).cast(pl.Int64))
    key = [*BY_ACCOUNT, "nth_day", "value"]
    ends = numbered.filter(pl.col("uses") > 0).select(*key, there="uses")
    begins = numbered.filter(pl.col("uses") < 0).select(*key, there="uses")
    led_to = ends.with_columns(pl.col("nth_day") + 1)
    goes_on = begins.with_columns(pl.col("nth_day") - 1)
    across = pl.concat([led_to, goes_on])
    met = pl.min_horizontal(pl.col("uses").abs(), pl.col("there").abs().fill_null(0))
    opposite = pl.when((pl.col("uses") > 0) != (pl.col("there") > 0)).then("there")
    return (
        numbered.join(across, on=key, how="left")
        .with_columns(there=opposite)
        .sort(*_DAY, "value", "there", nulls_last=True)
        .unique([*_DAY, "value"], keep="first", maintain_order=True)
        .with_columns(left=pl.col("uses").abs() - met)
        .filter(pl.col("left") > 0)
        .with_columns(left_over=pl.col("uses").sign().repeat_by("left"))
        .explode("left_over")
    )
