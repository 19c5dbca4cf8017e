"""Confidence: how well data support the risk figure (0–100; not how good the figure is), and reasons not to rely on it.

    score = the least of: sum over PARTS of weight × share, each to two decimals; 100 × each of LIMITS

Coverage and history weigh most, because a model that has hardly seen a business guesses. Missing data lower the score
and never raise it; an uneven business is harder to predict than a steady one. The limits say that a figure can't be
more certain than the year, the evidence or the statements that it comes from. Weights and thresholds are our
judgement.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any

import polars as pl

from pipelines.figures.lineage import Constant
from pipelines.figures.periods import BY_CUSTOMER, days_behind
from pipelines.pages.wording import percent, quantity
from pipelines.reports.risk.rating import EVIDENCE
from pipelines.risk_models.evidence import WINDOW
from pipelines.scorecards.expected import Expected
from pipelines.scorecards.scorecard import Calibration
from pipelines.vocabulary.plans import AS_WRITTEN
from pipelines.vocabulary.report_values import RATIO, SCORE, name_band, ratio, score

FULL_HISTORY = 12  # months: every season once
SHORT_HISTORY = 3  # months
STALE_AFTER = 90  # days
MIN_CATEGORISED = Decimal("0.5")  # of the money; less is a reason not to rely on the figure
CONFIDENCE = (("high", 70), ("medium", 40))  # lowest score of each; below: low


@dataclass(frozen=True)
class Part:
    """A part of the confidence: `weight` points times `share` (0–1; null counts as 0) of the `inputs`.

    `earned`: how many of the points are earned, in words.
    """

    name: str
    weight: int
    inputs: Mapping[str, pl.DataType]
    share: pl.Expr
    earned: str

    @property
    def words(self) -> str:
        return f"{self.weight} points {self.earned}"

    def points(self) -> pl.Expr:
        return score(self.weight * self.share.clip(0, 1).fill_null(0)).alias(self.name)

    def recompute(self, values: Mapping[str, Constant]) -> Constant:
        """Return the points, computed from the inputs alone."""
        columns = [pl.lit(values[name]).cast(kind).alias(name) for name, kind in self.inputs.items()]
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
    """Return the name of the band of `pdConfidenceScore`: high, medium or low."""
    return name_band(pl.col("pdConfidenceScore"), CONFIDENCE, "low")


_UNCALIBRATED = {
    "none": "The points were never fitted to outcomes: the value is indicative, not a probability.",
    "synthetic": "The points were fitted to invented businesses: the value is indicative, not a probability.",
}


def error_codes(scored: pl.DataFrame, calibration: Calibration, expected: Expected) -> pl.DataFrame:
    """Return `customer_number, errorCodes`: the reasons not to rely on the figure, a list of structs `code, message`.

    Args:
        scored: from `add_confidence`.
    """
    lists = [
        [{"code": f"Risk.{code}", "message": message} for code, message in _list_errors(row, calibration, expected)]
        for row in scored.select(BY_CUSTOMER, *_READ).iter_rows(named=True)
    ]
    return scored.select(BY_CUSTOMER, pl.Series("errorCodes", lists, _ERRORS))


_READ = (
    *("data_through", "days_behind", "months_of_history", "statedBalances", "unknownLimitDays", "revenue"),
    *("categorised", "limitedBy", "covered"),
)
_ERRORS = pl.List(pl.Struct({"code": pl.String(), "message": pl.String()}))


def _list_errors(row: Mapping[str, Any], calibration: Calibration, expected: Expected) -> Iterator[tuple[str, str]]:
    if calibration in _UNCALIBRATED:
        yield "Uncalibrated", _UNCALIBRATED[calibration]
    if row["data_through"] is None:
        yield "NoTransactions", "There are no posted transactions."
    else:
        yield from _list_missing_data(row, expected)
    if EVIDENCE in row["limitedBy"]:
        share = percent(row["covered"])
        yield "EvidenceMissing", f"Only {share} of the expected evidence was supplied: no better rating is possible."
    if row["days_behind"] is not None and row["days_behind"] > STALE_AFTER:
        yield "StaleData", f"The last row is {row['days_behind']:.0f} days old."


def _list_missing_data(row: Mapping[str, Any], expected: Expected) -> Iterator[tuple[str, str]]:
    """Yield code and message of what is missing from the data of a customer with rows."""
    months = row["months_of_history"] or 0
    if months < SHORT_HISTORY:
        history = quantity(int(months), "month")
        yield "InsufficientHistory", f"Only {history} of history; at least {SHORT_HISTORY} are needed."
    if expected.balances and row["statedBalances"] == 0:
        yield "NoBalances", "No cash account states its balance: overdrawn days and buffer are unknown."
    if days := row["unknownLimitDays"]:
        message = (
            f"An account was overdrawn on {days} of the last {WINDOW} days and its approved limit is not known, so "
            "each counts as beyond it: send creditLimit with the account."
        )
        yield "LimitUnknown", message
    if expected.words and row["revenue"] <= 0:
        yield "NoRevenue", f"No net revenue was recognised in the last {WINDOW} days."
    if expected.words and (row["categorised"] or 0) < MIN_CATEGORISED:
        yield (
            "Uncategorised",
            "Less than half of the money has a category, so readings that need categories earn few points.",
        )
    if not expected.words:
        yield (
            "ProvisionalRevenue",
            "Words are not expected of this client's customers: credits of recurring sizes count as revenue.",
        )
