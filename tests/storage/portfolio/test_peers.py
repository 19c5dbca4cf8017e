"""Peers: percentiles over a client's own customers, as of the last night before a report."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import polars as pl
import pytest

from pipelines.figures.context import MIN_PEERS
from storage.core.store import Store
from storage.portfolio import peers, tables
from tests.storage.examples import a_client

NIGHT = date(2026, 7, 1)


def put_metric(store: Store, client_id: UUID, values: Sequence[int | None], now: datetime) -> None:
    """Store a table of the metric `m`, with one value for each customer."""
    rows = {
        "customer_number": list(range(len(values))),
        "client_id": [client_id.bytes] * len(values),
        "metric": ["m"] * len(values),
        "value": values,
    }
    blank = {name: [None] * len(values) for name in tables.METRIC_COLUMNS if name not in rows}
    frame = pl.DataFrame(rows | blank)
    typed = frame.select(pl.col(name).cast(kind) for name, (kind, _) in tables.METRIC_COLUMNS.items())
    tables.put(store, tables.METRICS, 1, typed, now)


def compute_percentiles(store: Store) -> pl.DataFrame:
    with store.db.reading() as r:
        return peers.compute_percentiles(store.lake, tables.find_current_tables(r))


def test_percentiles_rise_from_the_lowest_reading_to_the_highest(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    put_metric(store, client_id, [*range(100, -1, -1), None], now)
    [(of, metric, count, values)] = compute_percentiles(store).iter_rows()
    assert (UUID(bytes=of), metric, count) == (client_id, "m", 101)
    assert values == [Decimal(n) for n in range(101)]


@pytest.mark.parametrize(("customers", "rows"), [(MIN_PEERS - 1, 0), (MIN_PEERS, 1)])
def test_percentiles_need_a_minimum_of_customers(store: Store, now: datetime, customers: int, rows: int) -> None:
    put_metric(store, a_client(store, now), list(range(customers)), now)
    assert compute_percentiles(store).height == rows


def test_without_tables_there_are_no_peers(store: Store) -> None:
    assert peers.compute_percentiles(store.lake, []).is_empty()


def test_a_client_is_compared_with_the_last_night_before_the_day(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    other = a_client(store, now)
    for nights, value in ((0, 5), (3, 7)):
        put_metric(store, client_id, [value] * 30, now)
        with store.db.writing() as w:
            peers.put(w, compute_percentiles(store), NIGHT + timedelta(days=nights))

    def on(day: date) -> dict[UUID, Decimal]:
        with store.db.reading() as r:
            found = peers.find_latest_before(r, [client_id, other], day)
        return {of: frame["quantiles"][0][0] for of, frame in found.items()}

    assert on(NIGHT) == {}
    assert on(NIGHT + timedelta(days=1)) == {client_id: Decimal(5)}
    assert on(NIGHT + timedelta(days=3)) == {client_id: Decimal(5)}
    assert on(NIGHT + timedelta(days=4)) == {client_id: Decimal(7)}


def test_measuring_a_night_again_replaces_it_and_removes_old_nights(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    put_metric(store, client_id, [1] * 30, now)
    for day in (NIGHT - peers.RETAINED - timedelta(days=1), NIGHT, NIGHT):
        with store.db.writing() as w:
            peers.put(w, compute_percentiles(store), day)
    with store.db.reading() as r:
        assert peers.find_latest_before(r, [client_id], NIGHT) == {}
        assert peers.find_latest_before(r, [client_id], NIGHT + timedelta(days=1))[client_id]["metric"].to_list() == [
            "m"
        ]
