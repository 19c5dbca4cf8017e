"""Content of a simulation's page: sections, charts, tables and their texts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pipelines.decisions.backtest.result import share
from pipelines.monitoring.baselines import CAUSES
from pipelines.pages import Card, Cards, Column, Figure, Figures, Grid, Page, Section, drop_none, number_columns
from pipelines.pages.charts import bar_chart
from pipelines.pages.wording import (
    UNKNOWN,
    day,
    extent,
    month,
    percent,
    quantity,
    reading,
    shorten,
    spell_out,
    whole_number,
)

LABEL = 56  # characters of a chart's label that fit beside its figure
MAX_BARS = 15  # our judgement, like MAX_CUSTOMERS: nobody takes in more at a glance, and the API lists more
MAX_CUSTOMERS = 50
FOOTER = (
    "Computed by Tidemark. Days are counted per customer: a week for each of two customers counts as 14 days. "
    f"An unknown condition never fires a rule, and leaves its state unchanged. {UNKNOWN} marks an unknown value."
)

Data = Mapping[str, Any]


@dataclass(frozen=True)
class About:
    """What was simulated; `facts` are shown below the title. `titles` has those of values by name, and `customers` the
    names of customers by id.
    """

    ruleset: str
    facts: Sequence[tuple[str, str]]
    notices: Sequence[str] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    customers: Mapping[str, str] = field(default_factory=dict)

    def title(self, name: str) -> str:
        return self.titles.get(name) or spell_out(name)

    def customer(self, customer_id: str) -> str:
        """Return a customer's name, or the id of one without."""
        return self.customers.get(customer_id) or customer_id


def page_content(result: Data, about: About, firings: Sequence[Data]) -> Page:
    """Return everything that the page shows."""
    figures = drop_none(_by_month(result), _by_rule(result), _first_day_figure(result), _unknown_figure(result, about))
    tables = (
        _rule_table(result),
        _month_table(result),
        _customer_table(result, about),
        _firing_table(result, firings, about),
    )
    return Page(
        "Simulation of a monitoring ruleset",
        about.ruleset,
        tuple(about.facts),
        tuple(about.notices),
        (
            Section("result", "What would have fired", (Cards(tuple(_cards(result))), Figures(figures))),
            Section("tables", "In figures", drop_none(*tables)),
        ),
        FOOTER,
    )


def _cards(result: Data) -> Iterator[Card]:
    customers = result["customers"]
    of_them = f"{percent(share(result['customersFired'], customers))} of {quantity(customers, 'customer')}"
    yield Card("Events", whole_number(result["events"]), (quantity(result["firings"], "firing") + " of single rules",))
    yield Card("Customers concerned", whole_number(result["customersFired"]), (of_them,))
    first = ("customers with an event on the day when the ruleset is switched on",)
    yield Card("On the first day", whole_number(result["atSwitchOn"]["customers"]), first)
    later = [each["events"] for each in result["months"][1:]]
    if later:
        mean = (Decimal(sum(later)) / len(later)).quantize(Decimal("0.1"))
        yield Card("Events a month, after the first", f"{mean:,}", (f"{whole_number(max(later))} in the busiest",))


# Charts


def _by_month(result: Data) -> Figure:
    bars = [(month(each["month"]), each["events"]) for each in result["months"]]
    says = "Rules that fire for one customer on one day make one event."
    return _bars("months", "Events by month", says, bars)


def _by_rule(result: Data) -> Figure:
    left = len(result["rules"]) - MAX_BARS
    says = "How often each rule fires." + (f" {quantity(left, 'more rule')} in the table." if left > 0 else "")
    return _bars("rules", "Firings by rule", says, _rules_with_most(result, result["rules"], "fired"))


def _first_day_figure(result: Data) -> Figure | None:
    rules = [each for each in result["atSwitchOn"]["rules"] if each["customers"]]
    says = "Customers for whom a rule fires at once, because its condition is true when the ruleset is switched on."
    return _bars("start", "On the first day", says, _rules_with_most(result, rules, "customers")) if rules else None


