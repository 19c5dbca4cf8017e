"""Find dealings that are loans: a credit that equal, regular debits repay."""

from functools import cache

import polars as pl

from pipelines.enrichment.facilities.inferring.payments import DEALING, MAX_REPAID, MIN_DEBITS, MIN_FUNDING
from pipelines.enrichment.facilities.joining import FUNDING_TO_REPAYMENT_DAYS, find_streams
from pipelines.vocabulary.plans import AS_WRITTEN

# The numbers are our judgement.
LARGEST_INSTALMENT = 0.4  # of what was funded: MAX_REPAID in MIN_DEBITS payments
LEVEL_SHARE = 0.6  # share of the debits that must have the amount of a stream
LONGEST_TERM_DAYS, LONGEST_MONTHLY_DAYS = 7 * 365, 30 * 365  # in which the debits must be able to repay the credit
MONTHLY_GAP = 25  # days between debits from which they count as monthly
MAX_STREAMS = 50  # of a dealing: a lender's debits have few amounts, and each is compared with every credit


def find_loans(dealings: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the dealings that are loans, with their `product`.

    Args:
        dealings: from `find_dealings`.
    """
    if dealings.is_empty():
        return dealings
    streams = find_streams(dealings.filter(~pl.col("funds")).with_columns(product=pl.lit("")))
    begun = dealings.clear() if streams.is_empty() else _select_funded_streams(dealings, streams)
    if begun.is_empty():
        return dealings.clear()
    funded = begun.lazy()
    sums = _sum_since_funding(dealings.lazy(), funded, streams.lazy()).filter(_is_debt())
    described = funded.join(sums, on=DEALING, validate="1:1").with_columns(mean_gap=_mean_gap())
    loans = described.select(*DEALING, product=_likeliest_product())
    joined = dealings.lazy().join(loans, on=DEALING, validate="m:1")
    return joined.collect(engine="in-memory", optimizations=AS_WRITTEN)


def _select_funded_streams(dealings: pl.DataFrame, streams: pl.DataFrame) -> pl.DataFrame:
    """Return each dealing's first credit that is followed soon by a stream that can repay it, with the stream."""
    fundings = (
        dealings.lazy().filter(pl.col("funds")).select(*DEALING, drawn="date", funding=pl.col("size").cast(pl.Float64))
    )
    after = (pl.col("first") - pl.col("drawn")).dt.total_days()
    longest = pl.when(_mean_gap() > MONTHLY_GAP).then(LONGEST_MONTHLY_DAYS).otherwise(LONGEST_TERM_DAYS)
    return (
        streams.lazy()
        .filter(pl.col("days") >= MIN_DEBITS, pl.len().over(DEALING) <= MAX_STREAMS)
        .select(*DEALING, "first", "last", "days", instalment=pl.col("size").cast(pl.Float64))
        .join(fundings, on=DEALING)
        .filter(
            after.is_between(0, FUNDING_TO_REPAYMENT_DAYS),
            pl.col("funding") >= MIN_FUNDING,
            pl.col("instalment") <= LARGEST_INSTALMENT * pl.col("funding"),
            pl.col("instalment") * longest / _mean_gap() >= pl.col("funding"),
        )
        .sort(*DEALING, "drawn", "first", "instalment")
        .unique(DEALING, keep="first", maintain_order=True)
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
    )


def _mean_gap() -> pl.Expr:
    """Return the mean days between the debits of a stream."""
    return (pl.col("last") - pl.col("first")).dt.total_days() / (pl.col("days") - 1)


def _sum_since_funding(dealings: pl.LazyFrame, funded: pl.LazyFrame, streams: pl.LazyFrame) -> pl.LazyFrame:
    """Sum the payments of each dealing since its funding.

    Returns:
        `lent` and `repaid` (AUD), how many `draws` and `debits` there were, `silent` (days since the last debit),
        `level` (the share of debits that have the amount of a stream), and `amounts`, the number of these amounts.
    """
    since = dealings.join(funded.select(*DEALING, "drawn"), on=DEALING).filter(pl.col("date") >= pl.col("drawn"))
    regular = streams.select(*DEALING, "size", is_level=True)
    out, size = ~pl.col("funds"), pl.col("size")
    is_level = pl.col("is_level").fill_null(value=False)
    return (
        since.join(regular, on=[*DEALING, "size"], how="left", validate="m:1")
        .group_by(DEALING)
        .agg(
            repaid=size.filter(out).sum().cast(pl.Float64),
            lent=size.filter("funds").sum().cast(pl.Float64),
            debits=out.sum(),
            silent=(pl.col("through") - pl.col("date").filter(out).max()).dt.total_days().first(),
            draws=pl.col("funds").sum(),
            level=is_level.filter(out).mean(),
            amounts=size.filter(out, is_level).n_unique(),
        )
    )


def _is_debt() -> pl.Expr:
    """Match dealings whose debits repay the credits and not much more, mostly in equal amounts."""
    return (
        (pl.col("repaid") <= MAX_REPAID * pl.col("lent"))
        & (pl.col("level") >= LEVEL_SHARE)
        & (pl.col("debits") >= 2 * pl.col("draws"))
    )


@cache
def _likeliest_product() -> pl.Expr:
    """Return the likeliest product, by the draws, the rhythm, and how fast the debits repay the funding.

    Loans run for a year or longer; advances, credit for purchases and payday credit for months. Loans repaid over five
    years are for vehicles and equipment, longer ones for property. Payday credit is at most AUD 5,000 by law (National
    Consumer Credit Protection Act 2009). The other bounds are our judgement.
    """
    gap, share = pl.col("mean_gap"), pl.col("instalment") / pl.col("funding")
    within_months = share * 365 / gap > 1.7  # a year's debits, as a multiple of the funding
    factor, ended = pl.col("repaid") / pl.col("lent"), pl.col("silent") > 2 * gap
    without_interest = ended & factor.is_between(0.98, 1.001)
    costly = (factor > 1.2) | ~ended & (pl.col("funding") <= 2_000)
    return (
        pl.when((pl.col("draws") > pl.col("amounts")) | without_interest)
        .then(pl.lit("line_of_credit"))
        .when(gap < 4)
        .then(pl.lit("cash_advance"))
        .when((share > 0.08) & (gap < 20) & costly & (pl.col("funding") <= 5_000))
        .then(pl.lit("payday_credit"))
        .when(share > 0.08)
        .then(pl.lit("trade_credit"))
        .when((gap < 10) & within_months)
        .then(pl.lit("cash_advance"))
        .when((gap > MONTHLY_GAP) & (share < 0.012))
        .then(pl.lit("mortgage"))
        .when((gap > MONTHLY_GAP) & (share < 0.0215))
        .then(pl.lit("asset_finance"))
        .otherwise(pl.lit("term_loan"))
    )
