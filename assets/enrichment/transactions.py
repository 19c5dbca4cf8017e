"""Enrich landed rows: one Polars pass for all customers of a batch."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import polars as pl
from dagster import AssetExecutionContext, AssetSpec, MaterializeResult, ResourceParam, multi_asset

from assets.core import checks, plots
from assets.core.batches import Work, batch_of, days, isolate_failures
from assets.enrichment import documents, retractions
from assets.enrichment.retractions import BatchRetractions
from assets.intake import landing
from assets.intake.statements import extracted_statements
from assets.monitoring import ruleset_evaluation
from pipelines.enrichment.enrichment import enrich, find_changed_customers
from pipelines.enrichment.knowledge import Knowledge
from pipelines.enrichment.matching.replacements import Documents
from pipelines.figures.accounts import unchanged_details
from pipelines.intake.rows import validate
from pipelines.vocabulary.errors import Corrupt
from pipelines.vocabulary.schemas import DUPLICATES, REJECTED, TRANSACTIONS, current
from storage.core.models import SUBMISSIONS, Flow, JobStatus, Queue
from storage.core.store import Store
from storage.customers.customers import knowledge_versions, versions
from storage.enrichment import knowledge, transactions
from storage.enrichment.commit import BatchResult, Committed, File, NewValue, commit_values, locate_values
from storage.jobs import outcomes
from storage.jobs.jobs import RECOMPUTING, Ending, Job

GROUP = "transactions"

UNCHANGED_DETAILS = {
    "code": "Account.UnchangedDetails",
    "message": "All rows are stored already, so the account's type and limit stay as they were stated before. Retract "
    "the submission that these rows repeat, or send the details with a new row.",
}

log = logging.getLogger(__name__)


landed_transactions = AssetSpec(
    "landed_transactions",
    deps=[extracted_statements],
    group_name=GROUP,
    kinds={"parquet"},
    description="Rows that clients sent that day, or that were read from their PDFs, with card numbers masked: one "
    "immutable file per submission.",
)
enriched_transactions = AssetSpec(
    "enriched_transactions",
    deps=[landed_transactions],
    group_name=GROUP,
    kinds={"polars", "parquet"},
    description="Clean, categorised and linked: all transactions of every customer with a submission that day.",
)


@multi_asset(
    specs=[landed_transactions, enriched_transactions],
    check_specs=checks.specs("enriched_transactions", checks.OF_TRANSACTIONS),
    partitions_def=days,
)
def enrichment(context: AssetExecutionContext, store: ResourceParam[Store]) -> Iterator[MaterializeResult]:
    """Enrich all transactions of every customer with a submission that day.

    This is one step, because starting another takes longer than computing a small batch. If a day is materialised by
    hand, its customers are enriched again from their current rows.
    """
    with batch_of(context, store, Queue.ENRICHMENT) as work:
        yield MaterializeResult(asset_key=landed_transactions.key, metadata=_landed_metadata(work))
        computed, committed = recompute(store, work)
    yield MaterializeResult(
        asset_key=enriched_transactions.key,
        metadata=_metadata(work, computed, committed),
        check_results=checks.results(computed.transactions, checks.OF_TRANSACTIONS),
    )


@dataclass(frozen=True)
class _PassInput:
    """The input of one pass of enrichment: what the batch adds and retracts, and each customer's stored value."""

    jobs: Sequence[Job]
    unreadable: Sequence[tuple[Job, Corrupt]]  # submissions whose file is damaged
    retracting: BatchRetractions
    documents: Documents
    recomputing: Sequence[Job]  # they bring no rows, only changed knowledge about their customers
    knowledge: Knowledge
    versions: Mapping[int, int]  # customer number → the data version that was read
    knowledge_versions: Mapping[int, int]
    damaged: Mapping[int, Corrupt]  # customers whose value can't be read, and why
    landed: pl.LazyFrame  # SUBMISSION and LANDED
    held: pl.LazyFrame  # TRANSACTIONS
    timezone: str

    def for_customers(self, customers: Sequence[int]) -> "_PassInput":
        only = pl.col("customer_number").is_in(list(customers))
        return replace(
            self,
            retracting=self.retracting.for_customers(customers),
            documents=self.documents.for_customers(customers),
            knowledge=self.knowledge.for_customers(customers),
            landed=self.landed.filter(only),
            held=self.held.filter(only),
        )


@dataclass(frozen=True)
class _Pass:
    """The result of one pass of enrichment over some of the batch's customers."""

    transactions: pl.DataFrame
    duplicates: pl.DataFrame
    rejected: pl.DataFrame
    changed: frozenset[int]
    warnings: Mapping[bytes, Sequence[Mapping[str, str]]]


