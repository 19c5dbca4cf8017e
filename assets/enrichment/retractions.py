"""Read a batch's retractions, and what they need: the customers' later submissions, as they were sent.

A customer's stored transactions hold no duplicates. So a row that a later submission repeated is read again from that
submission's landing file. This takes time in proportion to the later submissions, which is acceptable because
retractions are rare.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import polars as pl

from assets.intake import landing
from pipelines.enrichment.matching.retractions import NO_RETRACTIONS, RETRACTED, Retractions
from pipelines.intake.rows import validate
from pipelines.vocabulary.errors import Corrupt
from storage.core.database import Reading
from storage.core.lake import Lake
from storage.core.models import Flow
from storage.jobs import jobs, outcomes
from storage.jobs.jobs import Job


@dataclass(frozen=True)
class BatchRetractions:
    """A batch's retractions, and what they need."""

    jobs: Sequence[Job]
    impossible: Sequence[tuple[Job, Corrupt]]  # retractions that need a damaged file, with what is wrong
    retracted: pl.DataFrame  # RETRACTED
    landed: pl.LazyFrame  # SUBMISSION and LANDED: the later submissions
    rejected: pl.DataFrame  # job_id, position: of the later submissions' rejected rows

    def for_customers(self, customers: Sequence[int]) -> "BatchRetractions":
        only = pl.col("customer_number").is_in(list(customers))
        return replace(self, retracted=self.retracted.filter(only), landed=self.landed.filter(only))

    def validate(self, timezone: str) -> Retractions:
        """Return the later submissions' accepted rows. A row that was rejected stays rejected under newer rules."""
        if self.retracted.is_empty():
            return NO_RETRACTIONS
        accepted = validate(self.landed, timezone).accepted.collect()
        return Retractions(self.retracted, accepted.join(self.rejected, on=["job_id", "position"], how="anti"))


def read(r: Reading, lake: Lake, batch: Sequence[Job]) -> BatchRetractions:
    """Read the retractions among a batch's jobs."""
    requested = [job for job in batch if job.flow is Flow.RETRACTION]
    unretracted = jobs.find_unretracted_submissions(r, {job.customer_number for job in requested}) if requested else []
    seqs = {job.job_id: job.received_seq for job in unretracted}
    later = _later_submissions(unretracted, {job.retracts for job in requested})
    rejected, damaged = _find_rejected(r, lake, later)
    possible = [job for job in requested if job.customer_number not in damaged]
    return BatchRetractions(
        jobs=possible,
        impossible=[(job, damaged[job.customer_number]) for job in requested if job.customer_number in damaged],
        retracted=pl.DataFrame([_describe_retraction(job, seqs) for job in possible], schema=RETRACTED),
        landed=landing.rows_of(lake, [job for job in later if job.customer_number not in damaged]),
        rejected=rejected,
    )


def _later_submissions(submissions: Sequence[Job], retracted: Iterable[UUID | None]) -> list[Job]:
    """Return the submissions that stay and come after their customer's first retracted one.

    Args:
        submissions: in order of `received_seq`.
    """
    gone = [job for job in submissions if job.job_id in retracted]
    first = {job.customer_number: job.received_seq for job in reversed(gone)}
    return [job for job in submissions if job not in gone and job.received_seq > first[job.customer_number]]


def _find_rejected(r: Reading, lake: Lake, submissions: Iterable[Job]) -> tuple[pl.DataFrame, dict[int, Corrupt]]:
    """Return the places of rejected rows, and for each customer with a damaged file what is wrong with it."""
    rejected = [pl.DataFrame(schema={"job_id": RETRACTED["job_id"], "position": pl.UInt32})]
    damaged: dict[int, Corrupt] = {}
    for job in submissions:
        try:
            lake.verified_path(job.landing_path or "", job.landing_sha256 or b"")
            rejected.append(outcomes.find_rejected_places(r, lake, job))
        except Corrupt as error:
            damaged[job.customer_number] = error
    return pl.concat(rejected), damaged


def _describe_retraction(job: Job, seqs: dict[UUID, int]) -> dict[str, Any]:
    assert job.retracts is not None
    return {
        "customer_number": job.customer_number,
        "job_id": job.retracts.bytes,
        "submission_seq": seqs[job.retracts],
        "retraction_seq": job.received_seq,
    }
