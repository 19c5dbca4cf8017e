"""Rules for all three reports: one customer's report depends only on that customer's rows."""

import json
import resource
import subprocess
import sys
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.accepted import accept_all
from pipelines.enrichment.enrichment import enrich
from pipelines.figures.facts import Facts
from pipelines.reports import REPORTS
from pipelines.synthetic import portfolio
from pipelines.vocabulary.schemas import ACCEPTED, MONEY, TRANSACTIONS
from tests.conftest import examples
from tests.pipelines.reports.examples import START, Row, any_row, reports, row, transactions

TODAY = START + timedelta(days=410)
every_report = pytest.mark.parametrize("kind", REPORTS)
customers_of_any_kind = st.lists(st.lists(any_row(), min_size=1, max_size=12), min_size=2, max_size=4)


def rows_of_customer(customer_number: int, rows: list[Row]) -> list[Row]:
    return [{**each, "customer_number": customer_number, "position": place} for place, each in enumerate(rows)]


def compute_reports(kind: str, rows: list[Row]) -> dict[int, dict[str, Any]]:
    return dict(reports(kind, rows, TODAY))


@pytest.mark.service  # all reports, five times for each example
@every_report
@examples(1)
@given(customers_of_any_kind)
def test_customers_together_have_the_same_reports_as_alone(kind: str, customers: list[list[Row]]) -> None:
    each = [rows_of_customer(number, rows) for number, rows in enumerate(customers, 1)]
    together = compute_reports(kind, [row for rows in each for row in rows])
    assert together == {number: data for rows in each for number, data in compute_reports(kind, rows).items()}


@every_report
@examples(1)
@given(customers_of_any_kind, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(kind: str, customers: list[list[Row]], random: Random) -> None:
    rows = [row for number, rows in enumerate(customers, 1) for row in rows_of_customer(number, rows)]
    shuffled = random.sample(rows, len(rows))
    assert list(reports(kind, shuffled, TODAY)) == list(reports(kind, rows, TODAY))


@every_report
def test_every_customer_has_one_row_in_order_even_without_posted_rows(kind: str) -> None:
    rows = [row(0, "5", customer_number=3), row(0, "5", customer_number=1, status="pending")]
    assert list(compute_reports(kind, rows)) == [1, 3]


@every_report
def test_no_rows_give_no_reports(kind: str) -> None:
    assert compute_reports(kind, []) == {}


@pytest.mark.service  # a process of its own
def test_after_loading_a_first_report_imports_nothing(tmp_path: Path) -> None:
    rows = accept_all(portfolio(2, 14, 5, until=TODAY)).select(ACCEPTED.names())
    enrich(pl.DataFrame(schema=TRANSACTIONS), rows).transactions.collect().write_parquet(tmp_path / "rows.parquet")
    code = f"""
import sys, datetime, polars
from pipelines import reports
from benchmarks.accepted import accept_all
from pipelines.enrichment.enrichment import enrich
from pipelines.figures.facts import Facts
facts = Facts(polars.read_parquet({str(tmp_path / "rows.parquet")!r}), datetime.date({TODAY:%Y, %-m, %-d}))
reports.load()
loaded = {{*sys.modules}}
for report in reports.REPORTS.values():
    assert len(report.compute(facts)) == 2
print(*sorted(sys.modules.keys() - loaded))
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


@every_report
def test_money_at_both_ends_of_the_range_is_summed_exactly(kind: str) -> None:
    most = Decimal("9999999999999.99")
    rows = [row(day, sign * most, kind="revenue/card_settlement") for day in range(200) for sign in (1, 1, -1)]
    assert len(compute_reports(kind, rows)) == 1


@every_report
def test_dates_decades_apart_raise_no_error(kind: str) -> None:
    rows = [row(date(1970, 1, 1), "5", balance=Decimal(5)), row(date(2025, 6, 1), "5", balance=Decimal(10))]
    assert len(compute_reports(kind, rows)) == 1


@every_report
def test_the_data_print_as_json_without_losing_a_cent(kind: str) -> None:
    [data] = compute_reports(kind, [row(0, "0.10", balance=Decimal("0.10")), row(40, "-1234567890123.45")]).values()
    text = msgspec.json.Encoder(decimal_format="number").encode(data)
    assert json.loads(text, parse_float=Decimal) == msgspec.to_builtins(data, builtin_types=(Decimal,))


@pytest.mark.slow
@every_report
def test_two_million_rows_of_one_customer_fit_in_memory(kind: str) -> None:
    few = transactions(row(day, "-5", balance=Decimal(day)) for day in range(1000)).collect()
    place = pl.int_range(pl.len(), dtype=pl.UInt32)
    in_order = few[pl.int_range(2_000_000, eager=True) // 2000]  # as they are stored
    many = in_order.with_columns(position=place, balance=place.cast(MONEY))
    before = peak_mib()
    assert REPORTS[kind].compute(Facts(many, TODAY)).height == 1
    assert peak_mib() - before < 1024


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
