"""The integrity pass: read every file that the database names, and compare its SHA-256.

A process checks a file when it opens it for the first time (`Lake.verified_path`). The pass finds damage before the
file is needed, while a backup still has an intact copy. It reads at a limited rate and records its position, so it may
be stopped and started again at any time. A damaged file stays in `damaged_files` until a later pass finds it intact.

Files never change and their names are unique, so a damaged file is repaired by copying it from any backup.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, delete, select, union_all

from storage.core.database import AnySelect, Reading, Writing, insert_into
from storage.core.lake import Lake
from storage.core.models import (
    attachments,
    customers,
    damaged_files,
    jobs,
    locations,
    passes,
    segments,
    statement_files,
)
from storage.core.store import Store

PASS = "integrity"
SLICE = 200  # files after which the position is recorded


class Problem(StrEnum):
    MISSING = "missing"
    CHANGED = "changed"  # its bytes are not those that were written
    UNREADABLE = "unreadable"  # the disk failed, or access is denied


@dataclass(frozen=True)
class Damage:
    """A named file that can't be used, and the customers whose current data need it."""

    path: str
    problem: Problem
    found_at: datetime  # for the first time
    customers: Sequence[UUID]


@dataclass(frozen=True)
class CheckedFiles:
    """The result of a pass. If it is not `complete`, it was stopped, and the next one continues from there."""

    files: int
    bytes: int
    complete: bool
    damages: Sequence[Damage]  # all that are known, from this pass and earlier ones


@dataclass(frozen=True)
class _Kind:
    """Files of one kind, which are read in order of a key."""

    name: str
    query: AnySelect  # key, path, sha256
    key: ColumnElement[Any]
    parse: Callable[[str], Any]


_KINDS = (
    _Kind("segments", select(segments.c.path, segments.c.path, segments.c.sha256), segments.c.path, str),
    _Kind(
        "landing",
        select(jobs.c.received_seq, jobs.c.landing_path, jobs.c.landing_sha256).where(jobs.c.landing_path.is_not(None)),
        jobs.c.received_seq,
        int,
    ),
    _Kind(
        "statements",
        select(statement_files.c.path, statement_files.c.path, statement_files.c.stored_sha256).where(
            statement_files.c.path.is_not(None)
        ),
        statement_files.c.path,
        str,
    ),
    _Kind(
        "attachments",
        select(attachments.c.path, attachments.c.path, attachments.c.stored_sha256).where(
            attachments.c.path.is_not(None)
        ),
        attachments.c.path,
        str,
    ),
)


_Named = tuple[str, str, bytes]  # position in the pass, path, SHA-256


def check(
    store: Store,
    clock: Callable[[], datetime],
    *,
    bytes_per_s: float = float("inf"),
    stop_after_s: float = float("inf"),
    afresh: bool = False,
) -> CheckedFiles:
    """Check every named file, from the position of an earlier pass that was stopped.

    Args:
        afresh: begin with the first file instead.
    """
    began, files, read = time.monotonic(), 0, 0
    for slice_ in _slices_after(store, None if afresh else _read_position(store)):
        problems = {}
        for _, path, sha256 in slice_:
            problems[path], size = examine(store.lake, path, sha256)
            read += size
            time.sleep(max(0.0, began + read / bytes_per_s - time.monotonic()))
        files += len(slice_)
        with store.db.writing() as w:
            _record(w, problems, clock())
            update_pass(w, PASS, {"position": slice_[-1][0]})
        if time.monotonic() - began > stop_after_s:
            return CheckedFiles(files, read, complete=False, damages=_read_all_damages(store))
    with store.db.writing() as w:
        update_pass(w, PASS, {"position": None, "finished_at": clock()})
    return CheckedFiles(files, read, complete=True, damages=_read_all_damages(store))


def examine(lake: Lake, path: str, sha256: bytes) -> tuple[Problem | None, int]:
    """Return the problem of a file, None if it is intact, and how many bytes were read.

    Raises:
        ConnectionError: the bucket can't be reached, which is no file's problem.
    """
    digest, size = hashlib.sha256(), 0
    try:
        for chunk in lake.chunks(path):
            digest.update(chunk)
            size += len(chunk)
    except FileNotFoundError:
        return Problem.MISSING, 0
    except ConnectionError:
        raise
    except OSError:
        return Problem.UNREADABLE, 0
    return (None if digest.digest() == sha256 else Problem.CHANGED), size


