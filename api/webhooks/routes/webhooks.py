"""Webhook subscriptions, and what became of their deliveries."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends
from starlette.responses import Response

from api.core.answers import accepted, answer, encode, listing, streamed, totals
from api.core.deferred import Body, JsonBody, Query, QueryOf
from api.core.dependencies import Allow, Caller, DeliveryId, SubscriptionId, as_uuid
from api.core.idempotency import idempotent
from api.core.in_turn import InTurn
from api.core.operations import gives
from api.core.schemas.common import Paging
from api.webhooks import samples
from api.webhooks.schemas import (
    UNKNOWN_CUSTOMER,
    WRONG_COUNT,
    ChangedSubscription,
    CreatedSubscriptionView,
    DeliveriesQuery,
    DeliveryListView,
    DeliveryView,
    NewSubscription,
    Resending,
    ResentView,
    RotatedSecretView,
    ScopedCustomers,
    SubscribedCustomers,
    SubscriptionListView,
    SubscriptionView,
    SummaryView,
)
from pipelines.vocabulary.errors import Conflict, Fault, InvalidRequest
from storage.core.database import Reading
from storage.core.paging import Paged
from storage.customers import customers
from storage.webhooks import delivery_figures, delivery_log, outbox, subscriptions
from storage.webhooks.delivery_log import Filter
from storage.webhooks.subscriptions import Subscription

router = APIRouter(route_class=InTurn, prefix="/v1/webhooks", tags=["Webhook subscriptions"])
Subscriber = Annotated[Caller, Depends(Allow("webhooks:subscribe"))]
SubscriptionBody = Annotated[Body[NewSubscription], Depends(JsonBody(NewSubscription))]
CustomersBody = Annotated[Body[ScopedCustomers], Depends(JsonBody(ScopedCustomers))]
ChangesBody = Annotated[Body[ChangedSubscription], Depends(JsonBody(ChangedSubscription))]
ResendingBody = Annotated[Body[Resending], Depends(JsonBody(Resending))]
WhichPage = Annotated[Query[Paging], Depends(QueryOf(Paging))]
WhichDeliveries = Annotated[Query[DeliveriesQuery], Depends(QueryOf(DeliveriesQuery))]
REFUSED_SCOPES = [UNKNOWN_CUSTOMER, WRONG_COUNT]
REFUSED_FILTERS = ["Customer.NotFound", "Webhook.EventNotFound", "Webhook.DeliveryNotFound"]  # of ids
TEST_UNDER_WAY = "Webhook.TestUnderWay"
DELIVERIES_A_SLICE = 100  # each attempt keeps up to 16 KiB of an answer
SECRET_NOT_REPLAYABLE = "Idempotency.SecretNotReplayable"


@router.post(
    "/subscriptions",
    **gives(
        CreatedSubscriptionView,
        201,
        refuses=[
            *REFUSED_SCOPES,
            "Webhook.UrlNotHttps",
            "Webhook.UrlForbidden",
            "Webhook.TooManySubscriptions",
            SECRET_NOT_REPLAYABLE,
        ],
    ),
)
@idempotent
def create_subscription(caller: Subscriber, body: SubscriptionBody) -> Response:
    """Subscribe a URL to one type of event. The signing secret is in this answer and in no other."""
    new = _read_new(caller, body)
    with caller.writing() as w:
        made, secret = subscriptions.create(
            w,
            caller.client_id,
            new.event_type,
            new.webhook_url,
            new.customer_ids or (),
            caller.store.vault,
            caller.now,
            new.patience,
        )
        caller.audit(w, "Subscription.Created", subscriptionId=made.subscription_id)
        location = {"Location": f"/v1/webhooks/subscriptions/{made.subscription_id}"}
        shown = answer(CreatedSubscriptionView.of(vars(made) | {"secret": secret}), status=201, headers=location)
        return caller.keep(w, shown, again=_not_replayable(made))


@router.get("/subscriptions", **gives(SubscriptionListView))
def list_subscriptions(caller: Subscriber, query: WhichPage) -> Response:
    """List subscriptions in order of creation."""
    page = query.read().asked()
    with caller.reading() as r:
        return listing("subscriptions", subscriptions.find(r, caller.client_id, page), SubscriptionView)


@router.get("/subscriptions/{subscriptionId}", **gives(SubscriptionView))
def get_subscription(caller: Subscriber, subscription_id: SubscriptionId) -> Response:
    """Read one subscription."""
    with caller.reading() as r:
        return answer(SubscriptionView.of(caller.subscription(r, subscription_id)))


@router.patch("/subscriptions/{subscriptionId}", **gives(SubscriptionView))
def change_subscription(caller: Subscriber, subscription_id: SubscriptionId, body: ChangesBody) -> Response:
    """Change how failures are taken: `maxRetries`, `pauseAfterFailures`. What isn't sent stays as it is."""
    with caller.reading() as r:
        known = caller.subscription(r, subscription_id).subscription_id
    changes = body.read().changes()
    with caller.writing() as w:
        changed = subscriptions.change(w, caller.client_id, known, changes)
        caller.audit(w, "Subscription.Changed", subscriptionId=known)
    return answer(SubscriptionView.of(changed))


