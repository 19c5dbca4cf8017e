"""PDF statements become rows: each file is read in a child process of its own, several at a time.

Reading changes no customer, so it holds none: what was read lands as a submission's rows do, and its job goes on in the
queue of enrichment. Each job does so as soon as its own files are read. Whatever dies before, the files are read again.
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
from pipelines.intake.pdf.page.result import Extraction, Refusal, Statement, Verdict, refused
from pipelines.intake.pdf.statement.overlaps import repeats_within
from pipelines.vocabulary.errors import Corrupt
from storage.core.models import Queue
from storage.core.store import Store
from storage.intake import statements
from storage.intake.statements import Read, ReadFile, StatementFile
from storage.jobs import batches
from storage.jobs.jobs import Job

GROUP = "transactions"
REPORT_EVERY_S = 1.0  # of pages read: what takes less tells nothing on the way

OnProgress = Callable[[int, int], None]
Reader = Callable[[bytes, str | None, OnProgress], Extraction]

log = logging.getLogger(__name__)


@asset(partitions_def=days, group_name=GROUP, kinds={"parquet"})
def extracted_statements(context: AssetExecutionContext, store: ResourceParam[Store]) -> MaterializeResult:
    """Statements read from the PDFs that clients sent that day: rows with their places on the pages, and how far the
    printed balances prove them.

    Materialised by hand, a day reads nothing anew: what a file says doesn't change.
    """
    with batch_of(context, store, Queue.EXTRACTION) as work:
        counts = extract_all(store, work) if work.jobs else Counter[str]()
    return MaterializeResult(metadata=dict(counts))


def in_a_child(content: bytes, password: str | None, on_progress: OnProgress) -> Extraction:
    return isolation.extract(content, password, on_progress=on_progress)


def extract_all(store: Store, work: Work, read: Reader = in_a_child) -> Counter[str]:
    """Read the files of all jobs of a batch, and let each job go on; what there was of each kind.

    Raises:
        Superseded: the batch was given up; jobs that had landed by then are not in it any more.
    """
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores, "statements") as files, ThreadPoolExecutor(len(work.jobs), "jobs") as jobs:
        try:
            ending = [jobs.submit(_one_job, store, work, job, read, files) for job in work.jobs]
            wait(ending)
        except BaseException:  # told to stop: what is being read is given up with this process
            files.shutdown(wait=False, cancel_futures=True)
            raise
    counts = sum((each.result() for each in ending), Counter[str]())
    with store.db.writing() as w:
        batches.commit(w, work.token)
    return counts


def _one_job(store: Store, work: Work, job: Job, read: Reader, pool: Executor) -> Counter[str]:
    """Read a job's files, each content once, and let the job go on."""
    with store.db.reading() as r:
        files = statements.files_of(r, job)
    progress = _Progress(store, work.token, job)
    reading = [pool.submit(_one_content, store, same, read, progress) for same in _by_content(files)]
    found = sorted(chain(*(each.result() for each in reading)), key=lambda each: each.file.position)
    return _go_on(store, work, job, found)


def _by_content(files: Sequence[StatementFile]) -> list[list[StatementFile]]:
    same: defaultdict[bytes, list[StatementFile]] = defaultdict(list)
    for file in files:
        same[file.sha256].append(file)
    return list(same.values())


def _one_content(store: Store, same: Sequence[StatementFile], read: Reader, progress: "_Progress") -> list[ReadFile]:
    """The same file sent several times is read until it opens: each may have come with another password."""
    found: list[ReadFile] = []
    for file in same:
        opened = next((each for each in found if each.extraction.refusal is None), None)
        if opened is not None:
            found.append(ReadFile(file, opened.extraction, opened.file.file_id, opened.accounts))
        else:
            found.append(_one_file(store, file, read, progress.of(file.file_id)))
    return found


def _one_file(store: Store, file: StatementFile, read: Reader, on_progress: OnProgress) -> ReadFile:
    if file.refusal is not None:
        return ReadFile(file, refused(Refusal(file.refusal), file.message or ""))
    if (before := _read_before(store, file)) is not None:
        return before
    try:
        content, password = statements.original(store, file), statements.password_of(store.vault, file)
    except Corrupt as error:
        log.error("%s", error.detail)
        return ReadFile(file, refused(Refusal.CORRUPT, "It was stored, and can't be read any more: send it again."))
    return ReadFile(file, _sound(read(content, password, on_progress)))


def _read_before(store: Store, file: StatementFile) -> ReadFile | None:
    try:
        with store.db.reading() as r:
            return statements.read_before(r, store.lake, file)
    except Corrupt as error:
        log.error("%s", error.detail)
        return None


def _sound(extraction: Extraction) -> Extraction:
    """What can be kept as rows, or a refusal."""
    extraction = statement_rows.in_currency(extraction, CURRENCY)
    if extraction.refusal is not None:
        return extraction
    if not extraction.statements:
        return refused(Refusal.NOT_A_STATEMENT, "No account statement stands in it.", extraction.pages)
    if not all(map(statement_rows.fits, extraction.statements)):
        return refused(Refusal.LIMITS_EXCEEDED, "It prints amounts that no account has.", extraction.pages)
    return extraction


