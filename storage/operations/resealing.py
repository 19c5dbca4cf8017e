"""Reseal all secrets, that is, encrypt them again under the current data key, so that older data keys can be deleted.

The service keeps running meanwhile. Values are resealed in slices, by conditional updates that skip values that changed
in between. A reader opens each value with the data key that the value names. The values still sealed under an older key
are the work left, so resealing may be killed at any time and continues at the next call.

PDF statements and attachments are files, and files never change. Therefore a new file is written first and made
durable; then one transaction names it instead of the old one, which becomes an orphan. The old file's time of
modification is set to now, so that the sweep leaves it alone while a reader that looked up its name before may still
read it.

A process that read the data keys just before the change uses the older one for at most `FRESH_FOR_S`. `reseal` waits
that long and then does a second pass.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Column, ColumnElement, Table, delete, select, true, update

from pipelines.vocabulary.errors import Corrupt
from storage.core import vault, vault_keys
from storage.core.database import AnyRow, AnySelect, Writing
from storage.core.lake import StoredFile
from storage.core.models import attachments as attachment_files
from storage.core.models import damaged_files, statement_files, subscriptions
from storage.core.store import Store
from storage.core.vault import read_key_id
from storage.core.vault_keys import is_sealed_with_another
from storage.intake import statements
from storage.work import attachments

SLICE = 100  # values that one transaction reseals, or files that one query lists
ORIGINAL = "original"


@dataclass(frozen=True)
class Resealed:
    """The result of a call of `reseal`: numbers of resealed values, and those that failed."""

    data_key: int  # the current one
    made: bool  # created by this call; otherwise this call finished the work of an earlier one
    webhook_secrets: int
    passwords: int
    originals: int
    unreadable: Sequence[str]  # values that can't be opened, and damaged files: they are left unchanged


@dataclass(frozen=True)
class _Kind:
    """Sealed values of one column."""

    name: str
    table: Table
    id: Column[UUID]
    value: Column[bytes]
    context: Callable[[UUID], bytes]


SECRETS = _Kind(
    "webhook secret of subscription",
    subscriptions,
    subscriptions.c.subscription_id,
    subscriptions.c.secret,
    lambda subscription_id: subscription_id.bytes,
)
PASSWORDS = _Kind(
    "password of statement file",
    statement_files,
    statement_files.c.file_id,
    statement_files.c.password,
    statements.password_context,
)


@dataclass(frozen=True)
class SealedFiles:
    """Sealed files of one table, whose columns `path`, `stored_sha256` and `data_key` name the stored file."""

    table: Table
    id: Column[UUID]
    context: Callable[[UUID], bytes]
    folder: str
    suffix: str


SEALED_FILES = (
    SealedFiles(
        table=statement_files,
        id=statement_files.c.file_id,
        context=statements.original_context,
        folder=statements.FOLDER,
        suffix=".pdf.sealed",
    ),
    SealedFiles(
        table=attachment_files,
        id=attachment_files.c.attachment_id,
        context=attachments.sealing_context,
        folder=attachments.FOLDER,
        suffix=".sealed",
    ),
)


def reseal(store: Store, clock: Callable[[], datetime]) -> Resealed:
    """Finish the work of an earlier call; if there is none left, create a new data key and reseal everything under it.

    Raises:
        SettingsError: the master key doesn't open the data keys.
    """
    key_id = store.vault.refresh().current
    unfinished = _Pass(store, key_id)
    unfinished.reseal_all(clock)
    if unfinished.resealed:
        return unfinished.result(made=False)
    with store.db.writing() as w:
        key_id = vault_keys.replace_data_key(w, store.settings, clock())
    store.vault.refresh()
    new = _Pass(store, key_id)
    new.reseal_all(clock)
    time.sleep(vault.FRESH_FOR_S)
    new.reseal_all(clock)
    return new.result(made=True)


class _Pass:
    """The resealing of values under one data key."""

    def __init__(self, store: Store, key_id: int) -> None:
        self._store = store
        self._key_id = key_id
        self.resealed = Counter[str]()
        self._unreadable: dict[str, None] = {}  # an ordered set

    def reseal_all(self, clock: Callable[[], datetime]) -> None:
        for kind in (SECRETS, PASSWORDS):
            for values in self._slices(
                kind.id, kind.value.label("value"), where=is_sealed_with_another(kind.value, self._key_id)
            ):
                self._reseal_values(kind, values)
        for files in SEALED_FILES:
            path, data_key = files.table.c.path, files.table.c.data_key
            old = path.is_not(None) & data_key.is_distinct_from(self._key_id)
            for slice_ in self._slices(files.id, path, files.table.c.stored_sha256, where=old):
                for file in slice_:
                    self._reseal_original(files, file, clock())

    def result(self, *, made: bool) -> Resealed:
        return Resealed(
            data_key=self._key_id,
            made=made,
            webhook_secrets=self.resealed[SECRETS.name],
            passwords=self.resealed[PASSWORDS.name],
            originals=self.resealed[ORIGINAL],
            unreadable=list(self._unreadable),
        )

    def _slices(
        self, key: Column[UUID], *others: ColumnElement[Any], where: ColumnElement[bool]
    ) -> Iterator[list[AnyRow]]:
        query = select(key.label("id"), *others).where(where).order_by(key).limit(SLICE)
        after: ColumnElement[bool] = true()
        while rows := self._read(query.where(after)):
            yield rows
            after = key > rows[-1].id

    def _read(self, query: AnySelect) -> list[AnyRow]:
        with self._store.db.reading() as r:
            return list(r.execute(query))

    def _reseal_values(self, kind: _Kind, values: Sequence[AnyRow]) -> None:
        """Replace each value, unless it has changed since it was read."""
        replacements = [(row, self._seal_again(kind, row.id, row.value)) for row in values]
        with self._store.db.writing() as w:
            for row, new in replacements:
                if new is None:
                    continue
                unchanged = (kind.id == row.id, kind.value == row.value)
                updated = w.execute(update(kind.table).where(*unchanged).values({kind.value: new})).rowcount
                self.resealed[kind.name] += updated

    def _seal_again(self, kind: _Kind, value_id: UUID, old: bytes) -> bytes | None:
        context, keys = kind.context(value_id), self._store.vault
        try:
            return keys.seal(keys.open(old, context), context)
        except Corrupt:
            self._unreadable[f"{kind.name} {value_id}"] = None
            return None

    def _reseal_original(self, files: SealedFiles, file: AnyRow, now: datetime) -> None:
        context, keys, lake = files.context(file.id), self._store.vault, self._store.lake
        try:
            content = keys.open(lake.verified_path(file.path, file.stored_sha256).read_bytes(), context)
        except ConnectionError:  # all files would be unreadable while the bucket can't be reached
            raise
        except (Corrupt, OSError):
            self._unreadable[file.path] = None
            return
        sealed = keys.seal(content, context)
        stored = lake.put(f"{files.folder}/{now:%Y-%m-%d}/{uuid4()}{files.suffix}", sealed)
        with self._store.db.writing() as w:
            moved = _replace_original(w, files, file, stored, read_key_id(sealed))
            lake.require(w, stored.path)
            if moved:
                lake.release(w, [(file.path, stored.size)])  # sealing doesn't change the size
        self.resealed[ORIGINAL] += moved


def _replace_original(w: Writing, files: SealedFiles, old: AnyRow, new: StoredFile, data_key: int) -> int:
    """Name a resealed file instead of the old one. Return 1, or 0 if another transaction did so first."""
    columns = files.table.c
    values = {"path": new.path, "stored_sha256": new.sha256, "data_key": data_key}
    moved = w.execute(update(files.table).where(files.id == old.id, columns.path == old.path).values(values)).rowcount
    w.execute(delete(damaged_files).where(damaged_files.c.path == old.path))
    return moved
