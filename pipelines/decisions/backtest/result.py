"""The result of a backtest as data: the tallies arranged by day, with names, shares and totals.

Amounts are in AUD. A share is a decimal with four places, or null if the whole is zero. A side that consists of
recorded decisions is not evaluated again, so its rules, steps and causes are null.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import polars as pl

from pipelines.decisions.backtest.tallies import AFTER, BEFORE, UP_TO
from pipelines.decisions.policy import INDETERMINATE, OUTCOMES
from pipelines.figures.tallies import Tallies

ALL_OUTCOMES = (*OUTCOMES, INDETERMINATE)
_SIDES = (BEFORE, AFTER)
_SHARE = Decimal("0.0001")
ZERO = Decimal(0)

Data = dict[str, Any]
Rows = Sequence[Data]


def describe_days(tallies: Tallies, days: Iterable[date]) -> list[Data]:
    """Return one entry for each day, in the order of the days."""
    return [_describe_day({name: _rows_of_day(frame, day) for name, frame in tallies.items()}, day) for day in days]


def _rows_of_day(frame: pl.DataFrame, day: date) -> Rows:
    return frame.filter(pl.col("as_of") == day).to_dicts()


def _describe_day(rows: Mapping[str, Rows], day: date) -> Data:
    transitions = rows["transitions"]
    evaluated = {row["side"] for name in ("steps", "causes") for row in rows[name]}
    return {
        "asOf": day,
        "customers": _sum(transitions, "customers"),
        "outcomeChanged": _sum((row for row in transitions if row["before"] != row["after"]), "customers"),
        "limitsChanged": _sum(transitions, "limits_changed"),
        "outcomes": [_count_outcome(transitions, outcome) for outcome in ALL_OUTCOMES],
        "transitions": [_describe_transition(row, rows["limits"]) for row in transitions],
        "limits": [_describe_limits(rows, product) for product in _distinct_values(rows["bands"], "product")],
        "steps": _by_side(rows["steps"], evaluated, ("step", "reached", "decided", "undecidable")),
        "rules": _by_side(rows["rules"], evaluated, ("step", "code", "matched", "decisive", "undecidable")),
        "changedBy": [
            {"code": row["code"], "customers": row["customers"]}
            for row in sorted(rows["changes"], key=lambda row: (-row["customers"], row["code"] or ""))
        ],
        "causes": _by_side(
            _sort_causes(rows["causes"]), evaluated, ("about", "operator", "name", "cause", "customers")
        ),
    }


def _count_outcome(transitions: Rows, outcome: str) -> Data:
    """Count the customers with this outcome on each side. `judged`: those known to have defaulted or not."""
    return {
        "outcome": outcome,
        **{side: _count_customers(row for row in transitions if row[side] == outcome) for side in _SIDES},
    }


def _count_customers(rows: Iterable[Data]) -> Data:
    listed = list(rows)
    judged, defaulted = _sum(listed, "judged"), _sum(listed, "defaulted")
    return {
        "customers": _sum(listed, "customers"),
        "judged": judged,
        "defaulted": defaulted,
        "badRate": share(defaulted, judged),
    }


def _describe_transition(row: Data, limits: Rows) -> Data:
    own_limits = [each for each in limits if (each["before"], each["after"]) == (row["before"], row["after"])]
    return {
        "before": row["before"],
        "after": row["after"],
        **_count_customers([row]),
        "limitsChanged": row["limits_changed"],
        "limits": [
            {
                "product": each["product"],
                **{side: {"known": each[f"{side}_known"], "amount": each[f"{side}_amount"]} for side in _SIDES},
            }
            for each in own_limits
        ],
    }


def _describe_limits(rows: Mapping[str, Rows], product: str) -> Data:
    bands = [row for row in rows["bands"] if row["product"] == product]
    described_bands = [
        {"upTo": bound, **{side: _sum(_rows_of_band(bands, side, bound), "customers") for side in _SIDES}}
        for bound in (*UP_TO, None)
        if any(row["up_to"] == bound for row in bands)
    ]
    sides = {side: _total_limits([row for row in bands if row["side"] == side]) for side in _SIDES}
    return {"product": product, **sides, "bands": described_bands}


def _rows_of_band(bands: Rows, side: str, bound: int | None) -> Iterator[Data]:
    return (row for row in bands if row["side"] == side and row["up_to"] == bound)


def _total_limits(bands: Rows) -> Data | None:
    """Add up a product's limits on one side. Return None if the side has none. `offered` counts limits above zero."""
    if not bands:
        return None
    offered = [row for row in bands if row["up_to"]]
    count, amount = _sum(offered, "customers"), sum((row["amount"] for row in offered), ZERO)
    return {
        "customers": _sum(bands, "customers"),
        "offered": count,
        "indeterminate": _sum((row for row in bands if row["up_to"] is None), "customers"),
        "amount": amount,
        "meanOffered": (amount / count).quantize(Decimal("0.01")) if count else None,
    }


def _by_side(rows: Rows, evaluated: Collection[str], names: Sequence[str]) -> Data:
    sides = {side: [{name: row[name] for name in names} for row in rows if row["side"] == side] for side in _SIDES}
    return {side: figures if side in evaluated else None for side, figures in sides.items()}


def _sort_causes(causes: Rows) -> Rows:
    return sorted(causes, key=lambda row: (row["about"] or "", -row["customers"], row["node"], row["cause"]))


def share(part: int, whole: int) -> Decimal | None:
    return (Decimal(part) / whole).quantize(_SHARE) if whole else None


def _sum(rows: Iterable[Data], name: str) -> int:
    return sum(row[name] for row in rows)


def _distinct_values(rows: Rows, name: str) -> list[str]:
    return list(dict.fromkeys(row[name] for row in rows))
