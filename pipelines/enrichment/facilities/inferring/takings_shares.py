"""Find dealings that are cash advances, repaid by a share of the takings."""

from collections.abc import Iterator

import polars as pl

from pipelines.enrichment.facilities.inferring.payments import DEALING, MAX_REPAID, MIN_DEBITS, MIN_FUNDING
from pipelines.enrichment.facilities.joining import FUNDING_TO_REPAYMENT_DAYS

# The numbers are our judgement.
CARD_TAKINGS = ("card_settlement", "platform_payout")
TAKINGS_SHARE = (0.03, 0.6)  # that a lender takes, of takings
SHARE_TOLERANCE = 0.01  # of the usual share: it is computed to the cent, from takings that may not all be shown
ALIKE_SHARE = 0.75  # share of the debits that must be within this tolerance
SAME_SIZE_SHARE = 0.5  # from this share of debits of the same size on, nothing shows that they follow the takings


def find_takings_shares(dealings: pl.DataFrame, posted_rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of dealings whose debits are one share of the customer's takings, with their `product`.

    Args:
        dealings: from `find_dealings`.
        posted_rows: all posted rows of these customers.
    """
    if dealings.is_empty():
        return dealings
    funded = _select_funded(dealings)
    if funded.is_empty():  # true of many customers
        return dealings.clear()
    debits = dealings.filter(~pl.col("funds")).join(funded, on=DEALING)
    by_day = debits.group_by(*DEALING, "date").agg(pl.col("size").sum())
    sharing = [_select_alike(by_day, taken, lag) for taken in _sum_takings(posted_rows) for lag in (0, 1)]
    return dealings.join(pl.concat(sharing), on=DEALING, how="semi").with_columns(product=pl.lit("cash_advance"))


def _select_funded(dealings: pl.DataFrame) -> pl.DataFrame:
    """Return the dealings that begin with a credit, which debits follow soon and repay.

    A supplier, a franchisor or an acquirer takes its share before it pays anything.
    """
    day, funds, size = pl.col("date"), pl.col("funds"), pl.col("size").cast(pl.Float64)
    drawn, first = day.filter("funds").min(), day.filter(~funds).min()
    sums = dealings.group_by(DEALING).agg(
        days=day.filter(~funds).n_unique(),
        draws=funds.sum(),
        lent=size.filter("funds").sum(),
        repaid=size.filter(~funds).sum(),
        after=(first - drawn).dt.total_days(),
    )
    return sums.filter(
        pl.col("days") > MIN_DEBITS,  # one more, because it isn't known what the first debit is a share of
        pl.col("days") >= 2 * pl.col("draws"),
        pl.col("lent") >= MIN_FUNDING,
        pl.col("repaid") <= MAX_REPAID * pl.col("lent"),
        pl.col("after").is_between(0, FUNDING_TO_REPAYMENT_DAYS),
    ).select(DEALING)


def _sum_takings(posted_rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield running sums of card takings, and of all: `customer_number`, `date`, and `taken` up to the day's end."""
    revenue = posted_rows.filter(
        pl.col("category_group") == "revenue", pl.col("amount") > 0, pl.col("is_transfer").ne_missing(True)
    )
    for takings in (revenue.filter(pl.col("category").is_in(CARD_TAKINGS)), revenue):
        by_day = takings.group_by("customer_number", "date").agg(taken=pl.col("amount").cast(pl.Float64).sum())
        yield by_day.sort("customer_number", "date").with_columns(pl.col("taken").cum_sum().over("customer_number"))


def _select_alike(debits: pl.DataFrame, taken: pl.DataFrame, lag: int) -> pl.DataFrame:
    """Return the dealings most of whose debits (`alike`, 0–1) are one share of the takings since the debit before.

    Args:
        debits: of dealings, one row for each day.
        taken: from `_sum_takings`.
        lag: days from the takings to the debit.
    """
    until = debits.with_columns(until=pl.col("date") - pl.duration(days=lag)).sort("until")
    known = until.join_asof(
        taken.sort("date"), left_on="until", right_on="date", by="customer_number", check_sortedness=False
    ).sort(*DEALING, "until")
    since = pl.col("taken").diff().over(DEALING)
    size, share = pl.col("size").cast(pl.Float64), pl.col("share")
    return (
        known.with_columns(share=pl.when(since > 0).then(size / since))
        .group_by(DEALING)
        .agg(
            usual=share.median(),
            alike=_is_usual(share).sum() / (pl.len() - 1),
            same_size=_is_usual(size).mean(),
        )
        .filter(
            pl.col("usual").is_between(*TAKINGS_SHARE),
            pl.col("alike") >= ALIKE_SHARE,
            pl.col("same_size") < SAME_SIZE_SHARE,
        )
    )


def _is_usual(value: pl.Expr) -> pl.Expr:
    return (value / value.median() - 1).abs() <= SHARE_TOLERANCE
