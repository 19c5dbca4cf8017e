"""PDF statements as they are sent, and what was read from them."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from api.core.schemas.common import Counts, Received, View
from api.core.schemas.rules import Parameter, whole
from api.intake.schemas.transactions import Day, Money
from pipelines.intake.pdf.page.result import Kind, Severity, Verdict

MAX_ROW = 1_000_000


class BoxView(View):
    """A place on a page, in points from the top left corner of the page as it is shown."""

    page: int = Field(description="From 1.")
    left: float
    top: float
    right: float
    bottom: float


class ReasonView(View):
    code: str
    message: str
    page: int | None


class SignalView(View):
    """Something about the file that a forged one would show, and some honest ones do, too. Never a decision."""

    code: str
    severity: Severity
    message: str
    page: int | None


class StatementView(View):
    """One account's part of a file."""

    statement_id: UUID
    job_id: UUID
    file_id: UUID
    file_name: str
    account_id: UUID
    bank: str | None = Field(description="Null for a bank that Tidemark doesn't know.")
    bank_name: str | None
    account_name: str | None
    bsb: str | None
    account_number: str | None = Field(description="That of a card is masked.")
    account_type: str | None
    credit_limit: Money | None
    kind: Kind
    period_start: date | None
    period_end: date | None
    opening_balance: Money | None
    closing_balance: Money | None
    verdict: Verdict = Field(description="How far the printed balances prove the rows.")
    reasons: Sequence[ReasonView] = Field(description="What keeps the verdict from being better.")
    row_count: int
    first_page: int
    last_page: int
    read_by_ocr: bool
    date_extracted: datetime = Field(validation_alias="extracted_at")


class StatementRowView(View):
    row: int = Field(description="From 1, oldest first.")
    date: Day
    value_date: Day | None
    description: str
    amount: Money
    balance: Money | None
    balance_printed: bool
    currency: str | None = Field(description="ISO 4217; null where it is the statement's, AUD.")
    proved: bool | None = Field(
        description="Whether it lies between two printed balances that agree with the rows between them: neither its "
        "amount nor sign can be another. Null for statements read before this was kept."
    )
    repeated: bool = Field(description="Another statement of the same submission holds the row: it counts once.")
    index: int | None = Field(description="By which the job's errors and duplicates name the row; null when repeated.")
    boxes: Sequence[BoxView]


class WholeStatementView(StatementView):
    signals: Sequence[SignalView] = Field(description="Of the whole file.")
    rows: Sequence[StatementRowView]


class StatementListView(Counts):
    statements: list[StatementView]


class SourceView(View):
    """Where a transaction stands on paper."""

    job_id: UUID
    statement_id: UUID
    row: int
    boxes: Sequence[BoxView]


class PageQuery(Received):
    row: Annotated[
        int | None,
        Parameter(
            whole(1, MAX_ROW),
            "Statement.InvalidRow",
            "row must be a whole number from 1, given once.",
            {"type": "integer", "minimum": 1, "maximum": MAX_ROW, "description": "Row of the statement to mark."},
        ),
    ] = None
