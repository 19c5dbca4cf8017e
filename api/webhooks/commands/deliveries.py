"""Commands for webhook deliveries: list and resend them."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import typer

from api.core.commands import ids
from api.core.commands.console import AsJson, now, opened_store, print_record, print_records, since
from pipelines.webhooks.events import EventType
from storage.core import audit
from storage.core.audit import OPERATOR
from storage.core.store import Store
from storage.customers import customers
from storage.webhooks import delivery_log, subscriptions
from storage.webhooks.delivery_log import Delivery

deliveries = typer.Typer(help="Webhook deliveries: list and resend them.", no_args_is_help=True)


@deliveries.command("list")
def list_deliveries(
    failed: Annotated[bool, typer.Option("--failed", help="Only failed deliveries.")] = False,
    subscription: Annotated[
        UUID | None, typer.Option(parser=ids.SUBSCRIPTION, metavar="ID", help="Only deliveries to this subscription.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of deliveries.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List deliveries, newest first.

    Example: tidemark deliveries list --failed
    """
    with opened_store() as store, store.db.reading() as r:
        found = delivery_log.find_latest(r, limit, subscription, failed)
    columns = ("deliveryId", "eventType", "status", "dateCreated", "statusCode", "error")
    print_records([_record(each) for each in found], as_json=as_json, empty="No such deliveries.", columns=columns)


@deliveries.command("resend")
def resend(
    delivery: Annotated[
        UUID | None, typer.Argument(parser=ids.DELIVERY, metavar="ID", help="The delivery's id.")
    ] = None,
    failed_since: Annotated[
        datetime | None,
        typer.Option(
            parser=since, metavar="TIME", help="All failed deliveries since a date-time, or of the last 30m, 12h or 7d."
        ),
    ] = None,
    subscription: Annotated[
        UUID | None, typer.Option(parser=ids.SUBSCRIPTION, metavar="ID", help="Of these, only to this subscription.")
    ] = None,
    customer: Annotated[
        UUID | None, typer.Option(parser=ids.CUSTOMER, metavar="ID", help="Of these, only for this customer.")
    ] = None,
    event_type: Annotated[
        EventType | None, typer.Option(metavar="TYPE", help="Of these, only this type of event.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Resend a delivery, or all failed ones since a time, with the same body and eventId.

    Example: tidemark deliveries resend --failed-since 6h
    """
    if (delivery is None) == (failed_since is None):
        raise typer.BadParameter("give one delivery, or --failed-since")
    if delivery is not None and (subscription or customer or event_type):
        raise typer.BadParameter("--subscription, --customer and --event-type go with --failed-since")
    with opened_store() as store:
        if delivery is not None:
            print_record(_record(_resend(store, delivery)), as_json=as_json)
        elif failed_since is not None:
            print_record(
                {"resent": _resend_all(store, failed_since, subscription, customer, event_type)}, as_json=as_json
            )


def _resend(store: Store, delivery: UUID) -> Delivery:
    with store.db.writing() as w:
        due = delivery_log.resend(w, None, delivery, now())
        audit.append(w, OPERATOR, "Delivery.Resent", {"deliveryId": delivery}, now(), client_id=due.client_id)
    return due


def _resend_all(
    store: Store, since: datetime, subscription: UUID | None, customer: UUID | None, event_type: EventType | None
) -> int:
    """Resend the failed deliveries, a limited number in each transaction, and return their number."""
    count, more, began = 0, True, now()
    named = {"subscriptionId": subscription, "customerId": customer}
    which = {name: each for name, each in named.items() if each is not None}
    while more:
        with store.db.writing() as w:
            number = None if customer is None else customers.get_of_any_client(w, customer).number
            receiver = None if subscription is None else subscriptions.get(w, None, subscription)
            resent, more = delivery_log.resend_all(
                w, since, began, subscription_id=subscription, customer_number=number, event_type=event_type
            )
            if resent:
                client_id = None if receiver is None else receiver.client_id
                audit.append(w, OPERATOR, "Delivery.AllResent", which, now(), client_id=client_id)
        count += resent
    return count


def _record(delivery: Delivery) -> dict[str, Any]:
    last = delivery.attempts[-1] if delivery.attempts else None
    return {
        "deliveryId": delivery.delivery_id,
        "eventType": delivery.event_type,
        "eventId": delivery.event_id,
        "subscriptionId": delivery.subscription_id,
        "status": delivery.status,
        "dateCreated": delivery.created_at,
        "dateOfRetry": delivery.retry_at,
        "attempts": len(delivery.attempts),
        "statusCode": last.status_code if last else None,
        "error": last.error if last else None,
    }
