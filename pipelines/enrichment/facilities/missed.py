"""Find which repayments of facilities were missed, and whether later ones made up for recent misses."""

import polars as pl

from pipelines.enrichment.facilities.products import REVOLVING
from pipelines.enrichment.facilities.rhythm import find_missing, period_days
from pipelines.vocabulary.plans import AS_WRITTEN

# Our judgement. A miss is recent if it is within this many days, or periods if longer, of the last day shown.
RECENT_DAYS, RECENT_PERIODS = 90, 3

_FACILITY = "facility_id"
_DATES = pl.List(pl.Date())


def add_missed(
    facilities: pl.LazyFrame, terms: pl.DataFrame, slots: pl.DataFrame, flows: pl.DataFrame, closed: pl.Series
) -> pl.LazyFrame:
    """Add `last_slot`, the sorted dates that were `passed_over` or are `overdue`, and how many recent instalments the
    customer is `short`.

    Args:
        terms: `facility_id`, `product`, `frequency`, `repayment_usual` and `through` of the facilities.
        slots: from `find_slots`.
        flows: from `list_flows`.
        closed: from `list_closed_days`.
    """
    columns = (_FACILITY, "product", "frequency", "repayment_usual", "through")
    dated = terms.lazy().select(*columns, recent_since=_recent_since())
    due = slots.lazy().join(dated, on=_FACILITY, validate="m:1")
    due = due.collect(engine="in-memory", optimizations=AS_WRITTEN).lazy()  # it is read three times
    paid = flows.lazy().filter(~pl.col("funds"), ~pl.col("bounced"))
    paid = paid.join(dated.select(_FACILITY, "repayment_usual", "recent_since"), on=_FACILITY)
    for counts in (_count_slots(due), _collect_missed(due, dated, closed), _count_instalments(paid)):
        facilities = facilities.join(counts, on=_FACILITY, how="left", validate="1:1")
    beyond_slots = (pl.col("instalments").fill_null(0) - pl.col("repaid_slots").fill_null(0)).clip(0)
    return facilities.with_columns(
        *(pl.col(name).fill_null(pl.lit([], _DATES)) for name in ("passed_over", "overdue")),
        short=pl.col("missed_recently").fill_null(0) - beyond_slots,
    )


def _recent_since() -> pl.Expr:
    days = pl.max_horizontal(pl.lit(RECENT_DAYS), (RECENT_PERIODS * period_days()).ceil()).cast(pl.Int64)
    return pl.col("through") - pl.duration(days=days)


def _is_recent() -> pl.Expr:
    return pl.col("date") > pl.col("recent_since")


def _count_slots(due: pl.LazyFrame) -> pl.LazyFrame:
    """Return each facility's `last_slot`, and its recent `repaid_slots`."""
    repaid_slots = (_is_recent() & ~pl.col("bounced")).sum()
    return due.group_by(_FACILITY).agg(last_slot=pl.col("date").max(), repaid_slots=repaid_slots)


def _collect_missed(due: pl.LazyFrame, dated: pl.LazyFrame, closed: pl.Series) -> pl.LazyFrame:
    """Return each facility's dates that were `passed_over` (bounced ones included) or are `overdue`, and how many of
    both were `missed_recently`.

    Revolving credit is repaid at will, so only its bounced repayments count.
    """
    bounced = due.filter("bounced").select(_FACILITY, "date", overdue=pl.lit(value=False))
    absent = find_missing(due.filter(~pl.col("product").is_in(REVOLVING)), closed)
    return (
        pl.concat([bounced, absent.select(_FACILITY, "date", "overdue")])
        .join(dated, on=_FACILITY, validate="m:1")
        .group_by(_FACILITY)
        .agg(
            passed_over=pl.col("date").filter(~pl.col("overdue")).sort(),
            overdue=pl.col("date").filter("overdue").sort(),
            missed_recently=_is_recent().sum(),
        )
    )


def _count_instalments(paid: pl.LazyFrame) -> pl.LazyFrame:
    """Return how many usual `instalments` each facility's recent repayments are worth."""
    worth = pl.col("size") / pl.col("repayment_usual")
    return paid.filter(_is_recent()).group_by(_FACILITY).agg(instalments=worth.sum())
