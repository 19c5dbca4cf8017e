"""Read customers' enriched transactions: one look-up in SQL, one range of rows in one file.

All enriched transactions of a customer together are its *value*: the rows from `first_row` to `first_row + row_count`
of a segment sorted by customer. Segments stay for the retention time after they were replaced, so a reader that has
looked up the location reads one consistent version even if that takes long.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import polars as pl
from sqlalchemy import bindparam, func, select, tuple_

from pipelines.figures.row_filter import NO_ROWS, RowFilter, Totals, total
from pipelines.vocabulary.errors import Corrupt, Gone, NotFound
from pipelines.vocabulary.own_columns import list_stated_columns
from pipelines.vocabulary.schemas import TRANSACTIONS, current, posted
from storage.core.buckets import in_bucket
from storage.core.database import AnySelect, Database, Reading
from storage.core.lake import Lake
from storage.core.models import customers, jobs, locations, segments
from storage.core.paging import Page
from storage.customers.customers import Customer

SLICE_ROWS = 1_000  # rows sent at once
LOCATIONS_READ_AT_ONCE = 10_000  # our judgement
PART_ROWS = 10_000  # rows of a customer's history in memory at once: the history may be much longer


@dataclass(frozen=True)
class Location:
    """Where a version of a customer's value is stored."""

    customer_number: int
    data_version: int
    location_version: int
    path: str
    sha256: bytes
    first_row: int
    row_count: int

    def scan(self, lake: Lake) -> pl.LazyFrame:
        return _segment(lake, self.path, self.sha256).slice(self.first_row, self.row_count)


@dataclass(frozen=True)
class Listing:
    """Transactions for a reader, as lazy parts in order, with the total over all pages."""

    parts: Iterable[pl.LazyFrame]
    total: int
    page: Page | None
    part_rows: int  # the most rows of a part, roughly: a client's part ends with a whole day
    totals: Totals | None = None  # over all pages; only of one customer's rows

    def slices(self) -> Iterator[pl.DataFrame]:
        """Yield the rows in slices, reading one part at a time."""
        return (slice_ for part in self.parts for slice_ in part.collect().iter_slices(SLICE_ROWS))


LOCATION = (
    select(
        locations.c.customer_number,
        locations.c.data_version,
        locations.c.location_version,
        segments.c.path,
        segments.c.sha256,
        locations.c.first_row,
        locations.c.row_count,
    )
    .join_from(locations, segments)
    .order_by(locations.c.customer_number)
)
_CURRENT = LOCATION.join(
    customers,
    (customers.c.number == locations.c.customer_number)
    & (customers.c.data_version == locations.c.data_version)
    & (customers.c.location_version == locations.c.location_version),
)


def current_locations(r: Reading, customer_numbers: Iterable[int] | None = None) -> list[Location]:
    """Return where the current values of these customers are stored, by default of all customers."""
    query = _CURRENT
    if customer_numbers is not None:
        query = query.where(locations.c.customer_number.in_(list(customer_numbers)))
    return [Location(*row) for row in r.execute(query)]


def find_all_current_locations(db: Database) -> Iterator[Location]:
    """Yield where the current values of all customers are stored, by customer number.

    Some thousand are read at a time, each in a snapshot of its own: a slow caller holds no transaction open.
    """
    last = 0
    while True:
        with db.reading() as r:
            some = r.execute(_CURRENT.where(locations.c.customer_number > last).limit(LOCATIONS_READ_AT_ONCE)).all()
        yield from (Location(*row) for row in some)
        if len(some) < LOCATIONS_READ_AT_ONCE:
            return
        last = some[-1].customer_number


def current_locations_of_client(r: Reading, client_id: UUID) -> list[Location]:
    """Return where the current values of all of a client's customers are stored."""
    return [Location(*row) for row in r.execute(_CURRENT.where(customers.c.client_id == client_id))]


def current_locations_in_bucket(r: Reading, bucket: int) -> list[Location]:
    """Return where the current values of a bucket's customers are stored, in order of customer number."""
    return [Location(*row) for row in r.execute(_CURRENT.where(in_bucket(bucket)))]


def pinned_locations(r: Reading, versions: dict[int, int]) -> list[Location]:
    """Return where these data versions (customer number → version) are stored; for each, the newest location."""
    query = LOCATION.where(
        tuple_(locations.c.customer_number, locations.c.data_version).in_(list(versions.items()))
    ).order_by(locations.c.location_version)
    newest = {row.customer_number: Location(*row) for row in r.execute(query)}
    return list(newest.values())


def find_location(r: Reading, customer: Customer, data_version: int | None = None) -> Location | None:
    """Return where a version of the customer's value is stored, by default the current one; None before the first.

    Raises:
        Gone: the version was replaced and is no longer retained.
        NotFound: there is no such version yet.
    """
    version = customer.data_version if data_version is None else data_version
    if version > customer.data_version:
        raise NotFound("Report.VersionUnknown", "The customer's transactions have no such version.")
    row = r.execute(_OF_VERSION, {"customer_number": customer.number, "data_version": version}).first()
    if row is None and version > 0:
        raise Gone("Report.VersionExpired", "This version of the customer's transactions is no longer stored.")
    return None if row is None else Location(*row)


