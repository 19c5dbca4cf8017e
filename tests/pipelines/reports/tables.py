"""Tables of the aggregate report read back, and every number in them followed down to its rows."""

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
    """Rows that have no id get one from their place."""
    named = [{"transaction_id": place.to_bytes(16, "big"), **each} for place, each in enumerate(rows)]
    return Facts(transactions(named).collect(), as_of, context)


def values(table: Table, facts: Facts) -> list[Value]:
    """All rows of all customers as printed."""
    lines = table.lines(facts).collect()["line"]
    return [json.loads(line, parse_float=Decimal) for line in lines]


def numbers(table: Table, value: Value) -> Iterator[tuple[str, Any]]:
    """The figures of a row that are there."""
    shown = ((column.name, value[column.name]) for column in table.columns if column.is_number)
    return ((name, figure) for name, figure in shown if figure is not None)


def assert_explained(table: Table, facts: Facts, amounts: Mapping[bytes, Decimal]) -> None:
    """Every number follows from its inputs, and these at last from rows of the customer, none giving more than it has.

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
    """The sums that a figure at last comes from."""
    if isinstance(traced, Sum):
        yield traced
    elif isinstance(traced, Formula):
        for each in traced.inputs.values():
            if isinstance(each, Sum | Formula):
                yield from sums(each)
