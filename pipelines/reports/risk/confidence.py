"""Confidence: how well data support the risk figure (0–100; not how good the figure is), and reasons not to rely on it.

    score = the least of: sum over PARTS of weight × share, each to two decimals; 100 × each of LIMITS

Coverage and history weigh most, because a model that has hardly seen a business guesses. Missing data lower the score
and never raise it; an uneven business is harder to predict than a steady one. The limits say that a figure can't be
more certain than the year, the evidence or the statements that it comes from. Weights and thresholds are our
judgement.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache, lru_cache

import polars as pl

from pipelines.figures.lineage import Constant
from pipelines.figures.periods import days_behind
from pipelines.reports.risk.rating import EVIDENCE
from pipelines.risk_models.evidence import WINDOW
from pipelines.scorecards.expected import Expected
from pipelines.scorecards.scorecard import Calibration
from pipelines.vocabulary.plans import AS_WRITTEN
from pipelines.vocabulary.report_values import (
    RATIO,
    SCORE,
    count_text,
    name_band,
    percent_text,
    ratio,
    reason,
    reasons,
    score,
)

FULL_HISTORY = 12  # months: every season once
SHORT_HISTORY = 3  # months
STALE_AFTER = 90  # days
MIN_CATEGORISED = Decimal("0.5")  # of the money; less is a reason not to rely on the figure
CONFIDENCE = (("high", 70), ("medium", 40))  # lowest score of each; below: low


@dataclass(frozen=True)
class Part:
    """A part of the confidence: `weight` points times `share` (0–1; null counts as 0) of the columns in `of`.

    `earned`: how many of the points are earned, in words.
    """

    name: str
    weight: int
    of: Mapping[str, pl.DataType]
    share: pl.Expr
    earned: str

    @property
    def words(self) -> str:
        return f"{self.weight} points {self.earned}"

    def points(self) -> pl.Expr:
        return score(self.weight * self.share.clip(0, 1).fill_null(0)).alias(self.name)

    def recompute(self, values: Mapping[str, Constant]) -> Constant:
        """Return the points, computed from the inputs alone."""
        columns = [pl.lit(values[name]).cast(kind).alias(name) for name, kind in self.of.items()]
        points: Constant = pl.select(columns).select(self.points()).item()
        return points


def _share(part: str, whole: int) -> pl.Expr:
    return ratio(pl.col(part), pl.lit(whole))


PARTS = (
    Part(
        "history",
        30,
        {"months_of_history": RATIO},
        _share("months_of_history", FULL_HISTORY),
        f"for {FULL_HISTORY} months of history or more, fewer in proportion",
    ),
    Part("covered", 35, {"covered": RATIO}, pl.col("covered"), "times the share of the expected points covered"),
    Part("proven", 15, {"proven": RATIO}, pl.col("proven"), "times the share of money with proven balances"),
    Part(
        "fresh",
        10,
        {"days_behind": RATIO},
        ratio(STALE_AFTER - pl.col("days_behind"), pl.lit(STALE_AFTER)),
        f"for rows up to the day of the report, none from {STALE_AFTER} days on",
    ),
    Part(
        "steady",
        10,
        {"revenue_volatility_12m": RATIO},
        1 - pl.col("revenue_volatility_12m"),
        "times (1 − the volatility of revenue)",
    ),
)
LIMITS = ("documented", "covered", "reconciled")
"""Columns with shares: the score never exceeds 100 times any of them."""
INPUTS = ("months_of_history", "revenue_volatility_12m")
"""Metrics that confidence reads, whatever the scorecard."""


def add_confidence(scored: pl.DataFrame, as_of: date) -> pl.DataFrame:
    """Add `pdConfidenceScore` and the columns that its parts read."""
    known = scored.lazy().with_columns(days_behind=days_behind(as_of).cast(RATIO))
    return known.with_columns(pdConfidenceScore=_score()).collect(engine="in-memory", optimizations=AS_WRITTEN)


@cache
def _score() -> pl.Expr:
    known = pl.col("data_through").is_not_null()
    limits = (limit(pl.col(name)) for name in LIMITS)
    parts = pl.sum_horizontal(*(part.points() for part in PARTS))
    return pl.when(known).then(pl.min_horizontal(parts, *limits)).otherwise(0).cast(SCORE)


def limit(share: pl.Expr) -> pl.Expr:
    """Return the highest score that this share allows."""
    return score(100 * share.cast(RATIO).clip(0, 1).fill_null(0))


def confidence_rating() -> pl.Expr:
    return name_band(pl.col("pdConfidenceScore"), CONFIDENCE, "low")


_UNCALIBRATED = {
    "none": "The points were never fitted to outcomes: the value is indicative, not a probability.",
    "synthetic": "The points were fitted to invented businesses: the value is indicative, not a probability.",
}


@lru_cache(maxsize=100)
def error_codes(calibration: Calibration, as_of: date, expected: Expected) -> pl.Expr:
    """Return the reasons not to rely on the figure."""
    behind, months = days_behind(as_of), pl.col("months_of_history")
    has_rows = pl.col("data_through").is_not_null()
    categorised, covered = pl.col("categorised"), percent_text(pl.col("covered"))
    return reasons(
        reason(
            "Risk.Uncalibrated",
            pl.lit(calibration in _UNCALIBRATED),
            pl.lit(_UNCALIBRATED.get(calibration, "")),
        ),
        reason("Risk.NoTransactions", ~has_rows, pl.lit("There are no posted transactions.")),
        reason(
            "Risk.InsufficientHistory",
            has_rows & (months.fill_null(0) < SHORT_HISTORY),
            pl.format(
                "Only {} of history; at least {} are needed.",
                count_text(months.fill_null(0).floor().cast(pl.Int64), "month", "months"),
                pl.lit(SHORT_HISTORY),
            ),
        ),
        reason(
            "Risk.NoBalances",
            pl.lit(expected.balances) & has_rows & (pl.col("statedBalances") == 0),
            pl.lit("No cash account states its balance: overdrawn days and buffer are unknown."),
        ),
        reason(
            "Risk.LimitUnknown",
            pl.col("unknownLimitDays") > 0,
            pl.format(
                "An account was overdrawn on {} of the last {} days and its approved limit is not known, so each "
                "counts as beyond it: send creditLimit with the account.",
                pl.col("unknownLimitDays"),
                pl.lit(WINDOW),
            ),
        ),
        reason(
            "Risk.NoRevenue",
            pl.lit(expected.words) & has_rows & (pl.col("revenue") <= 0),
            pl.format("No net revenue was recognised in the last {} days.", pl.lit(WINDOW)),
        ),
        reason(
            "Risk.Uncategorised",
            pl.lit(expected.words) & has_rows & (categorised.fill_null(0) < pl.lit(MIN_CATEGORISED, RATIO)),
            pl.lit("Less than half of the money has a category, so readings that need categories earn few points."),
        ),
        reason(
            "Risk.ProvisionalRevenue",
            pl.lit(not expected.words) & has_rows,
            pl.lit("Words are not expected of this client's customers: credits of recurring sizes count as revenue."),
        ),
        reason(
            "Risk.EvidenceMissing",
            pl.col("limitedBy").list.contains(EVIDENCE),
            pl.format("Only {} of the expected evidence was supplied: no better rating is possible.", covered),
        ),
        reason("Risk.StaleData", behind > STALE_AFTER, pl.format("The last row is {} days old.", behind)),
    )
