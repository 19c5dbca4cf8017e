"""List the transactions of all of a client's customers, by date, customer and position.

A page is found by the counts by day (`day_counts`), so that only its own rows are read. The whole list is read in
parts of some days each.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import TypeVar
from uuid import UUID

import msgspec
import polars as pl
from sqlalchemy import func, select

from pipelines.vocabulary.errors import Corrupt
from pipelines.vocabulary.schemas import TRANSACTIONS, current
from storage.core.database import Reading
from storage.core.lake import Lake
from storage.core.models import customers
from storage.core.paging import Page
from storage.core.store import Store
from storage.enrichment import day_counts, transactions
from storage.enrichment.day_counts import ClientCounts, Miscounted, Span
from storage.enrichment.transactions import Listing, Location

ORDER = ("date", "customer_number", "received_seq", "position", "transaction_id")
PART_ROWS = 100_000  # large, because each part searches all files for its days
MAX_READ_ALONE = 10  # customers of a file: for more, it is faster to search the file once; our judgement
COUNTED_TOGETHER = 1_000  # customers whose dates are in memory at once; our judgement
_DAY = pl.col("date").dt.epoch("d")

T = TypeVar("T")
log = logging.getLogger(__name__)


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """A place in the list: a row's values of ORDER, which other rows don't change. The default is before all rows."""

    day: int = 0  # since 1970-01-01
    customer_number: int = 0
    received_seq: int = 0
    position: int = 0
    transaction_id: bytes = b""


def list_everything(r: Reading, lake: Lake, client_id: UUID) -> Listing:
    """Return all current transactions of the client."""
    rows = transactions.scan(lake, transactions.current_locations_of_client(r, client_id)).filter(current())
    query = select(func.coalesce(func.sum(customers.c.enriched_rows), 0)).where(customers.c.client_id == client_id)
    total = int(r.execute(query).scalar_one())
    return Listing(_split_by_date(rows), total, None, min(total, PART_ROWS))


def read_page(store: Store, client_id: UUID, page: Page) -> Listing:
    """Return a page of the client's current transactions."""

    def read(r: Reading, counts: ClientCounts) -> Listing:
        spans = counts.spans(page.offset, page.offset + page.count)
        return Listing([_read_spans(r, store.lake, spans).lazy()], counts.total, page, page.count)

    return _read_consistently(store, client_id, read)


def read_page_after(store: Store, client_id: UUID, cursor: Cursor, count: int) -> tuple[Listing, Cursor | None]:
    """Return up to `count` of the client's current transactions after a place, and the place of the last one.

    The place is None if no others follow.
    """

    def read(r: Reading, counts: ClientCounts) -> tuple[Listing, Cursor | None]:
        start, same_day = counts.place_of(cursor.day, cursor.customer_number)
        later = start + same_day
        rest = pl.DataFrame(schema=TRANSACTIONS)
        if same_day:
            rest = _rows_after(r, store.lake, cursor).head(count + 1).collect()
        rows = pl.concat([rest, _read_spans(r, store.lake, counts.spans(later, later + count))]).head(count)
        is_last = rest.height + counts.total - later <= count
        listing = Listing([rows.lazy()], counts.total, Page(1, count), count)
        return listing, None if is_last else _place_of_last(rows)

    return _read_consistently(store, client_id, read)


def _read_consistently(store: Store, client_id: UUID, read: Callable[[Reading, ClientCounts], T]) -> T:
    """Return the result of `read`. If counts and lake differ, count again: first what is missing, then everything.

    Raises:
        Corrupt: files don't hold as many rows as were committed.
    """
    for remedy in (None, _count_missing, _count_all):
        try:
            if remedy is not None:
                log.info("counting a client's transactions by day", extra={"clientId": str(client_id)})
                remedy(store, client_id)
            with store.db.reading() as r:
                return read(r, ClientCounts(r, client_id))
        except Miscounted as error:
            miscounted = error
    raise Corrupt("Lake.RowsMismatch", "The files do not hold as many rows as were committed.") from miscounted


def _count_missing(store: Store, client_id: UUID) -> None:
    """Count the customers whose counts are missing, and build the client's tree."""
    with store.db.reading() as r:
        locations = transactions.current_locations(r, day_counts.find_uncounted(r, client_id))
    _count(store, client_id, locations)


def _count_all(store: Store, client_id: UUID) -> None:
    with store.db.reading() as r:
        locations = transactions.current_locations_of_client(r, client_id)
    _count(store, client_id, locations)


