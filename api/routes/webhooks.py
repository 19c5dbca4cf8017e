"""Webhook subscriptions, and what became of their deliveries."""

import socket
from collections.abc import Iterator, Sequence
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends
from starlette.responses import Response

from api.answers import accepted, answer, encode, listing, streamed, totals
from api.dependencies import Allow, Caller, DeliveryId, SubscriptionId, as_uuid
from api.once import once
from api.operations import gives
from api.schemas.common import Paging
from api.schemas.webhooks import (
    UNKNOWN_CUSTOMER,
    WRONG_COUNT,
    CreatedSubscriptionView,
    DeliveryListView,
    DeliveryView,
    NewSubscription,
    RotatedSecretView,
    ScopedCustomers,
    SubscriptionListView,
    SubscriptionView,
)
from api.unread import Body, JsonBody, Query, QueryOf
from pipelines.addresses import check_webhook_url
from pipelines.errors import Conflict, InvalidRequest
from storage import outbox, subscriptions
from storage.subscriptions import Subscription

router = APIRouter(prefix="/v1/webhooks", tags=["Webhook subscriptions"])
Subscriber = Annotated[Caller, Depends(Allow("webhooks:subscribe"))]
SubscriptionBody = Annotated[Body[NewSubscription], Depends(JsonBody(NewSubscription))]
CustomersBody = Annotated[Body[ScopedCustomers], Depends(JsonBody(ScopedCustomers))]
WhichPage = Annotated[Query[Paging], Depends(QueryOf(Paging))]
REFUSED_SCOPES = [UNKNOWN_CUSTOMER, WRONG_COUNT]
DELIVERIES_A_SLICE = 100  # each attempt keeps up to 16 KiB of an answer
SECRET_NOT_REPLAYABLE = "Idempotency.SecretNotReplayable"


@router.post(
    "/subscriptions",
    **gives(
        CreatedSubscriptionView,
        201,
        refuses=[*REFUSED_SCOPES, "Webhook.UrlNotHttps", "Webhook.UrlForbidden", SECRET_NOT_REPLAYABLE],
    ),
)
@once
def create_subscription(caller: Subscriber, body: SubscriptionBody) -> Response:
    """Subscribe a URL to one type of event. The signing secret is in this answer and in no other."""
    new = body.read()
    url = _checked_url(caller, new)
    with caller.writing() as w:
        made, secret = subscriptions.create(
            w, caller.client_id, new.event_type, url, new.customer_ids or (), caller.store.vault, caller.now
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


@router.get("/subscriptions/{subscriptionId}/deliveries", **gives(DeliveryListView))
def list_deliveries(caller: Subscriber, subscription_id: SubscriptionId, query: WhichPage) -> Response:
    """List a subscription's deliveries, newest first, with every attempt."""
    with caller.reading() as r:
        known = caller.subscription(r, subscription_id)
        page = query.read().asked()
        found = outbox.find(r, known.subscription_id, page)
    return streamed("deliveries", totals(found), _in_slices(caller, found.items))


@router.post(
    "/deliveries/{deliveryId}/resend",
    **gives(DeliveryView, 202, refuses=["Webhook.DeliveryInFlight", "Webhook.SubscriptionDeleted"]),
)
@once
def resend_delivery(caller: Subscriber, delivery_id: DeliveryId) -> Response:
    """Send a delivery once more: the same bytes, with the same `eventId`."""
    with caller.writing() as w:
        due = outbox.resend(w, caller.client_id, as_uuid(delivery_id), caller.now)
        caller.audit(w, "Delivery.Resent", deliveryId=due.delivery_id)
        queued = accepted(DeliveryView.of(due), f"/v1/webhooks/subscriptions/{due.subscription_id}/deliveries")
        return caller.keep(w, queued)


def _in_slices(caller: Caller, numbers: Sequence[int]) -> Iterator[bytes]:
    """Deliveries as JSON objects joined by commas, slice by slice."""
    for start in range(0, len(numbers), DELIVERIES_A_SLICE):
        with caller.reading() as r:
            found = outbox.read(r, numbers[start : start + DELIVERIES_A_SLICE])
        yield b",".join(encode(DeliveryView.of(each)) for each in found)


def _checked_url(caller: Caller, new: NewSubscription) -> str:
    """Where webhooks may go; if they may not, unknown customers are told in the same breath."""
    try:
        return check_webhook_url(new.webhook_url, caller.store.settings.webhook_allow_cidrs, [socket.gethostname()])
    except InvalidRequest as refusal:
        raise _with_unknown_customers(refusal, caller, new) from None


def _with_unknown_customers(refusal: InvalidRequest, caller: Caller, new: NewSubscription) -> InvalidRequest:
    try:
        with caller.reading() as r:
            subscriptions.own_customers(r, caller.client_id, new.customer_ids or ())
    except InvalidRequest as unknown:
        faults = refusal.faults + unknown.faults
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
