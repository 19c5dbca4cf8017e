"""What waits for people: the queue, and an alert with what its rules read."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from api.console.calls import Refused
from api.console.routes import PageRoute
from api.console.visits import Page, SignedIn, path_back
from pipelines.pages.wording import quantity, spell_out

router = APIRouter(route_class=PageRoute, include_in_schema=False)
ON_PAGE = 20
SNOOZES = {"1": "until tomorrow", "3": "for 3 days", "7": "for a week", "30": "for 30 days"}
AGES = ((86_400, "day"), (3_600, "hour"), (60, "minute"))  # seconds
DONE = {
    "acknowledge": "The alert is acknowledged.",
    "snooze": "The alert is snoozed.",
    "close": "The alert is closed.",
    "reopen": "The alert is open again.",
    "assign": "The assignment is changed.",
}


@router.get("/work")
async def show_work(
    page: SignedIn,
    kind: Annotated[str, Query()] = "",
    assignee: Annotated[str, Query()] = "",
    number: Annotated[str, Query(alias="page")] = "1",
) -> Response:
    found = await page.get("work", kind=kind, assignee=assignee, page=number, count=ON_PAGE)
    waiting = [{**each, "age": age(each["ageSeconds"])} for each in found["items"]]
    names = await page.names(each["assignee"] for each in waiting)
    values = {"kind": kind, "assignee": assignee, "here": place(page), "assignees": await list_assignees(page)}
    return page.show("work.html", found=found, waiting=waiting, names=names, **values)


@router.post("/evaluations/{evaluation_id}/assignee")
async def assign_decision(page: SignedIn, evaluation_id: str) -> Response:
    form = await page.form()
    try:
        await page.put("evaluations", evaluation_id, "assignee", json={"assignee": form.get("assignee") or None})
    except Refused as refusal:
        if refusal.status != 409:
            raise
        return page.to(path_back(form, "/work"), refusal.detail)
    return page.to(path_back(form, "/work"), DONE["assign"])


@router.get("/alerts/{match_id}")
async def show_alert(page: SignedIn, match_id: str) -> Response:
    return await _alert_page(page, match_id)


@router.post("/alerts/{match_id}")
async def act_on_alert(page: SignedIn, match_id: str) -> Response:
    """Acknowledge, snooze, close, reopen or assign, and go back to the page that has the form."""
    form = await page.form()
    action = str(form.get("action", ""))
    days = SNOOZES.keys() & {str(form.get("days", ""))}
    until = datetime.now(UTC) + timedelta(days=int(days.pop())) if days else None
    sent = {
        "action": action,
        "until": None if until is None else until.isoformat(),
        "reason": form.get("reason") or None,
        "assignee": form.get("assignee") or None,
    }
    try:
        await page.post("alerts", match_id, "actions", json=sent)
    except Refused as refusal:
        if refusal.status != 400:
            raise
        return await _alert_page(page, match_id, refusal)
    return page.to(path_back(form, f"/alerts/{match_id}"), DONE[action])


@router.get("/alerts/{match_id}/figure")
async def show_alert_figure(
    page: SignedIn,
    match_id: str,
    figure: Annotated[str, Query()] = "",
    number: Annotated[str, Query(alias="page")] = "1",
) -> Response:
    """Show the transactions behind a value that a rule read."""
    found = await page.get("monitoring", "matches", match_id, "lineage", figure=figure, page=number, count=ON_PAGE)
    alert = await page.get("alerts", match_id)
    metric = found["figure"].split("/")[1]
    read = {each["name"]: each for rule in alert["rules"] for each in rule["values"]}.get(metric, {})
    title, value_format = read.get("title") or spell_out(metric), read.get("format")
    return page.show("alert-figure.html", alert=alert, found=found, title=title, value_format=value_format)


async def _alert_page(page: Page, match_id: str, refusal: Refused | None = None) -> Response:
    alert = await page.get("alerts", match_id)
    notes = await page.get("customer", alert["customerId"], "notes", matchId=match_id)
    status, fault = (200, "") if refusal is None else (refusal.status, refusal.detail)
    faults: Mapping[str, str] = {} if refusal is None else refusal.faults
    shown = {"alert": alert, "notes": notes["notes"], "snoozes": SNOOZES.items(), "here": place(page)}
    acted = (each[who] for each in alert["history"] for who in ("madeBy", "assignee"))
    noted = (each[who] for each in notes["notes"] for who in ("createdBy", "deletedBy"))
    names = await page.names([alert["assignee"], *acted, *noted])
    shown |= {"names": names, "assignees": await list_assignees(page), "fault": fault, "faults": faults}
    return page.show("alert.html", status, **shown)


async def list_assignees(page: Page) -> Sequence[tuple[str, str]]:
    """Return whom work can be assigned to, as options of a choice."""
    found = (await page.get("colleagues"))["colleagues"]
    return [("", "Nobody"), *((each["userId"], each["name"]) for each in found)]


def age(seconds: int) -> str:
    """Write how long something waits in its largest unit: `3 hours`."""
    for size, unit in AGES:
        if seconds >= size:
            return quantity(seconds // size, unit)
    return "less than a minute"


def place(page: Page) -> str:
    """Return the address of this page on this site, for forms that come back to it."""
    url = page.request.url
    return f"{url.path}?{url.query}" if url.query else url.path
