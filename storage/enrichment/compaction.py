"""Compaction: rewrite a bucket's customers, scattered over the segments of many batches, into few well-filled files.

Batches go on meanwhile. A file is written whole and made durable first. Then one transaction moves the customers whose
value (`data_version`) and location (`location_version`) are still those that were read. The others are skipped: nothing
points to their rows in the new file, and their current location is right. Nothing waits for a compaction, and two
compactions of one bucket at once do no harm, only superfluous work.

A file is rewritten only if that pays. It is **settled** for a bucket if the bucket's customers in it would fill at
least half of a file of their own, and at least half of its rows are live. All other files are **loose**. Loose files
are merged when there are more than `LOOSE_FILES` of them, or when most rows of one are dead: rewriting it then costs
less than it frees. All new files but the last are settled, so compacting again at once moves nothing.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import uuid4

import polars as pl
from sqlalchemy import func, select

from pipelines.vocabulary.errors import Corrupt
from pipelines.vocabulary.schemas import SORT_KEY
from storage.core.buckets import in_bucket
from storage.core.database import Reading, Writing
from storage.core.models import customers, locations, segments
from storage.core.store import Store
from storage.enrichment import transactions
from storage.enrichment.commit import NewValue, locate_values, move_pointers
from storage.enrichment.transactions import Location

FILE_ROWS = 150_000  # five row groups, which bounds the memory that rewriting takes; our judgement
FILE_CUSTOMERS = 2_000  # moving this many makes SQLite's writers wait for a fraction of a second; our judgement
LOOSE_FILES = 8  # reading a bucket takes time for each of its files; our judgement
HALF = 0.5


@dataclass(frozen=True)
class LiveValue:
    """A customer's current value, and the size of its file. Live rows are counted over all buckets."""

    location: Location
    file_bytes: int
    file_rows: int
    file_live_rows: int

    @property
    def share_of_a_file(self) -> float:
        """The share of a well-filled file that the customer takes up, by rows or by its cost to the commit."""
        return max(self.location.row_count / FILE_ROWS, 1 / FILE_CUSTOMERS)

    @property
    def bytes(self) -> float:
        """The customer's part of the file."""
        return self.file_bytes * self.location.row_count / max(self.file_rows, 1)


@dataclass(frozen=True)
class Compacted:
    """The result of compacting a bucket."""

    bucket: int
    moved: int = 0  # customers
    skipped: int = 0  # customers that got a new value or location meanwhile
    unreadable: int = 0  # customers whose file is damaged: they stay where they are
    files: int = 0
    bytes_read: int = 0  # only of the customers' rows
    bytes_written: int = 0


def compact(store: Store, bucket: int, clock: Callable[[], datetime]) -> Compacted:
    """Rewrite a bucket's loose files if it pays, one new file and one transaction at a time."""
    with store.db.reading() as r:
        live = find_live_values(r, bucket)
    done = Compacted(bucket)
    for file_values in divide_into_files(select_values_to_move(live)):
        done = _rewrite(store, file_values, clock, done)
    return done


def find_live_values(r: Reading, bucket: int) -> list[LiveValue]:
    """Return the bucket's current values, in order of customer number."""
    files = _measure_files(r, bucket)
    return [
        LiveValue(location, *files[location.path]) for location in transactions.current_locations_in_bucket(r, bucket)
    ]


def select_values_to_move(live: Sequence[LiveValue]) -> list[LiveValue]:
    """Return the customers in loose files if merging these pays, else none."""
    by_file: dict[str, list[LiveValue]] = defaultdict(list)
    for value in live:
        by_file[value.location.path].append(value)
    loose = [values for values in by_file.values() if not _is_settled(values)]
    if len(loose) <= LOOSE_FILES and not any(map(_is_mostly_dead, loose)):
        return []
    return sorted((value for values in loose for value in values), key=lambda value: value.location.customer_number)


def divide_into_files(values: Sequence[LiveValue]) -> Iterator[Sequence[LiveValue]]:
    """Divide customers, sorted by number, into files.

    A customer that fills half a file gets one of its own. The others share files, all but the last at least half full.
    """
    file_values: list[LiveValue] = []
    filled = 0.0
    for value in values:
        if value.share_of_a_file >= HALF:
            yield [value]
            continue
        if filled + value.share_of_a_file > 1:
            yield file_values
            file_values, filled = list[LiveValue](), 0.0
        file_values.append(value)
        filled += value.share_of_a_file
    if file_values:
        yield file_values