@router.post("/subscriptions/{subscriptionId}/pause", **gives(SubscriptionView))
def pause_subscription(caller: Subscriber, subscription_id: SubscriptionId) -> Response:
    """Send nothing until it is resumed. Events that happen meanwhile are kept; a delivery under way still ends."""
    with caller.writing() as w:
        which = (caller.client_id, as_uuid(subscription_id))
        paused, changed = subscriptions.pause(w, *which, subscriptions.BY_CLIENT, caller.now)
        if changed:
            caller.audit(w, "Subscription.Paused", subscriptionId=paused.subscription_id)
    return answer(SubscriptionView.of(paused))


@router.post("/subscriptions/{subscriptionId}/resume", **gives(SubscriptionView))
def resume_subscription(caller: Subscriber, subscription_id: SubscriptionId) -> Response:
    """Send what has waited, in its order, and everything from now on. Failures are counted anew."""
    with caller.writing() as w:
        resumed, changed = subscriptions.resume(w, caller.client_id, as_uuid(subscription_id))
        if changed:
            caller.audit(w, "Subscription.Resumed", subscriptionId=resumed.subscription_id)
    return answer(SubscriptionView.of(resumed))


@router.get("/subscriptions/{subscriptionId}/summary", **gives(SummaryView))
def get_subscription_summary(caller: Subscriber, subscription_id: SubscriptionId) -> Response:
    """How the receiver has fared in the last 24 hours and 7 days, and what waits for it."""
    with caller.reading() as r:
        known = caller.subscription(r, subscription_id)
        return answer(SummaryView.of(delivery_figures.summary(r, known, caller.now)))


@router.post(
    "/subscriptions/{subscriptionId}/test",
    **gives(DeliveryView, 202, refuses=[TEST_UNDER_WAY], example="test"),
)
@idempotent
def test_subscription(caller: Subscriber, subscription_id: SubscriptionId) -> Response:
    """Send a signed sample event of the subscription's type, with `"test": true`. It is sent even while the
    subscription is paused, and is tried once.
    """
    with caller.writing() as w:
        receiver = caller.subscription(w, subscription_id)
        made = outbox.enqueue_test(w, samples.event_for(receiver, caller.now), receiver.subscription_id)
        queued = delivery_log.get(w, caller.client_id, made)
        caller.audit(w, "Subscription.Tested", subscriptionId=receiver.subscription_id, deliveryId=queued.delivery_id)
        return caller.keep(w, accepted(DeliveryView.of(queued), _log_of(receiver.subscription_id)))


