"""Admin: which actions a second person or key must approve."""

from collections.abc import Collection
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from api.console.calls import Correctable, retry
from api.console.pages.approvals import WORDS
from api.console.routes import PageRoute
from api.console.visits import Page, SignedIn
from storage.access.approvals import REQUIRABLE

router = APIRouter(route_class=PageRoute, prefix="/admin/four-eyes", include_in_schema=False)
ACTIONS = [(kind, WORDS[kind]) for kind in REQUIRABLE]


@router.get("")
async def show_four_eyes(page: SignedIn) -> Response:
    return await _show(page)


@router.post("")
async def set_four_eyes(page: SignedIn) -> Response:
    """Set which actions need an approval, or request it where another admin must approve it."""
    form = await page.form()
    chosen, shown = ({str(each) for each in form.getlist(name)} for name in ("action", "shown.action"))

    async def change() -> dict[str, Any]:
        stored = (await page.get("four-eyes"))["actions"]  # another admin may have changed it meanwhile
        actions = sorted(({*stored} | (chosen - shown)) - (shown - chosen))
        changed: dict[str, Any] = await page.put("four-eyes", json={"actions": actions, "replaces": stored})
        return changed

    try:
        done = await retry(change, "FourEyes.ChangedMeanwhile")
    except Correctable as refusal:
        return await _show(page, chosen, refusal)
    is_requested = "approvalId" in done
    notice = "The change is requested: another admin must approve it." if is_requested else "The setting is stored."
    return page.to("/admin/four-eyes", notice)


async def _show(page: Page, chosen: Collection[str] | None = None, refusal: Correctable | None = None) -> Response:
    stored = (await page.get("four-eyes"))["actions"]
    pending = (await page.get("approvals", kind="lift", status="pending"))["approvals"]
    status, fault = (200, "") if refusal is None else (refusal.status, refusal.detail)
    names = await page.names(each["requestedBy"] for each in pending)
    shown = {
        "actions": ACTIONS,
        "stored": stored,
        "chosen": stored if chosen is None else chosen,
        "pending": pending,
        "names": names,
        "fault": fault,
    }
    return page.show("admin-four-eyes.html", status, **shown)
