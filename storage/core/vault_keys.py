"""Data keys, which seal secrets. They are stored in the database, each wrapped (encrypted) with the master key.

A new master key only requires wrapping a few keys again, in one transaction; sealed values don't change. A new data key
requires sealing every value again (`storage.operations.resealing`); until that is done, both keys are in use.

**Why a rotation may be interrupted anywhere.** Every wrapped key states the fingerprint of its master key. A master key
in the home's file is replaced in three steps: write the new key durably to `master.key.next-FINGERPRINT`; wrap all keys
with it in one transaction; rename that file to `master.key`. Before the transaction commits, the old file opens all
keys. Afterwards the new file does, under either name, and any process that opens the keys completes the last step.
Rotations run one at a time, since each locks the keys' rows, and a rotation that finds another's file continues with
it. So there is never more than one new key, and since the file's name contains its fingerprint, a late rename can't put
a wrong key in place.

A master key from the environment is replaced by the operator: the keys are wrapped with the new one in one transaction,
then the processes are restarted with it. Processes that still run have their data keys in memory.

If a master key is lost, `abandon` retires the keys wrapped with it, and makes new ones under the present master key:
values sealed before can't be opened any more, and everything else continues to work.
"""

import hmac
import logging
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Column, ColumnElement, LargeBinary, delete, func, insert, select, text, update

from pipelines.vocabulary.errors import Conflict, Unavailable
from storage.core import audit, durable
from storage.core.audit import OPERATOR
from storage.core.database import UNREACHABLE, Database, Reading, Writing, insert_into, read_values
from storage.core.models import attachments, statement_files, subscriptions, vault_keys
from storage.core.settings import Settings, SettingsError, key_text, new_key
from storage.core.vault import KEY_ID_BYTES, NONCE_BYTES, KeyRing, Vault, prefix, read_key_id

RETIRED_RETAINED = timedelta(days=2)  # longer than any process continues to seal with a key that it has read
CHECKS = 3  # attempts to read rows and files that match, while a rotation changes both

log = logging.getLogger(__name__)


class Purpose(StrEnum):
    SEALING = "sealing"
    NAMES = "names"  # for pseudonyms and digests, which change with it: only `abandon` replaces it


class WrongMasterKey(SettingsError):
    """The master key is not the one that the data keys in use are wrapped with."""


@dataclass(frozen=True)
class DataKey:
    """A row of the table `vault_keys`."""

    key_id: int
    purpose: Purpose
    wrapped: bytes = field(repr=False)
    wrapped_by: str
    created_at: datetime
    retired_at: datetime | None


@dataclass(frozen=True)
class Sealed:
    """Numbers of values that are sealed with a data key."""

    webhook_secrets: int = 0
    originals: int = 0  # PDF statements and attachments
    passwords: int = 0


@dataclass(frozen=True)
class Rotated:
    """The fingerprints of the old and the new master key."""

    before: str
    now: str
    resumed: bool  # an interrupted rotation was finished, and no new one started


def fingerprint(master_key: bytes) -> str:
    """Return sixteen hex digits that identify a master key without revealing it."""
    return hmac.digest(master_key, b"fingerprint", "sha256").hex()[:16]


def open_vault(db: Database, settings: Settings) -> Vault:
    """Return a vault with the database's data keys. They are read at its first use, and created if there are none.

    If the master key has been replaced since, the process continues with the data keys that it has read, as long as its
    sealing key is still in use.
    """
    last: KeyRing | None = None

    def load() -> KeyRing:
        nonlocal last
        try:
            last = load_ring(db, settings)
        except (SettingsError, *UNREACHABLE) as error:
            if last is None or not isinstance(error, WrongMasterKey) or not _is_still_in_use(db, last):
                log.error("data keys can't be read: %s", error)
                raise Unavailable("Service.Unavailable", "Stored secrets can't be opened at the moment.") from error
        return last

    return Vault(load)


def _is_still_in_use(db: Database, last: KeyRing) -> bool:
    """Return whether the data key that was read last is the one in use; False if the database can't be reached."""
    try:
        return _find_key_in_use(_read_all(db)).key_id == last.current
    except UNREACHABLE:
        return False


def check_master_key(db: Database, settings: Settings) -> None:
    """Check that the master key opens the data keys, if the database can be reached.

    Raises:
        SettingsError: it doesn't.
    """
    if db.is_sqlite:
        load_ring(db, settings)
        return
    with suppress(*UNREACHABLE):
        if db.is_up_to_date():  # otherwise there are no tables yet, or an unknown revision, which `migrate` reports
            load_ring(db, settings)


