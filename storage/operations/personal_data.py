"""Find what is stored about a person, to answer a request for access or to check that everything was deleted.

The search reads every table of the database (with PostgreSQL, Dagster's too), every file of the lake, whether or not a
row names it, earlier versions of a bucket's objects, this machine's copies of them, every other file in the home (logs
and, if the database is SQLite, Dagster's records), and the messages that wait in a fleet's broker. What it can't read,
it lists. Letters are not stored: each is generated from its evaluation and its customer when it is requested.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final
from uuid import UUID

import polars as pl
from polars import selectors
from polars.exceptions import PolarsError
from sqlalchemy import Column, Connection, Inspector, MetaData, RowMapping, Table, inspect, select

from pipelines.vocabulary.errors import Corrupt
from storage.core import brokers, homes
from storage.core.models import customers, jobs
from storage.core.store import Store
from storage.operations.integrity import find_all_named, find_customers_by_path
from storage.operations.resealing import SEALED_FILES

ROWS_AT_ONCE: Final = 10_000
SYSTEM_SCHEMAS: Final = ("information_schema",)
PARQUET, ARROW, PDF = b"PAR1", b"ARROW1", b"%PDF"  # how such files begin
CHUNK_BYTES: Final = 2**22
LONGEST_BYTES: Final = 1_000  # of a text
DATABASE_FILES: Final = ("", "-wal", "-shm", "-journal")  # what SQLite appends to the database's name

SEALED: Final = ".sealed"  # how names of sealed files end
CACHE: Final = "cache"  # this machine's copies of a bucket's files
VERSIONS: Final = "versions"  # of a bucket's objects that were replaced or deleted
UPLOADS: Final = "uploads"  # to a bucket, in parts, that did not end
HOME: Final = "home"
HOMES: Final = "homes"  # others that use the database
BROKER: Final = "broker"  # a fleet's
UNNAMED: Final = "no row names this file"

PdfText = Callable[[bytes], tuple[str, bool]]  # its text, and whether that is all


class Finding(StrEnum):
    CONTAINS = "contains"  # one of the texts
    UNREADABLE = "unreadable"  # only a person can tell
    UNRELATED = "unrelated"  # a run that waits for a worker, whose jobs have none of the texts
    UNSEARCHED = "unsearched"  # the note says why


@dataclass(frozen=True)
class Trace:
    """A place where one of the texts is stored, or may be stored."""

    place: str  # a table, a folder of the lake, or one of the places below
    key: str  # of the table's row, or the file's path
    finding: Finding = Finding.CONTAINS
    note: str = ""  # in one line, what a person must know about the place


def find(store: Store, texts: Sequence[str], pdf_text: PdfText) -> Iterator[Trace]:
    """Yield every row and file that contains one of the texts, whatever its case, and files that can't be read.

    All that is stored is read. Rows with a person's id but no name, such as sessions, are found if the id is one of the
    texts.
    """
    search = _Search([form for text in texts for form in _forms(text)], pdf_text)
    yield from _search_tables(store, search)
    lake = _LakeSearch(store, search)
    yield from lake.search_named_files()
    yield from lake.search_unnamed_files()
    yield from _or_unsearched(VERSIONS, lake.search_versions())
    yield from _or_unsearched(UPLOADS, lake.list_uploads())
    yield from lake.search_cache()
    yield from _search_home(store, search)
    yield from _or_unsearched(BROKER, _search_broker(store, search))
    yield from _list_other_homes(store)


def _or_unsearched(place: str, traces: Iterator[Trace]) -> Iterator[Trace]:
    """Yield the traces of a place and, if it can't be reached, that."""
    try:
        yield from traces
    except ConnectionError as error:
        yield Trace(place, "", Finding.UNSEARCHED, str(error))


def _forms(text: str) -> Iterator[str]:
    """Yield the text as it may be stored: JSON has escapes, and SQLite has ids without hyphens."""
    yield text.casefold()
    yield json.dumps(text.casefold(), ensure_ascii=False)[1:-1]
    with suppress(ValueError):
        yield UUID(text).hex


