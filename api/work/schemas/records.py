"""Notes, attachments and the timeline of a customer."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import BeforeValidator, Field

from api.core.schemas.common import MAX_COUNT, Counts, Paging, Received, View
from api.core.schemas.rules import (
    Parameter,
    Rule,
    identifier,
    identifier_parameter,
    masked_text,
    optional,
    required_text,
    whole_parameter,
)
from api.work.cursors import parse_place
from storage.work.notes import MAX_TEXT, NewNote
from storage.work.timeline import EntryKind, Place

DEFAULT_ENTRIES = 50


def _subject(name: str, subject: str) -> Rule:
    return Rule(
        optional(identifier),
        "Note.InvalidSubject",
        f"{name} must be a UUID.",
        {
            "anyOf": [{"type": "string", "format": "uuid"}, {"const": ""}, {"type": "null"}],
            "description": f"The {subject} that the note is about.",
        },
    )


class SentNote(Received):
    """A note on a customer, or on one of its evaluations or matches."""

    text: Annotated[
        str,
        required_text("text", "Note.InvalidText", MAX_TEXT, "Card and tax file numbers are masked.", parse=masked_text),
    ]
    evaluation_id: Annotated[UUID | None, _subject("evaluationId", "evaluation")] = None
    match_id: Annotated[UUID | None, _subject("matchId", "match")] = None

    def record(self) -> NewNote:
        return NewNote(self.text, self.evaluation_id, self.match_id)


class NotesQuery(Paging):
    evaluation_id: Annotated[
        UUID | None,
        identifier_parameter("evaluationId", "Note.InvalidSubject", "Only notes about this evaluation."),
    ] = None
    match_id: Annotated[
        UUID | None, identifier_parameter("matchId", "Note.InvalidSubject", "Only notes about this match.")
    ] = None


class WrittenNoteView(View):
    note_id: UUID
    evaluation_id: UUID | None = Field(description="The decision that it is about; null if none.")
    match_id: UUID | None = Field(description="The alert that it is about; null if none.")
    text: str | None = Field(description="Null: the note was deleted.")
    date_created: datetime = Field(validation_alias="created_at")
    created_by: str = Field(description="Id of a user or a key.")
    date_deleted: datetime | None = Field(validation_alias="deleted_at", description="Null unless deleted.")
    deleted_by: str | None = Field(description="Id of a user or a key; null unless deleted.")


class NoteListView(Counts):
    notes: Sequence[WrittenNoteView] = Field(description="Newest first, with deleted ones.")


class NewNoteView(View):
    """A stored note, without its text: responses stored for repeated requests would keep a deleted text."""

    note_id: UUID
    date_created: datetime = Field(validation_alias="created_at")
    created_by: str = Field(description="Id of a user or a key.")


class NewAttachmentView(View):
    """A stored attachment, without its name: responses stored for repeated requests would keep a deleted name."""

    attachment_id: UUID
    size: int = Field(description="In bytes.")
    sha256: Annotated[str, BeforeValidator(bytes.hex)] = Field(description="Of the file as sent.")
    date_created: datetime = Field(validation_alias="created_at")
    created_by: str = Field(description="Id of a user or a key.")


class AttachmentView(NewAttachmentView):
    file_name: str | None = Field(description="Null: the attachment was deleted.")
    date_deleted: datetime | None = Field(validation_alias="deleted_at", description="Null unless deleted.")
    deleted_by: str | None = Field(description="Id of a user or a key; null unless deleted.")


class AttachmentListView(Counts):
    attachments: Sequence[AttachmentView] = Field(description="Newest first, with deleted ones.")


class TimelineQuery(Received):
    cursor: Annotated[
        Place | None,
        Parameter(
            parse_place,
            "Pagination.InvalidCursor",
            "cursor must be empty or the nextCursor of a response, given once.",
            {"type": "string", "description": "Empty for the newest entries, then each response's `nextCursor`."},
        ),
    ] = None
    count: Annotated[
        int,
        whole_parameter(
            "count", "Pagination.InvalidCount", 1, MAX_COUNT, f"Entries in a response, at most {MAX_COUNT}."
        ),
    ] = DEFAULT_ENTRIES


class TimelineEntryView(View):
    """Something that happened to a customer, and the ids that it concerns."""

    kind: EntryKind = Field(description="Programs should branch on this; `sentence` is for people.")
    date: datetime = Field(description="When it happened.")
    who: str | None = Field(description="Id of a user or a key, or `operator`; null if it is not recorded.")
    sentence: str = Field(description="What happened, for people.")
    job_id: UUID | None = Field(description="Null if it concerns no job.")
    statement_id: UUID | None = Field(description="Null if it concerns no statement.")
    evaluation_id: UUID | None = Field(description="Null if it concerns no evaluation.")
    match_id: UUID | None = Field(description="Null if it concerns no alert.")
    note_id: UUID | None = Field(description="Null if it concerns no note.")
    attachment_id: UUID | None = Field(description="Null if it concerns no attachment.")
    correction_id: UUID | None = Field(description="Null if it concerns no correction.")


class TimelineView(View):
    entries: Sequence[TimelineEntryView] = Field(description="Newest first.")
    next_cursor: str | None = Field(description="The cursor of the next entries; null if these are the last.")
