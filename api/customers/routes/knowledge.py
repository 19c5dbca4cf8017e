"""What a client knows about a customer besides its transactions: attributes and related parties, with history."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core.schemas.common import Paging
from api.customers.schemas.attributes import (
    AttributeChangeView,
    AttributeHistoryView,
    AttributesView,
    SentAttributes,
    describe_attributes,
)
from api.customers.schemas.known import Known
from api.customers.schemas.related_parties import PartiesView, PartyHistoryView, PartyListView, PartyView, SentParties
from api.http.dependencies import Allow, Caller, CustomerId
from api.http.documented import envelope, refuses
from api.http.responses import respond, totals
from api.http.route import Route
from storage.enrichment import related_parties
from storage.monitoring import attributes

router = APIRouter(route_class=Route, prefix="/v1/customer/{customerId}", tags=["Customers"])
AttributesCaller = Annotated[Caller, Depends(Allow("customer:attributes"))]
CHANGED_MEANWHILE = "Customer.ChangedMeanwhile"
PartiesCaller = Annotated[Caller, Depends(Allow("transactions:enrich", "transactions:extract"))]


@router.put(
    "/attributes",
    response_model=envelope(AttributesView),
    responses=refuses("Attribute.InvalidName", "Attribute.InvalidCount", "Attribute.TooMany", CHANGED_MEANWHILE),
)
def set_attributes(
    caller: AttributesCaller, customer_id: CustomerId, sent: SentAttributes, query: Annotated[Known, Query()]
) -> Response:
    """Set, change or (by null) remove attributes; attributes that are not sent stay unchanged."""
    with caller.writing() as w:
        customer = caller.customer(w, customer_id)
        attributes.put(w, customer, sent.records(), caller.actor.who, caller.now, query.known_changes)
        caller.audit(w, "Customer.AttributesSet", customerId=customer.customer_id)
        found = attributes.read_current(w, customer)
    return respond(AttributesView(attributes=describe_attributes(found, caller.now)))


@router.get("/attributes", response_model=envelope(AttributeHistoryView))
def get_attributes(caller: AttributesCaller, customer_id: CustomerId, query: Annotated[Paging, Query()]) -> Response:
    """Read the current attributes, and the history of all changes."""
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        changes = attributes.find_history(r, customer, query.requested_page())
        found = attributes.read_current(r, customer)
    history = [AttributeChangeView.of(change) for change in changes.items]
    return respond({"attributes": describe_attributes(found, caller.now), "history": history, **totals(changes)})


@router.put(
    "/related-parties",
    response_model=envelope(PartiesView),
    responses=refuses("RelatedParty.TooMany", CHANGED_MEANWHILE),
)
def set_related_parties(
    caller: PartiesCaller, customer_id: CustomerId, sent: SentParties, query: Annotated[Known, Query()]
) -> Response:
    """Replace the list of the customer's directors, guarantors, group companies and other related parties."""
    parties = sent.records()
    with caller.writing() as w:
        customer = caller.customer(w, customer_id)
        related_parties.put(w, customer, parties, caller.actor.who, caller.now, query.known_changes)
        caller.audit(w, "Customer.RelatedPartiesSet", customerId=customer.customer_id)
    return respond(PartiesView.of({"related_parties": parties}))


@router.get("/related-parties", response_model=envelope(PartyHistoryView))
def get_related_parties(caller: PartiesCaller, customer_id: CustomerId, query: Annotated[Paging, Query()]) -> Response:
    """Read the current list, and the history of earlier lists."""
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        lists = related_parties.find_history(r, customer, query.requested_page())
        parties = [PartyView.of(party) for party in related_parties.read_current(r, customer)]
    history = [PartyListView.of(each) for each in lists.items]
    return respond({"relatedParties": parties, "history": history, **totals(lists)})
