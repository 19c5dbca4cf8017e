"""Extract rows from PDF statements. Each file is read in its own child process, several in parallel.

Reading changes no customer's data, so it locks no customer. The rows land like those of other submissions, and the job
continues in the queue of enrichment as soon as its own files are read. If the process dies before, they are read again.
"""

import logging
import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from uuid import UUID, uuid4

from dagster import AssetExecutionContext, MaterializeResult, ResourceParam, asset
from sqlalchemy.exc import SQLAlchemyError

import isolation
from assets.core.batches import Work, batch_of, days
from pipelines.intake import statement_rows
from pipelines.intake.accounts import Account
from pipelines.intake.currencies import CURRENCY
from pipelines.intake.pdf.page.result import Extraction, Refusal, Statement, Verdict, refused_extraction
from pipelines.intake.pdf.statement.overlaps import repeats_within
from pipelines.vocabulary.errors import Corrupt
from storage.core.models import Queue
from storage.core.store import Store
from storage.intake import statements
from storage.intake.statements import ReadFile, ReadJob, StatementFile
from storage.jobs import batches
from storage.jobs.jobs import Job

GROUP = "transactions"
REPORT_EVERY_S = 1.0  # between reports of progress; shorter work reports none

OnProgress = Callable[[int, int], None]
Reader = Callable[[bytes, str | None, OnProgress], Extraction]

log = logging.getLogger(__name__)


@asset(partitions_def=days, group_name=GROUP, kinds={"parquet"})
def extracted_statements(context: AssetExecutionContext, store: ResourceParam[Store]) -> MaterializeResult:
    """Read the PDF statements that clients sent that day: rows with their positions on the pages, and how far the
    printed balances confirm them.

    A day that is materialised by hand reads no file again, because a file's content doesn't change.
    """
    with batch_of(context, store, Queue.EXTRACTION) as work:
        counts = extract_all(store, work) if work.jobs else Counter[str]()
    return MaterializeResult(metadata=dict(counts))


def read_in_child(content: bytes, password: str | None, on_progress: OnProgress) -> Extraction:
    return isolation.extract(content, password, on_progress=on_progress)


def extract_all(store: Store, work: Work, read: Reader = read_in_child) -> Counter[str]:
    """Read the files of all jobs of a batch, and let each job continue. Return counts of files, statements and rows.

    Raises:
        Superseded: the batch was given up. Jobs that had landed before are no longer part of it.
    """
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores, "statements") as files, ThreadPoolExecutor(len(work.jobs), "jobs") as jobs:
        try:
            futures = [jobs.submit(_extract_job, store, work, job, read, files) for job in work.jobs]
            wait(futures)
        except BaseException:  # an interrupt: don't wait for the files that are being read
            files.shutdown(wait=False, cancel_futures=True)
            raise
    counts = sum((future.result() for future in futures), Counter[str]())
    with store.db.writing() as w:
        batches.commit(w, work.token)
    return counts


def _extract_job(store: Store, work: Work, job: Job, read: Reader, pool: Executor) -> Counter[str]:
    """Read a job's files, identical ones once, and let the job continue."""
    with store.db.reading() as r:
        files = statements.list_files(r, job)
    progress = _Progress(store, work.token, job)
    futures = [pool.submit(_read_copies, store, copies, read, progress) for copies in _group_by_content(files)]
    read_files = sorted(chain(*(future.result() for future in futures)), key=lambda read_file: read_file.file.position)
    return _land(store, work, job, read_files)


def _group_by_content(files: Sequence[StatementFile]) -> list[list[StatementFile]]:
    copies: defaultdict[bytes, list[StatementFile]] = defaultdict(list)
    for file in files:
        copies[file.sha256].append(file)
    return list(copies.values())


