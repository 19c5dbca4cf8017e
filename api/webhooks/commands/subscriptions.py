"""Commands for webhook subscriptions: list, summarise, pause and resume them."""

from typing import Annotated, Any
from uuid import UUID

import typer

from api.core.commands import ids
from api.core.commands.console import AsJson, now, opened_store, print_json, print_record, print_records
from api.webhooks.schemas import SummaryView
from storage.core import audit
from storage.core.audit import OPERATOR
from storage.core.database import Writing
from storage.webhooks import delivery_figures
from storage.webhooks import subscriptions as stored
from storage.webhooks.delivery_figures import Period, Summary
from storage.webhooks.subscriptions import Subscription

subscriptions = typer.Typer(help="Webhook subscriptions: list, summarise, pause and resume them.", no_args_is_help=True)

SubscriptionId = Annotated[UUID, typer.Argument(parser=ids.SUBSCRIPTION, metavar="ID", help="The subscription's id.")]


@subscriptions.command("list")
def list_subscriptions(
    client: Annotated[
        UUID | None, typer.Option(parser=ids.CLIENT, metavar="ID", help="Only subscriptions of this client.")
    ] = None,
    paused: Annotated[bool, typer.Option("--paused", help="Only paused subscriptions.")] = False,
    as_json: AsJson = False,
) -> None:
    """List subscriptions, and whether they are paused.

    Example: tidemark subscriptions list --paused
    """
    with opened_store() as store, store.db.reading() as r:
        found = stored.find(r, client).items
    records = [_record(each) for each in found if each.paused_at is not None or not paused]
    columns = ("subscriptionId", "eventType", "webhookUrl", "datePaused")
    print_records(records, as_json=as_json, empty="No such subscriptions.", columns=columns)


@subscriptions.command("summary")
def summary(subscription: SubscriptionId, as_json: AsJson = False) -> None:
    """Summarise the deliveries of the last 24 hours and 7 days, and those that wait.

    Example: tidemark subscriptions summary c1a9…
    """
    with opened_store() as store, store.db.reading() as r:
        found = delivery_figures.read_summary(r, stored.get(r, None, subscription), now())
    if as_json:
        print_json(SummaryView.of(found).model_dump(by_alias=True))
        return
    print_record(_describe_summary(found), as_json=False)
    print_records([_period(each) for each in found.periods], as_json=False, empty="")


@subscriptions.command("pause")
def pause(subscription: SubscriptionId, as_json: AsJson = False) -> None:
    """Pause a subscription. Its events are kept until it is resumed.

    Example: tidemark subscriptions pause c1a9…
    """
    with opened_store() as store, store.db.writing() as w:
        paused, changed = stored.pause(w, None, subscription, stored.BY_OPERATOR, now())
        if changed:
            _note(w, "Subscription.Paused", paused)
    print_record(_record(paused), as_json=as_json)


@subscriptions.command("resume")
def resume(subscription: SubscriptionId, as_json: AsJson = False) -> None:
    """Resume a paused subscription. Events that waited are sent in order.

    Example: tidemark subscriptions resume c1a9…
    """
    with opened_store() as store, store.db.writing() as w:
        resumed, changed = stored.resume(w, None, subscription)
        if changed:
            _note(w, "Subscription.Resumed", resumed)
    print_record(_record(resumed), as_json=as_json)


def _note(w: Writing, action: str, done_to: Subscription) -> None:
    resource = {"subscriptionId": done_to.subscription_id}
    audit.append(w, OPERATOR, action, resource, now(), client_id=done_to.client_id)


def _record(subscription: Subscription) -> dict[str, Any]:
    return {
        "subscriptionId": subscription.subscription_id,
        "clientId": subscription.client_id,
        "eventType": subscription.event_type,
        "webhookUrl": subscription.webhook_url,
        "maxRetries": subscription.max_retries,
        "pauseAfterFailures": subscription.pause_after,
        "datePaused": subscription.paused_at,
        "pausedBy": subscription.paused_by,
        "failureStreak": subscription.failure_streak,
        "dateLastDelivered": subscription.last_delivered_at,
        "dateLastFailed": subscription.last_failed_at,
    }


def _describe_summary(found: Summary) -> dict[str, Any]:
    waits = {"waiting": found.waiting, "retrying": found.retrying, "dateOldestWaiting": found.oldest_waiting_at}
    return _record(found.subscription) | waits


def _period(period: Period) -> dict[str, Any]:
    return {
        "period": period.period,
        "attempts": period.attempts,
        "delivered": period.delivered,
        "failed": period.failed,
        "byError": period.by_error,
        "byStatusCode": period.by_status_code,
        "p50 ms": period.duration_p50_ms,
        "p95 ms": period.duration_p95_ms,
    }