@dataclass(frozen=True)
class Computed:
    """A batch's customers, enriched."""

    transactions: pl.DataFrame  # TRANSACTIONS, sorted; of all customers that could be computed
    duplicates: pl.DataFrame
    rejected: pl.DataFrame
    changed: frozenset[int]  # customers whose value differs from the stored one
    failed: frozenset[int]  # customers that could not be computed
    warnings: Mapping[bytes, Sequence[Mapping[str, str]]]  # for the submissions' senders, by job id
    unreadable_files: int  # of submissions


def recompute(store: Store, work: Work) -> tuple[Computed, Committed]:
    """Enrich all rows of the batch's customers, including new rows if there are any, and commit."""
    inputs = _read(store, work)
    computed = _compute(inputs)
    return computed, _write(store, work, inputs, computed)


def _read(store: Store, work: Work) -> _PassInput:
    """Read the new rows, and the customers' values as one snapshot."""
    readable, unreadable = landing.separate_damaged(store.lake, _submissions(work.jobs))
    with store.db.reading() as r:
        retracting = retractions.read(r, store.lake, work.jobs)
        stated = documents.read(r, store.lake, work.jobs, store.settings.timezone)
        known, known_versions = knowledge.read(r, store.lake, work.customers), knowledge_versions(r, work.customers)
        read_versions = versions(r, work.customers)
        locations = transactions.current_locations(r, work.customers)
    good, damaged = transactions.separate_damaged(store.lake, locations)
    held = transactions.scan(store.lake, good)
    landed = landing.rows_of(store.lake, readable)
    for error in (*damaged.values(), *(error for _, error in (*unreadable, *retracting.impossible))):
        log.error("%s", error.detail)
    return _PassInput(
        jobs=readable,
        unreadable=unreadable,
        retracting=retracting,
        documents=stated,
        recomputing=[job for job in work.jobs if job.flow in RECOMPUTING],
        knowledge=known,
        versions=read_versions,
        knowledge_versions=known_versions,
        damaged=damaged,
        landed=landed,
        held=held,
        timezone=store.settings.timezone,
    )


def _submissions(batch: Sequence[Job]) -> list[Job]:
    return [job for job in batch if job.flow in SUBMISSIONS]


def _compute(inputs: _PassInput) -> Computed:
    """Compute all customers in one pass. If one customer's data break it, compute the others without that customer."""
    failed = list(inputs.damaged)
    computable = [number for number in inputs.versions if number not in inputs.damaged]
    passes = isolate_failures(lambda customers: [_run_pass(inputs.for_customers(customers))], computable, failed)
    frames = [pl.DataFrame(schema=TRANSACTIONS), *(one.transactions for one in passes)]
    return Computed(
        transactions=pl.concat(frames),
        duplicates=pl.concat([pl.DataFrame(schema=DUPLICATES), *(one.duplicates for one in passes)]),
        rejected=pl.concat([pl.DataFrame(schema=REJECTED), *(one.rejected for one in passes)]),
        changed=frozenset().union(*(one.changed for one in passes)),
        failed=frozenset(failed),
        warnings={job_id: warnings for one in passes for job_id, warnings in one.warnings.items()},
        unreadable_files=len(inputs.unreadable),
    )


def _run_pass(inputs: _PassInput) -> _Pass:
    validated = validate(inputs.landed, inputs.timezone)
    accepted, rejected = pl.collect_all([validated.accepted, validated.rejected])
    retracted = inputs.retracting.validate(inputs.timezone)
    enriched = enrich(inputs.held.collect(), accepted, retracted, inputs.knowledge, inputs.documents)
    rows, duplicates = pl.collect_all([enriched.transactions, enriched.duplicates])
    changed = find_changed_customers(enriched.before, rows)
    in_vain = unchanged_details(accepted, duplicates, rows) if duplicates.height else ()
    warnings = documents.warn_of_replacements(accepted, rows, inputs.documents)
    warnings |= {job_id: [UNCHANGED_DETAILS, *warnings.get(job_id, ())] for job_id in in_vain}
    return _Pass(rows, duplicates, rejected, frozenset(changed), warnings)


def _write(store: Store, work: Work, inputs: _PassInput, computed: Computed) -> Committed:
    """Make the files durable first, then commit them in one transaction."""
    segment, values = _write_segment(store, work, computed)
    outcomes_file = _write_outcomes(store, work, computed)
    new_versions = {number: inputs.versions[number] + 1 for number in sorted(computed.changed)}
    result = BatchResult(
        token=work.token,
        versions=inputs.versions,
        knowledge_versions=inputs.knowledge_versions,
        segment=segment,
        values=values,
        outcomes=outcomes_file,
        endings=_end_jobs(inputs, computed, outcomes_file[0].path if outcomes_file else None),
        recomputed=frozenset(inputs.versions) - computed.failed,
        ruleset_evaluation=ruleset_evaluation.evaluate_batch(store, computed.transactions, new_versions)
        if values
        else None,
        yielding=not work.jobs,  # a run by hand has none, and leaves customers to their unfinished jobs
    )
    with store.db.writing() as w:
        return commit_values(w, store.lake, result, datetime.now(UTC))


