"""Keys can be replaced while everything runs, and an interruption at any point leaves all values openable."""

import hashlib
import os
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any, Never
from uuid import UUID, uuid4

import pytest
from pydantic import SecretStr
from sqlalchemy import event, select, update

from pipelines.vocabulary.errors import Conflict, Corrupt, Unavailable
from pipelines.webhooks.events import EventType, decode_secret
from storage.core import vault, vault_keys
from storage.core.database import Reading
from storage.core.models import statement_files
from storage.core.models import subscriptions as subscriptions_table
from storage.core.models import vault_keys as vault_keys_table
from storage.core.settings import Settings, SettingsError
from storage.core.store import Store
from storage.core.vault import read_key_id
from storage.core.vault_keys import Purpose, Sealed, WrongMasterKey, fingerprint
from storage.intake import statements
from storage.intake.statements import NewFile
from storage.operations import resealing, retention
from storage.operations.doctor import Severity, examine
from storage.webhooks import subscriptions
from tests.storage.examples import a_client, a_customer
from tests.storage.values import on_sqlite
from tests.waiting import until

URL = "https://example.com/"
PDF, PASSWORD = b"%PDF-1.7 a statement", "s3cret"


class Killed(BaseException):
    """Simulates that the process was killed."""


@dataclass
class Lender:
    """A client with one sealed value of each kind."""

    store: Store
    client_id: UUID
    subscription_id: UUID
    secret: bytes
    file_id: UUID

    def opens(self, store: Store) -> bool:
        """Return whether a newly started process can open all values."""
        with store.db.reading() as r:
            file = statements.get_file(r, self.file_id)
            mine = subscriptions_table.c.subscription_id == self.subscription_id
            sealed = r.execute(select(subscriptions_table.c.secret).where(mine)).scalar_one()
        opened = (
            subscriptions.open_secret(store.vault, self.subscription_id, sealed),
            statements.open_original(store, file),
            statements.open_password(store.vault, file),
        )
        return opened == (self.secret, PDF, PASSWORD)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault, "FRESH_FOR_S", 0.0)


@pytest.fixture
def lender(store: Store, now: datetime) -> Lender:
    return a_lender(store, now)


def a_lender(store: Store, now: datetime) -> Lender:
    client_id = a_client(store, now)
    customer = a_customer(store, client_id, now)
    with store.db.writing() as w:
        made, secret = subscriptions.create(w, client_id, EventType.JOB_COMPLETED, URL, [], store.vault, now)
    file_id = uuid4()
    sealed = statements.seal_original(store.vault, file_id, PDF)
    stored = store.lake.put(f"statements/{file_id}.pdf.sealed", sealed)
    password = statements.seal_password(store.vault, file_id, PASSWORD)
    sha256 = hashlib.sha256(PDF).digest()
    new = NewFile(file_id, "march.pdf", sha256, len(PDF), stored, read_key_id(sealed), password)
    with store.db.writing() as w:
        statements.submit(w, store.lake, customer, uuid4(), [new], "test", now)
    return Lender(store, client_id, made.subscription_id, decode_secret(secret), file_id)


@contextmanager
def open_another(settings: Settings) -> Iterator[Store]:
    """Yield the store of another process."""
    store = Store.open(Settings(**dict(settings)))
    try:
        yield store
    finally:
        store.close()


def key_in(settings: Settings) -> str:
    return fingerprint(Settings(**dict(settings)).master_key_bytes)


def files_of_keys(store: Store) -> list[str]:
    return sorted(path.name for path in store.settings.home.iterdir() if "master.key" in path.name)


def test_new_master_key_opens_everything_and_the_old_one_nothing(lender: Lender, now: datetime) -> None:
    store = lender.store
    before = (store.settings.home / "master.key").read_text()
    rotated = vault_keys.rotate_master_key(store.db, store.settings, now)
    assert (rotated.resumed, rotated.now) == (False, key_in(store.settings))
    assert rotated.before == fingerprint(with_master_key(store, before).given_key("master_key") or b"")
    assert lender.opens(store), "a process that runs goes on"
    with open_another(store.settings) as another:
        assert lender.opens(another)
    with pytest.raises(WrongMasterKey, match=rotated.now):
        Store.open(with_master_key(store, before))
    assert files_of_keys(store) == ["master.key"]
    assert (store.settings.home / "master.key").stat().st_mode & 0o777 == 0o600


