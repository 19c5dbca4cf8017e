"""Count current transactions by day, to find a page of all of a client's transactions without reading the lake.

The counts are a tree with four levels: the client, each of its days, each day and block of customers, and each
customer's days. A reader uses the counts of a level to skip what lies before the page, so its work hardly grows with
the portfolio. The counts of a customer's days are packed into one value: as rows, they would be as many as a fifth of
the transactions or more.

**The counts are derived.** A commit changes the counts in its own transaction. If they are lost or wrong, only time is
lost: a reader compares each count that it uses with the sum of the counts below it, and the lowest counts with the
lake. If they differ, it counts again (`client_listing`). A client's tree is built at its first reading. Until then, and
after a commit finds a customer's counts missing, the client has no count at level 0, and the other levels are not
maintained.

**Locks.** Batches of one client that commit at once don't wait for each other: each inserts its changes as rows of its
own, and readers add them up. A commit with many changes, and one in FOLDED_EVERY, folds all changes into the counts.
This is the last thing that it does, and only another commit that folds waits for it. Building a tree waits for the
client's commits and makes later ones wait, because each of them locks the client for reading.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from operator import itemgetter
from typing import TypeVar
from uuid import UUID
from zlib import crc32

import msgspec
import polars as pl
from sqlalchemy import BigInteger, ColumnElement, and_, cast, delete, func, insert, or_, select

from pipelines.vocabulary.schemas import current
from storage.access.keys import lock_client
from storage.core.database import AnyRow, Reading, Writing, insert_into
from storage.core.models import client_day_counts, customer_day_counts, customers

ALL, DAYS, BLOCKS = range(3)  # levels of the tree
BLOCK = 128  # customer numbers: a page reads a day's blocks, and the customers of one or two blocks; our judgement

FOLDED_EVERY = 64  # commits; a reader may have to add up about this many changes of a day; our judgement
MANY_CHANGES = 1_000  # rows; our judgement

K = TypeVar("K", int, tuple[int, int])
DayAndBlock = tuple[int, int]  # day since 1970-01-01, and customer number // BLOCK
DayAndCustomer = tuple[int, int]  # day since 1970-01-01, and customer number: the list is in this order

_COUNTS = pl.Schema({"customer_number": pl.Int64(), "day": pl.Int64(), "rows": pl.Int64()})
_KEY = (client_day_counts.c.level, client_day_counts.c.day, client_day_counts.c.block)
_ROOT = and_(client_day_counts.c.level == ALL, client_day_counts.c.batch_token == 0)
_encode = msgspec.msgpack.encode
_decode = msgspec.msgpack.Decoder(tuple[list[int], list[int]]).decode


class Miscounted(Exception):
    """Counts are missing, or differ from those below them or from the lake: count again."""


@dataclass(frozen=True)
class Span:
    """Rows of one customer and day that follow each other in the list: `taken` of `rows`, after the first `skipped`."""

    customer_number: int
    day: int  # since 1970-01-01
    rows: int
    skipped: int
    taken: int


class ClientCounts:
    """The counts of a client in one snapshot.

    Raises:
        Miscounted: by the constructor and the methods.
    """

    def __init__(self, r: Reading, client_id: UUID) -> None:
        self._r, self._client_id = r, client_id
        found = self._level(client_day_counts.c.level <= DAYS)
        _require_true(bool(found) and found[0].level == ALL and found[0].first_token == 0)
        self.total: int = found[0].rows
        self._days = [(row.day, row.rows) for row in found[1:]]
        _require_true(self.total == sum(rows for _, rows in self._days))

    def spans(self, first: int, last: int) -> list[Span]:
        """Return where the rows from number `first` to before number `last` of the list are, in order."""
        days, first, last = _overlapping(self._days, first, last)
        blocks, first, last = _overlapping(self._blocks(days), first, last)
        parts, first, last = _overlapping(self._customers(blocks), first, last)
        starts = accumulate((rows for _, rows in parts), initial=0)
        return [
            Span(number, day, rows, skipped := max(first - start, 0), min(last - start, rows) - skipped)
            for ((day, number), rows), start in zip(parts, starts, strict=False)
        ]

    def place_of(self, day: int, customer_number: int) -> tuple[int, int]:
        """Return the position in the list of a customer's first row of a day, and how many rows there are.

        Without a row, the position is where the first one would be.
        """
        block = (day, customer_number // BLOCK)
        blocks = self._blocks([each for each in self._days if each[0] == day])
        in_block = self._customers([each for each in blocks if each[0] == block])
        before = _rows_before(self._days, day) + _rows_before(blocks, block)
        return before + _rows_before(in_block, (day, customer_number)), dict(in_block).get((day, customer_number), 0)

    def _blocks(self, days: Sequence[tuple[int, int]]) -> list[tuple[DayAndBlock, int]]:
        if not days:
            return []
        between = client_day_counts.c.day.between(days[0][0], days[-1][0])
        found = [((row.day, row.block), row.rows) for row in self._level(client_day_counts.c.level == BLOCKS, between)]
        _require_sums(days, ((day, rows) for (day, _), rows in found))
        return found

    def _customers(self, blocks: Sequence[tuple[DayAndBlock, int]]) -> list[tuple[DayAndCustomer, int]]:
        if not blocks:
            return []
        wanted = dict(blocks)
        first_day, last_day = blocks[0][0][0], blocks[-1][0][0]
        found: list[tuple[DayAndCustomer, int]] = []
        for low, high in _runs(sorted({block for _, block in wanted})):
            of_blocks = customers.c.number.between(low * BLOCK, (high + 1) * BLOCK - 1)
            for row in _read_counts(self._r, customers.c.client_id == self._client_id, of_blocks):
                days, rows = _valid_counts(row)
                place = slice(bisect_left(days, first_day), bisect_right(days, last_day))
                found += [((day, row.number), count) for day, count in zip(days[place], rows[place], strict=True)]
        of_wanted = [each for each in sorted(found) if (each[0][0], each[0][1] // BLOCK) in wanted]
        _require_sums(blocks, (((day, number // BLOCK), rows) for (day, number), rows in of_wanted))
        return of_wanted

    def _level(self, *conditions: ColumnElement[bool]) -> Sequence[AnyRow]:
        table = client_day_counts.c
        rows = cast(func.sum(table.rows), BigInteger)
        query = select(*_KEY, rows.label("rows"), func.min(table.batch_token).label("first_token"))
        query = query.where(table.client_id == self._client_id, *conditions).group_by(*_KEY).order_by(*_KEY)
        return self._r.execute(query.having(or_(rows != 0, table.level == ALL))).all()


def pack_counts(rows: pl.LazyFrame, customer_numbers: Iterable[int]) -> dict[int, bytes]:
    """Return the packed counts of these customers by number.

    Args:
        rows: whole values, with `customer_number`, `date` and `superseded_seq`.
    """
    counted = (
        rows.filter(current())
        .group_by("customer_number", day=pl.col("date").dt.epoch("d").cast(pl.Int64))
        .agg(rows=pl.len())
        .sort("customer_number", "day")
        .group_by("customer_number", maintain_order=True)
        .agg(pl.col("day") - pl.col("day").shift(fill_value=0), "rows")  # a small number takes one byte
        .collect()
    )
    found = {number: (days, counts) for number, days, counts in counted.iter_rows()}
    return {number: _pack(number, *found.get(number, ([], []))) for number in customer_numbers}


def record_counts(w: Writing, batch_token: int, counted: Mapping[int, tuple[int, bytes]]) -> None:
    """Store customers' new counts, and change those of their clients. Must be the last thing that a commit does.

    Args:
        batch_token: of the batch that commits. A batch records once.
        counted: data version and packed counts by customer number. The customers and their clients must be locked.
    """
    before: dict[UUID, list[AnyRow]] = defaultdict(list)
    for row in _read_counts(w, customers.c.number.in_(list(counted))):
        before[row.client_id].append(row)
    _store_counts(w, counted)
    for client_id in _with_tree(w, before):
        try:
            _change_tree(w, client_id, batch_token, *_old_and_new(before[client_id], counted))
        except Miscounted:
            w.execute(delete(client_day_counts).where(_is_root(client_id)))


def store_current(w: Writing, counted: Mapping[int, tuple[int, bytes]]) -> None:
    """Store the counts (data version and packed counts by number) of those customers that have this version."""
    selected = customers.c.number.in_(list(counted))
    query = select(customers.c.number, customers.c.data_version).where(selected).order_by(customers.c.number)
    current_versions = w.execute(query.with_for_update(key_share=True)).all()
    _store_counts(w, {number: counted[number] for number, version in current_versions if version == counted[number][0]})


def find_uncounted(r: Reading, client_id: UUID) -> list[int]:
    """Return the client's customers whose stored counts are missing or can't be right."""
    return [row.number for row in _read_counts(r, customers.c.client_id == client_id) if not _is_valid(row)]


def build_tree(w: Writing, client_id: UUID) -> None:
    """Build the client's tree from the counts of its customers. Commits of the client wait meanwhile.

    Raises:
        Miscounted: a customer's counts are missing or can't be right.
    """
    lock_client(w, client_id)
    found = {row.number: _valid_counts(row) for row in _read_counts(w, customers.c.client_id == client_id)}
    w.execute(delete(client_day_counts).where(client_day_counts.c.client_id == client_id))
    tree = _tree(_as_frame(found))
    w.execute(insert(client_day_counts), [{"client_id": client_id, "batch_token": 0, **row} for row in tree])


def _store_counts(w: Writing, counted: Mapping[int, tuple[int, bytes]]) -> None:
    rows = [
        {"customer_number": number, "data_version": version, "counts": counts}
        for number, (version, counts) in sorted(counted.items())
    ]
    statement = insert_into(w, customer_day_counts)
    new = {name: statement.excluded[name] for name in ("data_version", "counts")}
    if rows:
        w.execute(statement.on_conflict_do_update(index_elements=["customer_number"], set_=new), rows)


def _old_and_new(
    before: Sequence[AnyRow], counted: Mapping[int, tuple[int, bytes]]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the _COUNTS of customers before a commit, and those after it.

    Raises:
        Miscounted: counts are missing, or not those of the version before.
    """
    old, new = dict[int, tuple[list[int], list[int]]](), dict[int, tuple[list[int], list[int]]]()
    for row in before:
        version, counts = counted[row.number]
        _require_true((row.counted_version or 0) == version - 1)
        old[row.number] = ([], []) if row.counts is None else _unpack(row.number, row.counts)
        new[row.number] = _unpack(row.number, counts)
    return _as_frame(old), _as_frame(new)