def _write_segment(store: Store, work: Work, computed: Computed) -> tuple[File | None, list[NewValue]]:
    """Write the changed customers' values as one file. Return it with the range of rows of each customer."""
    rows = computed.transactions.filter(pl.col("customer_number").is_in(list(computed.changed)))
    if rows.is_empty():
        return None, []
    stored = store.lake.put_frame(f"transactions/{work.day}/{uuid4()}.parquet", rows)
    return (stored, rows.height), locate_values(rows, sorted(computed.changed))


def _write_outcomes(store: Store, work: Work, computed: Computed) -> File | None:
    """Write the rejected and duplicate rows as one file, if there are any."""
    frame = outcomes.combine_outcomes(computed.rejected, computed.duplicates)
    if frame.is_empty():
        return None
    return store.lake.put_frame(f"outcomes/{work.day}/{uuid4()}.parquet", frame), frame.height


def _end_jobs(inputs: _PassInput, computed: Computed, outcomes_path: str | None) -> list[Ending]:
    """Return how each job ends. Received = processed + rejected rows, and processed = enriched + duplicate rows."""
    rejected = _count_by_job(computed.rejected)
    duplicates = _count_by_job(computed.duplicates)
    damaged = [*inputs.unreadable, *inputs.retracting.impossible]
    return [_fail_job(job, damage.code, damage.detail) for job, damage in damaged] + [
        _end_uncomputed(job, inputs.damaged.get(job.customer_number))
        if job.customer_number in computed.failed
        else _end_job(
            job,
            rejected.get(job.job_id.bytes, 0),
            duplicates.get(job.job_id.bytes, 0),
            inputs.versions[job.customer_number] + (job.customer_number in computed.changed),
            outcomes_path,
            computed.warnings.get(job.job_id.bytes, ()),
        )
        for job in (*inputs.jobs, *inputs.retracting.jobs, *inputs.recomputing)
    ]


def _count_by_job(rows: pl.DataFrame) -> dict[bytes, int]:
    return dict(rows.group_by("job_id").len().rows())


def _end_job(
    job: Job,
    rejected: int,
    duplicates: int,
    data_version: int,
    outcomes_path: str | None,
    warnings: Sequence[Mapping[str, str]],
) -> Ending:
    if job.flow not in SUBMISSIONS:
        return Ending(job, JobStatus.COMPLETED, data_version)
    processed = job.received_rows - rejected
    return Ending(
        job,
        _status(job, rejected),
        data_version,
        processed=processed,
        enriched=processed - duplicates,
        duplicates=duplicates,
        rejected=rejected,
        outcomes_path=outcomes_path if rejected or duplicates else None,
        error=None
        if processed or not rejected
        else {"code": "Job.AllRowsRejected", "message": "Every row was rejected."},
        warnings=warnings,
    )


def _status(job: Job, rejected: int) -> JobStatus:
    """Return a submission's status. One without any rows is completed: a statement may have no transactions."""
    if rejected and rejected == job.received_rows:
        return JobStatus.FAILED
    return JobStatus.COMPLETED_WITH_ERRORS if rejected or job.refused_files else JobStatus.COMPLETED


def _end_uncomputed(job: Job, damage: Corrupt | None) -> Ending:
    if damage is not None:
        return _fail_job(job, damage.code, damage.detail)
    return _fail_job(job, "Enrichment.Failed", "The customer's transactions could not be enriched.")


def _fail_job(job: Job, code: str, message: str) -> Ending:
    return Ending(job, JobStatus.FAILED, data_version=None, error={"code": code, "message": message})


def _landed_metadata(work: Work) -> dict[str, Any]:
    submissions = _submissions(work.jobs)
    return {
        "submissions": len(submissions),
        "dagster/row_count": sum(job.received_rows for job in submissions),
        "accounts": len({job.submission["account_id"] for job in submissions if job.submission}),
    }


def _metadata(work: Work, computed: Computed, committed: Committed) -> dict[str, Any]:
    """Return counts and categories only: nothing personal may go to Dagster, where it could not be erased."""
    counts = computed.transactions.filter(current()).group_by("category").len("transactions")
    by_category = counts.sort("transactions", "category", descending=[True, False])
    return {
        "dagster/row_count": computed.transactions.height,
        "customers": computed.transactions["customer_number"].n_unique(),
        "customers changed": len(committed.replaced),
        "customers left to a later batch": len(committed.superseded),
        "matches of rulesets": len(committed.ruleset_effect.matches),
        "customers not evaluated": len(committed.ruleset_effect.failed),
        "submissions": len(_submissions(work.jobs)),
        "unreadable files": computed.unreadable_files,
        "retractions": sum(job.flow is Flow.RETRACTION for job in work.jobs),
        "corrections": sum(job.flow is Flow.CORRECTION for job in work.jobs),
        "rejected rows": computed.rejected.height,
        "duplicate rows": computed.duplicates.height,
        **plots.bars("categories", by_category, "category", "transactions"),
    }
