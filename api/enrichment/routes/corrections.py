"""What clients correct in the enrichment of their customers' transactions."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from api.core.answers import accepted, accepted_job, answer, totals
from api.core.deferred import Body, JsonBody, Query, QueryOf
from api.core.dependencies import Allow, Caller, CorrectionId, CustomerId, as_uuid
from api.core.idempotency import idempotent
from api.core.in_turn import InTurn
from api.core.operations import DAMAGED_FILE, gives
from api.core.schemas.common import Paging
from api.core.schemas.jobs import JobView
from api.enrichment.schemas.corrections import (
    REFUSED,
    WRONG_SIDE,
    CorrectionListView,
    MadeCorrectionView,
    SentCorrection,
    described,
    shown,
)
from pipelines.vocabulary.errors import InvalidRequest, NotFound
from storage.customers.customers import Customer
from storage.enrichment import corrections
from storage.enrichment.corrections import Grounds, NewCorrection, Reach

router = APIRouter(
    route_class=InTurn, prefix="/v1/customer/{customerId}/transactions/corrections", tags=["Transactions"]
)
Corrector = Annotated[Caller, Depends(Allow("transactions:enrich"))]
CorrectionBody = Annotated[Body[SentCorrection], Depends(JsonBody(SentCorrection))]
WhichPage = Annotated[Query[Paging], Depends(QueryOf(Paging))]


@router.post("", **gives(MadeCorrectionView, 202, also=200, refuses=[*REFUSED, *DAMAGED_FILE]))
@idempotent
def correct_transactions(caller: Corrector, customer_id: CustomerId, body: CorrectionBody) -> Response:
    """Say what one transaction is, or all like it: those held now, by the job that the answer names, and later ones.

    The later of two corrections wins, and one of a single transaction before all others. A `preview` answers 200 and
    changes nothing.
    """
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
    sent = body.read()
    new = sent.record()
    found_rows = _found_rows(caller, customer, new)
    with caller.writing() as w:
        if sent.preview:
            return caller.keep(w, answer(described(found_rows[1], None)))
        correction, job = corrections.make(w, customer, new, found_rows, caller.actor.who, caller.now)
        ids = {"correction_id": correction.correction_id, "job_id": job.job_id}
        caller.audit(w, "Correction.Made", customerId=customer.customer_id, correctionId=correction.correction_id)
        return caller.keep(w, accepted(described(found_rows[1], ids), f"/v1/jobs/{job.job_id}/status"))


@router.get("", **gives(CorrectionListView, refuses=DAMAGED_FILE))
def list_corrections(caller: Corrector, customer_id: CustomerId, query: WhichPage) -> Response:
    """List what was corrected for the customer and for all the client's, newest first; revoked ones stay, marked."""
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        found = corrections.find(r, customer, query.read().asked())
        on = corrections.grounds(r, caller.store.lake, customer, client_wide=False)
    counts = corrections.counts(caller.store.lake, on)
    items = [shown(each, counts.get(each.correction_id, 0)) for each in found.items]
    return answer({"corrections": items, **totals(found)})


@router.delete("/{correctionId}", **gives(JobView, 202, refuses=DAMAGED_FILE, example="correction"))
def revoke_correction(caller: Corrector, customer_id: CustomerId, correction_id: CorrectionId) -> Response:
    """Let a correction hold no more: what it decided returns to what enrichment and other corrections say.

    One for all the client's customers is revoked for all of them. Asked again, the answer names the same job.
    """
    lake = caller.store.lake
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        correction = corrections.get(r, customer, as_uuid(correction_id))
        on = corrections.grounds(r, lake, customer, client_wide=True) if correction.client_wide else None
    found_rows = None if on is None else (on, corrections.decided_by(lake, on, correction))
    with caller.writing() as w:
        job = corrections.revoke(w, customer, correction, found_rows, caller.actor.who, caller.now)
        caller.audit(w, "Correction.Revoked", customerId=customer.customer_id, correctionId=correction.correction_id)
    return accepted_job(job)


def _found_rows(caller: Caller, customer: Customer, new: NewCorrection) -> tuple[Grounds, Reach]:
    """What the correction does to what is held, before any transaction that writes begins: that may be much.

    Raises:
        NotFound: the one transaction meant is unknown.
        InvalidRequest: its side is not the category's.
    """
    lake = caller.store.lake
    with caller.reading() as r:
        on = corrections.grounds(r, lake, customer, client_wide=new.client_wide)
    if new.transaction_id is not None:
        direction = corrections.direction_of(lake, on, new.transaction_id)
        if direction is None:
            raise NotFound("Transaction.NotFound", "The customer has no transaction with this id.")
        if new.direction not in (None, direction):
            raise InvalidRequest(WRONG_SIDE.code, WRONG_SIDE.message, (WRONG_SIDE,))
    return on, corrections.reach(lake, on, new)