def find_all_named(r: Reading) -> Iterator[tuple[str, bytes]]:
    """Yield path and SHA-256 of every file that the database names in this transaction's snapshot."""
    for kind in _KINDS:
        for slice_ in _slices(lambda query: r.execute(query).all(), kind, None):
            yield from ((path, sha256) for _, path, sha256 in slice_)


def select_named(r: Reading, paths: Iterable[str]) -> set[str]:
    """Return those of the paths that the database names as a segment, a landing file, a PDF or an attachment."""
    candidates = list(paths)
    query = union_all(
        select(segments.c.path).where(segments.c.path.in_(candidates)),
        select(jobs.c.landing_path).where(jobs.c.landing_path.in_(candidates)),
        select(statement_files.c.path).where(statement_files.c.path.in_(candidates)),
        select(attachments.c.path).where(attachments.c.path.in_(candidates)),
    )
    return set(r.execute(query).scalars())


def read_damages(r: Reading) -> list[Damage]:
    """Return the known damaged files in order of path."""
    rows = r.execute(select(damaged_files).order_by(damaged_files.c.path)).all()
    customers_by_path = find_customers_by_path(r, [row.path for row in rows])
    return [Damage(row.path, Problem(row.problem), row.found_at, customers_by_path[row.path]) for row in rows]


def find_last_finished(r: Reading, name: str = PASS) -> datetime | None:
    """Return when the last complete pass ended."""
    return r.execute(select(passes.c.finished_at).where(passes.c.name == name)).scalar()


def _read_position(store: Store) -> str | None:
    """Return the position at which a pass was stopped."""
    with store.db.reading() as r:
        return r.execute(select(passes.c.position).where(passes.c.name == PASS)).scalar()


def _slices_after(store: Store, position: str | None) -> Iterator[list[_Named]]:
    """Yield, slice by slice, the files that come after a position."""

    def read(query: AnySelect) -> Sequence[Any]:
        with store.db.reading() as r:
            return r.execute(query).all()

    reached, _, after = (position or f"{_KINDS[0].name}:").partition(":")
    for kind in _KINDS[[kind.name for kind in _KINDS].index(reached) :]:
        yield from _slices(read, kind, kind.parse(after) if after and kind.name == reached else None)


def _slices(read: Callable[[AnySelect], Sequence[Any]], kind: _Kind, after: Any) -> Iterator[list[_Named]]:
    query = kind.query.order_by(kind.key).limit(SLICE)
    while rows := read(query if after is None else query.where(kind.key > after)):
        yield [(f"{kind.name}:{key}", path, sha256) for key, path, sha256 in rows]
        *_, (after, _, _) = rows


def _record(w: Writing, problems: Mapping[str, Problem | None], now: datetime) -> None:
    """Store the problems of damaged files, and delete those of files that are intact or that were swept meanwhile."""
    damaged = {path: problem for path, problem in problems.items() if problem}
    rows = [{"path": path, "problem": damaged[path], "found_at": now} for path in sorted(select_named(w, damaged))]
    still_damaged = [row["path"] for row in rows]
    path = damaged_files.c.path
    w.execute(delete(damaged_files).where(path.in_(list(problems)), path.not_in(still_damaged)))
    if rows:
        statement = insert_into(w, damaged_files)
        new = {"problem": statement.excluded.problem}
        w.execute(statement.on_conflict_do_update(index_elements=[damaged_files.c.path], set_=new), rows)


def update_pass(w: Writing, name: str, values: Mapping[str, Any]) -> None:
    statement = insert_into(w, passes).values(name=name, **values)
    w.execute(statement.on_conflict_do_update(index_elements=[passes.c.name], set_=dict(values)))


def _read_all_damages(store: Store) -> list[Damage]:
    with store.db.reading() as r:
        return read_damages(r)


def find_customers_by_path(r: Reading, paths: Sequence[str]) -> Mapping[str, list[UUID]]:
    """Return for each file the public ids of the customers whose current transactions or submissions are in it."""
    live = (
        select(segments.c.path, customers.c.customer_id)
        .join_from(locations, segments)
        .join(customers, customers.c.number == locations.c.customer_number)
        .where(locations.c.replaced_at.is_(None), segments.c.path.in_(paths))
    )
    of_customers = [
        select(path, customers.c.customer_id).join_from(path.table, customers).where(path.in_(paths))
        for path in (jobs.c.landing_path, jobs.c.statement_rows_path, statement_files.c.path, attachments.c.path)
    ]
    by_path: dict[str, list[UUID]] = defaultdict(list)
    for path, customer_id in r.execute(union_all(live, *of_customers)):
        by_path[path].append(customer_id)
    return by_path
