"""Rows are found, copied and sorted by their places exactly as by joins and sorts."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipelines.vocabulary import places
from pipelines.vocabulary.places import add_by_row, mark_places, sort_rows, take_rows
from pipelines.vocabulary.schemas import SORT_KEY, TRANSACTIONS

ROWS = pl.DataFrame({"number": range(6), "names": [[f"{number}"] for number in range(6)]})


@pytest.mark.parametrize("most", [0, 3, 10_000])
def test_taking_runs_equals_taking_rows(most: int, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    monkeypatch.setattr(places, "MAX_RUNS", most)
    for wanted in ([], [0], [5], [0, 1, 2], [3, 4, 0, 1], [5, 4, 3, 2, 1, 0], [2, 2, 3, 3]):
        with subtests.test(places=wanted):
            assert take_rows(ROWS, pl.Series(wanted, dtype=pl.UInt32)).equals(ROWS[wanted])


def test_sorting_equals_polars_sort() -> None:
    keys = [(2, 1), (1, 3), (1, 2), (2, 0), (1, 2)]
    rows = pl.DataFrame(
        {
            "customer_number": [customer for customer, _ in keys],
            "position": [position for _, position in keys],
            "since_seq": range(len(keys)),
        },
        schema_overrides={name: TRANSACTIONS[name] for name in ("customer_number", "position", "since_seq")},
    ).match_to_schema(TRANSACTIONS, missing_columns="insert")
    assert_frame_equal(sort_rows(rows), rows.sort(SORT_KEY))
    assert sort_rows(rows.sort(SORT_KEY)).equals(rows.sort(SORT_KEY))


def test_columns_added_by_row_equal_those_of_a_join(subtests: pytest.Subtests) -> None:
    for wanted in ([], [3], [5, 0, 2]):
        with subtests.test(rows=wanted):
            found = pl.DataFrame(
                {"row": wanted, "found": [f"{row}!" for row in wanted]}, {"row": pl.UInt32, "found": pl.String}
            )
            joined = ROWS.with_row_index("row").join(found, on="row", how="left", maintain_order="left").drop("row")
            assert_frame_equal(add_by_row(ROWS, found), joined)


def test_two_values_for_one_row_are_refused() -> None:
    with pytest.raises(AssertionError, match="two values"):
        add_by_row(ROWS, pl.DataFrame({"row": [1, 1], "found": [2, 3]}, {"row": pl.UInt32, "found": pl.Int64}))


def test_only_the_places_given_are_marked() -> None:
    assert mark_places(pl.Series([0, 4], dtype=pl.UInt32), 6).to_list() == [True, False, False, False, True, False]
