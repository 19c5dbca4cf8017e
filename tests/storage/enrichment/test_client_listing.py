"""A client's list equals a plain sort of all rows, whatever happened before, and whatever became of the counts."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from itertools import product
from random import Random
from typing import Any
from uuid import UUID, uuid4

import polars as pl
import pytest
from sqlalchemy import delete, select, update

from pipelines.vocabulary.errors import Corrupt
from pipelines.vocabulary.schemas import SORT_KEY, TRANSACTIONS
from storage.core.models import Queue, client_day_counts, customer_day_counts, customers
from storage.core.paging import Page
from storage.core.store import Store
from storage.enrichment import client_listing, compaction, day_counts
from storage.enrichment.client_listing import Cursor
from storage.enrichment.commit import BatchResult, commit_values
from storage.jobs import batches
from tests.storage.examples import a_client, a_customer
from tests.storage.values import a_result, on_postgresql, on_sqlite, read_versions

Row = tuple[date, int, int, int, bytes]  # values of ORDER
Held = dict[int, list[Row]]  # current rows by customer number

FIRST_DAY = date(2026, 2, 20)
BUSY_DAYS = 6
PAGE = 20


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(day_counts, "BLOCK", 3)
    monkeypatch.setattr(day_counts, "FOLDED_EVERY", 3)
    monkeypatch.setattr(client_listing, "MAX_READ_ALONE", 2)


def new_customers(store: Store, client_id: UUID, count: int, now: datetime) -> list[int]:
    return [a_customer(store, client_id, now).number for _ in range(count)]


def a_value(number: int, version: int, draw: Random) -> pl.DataFrame:
    """Return a value in schema TRANSACTIONS. It may be empty, most rows share few days, and some were superseded."""
    rows = draw.choice((0, 1, 2, 5, 12))
    reported = {
        "date": [FIRST_DAY + timedelta(days=draw.choice((draw.randrange(BUSY_DAYS), 500))) for _ in range(rows)],
        "received_seq": [draw.randint(1, version) for _ in range(rows)],
        "position": [draw.randrange(3) for _ in range(rows)],
        "transaction_id": [draw.randbytes(16) for _ in range(rows)],
        "superseded_seq": [draw.choice((None, None, None, 9)) for _ in range(rows)],
        "customer_number": [number] * rows,
    }
    schema = {name: TRANSACTIONS[name] for name in reported}
    empty = [pl.lit(None, kind).alias(name) for name, kind in TRANSACTIONS.items() if name not in reported]
    frame = pl.DataFrame(reported, schema=schema).with_columns(empty).select(TRANSACTIONS.names())
    return frame.sort(SORT_KEY)


def commit(store: Store, numbers: Sequence[int], draw: Random, now: datetime) -> Held:
    """Commit new values of these customers in one batch; return their current rows."""
    read = read_versions(store, numbers)
    values = {number: a_value(number, read[number] + 1, draw) for number in sorted(numbers)}
    commit_frames(store, values, read, now)
    current = {number: frame.filter(pl.col("superseded_seq").is_null()) for number, frame in values.items()}
    return {number: frame.select(client_listing.ORDER).rows() for number, frame in current.items()}


def commit_frames(store: Store, values: Mapping[int, pl.DataFrame], read: Mapping[int, int], now: datetime) -> None:
    result = prepare(store, values, read, now)
    with store.db.writing() as w:
        commit_values(w, store.lake, result, now)


def prepare(store: Store, values: Mapping[int, pl.DataFrame], read: Mapping[int, int], now: datetime) -> BatchResult:
    """Return the result of an open batch with these values."""
    frame = pl.concat(values.values())
    stored = store.lake.put_frame(f"transactions/{now.date()}/{uuid4()}.parquet", frame)
    with store.db.writing() as w:
        token = batches.open_without_jobs(w, Queue.ENRICHMENT, now.date(), store.settings, now)
    return a_result(token, read, stored, frame)


def rows_of_frames(frames: Iterator[pl.DataFrame]) -> list[Row]:
    return [row for frame in frames for row in frame.select(client_listing.ORDER).iter_rows()]


def require_equal(store: Store, client_id: UUID, held: Held) -> None:
    """Require that pages, walks by cursor, everything at once and counts equal a plain sort."""
    expected = sorted(row for rows in held.values() for row in rows)
    for count in (1, 4, 1000):
        last = len(expected) // count + 1
        for number in {1, 2, 3, max(last // 2, 1), last, last + 1}:
            found = client_listing.read_page(store, client_id, page := Page(number, count))
            assert found.total == len(expected)
            assert rows_of_frames(found.slices()) == expected[page.offset : page.offset + count]
    for count in (3, max(len(expected), 1)):
        assert walk(store, client_id, Cursor(), count) == expected
    with store.db.reading() as r:
        found = client_listing.list_everything(r, store.lake, client_id)
    assert (found.total, rows_of_frames(found.slices())) == (len(expected), expected)


def require_the_rows(store: Store, client_id: UUID, held: Held) -> None:
    """Require that all pages of one size, a walk by cursor and everything at once equal a plain sort."""
    expected = sorted(row for rows in held.values() for row in rows)
    for number in range(1, len(expected) // PAGE + 2):
        found = client_listing.read_page(store, client_id, page := Page(number, PAGE))
        assert found.total == len(expected)
        assert rows_of_frames(found.slices()) == expected[page.offset : page.offset + PAGE]
    assert walk(store, client_id, Cursor(), PAGE) == expected
    with store.db.reading() as r:
        assert rows_of_frames(client_listing.list_everything(r, store.lake, client_id).slices()) == expected


def walk(store: Store, client_id: UUID, cursor: Cursor | None, count: int) -> list[Row]:
    rows: list[Row] = []
    while cursor is not None:
        found, cursor = client_listing.read_page_after(store, client_id, cursor, count)
        page = rows_of_frames(found.slices())
        assert len(page) == count or cursor is None
        rows += page
    return rows


def tree(store: Store, client_id: UUID) -> Counter[tuple[int, int, int]]:
    """Return the counts by level, day and block."""
    table, sums = client_day_counts.c, Counter[tuple[int, int, int]]()
    query = select(table.level, table.day, table.block, table.rows).where(table.client_id == client_id)
    with store.db.reading() as r:
        for *key, rows in r.execute(query):
            sums[tuple(key)] += rows
    return sums


def require_a_right_tree(store: Store, client_id: UUID) -> None:
    """Require that the tree is built, and what it would be if it were built now."""
    before = tree(store, client_id)
    with store.db.writing() as w:
        day_counts.build_tree(w, client_id)
    assert before == tree(store, client_id) != Counter()


def compare_a_history(store: Store, now: datetime, seed: int, steps: int) -> None:
    """Change customers of two clients at random; after every step, compare one client's list."""
    draw = Random(seed)
    client_id, other = a_client(store, now), a_client(store, now)
    held: Held = {}
    for step in range(steps):
        held |= {number: [] for number in new_customers(store, client_id, draw.randrange(3), now)}
        others = new_customers(store, other, 1, now)
        commit(store, others, draw, now)
        if held:
            held |= commit(store, draw.sample(sorted(held), draw.randint(1, len(held))), draw, now)
        if step % 4 == 3:
            for bucket in range(64):
                compaction.compact(store, bucket, lambda: now)
        require_equal(store, client_id, held)
    require_a_right_tree(store, client_id)


