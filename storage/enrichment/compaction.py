"""Compaction: a bucket's customers, scattered over the segments of many batches, into few well-filled files.

Batches go on meanwhile. A file is written whole and durable first; then one transaction moves the customers that are
still where they were read, by content (`data_version`) and by place (`location_version`). Who moved meanwhile is
skipped: the new rows are never pointed to, and the place that the customer has now is right. Nobody waits, and
two compactions of one bucket only waste each other's work.

Only what pays is rewritten. A file is **settled** for a bucket when the bucket fills at least half a file's worth of it
and at least half of its rows are live. All others are **loose**. Loose files are merged when there are more than
`LOOSE_FILES` of them, or when one of them is mostly dead rows: it then costs less to rewrite than it frees. What
comes out is settled but for one remainder, so compacting twice moves nothing the second time.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID, uuid4

import polars as pl
from sqlalchemy import func, insert, select, update

from pipelines.vocabulary.errors import Corrupt
from pipelines.vocabulary.schemas import SORT_KEY
from storage.core.buckets import in_bucket
from storage.core.database import Reading, Writing
from storage.core.models import customers, locations, segments
from storage.core.segments import register
from storage.core.store import Store
from storage.enrichment import transactions
from storage.enrichment.transactions import Location

FILE_ROWS = 150_000  # five row groups, some 8 MB; rewriting them takes 290 MB more than an idle process (300,000: 620)
FILE_CUSTOMERS = 2_000  # moving them holds SQLite's writers up for a tenth of a second (5,000: half a second and more)
LOOSE_FILES = 8  # a bucket of 300,000 rows in 100 files is read in 225 ms, in 2 files in 12 ms
HALF = 0.5


@dataclass(frozen=True)
class Live:
    """A customer's current value, and how much of the file that it lies in is live (for all buckets together)."""

    place: Location
    file_bytes: int
    file_rows: int
    file_live_rows: int

    @property
    def share_of_a_file(self) -> float:
        """How much of a well-filled file the customer takes up: by rows, or by what it costs the commit."""
        return max(self.place.row_count / FILE_ROWS, 1 / FILE_CUSTOMERS)

    @property
    def bytes(self) -> float:
        """Its part of the file."""
        return self.file_bytes * self.place.row_count / max(self.file_rows, 1)


@dataclass(frozen=True)
class Compacted:
    """What came of compacting a bucket."""

    bucket: int
    moved: int = 0  # customers
    skipped: int = 0  # customers that got a new value or place meanwhile
    unreadable: int = 0  # customers whose file is damaged: they stay where they are
    files: int = 0
    bytes_read: int = 0  # of every file read, the part that the customers' rows are
    bytes_written: int = 0


def compact(store: Store, bucket: int, clock: Callable[[], datetime]) -> Compacted:
    """Rewrite what lies loose in a bucket, if it pays: one file and one transaction at a time."""
    with store.db.reading() as r:
        live = live_values(r, bucket)
    done = Compacted(bucket)
    for together in files_of(worth_moving(live)):
        done = _rewrite(store, together, clock, done)
    return done


def live_values(r: Reading, bucket: int) -> list[Live]:
    """The bucket's current values, in order of customer number."""
    files = _files(r, bucket)
    return [Live(place, *files[place.path]) for place in transactions.locations_in(r, bucket)]


def worth_moving(live: Sequence[Live]) -> list[Live]:
    """The customers that lie in loose files, if merging those pays; else nobody."""
    by_file: dict[str, list[Live]] = defaultdict(list)
    for value in live:
        by_file[value.place.path].append(value)
    loose = [values for values in by_file.values() if not _settled(values)]
    if len(loose) <= LOOSE_FILES and not any(map(_mostly_dead, loose)):
        return []
    return sorted((value for values in loose for value in values), key=lambda value: value.place.customer_number)


def files_of(values: Sequence[Live]) -> Iterator[Sequence[Live]]:
    """Cut customers, in order of number, into files.

    Who fills half a file has one alone; the others share, so that all of their files but the last are half full.
    """
    together: list[Live] = []
    filled = 0.0
    for value in values:
        if value.share_of_a_file >= HALF:
            yield [value]
            continue
        if filled + value.share_of_a_file > 1:
            yield together
            together, filled = list[Live](), 0.0
        together.append(value)
        filled += value.share_of_a_file
    if together:
        yield together


def _settled(in_one_file: Sequence[Live]) -> bool:
    return sum(value.share_of_a_file for value in in_one_file) >= HALF and not _mostly_dead(in_one_file)


