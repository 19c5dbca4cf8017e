"""Fake PDF statements for tests that don't read PDFs: files with only a PDF's first bytes, and the results of reading
them.
"""

import hashlib
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import uuid4

from assets.core.batches import read_claimed_batch
from assets.intake.statements import Reader, extract_all
from pipelines.intake.pdf.page.result import (
    Box,
    Entry,
    Extraction,
    Kind,
    Refusal,
    Severity,
    Signal,
    Statement,
    Verdict,
    refused_extraction,
)
from storage.core.models import Queue
from storage.core.store import Store
from storage.core.vault import read_key_id
from storage.customers.customers import Customer
from storage.intake import statements
from storage.intake.statements import NewFile
from storage.jobs import batches
from storage.jobs.jobs import Job

JUNE = date(2026, 6, 1)
CHANGED = Signal("IncrementalUpdate", Severity.WARNING, "The file was changed after it was made.", None)


def pdf(name: str) -> bytes:
    """Return a file that is accepted as a PDF."""
    return f"%PDF-1.7\n{name}\n".encode()


def entry(description: str, amount: str, balance: str | None = None, day: int = 1) -> Entry:
    """Build a row on page 1; later days are further down."""
    place = Box(1, 40.0, 100.0 + day, 550.0, 110.0 + day)
    exact = None if balance is None else Decimal(balance)
    return Entry(date(2026, 6, day), None, description, Decimal(amount), exact, balance is not None, (place,))


RENT = entry("RENT", "-900.00", "4100.00", 2)
COFFEE = entry("COFFEE", "-4.50", "4095.50", 3)
SALE = entry("SALE", "812.40", "4907.90", 4)


def statement(*entries: Entry, account_number: str = "12345678", verdict: Verdict = Verdict.RECONCILED) -> Statement:
    return Statement(
        bank="cba",
        bank_name="Commonwealth Bank",
        account_name="Harbour Coffee Pty Ltd",
        bsb="062000",
        account_number=account_number,
        account_type="transaction",
        kind=Kind.STATEMENT,
        period_start=JUNE,
        period_end=date(2026, 6, 30),
        opening_balance=Decimal("5000.00"),
        closing_balance=Decimal("4907.90"),
        credit_limit=None,
        verdict=verdict,
        reasons=(),
        entries=entries,
        first_page=1,
        last_page=1,
        read_by_ocr=False,
    )


def extraction(*found: Statement, pages: int = 1) -> Extraction:
    return Extraction(pages, found, (CHANGED,))


class FakeReader:
    """A fake reader that returns prepared results, and records what it was asked to read."""

    def __init__(self, **results: Extraction | Callable[[str | None], Extraction]) -> None:
        """Take the results by file name; a function is called with the password."""
        self._results = {pdf(name): answer for name, answer in results.items()}
        self.read: list[bytes] = []

    def __call__(self, content: bytes, password: str | None, reported: Callable[[int, int], None]) -> Extraction:
        self.read.append(content)
        answer = self._results.get(
            content, refused_extraction(Refusal.NOT_A_STATEMENT, "The file has no account statement.")
        )
        found = answer if isinstance(answer, Extraction) else answer(password)
        reported(found.pages, found.pages)
        return found


def opens_with(secret: str, found: Extraction) -> Callable[[str | None], Extraction]:
    """Return a result that depends on the password."""

    def read(password: str | None) -> Extraction:
        if password is None:
            return refused_extraction(Refusal.ENCRYPTED, "The file needs a password.")
        return found if password == secret else refused_extraction(Refusal.WRONG_PASSWORD, "The password is wrong.")

    return read


def submit_files(store: Store, customer: Customer, *names: str, password: str | None = None) -> Job:
    """Queue a submission of these files."""
    now, files = datetime.now(UTC), list[NewFile]()
    for name in names:
        file_id, content = uuid4(), pdf(name)
        sealed = statements.seal_original(store.vault, file_id, content)
        stored = store.lake.put(f"statements/{file_id}.pdf.sealed", sealed)
        secret = password and statements.seal_password(store.vault, file_id, password)
        sha256 = hashlib.sha256(content).digest()
        files.append(NewFile(file_id, f"{name}.pdf", sha256, len(content), stored, read_key_id(sealed), secret or None))
    with store.db.writing() as w:
        return statements.submit(w, store.lake, customer, uuid4(), files, "test", now)


def extract(store: Store, read: Reader) -> bool:
    """Run one batch of extraction; return whether any file was waiting."""
    with store.db.writing() as w:
        batch = batches.claim(w, Queue.EXTRACTION, store.settings, datetime.now(UTC))
    if batch is not None:
        extract_all(store, read_claimed_batch(store, batch.token, batch.partition_day), read)
    return batch is not None
