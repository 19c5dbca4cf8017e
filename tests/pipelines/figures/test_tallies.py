"""Tallies of parts add up to those of the whole, however the parts are grouped and ordered."""

import random
from collections.abc import Sequence
from decimal import Decimal

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipelines.figures.tallies import Tallies, Tally, counts, merge

MONEY = pl.Decimal(18, 2)
DECLARED = {
    "all": Tally(pl.Schema(), counts("customers")),
    "by_code": Tally(pl.Schema({"code": pl.String()}), pl.Schema({"n": pl.Int64(), "amount": MONEY})),
}


def tallies_of(customers: int, *rows: tuple[str | None, int, str]) -> Tallies:
    columns = {
        "n": [n for _, n, _ in rows],
        "code": [code for code, _, _ in rows],
        "amount": [Decimal(amount) for _, _, amount in rows],
    }
    every = pl.DataFrame({"customers": [customers]}, schema={"customers": pl.UInt32})
    return {"all": every, "by_code": pl.DataFrame(columns, schema={"n": pl.UInt32, "code": pl.String, "amount": MONEY})}


def test_counts_and_amounts_are_summed_by_key() -> None:
    """Parts may have any whole-number type and any order of columns; null is a key like any other."""
    added = merge(
        DECLARED, [tallies_of(2, ("A", 1, "0.10"), (None, 1, "5")), tallies_of(3, ("A", 2, "0.20"), (None, 1, "1"))]
    )
    assert added["all"].rows() == [(5,)]
    assert added["by_code"].rows() == [(None, 2, Decimal("6.00")), ("A", 3, Decimal("0.30"))]
    assert {name: frame.schema for name, frame in added.items()} == {
        name: tally.schema for name, tally in DECLARED.items()
    }


def test_nothing_adds_up_to_nothing() -> None:
    added = merge(DECLARED, [])
    assert (added["all"].rows(), added["by_code"].rows()) == ([(0,)], [])


@pytest.mark.parametrize("seed", range(5))
def test_the_order_and_grouping_of_parts_make_no_difference(seed: int) -> None:
    chance = random.Random(seed)
    parts = [
        tallies_of(
            chance.randrange(9), *((chance.choice(("A", "B", None)), chance.randrange(9), "0.01") for _ in range(3))
        )
        for _ in range(7)
    ]
    whole, cut = merge(DECLARED, parts), chance.randrange(8)
    shuffled: Sequence[Tallies] = chance.sample(parts, len(parts))
    grouped = merge(DECLARED, [merge(DECLARED, shuffled[:cut]), merge(DECLARED, shuffled[cut:])])
    for name, frame in whole.items():
        assert_frame_equal(grouped[name], frame)
