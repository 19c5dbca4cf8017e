"""Outcomes of all metrics except arithmetic: for each customer a fraction of whole numbers."""

from collections.abc import Iterable, Sequence
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
    Window,
)
from pipelines.metrics.outcome import FRACTION, NOT_APPLICABLE, caused, fractions, stacked
from pipelines.metrics.rows import COLUMNS, read_rows, reads_exclusions
from pipelines.metrics.running import Between, Running, measured, number_of_rows
from pipelines.metrics.windows import edges

D = TypeVar("D", Transactions, Balances, History)


def outcomes(facts: Facts, customers: pl.DataFrame, metrics: Iterable[Metric]) -> tuple[list[Metric], pl.LazyFrame]:
    """Return the metrics that have a source, and FRACTION of all customers for the first of them, then the second …

    Args:
        customers: their `windows.periods`.
    """
    by_kind: dict[str, list[Metric]] = {kind: [] for kind in _KINDS}
    for metric in metrics:
        if not isinstance(metric.definition, Arithmetic):
            by_kind[_kind(metric.definition)].append(metric)
    plain, means, shares, largest, months = (_only(Transactions, by_kind[kind]) for kind in _KINDS[:5])
    by_row = [each.definition for each in by_kind["grouped"] if isinstance(each.definition, Transactions | Groups)]
    of_balances, history = _only(Balances, by_kind["balances"]), _only(History, by_kind["history"])
    by_month = [month for each in months for month in monthly.sums(each)]
    totalled = [
        *(_measured(each) for each in (*plain, *means, *shares)),
        *(_rows_counted(each) for each in (*means, *largest)),
        *(_whole(each) for each in (*shares, *largest)),
        *by_month,
    ]
    marked = [grouped.filter_and_window(each) for each in (*by_row, *largest)]
    running, single = _running(facts, customers, totalled, marked)
    figures = (
        _plain(plain, running) if plain else None,
        _means(means, running) if means else None,
        _shares(shares, running) if shares else None,
        _largest_shares(largest, running, single) if largest else None,
        monthly.outcomes(months, running.between(by_month), customers["complete_months"]) if months else None,
        grouped.outcomes(by_row, single) if by_row else None,
        balances.outcomes(of_balances, facts, customers.height) if of_balances else None,
        _of_history(history, customers) if history else None,
    )
    parts = [part for part in figures if part is not None]
    stacked_metrics = [metric for alike in by_kind.values() for metric in alike]
    return stacked_metrics, pl.concat([FRACTION.to_frame(eager=False), *parts])


def _running(
    facts: Facts, customers: pl.DataFrame, totalled: Sequence[Between], marked: Sequence[tuple[Where, Window]]
) -> tuple[Running, Running]:
    """Return the `Running` to take totals from, and the one to read marked rows from.

    They differ where several customers are one customer on different days: totals are computed once and serve all
    days, but marked rows are repeated for each day. Exclusions differ from day to day, so no totals of them are shared.
    """
    filters = [*(each.where for each, _, _ in totalled), *(where for where, _ in marked)]
    own = customers.with_columns(place=pl.int_range(pl.len(), dtype=pl.Int64)) if facts.shares_rows else customers
    if not facts.shares_rows or reads_exclusions(filters):
        both = Running(read_rows(facts, filters), own, totalled, marked)
        return both, both
    totals = Running(facts.shared_rows.select(COLUMNS), customers, totalled, ())
    if not marked:
        return totals, totals
    return totals, Running(facts.rows.select(COLUMNS), own, (), marked)


def reach(metric: Metric) -> int:
    """Return how many days before a customer's last row, that day excluded, the metric needs single rows of.

    0: none, because running totals suffice; ALL_DAYS: all.
    """
    definition = metric.definition
    if not isinstance(definition, Transactions | Groups):
        return 0
    if reads_exclusions(filters_of(definition)):
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
    of = definition.of if isinstance(definition, Transactions) else None
    return [definition.where] if of is None else [definition.where, of]


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


def _only(kind: type[D], metrics: Sequence[Metric]) -> list[D]:
    return [metric.definition for metric in metrics if isinstance(metric.definition, kind)]


def _measured(definition: Transactions) -> Between:
    if definition.aggregate == "count":
        return _rows_counted(definition)
    return measured(definition.where, definition.measure), *edges(definition.window)


def _rows_counted(definition: Transactions) -> Between:
    return number_of_rows(definition.where, definition.measure), *edges(definition.window)


def _whole(definition: Transactions) -> Between:
    return measured(definition.of or definition.where, definition.measure), *edges(definition.window)


def _sign(definition: Transactions) -> int:
    return -1 if SIDES.get(definition.measure) == "debit" and definition.aggregate != "count" else 1


def _unit(definition: Transactions) -> int:
    return 1 if definition.aggregate == "count" or definition.measure == "rows" else 100


def _plain(definitions: Sequence[Transactions], running: Running) -> pl.LazyFrame:
    total = running.between([_measured(each) for each in definitions])
    rows = _signed(definitions, running).with_columns(total=total)
    return fractions(rows, pl.col("total") * pl.col("sign"), pl.col("unit"))


def _means(definitions: Sequence[Transactions], running: Running) -> pl.LazyFrame:
    total = running.between([_measured(each) for each in definitions])
    count = running.between([_rows_counted(each) for each in definitions])
    rows = _signed(definitions, running).with_columns(total=total, count=count)
    none = caused(NOT_APPLICABLE, pl.col("count") == 0)
    return fractions(rows, pl.col("total") * pl.col("sign"), pl.col("unit") * pl.col("count"), none)


def _shares(definitions: Sequence[Transactions], running: Running) -> pl.LazyFrame:
    part = running.between([_measured(each) for each in definitions])
    whole = running.between([_whole(each) for each in definitions])
    rows = _signed(definitions, running).with_columns(part=part, whole=whole)
    return fractions(rows, pl.col("part") * pl.col("sign"), pl.col("whole") * pl.col("sign"))


def _largest_shares(definitions: Sequence[Transactions], running: Running, single: Running) -> pl.LazyFrame:
    largest = grouped.largest_sums(definitions, single)
    whole = running.between([_whole(each) for each in definitions])
    count = running.between([_rows_counted(each) for each in definitions])
    rows = _signed(definitions, running).with_columns(largest=largest, whole=whole, count=count)
    signed = pl.col("whole") * pl.col("sign")
    top = pl.when(pl.col("count") > 0).then("largest").otherwise(0)
    return fractions(rows, top, signed, caused(NOT_APPLICABLE, top.is_null() & (signed > 0)))


def _signed(definitions: Sequence[Transactions], running: Running) -> pl.LazyFrame:
    """Return the factor for the sign (money out is a positive amount) and the divisor from cents to AUD."""
    signs = {"sign": [_sign(each) for each in definitions], "unit": [_unit(each) for each in definitions]}
    return stacked(signs, running.customers)


def _of_history(definitions: Sequence[History], customers: pl.DataFrame) -> pl.LazyFrame:
    return fractions(
        pl.LazyFrame({"days": pl.concat(customers[each.figure] for each in definitions)}), pl.col("days"), 1
    )
