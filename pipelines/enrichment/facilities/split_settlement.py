"""Infer cash advances repaid by split settlement: the acquirer keeps a share of card takings and pays out the rest.

No debit shows these repayments. But card payouts, compared with the other takings of the same weeks, are smaller after
the funding than before. The ups and downs of the business affect both, so their ratio gives the share withheld:

    share = 1 − exp(mean log ratio after − mean log ratio before)

over WEEKS weeks on each side. The confidence follows from the distance of the two means in standard errors (Welch's t).
It is at most MAX_CONFIDENCE, because the ratio may fall for other reasons. Without other takings, nothing is inferred.

The advance must be known by words or lists. Payouts alone can't show one: from week to week, the ratio varies by more
than the share that is withheld, so hardly any true drop is larger than those that happen by chance. A threshold that
leaves chance out leaves most advances out, too (`benchmarks/RESULTS.md`, "How accurate enrichment is").
"""

import polars as pl

from pipelines.enrichment.facilities.terms import TOTAL
from pipelines.vocabulary.plans import collect

# The numbers are our judgement.
WEEKS = 13
MIN_WEEKS = 4  # with takings of both kinds, on each side
MIN_T = 2.0
MIN_SHARE, MAX_SHARE = 0.03, 0.6  # agreed shares are between a twentieth and a third, and this is an estimate
MAX_CONFIDENCE = 0.7

WITHHELD = pl.Schema(
    {
        "facility_id": pl.Binary(),
        "withheld_share": pl.Float64(),
        "withheld_estimate": TOTAL,  # AUD kept back since the funding
        "inferred_confidence": pl.Float64(),  # 0–1
    }
)
_NONE_WITHHELD = WITHHELD.to_frame()
_SHARE = pl.Decimal(38, 6)


def infer_withheld(takings: pl.LazyFrame, unserved: pl.DataFrame) -> pl.DataFrame:
    """Return WITHHELD for the advances for which a share of takings seems to be kept back.

    Args:
        takings: credits that count as revenue (schema TRANSACTIONS).
        unserved: `customer_number`, `facility_id`, `funding_date`, `lender_name` of the advance without visible
            repayments, one row per customer.
    """
    if unserved.is_empty():
        return _NONE_WITHHELD
    share = pl.col("withheld_share")
    return (
        measure_drops(takings, unserved)
        .filter(share.is_between(MIN_SHARE, MAX_SHARE), pl.col("t") >= MIN_T)
        .select(
            "facility_id",
            "withheld_share",
            withheld_estimate=_gross_less_net(pl.col("card_since"), share),
            inferred_confidence=pl.min_horizontal(pl.col("t") / 10, MAX_CONFIDENCE),
        )
        .sort("facility_id")
        .match_to_schema(WITHHELD)
        .pipe(collect)
    )


def measure_drops(takings: pl.LazyFrame, unserved: pl.DataFrame) -> pl.LazyFrame:
    """Measure by how much card payouts, compared with other takings, are smaller since each funding than before.

    Args:
        takings: as of `infer_withheld`.
        unserved: as of `infer_withheld`.

    Returns:
        `facility_id`, `card_since` (AUD paid out since), `withheld_share` (below 0 where payouts grew) and `t`, in
        standard errors, for fundings with MIN_WEEKS on each side.
    """
    weekly = takings.pipe(_sum_by_week, unserved.lazy())
    ratio = (pl.col("card").cast(pl.Float64) / pl.col("other").cast(pl.Float64)).log()
    both = (pl.col("card") > 0) & (pl.col("other") > 0)
    sides = {
        "before": both & pl.col("week").is_between(-WEEKS, -1),
        "after": both & pl.col("week").is_between(0, WEEKS - 1),
    }
    read = {
        f"{name}_{side}": aggregate(ratio.filter(weeks))
        for side, weeks in sides.items()
        for name, aggregate in (("mean", pl.Expr.mean), ("variance", pl.Expr.var), ("weeks", pl.Expr.len))
    }
    since = pl.col("card").filter(pl.col("week") >= 0).sum()
    decrease, error = pl.col("mean_before") - pl.col("mean_after"), _standard_error()
    return (
        weekly.group_by("facility_id")
        .agg(card_since=since, **read)
        .filter(pl.min_horizontal("weeks_before", "weeks_after") >= MIN_WEEKS)
        .select("facility_id", "card_since", withheld_share=1 - (-decrease).exp(), t=decrease / error)
    )


def _sum_by_week(takings: pl.LazyFrame, unserved: pl.LazyFrame) -> pl.LazyFrame:
    """Sum card payouts and all other takings per facility and week since its funding.

    If the lender has the name of a brand with payouts (Square Loans, Shopify Capital), these are the card payouts.
    """
    brand = pl.col("lender_name").str.starts_with(pl.col("counterparty_name")).fill_null(value=False)
    card = pl.when(brand.any().over("facility_id")).then(brand).otherwise(pl.col("category") == "card_settlement")
    amount = pl.col("amount")
    return (
        takings.select("customer_number", "date", "category", "counterparty_name", "amount")
        .join(unserved, on="customer_number", validate="m:1")
        .with_columns(week=(pl.col("date") - pl.col("funding_date")).dt.total_days() // 7, is_card=card)
        .group_by("facility_id", "week")
        .agg(card=amount.filter("is_card").sum(), other=amount.filter(~pl.col("is_card")).sum())
        .sort("facility_id", "week")
    )


def _standard_error() -> pl.Expr:
    squares = (pl.col(f"variance_{side}") / pl.col(f"weeks_{side}") for side in ("before", "after"))
    return pl.sum_horizontal(squares).sqrt()


def _gross_less_net(net: pl.Expr, share: pl.Expr) -> pl.Expr:
    """Return the amount kept back, given the `net` amount paid out and the share withheld."""
    retained = (share / (1 - share)).round(6).cast(_SHARE)
    return (net.cast(_SHARE) * retained).round(2).cast(TOTAL)
