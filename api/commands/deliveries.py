"""Webhook deliveries: what was sent, how it was answered, and sending it again by hand."""

from typing import Annotated, Any
from uuid import UUID

import typer

from api.commands.console import AsJson, now, opened_store, print_record, print_records
from storage import audit, outbox
from storage.audit import OPERATOR
from storage.outbox import Delivery

deliveries = typer.Typer(help="Webhook deliveries: list, resend.", no_args_is_help=True)


@deliveries.command("list")
def list_deliveries(
    failed: Annotated[bool, typer.Option("--failed", help="Only those that failed.")] = False,
    subscription: Annotated[UUID | None, typer.Option(help="Only this subscription's.")] = None,
    most: Annotated[int, typer.Option(min=1, max=1_000, help="How many, newest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List deliveries, newest first.

    Example: tidemark deliveries list --failed
    """
    with opened_store() as store, store.db.reading() as r:
        found = outbox.latest(r, most, subscription, failed)
    print_records([_record(each) for each in found], as_json=as_json, empty="No such deliveries.")


@deliveries.command("resend")
def resend(delivery: Annotated[UUID, typer.Argument(help="The delivery's id.")], as_json: AsJson = False) -> None:
    """Send a delivery again: the same bytes, the same eventId, one more attempt.

    Example: tidemark deliveries resend 5b0e…
    """
    with opened_store() as store, store.db.writing() as w:
        due = outbox.resend(w, None, delivery, now())
        audit.append(w, OPERATOR, "Delivery.Resent", {"deliveryId": delivery}, now(), client_id=due.client_id)
    print_record(_record(due), as_json=as_json)


def _record(delivery: Delivery) -> dict[str, Any]:
    last = delivery.attempts[-1] if delivery.attempts else None
    return {
        "deliveryId": delivery.delivery_id,
        "eventType": delivery.event_type,
        "eventId": delivery.event_id,
        "subscriptionId": delivery.subscription_id,
        "status": delivery.status,
        "dateCreated": delivery.created_at,
        "attempts": len(delivery.attempts),
        "statusCode": last.status_code if last else None,
        "error": last.error if last else None,
    }
