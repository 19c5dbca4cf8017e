"""Data keys: what secrets are sealed under, kept in the database, each wrapped under the master key.

So a new master key means wrapping a few keys anew, in one transaction, and nothing that is sealed is touched. A new
data key means sealing everything anew (see `storage.operations.resealing`); until that is done both serve.

**Why a rotation may be interrupted anywhere.** Every wrapped key says under which master key, by fingerprint. A master
key in the home's file is replaced in three steps: the new one lies durable in `master.key.next-FINGERPRINT`; one
transaction wraps all keys under it; that file takes the place of `master.key`. Before the transaction commits, the old
file opens everything; afterwards the new one does, under either name, and whoever opens the keys takes the last step.
Rotations take turns by the rows they lock, and one that finds the file of another goes on with it: there are never two,
and a file's name says which transaction it belongs to, so a belated last step can't put a wrong key in place.

A master key from the environment is replaced by the operator: wrapped under the new one in one transaction, then the
processes are started again with it. Those that still run hold their data keys.

A master key may get lost. `abandon` retires what was wrapped under it and begins anew under the present one: what was
sealed before can't be opened any more, and everything else goes on.
"""

import hmac
import logging
import os
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
from storage.core.database import AWAY, Database, Reading, Writing, insert_into, values_of
from storage.core.models import statement_files, subscriptions, vault_keys
from storage.core.settings import Settings, SettingsError, key_text, new_key
from storage.core.vault import KEY_ID_BYTES, NONCE_BYTES, Ring, Vault, key_of, prefix

RETIRED_RETAINED = timedelta(days=2)  # longer than any process seals with a key that it read before
CHECKS = 3  # at rows and files, while a rotation moves both

log = logging.getLogger(__name__)


class Purpose(StrEnum):
    SEALING = "sealing"
    NAMES = "names"  # for pseudonyms and digests: never replaced, or they would change


class WrongMasterKey(SettingsError):
    """The master key is not the one that the data keys in use are wrapped under."""


@dataclass(frozen=True)
class DataKey:
    """A row of the table."""

    key_id: int
    purpose: Purpose
    wrapped: bytes = field(repr=False)
    wrapped_by: str
    created_at: datetime
    retired_at: datetime | None


@dataclass(frozen=True)
class Sealed:
    """How much is sealed under a data key."""

    webhook_secrets: int = 0
    originals: int = 0
    passwords: int = 0


@dataclass(frozen=True)
class Rotated:
    """The fingerprints of the master key that was, and of the one that is."""

    before: str
    now: str
    resumed: bool  # an earlier rotation had been interrupted: it was finished, and no other begun


def fingerprint(master_key: bytes) -> str:
    """Sixteen hex digits that name a master key and tell nothing of it."""
    return hmac.digest(master_key, b"fingerprint", "sha256").hex()[:16]


def opened(db: Database, settings: Settings) -> Vault:
    """A vault over the database's keys, which are read, and made where there are none, when first needed.

    A process whose master key was replaced meanwhile goes on with the data keys that it holds, as long as the one that
    seals is in use.
    """
    last: Ring | None = None

    def load() -> Ring:
        nonlocal last
        try:
            last = held(db, settings)
        except (SettingsError, *AWAY) as error:
            if last is None or not isinstance(error, WrongMasterKey) or _in_use(_read(db)).key_id != last.current:
                log.error("data keys can't be read: %s", error)
                raise Unavailable("Service.Unavailable", "Stored secrets can't be opened at the moment.") from error
        return last

    return Vault(load)


def check(db: Database, settings: Settings) -> None:
    """Make sure, as far as the database can be asked, that the master key opens its keys.

    Raises:
        SettingsError: it doesn't.
    """
    if db.is_sqlite:
        held(db, settings)
        return
    with suppress(*AWAY):
        found, newest = db.revisions()
        if found != newest:  # no tables yet, or not ours to read: `migrate` says so
            return
        with db.engine.connect() as connection:
            if keys := stored(Reading(connection)):
                ring(keys, settings)


