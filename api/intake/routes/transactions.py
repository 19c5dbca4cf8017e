"""Submit and retract transactions, and list enriched ones."""

from collections.abc import Callable, Generator, Iterable, Mapping
from types import MappingProxyType
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core.derived import BYTES_PER_LISTED_ROW
from api.core.schemas.jobs import JobView
from api.http.dependencies import Allow, Caller, CustomerId, JobId, as_uuid
from api.http.documented import DAMAGED_FILE, envelope, refuses, shows
from api.http.idempotency import IDEMPOTENT
from api.http.responses import respond_accepted_job, stream_list, totals
from api.http.route import Route
from api.intake import submissions, transactions_json
from api.intake.cursors import cursor_text
from api.intake.schemas.transactions import (
    NEWEST_FIRST,
    ClientTransactionListView,
    ClientTransactionsQuery,
    CustomerTransactionListView,
    Submission,
    TotalsView,
    TransactionsQuery,
)
from storage.core.paging import Paged
from storage.customers import customers
from storage.enrichment import client_listing, transactions
from storage.enrichment.transactions import Listing
from storage.jobs import jobs

IdsOf = Callable[[Iterable[int]], dict[int, UUID]]

router = APIRouter(route_class=Route, prefix="/v1", tags=["Transactions"])
Submitter = Annotated[Caller, Depends(Allow("transactions:enrich"))]
Reader = Annotated[Caller, Depends(Allow("transactions:enrich", "transactions:extract", "transactions:aggregate"))]


@router.post(
    "/customer/{customerId}/transactions",
    status_code=202,
    response_model=envelope(JobView),
    responses=refuses("Submission.WrongCount"),
    dependencies=[IDEMPOTENT],
)
def submit_transactions(caller: Submitter, customer_id: CustomerId, sent: Submission) -> Response:
    """Submit transactions of one account; the job in the response enriches them."""
    return submissions.submit(caller, customer_id, sent)


@router.delete(
    "/customer/{customerId}/submissions/{jobId}",
    status_code=202,
    response_model=envelope(JobView),
    responses=shows(202, "retraction") | refuses("Submission.Unfinished", "Submission.Failed"),
)
def retract_submission(caller: Submitter, customer_id: CustomerId, job_id: JobId) -> Response:
    """Retract a submission's rows, as if they had never been sent; poll the job in the response.

    Rows that later submissions repeated now count as theirs, and rows that the retracted ones had replaced count again.
    Repeating this request returns the same job.
    """
    with caller.writing() as w:
        customer = caller.customer(w, customer_id)
        submission = caller.job_of(w, customer, as_uuid(job_id))
        retraction = jobs.request_retraction(w, customer, submission, caller.who, caller.now)
        caller.audit(w, "Submission.Retracted", customerId=customer.customer_id, jobId=submission.job_id)
    return respond_accepted_job(retraction)


@router.get(
    "/customer/{customerId}/transactions",
    response_model=envelope(CustomerTransactionListView),
    responses=refuses("Job.NotFound", *DAMAGED_FILE),
)
def list_customer_transactions(
    caller: Reader, customer_id: CustomerId, query: Annotated[TransactionsQuery, Query()]
) -> Response:
    """List a customer's enriched transactions, by date and position: all of them, or those that a filter chooses."""
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        if query.job_id is not None:
            caller.job_of(r, customer, query.job_id)
        found = transactions.list_transactions(
            r,
            caller.store.lake,
            customer,
            query.job_id,
            query.requested_page(),
            query.row_filter,
            newest_first=query.sort == NEWEST_FIRST,
        )
    ids = {customer.number: customer.customer_id}
    return _listing(caller, found, lambda _: ids, {"totals": TotalsView.of(found.totals)})


@router.get("/transactions", response_model=envelope(ClientTransactionListView), responses=refuses(*DAMAGED_FILE))
def list_transactions(caller: Reader, query: Annotated[ClientTransactionsQuery, Query()]) -> Response:
    """List the enriched transactions of all customers, by date, in pages or from a cursor.

    Rows that are added or removed meanwhile shift the pages, but not a cursor.
    """

    def ids_of(numbers: Iterable[int]) -> dict[int, UUID]:
        with caller.reading() as r:
            return customers.ids_of(r, numbers)

    if query.cursor is not None:
        found, following = client_listing.read_page_after(caller.store, caller.client_id, query.cursor, query.count)
        after = None if following is None else cursor_text(following)
        return _listing(caller, found, ids_of, {"currentPage": None, "nextCursor": after})
    if (page := query.requested_page()) is not None:
        return _listing(caller, client_listing.read_page(caller.store, caller.client_id, page), ids_of)
    with caller.reading() as r:
        found = client_listing.list_everything(r, caller.store.lake, caller.client_id)
    return _listing(caller, found, ids_of)


def _listing(
    caller: Caller, found: Listing, ids_of: IdsOf, also: Mapping[str, object] = MappingProxyType({})
) -> Response:
    """Respond in slices, so that a long history takes no more memory than a short one.

    Args:
        ids_of: returns public ids of customers by their numbers.
        also: members besides the counts, or instead of them.
    """
    counts = {**totals(Paged(range(found.total), found.total, found.page)), **also}
    rows = transactions_json.in_slices(found, ids_of)
    return stream_list("transactions", counts, hold_memory(caller, found.part_rows * BYTES_PER_LISTED_ROW, rows))


def hold_memory(caller: Caller, amount: int, slices: Iterable[bytes]) -> Generator[bytes, None, None]:
    """Yield the slices. From the first to the last of them, `amount` bytes of memory count as taken."""
    with caller.request.app.state.memory.reserve(caller.requester, amount):
        yield from slices