def _change_tree(w: Writing, client_id: UUID, batch_token: int, old: pl.DataFrame, new: pl.DataFrame) -> None:
    """Change a tree by the difference of its customers' old and new counts."""
    tree = _tree(pl.concat([new, old.with_columns(-pl.col("rows"))]))
    changes = [{"client_id": client_id, "batch_token": batch_token, **row} for row in tree if row["rows"] != 0]
    if changes:
        w.execute(insert(client_day_counts), changes)
    if len(changes) > MANY_CHANGES or batch_token % FOLDED_EVERY == 0:
        _fold_changes(w, client_id)


def _fold_changes(w: Writing, client_id: UUID) -> None:
    """Add the batches' changes to the counts. The lock of the root keeps others from doing the same meanwhile."""
    table = client_day_counts.c
    if w.execute(select(table.rows).where(_is_root(client_id)).with_for_update()).first() is None:
        return
    changes = delete(client_day_counts).where(table.client_id == client_id, table.batch_token > 0)
    sums = Counter[tuple[int, int, int]]()
    for level, day, block, rows in w.execute(changes.returning(*_KEY, table.rows)):
        sums[level, day, block] += rows
    if any(sums.values()):
        _add(w, client_id, sums)


def _add(w: Writing, client_id: UUID, changes: Mapping[tuple[int, int, int], int]) -> None:
    """Add changes, by level, day and block, to the counts of a client; remove those that become 0."""
    table = client_day_counts.c
    rows = [
        {"client_id": client_id, "level": level, "day": day, "block": block, "batch_token": 0, "rows": change}
        for (level, day, block), change in changes.items()
        if change != 0
    ]
    statement = insert_into(w, client_day_counts)
    summed = {"rows": table.rows + statement.excluded.rows}
    w.execute(statement.on_conflict_do_update(index_elements=list(client_day_counts.primary_key), set_=summed), rows)
    if fewer := {row["day"] for row in rows if row["rows"] < 0}:
        below_root = and_(table.level.in_((DAYS, BLOCKS)), table.day.in_(fewer), table.rows == 0)
        w.execute(delete(client_day_counts).where(table.client_id == client_id, below_root))


