"""Webhook subscriptions and their deliveries."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core.schemas.common import Paging
from api.http.dependencies import Allow, Caller, DeliveryId, SubscriptionId, as_uuid
from api.http.documented import envelope, refuses, shows
from api.http.idempotency import IDEMPOTENT
from api.http.responses import encode, respond, respond_accepted, respond_list, stream_list, totals
from api.http.route import Route
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

router = APIRouter(route_class=Route, prefix="/v1/webhooks", tags=["Webhook subscriptions"])
Subscriber = Annotated[Caller, Depends(Allow("webhooks:subscribe"))]
REFUSED_SCOPES = [UNKNOWN_CUSTOMER, WRONG_COUNT]
REFUSED_FILTERS = ["Customer.NotFound", "Webhook.EventNotFound", "Webhook.DeliveryNotFound"]  # for ids in the query
TEST_UNDER_WAY = "Webhook.TestUnderWay"
DELIVERIES_PER_SLICE = 100  # an attempt contains up to 16 KiB of the receiver's response
SECRET_NOT_REPLAYABLE = "Idempotency.SecretNotReplayable"


@router.post(
    "/subscriptions",
    status_code=201,
    response_model=envelope(CreatedSubscriptionView),
    responses=refuses(
        *REFUSED_SCOPES,
        "Webhook.UrlNotHttps",
        "Webhook.UrlForbidden",
        "Webhook.TooManySubscriptions",
        SECRET_NOT_REPLAYABLE,
    ),
    dependencies=[IDEMPOTENT],
)
def create_subscription(caller: Subscriber, new: NewSubscription) -> Response:
    """Subscribe a URL to one type of event. The signing secret is in this response and in no other."""
    with caller.writing() as w:
        subscription, secret = subscriptions.create(
            w,
            caller.client_id,
            new.event_type,
            new.webhook_url,
            new.customer_ids or (),
            caller.store.vault,
            caller.now,
            new.on_failure,
        )
        caller.audit(w, "Subscription.Created", subscriptionId=subscription.subscription_id)
        location = {"Location": f"/v1/webhooks/subscriptions/{subscription.subscription_id}"}
        shown = respond(
            CreatedSubscriptionView.of(vars(subscription) | {"secret": secret}), status=201, headers=location
        )
        return caller.store_response(w, shown, again=_not_replayable(subscription))


@router.get("/subscriptions", response_model=envelope(SubscriptionListView))
def list_subscriptions(caller: Subscriber, query: Annotated[Paging, Query()]) -> Response:
    """List subscriptions in order of creation."""
    with caller.reading() as r:
        return respond_list(
            "subscriptions", subscriptions.find(r, caller.client_id, query.requested_page()), SubscriptionView
        )


@router.get("/subscriptions/{subscriptionId}", response_model=envelope(SubscriptionView))
def get_subscription(caller: Subscriber, subscription_id: SubscriptionId) -> Response:
    """Read one subscription."""
    with caller.reading() as r:
        return respond(SubscriptionView.of(caller.subscription(r, subscription_id)))


@router.patch("/subscriptions/{subscriptionId}", response_model=envelope(SubscriptionView))
def change_subscription(caller: Subscriber, subscription_id: SubscriptionId, sent: ChangedSubscription) -> Response:
    """Change how failures are handled: `maxRetries`, `pauseAfterFailures`. A field that isn't sent stays unchanged."""
    known = as_uuid(subscription_id)
    with caller.writing() as w:
        changed = subscriptions.change(w, caller.client_id, known, sent.changes())
        caller.audit(w, "Subscription.Changed", subscriptionId=known)
    return respond(SubscriptionView.of(changed))


@router.post("/subscriptions/{subscriptionId}/pause", response_model=envelope(SubscriptionView))
def pause_subscription(caller: Subscriber, subscription_id: SubscriptionId) -> Response:
    """Pause a subscription: nothing is sent until it is resumed.

    Events that happen in the meantime are kept. A delivery under way is completed.
    """
    with caller.writing() as w:
        which = (caller.client_id, as_uuid(subscription_id))
        paused, changed = subscriptions.pause(w, *which, subscriptions.BY_CLIENT, caller.now)
        if changed:
            caller.audit(w, "Subscription.Paused", subscriptionId=paused.subscription_id)
    return respond(SubscriptionView.of(paused))


