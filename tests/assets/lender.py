"""A client with one customer, and the batches that its jobs go through, without any orchestrator."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from assets.core.batches import read_claimed_batch
from assets.enrichment.transactions import recompute
from assets.reports.reports import end_refreshes, refresh
from pipelines.intake import accounts
from pipelines.intake.lines import as_lines
from pipelines.intake.rows import land_lines
from pipelines.vocabulary.report_status import ReportStatus
from storage.core.models import Queue
from storage.core.store import Store
from storage.customers import customers
from storage.customers.customers import Customer
from storage.enrichment import transactions
from storage.jobs import batches, jobs
from storage.jobs.jobs import Job
from storage.reports import reports
from tests.storage.examples import ABN, a_client, a_customer
from tests.storage.values import renumber

Item = Mapping[str, Any]
RENT: Item = {"date": "2026-03-02", "description": "RENT", "amount": "-900.00"}
COFFEE: Item = {"date": "2026-03-02", "description": "COFFEE", "amount": "-4.50"}
SALE: Item = {"date": "2026-03-03", "description": "SALE", "amount": "812.40"}
BUCKET = 1  # of the first customers
BAD: Item = {"date": "2026-02-30", "description": "RENT", "amount": "-900.00"}


class Lender:
    """A client with one customer, whose jobs run when a test says so."""

    def __init__(self, store: Store, abn: str = ABN, client_id: UUID | None = None) -> None:
        self.store = store
        now = datetime.now(UTC)
        self._customer = a_customer(store, client_id or a_client(store, now), now, abn)

    @property
    def customer(self) -> Customer:
        with self.store.db.reading() as r:
            return customers.get(r, self._customer.client_id, self._customer.customer_id)

    def submit(
        self, *items: Item, account_number: str = "12345678", account_type: str | None = None, bsb: str | None = None
    ) -> Job:
        account, _ = accounts.identify(
            self._customer.customer_id,
            account_name=None,
            bsb=bsb,
            account_number=account_number,
            bank_name=None,
            account_type=account_type,
            credit_limit=None,
            digest=self.store.vault.digest,
        )
        job_id, rows = uuid4(), land_lines(as_lines(items), self.store.vault.digest)
        landing = self.store.lake.put_frame(f"landing/{job_id}.parquet", rows)
        with self.store.db.writing() as w:
            return jobs.submit_enrichment(
                w,
                self.customer,
                account,
                appended=False,
                landing=landing,
                job_id=job_id,
                rows=rows.height,
                warnings=[],
                who="test",
                now=datetime.now(UTC),
            )

    def retract(self, submission: Job) -> Job:
        with self.store.db.writing() as w:
            return jobs.request_retraction(w, self.customer, self.now(submission), "test", datetime.now(UTC))

    def ask_for_reports(self) -> Job:
        with self.store.db.writing() as w:
            return jobs.request_refresh(w, self.customer, "test", datetime.now(UTC))

    def end_all(self) -> None:
        """Run one batch with all jobs that wait for enrichment."""
        with self.store.db.writing() as w:
            batch = batches.claim(w, Queue.ENRICHMENT, self.store.settings, datetime.now(UTC))
        if batch is not None:
            recompute(self.store, read_claimed_batch(self.store, batch.token, batch.partition_day))

    def submit_and_end(
        self, *items: Item, account_number: str = "12345678", account_type: str | None = None, bsb: str | None = None
    ) -> Job:
        """Submit rows, run the batch, and return the ended job."""
        job = self.submit(*items, account_number=account_number, account_type=account_type, bsb=bsb)
        self.end_all()
        return self.now(job)

    def retract_and_end(self, submission: Job) -> Job:
        """Retract a submission, run the batch, and return the ended job."""
        job = self.retract(submission)
        self.end_all()
        return self.now(job)

    def now(self, job: Job) -> Job:
        with self.store.db.reading() as r:
            return jobs.get(r, job.client_id, job.job_id)

    def rows(self, job: Job | None = None) -> list[dict[str, Any]]:
        with self.store.db.reading() as r:
            found = transactions.list_transactions(r, self.store.lake, self.customer, job.job_id if job else None)
            rows = [row for each in found.slices() for row in each.to_dicts()]
        assert len(rows) == found.total
        return rows

    def descriptions(self, job: Job | None = None) -> list[str]:
        return sorted(row["description"] for row in self.rows(job))


def risk_status(lender: Lender) -> ReportStatus:
    customer = lender.customer
    with lender.store.db.reading() as r:
        return reports.read_bundle(r, customer)["risk"].status


def run_refreshes(lender: Lender) -> None:
    """Run all waiting refreshes."""
    with lender.store.db.writing() as w:
        batch = batches.claim(w, Queue.REFRESH, lender.store.settings, datetime.now(UTC))
    assert batch is not None
    work = read_claimed_batch(lender.store, batch.token, batch.partition_day)
    refresh(lender.store, work)
    end_refreshes(lender.store, work)


def three_in_a_bucket(store: Store) -> list[Lender]:
    """Return the first three lenders of a store, each with a customer in BUCKET that has a row."""
    three = [Lender(store) for _ in range(3)]
    with store.db.writing() as w:
        for nth in (1, 2):
            renumber(w, 1 + nth, BUCKET + 64 * nth)
    for lender, item in zip(three, (RENT, COFFEE, SALE), strict=True):
        lender.submit_and_end(item)
    return three