_OF_VERSION: AnySelect = LOCATION.where(
    locations.c.customer_number == bindparam("customer_number"), locations.c.data_version == bindparam("data_version")
).order_by(locations.c.location_version.desc())


def find_version_at(r: Reading, customer: Customer, moment: datetime) -> int:
    """Return the version of the customer's value that was in force at a time; 0 before the first.

    Locations of old versions may have been deleted or moved, so jobs are read too: each has the version it ended with.
    """
    of_locations = select(func.max(locations.c.data_version)).where(
        locations.c.customer_number == customer.number, locations.c.created_at <= moment
    )
    of_jobs = select(func.max(jobs.c.data_version)).where(
        jobs.c.customer_number == customer.number, jobs.c.completed_at <= moment
    )
    return max(r.execute(query).scalar_one() or 0 for query in (of_locations, of_jobs))


def find_own_columns(r: Reading, lake: Lake, client_id: UUID | None) -> set[str]:
    """Return the own columns that at least one stored transaction of the client has (of any client if None)."""
    stored = current_locations(r) if client_id is None else current_locations_of_client(r, client_id)
    good, _ = separate_damaged(lake, stored)
    return list_stated_columns(scan(lake, good).select("own_columns"))


def separate_damaged(lake: Lake, stored: Iterable[Location]) -> tuple[list[Location], dict[int, Corrupt]]:
    """Return the locations whose file is undamaged, and by customer what is wrong with the other files.

    One damaged file must not stop the work on other customers.
    """
    good: list[Location] = []
    damaged: dict[int, Corrupt] = {}
    for location in stored:
        try:
            lake.verified_path(location.path, location.sha256)
        except Corrupt as error:
            damaged[location.customer_number] = error
        else:
            good.append(location)
    return good, damaged


def scan(lake: Lake, stored: Sequence[Location]) -> pl.LazyFrame:
    """Scan all rows of the given values, including superseded rows, with one scan per file."""
    by_file: dict[tuple[str, bytes], list[int]] = defaultdict(list)
    for location in stored:
        by_file[location.path, location.sha256].append(location.customer_number)
    scans = [
        _segment(lake, path, sha256).filter(pl.col("customer_number").is_in(numbers))
        for (path, sha256), numbers in by_file.items()
    ]
    return pl.concat([pl.LazyFrame(schema=TRANSACTIONS), *scans])


def _segment(lake: Lake, path: str, sha256: bytes) -> pl.LazyFrame:
    """Scan a file's rows (TRANSACTIONS). Columns that did not exist when it was written are null."""
    return pl.scan_parquet(
        lake.verified_path(path, sha256), schema=TRANSACTIONS, missing_columns="insert", extra_columns="ignore"
    )


def list_transactions(
    r: Reading,
    lake: Lake,
    customer: Customer,
    job_id: UUID | None = None,
    page: Page | None = None,
    chosen: RowFilter | None = None,
    *,
    newest_first: bool = False,
) -> Listing:
    """Return the customer's current transactions by date and position, or only those that one job added or revised.

    The totals are of all pages. Adding them up reads two columns of the history.

    Args:
        chosen: only these transactions.
        newest_first: in the opposite order.
    """
    location = find_location(r, customer)
    if location is None:
        return Listing([], 0, page, 0, NO_ROWS)
    rows = location.scan(lake)
    conditions = [current(), *(() if chosen is None else chosen.conditions)]
    if job_id is not None:
        conditions.append(pl.col("job_id") == job_id.bytes)
    totals = total(rows.filter(conditions))
    count = totals.count
    if page is not None:
        first, last = page.offset, page.offset + page.count
        first, last = (count - last, count - first) if newest_first else (first, last)
        parts = [_read_between(rows, conditions, max(first, 0), max(last, 0))]
    else:
        parts = [rows.slice(start, PART_ROWS).filter(conditions) for start in range(0, location.row_count, PART_ROWS)]
    in_order = [part.reverse() for part in reversed(parts)] if newest_first else parts
    part_rows = min(location.row_count, PART_ROWS if page is None else page.count)
    return Listing(in_order, count, page, part_rows, totals)


def _read_between(rows: pl.LazyFrame, conditions: Sequence[pl.Expr], start: int, stop: int) -> pl.LazyFrame:
    """Return the rows from `start` to `stop` of those that fulfil the conditions.

    Of rows outside this range only the columns of the conditions are read.
    """
    places = rows.with_row_index("place").filter(conditions).select("place").slice(start, stop - start).collect()
    if places.is_empty():
        return rows.clear()
    first, last = places["place"][0], places["place"][-1]
    return rows.slice(first, last - first + 1).filter(conditions)


def posted_rows(r: Reading, lake: Lake, customer: Customer, columns: Sequence[str]) -> pl.LazyFrame:
    """Return these columns of the customer's posted transactions, in the order in which they are stored."""
    return _rows(r, lake, customer).filter(posted()).select(columns)


def posted_or_pending(r: Reading, lake: Lake, customer: Customer, columns: Sequence[str]) -> pl.LazyFrame:
    """Return these columns of the customer's current transactions, posted or pending."""
    return _rows(r, lake, customer).filter(current()).select(columns)


def _rows(r: Reading, lake: Lake, customer: Customer) -> pl.LazyFrame:
    location = find_location(r, customer)
    return pl.LazyFrame(schema=TRANSACTIONS) if location is None else location.scan(lake)
