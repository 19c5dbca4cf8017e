"""Files of any kind that were submitted in one request."""

from collections.abc import Sequence
from uuid import UUID

from pydantic import Field

from api.core.schemas.common import Counts, NoteView, View
from api.core.schemas.jobs import JobView

_FILE_NAME = "As sent, without control characters, and with card and tax file numbers masked."


class UploadedFileView(View):
    file_name: str = Field(description=_FILE_NAME)
    job_ids: Sequence[UUID] = Field(description="The jobs with its rows: one for each account of an export.")
    refused: NoteView | None = Field(description="Why it can't be read.")


class UploadView(View):
    """The jobs that read or enrich the files, and the files in the order of the request."""

    jobs: Sequence[JobView] = Field(description="One for all PDF statements, and one for each account of each export.")
    files: Sequence[UploadedFileView] = Field(description="In the order of the request.")


class SubmittedFileView(View):
    """A file of a submission of PDF statements."""

    file_id: UUID
    file_name: str = Field(description=_FILE_NAME)
    position: int = Field(description="Among the submission's files, from 1; warnings of the job refer to it.")
    pages: int | None = Field(description="Null until the file has been read.")
    repeats: UUID | None = Field(description="An identical file that was read before; this one was not read again.")
    refused: NoteView | None = Field(
        description="Why no statement was read from it, or why not all were: some are in another currency."
    )


class SubmittedFileListView(Counts):
    files: list[SubmittedFileView] = Field(description="In the order of the request.")
