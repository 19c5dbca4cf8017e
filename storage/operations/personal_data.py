"""Find what is stored about a person, to answer a request for access or to check that everything was deleted.

The search reads every table of the database (with PostgreSQL, Dagster's too), every file that the database names, and
every other file in the home: logs and, if the database is SQLite, Dagster's records. Letters are not stored: each is
generated from its evaluation and its customer when it is requested.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from uuid import UUID

import polars as pl
from polars import selectors
from sqlalchemy import Column, Connection, Inspector, MetaData, RowMapping, Table, inspect, select

from pipelines.vocabulary.errors import Corrupt
from storage.core.store import Store
from storage.operations.integrity import find_all_named
from storage.operations.resealing import SEALED_FILES

ROWS_AT_ONCE: Final = 10_000
SYSTEM_SCHEMAS: Final = ("information_schema",)
PARQUET, ARROW, PDF = b"PAR1", b"ARROW1", b"%PDF"  # how such files begin
CHUNK_BYTES: Final = 2**22
LONGEST_BYTES: Final = 1_000  # of a text
DATABASE_FILES: Final = ("", "-wal", "-shm", "-journal")  # what SQLite appends to the database's name

PdfText = Callable[[bytes], tuple[str, bool]]  # its text, and whether that is all


@dataclass(frozen=True)
class Trace:
    """A place where one of the texts is stored, or a file that only a person can read."""

    place: str  # a table, a folder of the lake, or `home`
    key: str  # of the table's row, or the file's path
    is_read: bool = True


def find(store: Store, texts: Sequence[str], pdf_text: PdfText) -> Iterator[Trace]:
    """Yield every row and file that contains one of the texts, whatever its case, and files that can't be read.

    All that is stored is read. Rows with a person's id but no name, such as sessions, are found if the id is one of the
    texts.
    """
    search = _Search([form for text in texts for form in _forms(text)], pdf_text)
    with store.db.engine.connect() as connection:
        for table in _tables(connection):
            for row in connection.execution_options(yield_per=ROWS_AT_ONCE).execute(select(table)).mappings():
                if search.is_in([*row.values()]):
                    yield Trace(table.fullname, _row_key(table, row))
    yield from _search_sealed_files(store, search)
    with store.db.reading() as r:
        named = [(path, sha256) for path, sha256 in find_all_named(r) if path.endswith(".parquet")]
    for path, sha256 in named:
        yield from _search_file(path, partial(_read_content, store, path, sha256), search)
    yield from _search_home(store, search)


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


def _search_sealed_files(store: Store, search: _Search) -> Iterator[Trace]:
    for files in SEALED_FILES:
        columns = files.table.c
        with store.db.reading() as r:
            named = r.execute(
                select(files.id, columns.path, columns.stored_sha256).where(columns.path.is_not(None))
            ).all()
        for file_id, path, sha256 in named:
            yield from _search_file(path, partial(_open_sealed, store, path, sha256, files.context(file_id)), search)


def _open_sealed(store: Store, path: str, sha256: bytes, context: bytes) -> bytes:
    return store.vault.open(_read_content(store, path, sha256), context)


def _read_content(store: Store, path: str, sha256: bytes) -> bytes:
    return store.lake.verified_path(path, sha256).read_bytes()


def _search_file(path: str, read: Callable[[], bytes], search: _Search) -> Iterator[Trace]:
    try:
        found = search.is_in_content(read())
    except (Corrupt, OSError):
        found = None
    if found is not False:
        yield Trace(path.partition("/")[0], path, is_read=found is not None)


def _search_home(store: Store, search: _Search) -> Iterator[Trace]:
    """Search the files of the home besides the lake and the database, which were searched before."""
    home, lake = store.settings.home.resolve(), store.lake.root.resolve()
    database = store.db.engine.url.database if store.db.is_sqlite else None
    # Exact names, not their beginnings: the copy of a damaged log begins the same, but was not searched.
    searched = set() if database is None else {Path(f"{Path(database).resolve()}{end}") for end in DATABASE_FILES}
    for path in sorted(home.rglob("*")):
        if path.is_file() and not path.is_relative_to(lake) and path not in searched and _contains_a_text(path, search):
            yield Trace("home", str(path.relative_to(home)))


def _contains_a_text(path: Path, search: _Search) -> bool:
    before = b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            if search.is_in((before + chunk).decode(errors="ignore")):
                return True
            before = chunk[-LONGEST_BYTES:]
    return False
