"""What the page shows of a simulation: cards, charts and tables, in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from pipelines.decisions.backtest.page.reading import Card, Figure
from pipelines.decisions.backtest.result import share
from pipelines.decisions.readings import CAUSES
from pipelines.reports.page.charts import RowChart, bar_chart
from pipelines.reports.page.grids import Column, Grid
from pipelines.reports.page.wording import UNKNOWN, counted, day, month, percent, shortened

LABEL = 40  # characters of a chart's line that fit beside its figure
MOST_BARS = 15
MOST_CUSTOMERS = 50

Data = Mapping[str, Any]


@dataclass(frozen=True)
class About:
    """What was simulated; `facts` are shown below the title."""

    ruleset: str
    facts: Sequence[tuple[str, str]]
    notices: Sequence[str] = ()


@dataclass(frozen=True)
class Shown:
    about: About
    cards: tuple[Card, ...]
    figures: tuple[Figure, ...]
    rules: Grid
    tables: tuple[Grid, ...]


def read(result: Data, about: About, firings: Sequence[Data]) -> Shown:
    figures = (_by_month(result), _by_rule(result), _at_switch_on(result), _unknown(result))
    tables = (_month_table(result), _customer_table(result), _firing_table(result, firings))
    return Shown(
        about,
        tuple(_cards(result)),
        tuple(figure for figure in figures if figure is not None),
        _rule_table(result),
        tuple(table for table in tables if table is not None),
    )


def _cards(result: Data) -> Iterator[Card]:
    customers = result["customers"]
    of_them = f"{percent(share(result['customersFired'], customers))} of {counted(customers, 'customer')}"
    yield Card("Events", _whole(result["events"]), (counted(result["firings"], "firing") + " of single rules",))
    yield Card("Customers concerned", _whole(result["customersFired"]), (of_them,))
    yield Card("On the first day", _whole(result["atSwitchOn"]["customers"]), ("customers, when it is switched on",))
    later = [each["events"] for each in result["months"][1:]]
    if later:
        mean = (Decimal(sum(later)) / len(later)).quantize(Decimal("0.1"))
        yield Card("A month, after the first", f"{mean:,}", (f"{_whole(max(later))} in the busiest",))


# Charts


def _by_month(result: Data) -> Figure:
    bars = [(month(_day(each["month"])), each["events"]) for each in result["months"]]
    says = "Rules that fire for one customer on one day make one event."
    return Figure("months", "Events by month", says, _bars(bars))


def _by_rule(result: Data) -> Figure:
    rules = sorted(result["rules"], key=lambda each: -each["fired"])
    bars = [(shortened(each["code"], LABEL), each["fired"]) for each in rules[:MOST_BARS]]
    left = len(rules) - len(bars)
    says = "How often each rule fires." + (f" {counted(left, 'more rule')} in the table." if left else "")
    return Figure("rules", "Firings by rule", says, _bars(bars))


def _at_switch_on(result: Data) -> Figure | None:
    rules = [each for each in result["atSwitchOn"]["rules"] if each["customers"]]
    if not rules:
        return None
    rules.sort(key=lambda each: -each["customers"])
    bars = [(shortened(each["code"], LABEL), each["customers"]) for each in rules[:MOST_BARS]]
    says = "What holds when the ruleset is switched on fires at once: for so many customers."
    return Figure("start", "On the first day", says, _bars(bars))


def _unknown(result: Data) -> Figure | None:
    days: dict[str, int] = {}
    for rule in result["rules"]:
        for each in rule["causes"]:
            described = f"{each['name']}: {CAUSES.get(each['cause'], each['cause'])}"
            days[described] = max(days.get(described, 0), each["days"])
    if not days:
        return None
    most = sorted(days.items(), key=lambda each: (-each[1], each[0]))[:MOST_BARS]
    says = (
        "Customers' days on which a rule could not be told, by what is missing: of the rule with the most. "
        "There may be several on a day."
    )
    return Figure(
        "unknown", "Why it is not known", says, _bars([(shortened(described, LABEL + 6), n) for described, n in most])
    )


def _bars(sizes: Sequence[tuple[str, int]]) -> RowChart:
    return bar_chart([(label, _whole(size), Decimal(size), None) for label, size in sizes])


# Tables


def _rule_table(result: Data) -> Grid:
    heads = ("Fires", "Customers", "On the first day", "Days true", "Days unknown")
    columns = (Column("Rule"), Column("Severity"), *(Column(head, "number") for head in heads), Column("Says", "prose"))
    starts = {each["code"]: each["customers"] for each in result["atSwitchOn"]["rules"]}
    rows = [
        [
            each["code"],
            each["severity"],
            _whole(each["fired"]),
            _whole(each["customers"]),
            _whole(starts.get(each["code"], 0)),
            percent(share(each["daysHeld"], each["daysObserved"])),
            percent(share(each["daysUnknown"], each["daysObserved"])),
            each["message"],
        ]
        for each in result["rules"]
    ]
    return Grid.of("Rules", columns, rows)


def _month_table(result: Data) -> Grid | None:
    codes = [each["code"] for each in result["rules"] if each["fired"]]
    if not codes:
        return None
    columns = (
        Column("Month", "short"),
        Column("Events", "number"),
        Column("Customers", "number"),
        *(Column(code, "number") for code in codes),
    )
    rows = [
        [
            month(_day(each["month"])),
            _whole(each["events"]),
            _whole(each["customers"]),
            *(_whole(fired) for fired in _fired(each["rules"], codes)),
        ]
        for each in result["months"]
    ]
    return Grid.of("Month by month", columns, rows)


def _fired(rules: Sequence[Data], codes: Sequence[str]) -> list[int]:
    of = {each["code"]: each["fired"] for each in rules}
    return [of.get(code, 0) for code in codes]


def _customer_table(result: Data) -> Grid | None:
    customers = result["byCustomer"][:MOST_CUSTOMERS]
    if not customers:
        return None
    columns = (Column("Customer"), Column("Events", "number"), Column("Last", "short"), Column("Rules", "prose"))
    rows = [
        [
            str(each["customerId"]),
            _whole(each["events"]),
            day(_day(each["lastFired"])),
            ", ".join(f"{rule['code']} {_times(rule['fired'])}" for rule in each["rules"]),
        ]
        for each in customers
    ]
    in_all, count = result["customersFired"], len(rows)
    which = "all of them" if count == in_all else f"the {_whole(count)} with the most events of {_whole(in_all)}"
    return Grid.of(f"Customers, {which}", columns, rows)


def _firing_table(result: Data, firings: Sequence[Data]) -> Grid | None:
    if not firings:
        return None
    columns = (Column("Customer"), Column("Date", "short"), Column("Rule"), Column("What it read", "prose"))
    rows = [
        [
            str(each["customerId"]),
            day(_day(each["date"])),
            each["code"],
            "; ".join(f"{value['name']} {_value(value)}" for value in each["values"]) or UNKNOWN,
        ]
        for each in firings
    ]
    count, in_all = len(rows), result["firings"]
    which = "all of them" if count == in_all else f"the first {_whole(count)} of {_whole(in_all)}"
    return Grid.of(f"Firings, {which}", columns, rows)


def _value(value: Data) -> str:
    if value["value"] is None:
        return f"unknown ({CAUSES.get(value['cause'], value['cause'])})"
    described = value["value"]
    if isinstance(described, bool):
        return "true" if described else "false"
    return str(described)


def _times(count: int) -> str:
    return f"{count:,} ×"


def _day(value: object) -> date:
    return date.fromisoformat(str(value))


def _whole(count: int) -> str:
    return f"{count:,}"