def _is_settled(in_one_file: Sequence[LiveValue]) -> bool:
    return sum(value.share_of_a_file for value in in_one_file) >= HALF and not _is_mostly_dead(in_one_file)


def _is_mostly_dead(in_one_file: Sequence[LiveValue]) -> bool:
    return in_one_file[0].file_live_rows < HALF * in_one_file[0].file_rows


def _measure_files(r: Reading, bucket: int) -> dict[str, tuple[int, int, int]]:
    """Return bytes, rows and live rows of the files that hold the bucket's current values, by path."""
    live = locations.c.replaced_at.is_(None)
    ours = select(locations.c.segment_id).join(customers).where(live, in_bucket(bucket))
    query = (
        select(segments.c.path, segments.c.bytes, segments.c.rows, func.sum(locations.c.row_count))
        .join_from(segments, locations)
        .where(live, segments.c.segment_id.in_(ours))
        .group_by(segments.c.segment_id)
    )
    return {path: (size, rows, int(live_rows)) for path, size, rows, live_rows in r.execute(query)}


def _rewrite(store: Store, values: Sequence[LiveValue], clock: Callable[[], datetime], done: Compacted) -> Compacted:
    """Write one file, and move to it the customers that did not change meanwhile."""
    current = _select_still_current(store, values)
    found, damaged = transactions.separate_damaged(store.lake, [value.location for value in current])
    done = replace(done, unreadable=done.unreadable + len(damaged))
    if not found:
        return replace(done, skipped=done.skipped + len(values) - len(damaged))
    rows = transactions.scan(store.lake, found).sort(SORT_KEY).collect()
    moved = _new_values(rows, found)
    stored = store.lake.put_frame(f"transactions/bucket-{done.bucket:02}/{uuid4()}.parquet", rows)
    with store.db.writing() as w:
        staying = _lock_unchanged(w, found)
        if staying:
            versions = {each.customer_number: (each.data_version, each.location_version + 1) for each in staying}
            moved = [value for value in moved if value.customer_number in versions]
            move_pointers(w, store.lake, (stored, rows.height), moved, versions, clock())
    if not staying:
        store.lake.discard(stored.path)
    read = sum(value.bytes for value in current if value.location.customer_number not in damaged)
    return replace(
        done,
        moved=done.moved + len(staying),
        skipped=done.skipped + len(values) - len(damaged) - len(staying),
        files=done.files + bool(staying),
        bytes_read=done.bytes_read + round(read),
        bytes_written=done.bytes_written + stored.size,
    )


def _select_still_current(store: Store, values: Sequence[LiveValue]) -> list[LiveValue]:
    """Return the values whose location is still current.

    This is checked for each file, because compacting a bucket may take longer than replaced locations are retained.
    """
    with store.db.reading() as r:
        found = set(transactions.current_locations(r, [value.location.customer_number for value in values]))
    return [value for value in values if value.location in found]


def _new_values(rows: pl.DataFrame, found: Sequence[Location]) -> list[NewValue]:
    """Return each customer's range of rows in the new file, in the order of the locations.

    Raises:
        Corrupt: a customer's number of rows is not the one that was committed. Nothing is moved.
    """
    values = locate_values(rows, [location.customer_number for location in found])
    if [value.row_count for value in values] != [location.row_count for location in found]:
        raise Corrupt("Lake.RowsMismatch", "The files do not hold as many rows as were committed.")
    return values


def _lock_unchanged(w: Writing, found: Sequence[Location]) -> list[Location]:
    """Lock the customers until the commit, and return the locations that are still current. New jobs may still refer to
    the customers.
    """
    query = select(customers.c.number, customers.c.data_version, customers.c.location_version)
    selected = query.where(customers.c.number.in_([location.customer_number for location in found]))
    now_at = {tuple(row) for row in w.execute(selected.order_by(customers.c.number).with_for_update(key_share=True))}
    return [
        location
        for location in found
        if (location.customer_number, location.data_version, location.location_version) in now_at
    ]
