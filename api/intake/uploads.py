"""Accept files as people have them: PDF statements and banks' exports, in one request.

PDFs become a job of their own, as if they had been submitted alone. Each export is read during the request, in a child
process, and becomes a submission for each of its accounts. All jobs are accepted in one transaction, or none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from uuid import uuid4

from starlette.responses import Response

import isolation
from api.core.schemas.common import NoteView
from api.core.schemas.jobs import JobView
from api.http.dependencies import Caller
from api.http.responses import respond_accepted
from api.http.uploads import Files, SentFile
from api.intake import statements as pdfs
from api.intake.export_accounts import IdentifiedStatement, find_accounts
from api.intake.schemas.uploads import SubmittedFileView, UploadedFileView, UploadView
from api.intake.submissions import audit_submission
from isolation import Export
from pipelines.intake import rows
from pipelines.intake.exports import Statement, as_submission, require_submissions, statements_of
from pipelines.intake.pdf.page.result import Refusal
from pipelines.intake.statement_rows import shown_name
from pipelines.vocabulary.errors import Fault, InvalidRequest
from storage.customers.customers import Customer
from storage.intake import statements, submissions
from storage.intake.statements import NewFile, StatementFile
from storage.intake.submissions import Landing, with_warnings
from storage.jobs.jobs import Job

READ_AT_ONCE = 2  # exports, each in a child process (our judgement)
MAX_LINES = 100  # that warnings name for one file


@dataclass(frozen=True)
class _File:
    """A file as sent, and what was read of it: nothing of a PDF, an export, or the reason why it can't be read."""

    number: int  # in the request, from 1
    sent: SentFile
    export: Export | None = None
    statements: tuple[Statement, ...] = ()
    refusal: InvalidRequest | None = None

    @property
    def is_pdf(self) -> bool:
        return self.export is None and self.refusal is None

    @property
    def name(self) -> str:
        return shown_name(self.sent.name)

    @property
    def label(self) -> str:
        """What messages call the file: its number, and its name if it has one."""
        return f"File {self.number} ({self.name})" if self.name else f"File {self.number}"


@dataclass(frozen=True)
class _Submission:
    """The rows of one account of an export, which are durable in their landing file."""

    file: _File
    found: IdentifiedStatement
    landing: Landing


def submit(caller: Caller, customer_id: str, files: Files) -> Response:
    """Store what was read, and respond with the accepted jobs.

    Raises:
        NotFound: the customer is not the caller's.
        InvalidRequest: none of the files can be read.
    """
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
    read = [_read(caller, number, sent) for number, sent in enumerate(files.sent, start=1)]
    _require_a_readable_file(read)
    landed = [_land(caller, file, found) for file, found in _accounts(caller, customer, read)]
    stored = {file.number: _store(caller, file) for file in read} if any(file.is_pdf for file in read) else {}
    with caller.writing() as w:
        accepted_jobs = {file.number: list[Job]() for file in read}
        if stored:
            sent_on = {number: file for number, file in stored.items() if file is not None}
            job = statements.submit(
                w, caller.store.lake, customer, uuid4(), list(sent_on.values()), caller.who, caller.now
            )
            audit_submission(caller, w, customer, job)
            for number in sent_on:
                accepted_jobs[number].append(job)
        for submission in _with_warnings(read, landed, names_refused=not stored):
            identified = (submission.found.account, submission.found.oddities)
            job = submissions.accept(
                w,
                caller.store,
                customer,
                identified,
                submission.landing,
                appended=False,
                who=caller.who,
                now=caller.now,
            )
            audit_submission(caller, w, customer, job)
            accepted_jobs[submission.file.number].append(job)
        response = _view(read, accepted_jobs)
        return caller.store_response(w, respond_accepted(response, f"/v1/jobs/{response.jobs[0].job_id}/status"))


def _read(caller: Caller, number: int, sent: SentFile) -> _File:
    if pdfs.is_pdf(sent):
        return _File(number, sent)
    try:
        with caller.request.app.state.reading.reserve(caller.requester, 1):
            export = isolation.read_export(sent.name, sent.content())
        found = tuple(statements_of(export.rows, caller.store.vault.digest))
        require_submissions(found, caller.store.settings.max_transactions)
    except InvalidRequest as refusal:
        return _File(number, sent, refusal=refusal)
    return _File(number, sent, export, found)


def _require_a_readable_file(files: Sequence[_File]) -> None:
    """Raise InvalidRequest if no file can be read. If one can, the response and its job name the others."""
    refusals = [file.refusal for file in files if file.refusal is not None]
    if len(refusals) == len(files):
        faults = [Fault(f"/files/{place}", refusal.code, _sentence(refusal)) for place, refusal in enumerate(refusals)]
        detail = faults[0].message if len(faults) == 1 else "None of the files can be read."
        raise InvalidRequest("Upload.NothingToRead", detail, tuple(faults))


