"""The integrity pass: every file that the database names is read, and its SHA-256 compared.

Whoever opens a file for the first time checks it (`Lake.verified`); the pass finds damage before somebody needs the
file, while a backup still has it. It reads at a bounded rate and remembers how far it came, so it may be stopped at any
moment and started again. What it finds stays in `damaged_files` until a later pass finds the file right again.

Files never change and their names are unique: a damaged one is repaired by copying it from any backup.
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
from storage.core.models import customers, damaged_files, jobs, locations, passes, segments, statement_files
from storage.core.store import Store

PASS = "integrity"
SLICE = 200  # files between two notes of how far the pass has come


class Problem(StrEnum):
    MISSING = "missing"
    CHANGED = "changed"  # other bytes than were written
    UNREADABLE = "unreadable"  # the disk fails, or forbids


@dataclass(frozen=True)
class Damage:
    """A named file that can't be used, and the customers whose present data need it."""

    path: str
    problem: Problem
    found_at: datetime  # first
    customers: Sequence[UUID]


@dataclass(frozen=True)
class Checked:
    """What a pass did. Unless `complete` it was stopped, and the next one goes on from there."""

    files: int
    bytes: int
    complete: bool
    damages: Sequence[Damage]  # known now, by this pass and earlier ones


@dataclass(frozen=True)
class _Kind:
    """Files of one kind, in order of a key."""

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
)


_Named = tuple[str, str, bytes]  # position in the pass, path, SHA-256


def check(
    store: Store,
    clock: Callable[[], datetime],
    *,
    bytes_per_s: float = float("inf"),
    stop_after_s: float = float("inf"),
    afresh: bool = False,
) -> Checked:
    """Check every named file: from where an earlier pass was stopped or, `afresh` or when none was, from the first."""
    began, files, read = time.monotonic(), 0, 0
    for slice_ in _to_check(store, None if afresh else _position(store)):
        found = {}
        for _, path, sha256 in slice_:
            found[path], size = examine(store.lake, path, sha256)
            read += size
            time.sleep(max(0.0, began + read / bytes_per_s - time.monotonic()))
        files += len(slice_)
        with store.db.writing() as w:
            _record(w, found, clock())
            _note(w, {"position": slice_[-1][0]})
        if time.monotonic() - began > stop_after_s:
            return Checked(files, read, complete=False, damages=_damages(store))
    with store.db.writing() as w:
        _note(w, {"position": None, "finished_at": clock()})
    return Checked(files, read, complete=True, damages=_damages(store))


def examine(lake: Lake, path: str, sha256: bytes) -> tuple[Problem | None, int]:
    """What is wrong with a file, if anything is, and how many bytes were read to know."""
    try:
        with (lake.root / path).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
            return (None if digest == sha256 else Problem.CHANGED), file.tell()
    except FileNotFoundError:
        return Problem.MISSING, 0
    except OSError:
        return Problem.UNREADABLE, 0


def all_named(r: Reading) -> Iterator[tuple[str, bytes]]:
    """Path and SHA-256 of every file that the database names, as of one snapshot."""
    for kind in _KINDS:
        for slice_ in _slices(lambda query: r.execute(query).all(), kind, None):
            yield from ((path, sha256) for _, path, sha256 in slice_)


def named(r: Reading, paths: Iterable[str]) -> set[str]:
    """Those of the paths that a row names: a segment's, a job's landing file, or a PDF that was sent."""
    wanted = list(paths)
    query = union_all(
        select(segments.c.path).where(segments.c.path.in_(wanted)),
        select(jobs.c.landing_path).where(jobs.c.landing_path.in_(wanted)),
        select(statement_files.c.path).where(statement_files.c.path.in_(wanted)),
    )
    return set(r.execute(query).scalars())


def damages(r: Reading) -> list[Damage]:
    """The damaged files that are known, by path."""
    rows = r.execute(select(damaged_files).order_by(damaged_files.c.path)).all()
    concerned = _customers(r, [row.path for row in rows])
    return [Damage(row.path, Problem(row.problem), row.found_at, concerned[row.path]) for row in rows]


def last_finished(r: Reading) -> datetime | None:
    """When a pass last came to its end."""
    return r.execute(select(passes.c.finished_at).where(passes.c.name == PASS)).scalar()


def _position(store: Store) -> str | None:
    """Where a pass was stopped."""
    with store.db.reading() as r:
        return r.execute(select(passes.c.position).where(passes.c.name == PASS)).scalar()


def _to_check(store: Store, position: str | None) -> Iterator[list[_Named]]:
    """The files after a position of the pass, in slices."""

    def read(query: AnySelect) -> Sequence[Any]:
        with store.db.reading() as r:
            return r.execute(query).all()

    reached, _, after = (position or f"{_KINDS[0].name}:").partition(":")
    for kind in _KINDS[[each.name for each in _KINDS].index(reached) :]:
        yield from _slices(read, kind, kind.parse(after) if after and kind.name == reached else None)


def _slices(read: Callable[[AnySelect], Sequence[Any]], kind: _Kind, after: Any) -> Iterator[list[_Named]]:
    query = kind.query.order_by(kind.key).limit(SLICE)
    while rows := read(query if after is None else query.where(kind.key > after)):
        yield [(f"{kind.name}:{key}", path, sha256) for key, path, sha256 in rows]
        *_, (after, _, _) = rows


def _record(w: Writing, found: Mapping[str, Problem | None], now: datetime) -> None:
    """What was found wrong stands, what was found right does not. A file that was swept meanwhile isn't missing."""
    wrong = {path: problem for path, problem in found.items() if problem}
    rows = [{"path": path, "problem": wrong[path], "found_at": now} for path in sorted(named(w, wrong))]
    still_damaged = [row["path"] for row in rows]
    w.execute(
        delete(damaged_files).where(damaged_files.c.path.in_(list(found)), damaged_files.c.path.not_in(still_damaged))
    )
    if rows:
        statement = insert_into(w, damaged_files)
        new = {"problem": statement.excluded.problem}
        w.execute(statement.on_conflict_do_update(index_elements=[damaged_files.c.path], set_=new), rows)


def _note(w: Writing, values: Mapping[str, Any]) -> None:
    statement = insert_into(w, passes).values(name=PASS, **values)
    w.execute(statement.on_conflict_do_update(index_elements=[passes.c.name], set_=dict(values)))


def _damages(store: Store) -> list[Damage]:
    with store.db.reading() as r:
        return damages(r)


def _customers(r: Reading, paths: Sequence[str]) -> Mapping[str, list[UUID]]:
    """Public ids of the customers whose current value, or whose submission, lies in each file."""
    live = (
        select(segments.c.path, customers.c.customer_id)
        .join_from(locations, segments)
        .join(customers, customers.c.number == locations.c.customer_number)
        .where(locations.c.replaced_at.is_(None), segments.c.path.in_(paths))
    )
    submitted = select(jobs.c.landing_path, customers.c.customer_id).join_from(jobs, customers)
    sent = select(statement_files.c.path, customers.c.customer_id).join_from(statement_files, customers)
    read = (
        select(jobs.c.statement_rows_path, customers.c.customer_id)
        .join_from(jobs, customers)
        .where(jobs.c.statement_rows_path.in_(paths))
    )
    named_by = (
        *(live, submitted.where(jobs.c.landing_path.in_(paths))),
        *(sent.where(statement_files.c.path.in_(paths)), read),
    )
    concerned: dict[str, list[UUID]] = defaultdict(list)
    for path, customer_id in r.execute(union_all(*named_by)):
        concerned[path].append(customer_id)
    return concerned
