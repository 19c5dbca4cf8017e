"""A backtest: two ways of deciding compared over a portfolio, two versions of a policy, or a version and what was
decided.

    sides       what one side makes of some customers: decisions, limits, and what it counts
      recorded    the side that was decided already, with the inputs of each customer's own
      causes      what keeps customers from being decided: `unsettled.missing` of many at once
    comparison  the two sides beside each other, a row a customer
    tallies     counts and sums, which add up: a portfolio is gone through in parts, and only these stay in memory
    result      what the tallies say, as data
    page/       the same for people

`recorded`, `result` and `page` are imported by name; the rest is here.
"""

from pipelines.decisions.backtest.comparison import (
    COMPARISON,
    KNOWN_OUTCOMES,
    LIMITS_CHANGED,
    OUTCOME_CHANGED,
    compared,
)
from pipelines.decisions.backtest.sides import Side, decided
from pipelines.decisions.backtest.tallies import AFTER, BEFORE, TALLIES, UP_TO, merged

__all__ = [
    "AFTER",
    "BEFORE",
    "COMPARISON",
    "KNOWN_OUTCOMES",
    "LIMITS_CHANGED",
    "OUTCOME_CHANGED",
    "TALLIES",
    "UP_TO",
    "Side",
    "compared",
    "decided",
    "merged",
]
