"""A job as it is shown, and the queries for jobs."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, computed_field

from api.core.schemas.common import Counts, NoteView, Paging, Received, View
from api.core.schemas.rules import choice_parameter, identifier_parameter, moment_parameter, whole_parameter
from storage.core.models import Flow, JobStatus, Stage

MAX_WAIT_S = 30
MAX_ERRORS = 100


class RejectedRowView(View):
    index: int = Field(description="Position of the item in the submission, from 0.")
    field: str | None = Field(description="Field of the item that is wrong; null if it is the item as a whole.")
    code: str = Field(description="Stable: programs should branch on this.")
    message: str = Field(description="What is wrong with the item, for people.")


class DuplicateRowView(View):
    index: int = Field(description="Position of the item in the submission, from 0.")
    transaction_id: UUID = Field(description="The transaction that the item repeats.")


class StageView(View):
    stage: str = Field(
        description="extraction, enrichment, withdrawal, correction, reenrichment, reports, backtest or simulation."
    )
    status: JobStatus = Field(description="CompletedWithErrors: some of its rows, files, reports or customers failed.")
    date_started: datetime | None = Field(description="Null until the stage starts.")
    date_completed: datetime | None = Field(description="Null until the stage ends.")
    pages_done: int | None = Field(None, description="For an extraction: pages read.")
    pages_total: int | None = Field(None, description="For an extraction: pages of the files opened so far.")


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
    """A job as lists show it, without its rejected rows."""

    job_id: UUID
    customer_id: UUID | None = Field(description="Null for a backtest or a simulation, which have no single customer.")
    flow: Flow = Field(
        description="Enrichment and Extraction add rows, Withdrawal takes a submission back; the others compute "
        "again or evaluate."
    )
    withdraws: UUID | None = Field(
        validation_alias="retracts", description="The submission that is retracted; null for other flows."
    )
    status: JobStatus = Field(
        description="CompletedWithErrors: some rows, files, reports or customers failed, and everything else is done."
    )
    total_received_transactions: int = Field(
        validation_alias="received_rows", description="Rows that the submission sent or its statements contain."
    )
    total_processed_transactions: int | None = Field(
        validation_alias="processed_rows", description="Rows that were enriched or are duplicates."
    )
    enriched_count: int | None = Field(validation_alias="enriched_rows", description="New or revised rows.")
    duplicate_count: int | None = Field(
        validation_alias="duplicate_rows", description="Rows that were stored already, and are not counted twice."
    )
    rejected_count: int | None = Field(validation_alias="rejected_rows", description="Rows rejected for an error.")
    warnings: Sequence[NoteView] = Field(description="Such as odd account details, masked numbers and refused files.")
    error: NoteView | None = Field(description="Why the job failed; null unless it did.")
    date_created: datetime = Field(validation_alias="created_at", description="When the request was accepted.")
    created_by: str | None = Field(
        description="Id of the user or the key that requested it; null if the service did, if it is not recorded, and "
        "for backtests and simulations."
    )
    date_started: datetime | None = Field(validation_alias="started_at", description="Null until the job starts.")
    date_completed: datetime | None = Field(validation_alias="completed_at", description="Null until the job ends.")
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
        """The job's stages, in order, up to the one that failed."""
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
        """Yield the enrichment stage, unless the extraction failed. Refused files are not errors of this stage."""
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
    """A job with its first rejected rows."""

    errors: Sequence[RejectedRowView] = Field(description=f"The first {MAX_ERRORS} rejected rows.")


class JobListView(Counts):
    jobs: list[JobView] = Field(description="Newest first.")


class RejectedRowListView(Counts):
    errors: list[RejectedRowView] = Field(description="In the order of the submission.")


class DuplicateRowListView(Counts):
    duplicates: list[DuplicateRowView] = Field(description="In the order of the submission.")


class WaitQuery(Received):
    wait: Annotated[
        int,
        whole_parameter(
            "wait", "Job.InvalidWait", 0, MAX_WAIT_S, "Longest time to wait for the end of the job, in seconds."
        ),
    ] = 0


class JobsQuery(Paging):
    status: Annotated[
        JobStatus | None,
        choice_parameter("status", "Job.InvalidStatus", JobStatus, "Only jobs in this status."),
    ] = None
    flow: Annotated[
        Flow | None,
        choice_parameter("flow", "Job.InvalidFlow", Flow, "Only jobs of this flow."),
    ] = None
    customer_id: Annotated[
        UUID | None,
        identifier_parameter("customerId", "Job.InvalidCustomerId", "Only this customer's jobs."),
    ] = None
    created_after: Annotated[
        datetime | None, moment_parameter("createdAfter", "Job.InvalidDate", "Only jobs created after this moment.")
    ] = None
    created_before: Annotated[
        datetime | None, moment_parameter("createdBefore", "Job.InvalidDate", "Only jobs created before this moment.")
    ] = None

    def filters(self) -> dict[str, Any]:
        """Return the filters of `storage.jobs.jobs.find`."""
        return self.model_dump(exclude={"page", "count"})
