"""A table of the portfolio is a durable file that one commit makes the current one."""

from datetime import datetime, timedelta
from decimal import Decimal

import polars as pl
from sqlalchemy import select

from storage.core import models
from storage.core.models import Queue
from storage.core.store import Store
from storage.customers.customers import Customer
from storage.jobs import batches
from storage.portfolio import tables
from storage.reports import reports
from storage.reports.reports import NewReport
from tests.storage.examples import a_client, a_customer


def with_report(store: Store, now: datetime, data: str = '{"value": 7.10}', data_version: int = 0) -> Customer:
    customer = a_customer(store, a_client(store, now), now)
    save_report(store, customer, now, data, data_version)
    return customer


def save_report(store: Store, customer: Customer, now: datetime, data: str, data_version: int) -> None:
    report = NewReport(customer.number, data_version, data, now.date())
    with store.db.writing() as w:
        token = batches.open_without_jobs(w, Queue.PORTFOLIO, now.date(), store.settings, now)
        reports.save(w, token, "risk", 1, [report], now.date(), now)


def test_a_table_holds_the_current_reports_of_its_bucket_with_their_exact_data(store: Store, now: datetime) -> None:
    customer = with_report(store, now)
    with_report(store, now)  # of the next bucket
    with store.db.reading() as r:
        table = tables.read_reports(r, "risk", bucket=1)
        assert tables.read_reports(r, "completeness", bucket=1).is_empty()
    assert table.schema == tables.make_schema(tables.REPORT_COLUMNS["risk"])
    [row] = table.to_dicts()
    assert (row["customer_id"], row["data"]) == (customer.customer_id.bytes, '{"value": 7.10}')
    assert row["is_current"]
    assert row["generated_at"] == now
    assert (row["value"], row["rating"]) == (Decimal("7.1"), None)


def test_a_report_that_covers_older_data_is_not_current(store: Store, now: datetime) -> None:
    customer = with_report(store, now)
    with store.db.writing() as w:
        w.execute(models.customers.update().values(data_version=1))
    with store.db.reading() as r:
        assert tables.read_reports(r, "risk", customer.number)["is_current"].to_list() == [False]


def test_a_table_replaces_the_one_before_which_stays_for_its_readers(store: Store, now: datetime) -> None:
    customer = with_report(store, now)
    with store.db.reading() as r:
        first_rows = tables.read_reports(r, "risk", customer.number)
    first = tables.put(store, "risk_portfolio", customer.number, first_rows, now)
    save_report(store, customer, now, '{"value": 9}', data_version=1)
    with store.db.reading() as r:
        second_rows = tables.read_reports(r, "risk", customer.number)
    tables.put(store, "risk_portfolio", customer.number, second_rows, now + timedelta(days=1))

    with store.db.reading() as r:
        [current] = tables.find_current_tables(r)
        replaced = r.execute(
            select(models.portfolio_tables.c.replaced_at).order_by(models.portfolio_tables.c.created_at)
        ).all()
    assert (current.name, current.bucket, current.rows) == ("risk_portfolio", customer.number, 1)
    assert pl.read_parquet(store.lake.verified_path(current.path, current.sha256))["data"].to_list() == ['{"value": 9}']
    assert [row.replaced_at for row in replaced] == [now + timedelta(days=1), None]
    assert pl.read_parquet(store.lake.verified_path(first.path, first.sha256))["data"].to_list() == ['{"value": 7.10}']


def test_a_report_of_older_data_never_takes_the_place_of_a_newer_one(store: Store, now: datetime) -> None:
    customer = with_report(store, now, '{"value": 9}', data_version=2)
    save_report(store, customer, now, '{"value": 7.10}', data_version=1)
    with store.db.reading() as r:
        assert tables.read_reports(r, "risk", customer.number)["data"].to_list() == ['{"value": 9}']


def test_the_metrics_of_a_bucket_have_the_public_ids_of_their_customers(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    columns = {
        "customer_number": [customer.number] * 2,
        "metric": ["b", "a"],
        "value": [None, 7],
        "cause": ["stale", None],
    }
    with store.db.reading() as r:
        table = tables.combine_metrics(
            r, pl.DataFrame({"customer_number": [customer.number] * 2, **columns}), {customer.number: 4}, now.date()
        )
    assert table.schema == tables.make_schema(tables.METRIC_COLUMNS)
    shown = table.select("customer_id", "data_version", "metric", "value", "cause").rows()
    customer_id = customer.customer_id.bytes
    assert shown == [(customer_id, 4, "a", Decimal(7), None), (customer_id, 4, "b", None, "stale")]
