"""Cases with outcomes, from which a scorecard is learned."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.scorecards.correction import recalibrate
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.measures import Outcomes, Values
from pipelines.scorecards.scorecard import COVERAGE_OF
from pipelines.vocabulary.errors import Unprocessable

MIN_DEFAULTS = 20  # our judgement
DIGITS = 4  # decimals of readings, and so of the limits of bands
LOG_ODDS_PER_POINT = float(np.log(2) / float(DEFAULT.link.doubling))  # of the default scorecard


@dataclass(frozen=True)
class Prior:
    """What is known of a feature before fitting.

    `reason`: why it may matter, in words. `more_is_better`: None if unknown. `step`: the smallest difference between
    two readings; 1 for counts, which earn points in steps.
    """

    name: str
    reason: str
    more_is_better: bool | None = None
    step: Decimal = Decimal("0.0001")


@dataclass(frozen=True, eq=False)
class TrainingCases:
    """Cases with outcomes, to which a scorecard is fitted. All attributes but `priors` have the same order.

    `scored`: the cases as scored by the default scorecard (`Scorecard.score`). `further`: other readings as floats,
    null where missing, with their coverage in COVERAGE_OF + name; without that column they are covered in full.
    `priors`: what is known of all these readings.
    """

    scored: pl.DataFrame
    further: pl.DataFrame
    priors: Mapping[str, Prior]
    defaulted: Outcomes
    customers: NDArray[np.int64]

    def log_odds(self) -> Values:
        """Return each case's log-odds by the default scorecard, before any ceiling."""
        points: Values = self.scored["points"].cast(pl.Float64).to_numpy()
        return LOG_ODDS_PER_POINT * (float(DEFAULT.link.even) - points)

    def readings(self, name: str) -> Values:
        """Return a reading of each case; nan where missing."""
        return _floats(self._frame(name)[name])

    def further_names(self) -> list[str]:
        """Return the names of the readings that the default scorecard doesn't have."""
        return [name for name in self.priors if name in self.further.columns]

    def coverage(self, name: str) -> Values | float:
        """Return each case's coverage of a reading; 0 where it is not expected."""
        frame, coverage = self._frame(name), COVERAGE_OF + name
        return np.nan_to_num(_floats(frame[coverage])) if coverage in frame.columns else 1.0

    def expects(self, name: str) -> bool:
        """Return whether a reading's evidence is expected of the cases."""
        frame, coverage = self._frame(name), COVERAGE_OF + name
        return coverage not in frame.columns or frame[coverage].null_count() < frame.height

    def _frame(self, name: str) -> pl.DataFrame:
        return self.further if name in self.further.columns else self.scored

    def select(self, which: NDArray[np.bool_]) -> "TrainingCases":
        return replace(
            self,
            scored=self.scored.filter(which),
            further=self.further.filter(which) if self.further.width else self.further,
            defaulted=self.defaulted[which],
            customers=self.customers[which],
        )

    @property
    def points_scale(self) -> float:
        """Return the factor by which the default scorecard scales its points if not all of its evidence is expected."""
        expected = float(self.scored["expected"].max() or 0)  # pyrefly: ignore[bad-argument-type]
        return float(DEFAULT.max_points) / expected if expected else 0.0


Forecast = Callable[[TrainingCases], Values]  # predicts the log-odds of cases
Model = Callable[[TrainingCases], Forecast]  # learns from cases how to predict others


def refuse_unlearnable(training: TrainingCases) -> None:
    """Refuse cases that all have the same outcome, too few of one outcome, or outcomes that contradict the points.

    Raises:
        Unprocessable: with the reason.
    """
    defaulted, points = training.defaulted, training.log_odds()
    bad, good = int((defaulted == 1).sum()), int((defaulted == 0).sum())
    if not bad or not good:
        raise _refusal(f"all {bad + good} cases {'defaulted' if bad else 'were repaid'}; both kinds are needed")
    if min(bad, good) < MIN_DEFAULTS:
        few = f"{bad} of {bad + good} cases defaulted" if bad < good else f"only {good} of {bad + good} did not default"
        raise _refusal(f"{few}; at least {MIN_DEFAULTS} of each kind are needed")
    if np.ptp(points) == 0:
        raise _refusal("the default scorecard gives all cases the same points")
    if recalibrate(points, defaulted).slope == 0:
        raise _refusal("the default scorecard's points contradict the outcomes: are 0 and 1 exchanged?")


def _floats(column: pl.Series) -> Values:
    return column.cast(pl.Float64).fill_null(float("nan")).to_numpy().round(DIGITS)


def _refusal(reason: str) -> Unprocessable:
    return Unprocessable("Risk.NothingToLearn", f"No risk model can be fitted: {reason}.")
