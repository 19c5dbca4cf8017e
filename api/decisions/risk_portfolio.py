"""A client's portfolio as it is now, to compare scorecards and watch their drift: a slice of customers at a time."""

from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.reports.rating_changes import RATINGS, compare_ratings
from pipelines.risk_models.readings import readings
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.expected import Expected
from pipelines.scorecards.scorecard import Scorecard
from storage.core.database import Reading
from storage.core.lake import Lake
from storage.core.store import Store
from storage.customers import customers
from storage.decisions import context, risk_models
from storage.enrichment import transactions

SLICE = 500  # customers at once: a few hundred megabytes of rows (our judgement)


def in_use(r: Reading, client: UUID) -> Scorecard:
    """Return the scorecard in use for a client's customers."""
    return risk_models.read_in_use(r, [client]).get(client, DEFAULT)


def compare(store: Store, r: Reading, client: UUID, after: Scorecard, now: datetime) -> pl.DataFrame:
    """Return the ratings of a client's customers by the scorecard in use and by this one (`reports.rating_changes`)."""
    before, expected = in_use(r, client), _read_expected(r, client)
    parts = [compare_ratings(facts, before, after, expected) for facts in _slices(store, r, client, now)]
    return pl.concat(parts) if parts else pl.DataFrame(schema=RATINGS)


def read(store: Store, r: Reading, client: UUID, metrics: list[str], now: datetime) -> pl.DataFrame:
    """Return the readings of a client's customers (`risk_models.readings`)."""
    expected = _read_expected(r, client)
    parts = [readings(facts, metrics, expected=expected) for facts in _slices(store, r, client, now)]
    return pl.concat(parts) if parts else pl.DataFrame()


def _read_expected(r: Reading, client: UUID) -> Expected:
    return risk_models.read_expected(r, [client])[client]


def _slices(store: Store, r: Reading, client: UUID, now: datetime) -> Iterator[Facts]:
    today = now.astimezone(store.settings.zone).date()
    for numbers in _batches(customers.with_transactions(r, client)):
        known = context.read(r, customers.versions(r, numbers), now, today, store.settings.zone)
        yield Facts(_rows(r, store.lake, numbers), today, known)


def _batches(numbers: list[int]) -> Iterator[list[int]]:
    return (numbers[place : place + SLICE] for place in range(0, len(numbers), SLICE))


def _rows(r: Reading, lake: Lake, numbers: list[int]) -> pl.DataFrame:
    return transactions.scan(lake, transactions.current_locations(r, numbers)).collect()
