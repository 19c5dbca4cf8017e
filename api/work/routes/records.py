"""Notes on a customer, files attached to it, and its timeline."""

from typing import Annotated
from urllib.parse import quote
from uuid import uuid4

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core.schemas.common import Paging
from api.http.dependencies import Allow, AttachmentId, Caller, CustomerId, NoteId, as_uuid
from api.http.documented import DAMAGED_FILE, File, envelope, refuses
from api.http.idempotency import IDEMPOTENT
from api.http.responses import respond, respond_list
from api.http.route import Route
from api.http.uploads import AttachedFile
from api.intake.statements import sealing
from api.work.cursors import cursor_text
from api.work.schemas.records import (
    AttachmentListView,
    AttachmentView,
    NewAttachmentView,
    NewNoteView,
    NoteListView,
    NotesQuery,
    SentNote,
    TimelineQuery,
    TimelineView,
    WrittenNoteView,
)
from api.work.timeline import describe_entry
from pipelines.intake.statement_rows import shown_name
from pipelines.vocabulary.errors import InvalidRequest
from storage.work import attachments, notes, timeline

router = APIRouter(route_class=Route, prefix="/v1/customer/{customerId}", tags=["Work"])
Colleague = Annotated[Caller, Depends(Allow("customer:work"))]
EMPTY = "Attachment.Empty"
FILE_ERRORS = (
    *("Request.MalformedForm", "Attachment.WrongCount", EMPTY),
    *("Attachment.FileTooLarge", "Attachment.TooManyParts"),
)


@router.get(
    "/notes", response_model=envelope(NoteListView), responses=refuses("Evaluation.NotFound", "RuleMatch.NotFound")
)
def list_notes(caller: Colleague, customer_id: CustomerId, query: Annotated[NotesQuery, Query()]) -> Response:
    """List notes on a customer, newest first. A deleted note has no text, only who wrote and deleted it, and when."""
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        if query.evaluation_id is not None:
            caller.evaluation(r, str(query.evaluation_id))
        if query.match_id is not None:
            caller.match(r, str(query.match_id))
        found = notes.find(r, customer, query.evaluation_id, query.match_id, query.requested_page())
    return respond_list("notes", found, WrittenNoteView)


@router.post(
    "/notes",
    status_code=201,
    response_model=envelope(NewNoteView),
    responses=refuses("Note.UnknownSubject"),
    dependencies=[IDEMPOTENT],
)
def add_note(caller: Colleague, customer_id: CustomerId, sent: SentNote) -> Response:
    """Add a note on a customer, or on one of its evaluations or matches. Card and tax file numbers are masked."""
    with caller.writing() as w:
        customer = caller.customer(w, customer_id)
        made = notes.add(w, customer, sent.record(), caller.actor.who, caller.now)
        caller.audit(w, "Note.Added", customerId=customer.customer_id, noteId=made.note_id)
        location = {"Location": f"/v1/customer/{customer.customer_id}/notes"}
        return caller.store_response(w, respond(NewNoteView.of(made), status=201, headers=location))


@router.delete("/notes/{noteId}", response_model=envelope(WrittenNoteView))
def delete_note(caller: Colleague, customer_id: CustomerId, note_id: NoteId) -> Response:
    """Delete a note's text. That there was a note stays on the record."""
    with caller.writing() as w:
        customer = caller.customer(w, customer_id)
        deleted = notes.delete(w, customer, as_uuid(note_id), caller.actor.who, caller.now)
        if deleted.deleted_at == caller.now:
            caller.audit(w, "Note.Deleted", customerId=customer.customer_id, noteId=deleted.note_id)
    return respond(WrittenNoteView.of(deleted))


@router.get("/attachments", response_model=envelope(AttachmentListView))
def list_attachments(caller: Colleague, customer_id: CustomerId, query: Annotated[Paging, Query()]) -> Response:
    """List the files attached to a customer, newest first, also those that were deleted."""
    with caller.reading() as r:
        found = attachments.find(r, caller.customer(r, customer_id), query.requested_page())
    return respond_list("attachments", found, AttachmentView)


@router.post(
    "/attachments",
    status_code=201,
    response_model=envelope(NewAttachmentView),
    responses=refuses(*FILE_ERRORS),
    dependencies=[IDEMPOTENT],
)
def attach_file(caller: Colleague, customer_id: CustomerId, file: AttachedFile) -> Response:
    """Attach a file of any type to a customer. It is stored encrypted, and never opened by the service."""
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
    [sent] = file.sent
    if not sent.size:
        raise InvalidRequest(EMPTY, "The file is empty.")
    name = shown_name(sent.name)
    with sealing:
        sealed = attachments.seal(caller.store, uuid4(), name, sent.sha256, sent.content(), caller.now)
    with caller.writing() as w:
        attachment = attachments.add(w, caller.store.lake, customer, sealed, caller.actor.who, caller.now)
        caller.audit(w, "Attachment.Added", customerId=customer.customer_id, attachmentId=attachment.attachment_id)
        location = {"Location": f"/v1/customer/{customer.customer_id}/attachments/{attachment.attachment_id}/content"}
        return caller.store_response(w, respond(NewAttachmentView.of(attachment), status=201, headers=location))


@router.get(
    "/attachments/{attachmentId}/content",
    response_class=File,
    responses=refuses("Attachment.Gone", *DAMAGED_FILE),
)
def download_attachment(caller: Colleague, customer_id: CustomerId, attachment_id: AttachmentId) -> Response:
    """Download an attached file as it was sent. Browsers save it, and don't show it."""
    with caller.reading() as r:
        found = caller.attachment(r, customer_id, attachment_id)
    content = attachments.open_content(caller.store, found)
    name = quote(found.file_name or "attachment", safe="")
    return File(content, headers={"Content-Disposition": f"attachment; filename*=UTF-8''{name}"})


@router.delete("/attachments/{attachmentId}", response_model=envelope(AttachmentView))
def delete_attachment(caller: Colleague, customer_id: CustomerId, attachment_id: AttachmentId) -> Response:
    """Delete an attached file and its name. That there was one stays on the record."""
    with caller.writing() as w:
        customer = caller.customer(w, customer_id)
        path = attachments.delete(w, customer, as_uuid(attachment_id), caller.actor.who, caller.now)
        deleted = attachments.get(w, customer, as_uuid(attachment_id))
        if path is not None:
            caller.audit(w, "Attachment.Deleted", customerId=customer.customer_id, attachmentId=deleted.attachment_id)
    if path is not None:
        caller.store.lake.discard(path)
    return respond(AttachmentView.of(deleted))


@router.get("/timeline", response_model=envelope(TimelineView))
def get_timeline(caller: Colleague, customer_id: CustomerId, query: Annotated[TimelineQuery, Query()]) -> Response:
    """Read what happened to a customer, newest first: submissions, reports, decisions, alerts and people's work."""
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        entries, following = timeline.read_page(r, customer, query.cursor, query.count)
    shown = [describe_entry(each, caller.store.settings.zone) for each in entries]
    return respond({"entries": shown, "nextCursor": None if following is None else cursor_text(following)})
