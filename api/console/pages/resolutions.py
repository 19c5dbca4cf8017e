"""Findings and events of a customer's risk report, to resolve with a reason."""

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from api.console.calls import Correctable
from api.console.routes import PageRoute
from api.console.visits import Page, SignedIn

router = APIRouter(route_class=PageRoute, include_in_schema=False, prefix="/customers/{customer_id}/resolutions")
SHOWN = ("key", "name", "sentence", "firstDate", "lastDate", "ceiling", "until", "amount", "honestExplanation")
DONE = "The reports are being computed again. Reload the page in a moment."


@router.get("")
async def show_resolutions(page: SignedIn, customer_id: str) -> Response:
    return await _show(page, customer_id)


@router.post("")
async def resolve(page: SignedIn, customer_id: str) -> Response:
    """Resolve a finding or an event; without a reason, revoke its resolution."""
    form = await page.form()
    is_revoked = form.get("action") == "revoke"
    sent = {name: str(form.get(name, "")) for name in ("kind", "key")}
    reason = None if is_revoked else str(form.get("reason", ""))
    try:
        await page.put("customer", customer_id, "resolutions", json={**sent, "reason": reason})
    except Correctable as refusal:
        return await _show(page, customer_id, refusal, {**sent, "reason": reason or ""})
    done = "The resolution is revoked." if is_revoked else "It is resolved."
    return page.to(f"/customers/{customer_id}/resolutions", f"{done} {DONE}")


async def _show(
    page: Page, customer_id: str, refusal: Correctable | None = None, sent: Mapping[str, str] | None = None
) -> Response:
    customer = await page.get("customer", customer_id)
    risk = (await page.get("customer", customer_id, "reports"))["risk"]["data"] or {}
    # The page is one of the history, which isn't shown: all resolutions in force are always returned.
    made = (await page.get("customer", customer_id, "resolutions", page=1, count=1))["resolutions"]
    items = list(_list_items(risk, {each["key"]: each for each in made}))
    return page.show(
        "resolutions.html",
        200 if refusal is None else refusal.status,
        customer=customer,
        items=items,
        names=await page.names(each["madeBy"] for each in made),
        fault="" if refusal is None else refusal.detail,
        faults={} if refusal is None else refusal.faults,
        sent=sent or {"key": "", "reason": ""},
    )


def _list_items(risk: Mapping[str, Any], made: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what the report shows with its resolution in force, and the place of its amount in the report."""
    findings = risk.get("integrity", {}).get("findings", [])
    for kind, place, found in (
        ("event", "events", risk.get("events", [])),
        ("finding", "integrity/findings", findings),
    ):
        for nth, each in enumerate(found):
            shown = {name: each.get(name) for name in SHOWN}
            yield {**shown, "kind": kind, "made": made.get(each["key"]), "figure": f"/{place}/{nth}/amount"}