def _tree(counts: pl.DataFrame) -> list[dict[str, int]]:
    """Return `level`, `day`, `block` and `rows` of all levels, from the lowest to the highest.

    Args:
        counts: _COUNTS. A customer and day may occur several times.
    """
    total = pl.col("rows").sum()
    blocks = counts.group_by("day", block=pl.col("customer_number") // BLOCK).agg(total).with_columns(level=BLOCKS)
    days = blocks.group_by("day").agg(total).with_columns(level=DAYS, block=0)
    root = days.select(total, level=ALL, day=0, block=0)
    columns = [pl.col(name).cast(pl.Int64) for name in ("level", "day", "block", "rows")]
    levels = pl.concat([level.select(columns) for level in (blocks, days, root)])
    return levels.sort("level", "day", "block", descending=[True, False, False]).to_dicts()


def _read_counts(r: Reading, *conditions: ColumnElement[bool]) -> Sequence[AnyRow]:
    """Return the customers with their current version and rows, and with their counts if they are stored."""
    query = select(
        customers.c.number,
        customers.c.client_id,
        customers.c.data_version,
        customers.c.enriched_rows,
        customer_day_counts.c.data_version.label("counted_version"),
        customer_day_counts.c.counts,
    ).outerjoin_from(customers, customer_day_counts)
    return r.execute(query.where(*conditions).order_by(customers.c.number)).all()


def _valid_counts(row: AnyRow) -> tuple[list[int], list[int]]:
    """Return a customer's days and their numbers of rows.

    Raises:
        Miscounted: they are missing, or not those of the customer's current version.
    """
    if row.data_version == 0:
        return [], []
    _require_true(row.counted_version == row.data_version)
    days, rows = _unpack(row.number, row.counts)
    _require_true(sum(rows) == row.enriched_rows)
    return days, rows


def _is_valid(row: AnyRow) -> bool:
    try:
        _valid_counts(row)
    except Miscounted:
        return False
    return True


def _pack(customer_number: int, gaps: list[int], rows: list[int]) -> bytes:
    """Return a customer's days, as the days since the one before, and their numbers of rows; a checksum comes first."""
    content = _encode((gaps, rows))
    return _checksum(customer_number, content) + content


def _unpack(customer_number: int, counts: bytes) -> tuple[list[int], list[int]]:
    """Return a customer's days and their numbers of rows.

    Raises:
        Miscounted: the checksum is wrong.
    """
    _require_true(counts[:4] == _checksum(customer_number, counts[4:]))
    gaps, rows = _decode(counts[4:])
    return list(accumulate(gaps)), rows


def _checksum(customer_number: int, content: bytes) -> bytes:
    return crc32(content, customer_number % 2**32).to_bytes(4)


def _as_frame(counts: Mapping[int, tuple[list[int], list[int]]]) -> pl.DataFrame:
    """Return customers' counts as _COUNTS."""
    lists = [(number, *each) for number, each in counts.items()]
    schema = {name: kind if name == "customer_number" else pl.List(kind) for name, kind in _COUNTS.items()}
    return pl.DataFrame(lists, schema=schema, orient="row").explode("day", "rows", empty_as_null=False)


def _with_tree(r: Reading, client_ids: Iterable[UUID]) -> list[UUID]:
    """Return those of the clients whose tree is built, in one order, so that no two commits wait for each other."""
    table = client_day_counts.c
    query = select(table.client_id).where(table.client_id.in_(list(client_ids)), _ROOT)
    return list(r.execute(query.order_by(table.client_id)).scalars())


def _is_root(client_id: UUID) -> ColumnElement[bool]:
    return and_(client_day_counts.c.client_id == client_id, _ROOT)


def _overlapping(level: Sequence[tuple[K, int]], first: int, last: int) -> tuple[Sequence[tuple[K, int]], int, int]:
    """Return the entries with rows from number `first` to before `last`, and both numbers counted from their start.

    Args:
        level: keys and their numbers of rows, in order.
    """
    ends = list(accumulate((rows for _, rows in level), initial=0))
    begin = max(bisect_right(ends, first) - 1, 0)
    end = min(bisect_left(ends, last), len(level))
    return level[begin:end], first - ends[min(begin, len(level))], last - ends[min(begin, len(level))]


def _rows_before(level: Sequence[tuple[K, int]], key: K) -> int:
    return sum(rows for each, rows in level[: bisect_left(level, key, key=itemgetter(0))])


def _runs(blocks: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of blocks that follow each other."""
    for _, run in groupby(enumerate(blocks), key=lambda each: each[1] - each[0]):
        together = [block for _, block in run]
        yield together[0], together[-1]


def _require_sums(level: Iterable[tuple[K, int]], below: Iterable[tuple[K, int]]) -> None:
    """Require that the counts below each key add up to its own."""
    sums = Counter[K]()
    for key, rows in below:
        sums[key] += rows
    _require_true(all(sums[key] == rows for key, rows in level))


def _require_true(condition: bool) -> None:
    if not condition:
        raise Miscounted