def held(db: Database, settings: Settings) -> Ring:
    """The keys within reach, made where there are none yet; a rotation that was interrupted is finished.

    Raises:
        SettingsError: the master key doesn't open them.
    """
    for evaluated in range(CHECKS):
        keys = _read(db)
        if not keys:
            _begin(db, settings.master_key_bytes)
            keys = _read(db)
        try:
            found = ring(keys, settings)
        except WrongMasterKey:
            if evaluated == CHECKS - 1:
                raise
        else:
            try:
                _finish(settings, _in_use(keys).wrapped_by)
            except OSError as error:  # it opens under its waiting name, too
                log.warning("the new master key can't be put in its place yet: %s", error)
            return found
    raise AssertionError


def _read(db: Database) -> list[DataKey]:
    with db.reading() as r:
        return stored(r)


def stored(r: Reading) -> list[DataKey]:
    """All of them, in order of their ids."""
    rows = r.execute(select(vault_keys).order_by(vault_keys.c.key_id))
    return [DataKey(**values_of(row, purpose=Purpose(row.purpose))) for row in rows]


def master_key_of(r: Reading) -> str | None:
    """The fingerprint of the master key that opens the data keys in use; None when there is no data key yet."""
    keys = stored(r)
    return _in_use(keys).wrapped_by if keys else None


def ring(keys: Sequence[DataKey], settings: Settings) -> Ring:
    """What the settings' master key opens of them.

    Raises:
        WrongMasterKey: not those in use.
        SettingsError: one in use is damaged.
    """
    current, names = (_in_use(keys, purpose) for purpose in (Purpose.SEALING, Purpose.NAMES))
    master_key = _master_key(settings, current.wrapped_by)
    within_reach = [key for key in keys if key.wrapped_by == current.wrapped_by]
    unwrapped = {key.key_id: _unwrapped(key, master_key) for key in within_reach}
    opened = {key_id: key for key_id, key in unwrapped.items() if key is not None}
    if not {current.key_id, names.key_id} <= opened.keys():
        raise SettingsError("a data key in use is damaged: restore the table vault_keys from a backup")
    sealing = {key.key_id for key in within_reach if key.purpose is Purpose.SEALING}
    return Ring({each: opened[each] for each in sealing & opened.keys()}, current.key_id, opened[names.key_id])


def _in_use(keys: Sequence[DataKey], purpose: Purpose = Purpose.SEALING) -> DataKey:
    return next(key for key in keys if key.purpose is purpose and key.retired_at is None)


def _master_key(settings: Settings, wanted: str) -> bytes:
    """The master key with this fingerprint. The waiting file is looked at first: it may be renamed meanwhile."""
    if settings.keeps_key_file:
        candidates = [settings.key_in(waiting_file(settings, wanted)), settings.key_in(settings.key_file)]
        where = str(settings.key_file)
    else:
        candidates, where = [settings.given_key("master_key")], "TIDEMARK_MASTER_KEY"
    for key in candidates:
        if key is not None and fingerprint(key) == wanted:
            return key
    raise WrongMasterKey(f"{where} is not the master key that opens this database: that has the fingerprint {wanted}")


def _begin(db: Database, master_key: bytes) -> None:
    """The first keys. Where several processes begin at once, one makes them."""
    now = datetime.now(UTC)
    with db.writing() as w:
        for key_id, purpose in enumerate(Purpose, start=1):
            w.execute(insert_into(w, vault_keys).on_conflict_do_nothing(), _new_row(key_id, purpose, master_key, now))


def _new_row(key_id: int, purpose: Purpose, master_key: bytes, now: datetime) -> dict[str, Any]:
    wrapped = _wrapped(new_key(), key_id, purpose, master_key)
    return {"key_id": key_id, "purpose": purpose, "created_at": now, **wrapped}


def _wrapped(key: bytes, key_id: int, purpose: str, master_key: bytes) -> dict[str, Any]:
    nonce = os.urandom(NONCE_BYTES)
    ciphertext = AESGCM(master_key).encrypt(nonce, key, _bound_to(key_id, purpose))
    return {"wrapped": nonce + ciphertext, "wrapped_by": fingerprint(master_key)}


