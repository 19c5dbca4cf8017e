"""Decision policies: documents that decide applications and compute limits, their evaluation and their explanation.

    policy      the document's models
    nodes       one node for each distinct value, calculation or condition
    plan        turns a document into nodes, steps and limits that can be evaluated
    numbers     arithmetic of exact decimals
    readings    values that a plan reads for each customer, or why they are unavailable
    evaluate    outcomes and limits, for one customer or a million in one pass
    starter     the starter set of attributes
    unsettled   why something is unknown, and what would resolve it
    answer      the result of an evaluation, and its trace
    canonical   fingerprints of policies and of the metrics that they read
    decision    deciding one customer, the record of it, and replaying the record
    letter      the letter that tells the applicant the outcome, as a page
    sensitivity the smallest changes that give another outcome
    enclosures  the range of possible results while one number varies, for `sensitivity`

    check/      faults of a document, and warnings that must be acknowledged
    backtest/   two policy versions compared over a portfolio
    authoring/  help for authors: JSON Schema, differences between versions, statement for a privacy policy
    examples/   three complete policies

`docs/how-to/policies.md` explains policies to their authors. This module exports what the API and the commands share;
other functions are imported from their modules.
"""

from pipelines.decisions.decision import Case, Decision, PlannedPolicy, Recorded, Replay, StatedAttribute
from pipelines.decisions.evaluate import evaluate_plan
from pipelines.decisions.nodes import Node
from pipelines.decisions.plan import Plan, metric_of, plan_policy
from pipelines.decisions.policy import INDETERMINATE, OUTCOMES, Kind, Policy, kinds_by_name
from pipelines.decisions.readings import Attribute, Attributes, Value

__all__ = [
    "INDETERMINATE",
    "OUTCOMES",
    "Attribute",
    "Attributes",
    "Case",
    "Decision",
    "Kind",
    "Node",
    "Plan",
    "PlannedPolicy",
    "Policy",
    "Recorded",
    "Replay",
    "StatedAttribute",
    "Value",
    "evaluate_plan",
    "kinds_by_name",
    "metric_of",
    "plan_policy",
]
