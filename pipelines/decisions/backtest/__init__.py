"""Backtests: compare two versions of a policy, or a version with recorded decisions, over a portfolio.

    sides       one side of the comparison: its decisions, limits and counts
      recorded    the side of recorded decisions, with each customer's own inputs
      causes      why customers could not be decided: `unsettled.find_missing` for many customers
    comparison  the two sides compared, one row per customer
    tallies     counts and sums that add up: a portfolio is computed in parts, and only these stay in memory
    result      the tallies as data for the API
    coverage    how often each rule was reached and decided, from the result
    page/       the result as a page

`recorded`, `result`, `coverage` and `page` are imported by name; the rest is here.
"""

from pipelines.decisions.backtest.comparison import (
    COMPARISON,
    KNOWN_OUTCOMES,
    LIMITS_CHANGED,
    OUTCOME_CHANGED,
    compare,
)
from pipelines.decisions.backtest.sides import Side, decide
from pipelines.decisions.backtest.tallies import AFTER, BEFORE, TALLIES, UP_TO, merge

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
    "compare",
    "decide",
    "merge",
]
