"""Coverage of a version: which of its rules a backtest reached, and how often each matched and decided."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_COUNTS = ("matched", "decisive", "undecidable")

Data = Mapping[str, Any]


def describe_coverage(days: Sequence[Data], side: str) -> dict[str, Any] | None:
    """Return how often each rule of one side was reached and decided, added up over the days.

    Args:
        days: as `result.describe_days` returns them.
        side: `tallies.BEFORE` or `AFTER`.

    Returns:
        Numbers of decisions, one for each customer and day: all `decisions`; `byDefault`, those that no step decided;
        and `rules` in the order of steps. `neverReached` and `neverMatched` are codes. None if the side has recorded
        decisions, whose rules aren't counted, or no steps.
    """
    rules = [rule for each in days for rule in each["rules"][side] or ()]
    if not rules:
        return None
    steps = [step for each in days for step in each["steps"][side]]
    reached = _sums((step["step"], step["reached"]) for step in steps)
    counts = {name: _sums((rule["code"], rule[name]) for rule in rules) for name in _COUNTS}
    step_of = {rule["code"]: rule["step"] for rule in rules}
    decisions = sum(each["customers"] for each in days)
    return {
        "decisions": decisions,
        "byDefault": decisions - sum(step["decided"] + step["undecidable"] for step in steps),
        "rules": [
            {"step": step, "code": code, "reached": reached[step], **{name: counts[name][code] for name in _COUNTS}}
            for code, step in step_of.items()
        ],
        "neverReached": [code for code, step in step_of.items() if not reached[step]],
        "neverMatched": [code for code in step_of if not counts["matched"][code]],
    }


def _sums(numbers: Iterable[tuple[str, int]]) -> Counter[str]:
    """Add up the numbers of each name."""
    sums: Counter[str] = Counter()
    for name, number in numbers:
        sums[name] += number
    return sums
