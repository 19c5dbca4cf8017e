"""A damaged data file fails the jobs of its own customers, and of no others."""

from datetime import UTC, datetime

import pytest

from assets.core.batches import read_claimed_batch
from assets.reports.reports import end_refreshes, refresh
from storage.core.lake import Lake
from storage.core.models import JobStatus, Queue
from storage.core.store import Store
from storage.enrichment import transactions
from storage.jobs import batches
from tests.assets.conftest import FillStore
from tests.assets.lender import COFFEE, RENT, SALE, Lender


@pytest.fixture
def two(fill_store: FillStore) -> tuple[Lender, Lender]:
    return fill_store(two_with_rows)


def two_with_rows(store: Store) -> tuple[Lender, Lender]:
    """Return two lenders whose customers' rows are in different files."""
    hit, spared = Lender(store), Lender(store)
    for each in (hit, spared):
        each.submit_and_end(RENT, COFFEE)
    return hit, spared


@pytest.fixture
def freshly_opened(store: Store) -> Store:
    """Return the same store as a process sees it that has not opened any file yet."""
    return Store(store.settings, store.db, Lake(store.settings.lake), store.vault)


def damage(store: Store, lender: Lender) -> str:
    """Flip a bit in the customer's data file, and return the file's path."""
    with store.db.reading() as r:
        [place] = transactions.current_locations(r, [lender.customer.number])
    return flip_a_bit(store, place.path)


def flip_a_bit(store: Store, path: str) -> str:
    file = store.lake.root / path
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    return path


def refresh_all(store: Store) -> None:
    """Run one batch with all requested reports."""
    with store.db.writing() as w:
        batch = batches.claim(w, Queue.REFRESH, store.settings, datetime.now(UTC))
    assert batch is not None
    work = read_claimed_batch(store, batch.token, batch.partition_day)
    refresh(store, work)
    end_refreshes(store, work)


def test_a_submission_for_a_customer_with_a_damaged_file_fails_and_names_the_file(
    store: Store, two: tuple[Lender, Lender], freshly_opened: Store
) -> None:
    hit, spared = two
    path = damage(store, hit)
    failing, other = hit.submit(SALE), spared.submit(SALE)
    hit.store = freshly_opened
    hit.end_all()
    assert hit.now(failing).status is JobStatus.FAILED
    assert path in (hit.now(failing).error or {})["message"]
    assert spared.now(other).status is JobStatus.COMPLETED
    assert spared.customer.enriched_rows == 3
    assert hit.submit_and_end(SALE).status is JobStatus.FAILED, "alone in a batch, too"


def test_a_damaged_landing_file_fails_its_job_and_is_named_to_client_and_log(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    hit, spared = Lender(store), Lender(store)
    failing, other = hit.submit(SALE), spared.submit(SALE)
    path = flip_a_bit(store, hit.now(failing).landing_path or "")
    hit.end_all()
    assert hit.now(failing).status is JobStatus.FAILED
    assert path in (hit.now(failing).error or {})["message"]
    assert path in caplog.text
    assert spared.now(other).status is JobStatus.COMPLETED


def test_a_damaged_file_fails_only_its_own_customers_reports(
    store: Store, two: tuple[Lender, Lender], freshly_opened: Store
) -> None:
    hit, spared = two
    damage(store, hit)
    failing, other = hit.ask_for_reports(), spared.ask_for_reports()
    refresh_all(freshly_opened)
    assert hit.now(failing).status is JobStatus.FAILED
    assert spared.now(other).status is JobStatus.COMPLETED
