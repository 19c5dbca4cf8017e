"""Compute how likely the days of a candidate are if they follow no schedule.

The likeliest of three Poisson processes counts: one rate for all days; separate rates for business days and closed
days, if closed days have fewer payments; and one rate where payments of closed days are posted on the next business
day, so that a Monday has those of three days.
"""

import numpy as np

from pipelines.enrichment.recurrence.anchors import Days
from pipelines.enrichment.recurrence.dates import (
    Flags,
    Floats,
    Integers,
    business_day_number,
    exposure,
    is_open,
    look_up_day,
)
from pipelines.enrichment.recurrence.runs import Runs

HARDLY_ANY = 0.05  # share of payments on closed days that is tolerated: states differ in a holiday or two


def log_rates_by_chance(candidate: Integers, days: Days) -> Floats:
    """Return for each of these candidates the sum over its days of the log of the rate on that day."""
    chosen, back = np.unique(candidate, return_inverse=True)
    day, runs = days.day[days.runs.places(chosen)], Runs.of_lengths(days.runs.lengths[chosen])
    opened = is_open(day)
    span = day[runs.last] - day[runs.starts] + 1
    one_rate = runs.lengths * np.log(runs.lengths / span)
    likeliest = np.maximum(one_rate, _log_two_rates(day, opened, runs, span))
    carried = np.where(
        runs.sum((~opened).astype(np.int64)) <= runs.lengths * HARDLY_ANY,
        one_rate + runs.sum(np.log(look_up_day(exposure(), day))),
        -np.inf,
    )
    likeliest = np.maximum(likeliest, carried)
    return likeliest[back]


def _log_two_rates(day: Integers, opened: Flags, runs: Runs, span: Integers) -> Floats:
    """Return the sum for separate rates of business and closed days; −∞ if closed days have the higher rate."""
    numbers = business_day_number(day)
    open_span = numbers[runs.last] - numbers[runs.starts] + opened[runs.starts]
    closed_span, open_days = span - open_span, runs.sum(opened.astype(np.int64))
    closed_days = runs.lengths - open_days
    together = x_log(open_days, open_days / np.maximum(open_span, 1))
    together += x_log(closed_days, closed_days / np.maximum(closed_span, 1))
    return np.where(closed_days * open_span <= open_days * closed_span, together, -np.inf)


def x_log(x: Integers, y: Floats) -> Floats:
    """Return x log(y), and 0 for x = 0."""
    return np.multiply(x, np.log(np.where(x > 0, y, 1.0)), dtype=np.float64)
