"""Fire and reset rules: a rule fires when its condition becomes true, and is ready again when it is false.

A rule has a state for each customer: *ready* or *fired*. An unknown condition changes no state. A rule that has fired
does not fire again while its condition stays true, unless it is set to be ready again after some days.
"""

from dataclasses import dataclass
from datetime import date

import polars as pl

from pipelines.figures.periods import BY_CUSTOMER

BY_RULE = ("ruleset_id", "rule")
BY_STATE = (BY_CUSTOMER, *BY_RULE)
STATE = pl.Schema({BY_CUSTOMER: pl.Int64(), "ruleset_id": pl.Binary(), "rule": pl.String()})
OUTCOMES = pl.Schema({**STATE, "holds": pl.Boolean()})
"""A row for each customer and each rule of the rulesets that apply to this customer and are not muted for it.

`holds`: null is unknown.
"""
FIRING = pl.Schema({**STATE, "fired_at": pl.Datetime("us", "UTC")})
"""The rules that have fired, and when they last fired. All others are ready."""
REPEATS = pl.Schema({"ruleset_id": pl.Binary(), "rule": pl.String(), "repeat_after_days": pl.UInt16()})
"""Every rule. Null: only a false condition makes it ready again."""
COUNTS = pl.Schema(
    {"ruleset_id": pl.Binary(), "rule": pl.String()}
    | dict.fromkeys(("observed", "held", "unknown", "fired"), pl.UInt32())
)
"""Numbers of customers by rule: evaluated, with a true condition, with an unknown one, and with a rule that fired."""


@dataclass(frozen=True)
class Transitions:
    """What changes. `fired`, `reset`: STATE, sorted. `counts`: COUNTS, a row for each rule that was evaluated."""

    fired: pl.DataFrame
    reset: pl.DataFrame
    counts: pl.DataFrame


NO_TRANSITIONS = Transitions(STATE.to_frame(), STATE.to_frame(), COUNTS.to_frame())


def compute_transitions(
    outcomes: pl.DataFrame, firing: pl.DataFrame, repeats: pl.DataFrame, as_of: date, zone: str
) -> Transitions:
    """Return what one ruleset evaluation changes.

    Whole days are counted, so that a nightly evaluation that runs a little earlier than the last one skips no day.

    Args:
        outcomes: OUTCOMES, each customer and rule at most once.
        firing: FIRING; those of customers and rules that are not in `outcomes` stay as they are.
        repeats: REPEATS.
        as_of: the day of the ruleset evaluation.
        zone: the timezone of days.
    """
    fired = _select_rules_to_fire(outcomes, firing, repeats, as_of, zone).select(BY_STATE).sort(BY_STATE)
    reset = _select_fired(outcomes.filter(~pl.col("holds")), firing).select(BY_STATE).sort(BY_STATE)
    return Transitions(fired, reset, _counts(outcomes, fired))


def _select_rules_to_fire(
    outcomes: pl.DataFrame, firing: pl.DataFrame, repeats: pl.DataFrame, as_of: date, zone: str
) -> pl.DataFrame:
    """Return the rules with a true condition that are ready, or that fired long enough ago to fire again."""
    true = outcomes.filter("holds")
    again = _select_fired(true, firing).join(repeats, on=BY_RULE, how="left", validate="m:1")
    due = pl.col("fired_at").dt.convert_time_zone(zone).dt.date() + pl.duration(days=pl.col("repeat_after_days"))
    newly_true = true.join(firing, on=BY_STATE, how="anti")
    return pl.concat([newly_true.select(BY_STATE), again.filter(due <= as_of).select(BY_STATE)])


def _select_fired(outcomes: pl.DataFrame, firing: pl.DataFrame) -> pl.DataFrame:
    """Return the outcomes of rules that have fired, with `fired_at`. They are few, so filtering by customer first makes
    the join small.
    """
    near = outcomes.filter(pl.col(BY_CUSTOMER).is_in(firing[BY_CUSTOMER].unique().implode()))
    return near.join(firing, on=BY_STATE, how="inner", validate="1:1")


def _counts(outcomes: pl.DataFrame, fired: pl.DataFrame) -> pl.DataFrame:
    holds = pl.col("holds")
    seen = outcomes.group_by(BY_RULE).agg(observed=pl.len(), held=holds.sum(), unknown=holds.null_count())
    firings = fired.group_by(BY_RULE).agg(fired=pl.len())
    counted = seen.join(firings, on=BY_RULE, how="left", validate="1:1").with_columns(pl.col("fired").fill_null(0))
    return counted.select(COUNTS.names()).cast(COUNTS).sort(BY_RULE)
