"""A fake worker: ends jobs with given rows, through the same commit as the real one."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import polars as pl
from sqlalchemy import update

from api.core.schemas.examples import example
from api.reports.schemas.reports import ReportBundleView
from assets.core.batches import without_jobs
from assets.intake.statements import OnProgress
from assets.portfolio.monitoring import evaluate_slice
from pipelines.intake.pdf.page.result import Extraction, Statement
from pipelines.vocabulary.schemas import DUPLICATES, REJECTED, SORT_KEY, TRANSACTIONS
from storage.core import leases
from storage.core.models import REPORT_KINDS, SUBMISSIONS, DeliveryStatus, Flow, JobStatus, Queue
from storage.core.models import jobs as job_table
from storage.core.store import Store
from storage.customers import customers
from storage.enrichment import transactions as stored
from storage.enrichment.commit import BatchResult, commit_values, locate_values
from storage.jobs import batches, jobs, outcomes
from storage.jobs.batches import Batch
from storage.jobs.jobs import Ending, Job
from storage.reports import reports
from storage.reports.reports import NewReport
from storage.webhooks import outbox
from storage.webhooks.outbox import Attempt, Ended
from tests.fake_statements import RENT, extract, extraction, statement
from tests.waiting import again_and_again

Row = Mapping[str, Any]
POLL_EVERY_S = 0.1
EXAMPLES: Mapping[str, Any] = example(ReportBundleView)
ONE_ROW = statement(RENT)


def end_submissions(
    store: Store, rows: Sequence[Row] = ({},), rejected: Sequence[Row] = (), duplicates: Sequence[Row] = ()
) -> None:
    """End every queued submission with `rows`, `rejected` and `duplicates`.

    The rows replace all earlier rows of the customer except those from PDFs. Other queued jobs end without a change.
    """
    for batch in _claim_all(store, Queue.ENRICHMENT):
        _end_batch(store, batch, rows, rejected, duplicates)


def _claim_all(store: Store, queue: Queue) -> Iterator[Batch]:
    """Claim one batch after another, at least one: jobs received before midnight and after it are in different ones."""
    claimed = 0
    while (batch := _claim(store, queue)) is not None:
        claimed += 1
        yield batch
    assert claimed


def _claim(store: Store, queue: Queue) -> Batch | None:
    with store.db.writing() as w:
        return batches.claim(w, queue, store.settings, datetime.now(UTC))


def _end_batch(
    store: Store, batch: Batch, rows: Sequence[Row], rejected: Sequence[Row], duplicates: Sequence[Row]
) -> None:
    with store.db.reading() as r:
        batch_jobs = jobs.find_of_batch(r, batch.token)
        bases = customers.versions(r, {job.customer_number for job in batch_jobs})
    claimed = [job for job in batch_jobs if job.flow in SUBMISSIONS]
    others_ended = [Ending(job, JobStatus.COMPLETED, 1) for job in batch_jobs if job.flow not in SUBMISSIONS]
    brought = [transactions(job, _read_landed(store, job) if job.flow is Flow.EXTRACTION else rows) for job in claimed]
    with store.db.reading() as r:
        places = stored.current_locations(r, {job.customer_number for job in claimed})
    of_pdfs = stored.scan(store.lake, places).filter(pl.col("statement_id").is_not_null()).collect()
    retained = pl.concat([of_pdfs, *brought]).sort(SORT_KEY)
    others = _outcomes(claimed, rejected, duplicates)
    segment = store.lake.put_frame(f"segments/{uuid4()}.parquet", retained)
    left = store.lake.put_frame(f"outcomes/{uuid4()}.parquet", others)
    values = locate_values(
        retained, sorted({job.customer_number for job in claimed if job.customer_number is not None})
    )
    endings = [_ending(job, len(rows), len(rejected), len(duplicates), left.path) for job in claimed] + others_ended
    versions = {value.customer_number: bases[value.customer_number] for value in values}
    result = BatchResult(
        token=batch.token,
        versions=versions,
        segment=(segment, retained.height),
        values=values,
        outcomes=(left, others.height),
        endings=endings,
    )
    with store.db.writing() as w:
        commit_values(w, store.lake, result, datetime.now(UTC))


def end_extractions(store: Store, found: Statement = ONE_ROW) -> None:
    """End every queued extraction: each PDF becomes this statement."""

    def read(_content: bytes, _password: str | None, _reported: OnProgress) -> Extraction:
        return extraction(found)

    while extract(store, read):
        pass


def _read_landed(store: Store, job: Job) -> Sequence[Row]:
    """Return the columns of a transaction that refer to its statement."""
    columns = ("statement_id", "account_id", "account_number", "bsb")
    return pl.read_parquet(store.lake.root / (job.landing_path or "")).select(columns).to_dicts()


def evaluate(store: Store, *customer_ids: str) -> None:
    """Evaluate these customers by their clients' rulesets, as is done every night."""
    with store.db.reading() as r:
        numbers = [customers.get_of_any_client(r, UUID(each)).number for each in customer_ids]
    with without_jobs(store, Queue.PORTFOLIO, datetime.now(UTC).date(), numbers) as work:
        evaluate_slice(store, work, lambda: datetime.now(UTC))