def _read_copies(store: Store, copies: Sequence[StatementFile], read: Reader, progress: "_Progress") -> list[ReadFile]:
    """Read identical files until one opens: each may have been sent with a different password."""
    read_files: list[ReadFile] = []
    for file in copies:
        opened = next((before for before in read_files if before.extraction.refusal is None), None)
        if opened is not None:
            read_files.append(ReadFile(file, opened.extraction, opened.file.file_id, opened.accounts))
        else:
            read_files.append(_read_file(store, file, read, progress.for_file(file.file_id)))
    return read_files


def _read_file(store: Store, file: StatementFile, read: Reader, on_progress: OnProgress) -> ReadFile:
    if file.refusal is not None:
        return ReadFile(file, refused_extraction(Refusal(file.refusal), file.message or ""))
    if (earlier := _find_earlier_reading(store, file)) is not None:
        return earlier
    try:
        content, password = statements.open_original(store, file), statements.open_password(store.vault, file)
    except Corrupt as error:
        log.error("%s", error.detail)
        return ReadFile(file, refused_extraction(Refusal.CORRUPT, "The stored file is damaged: send it again."))
    return ReadFile(file, _check_storable(read(content, password, on_progress)))


def _find_earlier_reading(store: Store, file: StatementFile) -> ReadFile | None:
    try:
        with store.db.reading() as r:
            return statements.find_earlier_reading(r, store.lake, file)
    except Corrupt as error:
        log.error("%s", error.detail)
        return None


def _check_storable(extraction: Extraction) -> Extraction:
    """Return the statements that can be stored as rows, or a refusal."""
    extraction = statement_rows.in_currency(extraction, CURRENCY)
    if extraction.refusal is not None:
        return extraction
    if not extraction.statements:
        return refused_extraction(Refusal.NOT_A_STATEMENT, "The file contains no account statement.", extraction.pages)
    if not all(map(statement_rows.fits, extraction.statements)):
        return refused_extraction(
            Refusal.LIMITS_EXCEEDED, "The file prints amounts that no account has.", extraction.pages
        )
    return extraction


def _land(store: Store, work: Work, job: Job, files: Sequence[ReadFile]) -> Counter[str]:
    """Write the rows to durable files, then commit them in one transaction with the job's next stage."""
    warnings = list(chain.from_iterable(map(_warnings, files)))
    opened = [file for file in files if file.extraction.refusal is None]
    counts = Counter({"files": len(files), "refused files": len(files) - len(opened)})
    if not opened:
        with store.db.writing() as w:
            statements.refuse(w, work.token, job, files, warnings, _error(files), datetime.now(UTC))
        return counts
    read = _write_rows(store, work, job, files, opened, warnings)
    with store.db.writing() as w:
        statements.land(w, store.lake, work.token, read, datetime.now(UTC))
    more = {"statements": len(read.statements), "rows": read.landed_rows, "repeated rows": read.repeated_rows}
    return counts + Counter(more)


def _write_rows(
    store: Store,
    work: Work,
    job: Job,
    files: Sequence[ReadFile],
    opened: Sequence[ReadFile],
    warnings: Sequence[dict[str, str]],
) -> ReadJob:
    assert job.customer_id is not None
    by_id = {id_: statement for file in opened for id_, statement in _statements_by_id(file).items()}
    origin = {id_: file.file.file_id for file in opened for id_ in _statements_by_id(file)}
    accounts = {id_: account for file in opened for id_, account in _accounts(store, job.customer_id, file).items()}
    rows = statement_rows.rows_of(by_id, _repeated_rows(opened, accounts), store.vault.digest)
    landed = statement_rows.land_statement_rows(rows, accounts, by_id)
    return ReadJob(
        job=job,
        files=files,
        statements=by_id,
        accounts=accounts,
        origin=origin,
        landing=store.lake.put_frame(f"landing/{work.day}/{uuid4()}.parquet", landed),
        rows=(store.lake.put_frame(f"{statements.FOLDER}/{work.day}/{uuid4()}.parquet", rows), rows.height),
        landed_rows=landed.height,
        repeated_rows=rows.height - landed.height,
        warnings=warnings,
    )


