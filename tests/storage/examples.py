"""A client with a customer, and submissions with any content: what most storage tests start from."""

from datetime import datetime
from uuid import UUID, uuid4

from pipelines.intake import accounts
from storage.access import keys
from storage.core.database import Writing
from storage.core.store import Store
from storage.customers import customers
from storage.customers.customers import Customer, NewCustomer
from storage.jobs import jobs
from storage.jobs.jobs import Job

ABN = "51824753556"


def a_client(store: Store, now: datetime) -> UUID:
    with store.db.writing() as w:
        return keys.create_client(w, "Harbour Lending", decision_policies=True, now=now).client_id


def a_customer(store: Store, client_id: UUID, now: datetime, abn: str = ABN) -> Customer:
    with store.db.writing() as w:
        return customers.create(w, client_id, NewCustomer(abn, abn_checksum_valid=True), "test", now).customer


def a_submission(store: Store, customer: Customer, now: datetime, rows: int = 1) -> Job:
    """Return a queued job. Its landing file is not Parquet, because these tests never read it."""
    with store.db.writing() as w:
        return submit(w, store, customer, now, rows)


def submit(w: Writing, store: Store, customer: Customer, now: datetime, rows: int = 1) -> Job:
    """Submit as `a_submission` does, within the caller's transaction."""
    job_id = uuid4()
    account, _ = accounts.identify(
        customer.customer_id,
        account_name=None,
        bsb="062-000",
        account_number="1234 5678",
        bank_name=None,
        account_type=None,
        credit_limit=None,
        digest=store.vault.digest,
    )
    landing = store.lake.put(f"landing/{job_id}.parquet", b"rows")
    return jobs.submit_enrichment(
        w,
        customer,
        account,
        appended=False,
        landing=landing,
        job_id=job_id,
        rows=rows,
        warnings=[],
        who="test",
        now=now,
    )
