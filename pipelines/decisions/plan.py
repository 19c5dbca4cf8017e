"""Plan: a policy's document turned into nodes, and the nodes that its steps and limits read.

The nodes' columns serve as the trace: they show which rule read which value.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pipelines.decisions.nodes import Graph, Leaf, Nodes, Reader
from pipelines.decisions.policy import INDETERMINATE, Cap, Kind, Limit, Policy, Reference, Rule, Step, kinds_by_name
from pipelines.metrics import METRICS, Metric, Metrics, select_with_inputs


@dataclass(frozen=True)
class PlannedRule:
    rule: Rule
    condition: str  # name of its node
    pointer: str  # JSON pointer in the document


@dataclass(frozen=True)
class PlannedStep:
    step: Step
    rules: tuple[PlannedRule, ...]


@dataclass(frozen=True)
class PlannedCap:
    cap: Cap
    value: str  # name of its node


@dataclass(frozen=True)
class PlannedLimit:
    limit: Limit
    amount: str  # name of its node
    caps: tuple[PlannedCap, ...]

    @property
    def required_nodes(self) -> tuple[str, ...]:
        """Names of the nodes without which the limit is indeterminate."""
        return self.amount, *(each.value for each in self.caps if each.cap.on_unavailable == INDETERMINATE)


@dataclass(frozen=True, eq=False)
class Plan(Graph):
    """A policy ready to be evaluated, for one customer or a million."""

    policy: Policy
    steps: tuple[PlannedStep, ...]
    limits: tuple[PlannedLimit, ...]

    @cached_property
    def metrics(self) -> Metrics:
        """Every metric that is read or shown, with its inputs: the metrics to compute."""
        shown = [indicator.metric for indicator in self.policy.indicators]
        return select_with_inputs(sorted({*self.labels("metric"), *shown}), every_metric(self.policy))


def every_metric(policy: Policy) -> Metrics:
    """Return the registry's metrics and the policy's own, by slug."""
    return {**METRICS, **{metric.slug: metric for metric in policy.metrics}}


def metric_of(policy: Policy, slug: str) -> Metric:
    own = (metric for metric in policy.metrics if metric.slug == slug)
    return next(own, None) or METRICS[slug]


def plan_policy(policy: Policy) -> Plan:
    """Return the plan of a policy in which `check` has found no fault."""
    nodes = Nodes()
    reader = _reader(policy, nodes)
    steps = tuple(
        PlannedStep(
            step,
            tuple(
                PlannedRule(rule, reader.add_condition(rule.condition), f"/steps/{nth}/rules/{place}")
                for place, rule in enumerate(step.rules)
            ),
        )
        for nth, step in enumerate(policy.steps)
    )
    limits = tuple(
        PlannedLimit(
            limit,
            reader.add_number(limit.amount),
            tuple(PlannedCap(cap, reader.add_number(cap.value)) for cap in limit.caps),
        )
        for limit in policy.limits
    )
    return Plan(nodes.by_name, policy, steps, limits)


def _reader(policy: Policy, nodes: Nodes) -> Reader:
    declared: Mapping[str, Mapping[str, Kind]] = {
        "attribute": kinds_by_name(policy.attributes),
        "input": kinds_by_name(policy.declared_inputs),
    }

    def leaf(reference: Reference) -> Leaf:
        (sort, name), *_ = reference
        return declared[sort][name] if sort in declared else "decimal", (name,)

    return Reader(nodes, leaf)