def load_ring(db: Database, settings: Settings) -> KeyRing:
    """Return the keys that the master key opens. Create keys if there are none, and finish an interrupted rotation.

    Raises:
        SettingsError: the master key doesn't open them.
    """
    for attempt in range(CHECKS):
        keys = _read_all(db)
        if not keys:
            _create_first_keys(db, settings.master_key_bytes)
            keys = _read_all(db)
        try:
            found = open_ring(keys, settings)
        except WrongMasterKey:
            if attempt == CHECKS - 1:
                raise
        else:
            try:
                _rename_new_key_file(settings, _find_key_in_use(keys).wrapped_by)
            except OSError as error:  # not fatal: the key is also found under the file's temporary name
                log.warning("the new master key's file can't be renamed yet: %s", error)
            return found
    raise AssertionError


def _read_all(db: Database) -> list[DataKey]:
    with db.reading() as r:
        return read_data_keys(r)


def read_data_keys(r: Reading) -> list[DataKey]:
    """Return all data keys, in order of their ids."""
    rows = r.execute(select(vault_keys).order_by(vault_keys.c.key_id))
    return [DataKey(**read_values(row, purpose=Purpose(row.purpose))) for row in rows]


def find_master_key_fingerprint(r: Reading) -> str | None:
    """Return the fingerprint of the master key of the data keys in use; None if there are no data keys yet."""
    keys = read_data_keys(r)
    return _find_key_in_use(keys).wrapped_by if keys else None


def open_ring(keys: Sequence[DataKey], settings: Settings) -> KeyRing:
    """Return the keys that the settings' master key opens.

    Raises:
        WrongMasterKey: it doesn't open the keys in use.
        SettingsError: a key in use is damaged.
    """
    current, names = (_find_key_in_use(keys, purpose) for purpose in (Purpose.SEALING, Purpose.NAMES))
    master_key = _master_key(settings, current.wrapped_by)
    openable = [key for key in keys if key.wrapped_by == current.wrapped_by]
    unwrapped = {key.key_id: _unwrap(key, master_key) for key in openable}
    opened = {key_id: key for key_id, key in unwrapped.items() if key is not None}
    if not {current.key_id, names.key_id} <= opened.keys():
        raise SettingsError("a data key in use is damaged: restore the table vault_keys from a backup")
    sealing = {key.key_id for key in openable if key.purpose is Purpose.SEALING}
    return KeyRing({each: opened[each] for each in sealing & opened.keys()}, current.key_id, opened[names.key_id])


def _find_key_in_use(keys: Sequence[DataKey], purpose: Purpose = Purpose.SEALING) -> DataKey:
    return next(key for key in keys if key.purpose is purpose and key.retired_at is None)


def _master_key(settings: Settings, wanted: str) -> bytes:
    """Return the master key with this fingerprint.

    The new key's file is read before `master.key`: if it is renamed between the two reads, the second one finds it.
    """
    if settings.keeps_key_file:
        candidates = [settings.key_in(waiting_key_file(settings, wanted)), settings.key_in(settings.key_file)]
        where = str(settings.key_file)
    else:
        candidates, where = [settings.given_key("master_key")], "TIDEMARK_MASTER_KEY"
    for key in candidates:
        if key is not None and fingerprint(key) == wanted:
            return key
    raise WrongMasterKey(f"{where} is not the master key of this database, which has the fingerprint {wanted}")


def _create_first_keys(db: Database, master_key: bytes) -> None:
    """Create the first keys. If several processes do so at once, the first one's keys remain."""
    now = datetime.now(UTC)
    rows = [_new_row(key_id, purpose, master_key, now) for key_id, purpose in enumerate(Purpose, start=1)]
    with db.writing() as w:
        w.execute(insert_into(w, vault_keys).on_conflict_do_nothing(), rows)


def _new_row(key_id: int, purpose: Purpose, master_key: bytes, now: datetime) -> dict[str, Any]:
    wrapped = _wrap(new_key(), key_id, purpose, master_key)
    return {"key_id": key_id, "purpose": purpose, "created_at": now, **wrapped}


def _wrap(key: bytes, key_id: int, purpose: str, master_key: bytes) -> dict[str, Any]:
    nonce = os.urandom(NONCE_BYTES)
    ciphertext = AESGCM(master_key).encrypt(nonce, key, _context(key_id, purpose))
    return {"wrapped": nonce + ciphertext, "wrapped_by": fingerprint(master_key)}


