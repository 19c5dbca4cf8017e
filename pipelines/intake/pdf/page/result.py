"""The result of reading a PDF statement, as plain data that passes between the child process and its parent.

Money is exact (`Decimal`), in the statement's currency. A negative amount is money out or a larger debt; a balance owed
is negative. A place on a page is in points (1/72 inch) from the top left corner of the page as shown, rotation applied.
"""

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


class Verdict(StrEnum):
    """To what extent the balances prove the rows of a statement."""

    RECONCILED = "reconciled"  # every balance follows from the rows before it, from opening to closing
    RECONCILED_DATES_DOUBTFUL = "reconciled_dates_doubtful"  # amounts are proved; a date was inferred and may be wrong
    PARTIAL = "partial"  # some rows are proved (`Entry.proved`) and others not
    UNRECONCILED = "unreconciled"  # a balance contradicts the rows, or no balance is printed


class Refusal(StrEnum):
    """Why a file has no statement."""

    ENCRYPTED = "encrypted"  # a password is needed and none was given
    WRONG_PASSWORD = "wrong_password"
    IMAGE_ONLY = "image_only"  # scanned, and no OCR is installed
    NOT_A_STATEMENT = "not_a_statement"
    CORRUPT = "corrupt"
    UNREADABLE = "unreadable"  # neither a PDF nor an export that can be read
    TOO_MANY_PAGES = "too_many_pages"
    UNSUPPORTED_CURRENCY = "unsupported_currency"  # its money is not in the one currency that is accepted
    LIMITS_EXCEEDED = "limits_exceeded"  # of memory, time or characters

    @property
    def code(self) -> str:
        """The code of a job's warning about a file that was refused for this reason."""
        return "Statement." + "".join(word.capitalize() for word in self.split("_"))


class Kind(StrEnum):
    """The kind of a document, the best evidence first."""

    STATEMENT = "statement"  # issued by the bank for a period, with opening and closing balance
    LISTING = "listing"  # transactions as printed from online banking
    INTERIM = "interim"  # since the last statement; a bank may still change it


class Severity(StrEnum):
    INFORMATION = "information"
    WARNING = "warning"
    ALERT = "alert"


@dataclass(frozen=True)
class Box:
    """A place on a page."""

    page: int  # from 1
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class Entry:
    """One transaction of a statement. Entries are oldest first: in printed order, or in its reverse."""

    date: dt.date
    value_date: dt.date | None
    description: str  # the lines joined by one space
    amount: Decimal
    balance: Decimal | None  # after the transaction; printed, or computed between two that agree with the rows
    balance_printed: bool
    boxes: tuple[Box, ...]  # one per page; most rows have one
    proved: bool = False  # its sign is printed, and it is between two printed balances that agree with the rows
    currency: str | None = None  # ISO 4217, if other than the statement's
    description_digest: bytes | None = None  # of the description as printed, if the stored one is masked


@dataclass(frozen=True)
class Reason:
    """Why a verdict is not better, or a note about it."""

    code: str
    message: str
    page: int | None = None


@dataclass(frozen=True)
class Signal:
    """A sign of manipulation that some genuine files also have. It never decides anything."""

    code: str
    severity: Severity
    message: str
    page: int | None = None


@dataclass(frozen=True)
class Statement:
    """One account's part of a file."""

    bank: str | None  # slug of a layout; None for a bank without one
    bank_name: str | None
    account_name: str | None
    bsb: str | None  # six digits
    account_number: str | None  # digits; of a card often only the last four, because no more are printed
    account_type: str | None  # one of pipelines.vocabulary.schemas.ACCOUNT_TYPES
    kind: Kind
    period_start: dt.date | None
    period_end: dt.date | None
    opening_balance: Decimal | None
    closing_balance: Decimal | None
    credit_limit: Decimal | None
    verdict: Verdict
    reasons: tuple[Reason, ...]
    entries: tuple[Entry, ...]
    first_page: int
    last_page: int
    read_by_ocr: bool
    currency: str | None = None  # ISO 4217; None if the statement names none: a bare `$` does not


@dataclass(frozen=True)
class Extraction:
    """The result of one file: statements, or a refusal. The message tells the client what was refused and why."""

    pages: int
    statements: tuple[Statement, ...]
    signals: tuple[Signal, ...]
    refusal: Refusal | None = None
    message: str | None = None


def refused_extraction(refusal: Refusal, message: str, pages: int = 0, signals: tuple[Signal, ...] = ()) -> Extraction:
    return Extraction(pages, (), signals, refusal, message)
