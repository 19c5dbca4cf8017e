"""How much data the risk figure rests on, not how good it is: 0–100, and reasons not to rely on it.

    score = sum over PARTS of weight × share, each to two decimals

History and readings weigh most: a model that has hardly seen a business guesses. Missing data lower the score and never
raise it; an uneven business is harder to predict than a steady one. Weights and thresholds are our judgement.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import polars as pl

from pipelines.figures.lineage import Constant
from pipelines.figures.periods import days_behind
from pipelines.risk_models.evidence import WINDOW
from pipelines.risk_models.readings import LEAST_CATEGORISED
from pipelines.scorecards.scorecard import Scorecard
from pipelines.vocabulary.printing import RATIO, SCORE, banded, ratio, reason, reasons, score

FULL_HISTORY = 12  # months: every season once
SHORT_HISTORY = 3  # months
STALE_AFTER = 90  # days
CONFIDENCE = (("high", 70), ("medium", 40))  # lowest score of each; below: low


@dataclass(frozen=True)
class Part:
    """A part of the confidence: `weight` points times `share` (0–1; null counts as 0) of the columns in `of`."""

    name: str
    weight: int
    of: Mapping[str, pl.DataType]
    share: pl.Expr
    words: str

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
        f"30 points for {FULL_HISTORY} months of history or more, fewer in proportion",
    ),
    Part(
        "readings",
        25,
        {"points_readable": RATIO, "points_in_all": RATIO},
        ratio(pl.col("points_readable"), pl.col("points_in_all")),
        "25 points times the share of the scorecard's points whose drivers have a reading",
    ),
    Part("proven", 15, {"proven": RATIO}, pl.col("proven"), "15 points times the share of money whose balances hold"),
    Part(
        "categorised",
        10,
        {"categorised": RATIO},
        pl.col("categorised"),
        "10 points times the share of money categorised",
    ),
    Part(
        "fresh",
        10,
        {"days_behind": RATIO},
        ratio(STALE_AFTER - pl.col("days_behind"), pl.lit(STALE_AFTER)),
        f"10 points for rows up to the day of the report, none from {STALE_AFTER} days on",
    ),
    Part(
        "steady",
        10,
        {"revenue_volatility_12m": RATIO},
        1 - pl.col("revenue_volatility_12m"),
        "10 points times what the volatility of revenue leaves of 1",
    ),
)
INPUTS = ("months_of_history", "revenue_volatility_12m")
"""Metrics that confidence reads, whatever the scorecard."""


def with_confidence(scored: pl.DataFrame, scorecard: Scorecard, as_of: date) -> pl.DataFrame:
    """Add `pdConfidenceScore` and the columns that its parts read."""
    readable = (
        pl.when(pl.col(feature.metric).is_not_null()).then(pl.lit(feature.most)).otherwise(0)
        for feature in scorecard.features
    )
    known = pl.col("data_through").is_not_null()
    return scored.with_columns(
        points_readable=pl.sum_horizontal(*readable).cast(RATIO),
        points_in_all=pl.lit(scorecard.most, RATIO),
        days_behind=days_behind(as_of).cast(RATIO),
    ).with_columns(
        pdConfidenceScore=pl.when(known)
        .then(pl.sum_horizontal(*(part.points() for part in PARTS)))
        .otherwise(0)
        .cast(SCORE)
    )


def confidence_rating() -> pl.Expr:
    return banded(pl.col("pdConfidenceScore"), CONFIDENCE, "low")


_UNCALIBRATED = {
    "none": "The points were never fitted to outcomes: the value is indicative, not a probability.",
    "synthetic": "The points were fitted to invented businesses: the value is indicative, not a probability.",
}


def error_codes(scorecard: Scorecard, as_of: date) -> pl.Expr:
    """Return why the figure should not be relied on."""
    behind, months = days_behind(as_of), pl.col("months_of_history")
    has_rows = pl.col("data_through").is_not_null()
    categorised = pl.col("categorised")
    return reasons(
        reason(
            "Risk.Uncalibrated",
            pl.lit(scorecard.calibration in _UNCALIBRATED),
            pl.lit(_UNCALIBRATED.get(scorecard.calibration, "")),
        ),
        reason("Risk.NoTransactions", ~has_rows, pl.lit("There are no posted transactions.")),
        reason(
            "Risk.InsufficientHistory",
            has_rows & (months.fill_null(0) < SHORT_HISTORY),
            pl.format(
                "Only {} months of history; at least {} are needed.",
                months.fill_null(0).floor().cast(pl.Int64),
                pl.lit(SHORT_HISTORY),
            ),
        ),
        reason(
            "Risk.NoBalances",
            has_rows & (pl.col("statedBalances") == 0),
            pl.lit("No account states its balance: overdrawn days and buffer are unknown."),
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
            has_rows & (pl.col("revenue") <= 0),
            pl.format("No net revenue was recognised in the last {} days.", pl.lit(WINDOW)),
        ),
        reason(
            "Risk.Uncategorised",
            has_rows & (categorised.fill_null(0) < pl.lit(LEAST_CATEGORISED, RATIO)),
            pl.lit("Less than half of the money has a category: what only categories show has no reading."),
        ),
        reason("Risk.StaleData", behind > STALE_AFTER, pl.format("The last row is {} days old.", behind)),
    )
