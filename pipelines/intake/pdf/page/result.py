"""What comes out of a PDF statement, as plain data: the same in the child that reads it and in whoever asked for it.

Money is exact (`Decimal`), in the statement's currency. A negative amount is money out, or a larger debt; a balance
owing is negative. A place on a page is in points (1/72 inch) from the top left corner of the page as it is shown,
rotation applied.
"""

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


class Verdict(StrEnum):
    """How far the balances prove the rows of a statement."""

    RECONCILED = "reconciled"  # every balance follows from the rows before it, from opening to closing
    RECONCILED_DATES_DOUBTFUL = "reconciled_dates_doubtful"  # amounts are proved; a date was inferred and may be wrong
    PARTIAL = "partial"  # some rows are proved and others not: each says which (`Entry.proved`)
    UNRECONCILED = "unreconciled"  # a balance contradicts the rows, or there is none


class Refusal(StrEnum):
    """Why a file gave no statement."""

    ENCRYPTED = "encrypted"  # a password is needed and none was given
    WRONG_PASSWORD = "wrong_password"
    IMAGE_ONLY = "image_only"  # scanned, and no OCR is installed
    NOT_A_STATEMENT = "not_a_statement"
    CORRUPT = "corrupt"
    TOO_MANY_PAGES = "too_many_pages"
    UNSUPPORTED_CURRENCY = "unsupported_currency"  # its money is not in the one currency that is worked in
    LIMITS_EXCEEDED = "limits_exceeded"  # of memory, time or characters


class Kind(StrEnum):
    """What a document is worth as evidence, the best first."""

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
    """One transaction of a statement, in the order printed turned to oldest first."""

    date: dt.date
    value_date: dt.date | None
    description: str  # the lines joined by one space
    amount: Decimal
    balance: Decimal | None  # after the transaction; printed, or between two printed ones that the rows connect
    balance_printed: bool
    boxes: tuple[Box, ...]  # one a page; most rows have one
    proved: bool = False  # between two printed balances that agree with the rows between them, its sign being printed
    currency: str | None = None  # ISO 4217, where it is another than the statement's
    description_digest: bytes | None = None  # of the description as printed, where what is kept of it is masked


@dataclass(frozen=True)
class Reason:
    """What keeps a verdict from being better, or what is to be known of it."""

    code: str
    message: str
    page: int | None = None


@dataclass(frozen=True)
class Signal:
    """Something about a file that a forged one would show, and some honest ones do, too. Never a decision."""

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
    account_number: str | None  # digits; of a card its last four at most are shown by whoever prints it
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
    currency: str | None = None  # ISO 4217; None where the statement names none: a bare `$` is no name


@dataclass(frozen=True)
class Extraction:
    """What one file came to: statements, or a refusal; a message for whoever sent it says what was refused."""

    pages: int
    statements: tuple[Statement, ...]
    signals: tuple[Signal, ...]
    refusal: Refusal | None = None
    message: str | None = None


def refused(refusal: Refusal, message: str, pages: int = 0, signals: tuple[Signal, ...] = ()) -> Extraction:
    return Extraction(pages, (), signals, refusal, message)