def _unwrapped(key: DataKey, master_key: bytes) -> bytes | None:
    """The key itself; None when it is damaged."""
    nonce, ciphertext = key.wrapped[:NONCE_BYTES], key.wrapped[NONCE_BYTES:]
    try:
        return AESGCM(master_key).decrypt(nonce, ciphertext, _bound_to(key.key_id, key.purpose))
    except (InvalidTag, ValueError):
        log.error("data key %d is damaged: what is sealed under it can't be opened", key.key_id)
        return None


def _bound_to(key_id: int, purpose: str) -> bytes:
    return f"data key {key_id} for {purpose}".encode()


def rotate_master_key(db: Database, settings: Settings, now: datetime) -> Rotated:
    """Put a new master key in place of the old one. Interrupted anywhere and called again, it goes on from there.

    Raises:
        SettingsError: the old one doesn't open the keys; or, where it comes from the environment, no new one is given.
    """
    with suppress(WrongMasterKey):  # of the environment, when the one given as new is in use already
        held(db, settings)  # so that there are keys, and what an earlier rotation left to finish is finished
    with db.writing() as w:
        keys = _locked(w)
        before = _in_use(keys).wrapped_by
        if settings.keeps_key_file:
            _master_key(settings, before)  # else a new one would be made in vain
        new, resumed = _new_master_key(settings)
        resumed = resumed or fingerprint(new) == before
        if fingerprint(new) != before:
            _wrap_anew(w, keys, _master_key(settings, before), new)
            audit.append(w, OPERATOR, "MasterKey.Rotated", {"before": before, "now": fingerprint(new)}, now)
    _finish(settings, fingerprint(new))
    return Rotated(before, fingerprint(new), resumed)


def _locked(w: Writing) -> list[DataKey]:
    """All keys, which nobody else replaces until this transaction ends. What names one is not held up."""
    w.execute(select(vault_keys.c.key_id).order_by(vault_keys.c.key_id).with_for_update(key_share=True))
    return stored(w)


def waiting_file(settings: Settings, wanted: str) -> Path:
    """Where a master key lies until it takes the place of the one before."""
    return settings.home / f"{settings.key_file.name}.next-{wanted}"


def waiting(settings: Settings) -> bytes | None:
    """The new master key of a rotation that was begun and is not finished."""
    for path in settings.home.glob(f"{settings.key_file.name}.next-*"):
        key = settings.key_in(path)
        if key is not None and path == waiting_file(settings, fingerprint(key)):
            return key
    return None


def _new_master_key(settings: Settings) -> tuple[bytes, bool]:
    """The new master key, durable, and whether an earlier rotation had made it. To be called by one at a time."""
    if not settings.keeps_key_file:
        return _given_new_master_key(settings), False
    if settings.given_key("new_master_key") is not None:
        raise SettingsError(f"TIDEMARK_NEW_MASTER_KEY can't replace {settings.key_file}: leave it out, one is made")
    for draft in settings.home.glob(f".{settings.key_file.name}.next-*"):  # of one that died while it wrote
        draft.unlink(missing_ok=True)
    begun = waiting(settings)
    if begun is not None:
        return begun, True
    new = new_key()
    durable.create(waiting_file(settings, fingerprint(new)), key_text(new))
    return new, False


def _given_new_master_key(settings: Settings) -> bytes:
    new = settings.given_key("new_master_key")
    if new is None:
        raise SettingsError("TIDEMARK_NEW_MASTER_KEY is missing: give the new master key (openssl rand -base64 32)")
    if new == settings.given_key("master_key"):
        raise SettingsError("TIDEMARK_NEW_MASTER_KEY is the same as TIDEMARK_MASTER_KEY: nothing would be replaced")
    return new


def _wrap_anew(w: Writing, keys: Sequence[DataKey], old: bytes, new: bytes) -> None:
    """All that the old master key opens; what it doesn't is lost anyway."""
    for each in keys:
        key = _unwrapped(each, old) if each.wrapped_by == fingerprint(old) else None
        if key is not None:
            values = _wrapped(key, each.key_id, each.purpose, new)
            w.execute(update(vault_keys).where(vault_keys.c.key_id == each.key_id).values(values))


