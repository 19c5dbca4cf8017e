"""Events are paired one to one, as by a plain loop, also millions with the same key."""

from collections import defaultdict
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrichment.matching.pairing import PAIRS, pair_latest_first, pair_oldest_first

EVENTS = pl.Schema({"row": pl.UInt32(), "key": pl.Int64(), "opens": pl.Boolean(), "time": pl.Int64()})


def events(*described: tuple[int | None, bool]) -> pl.DataFrame:
    rows = [{"row": row, "key": key, "opens": opens, "time": row} for row, (key, opens) in enumerate(described)]
    return pl.DataFrame(rows, schema=EVENTS)


def by_hand(rows: list[dict[str, Any]], take: int) -> list[tuple[int, int]]:
    """Pair like a clerk: keep open rows in a pile per key, and take from its top (-1) or its bottom (0)."""
    piles: dict[int | None, list[int]] = defaultdict(list)
    pairs = []
    for row in rows:
        pile = piles[row["key"]]
        if row["opens"]:
            pile.append(row["row"])
        elif pile:
            pairs.append((pile.pop(take), row["row"]))
    return sorted(pairs)


described = st.lists(st.tuples(st.none() | st.integers(1, 2), st.booleans()), max_size=20)


@given(described, st.integers(0, 99))
def test_pairs_agree_with_plain_python_in_any_order_of_rows(some: list[tuple[int | None, bool]], seed: int) -> None:
    rows = events(*some)
    mixed = rows.sample(fraction=1, shuffle=True, seed=seed)
    assert sorted(pair_latest_first(mixed, ["key"], ["time"]).rows()) == by_hand(rows.to_dicts(), take=-1)
    assert sorted(pair_oldest_first(mixed, ["key"], ["time"]).rows()) == by_hand(rows.to_dicts(), take=0)


def test_no_events_give_no_pairs() -> None:
    assert pair_latest_first(events(), ["key"], ["time"]).schema == PAIRS
    assert pair_oldest_first(events(), ["key"], ["time"]).schema == PAIRS


@pytest.mark.slow
def test_two_million_events_of_one_key_are_paired_one_to_one() -> None:
    half = 1_000_000
    rows = pl.select(row=pl.int_range(2 * half, dtype=pl.UInt32)).with_columns(
        key=pl.lit(1, pl.Int64), opens=pl.col("row") < half, time=pl.col("row").cast(pl.Int64)
    )
    for pairs in (pair_latest_first(rows, ["key"], ["time"]), pair_oldest_first(rows, ["key"], ["time"])):
        assert pairs["opened"].n_unique() == pairs["closed"].n_unique() == half
