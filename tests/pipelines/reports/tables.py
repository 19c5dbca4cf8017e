"""Parsed tables of the aggregate report, and a check that every number in them is explained by rows."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from pipelines.figures.context import NO_CONTEXT, Context
from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Formula, Sum, Trace, value_of
from pipelines.figures.tables import Table
from tests.pipelines.reports.examples import Row, transactions

Value = dict[str, Any]


def facts_of(rows: Iterable[Row], as_of: date, context: Context = NO_CONTEXT) -> Facts:
    """Return facts of rows; rows without an id get one from their index."""
    named = [{"transaction_id": place.to_bytes(16, "big"), **each} for place, each in enumerate(rows)]
    return Facts(transactions(named).collect(), as_of, context)


def values(table: Table, facts: Facts) -> list[Value]:
    """Return all rows of all customers as printed."""
    lines = table.lines(facts).collect()["line"]
    return [json.loads(line, parse_float=Decimal) for line in lines]


def numbers(table: Table, value: Value) -> Iterator[tuple[str, Any]]:
    """Yield the figures of a row that are not null."""
    shown = ((column.name, value[column.name]) for column in table.columns if column.is_number)
    return ((name, figure) for name, figure in shown if figure is not None)


def assert_explained(table: Table, facts: Facts, amounts: Mapping[bytes, Decimal]) -> None:
    """Check that every number follows from its inputs down to the customer's rows, none contributing more than it has.

    Args:
        amounts: of the rows by transaction id, as absolute values.
    """
    for value in values(table, facts):
        for name, figure in numbers(table, value):
            traced = table.explain(facts, value, [name])
            assert value_of(traced) == figure, (name, value)
            assert {number for each in sums(traced) for number in each.contributions["transaction_id"]} <= set(amounts)
            for each in sums(traced):
                for number, part in each.contributions.iter_rows():
                    assert name.startswith("days") or abs(part) <= amounts[number]


def sums(traced: Trace) -> Iterator[Sum]:
    """Yield the sums that a figure is finally made of."""
    if isinstance(traced, Sum):
        yield traced
    elif isinstance(traced, Formula):
        for each in traced.inputs.values():
            if isinstance(each, Sum | Formula):
                yield from sums(each)
