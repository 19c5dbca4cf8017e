"""Outcomes of all metrics except arithmetic: for each customer a fraction of whole numbers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.metrics import balances, grouped, monthly
from pipelines.metrics.definition import (
    MONTHLY,
    SIDES,
    Arithmetic,
    Balances,
    Days,
    Definition,
    Groups,
    History,
    Metric,
    Months,
    Transactions,
    Where,
)
from pipelines.metrics.outcome import FRACTION, NOT_APPLICABLE, cause_where, fractions, stack_parameters
from pipelines.metrics.rows import COLUMNS, read_rows, reads_all_history
from pipelines.metrics.running import WIDE, Between, Layout, Running, number_of_rows, sum_of_measure
from pipelines.metrics.windows import edges

D = TypeVar("D", Transactions, Balances, History)


@dataclass(frozen=True)
class Read:
    """What outcomes are computed from. `customers`: their `windows.periods`.

    Totals are taken from `running`, and marked rows are read from `single`. They differ for snapshots (one customer on
    several days): totals are computed once and serve all days, but marked rows are repeated for each day.
    """

    facts: Facts
    customers: pl.DataFrame
    running: Running
    single: Running


Outcome = Callable[[Read], pl.LazyFrame]


class Sources:
    """How to compute the outcomes of all metrics that have a source: made once for a set of metrics."""

    def __init__(self, metrics: Iterable[Metric], *, shares_rows: bool) -> None:
        """Prepare the computation. `shares_rows`: of the facts (`Facts.shares_rows`)."""
        by_kind: dict[str, list[Metric]] = {kind: [] for kind in _KINDS}
        for metric in metrics:
            if not isinstance(metric.definition, Arithmetic):
                by_kind[_kind(metric.definition)].append(metric)
        self.metrics = [metric for alike in by_kind.values() for metric in alike]
        plain, means, shares, largest, months = (_definitions_of(Transactions, by_kind[kind]) for kind in _KINDS[:5])
        quotients = [*plain, *means, *shares]
        by_row = [each.definition for each in by_kind["grouped"] if isinstance(each.definition, Transactions | Groups)]
        of_balances, history = (
            _definitions_of(Balances, by_kind["balances"]),
            _definitions_of(History, by_kind["history"]),
        )
        totalled = [
            *map(_sum_in_window, quotients),
            *(_rows_in_window(each) for each in (*means, *largest)),
            *(_whole_in_window(each) for each in (*shares, *largest)),
            *(month for each in months for month in monthly.sums(each)),
            *(balances.usual_money(each) for each in of_balances if each.usual),
        ]
        marked = [grouped.filter_and_window(each) for each in (*by_row, *largest)]
        self._filters = [*(each.where for each, _, _ in totalled), *(where for where, _ in marked)]
        # Exclusions, types of accounts and kinds of income differ from day to day, so no totals of them are shared.
        self._apart = shares_rows and not reads_all_history(self._filters)
        self._layout = Layout(totalled, () if self._apart else marked)
        self._single = Layout((), marked) if self._apart else self._layout
        self._outcomes = [
            *([_quotients(quotients, self._layout)] if quotients else []),
            *([_largest_shares(largest, self._layout, self._single)] if largest else []),
            *([_monthly_outcomes(months, self._layout)] if months else []),
            *([_grouped_outcomes(by_row, self._single)] if by_row else []),
            *([_balance_outcomes(of_balances, self._layout)] if of_balances else []),
            *([_history_outcomes(history)] if history else []),
        ]

    def fractions(self, facts: Facts, customers: pl.DataFrame) -> pl.LazyFrame:
        """Return FRACTION of all customers for the first of `metrics`, then for the second …

        Args:
            customers: their `windows.periods`.
        """
        read = Read(facts, customers, *self._compute_running(facts, customers))
        return pl.concat([FRACTION.to_frame(eager=False), *(outcome(read) for outcome in self._outcomes)])

    def _compute_running(self, facts: Facts, customers: pl.DataFrame) -> tuple[Running, Running]:
        own = customers.with_columns(place=pl.int_range(pl.len(), dtype=pl.Int64)) if facts.shares_rows else customers
        if not self._apart:
            both = Running(self._layout, read_rows(facts, self._filters), own)
            return both, both
        totals = Running(self._layout, facts.shared_rows.select(COLUMNS), customers)
        return totals, Running(self._single, facts.rows.select(COLUMNS), own) if self._single.filters else totals


def reach(metric: Metric) -> int:
    """Return for how many days before a customer's last row the metric reads single rows.

    0: none, because running totals suffice; ALL_DAYS: all.
    """
    definition = metric.definition
    if not isinstance(definition, Transactions | Groups):
        return 0
    if reads_all_history(filters_of(definition)):
        return ALL_DAYS
    if _kind(definition) not in _BY_ROW:
        return 0
    match definition.window:
        case Days(days=days, offset=offset):
            return offset + days
        case Months(months=months, offset=offset):
            return _LONGEST_MONTH * (offset + months + 1)  # one more, for the incomplete month of the last row
        case None:
            return ALL_DAYS


def filters_of(definition: Transactions | Groups) -> list[Where]:
    whole = definition.of if isinstance(definition, Transactions) else None
    return [definition.where] if whole is None else [definition.where, whole]


def reads_balances(metric: Metric) -> bool:
    return isinstance(metric.definition, Balances)


ALL_DAYS = 10**6  # more than lie between any two dates
_LONGEST_MONTH = 31
_BY_ROW = frozenset({"grouped", "largest_share"})
_KINDS = ("plain", "mean", "share", "largest_share", "monthly", "grouped", "balances", "history")


def _kind(definition: Definition) -> str:
    match definition:
        case Transactions(aggregate=aggregate) if aggregate in MONTHLY:
            return "monthly"
        case Groups() | Transactions(aggregate="distinct" | "days_since" | "median" | "min" | "max"):
            return "grouped"
        case Transactions(aggregate="sum" | "count"):
            return "plain"
        case Transactions(aggregate=aggregate):
            return aggregate
        case each:
            return each.source


def _definitions_of(kind: type[D], metrics: Sequence[Metric]) -> list[D]:
    return [metric.definition for metric in metrics if isinstance(metric.definition, kind)]


def _sum_in_window(definition: Transactions) -> Between:
    if definition.aggregate == "count":
        return _rows_in_window(definition)
    return sum_of_measure(definition.where, definition.measure), *edges(definition.window)


def _rows_in_window(definition: Transactions) -> Between:
    return number_of_rows(definition.where, definition.measure), *edges(definition.window)


def _whole_in_window(definition: Transactions) -> Between:
    return sum_of_measure(definition.of or definition.where, definition.measure), *edges(definition.window)


def _sign(definition: Transactions) -> int:
    return -1 if SIDES.get(definition.measure) == "debit" and definition.aggregate != "count" else 1


def _unit(definition: Transactions) -> int:
    return 1 if definition.aggregate == "count" or definition.measure == "rows" else 100


def _quotients(definitions: Sequence[Transactions], layout: Layout) -> Outcome:
    """Divide one total by another: means by the number of rows, shares by a whole; sums and counts by nothing."""
    tops = layout.spans([_sum_in_window(each) for each in definitions])
    divided = [each for each in definitions if each.aggregate in {"mean", "share"}]
    bottoms = layout.spans(
        [_rows_in_window(each) if each.aggregate == "mean" else _whole_in_window(each) for each in divided]
    )
    parameters = pl.DataFrame(
        {
            "sign": [_sign(each) for each in definitions],
            "factor": [_sign(each) if each.aggregate == "share" else _unit(each) for each in definitions],
            "is_mean": [each.aggregate == "mean" for each in definitions],
        }
    )
    ones = len(definitions) - len(divided)  # the undivided come first
    top, bottom = pl.col("top") * pl.col("sign"), pl.col("bottom") * pl.col("factor")
    none = cause_where(NOT_APPLICABLE, pl.col("is_mean") & (pl.col("bottom") == 0))

    def compute(read: Read) -> pl.LazyFrame:
        undivided = pl.Series([1], dtype=WIDE).new_from_index(0, ones * read.customers.height)
        totals = {
            "top": read.running.sums_between(tops),
            "bottom": undivided.append(read.running.sums_between(bottoms)),
        }
        return fractions(stack_parameters(parameters, read.customers.height).with_columns(**totals), top, bottom, none)

    return compute


def _largest_shares(definitions: Sequence[Transactions], layout: Layout, single: Layout) -> Outcome:
    largest, sign = grouped.largest_sums(definitions, single), pl.DataFrame({"sign": list(map(_sign, definitions))})
    wholes = layout.spans([_whole_in_window(each) for each in definitions])
    counts = layout.spans([_rows_in_window(each) for each in definitions])
    whole = pl.col("whole") * pl.col("sign")
    top = pl.when(pl.col("count") > 0).then("largest").otherwise(0)
    none = cause_where(NOT_APPLICABLE, top.is_null() & (whole > 0))

    def compute(read: Read) -> pl.LazyFrame:
        totals = {"whole": read.running.sums_between(wholes), "count": read.running.sums_between(counts)}
        rows = stack_parameters(sign, read.customers.height).with_columns(largest=largest(read.single), **totals)
        return fractions(rows, top, whole, none)

    return compute


def _monthly_outcomes(definitions: Sequence[Transactions], layout: Layout) -> Outcome:
    sums = layout.spans([month for each in definitions for month in monthly.sums(each)])
    outcomes = monthly.outcomes(definitions)
    return lambda read: outcomes(read.running.sums_between(sums), read.customers["complete_months"])


def _grouped_outcomes(definitions: Sequence[Transactions | Groups], single: Layout) -> Outcome:
    outcomes = grouped.outcomes(definitions, single)
    return lambda read: outcomes(read.single)


def _balance_outcomes(definitions: Sequence[Balances], layout: Layout) -> Outcome:
    outcomes = balances.outcomes(definitions, layout)
    return lambda read: outcomes(read.facts, read.customers, read.running)


def _history_outcomes(definitions: Sequence[History]) -> Outcome:
    figures, days = [each.figure for each in definitions], pl.col("days")
    return lambda read: fractions(
        pl.LazyFrame({"days": pl.concat(read.customers[figure] for figure in figures)}), days, 1
    )