class _Search:
    """A search for texts, which must be casefolded."""

    def __init__(self, texts: Sequence[str], pdf_text: PdfText) -> None:
        self._texts = texts
        self._pdf_text = pdf_text

    def is_in(self, value: object) -> bool:
        """Return whether a value, or any value in it, contains one of the texts."""
        match value:
            case None:
                return False
            case bytes():
                return self.is_in_content(value) is True
            case dict():
                return any(map(self.is_in, (*value, *value.values())))
            case list() | tuple():
                return any(map(self.is_in, value))
            case _:
                folded = str(value).casefold()
                return any(text in folded for text in self._texts)

    def is_in_content(self, content: bytes) -> bool | None:
        """Return whether the content of a file contains one of the texts; None if only a person can tell."""
        if content.startswith((PARQUET, ARROW)):
            frame = pl.read_parquet(content) if content.startswith(PARQUET) else pl.read_ipc(content)
            readable = frame.with_columns(selectors.binary().bin.encode("hex"))  # ids
            return any(self.is_in(rows.write_ndjson()) for rows in readable.iter_slices(ROWS_AT_ONCE))
        if content.startswith(PDF):
            text, is_all = self._pdf_text(content)
            return self.is_in(text) or (False if is_all else None)
        try:
            return self.is_in(content.decode())
        except UnicodeDecodeError:
            return self.is_in(content.decode(errors="ignore")) or None


def _search_tables(store: Store, search: _Search) -> Iterator[Trace]:
    with store.db.engine.connect() as connection:
        for table in _tables(connection):
            for row in connection.execution_options(yield_per=ROWS_AT_ONCE).execute(select(table)).mappings():
                if search.is_in([*row.values()]):
                    yield Trace(table.fullname, _row_key(table, row))


def _tables(connection: Connection) -> Iterator[Table]:
    inspector = inspect(connection)
    for schema in inspector.get_schema_names():
        if schema not in SYSTEM_SCHEMAS:
            own = None if schema == inspector.default_schema_name else schema
            yield from (_columns_of(inspector, name, own) for name in inspector.get_table_names(own))


def _columns_of(inspector: Inspector, name: str, schema: str | None) -> Table:
    """Return a table with its columns and key only: the inspector warns about indexes of expressions on SQLite."""
    keys = inspector.get_pk_constraint(name, schema)["constrained_columns"]
    columns = (
        Column(each["name"], each["type"], primary_key=each["name"] in keys)
        for each in inspector.get_columns(name, schema)
    )
    return Table(name, MetaData(), *columns, schema=schema)


def _row_key(table: Table, row: RowMapping) -> str:
    return ", ".join(str(row[column.name]) for column in table.primary_key.columns)


class _LakeSearch:
    """A search of the lake's files and of their copies."""

    def __init__(self, store: Store, search: _Search) -> None:
        self._store = store
        self._search = search
        self._searched = set[str]()
        with store.db.reading() as r:
            self._named = dict(find_all_named(r))  # path → SHA-256
            self._contexts = {  # what sealed files are sealed for
                path: files.context(file_id)
                for files in SEALED_FILES
                for file_id, path in r.execute(select(files.id, files.table.c.path))
            }

    def search_named_files(self) -> Iterator[Trace]:
        for path, sha256 in self._named.items():
            self._searched.add(path)
            yield from self._search_file(Trace(_folder_of(path), path), path, partial(self._read_named, path, sha256))

    def search_unnamed_files(self) -> Iterator[Trace]:
        """Search files that no row names: those of writers that were killed, and those that a sweep removes later."""
        for path in self._store.lake.list_uncertain():
            if path not in self._searched:
                self._searched.add(path)
                trace = Trace(_folder_of(path), path, note=UNNAMED)
                yield from self._search_file(trace, path, partial(_read_if_there, partial(self._read, path)))

    def search_versions(self) -> Iterator[Trace]:
        """Search versions of a bucket's objects, and current objects that no row ever announced."""
        for version in self._store.lake.list_versions():
            path, version_id = version.path, version.version_id
            replaced = Trace(VERSIONS, f"{path}?versionId={version_id}", note=f"written {_time(version.written)}")
            trace = Trace(_folder_of(path), path, note=UNNAMED) if version.is_current else replaced
            if not version.is_current or path not in self._searched:
                read = partial(_read_if_there, partial(self._read, path, version_id))
                yield from self._search_file(trace, path, read)

    def list_uploads(self) -> Iterator[Trace]:
        """List unfinished uploads, because nobody can read their parts."""
        for upload in self._store.lake.list_uploads():
            with self._store.db.reading() as r:
                customers = find_customers_by_path(r, [upload.path]).get(upload.path, [])
            owners = f", of customer {', '.join(map(str, customers))}" if customers else ""
            note = f"began {_time(upload.began)}{owners}; its parts can't be read"
            yield Trace(UPLOADS, upload.path, Finding.UNREADABLE, note)

    def search_cache(self) -> Iterator[Trace]:
        """Search all copies of a bucket's files, among them those of files that were removed from it."""
        for path, copy in self._store.lake.list_copies():
            yield from self._search_file(Trace(CACHE, copy.name), path, partial(_read_if_there, copy.read_bytes))

    def _search_file(self, trace: Trace, path: str, read: Callable[[], bytes | None]) -> Iterator[Trace]:
        """Yield the trace if the content of a file contains one of the texts, or if only a person can tell."""
        try:
            content = read()
            found = content is not None and self._search.is_in_content(self._open(path, content))
        except (Corrupt, OSError, PolarsError):
            found = None
        if found is not False:
            yield trace if found else replace(trace, finding=Finding.UNREADABLE)

    def _read_named(self, path: str, sha256: bytes) -> bytes:
        """Read a file past the cache, which would grow to the size of the lake."""
        content = self._read(path)
        if hashlib.sha256(content).digest() != sha256:
            raise Corrupt("Lake.ChecksumMismatch", f"The data file {path} is not what was written.")
        return content

    def _read(self, path: str, version_id: str | None = None) -> bytes:
        return b"".join(self._store.lake.chunks(path, version_id))

    def _open(self, path: str, content: bytes) -> bytes:
        """Return the content of a file, opened if it is sealed."""
        if not path.endswith(SEALED):
            return content
        return self._store.vault.open(content, self._contexts.get(path) or _guess_context(path))


