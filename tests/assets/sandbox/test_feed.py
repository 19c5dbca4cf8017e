"""The sandbox's bank feed sends each day once, and the same rows as if all had been sent at once."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from uuid import UUID

import polars as pl
import pytest

from api.sandbox import creating
from api.sandbox.schemas import NewSandboxCustomer
from assets.sandbox.feed import feed
from pipelines.synthetic.sandbox import FEED_DAYS
from storage.core.store import Store
from storage.customers.customers import Customer
from storage.jobs import jobs
from tests.storage.examples import a_client


@pytest.fixture
def client_id(store: Store, now: datetime) -> UUID:
    return a_client(store, now)


def create_customer(store: Store, client_id: UUID, now: datetime) -> Customer:
    sent = NewSandboxCustomer.model_construct(profile="healthy", months=9)
    made = creating.make(store, sent, now)
    with store.db.writing() as w:
        customer, _ = creating.create(w, store, client_id, None, made, "a key", now)
    return customer


def landed_days(store: Store, client_id: UUID) -> Iterator[tuple[UUID, date, date]]:
    """Yield the first and the last day of each submission."""
    with store.db.reading() as r:
        submitted = jobs.find(r, client_id).items
    for job in submitted:
        assert job.landing_path is not None
        days = pl.read_parquet(store.lake.root / job.landing_path)["date"].str.to_date()
        yield job.job_id, days.min(), days.max()  # pyrefly: ignore[invalid-yield]


def test_each_day_is_sent_once(store: Store, client_id: UUID, now: datetime) -> None:
    create_customer(store, client_id, now)
    before = {job_id for job_id, _, _ in landed_days(store, client_id)}
    today = now.astimezone(store.settings.zone).date()
    assert feed(store, now) == 0
    seen: list[date] = []
    for later in (1, 3, 4, 40):
        sent = feed(store, now + timedelta(days=later))
        new = [(first, last) for job_id, first, last in landed_days(store, client_id) if job_id not in before]
        before |= {job_id for job_id, _, _ in landed_days(store, client_id)}
        assert sent == len(new)
        after = seen[-1] if seen else today - timedelta(days=1)
        for first, last in new:
            assert after < first <= last < today + timedelta(days=later)
        seen.append(today + timedelta(days=later - 1))
    assert feed(store, now + timedelta(days=40)) == 0


def test_the_feed_ends_after_a_year(store: Store, client_id: UUID, now: datetime) -> None:
    create_customer(store, client_id, now)
    assert feed(store, now + timedelta(days=FEED_DAYS + 2)) == 0