@router.post("/subscriptions/{subscriptionId}/resume", response_model=envelope(SubscriptionView))
def resume_subscription(caller: Subscriber, subscription_id: SubscriptionId) -> Response:
    """Resume a subscription: waiting events are sent in order, then new ones. Failures count from zero."""
    with caller.writing() as w:
        resumed, changed = subscriptions.resume(w, caller.client_id, as_uuid(subscription_id))
        if changed:
            caller.audit(w, "Subscription.Resumed", subscriptionId=resumed.subscription_id)
    return respond(SubscriptionView.of(resumed))


@router.get("/subscriptions/{subscriptionId}/summary", response_model=envelope(SummaryView))
def get_subscription_summary(caller: Subscriber, subscription_id: SubscriptionId) -> Response:
    """Summarise the deliveries of the last 24 hours and 7 days, and those that are waiting."""
    with caller.reading() as r:
        known = caller.subscription(r, subscription_id)
        return respond(SummaryView.of(delivery_figures.read_summary(r, known, caller.now)))


@router.post(
    "/subscriptions/{subscriptionId}/test",
    status_code=202,
    response_model=envelope(DeliveryView),
    responses=shows(202, "test") | refuses(TEST_UNDER_WAY),
    dependencies=[IDEMPOTENT],
)
def test_subscription(caller: Subscriber, subscription_id: SubscriptionId) -> Response:
    """Send a signed sample event of the subscription's type, with `"test": true`.

    It is sent even while the subscription is paused, and is not retried.
    """
    with caller.writing() as w:
        receiver = caller.subscription(w, subscription_id)
        made = outbox.enqueue_test(w, samples.build_sample_event(receiver, caller.now), receiver.subscription_id)
        queued = delivery_log.get(w, caller.client_id, made)
        caller.audit(w, "Subscription.Tested", subscriptionId=receiver.subscription_id, deliveryId=queued.delivery_id)
        return caller.store_response(w, respond_accepted(DeliveryView.of(queued), _log_of(receiver.subscription_id)))


@router.post(
    "/subscriptions/{subscriptionId}/resend",
    status_code=202,
    response_model=envelope(ResentView),
    responses=refuses(UNKNOWN_CUSTOMER),
    dependencies=[IDEMPOTENT],
)
def resend_deliveries(caller: Subscriber, subscription_id: SubscriptionId, wanted: Resending) -> Response:
    """Send again all failed deliveries that were created since a time: the same bytes, oldest first."""
    with caller.writing() as w:
        receiver = caller.subscription(w, subscription_id).subscription_id
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
        return caller.store_response(w, respond_accepted(ResentView(resent=resent, more=more), _log_of(receiver)))


@router.delete("/subscriptions/{subscriptionId}", response_model=envelope(SubscriptionView))
def delete_subscription(caller: Subscriber, subscription_id: SubscriptionId) -> Response:
    """Delete a subscription. Nothing more is sent to it; a delivery under way may still arrive, within 30 s."""
    with caller.writing() as w:
        deleted = subscriptions.delete(w, caller.client_id, as_uuid(subscription_id))
        caller.audit(w, "Subscription.Deleted", subscriptionId=deleted.subscription_id)
    return respond(SubscriptionView.of(deleted))


@router.post("/subscriptions/{subscriptionId}/secret/rotate", response_model=envelope(RotatedSecretView))
def rotate_secret(caller: Subscriber, subscription_id: SubscriptionId) -> Response:
    """Replace the signing secret. Everything sent from now on is signed with the new one, older events too.

    A delivery under way may still arrive with the old signature, within 30 s.
    """
    rotated = as_uuid(subscription_id)
    with caller.writing() as w:
        secret = subscriptions.rotate(w, caller.client_id, rotated, caller.store.vault)
        caller.audit(w, "Subscription.SecretRotated", subscriptionId=rotated)
    return respond(RotatedSecretView(webhook_subscription_id=rotated, secret=secret))


@router.post(
    "/subscriptions/{subscriptionId}/customers",
    response_model=envelope(SubscriptionView),
    responses=refuses(*REFUSED_SCOPES),
)
def add_customers(caller: Subscriber, subscription_id: SubscriptionId, sent: ScopedCustomers) -> Response:
    """Add customers to the subscription's scope."""
    scope = as_uuid(subscription_id), sent.customer_ids
    with caller.writing() as w:
        scoped = subscriptions.add_customers(w, caller.client_id, *scope)
        caller.audit(w, "Subscription.CustomersAdded", subscriptionId=scope[0], customerIds=scope[1])
    return respond(SubscriptionView.of(scoped))