def _statements_by_id(file: ReadFile) -> dict[UUID, Statement]:
    id_at = partial(statement_rows.statement_id, file.file.file_id)
    return {id_at(position): statement for position, statement in enumerate(file.extraction.statements, start=1)}


def _accounts(store: Store, customer_id: UUID, file: ReadFile) -> dict[UUID, Account]:
    """Return each statement's account. An earlier reading of the file may hold masked account numbers, from which no
    account id can be derived; it names the accounts itself.
    """
    derived = {
        id_: statement_rows.account_of(customer_id, statement, store.vault.digest)
        for id_, statement in _statements_by_id(file).items()
    }
    account_ids = file.accounts or [account.account_id for account in derived.values()]
    return {
        id_: replace(account, account_id=account_id)
        for (id_, account), account_id in zip(derived.items(), account_ids, strict=True)
    }


def _repeated_rows(opened: Sequence[ReadFile], accounts: Mapping[UUID, Account]) -> list[frozenset[int]]:
    """Return for each statement its rows that another statement of the submission holds too: all, if its file was sent
    twice.
    """
    sent = {file.file.file_id for file in opened}
    is_copy = [file.repeats in sent for file in opened for _ in file.extraction.statements]
    every = [
        (accounts[id_].account_id, statement) for file in opened for id_, statement in _statements_by_id(file).items()
    ]
    originals = [each for each, copy in zip(every, is_copy, strict=True) if not copy]
    repeats = iter(repeats_within(originals))
    return [
        frozenset(range(len(statement.entries))) if copy else frozenset(next(repeats))
        for (_, statement), copy in zip(every, is_copy, strict=True)
    ]


def _warnings(file: ReadFile) -> Iterator[dict[str, str]]:
    """Yield warnings about the file for its sender."""
    about = f"File {file.file.position}: "
    if file.extraction.refusal is not None:
        yield {"code": file.extraction.refusal.code, "message": about + (file.extraction.message or "")}
    elif file.extraction.message is not None:  # only some of its statements are in another currency
        yield {"code": Refusal.UNSUPPORTED_CURRENCY.code, "message": about + file.extraction.message}
    for statement in file.extraction.statements:
        if statement.verdict is Verdict.UNRECONCILED:
            message = "the balances do not confirm the rows of a statement; they were used as read."
            yield {"code": "Statement.Unreconciled", "message": about + message}
        if masked := statement_rows.masked_entries(statement):
            message = f"rows with card or tax file numbers, which are masked wherever they are shown: {masked:,}."
            yield {"code": "Statement.MaskedNumber", "message": about + message}


def _error(files: Sequence[ReadFile]) -> dict[str, str]:
    """Return the error of a submission whose files were all refused: their reason, if all have the same."""
    [reason, *others] = {file.extraction.refusal for file in files}
    if reason is None or others:
        return {"code": "Job.AllFilesRefused", "message": "No file could be read: see the job's warnings."}
    return {"code": reason.code, "message": files[0].extraction.message or "No file could be read."}


class _Progress:
    """Records from time to time how many pages of a job's files were read. Several threads use it."""

    def __init__(self, store: Store, token: int, job: Job) -> None:
        self._store = store
        self._token = token
        self._job = job
        self._lock = threading.Lock()
        self._pages: dict[UUID, tuple[int, int]] = {}  # read and in total, by file
        self._reported_at = time.monotonic()

    def for_file(self, file_id: UUID) -> OnProgress:
        return partial(self._record, file_id)

    def _record(self, file_id: UUID, done: int, total: int) -> None:
        with self._lock:
            self._pages[file_id] = (done, total)
            if time.monotonic() - self._reported_at < REPORT_EVERY_S:
                return
            self._reported_at = time.monotonic()
            done, total = (sum(pages) for pages in zip(*self._pages.values(), strict=True))
        with suppress(SQLAlchemyError), self._store.db.writing() as w:  # the next report makes up for a lost one
            statements.record_progress(w, self._token, self._job, done, total)
