"""How rules move: fired when a condition becomes true, ready again when it is false, left alone while it is unknown.

A rule has a state for each customer: *ready* or *fired*. Nobody is told twice of one trigger; while a condition goes on
being true, a rule that becomes ready again after days fires once more.
"""

from dataclasses import dataclass
from datetime import date

import polars as pl

from pipelines.figures.periods import BY_CUSTOMER

BY_RULE = ("ruleset_id", "rule")
BY_STATE = (BY_CUSTOMER, *BY_RULE)
STATE = pl.Schema({BY_CUSTOMER: pl.Int64(), "ruleset_id": pl.Binary(), "rule": pl.String()})
OUTCOMES = pl.Schema({**STATE, "holds": pl.Boolean()})
"""What was seen: a customer that a ruleset applies to and that isn't muted, and a rule. `holds`: null is unknown."""
FIRING = pl.Schema({**STATE, "fired_at": pl.Datetime("us", "UTC")})
"""The rules that are fired, with when they last did. All others are ready."""
REARM = pl.Schema({"ruleset_id": pl.Binary(), "rule": pl.String(), "rearm_after_days": pl.UInt16()})
"""Every rule; null: it is ready again by being false alone."""
COUNTS = pl.Schema(
    {"ruleset_id": pl.Binary(), "rule": pl.String()}
    | dict.fromkeys(("observed", "held", "unknown", "fired"), pl.UInt32())
)
"""How many customers were evaluated, of how many the condition was true, or unknown, and for how many it fired."""


@dataclass(frozen=True)
class Moves:
    """`fired`, `reset`: STATE, sorted. `counts`: COUNTS, a row a rule that anybody was evaluated for."""

    fired: pl.DataFrame
    reset: pl.DataFrame
    counts: pl.DataFrame


def moves(outcomes: pl.DataFrame, firing: pl.DataFrame, rearm: pl.DataFrame, as_of: date, zone: str) -> Moves:
    """What one ruleset evaluation changes. Days are counted whole, so that a ruleset evaluation a little earlier than
    the last one misses none.

    Args:
        outcomes: OUTCOMES, each customer and rule at most once.
        firing: FIRING; of customers and rules that weren't evaluated nothing changes.
        rearm: REARM.
        as_of: the day of the ruleset evaluation.
        zone: the timezone of days.
    """
    fired = _fired(outcomes, firing, rearm, as_of, zone).select(BY_STATE).sort(BY_STATE)
    reset = _among(outcomes.filter(~pl.col("holds")), firing).select(BY_STATE).sort(BY_STATE)
    return Moves(fired, reset, _counts(outcomes, fired))


def _fired(outcomes: pl.DataFrame, firing: pl.DataFrame, rearm: pl.DataFrame, as_of: date, zone: str) -> pl.DataFrame:
    """Of those that are true: the ready ones, and the fired ones whose days are over."""
    true = outcomes.filter("holds")
    again = _among(true, firing).join(rearm, on=BY_RULE, how="left", validate="m:1")
    due = pl.col("fired_at").dt.convert_time_zone(zone).dt.date() + pl.duration(days=pl.col("rearm_after_days"))
    triggered = true.join(firing, on=BY_STATE, how="anti")
    return pl.concat([triggered.select(BY_STATE), again.filter(due <= as_of).select(BY_STATE)])


def _among(outcomes: pl.DataFrame, firing: pl.DataFrame) -> pl.DataFrame:
    """Those that are fired, with `fired_at`. Few are, so that most are out by their customer alone."""
    near = outcomes.filter(pl.col(BY_CUSTOMER).is_in(firing[BY_CUSTOMER].unique().implode()))
    return near.join(firing, on=BY_STATE, how="inner", validate="1:1")


def _counts(outcomes: pl.DataFrame, fired: pl.DataFrame) -> pl.DataFrame:
    holds = pl.col("holds")
    seen = outcomes.group_by(BY_RULE).agg(observed=pl.len(), held=holds.sum(), unknown=holds.null_count())
    described = fired.group_by(BY_RULE).agg(fired=pl.len())
    counted = seen.join(described, on=BY_RULE, how="left", validate="1:1").with_columns(pl.col("fired").fill_null(0))
    return counted.select(COUNTS.names()).cast(COUNTS).sort(BY_RULE)