def _read_if_there(read: Callable[[], bytes]) -> bytes | None:
    """Read a file that may be missing: it was announced and not written, or removed since it was listed."""
    try:
        return read()
    except FileNotFoundError:
        return None


def _guess_context(path: str) -> bytes:
    """Return what a file is sealed for. Until it is resealed for the first time, it is named after its id."""
    for files in SEALED_FILES:
        if path.startswith(f"{files.folder}/"):
            with suppress(ValueError):
                return files.context(UUID(path.rpartition("/")[2].removesuffix(files.suffix)))
    return b""


def _time(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}Z"


def _folder_of(path: str) -> str:
    return path.partition("/")[0]


def _search_home(store: Store, search: _Search) -> Iterator[Trace]:
    """Search the files of the home besides the lake and the database, which were searched before."""
    home, lake = store.settings.home.resolve(), store.lake.root.resolve()
    database = store.db.engine.url.database if store.db.is_sqlite else None
    # Exact names, not their beginnings: the copy of a damaged log begins the same, but was not searched.
    searched = set() if database is None else {Path(f"{Path(database).resolve()}{end}") for end in DATABASE_FILES}
    for path in sorted(home.rglob("*")):
        if path.is_file() and not path.is_relative_to(lake) and path not in searched and _contains_a_text(path, search):
            yield Trace(HOME, str(path.relative_to(home)))


def _contains_a_text(path: Path, search: _Search) -> bool:
    before = b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            if search.is_in((before + chunk).decode(errors="ignore")):
                return True
            before = chunk[-LONGEST_BYTES:]
    return False


def _search_broker(store: Store, search: _Search) -> Iterator[Trace]:
    """List the runs that wait in the broker. Their messages hold ids only, so their jobs are searched, too."""
    for run in brokers.read_waiting(store.settings) if store.settings.broker_url else []:
        query = select(jobs, customers).outerjoin_from(jobs, customers).where(jobs.c.batch_token == run.batch)
        with store.db.reading() as r:
            rows = [tuple(row) for row in r.execute(query)]
        if search.is_in(run.content):
            finding, note = Finding.CONTAINS, "its message has a text"
        elif search.is_in(rows):
            finding, note = Finding.CONTAINS, "its message holds other ids only, but a job of its batch has a text"
        else:
            finding, note = Finding.UNRELATED, f"neither its message nor its {len(rows)} jobs have a text"
        yield Trace(BROKER, f"{run.queue}: run {run.run_id}", finding, note)


def _list_other_homes(store: Store) -> Iterator[Trace]:
    """List the other homes that use the database: only a command in these homes can search them."""
    with store.db.reading() as r:
        others = homes.list_others(r, store.settings)
    for home in others:
        note = (
            f"last opened on {home.opened_at:%Y-%m-%d}, has logs and copies of its own: run this command there, too,"
            f" or, if its folder is gone, `tidemark homes forget {home.identity}`"
        )
        yield Trace(HOMES, f"{home.identity} of {home.machine}", Finding.UNSEARCHED, note)
