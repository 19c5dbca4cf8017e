"""Rows by their place in a frame. A customer's history may have millions, so whole runs of rows are copied at once."""

import polars as pl

from pipelines.vocabulary.schemas import SORT_KEY

MAX_RUNS = 10_000  # of rows that are copied whole (our judgement)


def sort_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows by SORT_KEY. Rows usually are sorted: checking takes less time than sorting, and half the memory."""
    if rows.is_sorted(SORT_KEY):
        return rows
    return take_rows(rows, rows.select(pl.arg_sort_by(SORT_KEY)).to_series())


def take_rows(rows: pl.DataFrame, places: pl.Series) -> pl.DataFrame:
    """Return the rows at these places. A few long runs of rows are copied whole: row by row, lists take long."""
    starts = (places.cast(pl.Int64).diff() != 1).fill_null(value=True).arg_true()
    if not 0 < len(starts) <= MAX_RUNS:
        return rows[places]
    lengths = starts.extend_constant(len(places), 1).diff().drop_nulls()
    runs = zip(places.gather(starts.head(len(lengths))), lengths, strict=True)
    return pl.concat([rows.slice(start, length) for start, length in runs], rechunk=True)


def mark_places(places: pl.Series, height: int) -> pl.Series:
    """Return a Boolean column of this height that is true at these places."""
    return pl.repeat(False, height, dtype=pl.Boolean, eager=True).scatter(places, True)


def add_by_row(rows: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Add the columns of `found` to the rows whose places its column `row` gives, once each; null in all others.

    A join would do the same, but copies every column of `rows`.
    """
    assert found["row"].is_unique().all(), "two values for one row"
    nothing = pl.repeat(None, rows.height, dtype=pl.UInt32, eager=True)
    places = nothing.scatter(found["row"], pl.int_range(found.height, dtype=pl.UInt32, eager=True))
    return rows.with_columns(found.drop("row").select(pl.all().gather(places)))
