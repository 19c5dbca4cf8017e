"""Approvals: what others requested, to approve or decline, and own requests, to withdraw."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from api.console.calls import Correctable
from api.console.routes import PageRoute
from api.console.visits import Page, SignedIn

router = APIRouter(route_class=PageRoute, include_in_schema=False)
SCOPES = {  # of the actions
    "publish": "decision-policies:publish",
    "override": "decision-policies:override",
    "activate": "monitoring:rules",
    "lift": "access:manage",
}
WORDS = {
    "publish": "Publish a policy",
    "override": "Override a decision",
    "activate": "Activate a ruleset",
    "lift": "Lift four eyes",
}
ON_PAGE = 20


@router.get("/approvals")
async def show_approvals(
    page: SignedIn,
    status: Annotated[str, Query()] = "pending",
    kind: Annotated[str, Query()] = "",
    evaluation_id: Annotated[str, Query(alias="evaluationId")] = "",
    number: Annotated[str, Query(alias="page")] = "1",
) -> Response:
    which = {"status": status, "kind": kind, "evaluationId": evaluation_id}
    found = await page.get("approvals", **which, page=number, count=ON_PAGE)
    return await _list(page, found, {"status": status, "kind": kind})


@router.post("/approvals/{approval_id}/approve")
async def approve(page: SignedIn, approval_id: str) -> Response:
    await page.check_form()
    return await _decide(page, approval_id, "approve", None, "The request is approved, and its action was performed.")


@router.post("/approvals/{approval_id}/decline")
async def decline(page: SignedIn, approval_id: str) -> Response:
    reason = {"reason": str((await page.form()).get("reason", ""))}
    return await _decide(page, approval_id, "decline", reason, "The request is declined.")


@router.post("/approvals/{approval_id}/withdraw")
async def withdraw(page: SignedIn, approval_id: str) -> Response:
    await page.check_form()
    return await _decide(page, approval_id, "withdraw", None, "The request is withdrawn.")


async def _decide(page: Page, approval_id: str, how: str, body: Any, notice: str) -> Response:
    try:
        await page.post("approvals", approval_id, how, json=body)
    except Correctable as refusal:
        found = await page.get("approvals", status="pending", page=1, count=ON_PAGE)
        return await _list(page, found, {"status": "pending", "kind": ""}, refusal)
    return page.to("/approvals", notice)


async def _list(page: Page, found: Any, filters: dict[str, str], refusal: Correctable | None = None) -> Response:
    own_id = str(page.session.user.user_id)
    for each in found["approvals"]:
        each["isOwn"] = each["requestedBy"] == own_id
        each["mayDecide"] = each["status"] == "pending" and not each["isOwn"] and page.may(SCOPES[each["kind"]])
    names = await page.names(each[who] for each in found["approvals"] for who in ("requestedBy", "decidedBy"))
    status, fault = (200, "") if refusal is None else (refusal.status, refusal.detail)
    shown = {"names": names, "filters": filters, "fault": fault, "words": WORDS}
    shown |= {"policies": await _policy_names(page, found), "customers": await _customer_names(page, found)}
    return page.show("approvals.html", status, found=found, **shown)


async def _customer_names(page: Page, found: Any) -> dict[str, str | None]:
    """Return the names of the customers whose decisions are to be overridden, by id."""
    ids = {each["subject"]["customerId"] for each in found["approvals"] if each["kind"] == "override"}
    return {id_: (await page.get("customer", id_))["name"] for id_ in ids}


async def _policy_names(page: Page, found: Any) -> dict[str, str]:
    """Return the names of the policies that are to be published, as the requested versions have them, by slug."""
    published = (each for each in found["approvals"] if each["kind"] == "publish")
    versions = {each["subject"]["slug"]: each["request"]["version"] for each in published}
    if not page.may("decision-policies:read"):
        return {slug: slug for slug in versions}
    return {
        slug: (await page.get("decision-policies", slug, version=version))["name"] for slug, version in versions.items()
    }
