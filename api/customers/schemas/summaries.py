"""A list of customers with what is known of each, for people."""

from collections.abc import Collection
from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, ValidationInfo, field_validator

from api.core.schemas.common import Counts, Paging, View
from api.core.schemas.rules import Parameter, choice_parameter, flag_parameter, refusal, text
from api.customers.cursors import Cursor, parse_cursor
from api.customers.schemas.customers import CustomerView
from pipelines.decisions import INDETERMINATE, OUTCOMES
from pipelines.vocabulary.report_status import ReportStatus
from storage.core.paging import MAX_COUNTED
from storage.core.text_search import SHORTEST
from storage.customers.summary_listing import RATINGS, Filter, Order, Sort, Summary

LONGEST = 200  # characters of a search
CURSOR_MESSAGE = "cursor must be empty or the nextCursor of a response with the same sort, given once and without page."


def searched_part(value: Any) -> str:
    """Parse what is searched for. An ABN may be given with spaces."""
    part = text(LONGEST)(value).strip().casefold()
    digits = part.replace(" ", "")
    part = digits if digits.isdecimal() else part
    if len(part) < SHORTEST:
        raise ValueError
    return part


class SummariesQuery(Paging):
    search: Annotated[
        str | None,
        Parameter(
            searched_part,
            "Customer.InvalidSearch",
            f"search must be text of {SHORTEST} to {LONGEST} characters, given once.",
            {
                "type": "string",
                "minLength": SHORTEST,
                "maxLength": LONGEST,
                "description": "Part of the name, the ABN or the reference, in any case.",
            },
        ),
    ] = None
    rating: Annotated[
        str | None, choice_parameter("rating", "Customer.InvalidRating", RATINGS, "Only with this rating.")
    ] = None
    outcome: Annotated[
        str | None,
        choice_parameter(
            "outcome",
            "Customer.InvalidOutcome",
            (*OUTCOMES, INDETERMINATE),
            "Only with this outcome of the last decision.",
        ),
    ] = None
    report_status: Annotated[
        ReportStatus | None,
        choice_parameter(
            "reportStatus", "Customer.InvalidReportStatus", ReportStatus, "Only with reports in this status."
        ),
    ] = None
    open_alerts: Annotated[
        bool | None,
        flag_parameter("openAlerts", "Customer.InvalidOpenAlerts", "Only with open alerts, or only without."),
    ] = None
    sort: Annotated[
        str,
        choice_parameter(
            "sort",
            "Customer.InvalidSort",
            [sign + sort for sort in Sort for sign in ("", "-")],
            "Order, with `-` descending. Customers without the value count as the lowest.",
        ),
    ] = Sort.CREATED
    cursor: Annotated[
        Cursor | None,
        Parameter(
            parse_cursor,
            "Pagination.InvalidCursor",
            CURSOR_MESSAGE,
            {
                "type": "string",
                "description": "Instead of `page`: empty for the first customers, then each response's `nextCursor`.",
            },
        ),
    ] = None

    @field_validator("cursor")
    @classmethod
    def _of_this_list(cls, cursor: Cursor | None, info: ValidationInfo) -> Cursor | None:
        is_other = (
            cursor is not None and cursor[0] is not None and cursor[0] != _order(info.data.get("sort", Sort.CREATED))
        )
        if is_other or (cursor is not None and info.data.get("page") is not None):
            raise refusal("Pagination.InvalidCursor", CURSOR_MESSAGE)
        return cursor

    @property
    def filter(self) -> Filter:
        return Filter(self.search, self.rating, self.outcome, self.report_status, self.open_alerts)

    @property
    def order(self) -> Order:
        return _order(self.sort)


def _order(sort: str) -> Order:
    return Order(Sort(sort.removeprefix("-")), descending=sort.startswith("-"))


class LastDecisionView(View):
    evaluation_id: UUID = Field(description="The evaluation that decided.")
    slug: str = Field(description="The policy's.")
    at: datetime = Field(description="When it was evaluated. A later override does not change this.")
    outcome: Literal["proceed", "conditional", "blocked", "indeterminate"] = Field(
        description="That of its latest override, if there is one."
    )


class CustomerSummaryView(CustomerView):
    rating: str | None = Field(description="As in the stored risk report, like `riskValue` and `calibration`.")
    risk_value: float | None = Field(description="Null without a stored risk report.")
    calibration: str | None = Field(description="Null without a stored risk report.")
    completeness_score: float | None = Field(description="As in the stored completeness report, like its tier.")
    completeness_tier: str | None = Field(description="Null without a stored completeness report.")
    report_status: ReportStatus = Field(
        description="`ready` if all three reports are of the current transactions, `pending` if there are none yet, "
        "otherwise `stale`. Unfinished jobs are not considered."
    )
    unfinished_jobs: bool = Field(description="Whether a job under way may change the transactions.")
    data_through: date | None = Field(description="Date of the last transaction in the stored reports.")
    last_submission_at: datetime | None = Field(description="Null if nothing was submitted yet.")
    transaction_count: int = Field(validation_alias="enriched_rows", description="Current transactions.")
    last_decision: LastDecisionView | None = Field(description="What-ifs and evaluations by challengers don't count.")
    open_alerts: int = Field(description="Alerts that nobody has acknowledged, closed or snoozed.")


class CustomerSummaryListView(Counts):
    customers: list[CustomerSummaryView] = Field(description="In the requested order; by default in order of creation.")
    next_cursor: str | None = Field(description="The next customers' cursor; null if these are the last.")
    has_more: bool = Field(
        description=f"Whether there are more than `totalCount`. On pages, only {MAX_COUNTED:,} are counted."
    )


def describe_summary(summary: Summary, unfinished: Collection[int]) -> CustomerSummaryView:
    """Return the view of a summary. `unfinished`: numbers of customers with unfinished jobs."""
    also = {"unfinished_jobs": summary.number in unfinished, "last_decision": _last_decision(summary)}
    return CustomerSummaryView.of({**vars(summary), **also})


def _last_decision(summary: Summary) -> dict[str, object] | None:
    if summary.evaluation_id is None:
        return None
    return {
        "evaluation_id": summary.evaluation_id,
        "slug": summary.slug,
        "at": summary.decided_at,
        "outcome": summary.outcome,
    }
