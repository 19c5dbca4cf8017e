"""A customer's notes and attachments, history and alerts."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from api.console.calls import Refused
from api.console.pages.work import place
from api.console.rendering import as_sent
from api.console.routes import PageRoute
from api.console.visits import Page, SignedIn, path_back

router = APIRouter(route_class=PageRoute, prefix="/customers/{customer_id}", include_in_schema=False)
ON_PAGE = 20


@router.get("/notes")
async def show_notes(page: SignedIn, customer_id: str, number: Annotated[str, Query(alias="page")] = "1") -> Response:
    return await _notes_page(page, customer_id, number)


@router.post("/notes")
async def add_note(page: SignedIn, customer_id: str) -> Response:
    """Add a note, on the customer, an alert or a decision, and go back to the page that has the form."""
    form = await page.form()
    text, subject = str(form.get("text", "")), {name: form.get(name) or None for name in ("matchId", "evaluationId")}
    try:
        await page.post("customer", customer_id, "notes", json={"text": text, **subject})
    except Refused as refusal:
        if refusal.status != 400:
            raise
        return await _notes_page(page, customer_id, "1", refusal, text)
    return page.to(path_back(form, f"/customers/{customer_id}/notes"), "The note is stored.")


@router.post("/notes/{note_id}/delete")
async def delete_note(page: SignedIn, customer_id: str, note_id: str) -> Response:
    form = await page.form()
    await page.delete("customer", customer_id, "notes", note_id)
    return page.to(path_back(form, f"/customers/{customer_id}/notes"), "The note's text is deleted.")


@router.post("/attachments")
async def attach_file(page: SignedIn, customer_id: str) -> Response:
    try:
        await page.pass_on("customer", customer_id, "attachments")
    except Refused as refusal:
        if refusal.status not in (400, 413):
            raise
        return await _notes_page(page, customer_id, "1", refusal)
    return page.to(f"/customers/{customer_id}/notes", "The file is attached.")


@router.get("/attachments/{attachment_id}")
async def download_attachment(page: SignedIn, customer_id: str, attachment_id: str) -> Response:
    return as_sent(await page.file("customer", customer_id, "attachments", attachment_id, "content"))


@router.post("/attachments/{attachment_id}/delete")
async def delete_attachment(page: SignedIn, customer_id: str, attachment_id: str) -> Response:
    await page.check_form()
    await page.delete("customer", customer_id, "attachments", attachment_id)
    return page.to(f"/customers/{customer_id}/notes", "The file is deleted.")


@router.get("/history")
async def show_history(page: SignedIn, customer_id: str, cursor: Annotated[str, Query()] = "") -> Response:
    customer = await page.get("customer", customer_id)
    found = await page.get("customer", customer_id, "timeline", cursor=cursor)
    names = await page.names(each["who"] for each in found["entries"])
    return page.show("history.html", customer=customer, found=found, names=names, is_first=not cursor)


@router.get("/monitoring")
async def show_monitoring(
    page: SignedIn,
    customer_id: str,
    state: Annotated[str, Query()] = "",
    number: Annotated[str, Query(alias="page")] = "1",
) -> Response:
    customer = await page.get("customer", customer_id)
    found = await page.get("alerts", customerId=customer_id, state=state, page=number, count=ON_PAGE)
    names = await page.names(each["assignee"] for each in found["alerts"])
    return page.show("customer-alerts.html", customer=customer, found=found, names=names, state=state)


async def _notes_page(
    page: Page, customer_id: str, number: str, refusal: Refused | None = None, text: str = ""
) -> Response:
    customer = await page.get("customer", customer_id)
    notes = await page.get("customer", customer_id, "notes", page=number, count=ON_PAGE)
    attachments = await page.get("customer", customer_id, "attachments")
    status, fault = (200, "") if refusal is None else (refusal.status, refusal.detail)
    shown = {"notes": notes, "attachments": attachments["attachments"], "fault": fault, "text": text}
    listed = [*notes["notes"], *attachments["attachments"]]
    names = await page.names(each[who] for each in listed for who in ("createdBy", "deletedBy"))
    return page.show("notes.html", status, customer=customer, names=names, here=place(page), **shown)
