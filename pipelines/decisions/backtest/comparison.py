"""Compare the two sides of a backtest: one row per customer, and tallies."""

from collections.abc import Iterator, Mapping
from datetime import date
from functools import reduce

import polars as pl

from pipelines.decisions.backtest.sides import UNDECIDABLE, Side
from pipelines.decisions.backtest.tallies import AFTER, BEFORE, OF_A_SIDE, SIDE, UP_TO, as_tally, empty_tally
from pipelines.decisions.evaluate import MONEY, OUTCOME
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tallies import Tallies

OUTCOME_CHANGED, LIMITS_CHANGED = "outcome", "limits"
CHANGE = pl.Enum([OUTCOME_CHANGED, LIMITS_CHANGED])

KNOWN_OUTCOMES = pl.Schema({"customer_number": pl.Int64(), "defaulted": pl.Boolean()})

_LIMIT_PAIR = pl.Struct({"product": pl.String(), BEFORE: MONEY, AFTER: MONEY})
COMPARISON = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "as_of": pl.Date(),
        "change": CHANGE,  # null: no change; if outcome and limits change, the outcome
        "before": OUTCOME,
        "after": OUTCOME,
        "before_step": pl.String(),
        "after_step": pl.String(),
        "before_rules": pl.List(pl.String()),
        "after_rules": pl.List(pl.String()),
        "changed_by": pl.List(pl.String()),  # if the outcome changed: deciding rules whose result differs; else empty
        "limits": pl.List(_LIMIT_PAIR),  # of each product for which a side computes a limit, by slug
        "defaulted": pl.Boolean(),  # null: unknown
    }
)


def compare(as_of: date, before: Side, after: Side, outcomes: pl.DataFrame) -> tuple[pl.DataFrame, Tallies]:
    """Compare the customers that both sides decide. Return COMPARISON, sorted by customer, and the tallies (TALLIES).

    Args:
        before, after: each may lack a decision for some customers. Each side's tallies count all that it decides.
        outcomes: KNOWN_OUTCOMES; for other customers it is unknown whether they defaulted.
    """
    limits = _pair_limits(before, after)
    rows = _pair_decisions(before, after, outcomes).pipe(_add_limits, limits).with_columns(as_of=pl.lit(as_of))
    comparison = rows.select(pl.col(name).cast(kind) for name, kind in COMPARISON.items()).sort(BY_CUSTOMER)
    limits = limits.join(rows.select(BY_CUSTOMER, "before", "after"), on=BY_CUSTOMER, how="inner", validate="m:1")
    sides = {BEFORE: before, AFTER: after}
    tallies = {
        "transitions": _count_transitions(comparison),
        "limits": _sum_limits(limits),
        "bands": pl.concat([_count_by_band(limits, side) for side in sides]),
        "changes": _count_changes(comparison),
        **{
            name: pl.concat([empty_tally(name).with_columns(side=pl.lit(None, SIDE)), *_tallies_of_sides(sides, name)])
            for name in OF_A_SIDE
        },
    }
    return comparison, {
        name: as_tally(name, frame.with_columns(as_of=pl.lit(as_of))) for name, frame in tallies.items()
    }


def _pair_decisions(before: Side, after: Side, outcomes: pl.DataFrame) -> pl.DataFrame:
    earlier = before.decisions.rename({"outcome": "before", "step": "before_step", "decisive": "before_rules"})
    later = after.decisions.rename({"outcome": "after", "step": "after_step", "decisive": "after_rules"})
    both = earlier.join(later, on=BY_CUSTOMER, how="inner", suffix="_after", validate="1:1")
    known = both.join(outcomes, on=BY_CUSTOMER, how="left", validate="1:1")
    return known.with_columns(changed_by=_changed_by())