def _go_on(store: Store, work: Work, job: Job, found: Sequence[ReadFile]) -> Counter[str]:
    """Files first, durable; then the one transaction that makes them the truth."""
    warnings = list(chain.from_iterable(map(_warnings, found)))
    opened = [each for each in found if each.extraction.refusal is None]
    counts = Counter({"files": len(found), "refused files": len(found) - len(opened)})
    if not opened:
        with store.db.writing() as w:
            statements.refuse(w, work.token, job, found, warnings, _error(found), datetime.now(UTC))
        return counts
    read = _assembled(store, work, job, found, opened, warnings)
    with store.db.writing() as w:
        statements.land(w, work.token, read, datetime.now(UTC))
    more = {"statements": len(read.statements), "rows": read.landed_rows, "repeated rows": read.repeated_rows}
    return counts + Counter(more)


def _assembled(
    store: Store,
    work: Work,
    job: Job,
    found: Sequence[ReadFile],
    opened: Sequence[ReadFile],
    warnings: Sequence[dict[str, str]],
) -> Read:
    assert job.customer_id is not None
    origin = {each: file.file.file_id for file in opened for each in _ids(file)}
    on_progress = {each: statement for file in opened for each, statement in _ids(file).items()}
    accounts = {each: account for file in opened for each, account in _accounts(store, job.customer_id, file).items()}
    rows = statement_rows.rows_of(on_progress, _repeated(opened, accounts), store.vault.digest)
    landed = statement_rows.landed(rows, accounts, on_progress)
    return Read(
        job=job,
        files=found,
        statements=on_progress,
        accounts=accounts,
        origin=origin,
        landing=store.lake.put_frame(f"landing/{work.day}/{uuid4()}.parquet", landed),
        rows=(store.lake.put_frame(f"{statements.FOLDER}/{work.day}/{uuid4()}.parquet", rows), rows.height),
        landed_rows=landed.height,
        repeated_rows=rows.height - landed.height,
        warnings=warnings,
    )


def _ids(file: ReadFile) -> dict[UUID, Statement]:
    of_file = partial(statement_rows.statement_id, file.file.file_id)
    return {of_file(position): each for position, each in enumerate(file.extraction.statements, start=1)}


def _accounts(store: Store, customer_id: UUID, file: ReadFile) -> dict[UUID, Account]:
    """By statement. What is kept of a file read before may be masked: its accounts are those that it was of then."""
    found = {
        each: statement_rows.account_of(customer_id, statement, store.vault.digest)
        for each, statement in _ids(file).items()
    }
    before = file.accounts or [account.account_id for account in found.values()]
    return {
        each: replace(account, account_id=account_id)
        for (each, account), account_id in zip(found.items(), before, strict=True)
    }


def _repeated(opened: Sequence[ReadFile], accounts: Mapping[UUID, Account]) -> list[frozenset[int]]:
    """Of each statement, which of its rows another one of the submission holds: of a file sent twice, all."""
    sent = {each.file.file_id for each in opened}
    twice = [each.repeats in sent for each in opened for _ in each.extraction.statements]
    every = [(accounts[each].account_id, statement) for file in opened for each, statement in _ids(file).items()]
    among_others = iter(repeats_within([each for each, again in zip(every, twice, strict=True) if not again]))
    return [
        frozenset(range(len(statement.entries))) if again else frozenset(next(among_others))
        for (_, statement), again in zip(every, twice, strict=True)
    ]


def _warnings(found: ReadFile) -> Iterator[dict[str, str]]:
    """What whoever sent the file should know of it."""
    about = f"File {found.file.position}: "
    if found.extraction.refusal is not None:
        yield {"code": _code(found.extraction.refusal), "message": about + (found.extraction.message or "")}
    elif found.extraction.message is not None:  # some of its statements
        yield {"code": _code(Refusal.UNSUPPORTED_CURRENCY), "message": about + found.extraction.message}
    for statement in found.extraction.statements:
        if statement.verdict is Verdict.UNRECONCILED:
            message = "the balances do not prove the rows of a statement; they were taken as read."
            yield {"code": "Statement.Unreconciled", "message": about + message}
        if masked := statement_rows.masked_entries(statement):
            message = f"rows with card or tax file numbers, which are masked wherever they are shown: {masked:,}."
            yield {"code": "Statement.MaskedNumber", "message": about + message}


def _error(found: Sequence[ReadFile]) -> dict[str, str]:
    """Of a submission whose files were all refused: why, if for one reason."""
    [reason, *others] = {each.extraction.refusal for each in found}
    if reason is None or others:
        return {"code": "Job.AllFilesRefused", "message": "No file could be read: see the job's warnings."}
    return {"code": _code(reason), "message": found[0].extraction.message or "No file could be read."}


def _code(refusal: Refusal) -> str:
    return "Statement." + "".join(word.capitalize() for word in refusal.split("_"))


class _Progress:
    """Tells now and then how many pages of a job's files were read. Called by several threads."""

    def __init__(self, store: Store, token: int, job: Job) -> None:
        self._store = store
        self._token = token
        self._job = job
        self._lock = threading.Lock()
        self._pages: dict[UUID, tuple[int, int]] = {}  # done and total, by file
        self._reported_at = time.monotonic()

    def of(self, file_id: UUID) -> OnProgress:
        return partial(self._read, file_id)

    def _read(self, file_id: UUID, done: int, total: int) -> None:
        with self._lock:
            self._pages[file_id] = (done, total)
            if time.monotonic() - self._reported_at < REPORT_EVERY_S:
                return
            self._reported_at = time.monotonic()
            done, total = (sum(each) for each in zip(*self._pages.values(), strict=True))
        with suppress(SQLAlchemyError), self._store.db.writing() as w:  # who asks hears it with the next pages
            statements.progress(w, self._token, self._job, done, total)
