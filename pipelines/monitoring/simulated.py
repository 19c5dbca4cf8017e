"""The result of a simulation as data: its tallies arranged by month, rule and customer.

`fired` counts firings of rules. All rules that fire for one customer on one day make one event. Days are customer
days: a rule that is true for two customers for a week is true on 14 days.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any
from uuid import UUID

import polars as pl

from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tallies import Tallies
from pipelines.monitoring.ruleset import MonitoringRule, Ruleset
from pipelines.monitoring.simulation import ALL, MAX_FIRINGS, MOST_EVENTS

Data = dict[str, Any]
Rows = Sequence[Data]
_NEVER_FIRED: Data = {"fired": 0, "customers": 0}


def describe_result(ruleset: Ruleset, first: date, last: date, tallies: Tallies, ids: Mapping[int, UUID]) -> Data:
    """Return the result of a simulation from `first` to `last` day.

    Args:
        tallies: of all customers (`simulation.merge`).
        ids: public ids of the customers in MOST_EVENTS.
    """
    rows = {name: frame.to_dicts() for name, frame in tallies.items()}
    months = [_describe_month(ruleset, rows, month) for month in _months(first, last)]
    of_all = _find_row(rows["fired"], None, ALL)
    firings = sum(row["fired"] for row in rows["fired"] if row["month"] is None and row["rule"] != ALL)
    return {
        "from": first,
        "to": last,
        "customers": _sum(rows["evaluated"], "customers"),
        "customersFired": of_all["customers"],
        "events": of_all["fired"],
        "firings": firings,
        "firingsListed": min(firings, MAX_FIRINGS),
        "atSwitchOn": _starts_at_switch_on(ruleset, rows["starts"]),
        "rules": [_describe_rule(rule, rows) for rule in ruleset.rules],
        "months": months,
        "byCustomer": list(_by_customer(tallies[MOST_EVENTS], ids)),
    }


def _describe_month(ruleset: Ruleset, rows: Mapping[str, Rows], month: date) -> Data:
    of_all = _find_row(rows["fired"], month, ALL)
    return {
        "month": month,
        "events": of_all["fired"],
        "customers": of_all["customers"],
        "rules": [{"code": rule.code, **_counts(rows, [month], month, rule.code)} for rule in ruleset.rules],
    }


def _describe_rule(rule: MonitoringRule, rows: Mapping[str, Rows]) -> Data:
    months = sorted({row["month"] for row in rows["days"]})
    return {
        "code": rule.code,
        "message": rule.message,
        "severity": rule.severity,
        **_counts(rows, months, None, rule.code),
    }


def _counts(rows: Mapping[str, Rows], months: Sequence[date], fired_month: date | None, code: str) -> Data:
    """Count a rule's firings, days and causes.

    Args:
        months: the months of days and causes.
        fired_month: the month of firings; None: all months.
    """
    fired = _find_row(rows["fired"], fired_month, code)
    days = [row for row in rows["days"] if row["rule"] == code and row["month"] in months]
    causes: dict[tuple[str, str, str], int] = {}
    for row in rows["causes"]:
        if row["rule"] == code and row["month"] in months:
            key = row["kind"], row["name"], row["cause"]
            causes[key] = causes.get(key, 0) + row["days"]
    return {
        "fired": fired["fired"],
        "customers": fired["customers"],
        "daysObserved": _sum(days, "observed"),
        "daysHeld": _sum(days, "held"),
        "daysUnknown": _sum(days, "unknown"),
        "causes": [
            {"kind": kind, "name": name, "cause": cause, "days": count}
            for (kind, name, cause), count in sorted(causes.items(), key=lambda each: (-each[1], each[0]))
        ],
    }


def _starts_at_switch_on(ruleset: Ruleset, starts: Rows) -> Data:
    by_rule = {row["rule"]: row["customers"] for row in starts}
    rules = [{"code": rule.code, "customers": by_rule.get(rule.code, 0)} for rule in ruleset.rules]
    return {"customers": by_rule.get(ALL, 0), "rules": rules}


def _by_customer(customers: pl.DataFrame, ids: Mapping[int, UUID]) -> Iterator[Data]:
    for (number,), tallied in customers.partition_by(BY_CUSTOMER, as_dict=True, maintain_order=True).items():
        by_rule = {row["rule"]: row for row in tallied.to_dicts()}
        of_all = by_rule.pop(ALL)
        yield {
            "customerId": ids[int(number)],
            "events": of_all["fired"],
            "lastFired": of_all["last"],
            "rules": [{"code": code, "fired": row["fired"]} for code, row in by_rule.items()],
        }


def _find_row(fired: Rows, month: date | None, rule: str) -> Data:
    return next((row for row in fired if row["month"] == month and row["rule"] == rule), _NEVER_FIRED)


def _months(first: date, last: date) -> Iterator[date]:
    for count in range(first.year * 12 + first.month - 1, last.year * 12 + last.month):
        yield date(count // 12, count % 12 + 1, 1)


def _sum(rows: Iterable[Data], name: str) -> int:
    return sum(row[name] for row in rows)
