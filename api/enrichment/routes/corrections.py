"""Clients' corrections of enriched transactions."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core.schemas.common import Paging
from api.core.schemas.jobs import JobView
from api.enrichment.schemas.corrections import (
    FAULTS,
    WRONG_SIDE,
    CorrectionListView,
    MadeCorrectionView,
    SentCorrection,
    describe_correction,
    describe_made,
)
from api.http.dependencies import Allow, Caller, CorrectionId, CustomerId, as_uuid
from api.http.documented import DAMAGED_FILE, envelope, refuses, shows
from api.http.idempotency import IDEMPOTENT
from api.http.responses import respond, respond_accepted, respond_accepted_job, totals
from api.http.route import Route
from pipelines.vocabulary.errors import InvalidRequest, NotFound
from storage.customers.customers import Customer
from storage.enrichment import corrections
from storage.enrichment.corrections import CorrectedRow, NewCorrection, Reach, StoredRows

router = APIRouter(
    route_class=Route, prefix="/v1/customer/{customerId}/transactions/corrections", tags=["Transactions"]
)
Corrector = Annotated[Caller, Depends(Allow("transactions:enrich"))]


@router.post(
    "",
    status_code=202,
    response_model=envelope(MadeCorrectionView),
    responses={200: {"model": envelope(MadeCorrectionView)}}
    | refuses(*FAULTS, "Transaction.NotFound", "Correction.TooMany", *DAMAGED_FILE),
    dependencies=[IDEMPOTENT],
)
def correct_transactions(caller: Corrector, customer_id: CustomerId, sent: SentCorrection) -> Response:
    """Correct one transaction, or all similar ones, including future ones.

    The job in the response changes the stored rows. A later correction overrides earlier ones, and a correction of a
    single transaction overrides all others. A `preview` responds with 200 and changes nothing; for a single
    transaction, it also offers the similar ones.
    """
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
    new = sent.record()
    stored, reached, row = _find_rows(caller, customer, new)
    offered = corrections.suggest_similar(caller.store.lake, stored, new, row) if sent.preview and row else None
    with caller.writing() as w:
        if sent.preview:
            return caller.store_response(w, respond(describe_made(reached, None, offered)))
        correction, job = corrections.make(w, customer, new, (stored, reached), caller.actor.who, caller.now)
        ids = {"correction_id": correction.correction_id, "job_id": job.job_id}
        caller.audit(w, "Correction.Made", customerId=customer.customer_id, correctionId=correction.correction_id)
        return caller.store_response(w, respond_accepted(describe_made(reached, ids), f"/v1/jobs/{job.job_id}/status"))


@router.get("", response_model=envelope(CorrectionListView), responses=refuses(*DAMAGED_FILE))
def list_corrections(caller: Corrector, customer_id: CustomerId, query: Annotated[Paging, Query()]) -> Response:
    """List the corrections for the customer and for all customers, newest first, including revoked ones."""
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        found = corrections.find(r, customer, query.requested_page())
        stored = corrections.read_stored_rows(r, caller.store.lake, customer, client_wide=False)
    counts = corrections.count_decided_rows(caller.store.lake, stored)
    items = [describe_correction(each, counts.get(each.correction_id, 0)) for each in found.items]
    return respond({"corrections": items, **totals(found)})


@router.delete(
    "/{correctionId}",
    status_code=202,
    response_model=envelope(JobView),
    responses=shows(202, "correction") | refuses(*DAMAGED_FILE),
)
def revoke_correction(caller: Corrector, customer_id: CustomerId, correction_id: CorrectionId) -> Response:
    """Revoke a correction: its rows go back to what the enrichment and the remaining corrections give them.

    A correction for all customers is revoked for all of them. Revoking a correction again returns the same job.
    """
    lake = caller.store.lake
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        correction = corrections.get(r, customer, as_uuid(correction_id))
        stored = corrections.read_stored_rows(r, lake, customer, client_wide=True) if correction.client_wide else None
    found_rows = None if stored is None else (stored, corrections.find_decided_customers(lake, stored, correction))
    with caller.writing() as w:
        job = corrections.revoke(w, customer, correction, found_rows, caller.actor.who, caller.now)
        caller.audit(w, "Correction.Revoked", customerId=customer.customer_id, correctionId=correction.correction_id)
    return respond_accepted_job(job)


def _find_rows(caller: Caller, customer: Customer, new: NewCorrection) -> tuple[StoredRows, Reach, CorrectedRow | None]:
    """Find the rows that the correction changes; for a correction of one transaction, also return that row.

    This may take long, so it is done before the writing transaction.

    Raises:
        NotFound: the single transaction is unknown.
        InvalidRequest: the transaction's direction is not the category's.
    """
    lake = caller.store.lake
    with caller.reading() as r:
        stored = corrections.read_stored_rows(r, lake, customer, client_wide=new.client_wide)
    row = None
    if new.transaction_id is not None:
        row = corrections.find_row(lake, stored, new.transaction_id)
        if row is None:
            raise NotFound("Transaction.NotFound", "The customer has no transaction with this id.")
        if new.direction not in (None, row.direction):
            raise InvalidRequest(WRONG_SIDE.code, WRONG_SIDE.message, (WRONG_SIDE,))
    return stored, corrections.measure_reach(lake, stored, new), row
