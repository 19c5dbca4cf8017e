"""Attribute payments to debts: each payment settles the oldest debt first."""

from typing import NamedTuple

import polars as pl

from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import UNITS

AMOUNT = UNITS["AUD"]

_PARTS = pl.Schema({BY_CUSTOMER: pl.Int64(), "periodEnd": pl.Date(), "payment": pl.UInt32(), "part": AMOUNT})
_REST = pl.Schema(
    {
        BY_CUSTOMER: pl.Int64(),
        "payment": pl.UInt32(),
        "date": pl.Date(),
        "periodEnd": pl.Date(),
        "until": pl.Date(),
        "amount": AMOUNT,
    }
)


class Attribution(NamedTuple):
    """Which payments settled which debts.

    `parts`: of each payment for each debt: `customer_number, periodEnd, payment, part` (AUD, above zero). `rest`: what
    is left of payments once all debts open on that day are settled: `customer_number, payment, date, amount` (above
    zero), and `periodEnd` and `until` of the latest debt that had begun, null if there was none.
    """

    parts: pl.DataFrame
    rest: pl.DataFrame


def attribute_to_oldest(owed: pl.DataFrame, payments: pl.DataFrame) -> Attribution:
    """Attribute each payment to the oldest debt that is open on its day and not yet settled, then to the next.

    A debt is open from the day `begins` through the day `until`; what is unpaid by then stays unpaid. The debts are
    laid end to end on a line, the oldest first, each as long as its `need`. Each payment covers a stretch of this line,
    from where the payment before it ended. The stretch skips debts that are no longer open (it begins at `floor` or
    later) and stops before debts that have not begun (it ends at `ceiling` or earlier).

    Args:
        owed: `customer_number, periodEnd` (the debt's name), `begins`, `until`, `need` (AUD, not negative). In the
            order of `periodEnd`, neither `begins` nor `until` decreases.
        payments: `customer_number, payment` (a number; increasing within a customer as the dates do), `date`,
            `amount` (AUD, above zero).
    """
    if payments.is_empty():
        return Attribution(pl.DataFrame(schema=_PARTS), pl.DataFrame(schema=_REST))
    end = pl.col("need").cast(AMOUNT).cum_sum().over(BY_CUSTOMER)
    line = owed.lazy().sort(BY_CUSTOMER, "periodEnd").with_columns(end=end)
    bounded = _bounded(line, payments.lazy()).collect(engine="in-memory")
    covered = bounded.drop_nulls("ceiling").pipe(_covered_stretches).collect(engine="in-memory").lazy()
    parts = _parts(line.filter(pl.col("need") > 0), covered.filter(pl.col("to") > pl.col("from")))
    used = covered.select("payment", used=pl.col("to") - pl.col("from"))
    left = pl.col("amount") - pl.col("used").fill_null(0)
    rest = (
        bounded.lazy()
        .join(used, on="payment", how="left", validate="1:1")
        .select(BY_CUSTOMER, "payment", "date", "periodEnd", "until", amount=left.cast(AMOUNT))
        .filter(pl.col("amount") > 0)
    )
    return Attribution(*pl.collect_all([parts, rest], engine="in-memory"))


def _bounded(line: pl.LazyFrame, payments: pl.LazyFrame) -> pl.LazyFrame:
    """Add to payments `ceiling`, `periodEnd` and `until` of the latest debt that had begun, and `floor`."""
    begun = line.select(BY_CUSTOMER, "begins", "periodEnd", "until", ceiling="end").sort("begins", "periodEnd")
    past = line.group_by(BY_CUSTOMER, day=pl.col("until") + pl.duration(days=1)).agg(floor=pl.col("end").max())
    by_date = payments.sort("date", "payment").with_columns(pl.col("amount").cast(AMOUNT))
    return (
        by_date.join_asof(begun, left_on="date", right_on="begins", by=BY_CUSTOMER, check_sortedness=False)
        .join_asof(past.sort("day"), left_on="date", right_on="day", by=BY_CUSTOMER, check_sortedness=False)
        .with_columns(pl.col("floor").fill_null(0))
        .sort(BY_CUSTOMER, "payment")
    )


def _covered_stretches(payments: pl.DataFrame) -> pl.LazyFrame:
    """Return the stretch of the line that each payment covers, from `from` to `to`.

    From payment to payment, `to = min(max(to before, floor) + amount, ceiling)`. Such a step shifts a point by `add`
    and clips it to `low` and `high`, and two steps in a row are again such a step. So after n rounds each step spans
    the 2ⁿ payments up to it, and a few rounds span them all.
    """
    longest = payments.group_by(BY_CUSTOMER).len()["len"].max()
    low = pl.min_horizontal(pl.col("floor") + pl.col("amount"), "ceiling")
    steps = payments.lazy().with_columns(add="amount", low=low, high="ceiling")
    span = 1
    while isinstance(longest, int) and span < longest:
        steps, span = _double_span(steps, span), span * 2
    to = pl.max_horizontal(pl.min_horizontal("add", "high"), "low")
    before = pl.col("to").shift(1).over(BY_CUSTOMER).fill_null(0)
    covered = steps.with_columns(to=to).with_columns(before=pl.max_horizontal(before, "floor"))
    return covered.select(BY_CUSTOMER, "payment", "to", **{"from": "before"})


def _double_span(steps: pl.LazyFrame, span: int) -> pl.LazyFrame:
    """Compose each step with the one that ends where it begins, `span` rows up, if both are of the same customer."""
    same = pl.col(BY_CUSTOMER).shift(span) == pl.col(BY_CUSTOMER)
    shifted = {name: pl.when(same).then(pl.col(name).shift(span)) for name in ("add", "low", "high")}
    bounds = {name: _clip(shifted[name] + pl.col("add")) for name in ("low", "high")}
    longer = {"add": shifted["add"] + pl.col("add"), **bounds}
    return steps.with_columns(pl.coalesce(value, name).alias(name) for name, value in longer.items())


def _clip(point: pl.Expr) -> pl.Expr:
    return pl.when(point.is_not_null()).then(pl.max_horizontal(pl.min_horizontal(point, "high"), "low"))


def _parts(debts: pl.LazyFrame, covered: pl.LazyFrame) -> pl.LazyFrame:
    """Intersect payments' stretches with debts: the line is cut wherever a stretch or a debt begins or ends."""
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