def with_master_key(store: Store, key: str | bytes, new: str | bytes = "") -> Settings:
    """Return the settings with the master key from the environment."""
    keys: dict[str, Any] = {name: SecretStr(text if isinstance(text, str) else b64encode(text).decode())
            for name, text in (("master_key", key), ("new_master_key", new))}  # fmt: skip
    return Settings(**dict(store.settings) | keys)


def test_a_master_key_from_the_environment_is_replaced(store: Store, now: datetime) -> None:
    store.settings.key_file.rename(store.settings.home / "kept apart")  # the fixture's key, which is not used yet
    with store.db.writing() as w:
        w.execute(vault_keys_table.delete())
    old, new = b"o" * 32, b"n" * 32
    with open_another(with_master_key(store, old)) as running:
        lender = a_lender(running, now)
        with pytest.raises(SettingsError, match="TIDEMARK_NEW_MASTER_KEY is missing"):
            vault_keys.rotate_master_key(running.db, running.settings, now)
        with pytest.raises(SettingsError, match="nothing would be replaced"):
            vault_keys.rotate_master_key(running.db, with_master_key(store, old, old), now)
        for resumed in (False, True):
            rotated = vault_keys.rotate_master_key(running.db, with_master_key(store, old, new), now)
            assert (rotated.now, rotated.resumed) == (fingerprint(new), resumed)
        running.vault.refresh()  # as a process does before sealing, if it has not read the keys for a while
        assert running.vault.open(running.vault.seal(b"sealed since", b"of"), b"of") == b"sealed since"
        assert lender.opens(running)
        with pytest.raises(WrongMasterKey, match="TIDEMARK_MASTER_KEY is not"):
            Store.open(with_master_key(store, old))
        with open_another(with_master_key(store, new)) as restarted:
            assert lender.opens(restarted)
            resealing.reseal(restarted, lambda: now)
        with pytest.raises(Unavailable):  # the process must be started again; nothing is damaged
            lender.opens(running)
    assert not store.settings.key_file.exists()