@router.post("/subscriptions/{subscriptionId}/resend", **gives(ResentView, 202, refuses=[UNKNOWN_CUSTOMER]))
@idempotent
def resend_deliveries(caller: Subscriber, subscription_id: SubscriptionId, body: ResendingBody) -> Response:
    """Send everything once more that was made since a time and has failed: the same bytes, the oldest first."""
    with caller.writing() as w:
        receiver = caller.subscription(w, subscription_id).subscription_id
        wanted = body.read()
        customer = _customer_number(w, caller, wanted.customer_id)
        resent, more = delivery_log.resend_all(
            w,
            wanted.since,
            caller.now,
            until=wanted.until,
            subscription_id=receiver,
            customer_number=customer,
            status=wanted.status,
        )
        caller.audit(w, "Delivery.AllResent", subscriptionId=receiver)
        return caller.keep(w, accepted(ResentView(resent=resent, more=more), _log_of(receiver)))


@router.delete("/subscriptions/{subscriptionId}", **gives(SubscriptionView))
def delete_subscription(caller: Subscriber, subscription_id: SubscriptionId) -> Response:
    """Delete a subscription. Nothing more is sent to it; a delivery under way may still arrive, within 30 s."""
    with caller.writing() as w:
        deleted = subscriptions.delete(w, caller.client_id, as_uuid(subscription_id))
        caller.audit(w, "Subscription.Deleted", subscriptionId=deleted.subscription_id)
    return answer(SubscriptionView.of(deleted))


@router.post("/subscriptions/{subscriptionId}/secret/rotate", **gives(RotatedSecretView))
def rotate_secret(caller: Subscriber, subscription_id: SubscriptionId) -> Response:
    """Replace the signing secret. What is sent from now on is signed with the new one, whenever its event happened.

    A delivery that is under way may still arrive with the old signature, within 30 s.
    """
    rotated = as_uuid(subscription_id)
    with caller.writing() as w:
        secret = subscriptions.rotate(w, caller.client_id, rotated, caller.store.vault)
        caller.audit(w, "Subscription.SecretRotated", subscriptionId=rotated)
    return answer(RotatedSecretView(webhook_subscription_id=rotated, secret=secret))


@router.post("/subscriptions/{subscriptionId}/customers", **gives(SubscriptionView, refuses=REFUSED_SCOPES))
def add_customers(caller: Subscriber, subscription_id: SubscriptionId, body: CustomersBody) -> Response:
    """Scope the subscription to these customers, too."""
    scope = _named(caller, subscription_id, body)
    with caller.writing() as w:
        scoped = subscriptions.add_customers(w, caller.client_id, *scope)
        caller.audit(w, "Subscription.CustomersAdded", subscriptionId=scope[0], customerIds=scope[1])
    return answer(SubscriptionView.of(scoped))


@router.delete("/subscriptions/{subscriptionId}/customers", **gives(SubscriptionView, refuses=REFUSED_SCOPES))
def remove_customers(caller: Subscriber, subscription_id: SubscriptionId, body: CustomersBody) -> Response:
    """Take customers out of the scope. Without any left, the subscription receives every customer's events."""
    scope = _named(caller, subscription_id, body)
    with caller.writing() as w:
        scoped = subscriptions.remove_customers(w, caller.client_id, *scope)
        caller.audit(w, "Subscription.CustomersRemoved", subscriptionId=scope[0], customerIds=scope[1])
    return answer(SubscriptionView.of(scoped))


@router.get("/subscriptions/{subscriptionId}/deliveries", **gives(DeliveryListView, refuses=REFUSED_FILTERS))
def list_deliveries(caller: Subscriber, subscription_id: SubscriptionId, query: WhichDeliveries) -> Response:
    """List a subscription's deliveries, newest first, with every attempt."""
    with caller.reading() as r:
        known = caller.subscription(r, subscription_id)
        found = _found(r, caller, query.read(), known.subscription_id)
    return streamed("deliveries", totals(found), _in_slices(caller, found.items))


@router.get("/deliveries", **gives(DeliveryListView, refuses=REFUSED_FILTERS))
def list_all_deliveries(caller: Subscriber, query: WhichDeliveries) -> Response:
    """List the deliveries of all subscriptions, those that were deleted too, newest first, with every attempt."""
    with caller.reading() as r:
        found = _found(r, caller, query.read(), None)
    return streamed("deliveries", totals(found), _in_slices(caller, found.items))


