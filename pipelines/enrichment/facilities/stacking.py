"""Count facilities for working capital that ran at the same time.

Two facilities overlap unless one ended before the other began. So a facility overlaps with those that had begun by its
end, less those that had ended by its beginning, and less itself. One sorted list of beginnings and ends gives both
counts for all facilities, without comparing each pair.
"""

import polars as pl

from pipelines.enrichment.facilities.products import WORKING_CAPITAL
from pipelines.enrichment.facilities.status import is_running

_FACILITY = "facility_id"
_COUNTS = ("stacked_with", "possibly_stacked_with")


def add_stacking(facilities: pl.DataFrame) -> pl.LazyFrame:
    """Add `stacked_with`, the number of other working-capital facilities that ran at the same time.

    Inferred facilities are not among them: they and the others are `possibly_stacked_with` each other.

    Args:
        facilities: with `status`.
    """
    spans = _select_spans(facilities)
    if spans.height < 2:
        return facilities.lazy().with_columns(pl.lit(0).alias(name) for name in _COUNTS)
    named = ~pl.col("is_inferred")
    counts = (
        _list_events(spans.lazy())
        .with_columns(**_count_so_far("named", named), **_count_so_far("every", pl.lit(value=True)))
        .group_by(_FACILITY)
        .agg(
            stacked_with=pl.when(named.any()).then(_count_overlapping("named")),
            possibly_stacked_with=_count_overlapping("every"),
        )
    )
    together = facilities.lazy().join(counts, on=_FACILITY, how="left", validate="1:1")
    return together.with_columns(pl.col(_COUNTS).fill_null(0))


def _select_spans(facilities: pl.DataFrame) -> pl.DataFrame:
    """Return `start` and `end` of working-capital facilities, as far as the statements show them."""
    ended = pl.min_horizontal("last_repayment", pl.col("renewed_on") - pl.duration(days=1))
    return facilities.filter(pl.col("product").is_in(WORKING_CAPITAL)).select(
        "customer_number",
        _FACILITY,
        "is_inferred",
        start=pl.coalesce("funding_date", "first_attempt"),
        end=pl.when(is_running()).then("through").otherwise(ended),
    )


def _list_events(spans: pl.LazyFrame) -> pl.LazyFrame:
    """Return a row for each span's beginning and one for its end (`ends`), in order of time."""
    columns = ("customer_number", _FACILITY, "is_inferred")
    begin = spans.select(*columns, on="start", ends=pl.lit(value=False))
    end = spans.select(*columns, on=pl.max_horizontal("start", "end"), ends=pl.lit(value=True))
    # Beginnings first: what ends on the day that another begins ran at the same time.
    return pl.concat([begin, end]).sort("customer_number", "on", "ends")


def _count_so_far(name: str, counted: pl.Expr) -> dict[str, pl.Expr]:
    """Count for each event how many of the customer's facilities have begun and ended up to it."""
    ends = pl.col("ends")
    sides = {"begun": counted & ~ends, "ended": counted & ends}
    return {f"{name}_{side}": events.cum_sum().over("customer_number") for side, events in sides.items()}


def _count_overlapping(name: str) -> pl.Expr:
    """Count the facilities that began before this one ended, less those that ended before it began, and itself."""
    ends = pl.col("ends")
    return (pl.col(f"{name}_begun").filter(ends) - pl.col(f"{name}_ended").filter(~ends)).first() - 1