def _changed_by() -> pl.Expr:
    """Return the rules that decided on one side and had a different result on the other; none if outcomes are equal."""
    removed = pl.col("before_rules").list.set_difference(pl.col("results_after"))
    added = pl.col("after_rules").list.set_difference(pl.col("results"))
    codes = removed.list.concat(added).list.eval(pl.element().str.strip_suffix(UNDECIDABLE)).list.unique().list.sort()
    return pl.when(pl.col("before") != pl.col("after")).then(codes).otherwise(pl.lit([], pl.List(pl.String())))


def _pair_limits(before: Side, after: Side) -> pl.DataFrame:
    """Join both sides' limits: `customer_number, product`, each side's amount (AUD), and whether it has a limit."""
    sides = (
        side.limits.rename({"amount": f"{name}_amount"}).with_columns(pl.lit(value=True).alias(f"{name}_has_limit"))
        for name, side in ((BEFORE, before), (AFTER, after))
    )
    earlier, later = sides
    return earlier.join(later, on=[BY_CUSTOMER, "product"], how="full", coalesce=True, validate="1:1").with_columns(
        pl.col("before_has_limit", "after_has_limit").fill_null(value=False)
    )


def _add_limits(rows: pl.DataFrame, limits: pl.DataFrame) -> pl.DataFrame:
    pair = pl.struct("product", pl.col("before_amount").alias(BEFORE), pl.col("after_amount").alias(AFTER))
    by_customer = limits.sort(BY_CUSTOMER, "product").group_by(BY_CUSTOMER, maintain_order=True).agg(limits=pair)
    change = (
        pl.when(pl.col("before") != pl.col("after"))
        .then(pl.lit(OUTCOME_CHANGED, CHANGE))
        .when(_has_other_limit())
        .then(pl.lit(LIMITS_CHANGED, CHANGE))
    )
    joined = rows.join(by_customer, on=BY_CUSTOMER, how="left", validate="1:1")
    return joined.with_columns(pl.col("limits").fill_null([])).with_columns(change=change)


def _count_transitions(comparison: pl.DataFrame) -> pl.DataFrame:
    return comparison.group_by("before", "after").agg(
        customers=pl.len(),
        limits_changed=_has_other_limit().sum(),
        judged=pl.col("defaulted").count(),
        defaulted=pl.col("defaulted").sum(),
    )


def _count_changes(comparison: pl.DataFrame) -> pl.DataFrame:
    """Count customers with another outcome by the rules that cause it; null: no rule has another result."""
    changed = comparison.filter(pl.col("change") == OUTCOME_CHANGED)
    return (
        changed.select(code="changed_by")
        .explode("code", keep_nulls=True, empty_as_null=True)
        .group_by("code")
        .len("customers")
    )


def _has_other_limit() -> pl.Expr:
    """Return whether a limit of the customer's `limits` differs between the sides."""
    differs = pl.element().struct.field(BEFORE).ne_missing(pl.element().struct.field(AFTER))
    return pl.col("limits").list.eval(differs).list.any()


def _sum_limits(limits: pl.DataFrame) -> pl.DataFrame:
    return limits.group_by("before", "after", "product").agg(
        customers=pl.len(),
        before_known=pl.col("before_amount").count(),
        before_amount=pl.col("before_amount").sum(),
        after_known=pl.col("after_amount").count(),
        after_amount=pl.col("after_amount").sum(),
    )


def _count_by_band(limits: pl.DataFrame, side: str) -> pl.DataFrame:
    amount = pl.col(f"{side}_amount")
    band = reduce(
        lambda higher, bound: pl.when(amount <= bound).then(pl.lit(bound, pl.Int64)).otherwise(higher),
        reversed(UP_TO),
        pl.lit(None, pl.Int64),
    )
    computed = limits.filter(pl.col(f"{side}_has_limit"))
    by_band = computed.group_by("product", up_to=band).agg(customers=pl.len(), amount=amount.sum())
    return by_band.with_columns(side=pl.lit(side, SIDE))


def _tallies_of_sides(sides: Mapping[str, Side], tally: str) -> Iterator[pl.DataFrame]:
    for name, side in sides.items():
        if tally in side.tallies:
            yield side.tallies[tally].with_columns(side=pl.lit(name, SIDE))
