"""Decide whether facilities are active, in arrears, repaid or renewed."""

from functools import cache

import polars as pl

from pipelines.enrichment.facilities.products import REVOLVING
from pipelines.enrichment.facilities.rhythm import LONGEST_SILENCE_DAYS
from pipelines.enrichment.facilities.terms import least_repaid
from pipelines.vocabulary.schemas import SeriesPeriod

Status = pl.Enum(("active", "likely_repaid", "in_arrears", "renewed"))

# The numbers are our judgement.
ARREARS, ARREARS_DAILY = 0.5, 3.0  # a facility that is short by this many instalments is in arrears
STOPPED, STOPPED_DAILY = 2, 5  # this many overdue repayments mean that repayments have stopped


@cache
def status() -> pl.Expr:
    """Return the status. `summarise_facilities` says what each means.

    Reads the columns of a summary, `last_bounced` (whether the last repayment bounced; null if none was tried),
    `overdue` and `short` (`add_missed`), and `renewed_by`.
    """
    return (
        pl.when(pl.col("renewed_by").is_not_null())
        .then(pl.lit("renewed"))
        .when(_is_likely_repaid())
        .then(pl.lit("likely_repaid"))
        .when(_is_in_arrears())
        .then(pl.lit("in_arrears"))
        .otherwise(pl.lit("active"))
        .cast(Status)
    )


def is_running() -> pl.Expr:
    return pl.col("status").is_in(["active", "in_arrears"])


def _is_likely_repaid() -> pl.Expr:
    nothing_left = (pl.col("estimated_remaining") == 0).fill_null(value=False)
    # Payments to the tax office are voluntary: a plan that stops is broken, not repaid.
    ended = _has_stopped() & ~_bounced_last() & _is_enough_repaid() & (pl.col("product") != "tax_payment_plan")
    return ended | (nothing_left & _is_repaid_at_will())


def _is_in_arrears() -> pl.Expr:
    """Match facilities that are short of instalments, that bounced last, or that stopped without being repaid."""
    short = pl.col("short") >= pl.when(_is_daily()).then(ARREARS_DAILY).otherwise(ARREARS)
    stopped = _has_stopped() & ~pl.col("product").is_in(REVOLVING)
    return short | (_bounced_last() & _is_repaid_at_will()) | stopped


def _has_stopped() -> pl.Expr:
    """Match facilities with several overdue repayments or, without a frequency, with none for a long time."""
    overdue = pl.col("overdue").list.len() >= pl.when(_is_daily()).then(STOPPED_DAILY).otherwise(STOPPED)
    silent = pl.col("through") - pl.col("last_repayment") > pl.duration(days=LONGEST_SILENCE_DAYS)
    return overdue | (pl.col("frequency").is_null() & silent.fill_null(value=False))


def _is_enough_repaid() -> pl.Expr:
    """Match facilities of which enough was repaid or at most one repayment is left, or whose funding isn't known."""
    lent = pl.col("funding_amount").cast(pl.Decimal(38, 4))
    owed = pl.col("estimated_remaining").cast(pl.Float64)
    enough = (pl.col("repaid_total") >= lent * least_repaid()) | (owed <= pl.col("repayment_usual"))
    return enough.fill_null(lent.is_null())


def _bounced_last() -> pl.Expr:
    return pl.col("last_bounced").fill_null(value=False)


def _is_repaid_at_will() -> pl.Expr:
    return pl.col("product").is_in(REVOLVING) | pl.col("frequency").is_null()


def _is_daily() -> pl.Expr:
    return pl.col("frequency").eq_missing(pl.lit("business_daily", SeriesPeriod))
