"""A job as it is shown, and how jobs are asked for."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, computed_field

from api.core.schemas.common import Counts, NoteView, Paging, Received, View
from api.core.schemas.rules import Parameter, identifier, moment, whole
from storage.core.models import Flow, JobStatus, Stage

MAX_WAIT_S = 30
MOST_ERRORS = 100


class RefusedRowView(View):
    index: int = Field(description="Of the item in the submission, from 0.")
    field: str | None
    code: str
    message: str


class DuplicateRowView(View):
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

    errors: Sequence[RefusedRowView] = Field(description=f"The first {MOST_ERRORS} refused rows.")


class JobListView(Counts):
    jobs: list[JobView]


class RefusedRowListView(Counts):
    errors: list[RefusedRowView]


class DuplicateRowListView(Counts):
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