@router.post(
    "/deliveries/{deliveryId}/resend",
    **gives(DeliveryView, 202, refuses=["Webhook.DeliveryInFlight", "Webhook.SubscriptionDeleted"]),
)
@idempotent
def resend_delivery(caller: Subscriber, delivery_id: DeliveryId) -> Response:
    """Send a delivery once more: the same bytes, with the same `eventId`."""
    with caller.writing() as w:
        due = delivery_log.resend(w, caller.client_id, as_uuid(delivery_id), caller.now)
        caller.audit(w, "Delivery.Resent", deliveryId=due.delivery_id)
        return caller.keep(w, accepted(DeliveryView.of(due), _log_of(due.subscription_id)))


def _log_of(subscription_id: UUID) -> str:
    return f"/v1/webhooks/subscriptions/{subscription_id}/deliveries"


def _found(r: Reading, caller: Caller, query: DeliveriesQuery, subscription_id: UUID | None) -> Paged[int]:
    """The numbers of the client's deliveries that the query asks for."""
    wanted = Filter(caller.client_id, subscription_id, **query.filters())
    if query.customer_id is not None:
        customer = customers.get(r, caller.client_id, query.customer_id)
        wanted = replace(wanted, customer_number=customer.number)
    return delivery_log.find(r, wanted, query.asked())


def _customer_number(r: Reading, caller: Caller, customer_id: UUID | None) -> int | None:
    """Raises InvalidRequest where it isn't the caller's own."""
    known = customers.numbers(r, caller.client_id, [customer_id] if customer_id else [])
    if customer_id is None or customer_id in known:
        return known.get(customer_id) if customer_id else None
    unknown = Fault("/customerId", UNKNOWN_CUSTOMER, "There is no customer with this id.")
    raise InvalidRequest(UNKNOWN_CUSTOMER, unknown.message, (unknown,))


def _in_slices(caller: Caller, numbers: Sequence[int]) -> Iterator[bytes]:
    """Deliveries as JSON objects joined by commas, slice by slice."""
    for start in range(0, len(numbers), DELIVERIES_A_SLICE):
        with caller.reading() as r:
            found = delivery_log.read(r, numbers[start : start + DELIVERIES_A_SLICE])
        yield b",".join(encode(DeliveryView.of(each)) for each in found)


def _read_new(caller: Caller, body: Body[NewSubscription]) -> NewSubscription:
    """Read a new subscription; customers who are unknown are told together with what else is wrong with it."""
    try:
        return body.read(reach=caller.store.settings.webhook_reach)
    except InvalidRequest as refusal:
        raise _with_unknown_customers(refusal, caller, body) from None


def _with_unknown_customers(refusal: InvalidRequest, caller: Caller, body: Body[NewSubscription]) -> InvalidRequest:
    try:
        named = Body(SubscribedCustomers, body.content, body.decoded).read().customer_ids or ()
        with caller.reading() as r:
            subscriptions.own_customers(r, caller.client_id, named)
    except InvalidRequest as unknown:
        more = tuple(fault for fault in unknown.faults if fault not in refusal.faults)
        if more:
            faults = refusal.faults + more
            return InvalidRequest("Request.Invalid", "Several things are wrong with the request.", faults)
    return refusal


def _not_replayable(made: Subscription) -> Conflict:
    detail = f"This created subscription {made.subscription_id}. Its secret is shown once: rotate it for a new one."
    return Conflict(SECRET_NOT_REPLAYABLE, detail)


def _named(caller: Caller, subscription_id: str, body: Body[ScopedCustomers]) -> tuple[UUID, list[UUID]]:
    """The subscription, if it is the caller's, and the customers in the body: read before any lock is taken."""
    with caller.reading() as r:
        known = caller.subscription(r, subscription_id)
    return known.subscription_id, body.read().customer_ids
