"""A job as it is shown, and how jobs are asked for."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import Field, computed_field

from api.core.schemas.common import Counts, NoteView, Paging, Received, View
from api.core.schemas.rules import Parameter, identifier, moment, whole
from storage.core.models import Flow, JobStatus, Stage

MAX_WAIT_S = 30
MOST_ERRORS = 100
EXAMPLE_JOB: dict[str, Any] = {
    "jobId": "5f0c8e55-3c0e-4f4e-8f43-0f7f6c1b2d10",
    "customerId": "0b51c1a4-4a52-4f6e-9b8e-6a3f1e6f8a01",
    "flow": "Enrichment",
    "jobType": "Enrichment",
    "withdraws": None,
    "status": "CompletedWithErrors",
    "stages": [
        {
            "stage": "enrichment",
            "status": "CompletedWithErrors",
            "dateStarted": "2026-07-01T02:15:00.210000Z",
            "dateCompleted": "2026-07-01T02:15:00.640000Z",
            "pagesDone": None,
            "pagesTotal": None,
        }
    ],
    "totalReceivedTransactions": 500,
    "totalProcessedTransactions": 499,
    "enrichedCount": 480,
    "duplicateCount": 19,
    "rejectedCount": 1,
    "warnings": [],
    "error": None,
    "dateCreated": "2026-07-01T02:15:00Z",
    "dateStarted": "2026-07-01T02:15:00.210000Z",
    "dateCompleted": "2026-07-01T02:15:00.640000Z",
}
_NOT_YET = ("totalProcessedTransactions", "enrichedCount", "duplicateCount", "rejectedCount")
_QUEUED: dict[str, Any] = {"status": "Queued", "dateStarted": None, "dateCompleted": None}
_STAGE_QUEUED = _QUEUED | {"pagesDone": None, "pagesTotal": None}
EXAMPLE_QUEUED = EXAMPLE_JOB | dict.fromkeys(_NOT_YET) | _QUEUED | {"stages": [{"stage": "enrichment"} | _STAGE_QUEUED]}
EXAMPLE_REFRESH = EXAMPLE_QUEUED | {
    "flow": "ReportRefresh",
    "jobType": "ReportRefresh",
    "totalReceivedTransactions": 0,
    "stages": [{"stage": "reports"} | _STAGE_QUEUED],
}
EXAMPLE_RETRACTION = EXAMPLE_REFRESH | {
    "jobId": "d8e0a4b6-1f0b-4f0e-9a55-3c8f4f1f6c02",
    "flow": "Withdrawal",
    "jobType": "Withdrawal",
    "withdraws": EXAMPLE_JOB["jobId"],
    "stages": [{"stage": "withdrawal"} | _STAGE_QUEUED],
}
EXAMPLE_CORRECTION = EXAMPLE_REFRESH | {
    "jobId": "a1f7c7b0-52de-4f0b-8a0e-7d5b9f3e2c44",
    "flow": "Correction",
    "jobType": "Correction",
    "stages": [{"stage": "correction"} | _STAGE_QUEUED],
}
EXAMPLE_BACKTEST_JOB = EXAMPLE_REFRESH | {
    "jobId": "c2b8a1d0-7e4f-4c3b-9a1d-5e6f7a8b9c0d",
    "customerId": None,
    "flow": "PolicyBacktest",
    "jobType": "PolicyBacktest",
    "stages": [{"stage": "backtest"} | _STAGE_QUEUED],
}
EXAMPLE_SIMULATION_JOB = EXAMPLE_REFRESH | {
    "jobId": "9e4b7a52-3c1d-4f80-b6a7-2d5c8e1f0a93",
    "customerId": None,
    "flow": "RulesetSimulation",
    "jobType": "RulesetSimulation",
    "stages": [{"stage": "simulation"} | _STAGE_QUEUED],
}
EXAMPLE_EXTRACTION = EXAMPLE_REFRESH | {
    "jobId": "e7d3c1b5-0a9f-4e8d-8c7b-6a5f4e3d2c10",
    "flow": "Extraction",
    "jobType": "Extraction",
    "stages": [{"stage": "extraction"} | _STAGE_QUEUED, {"stage": "enrichment"} | _STAGE_QUEUED],
}
EXAMPLE_REFUSAL: dict[str, Any] = {
    "index": 17,
    "field": "date",
    "code": "Transaction.InvalidDate",
    "message": "The date does not exist.",
}
EXAMPLE_DUPLICATE: dict[str, Any] = {"index": 3, "transactionId": "8d1f5a52-7d0e-5a5e-9e0e-1c5a5f0e7b11"}


class RefusedRowView(View):
    EXAMPLE: ClassVar = EXAMPLE_REFUSAL

    index: int = Field(description="Of the item in the submission, from 0.")
    field: str | None
    code: str
    message: str


class DuplicateRowView(View):
    EXAMPLE: ClassVar = EXAMPLE_DUPLICATE

    index: int = Field(description="Of the item in the submission, from 0.")
    transaction_id: UUID = Field(description="The transaction that the item repeats.")


class StageView(View):
    stage: str
    status: JobStatus
    date_started: datetime | None
    date_completed: datetime | None
    pages_done: int | None = Field(None, description="Of an extraction: pages read.")
    pages_total: int | None = Field(None, description="Of an extraction: pages of the files opened so far.")


STAGE_OF = {
    Flow.ENRICHMENT: "enrichment",
    Flow.EXTRACTION: "extraction",
    Flow.RETRACTION: "withdrawal",
    Flow.CORRECTION: "correction",
    Flow.REENRICHMENT: "reenrichment",
    Flow.REPORT_REFRESH: "reports",
    Flow.POLICY_BACKTEST: "backtest",
    Flow.RULESET_SIMULATION: "simulation",
}


class JobView(View):
    """A job without its refused rows: how lists show it."""

    EXAMPLE: ClassVar = EXAMPLE_QUEUED

    job_id: UUID
    customer_id: UUID | None = Field(description="Null for a backtest or a simulation, which are of no one customer.")
    flow: Flow
    withdraws: UUID | None = Field(
        validation_alias="retracts", description="The submission that is retracted; null for other flows."
    )
    status: JobStatus
    total_received_transactions: int = Field(validation_alias="received_rows")
    total_processed_transactions: int | None = Field(validation_alias="processed_rows")
    enriched_count: int | None = Field(validation_alias="enriched_rows")
    duplicate_count: int | None = Field(validation_alias="duplicate_rows")
    rejected_count: int | None = Field(validation_alias="rejected_rows")
    warnings: Sequence[NoteView]
    error: NoteView | None
    date_created: datetime = Field(validation_alias="created_at")
    date_started: datetime | None = Field(validation_alias="started_at")
    date_completed: datetime | None = Field(validation_alias="completed_at")
    stage: Stage | None = Field(exclude=True)
    refused_files: int = Field(exclude=True)
    landed_at: datetime | None = Field(exclude=True)
    stage_started_at: datetime | None = Field(exclude=True)
    pages_done: int | None = Field(exclude=True)
    pages_total: int | None = Field(exclude=True)

    @computed_field
    @property
    def job_type(self) -> Flow:
        """Equals `flow`."""
        return self.flow

    @computed_field
    @property
    def stages(self) -> list[StageView]:
        """What the job goes through, in order; after a failure no further."""
        if self.stage is not None:
            return [self._extraction(), *self._enrichment()]
        return [
            StageView(
                stage=STAGE_OF[self.flow],
                status=self.status,
                date_started=self.date_started,
                date_completed=self.date_completed,
            )
        ]

    def _extraction(self) -> StageView:
        over = JobStatus.COMPLETED_WITH_ERRORS if self.refused_files else JobStatus.COMPLETED
        return StageView(
            stage=Stage.EXTRACTION,
            status=self.status if self.stage is Stage.EXTRACTION else over,
            date_started=self.date_started,
            date_completed=self.landed_at or self.date_completed,
            pages_done=self.pages_done,
            pages_total=self.pages_total,
        )

    def _enrichment(self) -> Iterator[StageView]:
        """Not reached by a job whose extraction failed. Files that were refused are not its errors."""
        if self.stage is Stage.EXTRACTION and self.status is JobStatus.FAILED:
            return
        ended = self.status is JobStatus.COMPLETED_WITH_ERRORS and not self.rejected_count
        reached = JobStatus.COMPLETED if ended else self.status
        yield StageView(
            stage=Stage.ENRICHMENT,
            status=reached if self.stage is Stage.ENRICHMENT else JobStatus.QUEUED,
            date_started=self.stage_started_at,
            date_completed=self.date_completed,
        )


class JobStatusView(JobView):
    """A job with the first of its refused rows."""

    EXAMPLE: ClassVar = EXAMPLE_JOB | {"errors": [EXAMPLE_REFUSAL]}

    errors: Sequence[RefusedRowView] = Field(description=f"The first {MOST_ERRORS} refused rows.")


class JobListView(Counts):
    EXAMPLE: ClassVar = {"jobs": [JobView.EXAMPLE], **Counts.EXAMPLE}

    jobs: list[JobView]


class RefusedRowListView(Counts):
    EXAMPLE: ClassVar = {"errors": [RefusedRowView.EXAMPLE], **Counts.EXAMPLE}

    errors: list[RefusedRowView]


class DuplicateRowListView(Counts):
    EXAMPLE: ClassVar = {"duplicates": [DuplicateRowView.EXAMPLE], **Counts.EXAMPLE}

    duplicates: list[DuplicateRowView]


class WaitQuery(Received):
    wait: Annotated[
        int,
        Parameter(
            whole(0, MAX_WAIT_S),
            "Job.InvalidWait",
            f"wait must be a whole number of seconds from 0 to {MAX_WAIT_S}, given once.",
            {
                "type": "integer",
                "minimum": 0,
                "maximum": MAX_WAIT_S,
                "description": "Seconds to hold the answer, at most, until the job has ended.",
            },
        ),
    ] = 0


def _moment(what: str) -> Parameter:
    return Parameter(
        moment,
        "Job.InvalidDate",
        "A moment is an ISO 8601 date-time with its offset, given once.",
        {"type": "string", "format": "date-time", "description": f"Only jobs created {what} this moment."},
    )


class JobsQuery(Paging):
    status: Annotated[
        JobStatus | None,
        Parameter(
            JobStatus,
            "Job.InvalidStatus",
            "status must be one job status, given once.",
            {"type": "string", "enum": list(JobStatus), "description": "Only jobs in this status."},
        ),
    ] = None
    flow: Annotated[
        Flow | None,
        Parameter(
            Flow,
            "Job.InvalidFlow",
            "flow must be one flow, given once.",
            {"type": "string", "enum": list(Flow), "description": "Only jobs of this flow."},
        ),
    ] = None
    customer_id: Annotated[
        UUID | None,
        Parameter(
            identifier,
            "Job.InvalidCustomerId",
            "customerId must be one UUID.",
            {"type": "string", "format": "uuid", "description": "Only this customer's jobs."},
        ),
    ] = None
    created_after: Annotated[datetime | None, _moment("after")] = None
    created_before: Annotated[datetime | None, _moment("before")] = None

    def filters(self) -> dict[str, Any]:
        """What `storage.jobs.jobs.find` filters by."""
        return self.model_dump(exclude={"page", "count"})
