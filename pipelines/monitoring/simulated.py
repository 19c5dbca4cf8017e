"""What a simulation says, as data: its tallies arranged by month, rule and customer.

`fired` counts firings, which are what a rule moves; rules that fire for one customer on one day make one event
together. Days are customers' days: a rule that holds for two customers for a week holds on 14.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any
from uuid import UUID

import polars as pl

from pipelines.figures.periods import BY_CUSTOMER
from pipelines.monitoring.ruleset import Ruleset
from pipelines.monitoring.simulation import ALL, Tallies

MOST_CUSTOMERS = 1_000  # that are told one by one, those with the most events first

Data = dict[str, Any]
Rows = Sequence[Data]
_NOTHING = {"observed": 0, "held": 0, "unknown": 0, "fired": 0, "customers": 0}


def described(
    ruleset: Ruleset,
    first: date,
    last: date,
    evaluated: int,
    tallies: Tallies,
    customers: pl.DataFrame,
    ids: Mapping[int, UUID],
    listed: int,
) -> Data:
    """The result.

    Args:
        looked_at: customers on whom the ruleset was tried.
        customers: `simulation.CUSTOMERS` of those whom `most_events` names.
        ids: their public ids.
        listed: how many firings are kept one by one.
    """
    rows = {name: frame.to_dicts() for name, frame in tallies.items()}
    months = [_month(ruleset, rows, month) for month in _months(first, last)]
    [of_all] = _of(rows["fired"], None, ALL) or [_NOTHING]
    return {
        "from": first,
        "to": last,
        "customers": evaluated,
        "customersFired": of_all["customers"],
        "events": of_all["fired"],
        "firings": sum(row["fired"] for row in rows["fired"] if row["month"] is None and row["rule"] != ALL),
        "firingsListed": listed,
        "atSwitchOn": _at_switch_on(ruleset, rows["starts"]),
        "rules": [_rule(rule, rows) for rule in ruleset.rules],
        "months": months,
        "byCustomer": list(_by_customer(customers, ids)),
    }


def most_events(customers: pl.DataFrame) -> list[int]:
    """Numbers of the customers that are told one by one, in order."""
    in_all = customers.filter(pl.col("rule") == ALL).sort("fired", BY_CUSTOMER, descending=[True, False])
    return in_all[BY_CUSTOMER].head(MOST_CUSTOMERS).to_list()


def _month(ruleset: Ruleset, rows: Mapping[str, Rows], month: date) -> Data:
    [of_all] = _of(rows["fired"], month, ALL) or [_NOTHING]
    return {
        "month": month,
        "events": of_all["fired"],
        "customers": of_all["customers"],
        "rules": [{"code": rule.code, **_counts(rows, [month], month, rule.code)} for rule in ruleset.rules],
    }


def _rule(rule: Any, rows: Mapping[str, Rows]) -> Data:
    months = sorted({row["month"] for row in rows["days"]})
    return {
        "code": rule.code,
        "message": rule.message,
        "severity": rule.severity,
        **_counts(rows, months, None, rule.code),
    }


def _counts(rows: Mapping[str, Rows], months: Sequence[date], of_fired: date | None, code: str) -> Data:
    """Of a rule in some months; `of_fired`: the month in which it fires, None for all of them."""
    [fired] = _of(rows["fired"], of_fired, code) or [_NOTHING]
    days = [row for row in rows["days"] if row["rule"] == code and row["month"] in months]
    causes: dict[tuple[str, str, str], int] = {}
    for row in rows["causes"]:
        if row["rule"] == code and row["month"] in months:
            what = row["kind"], row["name"], row["cause"]
            causes[what] = causes.get(what, 0) + row["days"]
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


def _at_switch_on(ruleset: Ruleset, starts: Rows) -> Data:
    by_rule = {row["rule"]: row["customers"] for row in starts}
    rules = [{"code": rule.code, "customers": by_rule.get(rule.code, 0)} for rule in ruleset.rules]
    return {"customers": by_rule.get(ALL, 0), "rules": rules}


def _by_customer(customers: pl.DataFrame, ids: Mapping[int, UUID]) -> Iterator[Data]:
    by_number: dict[int, Rows] = {
        int(number): mine.to_dicts()
        for (number,), mine in customers.partition_by(BY_CUSTOMER, as_dict=True, maintain_order=True).items()
    }
    for number in most_events(customers):
        mine = {row["rule"]: row for row in by_number[number]}
        yield {
            "customerId": ids[number],
            "events": mine[ALL]["fired"],
            "lastFired": mine[ALL]["last"],
            "rules": [{"code": code, "fired": row["fired"]} for code, row in mine.items() if code != ALL],
        }


def _of(fired: Rows, month: date | None, rule: str) -> list[Data]:
    return [row for row in fired if row["month"] == month and row["rule"] == rule]


def _months(first: date, last: date) -> Iterator[date]:
    for count in range(first.year * 12 + first.month - 1, last.year * 12 + last.month):
        yield date(count // 12, count % 12 + 1, 1)


def _sum(rows: Iterable[Data], name: str) -> int:
    return sum(row[name] for row in rows)
