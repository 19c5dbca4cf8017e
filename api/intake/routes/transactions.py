"""Transactions in, and enriched transactions out."""

from collections.abc import Generator, Iterable
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends
from starlette.responses import Response

from api.core.answers import accepted_job, streamed, totals
from api.core.deferred import Body, JsonBody, Query, QueryOf
from api.core.dependencies import Allow, Caller, CustomerId, JobId, as_uuid
from api.core.derived import BYTES_A_LISTED_ROW
from api.core.idempotency import idempotent
from api.core.in_turn import InTurn
from api.core.operations import DAMAGED_FILE, gives
from api.core.schemas.common import Paging
from api.core.schemas.jobs import JobView
from api.intake import submissions, transactions_json
from api.intake.schemas.transactions import Submission, TransactionListView, TransactionsQuery
from storage.core.paging import Paged
from storage.customers import customers
from storage.enrichment import transactions
from storage.enrichment.transactions import Listing
from storage.jobs import jobs

router = APIRouter(route_class=InTurn, prefix="/v1", tags=["Transactions"])
Submitter = Annotated[Caller, Depends(Allow("transactions:enrich"))]
Reader = Annotated[Caller, Depends(Allow("transactions:enrich", "transactions:extract", "transactions:aggregate"))]
SubmissionBody = Annotated[Body[Submission], Depends(JsonBody(Submission, rows="transactions"))]
WhichTransactions = Annotated[Query[TransactionsQuery], Depends(QueryOf(TransactionsQuery))]
WhichPage = Annotated[Query[Paging], Depends(QueryOf(Paging))]


@router.post("/customer/{customerId}/transactions", **gives(JobView, 202, refuses=["Submission.WrongCount"]))
@idempotent
def submit_transactions(caller: Submitter, customer_id: CustomerId, body: SubmissionBody) -> Response:
    """Submit transactions of one account; a job, which the answer names, enriches them."""
    return submissions.submit(caller, customer_id, body)


@router.delete(
    "/customer/{customerId}/submissions/{jobId}",
    **gives(JobView, 202, refuses=["Submission.Unfinished", "Submission.Failed"], example="retraction"),
)
def retract_submission(caller: Submitter, customer_id: CustomerId, job_id: JobId) -> Response:
    """Take a submission's rows back, as if they had never been sent; poll the job that the answer names.

    What later submissions repeated becomes theirs, and what the rows replaced stands again. Asked again, the answer
    names the same job.
    """
    with caller.writing() as w:
        customer = caller.customer(w, customer_id)
        submission = caller.job_of(w, customer, as_uuid(job_id))
        retraction = jobs.request_retraction(w, customer, submission, caller.now)
        caller.audit(w, "Submission.Retracted", customerId=customer.customer_id, jobId=submission.job_id)
    return accepted_job(retraction)


@router.get(
    "/customer/{customerId}/transactions", **gives(TransactionListView, refuses=["Job.NotFound", *DAMAGED_FILE])
)
def list_customer_transactions(caller: Reader, customer_id: CustomerId, query: WhichTransactions) -> Response:
    """A customer's enriched transactions, by date and position."""
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        which = query.read()
        if which.job_id is not None:
            caller.job_of(r, customer, which.job_id)
        found = transactions.of_customer(r, caller.store.lake, customer, which.job_id, which.asked())
    return _listing(caller, found)


@router.get("/transactions", **gives(TransactionListView, refuses=DAMAGED_FILE))
def list_transactions(caller: Reader, query: WhichPage) -> Response:
    """The enriched transactions of all customers, by date."""
    page = query.read().asked()
    with caller.reading() as r:
        found = transactions.of_client(r, caller.store.lake, caller.client_id, page)
    return _listing(caller, found)


def _listing(caller: Caller, found: Listing) -> Response:
    """Sent in slices, so that a long history takes no more memory than a short one."""

    def ids_of(numbers: Iterable[int]) -> dict[int, UUID]:
        with caller.reading() as r:
            return customers.ids_of(r, numbers)

    counts = totals(Paged(range(found.total), found.total, found.page))
    rows = transactions_json.in_slices(found, ids_of)
    return streamed("transactions", counts, held(caller, found.part_rows * BYTES_A_LISTED_ROW, rows))


def held(caller: Caller, amount: int, slices: Iterable[bytes]) -> Generator[bytes, None, None]:
    """The slices, with room for so many bytes from the first to the last of them."""
    with caller.request.app.state.memory.taken(caller.asker, amount):
        yield from slices