def _count(store: Store, client_id: UUID, locations: Sequence[Location]) -> None:
    """Count the rows of customers in the lake, and build the client's tree.

    Raises:
        Miscounted: other counts are wrong, too, or there are not as many rows as were committed.
    """
    by_file = sorted(locations, key=lambda location: location.path)
    for start in range(0, len(by_file), COUNTED_TOGETHER):
        some = {location.customer_number: location for location in by_file[start : start + COUNTED_TOGETHER]}
        counts = day_counts.pack_counts(transactions.scan(store.lake, list(some.values())), some)
        with store.db.writing() as w:
            day_counts.store_current(
                w, {number: (location.data_version, counts[number]) for number, location in some.items()}
            )
    with store.db.writing() as w:
        day_counts.build_tree(w, client_id)


def _read_spans(r: Reading, lake: Lake, spans: Sequence[Span]) -> pl.DataFrame:
    """Return the rows of the spans, in the order of the list.

    Raises:
        Miscounted: there are fewer or more.
    """
    numbers = {span.customer_number for span in spans}
    locations = {location.customer_number: location for location in transactions.current_locations(r, numbers)}
    if locations.keys() != numbers:
        raise Miscounted
    if not spans:
        return pl.DataFrame(schema=TRANSACTIONS)
    alone, together = _divide_spans(locations, spans)
    parts = [
        _rows_of_day(lake, locations[each.customer_number], each.day).slice(each.skipped, each.taken) for each in alone
    ]
    if together:
        parts.append(_whole_days(lake, locations, together))
    rows = pl.concat(parts).sort(ORDER).collect()
    found = {(number, day): count for number, day, count in rows.group_by("customer_number", _DAY).len().iter_rows()}
    if found != {(span.customer_number, span.day): span.taken for span in spans}:
        raise Miscounted
    return rows


def _divide_spans(locations: Mapping[int, Location], spans: Sequence[Span]) -> tuple[list[Span], list[Span]]:
    """Return the spans to read one by one, and those to find by searching their files."""
    in_file = Counter(locations[span.customer_number].path for span in spans)
    alone, together = list[Span](), list[Span]()
    for span in spans:
        is_cut = span.taken < span.rows
        few = in_file[locations[span.customer_number].path] <= MAX_READ_ALONE
        (alone if is_cut or few else together).append(span)
    return alone, together


def _whole_days(lake: Lake, locations: Mapping[int, Location], spans: Sequence[Span]) -> pl.LazyFrame:
    wanted = pl.DataFrame(
        [(span.customer_number, _date(span.day)) for span in spans],
        schema={"customer_number": pl.Int64, "date": pl.Date},
        orient="row",
    )
    some = transactions.scan(lake, [locations[number] for number in wanted["customer_number"].unique()])
    within = pl.col("date").is_between(wanted["date"].min(), wanted["date"].max())
    return some.filter(within, current()).join(wanted.lazy(), on=wanted.columns, how="semi")


def _rows_of_day(lake: Lake, location: Location, day: int) -> pl.LazyFrame:
    """Return a customer's current rows of a day, in the order in which they are stored: that of the list."""
    return location.scan(lake).filter(pl.col("date") == _date(day), current())


def _rows_after(r: Reading, lake: Lake, cursor: Cursor) -> pl.LazyFrame:
    """Return the rows after the cursor of the same customer and day."""
    (location,) = transactions.current_locations(r, [cursor.customer_number])
    after = pl.lit(value=False)
    for name in reversed(ORDER[2:]):
        value = getattr(cursor, name)
        after = (pl.col(name) > value) | ((pl.col(name) == value) & after)
    return _rows_of_day(lake, location, cursor.day).filter(after)


def _date(day: int) -> date:
    return date(1970, 1, 1) + timedelta(days=day)


def _place_of_last(rows: pl.DataFrame) -> Cursor:
    return Cursor(*rows.tail(1).select(_DAY, *ORDER[1:]).row(0))


def _split_by_date(rows: pl.LazyFrame) -> Iterator[pl.LazyFrame]:
    """Yield the rows in ORDER, some days at a time."""
    counted = rows.group_by("date").agg(rows=pl.len().cast(pl.Int64())).sort("date")
    part = (pl.col("rows").cum_sum() - pl.col("rows")) // PART_ROWS
    for _, days in counted.collect().group_by(part, maintain_order=True):
        yield rows.filter(pl.col("date").is_between(days["date"][0], days["date"][-1])).sort(ORDER)