def test_pages_and_walks_equal_a_plain_sort(store: Store, now: datetime) -> None:
    compare_a_history(store, now, seed=1, steps=4)


@pytest.mark.slow  # a minute: long histories of many seeds
@pytest.mark.parametrize("seed", range(12))
def test_pages_and_walks_equal_a_plain_sort_in_long_histories(store: Store, now: datetime, seed: int) -> None:
    compare_a_history(store, now, seed=seed, steps=16)


def a_filled_client(store: Store, now: datetime) -> tuple[UUID, Held]:
    client_id = a_client(store, now)
    numbers = new_customers(store, client_id, 8, now)
    held = commit(store, numbers, Random(5), now)
    client_listing.read_page(store, client_id, Page(1, 1))
    return client_id, held


ROOT, DAY, BLOCK = (
    client_day_counts.c.level == level for level in (day_counts.ALL, day_counts.DAYS, day_counts.BLOCKS)
)
HARM: dict[str, Any] = {
    "all counts lost": [delete(client_day_counts), delete(customer_day_counts)],
    "tree lost": [delete(client_day_counts)],
    "customers' counts lost": [delete(customer_day_counts)],
    "root lost": [delete(client_day_counts).where(ROOT)],
    "root wrong": [update(client_day_counts).where(ROOT).values(rows=client_day_counts.c.rows + 1)],
    "days lost": [delete(client_day_counts).where(DAY, client_day_counts.c.day % 2 == 0)],
    "days wrong": [update(client_day_counts).where(DAY).values(rows=client_day_counts.c.rows + 1)],
    "blocks lost": [delete(client_day_counts).where(BLOCK, client_day_counts.c.block % 2 == 0)],
    "blocks wrong": [update(client_day_counts).where(BLOCK).values(rows=client_day_counts.c.rows - 1)],
    "customers' counts of another version": [update(customer_day_counts).values(data_version=7)],
    "customers' counts unreadable": [update(customer_day_counts).values(counts=b"\xff")],
    "customers' counts of another customer": [
        update(customer_day_counts).values(counts=select(customer_day_counts.c.counts).limit(1).scalar_subquery())
    ],
}


