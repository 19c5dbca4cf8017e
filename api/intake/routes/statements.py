"""Submit PDF statements, and read what was extracted from them and where it is on the page."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response

from api.core.schemas.jobs import JobView
from api.http.dependencies import Allow, Caller, CustomerId, Named, StatementId, TransactionId, as_uuid
from api.http.documented import DAMAGED_FILE, Picture, envelope, refuses, sends, shows
from api.http.idempotency import IDEMPOTENT
from api.http.responses import respond, respond_list
from api.http.route import Route
from api.http.uploads import Files
from api.intake import statements
from api.intake.schemas.statements import (
    PageQuery,
    SourceView,
    StatementListView,
    StatementsQuery,
    StatementView,
    WholeStatementView,
)
from storage.intake import statements as stored

router = APIRouter(route_class=Route, prefix="/v1/customer/{customerId}", tags=["Statements"])
Submitter = Annotated[Caller, Depends(Allow("transactions:extract"))]
Reader = Annotated[Caller, Depends(Allow("transactions:enrich", "transactions:extract", "transactions:aggregate"))]
PageNumber = Annotated[
    str,
    Path(
        alias="pageNumber", description="Page of the file, from 1.", json_schema_extra={"pattern": "^[1-9][0-9]{0,4}$"}
    ),
    Named("Statement.PageNotFound", ("getStatement", "200", "/data/firstPage"), statements.require_page),
]
FORM_ERRORS = ("Request.MalformedForm", "Statement.TooManyParts", "Statement.PasswordsDontMatch")
FILE_ERRORS = ("Statement.WrongCount", "Statement.NotPdf", "Statement.FileTooLarge")


@router.post(
    "/statements",
    status_code=202,
    response_model=envelope(JobView),
    responses=shows(202, "extraction") | refuses(*FORM_ERRORS, *FILE_ERRORS),
    dependencies=[IDEMPOTENT],
)
def submit_statements(caller: Submitter, customer_id: CustomerId, files: Files) -> Response:
    """Submit PDF statements; the job in the response reads them and then enriches their transactions.

    A file that can't be read fails by itself: the job's warnings say why. A file that was submitted for the customer
    before is not read again; its rows count as duplicates.
    """
    return statements.submit(caller, customer_id, files)


@router.get("/statements", response_model=envelope(StatementListView), responses=refuses("Job.NotFound"))
def list_statements(caller: Reader, customer_id: CustomerId, query: Annotated[StatementsQuery, Query()]) -> Response:
    """List a customer's statements, most recently read first, without those of retracted submissions."""
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        if query.job_id is not None:
            caller.job_of(r, customer, query.job_id)
        found = stored.find(r, customer, query.requested_page(), query.job_id)
    return respond_list("statements", found, StatementView)


@router.get("/statements/{statementId}", response_model=envelope(WholeStatementView), responses=refuses(*DAMAGED_FILE))
def get_statement(caller: Reader, customer_id: CustomerId, statement_id: StatementId) -> Response:
    """Read a statement with its rows, their places on the pages, and signals about its file."""
    fields = statements.describe_statement(caller, customer_id, as_uuid(statement_id))
    return respond(WholeStatementView.model_validate(fields))


@router.get(
    "/statements/{statementId}/pages/{pageNumber}.png",
    response_class=Picture,
    responses=sends(Picture)
    | refuses("Statement.RowNotFound", "Statement.PageLocked", "Statement.PageNotDrawn", *DAMAGED_FILE),
)
def get_statement_page(
    caller: Reader,
    customer_id: CustomerId,
    statement_id: StatementId,
    page_number: PageNumber,
    query: Annotated[PageQuery, Query()],
) -> Response:
    """Draw a page of the statement's file as a picture, with a row marked if `row` is given."""
    return Picture(statements.draw_page(caller, customer_id, statement_id, page_number, query.row))


@router.get(
    "/transactions/{transactionId}/source",
    response_model=envelope(SourceView),
    responses=refuses("Transaction.NoSource", "Statement.NotFound", *DAMAGED_FILE),
)
def get_transaction_source(caller: Reader, customer_id: CustomerId, transaction_id: TransactionId) -> Response:
    """Find a transaction on the pages of its statement; 404 if it was sent as JSON or CSV."""
    return respond(SourceView.model_validate(statements.find_source(caller, customer_id, as_uuid(transaction_id))))
