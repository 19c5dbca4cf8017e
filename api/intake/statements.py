"""Accept PDF statements, and show where on their pages a row is.

The originals are encrypted and stored durably in the lake before a job refers to them; only then is the response 202.
"""

from collections.abc import Mapping, Sequence
from threading import BoundedSemaphore
from typing import Any
from uuid import UUID, uuid4

import polars as pl
from starlette.responses import Response

import isolation
from api.http.dependencies import Caller
from api.http.responses import respond_accepted_job
from api.http.uploads import Files, SentFile
from api.intake.submissions import audit_submission
from pipelines.intake.pdf.page.result import Box, Refusal
from pipelines.intake.statement_rows import shown_name
from pipelines.vocabulary.errors import Conflict, Fault, InvalidRequest, NotFound
from storage.core.database import Reading
from storage.core.vault import read_key_id
from storage.customers.customers import Customer
from storage.enrichment import transactions
from storage.intake import statements
from storage.intake.statements import NewFile, StatementFile, StoredStatement

MAGIC = b"%PDF-"
SEALED_AT_ONCE = 4  # encrypting a file takes three times its size in memory
DRAWN_AT_ONCE = 2  # pages, each in a child process (our judgement)

sealing = BoundedSemaphore(SEALED_AT_ONCE)


def submit(caller: Caller, customer_id: str, files: Files) -> Response:
    """Store the files and respond with the accepted job.

    Raises:
        NotFound: the customer is not the caller's.
        InvalidRequest: none of the files is a PDF.
    """
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
    _require_a_pdf(files.sent)
    stored = [store_file(caller, each) for each in files.sent]
    with caller.writing() as w:
        job = statements.submit(w, caller.store.lake, customer, uuid4(), stored, caller.who, caller.now)
        audit_submission(caller, w, customer, job)
        return caller.store_response(w, respond_accepted_job(job))


def is_pdf(file: SentFile) -> bool:
    return MAGIC in file.head


def _require_a_pdf(files: Sequence[SentFile]) -> None:
    """Raise InvalidRequest if no file is a PDF. If one is, the others fail by themselves, in the job's warnings."""
    if not any(map(is_pdf, files)):
        faults = (Fault(f"/files/{i}", "Statement.NotPdf", "The file is not a PDF.") for i in range(len(files)))
        raise InvalidRequest("Statement.NotPdf", "No file is a PDF.", tuple(faults))


def store_file(caller: Caller, file: SentFile) -> NewFile:
    """Encrypt and store a file under a name of our own. A file that isn't a PDF is described but not stored."""
    file_id, name = uuid4(), shown_name(file.name)
    if not is_pdf(file):
        return NewFile(file_id, name, file.sha256, file.size, refusal=Refusal.CORRUPT, message="The file is not a PDF.")
    store = caller.store
    with sealing:
        sealed = statements.seal_original(store.vault, file_id, file.content())
        stored = store.lake.put(f"{statements.FOLDER}/{caller.now:%Y-%m-%d}/{file_id}.pdf.sealed", sealed)
    password = file.password and statements.seal_password(store.vault, file_id, file.password)
    return NewFile(file_id, name, file.sha256, file.size, stored, read_key_id(sealed), password or None)


def describe_statement(caller: Caller, customer_id: str, statement_id: UUID) -> dict[str, Any]:
    """Return the fields of `WholeStatementView`: a statement, the signals of its file, and its rows."""
    with caller.reading() as r:
        statement = statements.get(r, caller.customer(r, customer_id), statement_id)
        file = statements.get_file(r, statement.file_id)
        rows = statements.read_rows(r, caller.store.lake, statement)
    shown = rows.drop("statement_id").rename({"position": "index"}).with_columns(repeated=pl.col("index").is_null())
    return {**vars(statement), "had_password": file.had_password, "signals": file.signals, "rows": shown.to_dicts()}


def draw_page(caller: Caller, customer_id: str, statement_id: str, page: str, row: int | None) -> bytes:
    """Draw a page of the statement's file as PNG, with a row of the statement marked.

    Raises:
        NotFound: there is no such statement, page or row, or the row is on another page.
        Conflict: the page can't be drawn, or the file needs a password, which is not stored.
    """
    with caller.reading() as r:
        statement = caller.statement(r, customer_id, statement_id)
        file = statements.get_file(r, statement.file_id)
        number = _parse_page(file, page)
        marked = [] if row is None else _boxes(r, caller, statement, number, row)
    content = statements.open_original(caller.store, file)
    with caller.request.app.state.drawing.reserve(caller.requester, 1):
        png = isolation.draw_page(content, None, number, marked)
    if png is None and file.had_password:
        raise Conflict("Statement.PageLocked", "The file needs a password, and passwords are not stored.")
    if png is None:
        raise Conflict("Statement.PageNotDrawn", "The page can't be drawn within the limits.")
    return png


def require_page(caller: Caller, r: Reading, ids: Mapping[str, str]) -> None:
    """Raise NotFound if the file of the statement in the path has no such page."""
    statement = caller.statement(r, ids["customerId"], ids["statementId"])
    _parse_page(statements.get_file(r, statement.file_id), ids["pageNumber"])


def _parse_page(file: StatementFile, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and 1 <= int(text) <= (file.pages or 0)):
        raise NotFound("Statement.PageNotFound", "The statement's file has no such page.")
    return int(text)


def _boxes(r: Reading, caller: Caller, statement: StoredStatement, page: int, row: int) -> list[Box]:
    rows = statements.read_rows(r, caller.store.lake, statement).filter(pl.col("row") == row)
    on_page = [Box(**box) for boxes in rows["boxes"] for box in boxes if box["page"] == page]
    if not on_page:
        raise NotFound("Statement.RowNotFound", "The statement has no such row on this page.")
    return on_page


def find_source(caller: Caller, customer_id: str, transaction_id: UUID) -> dict[str, Any]:
    """Return the fields of `SourceView`: where a transaction is on the pages of its statement.

    Raises:
        NotFound: there is no such transaction, or it was sent as JSON or CSV.
    """
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        row = _read_transaction(r, caller, customer, transaction_id)
        if row["statement_id"] is None:
            raise NotFound("Transaction.NoSource", "The transaction was not read from a PDF.")
        statement = statements.get(r, customer, UUID(bytes=row["statement_id"]))
        rows = statements.read_rows(r, caller.store.lake, statement)
    [place] = rows.filter(pl.col("position") == row["position"]).to_dicts()
    return {
        "job_id": statement.job_id,
        "statement_id": statement.statement_id,
        "row": place["row"],
        "boxes": place["boxes"],
    }


def _read_transaction(r: Reading, caller: Caller, customer: Customer, transaction_id: UUID) -> dict[str, Any]:
    columns = ("transaction_id", "statement_id", "position")
    rows = transactions.posted_or_pending(r, caller.store.lake, customer, columns)
    found = rows.filter(pl.col("transaction_id") == transaction_id.bytes).collect()
    if found.is_empty():
        raise NotFound("Transaction.NotFound", "The customer has no transaction with this id.")
    return found.row(0, named=True)