def _unknown_figure(result: Data, about: About) -> Figure | None:
    days: dict[str, int] = {}
    for rule in result["rules"]:
        for each in rule["causes"]:
            described = f"{about.title(each['name'])}: {CAUSES.get(each['cause'], each['cause'])}"
            days[described] = max(days.get(described, 0), each["days"])
    if not days:
        return None
    most = sorted(days.items(), key=lambda each: (-each[1], each[0]))[:MAX_BARS]
    says = (
        "Days, counted per customer, on which a rule's condition was unknown, by what was missing. If several rules "
        "miss the same value, the largest count is shown. Several values may be missing on one day."
    )
    return _bars("unknown", "Why conditions were unknown", says, most)


def _rules_with_most(result: Data, rules: Sequence[Data], name: str) -> list[tuple[str, int]]:
    """Return the message and count of the rules with the largest counts of that name."""
    messages = _messages(result)
    return [(messages[each["code"]], each[name]) for each in sorted(rules, key=lambda each: -each[name])[:MAX_BARS]]


def _bars(id_: str, title: str, says: str, sizes: Sequence[tuple[str, int]]) -> Figure:
    rows = [(shorten(label, LABEL), whole_number(size), {"solid": size}) for label, size in sizes]
    return Figure(id_, title, says, bar_chart(rows))


# Tables


def _rule_table(result: Data) -> Grid:
    counts = number_columns("Fires", "Customers", "On the first day", "Share of days true", "Share unknown")
    starts = {each["code"]: each["customers"] for each in result["atSwitchOn"]["rules"]}
    rows = [
        [
            each["message"],
            each["severity"],
            whole_number(each["fired"]),
            whole_number(each["customers"]),
            whole_number(starts.get(each["code"], 0)),
            percent(share(each["daysHeld"], each["daysObserved"])),
            percent(share(each["daysUnknown"], each["daysObserved"])),
            each["code"],
        ]
        for each in result["rules"]
    ]
    return Grid.of("Rules", (Column("Rule", "prose"), "Severity", *counts, Column("Code", "short")), rows)


def _month_table(result: Data) -> Grid | None:
    codes = {each["code"]: _short_name(each["code"]) for each in result["rules"] if each["fired"]}
    rows = [
        [
            month(each["month"]),
            whole_number(each["events"]),
            whole_number(each["customers"]),
            *(whole_number(rule["fired"]) for rule in each["rules"] if rule["code"] in codes),
        ]
        for each in result["months"]
    ]
    columns = (Column("Month", "short"), *number_columns("Events", "Customers", *codes.values()))
    return Grid.of("Month by month", columns, rows) if codes else None


def _customer_table(result: Data, about: About) -> Grid | None:
    rows = [
        [
            about.customer(str(each["customerId"])),
            whole_number(each["events"]),
            day(each["lastFired"]),
            ", ".join(f"{_short_name(rule['code'])} {whole_number(rule['fired'])} ×" for rule in each["rules"]),
        ]
        for each in result["byCustomer"][:MAX_CUSTOMERS]
    ]
    columns = ("Customer", *number_columns("Events"), Column("Last", "short"), Column("Rules", "prose"))
    return (
        Grid.of(f"Customers by number of events, {extent(len(rows), result['customersFired'])}", columns, rows)
        if rows
        else None
    )


def _firing_table(result: Data, firings: Sequence[Data], about: About) -> Grid | None:
    messages = _messages(result)
    rows = [
        [
            about.customer(str(each["customerId"])),
            day(each["date"]),
            messages.get(each["code"], each["code"]),
            "; ".join(
                f"{value.get('title') or about.title(value['name'])}: {_value(value)}" for value in each["values"]
            )
            or UNKNOWN,
        ]
        for each in firings
    ]
    columns = ("Customer", Column("Date", "short"), Column("Rule", "prose"), Column("What it read", "prose"))
    return Grid.of(f"Firings, {extent(len(rows), result['firings'])}", columns, rows) if rows else None


def _messages(result: Data) -> dict[str, str]:
    """Return the messages of the rules by code."""
    return {each["code"]: each["message"] for each in result["rules"]}


def _short_name(code: str) -> str:
    """Write a rule's code as words, where its message has no room."""
    return spell_out(code.lower())


def _value(value: Data) -> str:
    if value["value"] is None:
        return f"unknown ({CAUSES.get(value['cause'], value['cause'])})"
    return reading(value["value"], value.get("format"))
