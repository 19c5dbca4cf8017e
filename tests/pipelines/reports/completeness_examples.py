"""Customers for the tests of completeness, and their parsed reports."""

import json
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
from hypothesis import strategies as st

from pipelines.figures.context import ATTRIBUTES, CUSTOMERS, INTAKE, RELATED_PARTIES, Context
from pipelines.figures.facts import Facts
from pipelines.figures.tables import Table
from pipelines.reports.completeness import completeness_report
from pipelines.reports.completeness.score import SUMMARY
from tests.pipelines.reports.examples import SAVINGS, START, Row, add_balances, row, transactions

NOBODY_KNOWN = Context()


def add_ids(rows: Iterable[Row]) -> list[Row]:
    """Give each row an id: its index."""
    return [{"transaction_id": place.to_bytes(16, "big"), **each} for place, each in enumerate(rows, 1)]


def day_of(as_of: date | int) -> date:
    return as_of if isinstance(as_of, date) else START + timedelta(days=as_of)


def facts_of(rows: Sequence[Row], as_of: date | int, context: Context = NOBODY_KNOWN) -> Facts:
    return Facts(transactions(add_ids(rows)).collect(), day_of(as_of), context)


def completeness(rows: Sequence[Row], as_of: date | int, context: Context = NOBODY_KNOWN) -> dict[str, Any]:
    [text] = completeness_report(facts_of(rows, as_of, context))["data"]
    data: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return data


def rows_of(table: Table, rows: Sequence[Row], as_of: int) -> list[dict[str, Any]]:
    """Return one table of the report as printed, without computing the rest of the report."""
    lines = table.lines(facts_of(rows, as_of)).collect(engine="in-memory")["line"]
    return [json.loads(line, parse_float=Decimal) for line in lines]


def score(rows: Sequence[Row], as_of: int) -> Decimal:
    [summary] = rows_of(SUMMARY, rows, as_of)
    points = summary["completenessScore"]
    return Decimal(points)


def codes(data: dict[str, Any]) -> list[str]:
    return [reason["code"].removeprefix("Completeness.") for reason in data["reasons"]]


def daily(days: Iterable[int], **others: object) -> list[Row]:
    return [row(day, "10", **others) for day in days]


def context_of_customer(
    name: str | None = None,
    related: Sequence[str] = (),
    attributes: dict[str, str] | None = None,
    duplicates: int | None = None,
    rejected: int | None = None,
) -> Context:
    """Return the context of customer 1."""
    return Context(
        customers=pl.DataFrame([(1, name, "51824753556")] if name else [], schema=CUSTOMERS, orient="row"),
        related_parties=pl.DataFrame([(1, each, None) for each in related], schema=RELATED_PARTIES, orient="row"),
        attributes=pl.DataFrame(
            [(1, each, value) for each, value in (attributes or {}).items()], schema=ATTRIBUTES, orient="row"
        ),
        intake=pl.DataFrame([(1, duplicates, rejected)], schema=INTAKE, orient="row"),
    )


@st.composite
def statements(draw: st.DrawFn, most_days: int = 500) -> list[Row]:
    """Draw an account's rows with chaining balances, up to three a day, on ten days at most.

    Some are own transfers, some of these without their other side. Amounts are distinct powers of two, so that removed
    rows never cancel to zero.
    """
    days = sorted(draw(st.lists(st.integers(0, most_days), min_size=1, max_size=10, unique=True)))
    posted = [day for day in days for _ in range(draw(st.integers(1, 3)))]
    amounts = [Decimal(2**place) * draw(st.sampled_from((1, -1))) for place in range(len(posted))]
    kinds = st.sampled_from(("unknown/unknown_debit", "unknown/unknown_debit", "transfer/own_transfer"))
    made = (
        row(day, amount, kind=draw(kinds), is_transfer=draw(st.booleans()))
        for day, amount in zip(posted, amounts, strict=True)
    )
    return [{**each, "position": place} for place, each in enumerate(add_balances(made, opening=0))]


def in_savings(rows: Iterable[Row]) -> list[Row]:
    return [{**each, "account_id": SAVINGS, "account_type": "savings"} for each in rows]


@st.composite
def some_of(draw: st.DrawFn, rows: list[Row], by: str) -> list[Row]:
    """Draw the rows that have some of the values of a column, at least one."""
    values = sorted({each[by] for each in rows})
    retained = draw(st.sets(st.sampled_from(values), min_size=1))
    return [each for each in rows if each[by] in retained]
