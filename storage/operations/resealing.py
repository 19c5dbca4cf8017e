"""Everything that is sealed, sealed anew under the data key in use, so that an older one can go.

Nothing waits for it: values are moved a slice at a time, each by a conditional update that leaves alone what changed
meanwhile, and whoever reads a value opens it under whichever data key it names. What is still sealed under an older key
is what is left to do; so it may be killed at any moment, and goes on when asked again.

A PDF's original is a file, and files never change: the new one is written first, durable; then one transaction names it
instead of the old one. From then on the old file is an orphan. It looks as if it had been written just then, so that
the sweep leaves it for as long as somebody may still read it who looked its name up before.

A process that read the data keys a moment ago seals under the older one for `FRESH_FOR_S` more. That is waited for.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Column, ColumnElement, Table, select, true, update

from pipelines.vocabulary.errors import Corrupt
from storage.core import vault, vault_keys
from storage.core.database import AnyRow, AnySelect
from storage.core.models import statement_files, subscriptions
from storage.core.store import Store
from storage.core.vault import key_of
from storage.core.vault_keys import not_under
from storage.intake import statements

SLICE = 100  # values that one transaction moves, or files that are looked up at once
ORIGINAL = "original"


@dataclass(frozen=True)
class Resealed:
    """What was done, and what could not be."""

    data_key: int  # the one in use
    made: bool  # by this call; otherwise an earlier one had not come to its end
    webhook_secrets: int
    passwords: int
    originals: int
    unreadable: Sequence[str]  # values that can't be opened, and files that are damaged: they stay as they are


@dataclass(frozen=True)
class _Kind:
    """Values that stand in a column."""

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


def reseal(store: Store, clock: Callable[[], datetime]) -> Resealed:
    """Go on with what an earlier call left; or, where it left nothing, seal everything under a new data key.

    Raises:
        SettingsError: the master key doesn't open the data keys.
    """
    key_id = store.vault.refresh().current
    left = _Pass(store, key_id)
    left.over_everything(clock)
    if left.moved:
        return left.done(made=False)
    with store.db.writing() as w:
        key_id = vault_keys.replace_data_key(w, store.settings, clock())
    store.vault.refresh()
    new = _Pass(store, key_id)
    new.over_everything(clock)
    time.sleep(vault.FRESH_FOR_S)
    new.over_everything(clock)
    return new.done(made=True)


class _Pass:
    """What is moved to a data key."""

    def __init__(self, store: Store, key_id: int) -> None:
        self._store = store
        self._key_id = key_id
        self.moved = Counter[str]()
        self._unreadable: dict[str, None] = {}  # in order, each once

    def over_everything(self, clock: Callable[[], datetime]) -> None:
        for kind in (SECRETS, PASSWORDS):
            for values in self._slices(kind.id, kind.value.label("value"), where=not_under(kind.value, self._key_id)):
                self._values(kind, values)
        path, data_key = statement_files.c.path, statement_files.c.data_key
        old = path.is_not(None) & data_key.is_distinct_from(self._key_id)
        for files in self._slices(statement_files.c.file_id, path, statement_files.c.stored_sha256, where=old):
            for file in files:
                self._original(file, clock())

    def done(self, *, made: bool) -> Resealed:
        return Resealed(
            data_key=self._key_id,
            made=made,
            webhook_secrets=self.moved[SECRETS.name],
            passwords=self.moved[PASSWORDS.name],
            originals=self.moved[ORIGINAL],
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

    def _values(self, kind: _Kind, values: Sequence[AnyRow]) -> None:
        """Where the value is still the one that was read."""
        anew = [(each, self._sealed_anew(kind, each.id, each.value)) for each in values]
        with self._store.db.writing() as w:
            for each, new in anew:
                if new is None:
                    continue
                same = (kind.id == each.id, kind.value == each.value)
                moved = w.execute(update(kind.table).where(*same).values({kind.value: new})).rowcount
                self.moved[kind.name] += moved

    def _sealed_anew(self, kind: _Kind, value_id: UUID, old: bytes) -> bytes | None:
        context, keys = kind.context(value_id), self._store.vault
        try:
            return keys.seal(keys.open(old, context), context)
        except Corrupt:
            self._unreadable[f"{kind.name} {value_id}"] = None
            return None

    def _original(self, file: AnyRow, now: datetime) -> None:
        context, keys, lake = statements.original_context(file.id), self._store.vault, self._store.lake
        try:
            content = keys.open(lake.verified(file.path, file.stored_sha256).read_bytes(), context)
        except (Corrupt, OSError):
            self._unreadable[file.path] = None
            return
        sealed = keys.seal(content, context)
        stored = lake.put(f"{statements.FOLDER}/{now:%Y-%m-%d}/{uuid4()}.pdf.sealed", sealed)
        lake.touch(file.path)
        with self._store.db.writing() as w:
            self.moved[ORIGINAL] += statements.move_original(w, lake, file.id, file.path, stored, key_of(sealed))