def test_a_database_lost_after_a_wrong_master_key_is_unavailable(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = store.vault.seal(b"secret", b"of")

    def fail(error: Exception) -> Never:
        raise error

    monkeypatch.setattr(vault_keys, "load_ring", lambda *_: fail(WrongMasterKey("rotated by another process")))
    monkeypatch.setattr(vault_keys, "_read_all", lambda _: fail(ConnectionError("the database has gone away")))
    with pytest.raises(Unavailable):
        store.vault.refresh()
    assert store.vault.open(sealed, b"of") == b"secret"  # with the keys that were read before


def test_key_file_is_not_replaced_by_a_key_from_the_environment(lender: Lender, now: datetime) -> None:
    settings = with_master_key(lender.store, "", b"n" * 32)
    with pytest.raises(SettingsError, match="unset it"):
        vault_keys.rotate_master_key(lender.store.db, settings, now)


class Steps:
    """Counts the steps that a rotation makes durable or visible, and kills it before the n-th."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, store: Store, nth: int) -> None:
        self.taken, self._nth = 0, nth
        for owner, name in ((os, "fsync"), (os, "link"), (os, "unlink"), (Path, "replace")):
            monkeypatch.setattr(owner, name, self._before(getattr(owner, name)))
        event.listen(store.db.engine, "commit", self._step)

    def _before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **kwargs: Any) -> Any:
            self._step()
            return call(*args, **kwargs)

        return step

    def _step(self, *_: object) -> None:
        self.taken += 1
        if self.taken == self._nth:
            raise Killed

    def over(self, store: Store) -> None:
        event.remove(store.db.engine, "commit", self._step)


def kill_at(monkeypatch: pytest.MonkeyPatch, store: Store, nth: int, work: Callable[[], object]) -> bool:
    """Kill the work before the n-th step; return False if it has fewer steps."""
    with monkeypatch.context() as patched:
        steps = Steps(patched, store, nth)
        try:
            work()
        except Killed:
            return True
        finally:
            steps.over(store)
        return False


def test_rotation_of_the_master_key_may_be_killed_before_any_step(
    lender: Lender, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = lender.store

    def rotate() -> object:
        return vault_keys.rotate_master_key(store.db, store.settings, now)

    for nth in count(1):
        before = key_in(store.settings)
        killed = kill_at(monkeypatch, store, nth, rotate)
        with open_another(store.settings) as another:
            assert lender.opens(another), f"killed before step {nth}"
        with store.db.reading() as r:
            there = vault_keys.find_master_key_fingerprint(r)
        assert there == key_in(store.settings), "who opened it has finished what could be finished"
        rotate()
        assert key_in(store.settings) != before
        assert files_of_keys(store) == ["master.key"]
        if not killed:
            break
    assert nth > 6, "it surely has more steps"


@pytest.mark.slow  # kills the process before each of its steps
def test_resealing_may_be_killed_before_any_step(
    lender: Lender, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = lender.store
    used = {key(store)}
    for nth in count(1):
        killed = kill_at(monkeypatch, store, nth, lambda: resealing.reseal(store, lambda: now))
        with open_another(store.settings) as another:
            assert lender.opens(another), f"killed before step {nth}"
            resealing.reseal(another, lambda: now)
            assert lender.opens(another)
        assert count_sealed_values(store) == {key(store): Sealed(1, 1, 1)}
        used.add(key(store))
        if not killed:
            break
    assert nth > 10, "it surely has more steps"
    with store.db.reading() as r:
        stored = [each.key_id for each in vault_keys.read_data_keys(r) if each.purpose is Purpose.SEALING]
    assert len(stored) > len(used) / 2
    assert vault_keys.delete_unused_keys(store.db, now + vault_keys.RETIRED_RETAINED) == []
    later = now + vault_keys.RETIRED_RETAINED + timedelta(seconds=1)
    assert vault_keys.delete_unused_keys(store.db, later) == [each for each in stored if each != key(store)]
    assert lender.opens(store)


def key(store: Store) -> int:
    return store.vault.refresh().current


def count_sealed_values(store: Store) -> dict[int, Sealed]:
    with store.db.reading() as r:
        return vault_keys.count_sealed(r)


def test_unfinished_resealing_continues_instead_of_restarting(lender: Lender, now: datetime) -> None:
    store = lender.store
    with store.db.writing() as w:
        second = vault_keys.replace_data_key(w, store.settings, now)  # and the process died
    done = resealing.reseal(store, lambda: now)
    assert (done.data_key, done.made, done.webhook_secrets, done.originals, done.passwords) == (second, False, 1, 1, 1)
    done = resealing.reseal(store, lambda: now)
    assert (done.data_key, done.made, done.unreadable) == (second + 1, True, [])


def test_value_that_cannot_be_opened_is_reported_and_keeps_its_key(lender: Lender, now: datetime) -> None:
    store, first = lender.store, key(lender.store)
    with store.db.reading() as r:
        path = statements.get_file(r, lender.file_id).path or ""
    (store.lake.root / path).write_bytes(b"rot")
    with store.db.writing() as w:
        w.execute(update(statement_files).values(password=(first).to_bytes(4, "big") + bytes(40)))
    done = resealing.reseal(store, lambda: now)
    assert done.unreadable == [f"password of statement file {lender.file_id}", path]
    assert count_sealed_values(store) == {first: Sealed(0, 1, 1), done.data_key: Sealed(1, 0, 0)}
    assert vault_keys.delete_unused_keys(store.db, now + timedelta(days=365)) == []


def test_old_file_of_an_original_stays_for_readers_and_is_swept_a_day_later(lender: Lender, now: datetime) -> None:
    store = lender.store
    with store.db.reading() as r:
        looked_up = statements.get_file(r, lender.file_id)
    old = store.lake.root / (looked_up.path or "")
    os.utime(old, (0, 0))
    resealing.reseal(store, lambda: now)
    written = datetime.fromtimestamp(old.stat().st_mtime, now.tzinfo)
    retention.sweep(store, lambda: written + timedelta(hours=23))
    assert statements.open_original(store, looked_up) == PDF
    retention.sweep(store, lambda: written + timedelta(hours=25))
    assert not old.exists()
    with open_another(store.settings) as another:
        assert lender.opens(another)


def test_retired_key_is_deleted_by_a_sweep(lender: Lender, now: datetime) -> None:
    first = key(lender.store)
    resealing.reseal(lender.store, lambda: now)
    retention.sweep(lender.store, lambda: now + vault_keys.RETIRED_RETAINED + timedelta(seconds=1))
    with lender.store.db.reading() as r:
        assert first not in {each.key_id for each in vault_keys.read_data_keys(r)}


def test_data_key_copied_to_another_id_opens_nothing(lender: Lender, now: datetime) -> None:
    store, first = lender.store, key(lender.store)
    resealing.reseal(store, lambda: now)
    with store.db.writing() as w:
        older = select(vault_keys_table.c.wrapped).where(vault_keys_table.c.key_id == first).scalar_subquery()
        w.execute(update(vault_keys_table).where(vault_keys_table.c.key_id > first).values(wrapped=older))
    with pytest.raises(SettingsError, match="damaged"):
        Store.open(Settings(**dict(store.settings)))


def test_running_process_finds_a_key_that_another_created(lender: Lender, now: datetime) -> None:
    with open_another(lender.store.settings) as running:
        assert lender.opens(running)
        resealing.reseal(lender.store, lambda: now)
        assert lender.opens(running)


def test_pseudonyms_stay_over_all_rotations(lender: Lender, now: datetime) -> None:
    store = lender.store
    before = store.vault.pseudonym("127.0.0.1")
    vault_keys.rotate_master_key(store.db, store.settings, now)
    resealing.reseal(store, lambda: now)
    with open_another(store.settings) as another:
        assert another.vault.pseudonym("127.0.0.1") == before


def test_processes_that_start_at_once_get_the_same_keys(store: Store) -> None:
    with store.db.writing() as w:
        w.execute(vault_keys_table.delete())
    vaults = [vault_keys.open_vault(store.db, store.settings) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        sealed = list(threads.map(lambda each: each.seal(b"secret", b"context"), vaults))
    again = vault_keys.open_vault(store.db, store.settings)
    assert {again.open(each, b"context") for each in sealed} == {b"secret"}


def test_concurrent_rotations_take_turns(lender: Lender, now: datetime) -> None:
    store = lender.store
    with ThreadPoolExecutor(4) as threads:
        rotated = list(threads.map(lambda _: vault_keys.rotate_master_key(store.db, store.settings, now), range(12)))
    assert files_of_keys(store) == ["master.key"]
    assert key_in(store.settings) in {each.now for each in rotated}
    with open_another(store.settings) as another:
        assert lender.opens(another)


@pytest.mark.service  # a race of several seconds
def test_subscriptions_can_be_created_and_rotated_during_key_rotations(lender: Lender, now: datetime) -> None:
    """The processes have read their keys before the rotations."""
    store, over = lender.store, Event()
    secrets = {lender.subscription_id: lender.secret}

    def subscribe(running: Store, turn: int) -> None:
        with running.db.writing() as w:
            made, secret = subscriptions.create(
                w, lender.client_id, EventType.JOB_COMPLETED, URL, [], running.vault, now
            )
            if turn % 2:
                secret = subscriptions.rotate(w, lender.client_id, made.subscription_id, running.vault)
        secrets[made.subscription_id] = decode_secret(secret)

    def work(index: int) -> None:
        with open_another(store.settings) as running:
            for turn in count(index):
                if over.wait(0.005):
                    return
                subscribe(running, turn)
                assert lender.opens(running)

    def rotate() -> None:
        vault_keys.rotate_master_key(store.db, store.settings, now)
        assert resealing.reseal(store, lambda: now).unreadable == []

    with ThreadPoolExecutor(2) as threads:
        working = [threads.submit(work, index) for index in range(2)]
        try:
            for _ in range(5):
                rotate()
            until(lambda: rotate() or len(secrets) > 10)
        finally:
            over.set()
        for each in working:
            each.result()
    resealing.reseal(store, lambda: now)
    with open_another(store.settings) as another, another.db.reading() as r:
        query = select(subscriptions_table.c.subscription_id, subscriptions_table.c.secret)
        for subscription_id, text in r.execute(query):
            assert subscriptions.open_secret(another.vault, subscription_id, text) == secrets[subscription_id]


def test_process_that_starts_during_a_rotation_finds_its_keys(
    lender: Lender, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, read = lender.store, vault_keys.read_data_keys
    rotations = iter([lambda: vault_keys.rotate_master_key(store.db, store.settings, now)])

    def read_before_a_rotation(r: Reading) -> list[vault_keys.DataKey]:
        keys = read(r)
        if rotate := next(rotations, None):
            rotate()
        return keys

    monkeypatch.setattr(vault_keys, "read_data_keys", read_before_a_rotation)
    with open_another(store.settings) as another:
        assert lender.opens(another)
    assert next(rotations, None) is None


def test_store_without_its_master_key_says_which_one_it_needs(lender: Lender) -> None:
    store = lender.store
    retained = store.settings.key_file.rename(store.settings.home / "kept apart")
    with pytest.raises(WrongMasterKey, match=fingerprint(store.settings.key_in(retained) or b"")):
        Store.open(Settings(**dict(store.settings)))
    retained.rename(store.settings.key_file)
    with open_another(store.settings) as another:
        assert lender.opens(another)


def test_lost_master_key_is_abandoned_and_the_service_works(lender: Lender, now: datetime) -> None:
    store = lender.store
    with pytest.raises(Conflict):
        vault_keys.abandon(store.db, store.settings, now)
    store.settings.key_file.unlink()
    vault_keys.abandon(store.db, store.settings, now)
    with open_another(store.settings) as another:
        with pytest.raises(Corrupt):
            lender.opens(another)
        with another.db.writing() as w:
            secret = subscriptions.rotate(w, lender.client_id, lender.subscription_id, another.vault)
        lender.secret = decode_secret(secret)
        done = resealing.reseal(another, lambda: now)
        assert (done.webhook_secrets, done.originals, len(done.unreadable)) == (1, 0, 2)
        vault_keys.rotate_master_key(another.db, another.settings, now)


@on_sqlite
def test_doctor_reports_unfinished_rotations(lender: Lender, now: datetime) -> None:
    store = lender.store
    new = vault_keys.waiting_key_file(store.settings, fingerprint(b"n" * 32))
    new.write_bytes(b64encode(b"n" * 32))
    new.chmod(0o600)
    with store.db.writing() as w:
        vault_keys.replace_data_key(w, store.settings, now)
    about = {(each.severity, each.about) for each in examine(store.settings, lambda: now)}
    assert {(Severity.WARNING, "master key"), (Severity.NOTE, "secrets")} <= about
    assert vault_keys.rotate_master_key(store.db, store.settings, now).now == fingerprint(b"n" * 32)
    resealing.reseal(store, lambda: now)
    assert not {"master key", "secrets"} & {each.about for each in examine(store.settings, lambda: now)}


@on_sqlite
def test_key_file_that_is_readable_or_invalid_is_refused(lender: Lender) -> None:
    settings = lender.store.settings
    settings.key_file.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        Store.open(Settings(**dict(settings)))
    settings.key_file.chmod(0o600)
    for text, problem in ((b"no key", "is not Base64"), (b64encode(b"short"), "must be 32 bytes"), (b"\xff", "read")):
        settings.key_file.write_bytes(text)
        with pytest.raises(SettingsError, match=problem):
            Store.open(Settings(**dict(settings)))