def end_refreshes(store: Store, data: Mapping[str, str]) -> None:
    """End every queued refresh with these data, as JSON text by kind."""
    for batch in _claim_all(store, Queue.REFRESH):
        now = datetime.now(UTC)
        with store.db.writing() as w:
            for job in jobs.find_of_batch(w, batch.token):
                for kind in REPORT_KINDS:
                    new = NewReport(job.customer_number, job.data_version or 0, data[kind], date(2026, 6, 30))
                    reports.save(w, batch.token, kind, 1, [new], now.date(), now)
                jobs.finish(w, [Ending(job, JobStatus.COMPLETED, job.data_version)], now)
            batches.commit(w, batch.token)


def fail_deliveries(store: Store) -> None:
    """Send all due deliveries to receivers that answer 500 with bytes that are not text."""
    now, holder = datetime.now(UTC), uuid4()
    with store.db.writing() as w:
        for claimed in outbox.claim_due(w, holder, 1_000, 60, now):
            attempt = Attempt(uuid4(), now, 84, 500, None, b"sorry \0\xff")
            outbox.record(w, holder, [Ended(claimed.delivery_id, DeliveryStatus.FAILED, attempt)])


@contextmanager
def working(store: Store) -> Iterator[None]:
    """Play dispatcher and worker for the length of the block: queued jobs end within a moment."""
    us = uuid4()

    def work() -> None:
        with store.db.writing() as w:
            for role in (leases.DISPATCHER, leases.WORKER):
                assert leases.hold(w, role, us, 60, datetime.now(UTC))
            now = datetime.now(UTC)
            queued = {queue for queue in Queue if batches.waiting_since(w, queue, store.settings, now) is not None}
        if Queue.EXTRACTION in queued:
            end_extractions(store)
        if Queue.ENRICHMENT in queued:
            end_submissions(store)
        if Queue.REFRESH in queued:
            end_refreshes(store, {kind: json.dumps(EXAMPLES[kind]["data"]) for kind in REPORT_KINDS})
        fail_deliveries(store)

    with again_and_again(work, POLL_EVERY_S):
        yield


def transactions(job: Job, rows: Sequence[Row]) -> pl.DataFrame:
    """Return TRANSACTIONS of a job; `rows` has only the fields that matter."""
    return pl.DataFrame([_row(job, position) | dict(row) for position, row in enumerate(rows)], schema=TRANSACTIONS)


def _row(job: Job, position: int) -> dict[str, Any]:
    submission = dict(job.submission or {"account_id": UUID(int=0).hex, "account_number": None, "bsb": None})
    return dict.fromkeys(TRANSACTIONS) | {
        "customer_number": job.customer_number,
        "job_id": job.job_id.bytes,
        "received_seq": job.received_seq,
        "since_seq": job.received_seq,
        "received_at": job.created_at,
        "appended": False,
        "account_id": UUID(submission["account_id"]).bytes,
        "account_identified": True,
        "account_number": submission["account_number"],
        "bsb": submission["bsb"],
        "account_type": "transaction",
        "position": position,
        "date": date(2026, 6, 1),
        "description": "COFFEE",
        "amount": Decimal("-4.50"),
        "status": "posted",
        "transaction_id": uuid4().bytes,
        "revision": 1,
        "clean_description": "COFFEE",
        "direction": "debit",
        "channel": "card",
        "category": "meals",
        "category_group": "operations",
        "confidence": 0.9,
        "category_source": "pattern",
        "is_transfer": False,
        "alternatives": [],
        "intermediaries": [],
        "flags": [],
        "enrichment_version": 1,
    }


def _outcomes(claimed: Sequence[Job], rejected: Sequence[Row], duplicates: Sequence[Row]) -> pl.DataFrame:
    def of_each(rows: Sequence[Row]) -> list[dict[str, Any]]:
        return [dict(row) | {"job_id": job.job_id.bytes} for job in claimed for row in rows]

    return outcomes.combine_outcomes(
        pl.DataFrame(of_each(rejected), schema=REJECTED), pl.DataFrame(of_each(duplicates), schema=DUPLICATES)
    )


def _ending(job: Job, enriched: int, rejected: int, duplicates: int, outcomes_path: str) -> Ending:
    return Ending(
        job,
        JobStatus.COMPLETED_WITH_ERRORS if rejected else JobStatus.COMPLETED,
        data_version=1,
        processed=enriched + duplicates,
        enriched=enriched,
        duplicates=duplicates,
        rejected=rejected,
        outcomes_path=outcomes_path,
    )


def request_at(store: Store, job_id: str, at: datetime) -> None:
    """Make a job one that was requested at this time."""
    with store.db.writing() as w:
        w.execute(update(job_table).where(job_table.c.job_id == UUID(job_id)).values(created_at=at))
