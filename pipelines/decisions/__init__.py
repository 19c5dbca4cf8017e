"""Decision policies: documents that say what happens to an application, and what may be offered; evaluated, explained.

    policy      the document, read strictly
    nodes       a node for each distinct thing that is read, calculated or asked
    plan        from the document to what runs
    numbers     exact decimals
    readings    what a plan reads of customers: each a value, or a cause
    evaluate    outcomes and limits, for one customer or a million in one pass
    starter     attributes to start from
    unsettled   why something is unknown, and what would settle it
    answer      what an evaluation says, and its trace
    canonical   what a policy, and the figures that it reads, are known by
    decision    one customer decided, the record of it, and the same decided again
    sensitivity how far a decision is from another; `enclosures`: what may come of a range

    check/      what is wrong with a document, and what must be acknowledged
    backtest/   two ways of deciding compared over a portfolio
    authoring/  what helps to write policies, and tells what they do: schema, differences, statement
    examples/   three complete policies

`docs/how-to/policies.md` says what it all means. Here stand the words that the API and the commands share; functions
are imported from where they stand.
"""

from pipelines.decisions.decision import Case, Decision, Ready, Recorded, Replay, StatedAttribute
from pipelines.decisions.evaluate import evaluated
from pipelines.decisions.nodes import Node
from pipelines.decisions.plan import Plan, metric_of, planned
from pipelines.decisions.policy import INDETERMINATE, OUTCOMES, Kind, Policy, kinds
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
    "Policy",
    "Ready",
    "Recorded",
    "Replay",
    "StatedAttribute",
    "Value",
    "evaluated",
    "kinds",
    "metric_of",
    "planned",
]