def _unwrap(key: DataKey, master_key: bytes) -> bytes | None:
    """Return the data key; None if it is damaged."""
    nonce, ciphertext = key.wrapped[:NONCE_BYTES], key.wrapped[NONCE_BYTES:]
    try:
        return AESGCM(master_key).decrypt(nonce, ciphertext, _context(key.key_id, key.purpose))
    except (InvalidTag, ValueError):
        log.error("data key %d is damaged: values sealed with it can't be opened", key.key_id)
        return None


def _context(key_id: int, purpose: str) -> bytes:
    return f"data key {key_id} for {purpose}".encode()


def rotate_master_key(db: Database, settings: Settings, now: datetime) -> Rotated:
    """Replace the master key. If it is interrupted anywhere, call it again to continue.

    Raises:
        SettingsError: the old key doesn't open the data keys; or it comes from the environment, and no new key is set.
    """
    with suppress(WrongMasterKey):  # the environment's old key can't open keys wrapped with the new one
        load_ring(db, settings)  # creates missing keys, and finishes an interrupted rotation
    with db.writing() as w:
        keys = _lock_keys(w)
        before = _find_key_in_use(keys).wrapped_by
        if settings.keeps_key_file:
            _master_key(settings, before)  # raises before a new key is created in vain
        new, resumed = _new_master_key(settings)
        resumed = resumed or fingerprint(new) == before
        if fingerprint(new) != before:
            _wrap_again(w, keys, _master_key(settings, before), new)
            audit.append(w, OPERATOR, "MasterKey.Rotated", {"before": before, "now": fingerprint(new)}, now)
    _rename_new_key_file(settings, fingerprint(new))
    return Rotated(before, fingerprint(new), resumed)


def _lock_keys(w: Writing) -> list[DataKey]:
    """Lock all keys against replacement until this transaction ends. Inserts that refer to a key are not blocked."""
    w.execute(select(vault_keys.c.key_id).order_by(vault_keys.c.key_id).with_for_update(key_share=True))
    return read_data_keys(w)


def waiting_key_file(settings: Settings, wanted: str) -> Path:
    """Return the path of a new master key's file until it is renamed to `master.key`."""
    return settings.home / f"{settings.key_file.name}.next-{wanted}"


def find_waiting_master_key(settings: Settings) -> bytes | None:
    """Return the new master key of an unfinished rotation; None if there is none."""
    for path in settings.home.glob(f"{settings.key_file.name}.next-*"):
        key = settings.key_in(path)
        if key is not None and path == waiting_key_file(settings, fingerprint(key)):
            return key
    return None


def _new_master_key(settings: Settings) -> tuple[bytes, bool]:
    """Return the new master key, which is durable, and whether an earlier rotation created it.

    The caller must hold the lock on the keys.
    """
    if not settings.keeps_key_file:
        return _given_new_master_key(settings), False
    if settings.given_key("new_master_key") is not None:
        raise SettingsError(
            f"TIDEMARK_NEW_MASTER_KEY can't replace {settings.key_file}: unset it, and a new key is created"
        )
    for draft in settings.home.glob(f".{settings.key_file.name}.next-*"):  # left by a process that died while writing
        draft.unlink(missing_ok=True)
    begun = find_waiting_master_key(settings)
    if begun is not None:
        return begun, True
    new = new_key()
    durable.create(waiting_key_file(settings, fingerprint(new)), key_text(new))
    return new, False


def _given_new_master_key(settings: Settings) -> bytes:
    new = settings.given_key("new_master_key")
    if new is None:
        raise SettingsError("TIDEMARK_NEW_MASTER_KEY is missing: give the new master key (openssl rand -base64 32)")
    if new == settings.given_key("master_key"):
        raise SettingsError("TIDEMARK_NEW_MASTER_KEY is the same as TIDEMARK_MASTER_KEY: nothing would be replaced")
    return new


def _wrap_again(w: Writing, keys: Sequence[DataKey], old: bytes, new: bytes) -> None:
    """Wrap the keys again, with the new master key. Keys that the old one doesn't open are useless anyway."""
    for each in keys:
        key = _unwrap(each, old) if each.wrapped_by == fingerprint(old) else None
        if key is not None:
            values = _wrap(key, each.key_id, each.purpose, new)
            w.execute(update(vault_keys).where(vault_keys.c.key_id == each.key_id).values(values))


