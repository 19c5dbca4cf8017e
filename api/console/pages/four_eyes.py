"""Admin: which actions a second person or key must approve."""

from collections.abc import Collection

from fastapi import APIRouter
from starlette.responses import Response

from api.console.calls import Correctable
from api.console.pages.approvals import WORDS
from api.console.routes import PageRoute
from api.console.visits import Page, SignedIn
from storage.access.approvals import REQUIRABLE

router = APIRouter(route_class=PageRoute, prefix="/admin/four-eyes", include_in_schema=False)
ACTIONS = [(kind, WORDS[kind]) for kind in REQUIRABLE]


@router.get("")
async def show_four_eyes(page: SignedIn) -> Response:
    return await _show(page, (await page.get("four-eyes"))["actions"])


@router.post("")
async def set_four_eyes(page: SignedIn) -> Response:
    """Set which actions need an approval, or request it where another admin must approve it."""
    chosen = [str(each) for each in (await page.form()).getlist("action")]
    try:
        done = await page.put("four-eyes", json={"actions": chosen})
    except Correctable as refusal:
        return await _show(page, chosen, refusal)
    is_requested = "approvalId" in done
    notice = "The change is requested: another admin must approve it." if is_requested else "The setting is stored."
    return page.to("/admin/four-eyes", notice)


async def _show(page: Page, chosen: Collection[str], refusal: Correctable | None = None) -> Response:
    pending = (await page.get("approvals", kind="lift", status="pending"))["approvals"]
    status, fault = (200, "") if refusal is None else (refusal.status, refusal.detail)
    names = await page.names(each["requestedBy"] for each in pending)
    shown = {"actions": ACTIONS, "chosen": chosen, "pending": pending, "names": names, "fault": fault}
    return page.show("admin-four-eyes.html", status, **shown)
