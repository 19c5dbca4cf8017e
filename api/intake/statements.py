"""Accepting PDF statements, and showing where on their pages a row stands.

The originals lie durable in the lake, sealed, before a job names them; then comes the 202.
"""

from collections.abc import Sequence
from threading import BoundedSemaphore
from typing import Any
from uuid import UUID, uuid4

import polars as pl
from starlette.responses import Response

import isolation
from api.core.answers import accepted_job
from api.core.deferred import Query
from api.core.dependencies import Caller
from api.core.uploads import Files, SentFile
from api.intake.schemas.statements import PageQuery
from pipelines.intake.pdf.page.result import Box, Refusal
from pipelines.intake.statement_rows import shown_name
from pipelines.vocabulary.errors import Conflict, Fault, InvalidRequest, NotFound
from storage.core.database import Reading
from storage.core.vault import key_of
from storage.customers.customers import Customer
from storage.enrichment import transactions
from storage.intake import statements
from storage.intake.statements import NewFile, StatementFile, StoredStatement

MAGIC = b"%PDF-"
SEALED_AT_ONCE = 4  # each takes three times its file's size in memory
DRAWN_AT_ONCE = 2

_sealing = BoundedSemaphore(SEALED_AT_ONCE)


def submit(caller: Caller, customer_id: str, files: Files) -> Response:
    """The answer that names the accepted job.

    Raises:
        NotFound: the customer is not the caller's.
        InvalidRequest: the request as a whole can't be understood, or none of its files is a PDF.
        TooLarge: a file is too large.
    """
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
    sent = files.read()
    _require_a_pdf(sent)
    taken_in = [_taken_in(caller, each) for each in sent]
    with caller.writing() as w:
        job = statements.submit(w, caller.store.lake, customer, uuid4(), taken_in, caller.now)
        return caller.keep(w, accepted_job(job))


def _is_pdf(file: SentFile) -> bool:
    return MAGIC in file.head


def _require_a_pdf(files: Sequence[SentFile]) -> None:
    """One that is none fails alone, unless it is alone."""
    if not any(map(_is_pdf, files)):
        faults = (Fault(f"/files/{i}", "Statement.NotPdf", "The file is not a PDF.") for i in range(len(files)))
        raise InvalidRequest("Statement.NotPdf", "No file is a PDF.", tuple(faults))


def _taken_in(caller: Caller, file: SentFile) -> NewFile:
    """The file under a name of ours, its original sealed and durable. What is no PDF is not kept."""
    file_id, name = uuid4(), shown_name(file.name)
    if not _is_pdf(file):
        return NewFile(file_id, name, file.sha256, file.size, refusal=Refusal.CORRUPT, message="It is not a PDF.")
    store = caller.store
    with _sealing:
        sealed = statements.seal_original(store.vault, file_id, file.content())
        stored = store.lake.put(f"{statements.FOLDER}/{caller.now:%Y-%m-%d}/{file_id}.pdf.sealed", sealed)
    password = file.password and statements.seal_password(store.vault, file_id, file.password)
    return NewFile(file_id, name, file.sha256, file.size, stored, key_of(sealed), password or None)


def whole(caller: Caller, customer_id: str, statement_id: UUID) -> dict[str, Any]:
    """A statement with the signals of its file and its rows, by the names of its view."""
    with caller.reading() as r:
        found = statements.get(r, caller.customer(r, customer_id), statement_id)
        signals = statements.get_file(r, found.file_id).signals
        rows = statements.rows_of(r, caller.store.lake, found)
    shown = rows.drop("statement_id").rename({"position": "index"}).with_columns(repeated=pl.col("index").is_null())
    return {**vars(found), "signals": signals, "rows": shown.to_dicts()}


def page_png(caller: Caller, customer_id: str, statement_id: UUID, page: str, query: Query[PageQuery]) -> bytes:
    """A page of the statement's file as a picture, with a row of the statement marked.

    Raises:
        NotFound: no such statement, page or row, or the row stands on another page.
        Conflict: the page can't be drawn; or the file opens with a password only, which is not kept.
    """
    with caller.reading() as r:
        found = statements.get(r, caller.customer(r, customer_id), statement_id)
        file = statements.get_file(r, found.file_id)
        number, row = _page(file, page), query.read().row
        marked = [] if row is None else _boxes(r, caller, found, number, row)
    content = statements.open_original(caller.store, file)
    with caller.request.app.state.drawing.taken(caller.asker, 1):
        png = isolation.page_png(content, None, number, marked)
    if png is None and file.had_password:
        raise Conflict("Statement.PageLocked", "The file opens with a password only, and that was not kept.")
    if png is None:
        raise Conflict("Statement.PageNotDrawn", "The page can't be drawn within the limits.")
    return png


def _page(file: StatementFile, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and 1 <= int(text) <= (file.pages or 0)):
        raise NotFound("Statement.PageNotFound", "The statement's file has no such page.")
    return int(text)


def _boxes(r: Reading, caller: Caller, statement: StoredStatement, page: int, row: int) -> list[Box]:
    rows = statements.rows_of(r, caller.store.lake, statement).filter(pl.col("row") == row)
    found = [Box(**box) for boxes in rows["boxes"] for box in boxes if box["page"] == page]
    if not found:
        raise NotFound("Statement.RowNotFound", "There is no such row of the statement on this page.")
    return found


def source(caller: Caller, customer_id: str, transaction_id: UUID) -> dict[str, Any]:
    """Where a transaction stands on the pages of a statement, by the names of its view.

    Raises:
        NotFound: no such transaction, or it came as JSON.
    """
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        row = _transaction(r, caller, customer, transaction_id)
        if row["statement_id"] is None:
            raise NotFound("Transaction.NoSource", "The transaction was not read from a PDF.")
        found = statements.get(r, customer, UUID(bytes=row["statement_id"]))
        rows = statements.rows_of(r, caller.store.lake, found)
    [place] = rows.filter(pl.col("position") == row["position"]).to_dicts()
    return {"job_id": found.job_id, "statement_id": found.statement_id, "row": place["row"], "boxes": place["boxes"]}


def _transaction(r: Reading, caller: Caller, customer: Customer, transaction_id: UUID) -> dict[str, Any]:
    columns = ("transaction_id", "statement_id", "position")
    rows = transactions.standing(r, caller.store.lake, customer, columns)
    found = rows.filter(pl.col("transaction_id") == transaction_id.bytes).collect()
    if found.is_empty():
        raise NotFound("Transaction.NotFound", "The customer has no transaction with this id.")
    return found.row(0, named=True)
