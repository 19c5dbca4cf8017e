"""Whose payment is it: payments that settle the oldest of what is owed first."""

from typing import NamedTuple

import polars as pl

from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import UNITS

AMOUNT = UNITS["AUD"]


class Settled(NamedTuple):
    """`parts`: `customer_number, periodEnd, payment, part` (AUD, above zero).

    `rest`: what no debt open that day needed: `customer_number, payment, date, amount` (above zero), and `periodEnd`
    and `until` of the debt begun last, null when there was none.
    """

    parts: pl.DataFrame
    rest: pl.DataFrame


def oldest_first(owed: pl.DataFrame, payments: pl.DataFrame) -> Settled:
    """Each payment goes to the oldest debt that is open that day and not yet settled, what is over to the next.

    A debt is open from the day `begins` through the day `until`. What is still lacking then stays so. Debts are laid
    end to end on a line, a payment covers a stretch of it, and that begins where the one before it ended: but not
    before the end of what is past (`floor`), and it doesn't go beyond what has begun (`ceiling`).

    Args:
        owed: `customer_number, periodEnd` (the debt's name), `begins`, `until`, `need` (AUD, not negative). In the
            order of `periodEnd` neither `begins` nor `until` falls.
        payments: `customer_number, payment` (a number; rising within a customer as the dates do), `date`,
            `amount` (AUD, above zero).
    """
    line = owed.sort(BY_CUSTOMER, "periodEnd").with_columns(end=pl.col("need").cast(AMOUNT).cum_sum().over(BY_CUSTOMER))
    bounded = _bounded(line, payments)
    covered = bounded.drop_nulls("ceiling").pipe(_laid_out)
    parts = _parts(line.filter(pl.col("need") > 0), covered.filter(pl.col("to") > pl.col("from")))
    used = covered.select("payment", used=pl.col("to") - pl.col("from"))
    left = pl.col("amount") - pl.col("used").fill_null(0)
    rest = (
        bounded.join(used, on="payment", how="left", validate="1:1")
        .select(BY_CUSTOMER, "payment", "date", "periodEnd", "until", amount=left.cast(AMOUNT))
        .filter(pl.col("amount") > 0)
    )
    return Settled(parts, rest)


def _bounded(line: pl.DataFrame, payments: pl.DataFrame) -> pl.DataFrame:
    """Payments with `ceiling`, `periodEnd` and `until` of the debt begun last, and `floor`."""
    begun = line.select(BY_CUSTOMER, "begins", "periodEnd", "until", ceiling="end").sort("begins", "periodEnd")
    past = line.group_by(BY_CUSTOMER, day=pl.col("until") + pl.duration(days=1)).agg(floor=pl.col("end").max())
    by_date = payments.sort("date", "payment").with_columns(pl.col("amount").cast(AMOUNT))
    return (
        by_date.join_asof(begun, left_on="date", right_on="begins", by=BY_CUSTOMER, check_sortedness=False)
        .join_asof(past.sort("day"), left_on="date", right_on="day", by=BY_CUSTOMER, check_sortedness=False)
        .with_columns(pl.col("floor").fill_null(0))
        .sort(BY_CUSTOMER, "payment")
    )


def _laid_out(payments: pl.DataFrame) -> pl.DataFrame:
    """The stretch of the line that each payment covers, `from` and `to`: `to = min(max(to before, floor) + amount,
    ceiling)`, from payment to payment.

    Such a step shifts a point by `add` and keeps it between `low` and `high`, and two of them in a row are again such
    a step. So after n rounds every step spans the 2ⁿ payments up to it, and few rounds span them all.
    """
    longest = payments.group_by(BY_CUSTOMER).len()["len"].max()
    low = pl.min_horizontal(pl.col("floor") + pl.col("amount"), "ceiling")
    steps = payments.with_columns(add="amount", low=low, high="ceiling")
    span = 1
    while isinstance(longest, int) and span < longest:
        steps, span = _twice_as_long(steps, span), span * 2
    to = pl.max_horizontal(pl.min_horizontal("add", "high"), "low")
    before = pl.col("to").shift(1).over(BY_CUSTOMER).fill_null(0)
    covered = steps.with_columns(to=to).with_columns(before=pl.max_horizontal(before, "floor"))
    return covered.select(BY_CUSTOMER, "payment", "to", **{"from": "before"})


def _twice_as_long(steps: pl.DataFrame, span: int) -> pl.DataFrame:
    """Each step after the one that ends where it begins, `span` rows up, if that is of the same customer."""
    same = pl.col(BY_CUSTOMER).shift(span) == pl.col(BY_CUSTOMER)
    shifted = {name: pl.when(same).then(pl.col(name).shift(span)) for name in ("add", "low", "high")}
    bounds = {name: _retained(shifted[name] + pl.col("add")) for name in ("low", "high")}
    longer = {"add": shifted["add"] + pl.col("add"), **bounds}
    return steps.with_columns(pl.coalesce(each, name).alias(name) for name, each in longer.items())


def _retained(point: pl.Expr) -> pl.Expr:
    return pl.when(point.is_not_null()).then(pl.max_horizontal(pl.min_horizontal(point, "high"), "low"))


def _parts(debts: pl.DataFrame, covered: pl.DataFrame) -> pl.DataFrame:
    """Where stretches of payments lie over debts: the line is cut wherever one of either begins or ends."""
    cuts = pl.concat(
        [
            debts.select(BY_CUSTOMER, "periodEnd", at="end"),
            covered.select(BY_CUSTOMER, "payment", "from", at="to"),
            covered.select(BY_CUSTOMER, at="from"),
        ],
        how="diagonal",
    )
    ending_next = pl.col("periodEnd", "payment", "from").backward_fill().over(BY_CUSTOMER)
    piece_from = pl.max_horizontal(pl.col("at").shift(1).over(BY_CUSTOMER), "from")
    return (
        cuts.sort(BY_CUSTOMER, "at")
        .with_columns(ending_next)
        .with_columns(part=(pl.col("at") - piece_from).cast(AMOUNT))
        .drop_nulls(["periodEnd", "payment"])
        .filter(pl.col("part") > 0)
        .select(BY_CUSTOMER, "periodEnd", "payment", "part")
    )
