"""PDF statements as they are shown, with what was read from them."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from api.core.schemas.common import Counts, Paging, Received, View
from api.core.schemas.rules import identifier_parameter, whole_parameter
from api.intake.schemas.transactions import Day, Money
from pipelines.intake.pdf.page.result import Kind, Severity, Verdict

MAX_ROW = 1_000_000


class BoxView(View):
    """A rectangle on a page, in points from the top left corner of the page as displayed."""

    page: int = Field(description="From 1.")
    left: float = Field(description="Left edge, from the left of the page.")
    top: float = Field(description="Top edge, from the top of the page.")
    right: float = Field(description="Right edge, from the left of the page.")
    bottom: float = Field(description="Bottom edge, from the top of the page.")


class VerdictReasonView(View):
    code: str = Field(description="Stable: programs should branch on this.")
    message: str = Field(description="What is missing or does not agree, for people.")
    page: int | None = Field(description="Page of the file, from 1; null if the reason concerns no single page.")


class SignalView(View):
    """A sign of a forged file, which some genuine files show too. It never decides anything."""

    code: str = Field(description="Stable: programs should branch on this.")
    severity: Severity = Field(description="How strongly it suggests a forgery.")
    message: str = Field(description="What was seen, for people.")
    page: int | None = Field(description="Page of the file, from 1; null if the signal concerns the whole file.")


class StatementView(View):
    """The part of a file that belongs to one account."""

    statement_id: UUID
    job_id: UUID = Field(description="The submission that the file came with.")
    file_id: UUID = Field(description="The file that contains it, perhaps with other statements.")
    file_name: str = Field(
        description="As sent, without control characters, and with card and tax file numbers masked."
    )
    account_id: UUID = Field(description="The same for all submissions of the account.")
    bank: str | None = Field(description="Slug of the layout by which the bank was recognised; null if it was not.")
    bank_name: str | None = Field(description="As printed; null if not recognised.")
    account_name: str | None = Field(description="As printed; null if not recognised.")
    bsb: str | None = Field(description="Null if not printed.")
    account_number: str | None = Field(description="A card's number is masked.")
    account_type: str | None = Field(description="Null if not recognised.")
    credit_limit: Money | None = Field(description="AUD, as printed; null if not printed.")
    kind: Kind = Field(
        description="statement: for a period; listing: from online banking; interim: since the last statement."
    )
    period_start: date | None = Field(description="Null if not printed.")
    period_end: date | None = Field(description="Null if not printed.")
    opening_balance: Money | None = Field(description="Null if not printed.")
    closing_balance: Money | None = Field(description="Null if not printed.")
    verdict: Verdict = Field(description="Whether the printed balances agree with the rows.")
    reasons: Sequence[VerdictReasonView] = Field(description="Why the verdict is not better.")
    row_count: int = Field(description="All rows, also those that another statement repeats.")
    first_page: int = Field(description="Page of the file, from 1.")
    last_page: int = Field(description="Page of the file, from 1.")
    read_by_ocr: bool = Field(description="Whether the text was recognised from a scan.")
    date_extracted: datetime = Field(validation_alias="extracted_at", description="When the file was read.")


class StatementRowView(View):
    row: int = Field(description="From 1, oldest first.")
    date: Day = Field(description="As printed; a year that is not printed is inferred.")
    value_date: Day | None = Field(description="Null if not printed.")
    description: str = Field(description="As printed, with card and tax file numbers masked.")
    amount: Money = Field(description="Negative is money out.")
    balance: Money | None = Field(description="Balance after the row, printed or computed; null if unknown.")
    balance_printed: bool = Field(description="False: computed from the amounts.")
    currency: str | None = Field(
        description="ISO 4217 code if the row is not in AUD, as the statement is; otherwise null."
    )
    proved: bool | None = Field(
        description="Whether it lies between two printed balances that agree with the rows between them, which proves "
        "its amount and sign. Null for statements read before this was recorded."
    )
    repeated: bool = Field(description="Another statement of the same submission contains the row; it is counted once.")
    index: int | None = Field(description="Index of the row in the job's errors and duplicates; null if repeated.")
    boxes: Sequence[BoxView] = Field(description="Where the row is printed.")


class WholeStatementView(StatementView):
    had_password: bool = Field(
        description="Whether a password was sent with the file. It is not stored: a page that needs it can't be drawn."
    )
    signals: Sequence[SignalView] = Field(description="Signals of the whole file.")
    rows: Sequence[StatementRowView] = Field(description="Oldest first.")


class StatementListView(Counts):
    statements: list[StatementView] = Field(description="Most recently read first.")


class SourceView(View):
    """Where a transaction is printed."""

    job_id: UUID = Field(description="The submission that the statement came with.")
    statement_id: UUID = Field(description="The statement that contains the row.")
    row: int = Field(description="Row of the statement, from 1, oldest first.")
    boxes: Sequence[BoxView] = Field(description="Where the row is printed.")


class StatementsQuery(Paging):
    job_id: Annotated[
        UUID | None,
        identifier_parameter("jobId", "Statement.InvalidJobId", "Only those that this job read."),
    ] = None


class PageQuery(Received):
    row: Annotated[
        int | None,
        whole_parameter("row", "Statement.InvalidRow", 1, MAX_ROW, "Row of the statement to highlight."),
    ] = None