def _mostly_dead(in_one_file: Sequence[Live]) -> bool:
    return in_one_file[0].file_live_rows < HALF * in_one_file[0].file_rows


def _files(r: Reading, bucket: int) -> dict[str, tuple[int, int, int]]:
    """Bytes, rows and live rows of the files that the bucket's current values lie in, by path."""
    live = locations.c.replaced_at.is_(None)
    ours = select(locations.c.segment_id).join(customers).where(live, in_bucket(bucket))
    query = (
        select(segments.c.path, segments.c.bytes, segments.c.rows, func.sum(locations.c.row_count))
        .join_from(segments, locations)
        .where(live, segments.c.segment_id.in_(ours))
        .group_by(segments.c.segment_id)
    )
    return {path: (size, rows, int(live_rows)) for path, size, rows, live_rows in r.execute(query)}


def _rewrite(store: Store, values: Sequence[Live], clock: Callable[[], datetime], done: Compacted) -> Compacted:
    """Write one file and move the customers to it that are still where they were."""
    current = _looked_up_again(store, values)
    places, damaged = transactions.readable(store.lake, [value.place for value in current])
    done = replace(done, unreadable=done.unreadable + len(damaged))
    if not places:
        return replace(done, skipped=done.skipped + len(values) - len(damaged))
    rows = transactions.scan(store.lake, places).sort(SORT_KEY).collect()
    targets = _targets(rows, places)
    stored = store.lake.put_frame(f"transactions/bucket-{done.bucket:02}/{uuid4()}.parquet", rows)
    with store.db.writing() as w:
        staying = _still_there(w, places)
        if staying:
            segment_id = register(w, (stored, rows.height), clock())
            store.lake.require(stored.path)
            _move(w, staying, targets, segment_id, clock())
    if not staying:
        store.lake.discard(stored.path)
    read = sum(value.bytes for value in current if value.place.customer_number not in damaged)
    return replace(
        done,
        moved=done.moved + len(staying),
        skipped=done.skipped + len(values) - len(damaged) - len(staying),
        files=done.files + bool(staying),
        bytes_read=done.bytes_read + round(read),
        bytes_written=done.bytes_written + stored.size,
    )


def _looked_up_again(store: Store, values: Sequence[Live]) -> list[Live]:
    """Those whose place is still current: a bucket may take longer than replaced places are kept; one file doesn't."""
    with store.db.reading() as r:
        places = set(transactions.current_locations(r, [value.place.customer_number for value in values]))
    return [value for value in values if value.place in places]


def _targets(rows: pl.DataFrame, places: Sequence[Location]) -> Mapping[int, int]:
    """Where each customer's rows begin in the new file.

    Raises:
        Corrupt: a file holds other rows than its places say. Nothing is moved.
    """
    found = rows.with_row_index("first").group_by("customer_number").agg(pl.col("first").min(), pl.len())
    ranges = {number: (first, count) for number, first, count in found.rows()}
    if any(ranges.get(place.customer_number, (0, 0))[1] != place.row_count for place in places):
        raise Corrupt("Lake.RowsMismatch", f"Of {len(places)} customers, some have other rows than was committed.")
    return {place.customer_number: ranges.get(place.customer_number, (0, 0))[0] for place in places}


def _still_there(w: Writing, places: Sequence[Location]) -> list[Location]:
    """The places that are still current; their customers stay locked until the commit, but for new jobs' reference."""
    query = select(customers.c.number, customers.c.data_version, customers.c.location_version)
    mine = query.where(customers.c.number.in_([place.customer_number for place in places]))
    now_at = {tuple(row) for row in w.execute(mine.order_by(customers.c.number).with_for_update(key_share=True))}
    return [place for place in places if (place.customer_number, place.data_version, place.location_version) in now_at]


def _move(w: Writing, places: Sequence[Location], targets: Mapping[int, int], segment_id: UUID, now: datetime) -> None:
    """Point the customers to their new places; the old ones are kept for the retention time."""
    moved = [place.customer_number for place in places]
    left = (locations.c.customer_number.in_(moved), locations.c.replaced_at.is_(None))
    w.execute(update(locations).where(*left).values(replaced_at=now))
    w.execute(
        insert(locations),
        [
            {
                "customer_number": place.customer_number,
                "data_version": place.data_version,
                "location_version": place.location_version + 1,
                "segment_id": segment_id,
                "first_row": targets[place.customer_number],
                "row_count": place.row_count,
                "created_at": now,
            }
            for place in places
        ],
    )
    further = {"location_version": customers.c.location_version + 1}
    w.execute(update(customers).where(customers.c.number.in_(moved)).values(further))