def _rename_new_key_file(settings: Settings, wanted: str) -> None:
    """Rename the file of the master key with this fingerprint to `master.key`: the keys are now wrapped with it."""
    if not settings.keeps_key_file:
        return
    path = waiting_key_file(settings, wanted)
    key = settings.key_in(path)
    if key is not None and fingerprint(key) == wanted:
        with suppress(FileNotFoundError):  # another process was first
            path.replace(settings.key_file)
        durable.sync(settings.home)


def replace_data_key(w: Writing, settings: Settings, now: datetime) -> int:
    """Retire the current sealing key, and create another; return its id.

    Raises:
        SettingsError: the master key doesn't open the keys.
    """
    keys = _lock_keys(w)
    master_key = _master_key(settings, _find_key_in_use(keys).wrapped_by)
    return _replace(w, keys, Purpose.SEALING, master_key, now)


def _replace(w: Writing, keys: Sequence[DataKey], purpose: Purpose, master_key: bytes, now: datetime) -> int:
    in_use = _find_key_in_use(keys, purpose).key_id
    new_id: int = w.execute(select(func.max(vault_keys.c.key_id))).scalar_one() + 1
    w.execute(update(vault_keys).where(vault_keys.c.key_id == in_use).values(retired_at=now))
    w.execute(insert(vault_keys).values(_new_row(new_id, purpose, master_key, now)))
    audit.append(w, OPERATOR, "DataKey.Replaced", {"before": str(in_use), "now": str(new_id)}, now)
    return new_id


def abandon(db: Database, settings: Settings, now: datetime) -> None:
    """Retire the keys in use, whose master key is lost, and create new ones. Values sealed before are lost for good.

    Raises:
        Conflict: the master key opens the keys in use.
    """
    master_key = settings.master_key_bytes
    with db.writing() as w:
        keys = _lock_keys(w)
        if not keys or _can_open(settings, keys):
            raise Conflict("Key.StillUsable", "The master key opens the data keys: no key needs to be abandoned.")
        for purpose in Purpose:
            _replace(w, keys, purpose, master_key, now)


def _can_open(settings: Settings, keys: Sequence[DataKey]) -> bool:
    try:
        return bool(open_ring(keys, settings))
    except WrongMasterKey:
        return False


def count_sealed(r: Reading) -> dict[int, Sealed]:
    """Return how many values are sealed with each data key, by its id. Keys without values are left out."""
    secrets = _count_by_prefix(r, subscriptions.c.secret)
    passwords = _count_by_prefix(r, statement_files.c.password)
    originals = Counter[int]()
    for files in (statement_files.c, attachments.c):
        query = select(files.data_key, func.count()).where(files.data_key.is_not(None), files.path.is_not(None))
        originals.update(dict(tuple(row) for row in r.execute(query.group_by(files.data_key))))
    ids = secrets.keys() | passwords.keys() | originals.keys()
    return {each: Sealed(secrets.get(each, 0), originals[each], passwords.get(each, 0)) for each in ids}


def _count_by_prefix(r: Reading, column: Column[bytes]) -> dict[int, int]:
    key_prefix = _prefix_of(column).label("key_prefix")
    query = select(key_prefix, func.count()).where(column.is_not(None)).group_by(key_prefix)
    return {read_key_id(found): count for found, count in r.execute(query)}


def is_sealed_with_another(column: Column[bytes], key_id: int) -> ColumnElement[bool]:
    """Return the SQL condition that a value is sealed with another data key."""
    return column.is_not(None) & (_prefix_of(column) != prefix(key_id))


def _prefix_of(column: Column[bytes]) -> ColumnElement[bytes]:
    return func.substr(column, 1, KEY_ID_BYTES, type_=LargeBinary)


def delete_unused_keys(db: Database, now: datetime) -> list[int]:
    """Delete data keys that were retired RETIRED_RETAINED ago and seal nothing; return their ids."""
    with db.reading() as r:
        if not _find_deletable(r, now):  # usually there are none: then no lock is taken
            return []
    with db.writing() as w:
        if w.dialect.name == "postgresql":  # concurrent inserts are either committed and seen, or wait
            w.execute(text("LOCK TABLE subscriptions, statement_files, attachments IN SHARE MODE"))
        deletable = _find_deletable(w, now)
        w.execute(delete(vault_keys).where(vault_keys.c.key_id.in_(deletable)))
    return deletable


def _find_deletable(r: Reading, now: datetime) -> list[int]:
    sealed = count_sealed(r)
    old = [
        key.key_id
        for key in read_data_keys(r)
        if key.retired_at is not None and key.retired_at < now - RETIRED_RETAINED
    ]
    return [key_id for key_id in old if key_id not in sealed]