def _sentence(refusal: InvalidRequest) -> str:
    return f"The file {refusal.detail}."


def _accounts(caller: Caller, customer: Customer, files: Sequence[_File]) -> list[tuple[_File, IdentifiedStatement]]:
    """Return the accounts of all exports in the order of their first rows, as a lender would have sent them."""
    each = [(file, statement) for file in files for statement in file.statements]
    found = find_accounts(caller, customer, [(PurePath(file.name).stem, statement) for file, statement in each])
    pairs = [(file, account) for (file, _), account in zip(each, found, strict=True)]
    return sorted(pairs, key=lambda pair: str(pair[1].statement.rows["date"].min() or ""))


def _land(caller: Caller, file: _File, found: IdentifiedStatement) -> _Submission:
    """Store an account's rows durably."""
    landing = submissions.land(caller.store, found.statement.rows, caller.now)
    return _Submission(file, found, with_warnings(landing, _refused_lines(caller, file, found)))


def _refused_lines(caller: Caller, file: _File, found: IdentifiedStatement) -> Iterator[dict[str, str]]:
    """Yield a warning with the lines of the rows that the job will refuse: its `errors` only have the rows' numbers."""
    checked = rows.validate(as_submission((found.statement,), caller.now).rows, caller.store.settings.timezone)
    positions = checked.rejected.select("position").collect()["position"]
    if len(positions):
        lines = sorted(found.statement.lines.gather(positions))
        shown = ", ".join(map(str, lines[:MAX_LINES])) + (" …" if len(lines) > MAX_LINES else "")
        message = f"{file.label}: rows are rejected on these lines: {shown}."
        yield {"code": "Export.RowsRefused", "message": message}


def _store(caller: Caller, file: _File) -> NewFile | None:
    """Store a PDF; describe a file that can't be read, so that the PDFs' job names it. Return None for an export."""
    if file.is_pdf:
        return pdfs.store_file(caller, file.sent)
    if file.refusal is None:
        return None
    described = (uuid4(), file.name, file.sent.sha256, file.sent.size)
    return NewFile(*described, refusal=Refusal.UNREADABLE, message=_sentence(file.refusal))


def _with_warnings(
    files: Sequence[_File], landed: Sequence[_Submission], *, names_refused: bool
) -> Iterator[_Submission]:
    """Yield each submission with its warnings. The first of a file has those about the whole file, and the first of all
    those about files that can't be read, unless another job names these.
    """
    warned = set[int]()
    for submission in landed:
        warnings = list[dict[str, str]]()
        if names_refused and not warned:
            warnings += _refused_files(files)
        if submission.file.number not in warned:
            warnings += _file_warnings(submission.file)
        warned.add(submission.file.number)
        yield replace(submission, landing=with_warnings(submission.landing, warnings))


def _refused_files(files: Sequence[_File]) -> Iterator[dict[str, str]]:
    for file in files:
        if file.refusal is not None:
            yield {"code": file.refusal.code, "message": f"{file.label} {file.refusal.detail}."}


def _file_warnings(file: _File) -> Iterator[dict[str, str]]:
    """Yield warnings about how an export was read, and about lines of it that could not be."""
    assert file.export is not None
    about = file.label
    yield from ({"code": "Export.ReadAs", "message": f"{about}: {note}"} for note in file.export.notes)
    for line in file.export.refused[:MAX_LINES]:
        yield {"code": line.code, "message": f"{about}, line {line.line}: {line.message}"}
    if (more := len(file.export.refused) - MAX_LINES) > 0:
        yield {"code": "Export.MoreLines", "message": f"{about}: {more:,} more lines could not be read."}


def _view(files: Sequence[_File], jobs_of: Mapping[int, Sequence[Job]]) -> UploadView:
    each = {job.job_id: job for found in jobs_of.values() for job in found}
    return UploadView(
        jobs=[JobView.of(job) for job in each.values()],
        files=[
            UploadedFileView(
                file_name=file.name,
                job_ids=[job.job_id for job in jobs_of[file.number]],
                refused=None if file.refusal is None else _note(file.refusal),
            )
            for file in files
        ],
    )


def describe_file(file: StatementFile) -> SubmittedFileView:
    """Return a file of a submission of PDFs as it is shown."""
    reason = Refusal(file.refusal) if file.refusal else Refusal.UNSUPPORTED_CURRENCY  # which may refuse a part
    return SubmittedFileView(
        file_id=file.file_id,
        file_name=file.file_name,
        position=file.position,
        pages=file.pages,
        repeats=file.repeats,
        refused=None if file.message is None else NoteView(code=reason.code, message=file.message),
    )


def _note(refusal: InvalidRequest) -> NoteView:
    return NoteView(code=refusal.code, message=_sentence(refusal))
