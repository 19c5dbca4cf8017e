"""PDF statements as they are sent, and what was read from them."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import Field

from api.core.schemas.common import Counts, Received, View
from api.core.schemas.rules import Parameter, whole
from api.intake.schemas.transactions import Day, Money
from pipelines.intake.pdf.page.result import Kind, Severity, Verdict

MAX_ROW = 1_000_000
EXAMPLE_BOX: dict[str, Any] = {"page": 2, "left": 42.5, "top": 310.2, "right": 552.0, "bottom": 331.8}
EXAMPLE_STATEMENT: dict[str, Any] = {
    "statementId": "7c2f9f4e-6a43-5c39-9e3b-2f1d8a7b6c50",
    "jobId": "e7d3c1b5-0a9f-4e8d-8c7b-6a5f4e3d2c10",
    "fileId": "4b0d9f3a-8e2c-4f61-9d57-1c6e5a4b3d20",
    "fileName": "statement-2026-06.pdf",
    "accountId": "2b1a7b0e-1f0f-5c6e-8a53-1d3c0f6a9b42",
    "bank": "cba",
    "bankName": "Commonwealth Bank",
    "accountName": "Harbour Coffee Pty Ltd",
    "bsb": "062000",
    "accountNumber": "12345678",
    "accountType": "transaction",
    "creditLimit": None,
    "kind": "statement",
    "periodStart": "2026-06-01",
    "periodEnd": "2026-06-30",
    "openingBalance": 5012.4,
    "closingBalance": 10421.07,
    "verdict": "reconciled",
    "reasons": [],
    "rowCount": 1,
    "firstPage": 1,
    "lastPage": 3,
    "readByOcr": False,
    "dateExtracted": "2026-07-01T02:15:01Z",
}
EXAMPLE_ROW: dict[str, Any] = {
    "row": 1,
    "date": "2026-06-30",
    "valueDate": None,
    "description": "EFTPOS PURCHASE BUNNINGS 405000 ALEXANDRIA",
    "amount": -184.5,
    "balance": 10421.07,
    "balancePrinted": True,
    "currency": None,
    "proved": True,
    "repeated": False,
    "index": 0,
    "boxes": [EXAMPLE_BOX],
}
EXAMPLE_SIGNAL: dict[str, Any] = {
    "code": "IncrementalUpdate",
    "severity": "warning",
    "message": "The file was changed after it was made.",
    "page": None,
}


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

    EXAMPLE: ClassVar = EXAMPLE_STATEMENT

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
    EXAMPLE: ClassVar = EXAMPLE_STATEMENT | {"signals": [EXAMPLE_SIGNAL], "rows": [EXAMPLE_ROW]}

    signals: Sequence[SignalView] = Field(description="Of the whole file.")
    rows: Sequence[StatementRowView]


class StatementListView(Counts):
    EXAMPLE: ClassVar = {"statements": [StatementView.EXAMPLE], **Counts.EXAMPLE}

    statements: list[StatementView]


class SourceView(View):
    """Where a transaction stands on paper."""

    EXAMPLE: ClassVar = {
        "jobId": EXAMPLE_STATEMENT["jobId"],
        "statementId": EXAMPLE_STATEMENT["statementId"],
        "row": 1,
        "boxes": [EXAMPLE_BOX],
    }

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
