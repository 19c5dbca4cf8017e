"""Back up a running service: first a snapshot of the database, then exactly the files that the snapshot names.

**Why this order is right.** A row is committed only after its file is durable, and files never change. So every file
that the snapshot names exists completely when the snapshot is taken, and its bytes are the same whenever they are
copied. Only a sweep removes files, and a lease (the role of file keeper) keeps it from running during a backup.
Rows and files that are committed after the snapshot are not in the backup, and nothing in the backup needs them.

The new snapshot replaces the previous one only after its files were copied, so the folder always holds a complete
backup. Files that an earlier backup copied are not copied again. A file that is missing or damaged in the lake is
reported, and doesn't prevent the backup of everything else.
"""

import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
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
from storage.core.vault_keys import find_master_key_fingerprint
from storage.operations.integrity import Problem, find_all_named

SQLITE_SNAPSHOT = "tidemark.db"
POSTGRES_SNAPSHOT = "tidemark.dump"  # for pg_restore
PROLONG_EVERY = 500  # files between two renewals of the lease
PROLONG_EVERY_S = 60  # between renewals while the snapshot is taken
PATIENCE_S = 600.0  # longer than the lease of a process that died


@dataclass(frozen=True)
class BackedUp:
    """The content of a finished backup."""

    snapshot: str
    files: int  # named by the snapshot, and in the backup
    copied: int  # by this backup; the others were copied by an earlier one
    bytes_copied: int
    damages: Sequence[tuple[str, Problem]]  # files that the snapshot names, but that are missing or damaged
    master_key: str | None  # fingerprint of the key that opens the snapshot's secrets; None: it has no data key


def back_up(store: Store, folder: Path, patience_s: float = PATIENCE_S) -> BackedUp:
    """Bring the backup in `folder` up to date.

    Raises:
        Conflict: a sweep or another backup was in progress for the whole of `patience_s`.
        Unavailable: the snapshot can't be taken.
    """
    durable.make_folder(folder)
    with leases.hold_or_raise(store.db, leases.FILE_KEEPER, patience_s) as prolong:
        take_snapshot = _take_sqlite_snapshot if store.db.is_sqlite else _take_postgres_snapshot
        snapshot = take_snapshot(store.db, folder, prolong)
        sizes, damages = _copy_files(store.lake, Lake(folder / "lake"), snapshot.named, prolong)
        prolong()
    final = snapshot.path.with_name(snapshot.path.name.removesuffix(".new"))
    durable.sync(snapshot.path)
    snapshot.path.replace(final)
    durable.sync(folder)
    files = len(snapshot.named) - len(damages)
    return BackedUp(str(final), files, len(sizes), sum(sizes), damages, snapshot.master_key)


@dataclass(frozen=True)
class _Snapshot:
    path: Path
    named: Sequence[tuple[str, bytes]]  # path and SHA-256 of the files
    master_key: str | None


def _take_sqlite_snapshot(db: Database, folder: Path, prolong: Callable[[], None]) -> _Snapshot:
    """Copy the database as one read transaction sees it, without blocking writers."""
    target = folder / f"{SQLITE_SNAPSHOT}.new"
    target.unlink(missing_ok=True)
    with (
        closing(sqlite3.connect(cast(str, db.url.database), check_same_thread=False)) as connection,
        ThreadPoolExecutor(1) as thread,
    ):
        copy = thread.submit(connection.execute, "VACUUM INTO ?", [str(target)])
        _wait(copy.result, connection.interrupt, prolong)
    target.chmod(0o600)
    copied = Database(f"sqlite:///{target}")
    with copied.reading() as r:
        snapshot = _Snapshot(target, list(find_all_named(r)), find_master_key_fingerprint(r))
    copied.close()
    return snapshot


def _take_postgres_snapshot(db: Database, folder: Path, prolong: Callable[[], None]) -> _Snapshot:
    """Run pg_dump and list the files from the same exported snapshot."""
    target = folder / f"{POSTGRES_SNAPSHOT}.new"
    target.unlink(missing_ok=True)
    with db.reading() as r:
        r.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        exported: str = r.execute(text("SELECT pg_export_snapshot()")).scalar_one()
        snapshot = _Snapshot(target, list(find_all_named(r)), find_master_key_fingerprint(r))
        _run_pg_dump(db, target, exported, prolong)
    return snapshot


def _run_pg_dump(db: Database, target: Path, snapshot: str, prolong: Callable[[], None]) -> None:
    url = db.url.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
    options = ["--format=custom", "--no-owner", f"--snapshot={snapshot}", f"--file={target}", f"--dbname={url}"]
    options.append(f"--exclude-schema={DAGSTER_SCHEMA}")
    # The password is passed in the environment, because other users can read a process's arguments.
    environment = os.environ | ({"PGPASSWORD": str(db.url.password)} if db.url.password else {})
    try:
        with subprocess.Popen(["pg_dump", *options], env=environment, umask=0o077) as dump:
            _wait(dump.wait, dump.kill, prolong)
    except FileNotFoundError as error:
        raise Unavailable("Backup.NoPgDump", "pg_dump is not installed: it comes with PostgreSQL's client.") from error
    if dump.returncode != 0:
        raise Unavailable("Backup.PgDumpFailed", "pg_dump failed; its message is printed above.")


def _wait(end: Callable[[float], object], stop: Callable[[], None], prolong: Callable[[], None]) -> None:
    """Wait for `end` and renew the lease meanwhile. Call `stop` on any error."""
    try:
        while True:
            with suppress(subprocess.TimeoutExpired, TimeoutError):
                end(PROLONG_EVERY_S)
                return
            prolong()
    except BaseException:
        stop()
        raise


def _copy_files(
    lake: Lake, target: Lake, named: Iterable[tuple[str, bytes]], prolong: Callable[[], None]
) -> tuple[list[int], list[tuple[str, Problem]]]:
    """Copy the files that are not in the backup yet. Return the sizes of the copies, and the files that are damaged."""
    sizes: list[int] = []
    damages: list[tuple[str, Problem]] = []
    for i, (path, sha256) in enumerate(named):
        if i % PROLONG_EVERY == 0:
            prolong()
        if (target.root / path).exists():
            continue
        try:
            content = b"".join(lake.chunks(path))
        except FileNotFoundError:
            damages.append((path, Problem.MISSING))
        except ConnectionError as error:
            raise Unavailable(
                "Backup.LakeUnreachable", "The object store can't be reached. Run the backup again."
            ) from error
        except OSError:
            damages.append((path, Problem.UNREADABLE))
        else:
            if digest_of(content).digest() == sha256:
                sizes.append(target.put(path, content).size)
            else:
                damages.append((path, Problem.CHANGED))
    return sizes, damages
