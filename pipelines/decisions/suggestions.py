"""Suggest changes that a customer can aim at: those that `sensitivity` finds, rounded to figures people would write.

If the nearest change of a score of 684 is at 449.99999999, the suggestion is 449. Nobody can aim at an undecided
outcome, or at a negative value of a figure that can't be negative, so such changes are left out. Figures of a year or
more, and figures that only time changes, have no suggestions: nobody can act on them. Every suggestion is confirmed by
evaluating the policy.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import polars as pl

from pipelines.decisions.numbers import as_number
from pipelines.decisions.plan import Plan, every_metric
from pipelines.decisions.policy import INDETERMINATE
from pipelines.decisions.sensitivity import Change, Sensitivity, find_outcomes_at, step_of
from pipelines.metrics import Metrics
from pipelines.metrics.definition import Arithmetic, Balances, Days, History, Months, Transactions

_DIGITS = 3  # significant digits of a figure below 100; larger figures are whole (our judgement)
_MONTHS_OF_YEAR = 12
_DAYS_OF_YEAR = 365
_OF_AMOUNTS = frozenset(("sum", "mean", "min", "max", "last", "median", "slope", "monthly_mean", "monthly_median"))


def suggest_changes(plan: Plan, readings: pl.DataFrame, found: Sequence[Sensitivity]) -> list[list[Change]]:
    """Return the suggested changes of each number, the one nearest to its value first.

    Args:
        readings: one customer's row of `readings.read_leaves`.
        found: from `find_sensitivities`.
    """
    useful = [list(_find_useful_changes(plan, each)) for each in found]
    points = [(each.node, change.value) for each, changes in zip(found, useful, strict=True) for change in changes]
    outcomes = iter(find_outcomes_at(plan, readings, points))
    confirmed = ([change for change in changes if next(outcomes) == change.outcome] for changes in useful)
    return [
        sorted(changes, key=lambda change: abs(change.value - (each.value or 0)))
        for each, changes in zip(found, confirmed, strict=True)
    ]


def _find_useful_changes(plan: Plan, found: Sensitivity) -> Iterator[Change]:
    """Yield the changes that somebody can aim at, rounded."""
    metrics = every_metric(plan.policy)
    is_metric = found.node.operator == "metric"
    if is_metric and _is_beyond_influence(metrics, found.node.label):
        return
    negative = _can_be_negative(metrics, found.node.label) if is_metric else (found.value or 0) < 0
    for change in found.all_changes:
        if change.outcome != INDETERMINATE and (change.value >= 0 or negative):
            yield replace(change, value=_round_for_people(plan, found, change.value))


def _round_for_people(plan: Plan, found: Sensitivity, exact: Decimal) -> Decimal:
    """Round away from the present value, or from zero if there is none; a figure of 100 or more is whole."""
    place = min(Decimal(1), Decimal(1).scaleb(exact.adjusted() - _DIGITS + 1)) if exact else Decimal(1)
    if found.node.operator == "metric":
        place = max(place, as_number(step_of(plan.policy, found.node)))
    elif abs(exact) >= 1 and (found.value is None or found.value == found.value.to_integral_value()):
        place = Decimal(1)
    rounding = ROUND_CEILING if exact > (found.value or 0) else ROUND_FLOOR
    return (exact / place).to_integral_value(rounding) * place


def _is_beyond_influence(metrics: Metrics, slug: str) -> bool:
    """Return whether a metric measures a year or more, or a time that nobody can shorten or lengthen."""
    match metrics[slug].definition:
        case History(figure=figure):
            return figure != "days_behind"  # it starts again at zero with the next submission
        case Arithmetic(operands=operands):
            return any(_is_beyond_influence(metrics, each) for each in operands if each in metrics)
        case Transactions(aggregate="days_since"):
            return False  # it starts again at zero with the next such row
        case definition:
            window = definition.window
            if isinstance(window, Months):
                return window.months >= _MONTHS_OF_YEAR
            return not isinstance(window, Days) or window.days >= _DAYS_OF_YEAR


def _can_be_negative(metrics: Metrics, slug: str) -> bool:
    match metrics[slug].definition:
        case Transactions(measure="amount", aggregate=aggregate) | Balances(aggregate=aggregate):
            return aggregate in _OF_AMOUNTS
        case Transactions(aggregate="monthly_slope"):
            return True
        case Arithmetic(operation=operation, operands=operands):
            negative = (_can_be_negative(metrics, each) for each in operands if each in metrics)
            return operation == "subtract" or any(negative)
        case _:
            return False
