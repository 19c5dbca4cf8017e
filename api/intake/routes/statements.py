"""PDF statements in; what was read from them, and where on the page it stands."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from api.core.answers import answer, listing
from api.core.deferred import Query, QueryOf
from api.core.dependencies import Allow, Caller, CustomerId, PageNumber, StatementId, TransactionId, as_uuid
from api.core.idempotency import idempotent
from api.core.in_turn import InTurn
from api.core.operations import DAMAGED_FILE, gives, shows_picture
from api.core.schemas.common import Paging
from api.core.schemas.jobs import JobView
from api.core.uploads import Files, FilesBody
from api.intake import statements
from api.intake.schemas.statements import PageQuery, SourceView, StatementListView, StatementView, WholeStatementView
from storage.intake import statements as stored

router = APIRouter(route_class=InTurn, prefix="/v1/customer/{customerId}", tags=["Statements"])
Submitter = Annotated[Caller, Depends(Allow("transactions:extract"))]
Reader = Annotated[Caller, Depends(Allow("transactions:enrich", "transactions:extract", "transactions:aggregate"))]
SentFilesBody = Annotated[Files, Depends(FilesBody())]
WhichPage = Annotated[Query[Paging], Depends(QueryOf(Paging))]
WhichRow = Annotated[Query[PageQuery], Depends(QueryOf(PageQuery))]
NOT_A_FORM = ("Request.MalformedForm", "Statement.TooManyParts", "Statement.PasswordsDontMatch")
NOT_THE_FILES = ("Statement.WrongCount", "Statement.NotPdf", "Statement.FileTooLarge")


@router.post("/statements", **gives(JobView, 202, refuses=[*NOT_A_FORM, *NOT_THE_FILES], example="extraction"))
@idempotent
def submit_statements(caller: Submitter, customer_id: CustomerId, files: SentFilesBody) -> Response:
    """Submit PDF statements; a job, which the answer names, reads them and then enriches what they hold.

    A file that can't be read fails alone: the job's warnings say why. A file that the customer's submissions hold
    already is not read again; its rows count as duplicates.
    """
    return statements.submit(caller, customer_id, files)


@router.get("/statements", **gives(StatementListView))
def list_statements(caller: Reader, customer_id: CustomerId, query: WhichPage) -> Response:
    """List a customer's statements, the last read first; those of retracted submissions are gone."""
    with caller.reading() as r:
        found = stored.find(r, caller.customer(r, customer_id), query.read().asked())
    return listing("statements", found, StatementView)


@router.get("/statements/{statementId}", **gives(WholeStatementView, refuses=DAMAGED_FILE))
def get_statement(caller: Reader, customer_id: CustomerId, statement_id: StatementId) -> Response:
    """Read a statement with its rows, their places on the pages, and what is noticeable about its file."""
    found = statements.whole(caller, customer_id, as_uuid(statement_id))
    return answer(WholeStatementView.model_validate(found))


@router.get(
    "/statements/{statementId}/pages/{pageNumber}.png",
    **shows_picture(["Statement.RowNotFound", "Statement.PageLocked", "Statement.PageNotDrawn", *DAMAGED_FILE]),
)
def get_statement_page(
    caller: Reader, customer_id: CustomerId, statement_id: StatementId, page_number: PageNumber, query: WhichRow
) -> Response:
    """A page of the statement's file as a picture, with a row marked where `row` asks for one."""
    png = statements.page_png(caller, customer_id, as_uuid(statement_id), page_number, query)
    return Response(png, media_type="image/png")


@router.get(
    "/transactions/{transactionId}/source",
    **gives(SourceView, refuses=["Transaction.NoSource", "Statement.NotFound", *DAMAGED_FILE]),
)
def get_transaction_source(caller: Reader, customer_id: CustomerId, transaction_id: TransactionId) -> Response:
    """Where a transaction stands on the pages of a statement; 404 when it came as JSON."""
    return answer(SourceView.model_validate(statements.source(caller, customer_id, as_uuid(transaction_id))))