@pytest.mark.parametrize(
    "require",
    [
        pytest.param(require_the_rows, id="one size"),
        pytest.param(require_equal, id="many sizes", marks=pytest.mark.slow),  # half a minute
    ],
)
def test_lost_or_wrong_counts_never_make_a_wrong_page(
    store: Store, now: datetime, subtests: pytest.Subtests, require: Callable[[Store, UUID, Held], None]
) -> None:
    """Of one size, each database has half of the cases: each harm, and then a commit or none."""
    client_id, held = a_filled_client(store, now)
    for (place, (name, statements)), commits in product(enumerate(HARM.items()), (0, 1)):
        if require is require_the_rows and (place + commits + store.db.is_sqlite) % 2:
            continue
        with subtests.test(name, commits=commits):
            with store.db.writing() as w:
                for statement in statements:
                    w.execute(statement)
            if commits:
                held |= commit(store, list(held)[:3], Random(6), now)
            require(store, client_id, held)
            require_a_right_tree(store, client_id)


@on_sqlite
def test_wrong_counts_of_single_customers_are_counted_again(store: Store, now: datetime) -> None:
    """Rows moved from one day to another, with the right sum, are noticed on the page that shows them."""
    client_id, held = a_filled_client(store, now)
    number = max(held, key=lambda each: len({row[0] for row in held[each]}))
    with store.db.writing() as w:
        mine = customer_day_counts.c.customer_number == number
        stored = w.execute(select(customer_day_counts.c.counts).where(mine)).scalar_one()
        gaps, counts = day_counts._decode(stored[4:])
        moved = day_counts._pack(number, gaps, counts[::-1])
        w.execute(update(customer_day_counts).where(mine).values(counts=moved))
    assert counts != counts[::-1]
    require_equal(store, client_id, held)


@on_sqlite
def test_a_customer_whose_file_holds_fewer_rows_than_committed_is_a_problem(store: Store, now: datetime) -> None:
    client_id, held = a_filled_client(store, now)
    number = max(held, key=lambda each: len(held[each]))
    with store.db.writing() as w:
        w.execute(update(customers).where(customers.c.number == number).values(enriched_rows=100))
    with pytest.raises(Corrupt, match="as many rows"):
        client_listing.read_page(store, client_id, Page(1, 1000))


def test_a_cursor_stays_at_its_place_while_rows_come_and_go(store: Store, now: datetime) -> None:
    client_id, held = a_filled_client(store, now)
    first, cursor = client_listing.read_page_after(store, client_id, Cursor(), 7)
    seen = rows_of_frames(first.slices())
    assert cursor is not None
    held |= commit(store, sorted(held)[::2], Random(8), now)
    expected = sorted(row for rows in held.values() for row in rows if row > seen[-1])
    assert walk(store, client_id, cursor, 4) == expected


def test_a_client_without_transactions_has_empty_pages(store: Store, now: datetime) -> None:
    require_equal(store, a_client(store, now), {})


@pytest.mark.service  # a race of several seconds
@on_postgresql
def test_batches_of_one_client_commit_at_once_without_deadlock(store: Store, now: datetime) -> None:
    """All change the counts of the same days; with readers beside them, who may have to count again."""
    client_id, held = a_filled_client(store, now)
    numbers = sorted(held)

    def commit_often(part: int) -> Held:
        draw, mine = Random(part), numbers[part::4]
        results = [commit(store, mine, draw, now) for _ in range(8)]
        return results[-1]

    with ThreadPoolExecutor(6) as pool:
        commits = [pool.submit(commit_often, part) for part in range(4)]
        pages = [pool.submit(client_listing.read_page, store, client_id, Page(1, 20)) for _ in range(20)]
        for each in commits:
            held |= each.result(timeout=60)
        for page in pages:
            page.result(timeout=60)
    require_equal(store, client_id, held)
    require_a_right_tree(store, client_id)


@on_postgresql
def test_a_batch_does_not_wait_for_another_of_the_same_client_and_days(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(day_counts, "FOLDED_EVERY", 10**9)
    client_id, held = a_filled_client(store, now)
    first, second = sorted(held)[:2]
    read = read_versions(store, [first, second])
    frames = {number: a_full_value(number) for number in (first, second)}
    result = prepare(store, {first: frames[first]}, {first: read[first]}, now)
    with ThreadPoolExecutor(1) as pool, store.db.writing() as w:
        commit_values(w, store.lake, result, now)
        other = {second: frames[second]}
        pool.submit(commit_frames, store, other, {second: read[second]}, now).result(timeout=3)
    held |= {number: frame.select(client_listing.ORDER).rows() for number, frame in frames.items()}
    require_equal(store, client_id, held)
    require_a_right_tree(store, client_id)


def a_full_value(number: int) -> pl.DataFrame:
    """Return the same rows for every customer."""
    return a_value(number, 3, Random(5)).with_columns(superseded_seq=pl.lit(None, TRANSACTIONS["superseded_seq"]))