def _finish(settings: Settings, wanted: str) -> None:
    """Put the master key with this fingerprint, under which all keys are wrapped by now, in its place."""
    if not settings.keeps_key_file:
        return
    path = waiting_file(settings, wanted)
    key = settings.key_in(path)
    if key is not None and fingerprint(key) == wanted:
        with suppress(FileNotFoundError):  # another was first
            path.replace(settings.key_file)
        durable.sync(settings.home)


def replace_data_key(w: Writing, settings: Settings, now: datetime) -> int:
    """Retire the data key that seals, and make another; its id.

    Raises:
        SettingsError: the master key doesn't open the keys.
    """
    keys = _locked(w)
    master_key = _master_key(settings, _in_use(keys).wrapped_by)
    return _replace(w, keys, Purpose.SEALING, master_key, now)


def _replace(w: Writing, keys: Sequence[DataKey], purpose: Purpose, master_key: bytes, now: datetime) -> int:
    in_use = _in_use(keys, purpose).key_id
    new_id: int = w.execute(select(func.max(vault_keys.c.key_id))).scalar_one() + 1
    w.execute(update(vault_keys).where(vault_keys.c.key_id == in_use).values(retired_at=now))
    w.execute(insert(vault_keys).values(_new_row(new_id, purpose, master_key, now)))
    audit.append(w, OPERATOR, "DataKey.Replaced", {"before": str(in_use), "now": str(new_id)}, now)
    return new_id


def abandon(db: Database, settings: Settings, now: datetime) -> None:
    """Give up the keys in use, whose master key is lost, and begin anew: what was sealed before never opens again.

    Raises:
        Conflict: the master key opens them.
    """
    master_key = settings.master_key_bytes
    with db.writing() as w:
        keys = _locked(w)
        if not keys or _opens(settings, keys):
            raise Conflict("Key.StillUsable", "The master key opens the data keys: nothing is lost.")
        for purpose in Purpose:
            _replace(w, keys, purpose, master_key, now)


def _opens(settings: Settings, keys: Sequence[DataKey]) -> bool:
    try:
        return bool(ring(keys, settings))
    except WrongMasterKey:
        return False


def sealed_under(r: Reading) -> dict[int, Sealed]:
    """How much is sealed under each data key, by its id. Under a key that isn't here nothing is."""
    secrets = _by_prefix(r, subscriptions.c.secret)
    passwords = _by_prefix(r, statement_files.c.password)
    data_key = statement_files.c.data_key
    query = select(data_key, func.count()).where(data_key.is_not(None), statement_files.c.path.is_not(None))
    originals = dict(tuple(row) for row in r.execute(query.group_by(data_key)))
    ids = secrets.keys() | passwords.keys() | originals.keys()
    return {each: Sealed(secrets.get(each, 0), originals.get(each, 0), passwords.get(each, 0)) for each in ids}


def _by_prefix(r: Reading, column: Column[bytes]) -> dict[int, int]:
    under = _prefix_of(column).label("under")
    query = select(under, func.count()).where(column.is_not(None)).group_by(under)
    return {key_of(found): count for found, count in r.execute(query)}


def not_under(column: Column[bytes], key_id: int) -> ColumnElement[bool]:
    """Whether a value is sealed under another data key."""
    return column.is_not(None) & (_prefix_of(column) != prefix(key_id))


def _prefix_of(column: Column[bytes]) -> ColumnElement[bytes]:
    return func.substr(column, 1, KEY_ID_BYTES, type_=LargeBinary)


def forget(db: Database, now: datetime) -> list[int]:
    """Delete data keys that were retired long ago and under which nothing is sealed; their ids."""
    with db.reading() as r:
        if not _forgettable(r, now):  # looks before it locks
            return []
    with db.writing() as w:
        if w.dialect.name == "postgresql":  # what is being sealed at this moment is seen, or waits
            w.execute(text("LOCK TABLE subscriptions, statement_files IN SHARE MODE"))
        gone = _forgettable(w, now)
        w.execute(delete(vault_keys).where(vault_keys.c.key_id.in_(gone)))
    return gone


def _forgettable(r: Reading, now: datetime) -> list[int]:
    sealed = sealed_under(r)
    old = [key.key_id for key in stored(r) if key.retired_at is not None and key.retired_at < now - RETIRED_RETAINED]
    return [key_id for key_id in old if key_id not in sealed]
