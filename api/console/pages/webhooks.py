"""Admin: webhook subscriptions and their deliveries."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from api.console.calls import Correctable, Refused
from api.console.declared import as_number, as_whole, changed_fields
from api.console.routes import PageRoute
from api.console.visits import BeyondLastPage, Page, SignedIn
from pipelines.pages.wording import spell_out
from pipelines.webhooks.events import EVENT_TYPES
from storage.core.models import DeliveryStatus

router = APIRouter(route_class=PageRoute, prefix="/admin/webhooks", include_in_schema=False)
ROWS = 50  # of a table on one page
CUSTOMERS_ON_PAGE = 20  # which requests the name of each
TYPES = [(kind, f"{spell_out(kind.replace('.', '_'))} ({kind})") for kind in EVENT_TYPES]
STATUSES = [("", "All"), *((status, spell_out(status)) for status in DeliveryStatus)]
FIELDS = ("eventType", "webhookUrl", "customerIds")
ON_FAILURE = ("maxRetries", "pauseAfterFailures")
HOOKS = ("webhooks", "subscriptions")
NO_ID = "Type at least one customer's id."


@router.get("")
async def show_subscriptions(page: SignedIn) -> Response:
    found = await page.get(*HOOKS, page=page.request.query_params.get("page", 1), count=ROWS)
    return page.show("admin-webhooks.html", found=found)


@router.get("/new")
async def show_new_subscription(page: SignedIn) -> Response:
    return _form(page, dict.fromkeys(FIELDS, ""))


@router.post("")
async def create_subscription(page: SignedIn) -> Response:
    form = await page.form()
    given = {name: str(form.get(name, "")) for name in FIELDS}
    try:
        made = await page.post(*HOOKS, json=given | {"customerIds": given["customerIds"].split()})
    except Refused as refusal:
        return _form(page, given, refusal)
    return _show_secret(page, made["webhookSubscriptionId"], made["secret"])


@router.get("/{subscription_id}")
async def show_subscription(page: SignedIn, subscription_id: str) -> Response:
    return await _show(page, subscription_id)


@router.post("/{subscription_id}")
async def change_subscription(page: SignedIn, subscription_id: str) -> Response:
    """Change how failures are handled."""
    form = await page.form()
    given = {name: str(form.get(name, "")).strip() for name in ON_FAILURE}
    changed = changed_fields(form, ON_FAILURE)
    retries, pause_after = (as_number(form, name) for name in ON_FAILURE)  # the API refuses what is no number
    sent = {
        "maxRetries": given["maxRetries"] if retries is None else retries,
        "pauseAfterFailures": given["pauseAfterFailures"] or None if pause_after is None else pause_after,
    }
    try:
        await page.patch(*HOOKS, subscription_id, json={name: sent[name] for name in changed})
    except Correctable as refusal:
        return await _show(page, subscription_id, refusal, given)
    return page.to(f"/admin/webhooks/{subscription_id}", "The subscription is changed.")


@router.get("/{subscription_id}/customers")
async def show_customers(
    page: SignedIn, subscription_id: str, number: Annotated[str, Query(alias="page")] = "1"
) -> Response:
    return await _customers_page(page, subscription_id, number)


@router.post("/{subscription_id}/customers")
async def add_customers(page: SignedIn, subscription_id: str) -> Response:
    text = str((await page.form()).get("customerIds", ""))
    if not text.split():
        return await _customers_page(page, subscription_id, "1", text, NO_ID)
    try:
        await page.post(*HOOKS, subscription_id, "customers", json={"customerIds": text.split()})
    except Correctable as refusal:
        return await _customers_page(page, subscription_id, "1", text, _customers_fault(refusal.faults))
    return page.to(f"/admin/webhooks/{subscription_id}/customers", "The customers are added.")


@router.post("/{subscription_id}/customers/remove")
async def remove_customer(page: SignedIn, subscription_id: str) -> Response:
    removed = [str((await page.form()).get("customerId", ""))]
    subscription = await page.delete(*HOOKS, subscription_id, "customers", json={"customerIds": removed})
    widened = " The events of all customers are sent from now on." if subscription["isCatchAll"] else ""
    return page.to(f"/admin/webhooks/{subscription_id}/customers", f"The customer is removed.{widened}")


async def _customers_page(page: Page, subscription_id: str, number: str, text: str = "", fault: str = "") -> Response:
    """Show a page of a subscription's customers, with the form that adds some."""
    subscription = await page.get(*HOOKS, subscription_id)
    ids = subscription["customerIds"]
    last = max(1, -(-len(ids) // CUSTOMERS_ON_PAGE))
    if not 1 <= (current := as_whole(number) or 0) <= last:
        raise BeyondLastPage(last)
    start = (current - 1) * CUSTOMERS_ON_PAGE
    listed = [(each, await page.find("customer", each)) for each in ids[start : start + CUSTOMERS_ON_PAGE]]
    found = {"customers": listed, "totalCount": len(ids), "currentPage": current, "totalPages": last}
    shown = {"subscription": subscription, "found": found, "text": text, "fault": fault}
    return page.show("admin-webhook-customers.html", 400 if fault else 200, **shown)


async def _show(
    page: Page, subscription_id: str, refusal: Correctable | None = None, given: Mapping[str, str] | None = None
) -> Response:
    """Show a subscription with its deliveries, and the form with what was sent or what is stored."""
    query = page.request.query_params
    subscription = await page.get(*HOOKS, subscription_id)
    summary = await page.get(*HOOKS, subscription_id, "summary")
    filters = {"status": query.get("status", "")}
    log = await page.get(*HOOKS, subscription_id, "deliveries", **filters, page=query.get("page", 1), count=ROWS)
    shown = {"subscription": subscription, "summary": summary, "log": log, "filters": filters}
    shown["shown"] = {name: "" if subscription[name] is None else subscription[name] for name in ON_FAILURE}
    shown["given"] = given or shown["shown"]
    status = 200 if refusal is None else refusal.status
    faults: Mapping[str, str] = {} if refusal is None else refusal.faults
    return page.show("admin-webhook.html", status, statuses=STATUSES, faults=faults, **shown)


@router.post("/{subscription_id}/pause")
async def pause_subscription(page: SignedIn, subscription_id: str) -> Response:
    return await _act(page, subscription_id, "pause", "The subscription is paused. Events wait until it is resumed.")


@router.post("/{subscription_id}/resume")
async def resume_subscription(page: SignedIn, subscription_id: str) -> Response:
    return await _act(page, subscription_id, "resume", "The subscription is resumed.")


@router.post("/{subscription_id}/test")
async def test_subscription(page: SignedIn, subscription_id: str) -> Response:
    return await _act(page, subscription_id, "test", "A sample event is being sent. Reload the page to see its result.")


@router.post("/{subscription_id}/rotate")
async def rotate_secret(page: SignedIn, subscription_id: str) -> Response:
    await page.check_form()
    made = await page.post(*HOOKS, subscription_id, "secret", "rotate")
    return _show_secret(page, subscription_id, made["secret"])


@router.post("/{subscription_id}/delete")
async def delete_subscription(page: SignedIn, subscription_id: str) -> Response:
    await page.check_form()
    await page.delete(*HOOKS, subscription_id)
    return page.to("/admin/webhooks", "The subscription is deleted.")


@router.post("/{subscription_id}/deliveries/{delivery_id}/resend")
async def resend_delivery(page: SignedIn, subscription_id: str, delivery_id: str) -> Response:
    await page.check_form()
    await page.get(*HOOKS, subscription_id)
    await page.post("webhooks", "deliveries", delivery_id, "resend")
    return page.to(f"/admin/webhooks/{subscription_id}", "The delivery is sent again.")


async def _act(page: Page, subscription_id: str, action: str, notice: str) -> Response:
    await page.check_form()
    await page.post(*HOOKS, subscription_id, action)
    return page.to(f"/admin/webhooks/{subscription_id}", notice)


def _form(page: Page, given: Mapping[str, str], refusal: Refused | None = None) -> Response:
    page.require("webhooks:subscribe")
    status = 200 if refusal is None else refusal.status
    faults: Mapping[str, str] = {} if refusal is None else refusal.faults
    shown = {"given": given, "types": TYPES, "refusal": refusal, "customers_fault": _customers_fault(faults)}
    return page.show("admin-webhook-new.html", status, **shown)


def _customers_fault(faults: Mapping[str, str]) -> str:
    """Return what is wrong with the ids of customers, in words for their field."""
    unknown = {
        pointer.removeprefix("/customerIds/"): message for pointer, message in faults.items() if pointer.count("/") > 1
    }
    return faults.get("/customerIds") or " ".join(f"Id {int(n) + 1}: {message}" for n, message in unknown.items())


def _show_secret(page: Page, subscription_id: str, secret: str) -> Response:
    return page.show("admin-webhook-secret.html", subscription_id=subscription_id, secret=secret)
