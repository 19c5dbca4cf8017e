"""Monitoring: rulesets that watch customers after the loan is written.

    ruleset     the document's models
    checking    whether a document may be saved: every fault at once
    planning    one plan for all rulesets of a client
    baselines   metrics as of a past day; `snapshots`: facts as of many days
    observing   ruleset evaluations: which conditions hold for which customers; `describing`: what they read
    transitions how rules fire and are reset
    deciding    what a ruleset evaluation changes: states, matches and events
    schema      JSON Schema of the document, for editors

    library/    rulesets that clients can adopt
    simulation  how often rules would have fired; `simulated`, `page`: the result and its HTML page

Conditions, metrics and attributes are those of decision policies (`pipelines.decisions`).
"""

from pipelines.monitoring.checking import CheckedRuleset, check_document, check_text
from pipelines.monitoring.deciding import (
    Cause,
    CurrentCustomer,
    CurrentState,
    EvaluatedCustomers,
    EvaluationEffect,
    NewMatch,
    RulesetEvaluation,
    decide,
)
from pipelines.monitoring.observing import Observations, compute_figures, observe_customers, observe_figures
from pipelines.monitoring.planning import MonitoringPlan, RulesetKey, VersionedRuleset, plan_rulesets
from pipelines.monitoring.ruleset import Filtered, Listed, Ruleset
from pipelines.monitoring.transitions import Transitions, compute_transitions

__all__ = [
    "Cause",
    "CheckedRuleset",
    "CurrentCustomer",
    "CurrentState",
    "EvaluatedCustomers",
    "EvaluationEffect",
    "Filtered",
    "Listed",
    "MonitoringPlan",
    "NewMatch",
    "Observations",
    "Ruleset",
    "RulesetEvaluation",
    "RulesetKey",
    "Transitions",
    "VersionedRuleset",
    "check_document",
    "check_text",
    "compute_figures",
    "compute_transitions",
    "decide",
    "observe_customers",
    "observe_figures",
    "plan_rulesets",
]