@router.delete(
    "/subscriptions/{subscriptionId}/customers",
    response_model=envelope(SubscriptionView),
    responses=refuses(*REFUSED_SCOPES),
)
def remove_customers(caller: Subscriber, subscription_id: SubscriptionId, sent: ScopedCustomers) -> Response:
    """Remove customers from the scope. If none is left, the subscription receives all customers' events."""
    scope = as_uuid(subscription_id), sent.customer_ids
    with caller.writing() as w:
        scoped = subscriptions.remove_customers(w, caller.client_id, *scope)
        caller.audit(w, "Subscription.CustomersRemoved", subscriptionId=scope[0], customerIds=scope[1])
    return respond(SubscriptionView.of(scoped))


@router.get(
    "/subscriptions/{subscriptionId}/deliveries",
    response_model=envelope(DeliveryListView),
    responses=refuses(*REFUSED_FILTERS),
)
def list_deliveries(
    caller: Subscriber, subscription_id: SubscriptionId, query: Annotated[DeliveriesQuery, Query()]
) -> Response:
    """List a subscription's deliveries, newest first, with every attempt."""
    with caller.reading() as r:
        known = caller.subscription(r, subscription_id)
        found = _find_deliveries(r, caller, query, known.subscription_id)
    return stream_list("deliveries", totals(found), _in_slices(caller, found.items))


@router.get("/deliveries", response_model=envelope(DeliveryListView), responses=refuses(*REFUSED_FILTERS))
def list_all_deliveries(caller: Subscriber, query: Annotated[DeliveriesQuery, Query()]) -> Response:
    """List the deliveries of all subscriptions, including deleted ones, newest first, with every attempt."""
    with caller.reading() as r:
        found = _find_deliveries(r, caller, query, None)
    return stream_list("deliveries", totals(found), _in_slices(caller, found.items))


@router.post(
    "/deliveries/{deliveryId}/resend",
    status_code=202,
    response_model=envelope(DeliveryView),
    responses=refuses("Webhook.DeliveryInFlight", "Webhook.SubscriptionDeleted"),
    dependencies=[IDEMPOTENT],
)
def resend_delivery(caller: Subscriber, delivery_id: DeliveryId) -> Response:
    """Send a delivery once more: the same bytes, with the same `eventId`."""
    with caller.writing() as w:
        due = delivery_log.resend(w, caller.client_id, as_uuid(delivery_id), caller.now)
        caller.audit(w, "Delivery.Resent", deliveryId=due.delivery_id)
        return caller.store_response(w, respond_accepted(DeliveryView.of(due), _log_of(due.subscription_id)))


def _log_of(subscription_id: UUID) -> str:
    return f"/v1/webhooks/subscriptions/{subscription_id}/deliveries"


def _find_deliveries(r: Reading, caller: Caller, query: DeliveriesQuery, subscription_id: UUID | None) -> Paged[int]:
    """Find the numbers of the client's deliveries that match the query."""
    wanted = Filter(caller.client_id, subscription_id, **query.filters())
    if query.customer_id is not None:
        customer = customers.get(r, caller.client_id, query.customer_id)
        wanted = replace(wanted, customer_number=customer.number)
    return delivery_log.find(r, wanted, query.requested_page())


def _customer_number(r: Reading, caller: Caller, customer_id: UUID | None) -> int | None:
    """Return the number of the caller's customer, None for no id; raise InvalidRequest if it isn't the caller's."""
    known = customers.numbers(r, caller.client_id, [customer_id] if customer_id else [])
    if customer_id is None or customer_id in known:
        return known.get(customer_id) if customer_id else None
    unknown = Fault("/customerId", UNKNOWN_CUSTOMER, "There is no customer with this id.")
    raise InvalidRequest(UNKNOWN_CUSTOMER, unknown.message, (unknown,))


def _in_slices(caller: Caller, numbers: Sequence[int]) -> Iterator[bytes]:
    """Yield deliveries as JSON objects joined by commas, slice by slice."""
    for start in range(0, len(numbers), DELIVERIES_PER_SLICE):
        with caller.reading() as r:
            found = delivery_log.read(r, numbers[start : start + DELIVERIES_PER_SLICE])
        yield b",".join(encode(DeliveryView.of(each)) for each in found)


def _not_replayable(made: Subscription) -> Conflict:
    detail = (
        f"This request has created subscription {made.subscription_id}. Its secret is shown only once: rotate it to "
        "get a new one."
    )
    return Conflict(SECRET_NOT_REPLAYABLE, detail)
