"""Backup while everything runs: a snapshot of the database first, then exactly the files that the snapshot names.

**Why this order is right.** A row is committed only once its file is durable, and files never change. So every file
that the snapshot names exists when the snapshot is taken, whole, and its bytes are the same whenever they are copied.
Only a sweep removes files; it and the backup take turns (the role of the file keeper). What is committed after the
snapshot is not in the backup, neither rows nor files, and nothing in the backup needs it.

The new snapshot replaces the one before only when its files were copied, so the folder holds a whole backup at every
moment. Files that an earlier backup copied are not copied again. A file that the lake itself has lost or damaged can't
be copied by trying again: it is named, and keeps nothing else from being backed up.
"""

import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256 as digest_of
from pathlib import Path
from typing import cast

from sqlalchemy import text

from pipelines.vocabulary.errors import Unavailable
from storage.core import durable, leases
from storage.core.database import Database
from storage.core.lake import Lake
from storage.core.postgres import DAGSTER_SCHEMA
from storage.core.store import Store
from storage.core.vault_keys import master_key_of
from storage.operations.integrity import Problem, all_named

SQLITE_SNAPSHOT = "tidemark.db"
POSTGRES_SNAPSHOT = "tidemark.dump"  # for pg_restore
PROLONG_EVERY = 500  # files
PROLONG_EVERY_S = 60
PATIENCE_S = 600.0  # longer than the role of one that died keeps others waiting


@dataclass(frozen=True)
class BackedUp:
    """What a backup holds now."""

    snapshot: str
    files: int  # named by the snapshot, and there
    copied: int  # the others were there from an earlier backup
    bytes_copied: int
    damages: Sequence[tuple[str, Problem]]  # named, but not to be had as they were written
    master_key: str | None  # fingerprint of the one that opens the snapshot's secrets; None: it holds no data key


def back_up(store: Store, folder: Path, clock: Callable[[], datetime], patience_s: float = PATIENCE_S) -> BackedUp:
    """Bring the backup in `folder` up to date.

    Raises:
        Conflict: a sweep or another backup has been under way for all of `patience_s`.
        Unavailable: the snapshot can't be taken.
    """
    durable.make_folder(folder)
    with leases.exclusively(store.db, leases.FILE_KEEPER, clock, patience_s) as prolong:
        take = _sqlite_snapshot if store.db.is_sqlite else _postgres_snapshot
        taken = take(store.db, folder, prolong)
        copied, damages = _copy(store.lake, Lake(folder / "lake"), taken.named, prolong)
        prolong()
    final = taken.path.with_name(taken.path.name.removesuffix(".new"))
    durable.sync(taken.path)
    taken.path.replace(final)
    durable.sync(folder)
    files = len(taken.named) - len(damages)
    return BackedUp(str(final), files, len(copied), sum(copied), damages, taken.master_key)


@dataclass(frozen=True)
class _Snapshot:
    path: Path
    named: Sequence[tuple[str, bytes]]  # path and SHA-256 of the files
    master_key: str | None


def _sqlite_snapshot(db: Database, folder: Path, prolong: Callable[[], None]) -> _Snapshot:
    """SQLite copies what one read transaction sees; writers go on."""
    target = folder / f"{SQLITE_SNAPSHOT}.new"
    target.unlink(missing_ok=True)
    with (
        closing(sqlite3.connect(cast(str, db.url.database), check_same_thread=False)) as connection,
        ThreadPoolExecutor(1) as thread,
    ):
        copying = thread.submit(connection.execute, "VACUUM INTO ?", [str(target)])
        _wait(copying.result, connection.interrupt, prolong)
    target.chmod(0o600)
    copy = Database(f"sqlite:///{target}")
    with copy.reading() as r:
        taken = _Snapshot(target, list(all_named(r)), master_key_of(r))
    copy.close()
    return taken


def _postgres_snapshot(db: Database, folder: Path, prolong: Callable[[], None]) -> _Snapshot:
    """pg_dump and the list of files read one exported snapshot."""
    target = folder / f"{POSTGRES_SNAPSHOT}.new"
    target.unlink(missing_ok=True)
    with db.reading() as r:
        r.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        snapshot: str = r.execute(text("SELECT pg_export_snapshot()")).scalar_one()
        taken = _Snapshot(target, list(all_named(r)), master_key_of(r))
        _pg_dump(db, target, snapshot, prolong)
    return taken


def _pg_dump(db: Database, target: Path, snapshot: str, prolong: Callable[[], None]) -> None:
    """The password goes through the environment: arguments can be read by others."""
    url = db.url.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
    options = ["--format=custom", "--no-owner", f"--snapshot={snapshot}", f"--file={target}", f"--dbname={url}"]
    options.append(f"--exclude-schema={DAGSTER_SCHEMA}")
    environment = os.environ | ({"PGPASSWORD": str(db.url.password)} if db.url.password else {})
    try:
        with subprocess.Popen(["pg_dump", *options], env=environment, umask=0o077) as dumping:
            _wait(dumping.wait, dumping.kill, prolong)
    except FileNotFoundError as error:
        raise Unavailable("Backup.NoPgDump", "pg_dump is not installed: it comes with PostgreSQL's client.") from error
    if dumping.returncode != 0:
        raise Unavailable("Backup.PgDumpFailed", "pg_dump failed; what it said stands above.")


def _wait(end: Callable[[float], object], stop: Callable[[], None], prolong: Callable[[], None]) -> None:
    """Wait until something ends; what goes wrong meanwhile stops it."""
    try:
        while True:
            with suppress(subprocess.TimeoutExpired, TimeoutError):
                end(PROLONG_EVERY_S)
                return
            prolong()
    except BaseException:
        stop()
        raise


def _copy(
    lake: Lake, target: Lake, named: Iterable[tuple[str, bytes]], prolong: Callable[[], None]
) -> tuple[list[int], list[tuple[str, Problem]]]:
    """Copy what is not there yet; sizes of what was copied, and what could not be."""
    sizes: list[int] = []
    damages: list[tuple[str, Problem]] = []
    for i, (path, sha256) in enumerate(named):
        if i % PROLONG_EVERY == 0:
            prolong()
        if (target.root / path).exists():
            continue
        try:
            content = (lake.root / path).read_bytes()
        except FileNotFoundError:
            damages.append((path, Problem.MISSING))
        except OSError:
            damages.append((path, Problem.UNREADABLE))
        else:
            if digest_of(content).digest() == sha256:
                sizes.append(target.put(path, content).size)
            else:
                damages.append((path, Problem.CHANGED))
    return sizes, damages
