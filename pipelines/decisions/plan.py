"""From the document to what runs: its nodes, and which of them its steps and limits ask.

The nodes' columns are the trace: which rule read which value.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pipelines.decisions.nodes import Graph, Leaf, Nodes, Reader
from pipelines.decisions.policy import INDETERMINATE, Cap, Kind, Limit, Policy, Reference, Rule, Step, kinds
from pipelines.metrics import METRICS, Metric, Metrics, with_inputs


@dataclass(frozen=True)
class PlannedRule:
    rule: Rule
    condition: str  # its node
    pointer: str  # where it stands in the document


@dataclass(frozen=True)
class PlannedStep:
    step: Step
    rules: tuple[PlannedRule, ...]


@dataclass(frozen=True)
class PlannedCap:
    cap: Cap
    value: str


@dataclass(frozen=True)
class PlannedLimit:
    limit: Limit
    amount: str
    caps: tuple[PlannedCap, ...]

    @property
    def required(self) -> tuple[str, ...]:
        """The nodes without which it can't be told."""
        return self.amount, *(each.value for each in self.caps if each.cap.on_unavailable == INDETERMINATE)


@dataclass(frozen=True)
class Plan(Graph):
    """A policy ready to be evaluated, for one customer or a million."""

    policy: Policy
    steps: tuple[PlannedStep, ...]
    limits: tuple[PlannedLimit, ...]

    @cached_property
    def metrics(self) -> Metrics:
        """Every metric that is read or shown, with what it is made of: what has to be computed."""
        shown = [indicator.metric for indicator in self.policy.indicators]
        return with_inputs(sorted({*self.labels("metric"), *shown}), every_metric(self.policy))


def every_metric(policy: Policy) -> Metrics:
    """The registry's metrics, and the policy's own."""
    return {**METRICS, **{metric.slug: metric for metric in policy.metrics}}


def metric_of(policy: Policy, slug: str) -> Metric:
    return every_metric(policy)[slug]


def planned(policy: Policy) -> Plan:
    """The plan of a policy that `check` has found sound."""
    nodes = Nodes()
    reader = _reader(policy, nodes)
    steps = tuple(
        PlannedStep(
            step,
            tuple(
                PlannedRule(rule, reader.of_condition(rule.condition), f"/steps/{nth}/rules/{place}")
                for place, rule in enumerate(step.rules)
            ),
        )
        for nth, step in enumerate(policy.steps)
    )
    limits = tuple(
        PlannedLimit(
            limit,
            reader.of_number(limit.amount),
            tuple(PlannedCap(cap, reader.of_number(cap.value)) for cap in limit.caps),
        )
        for limit in policy.limits
    )
    return Plan(nodes.found, policy, steps, limits)


def _reader(policy: Policy, nodes: Nodes) -> Reader:
    declared: Mapping[str, Mapping[str, Kind]] = {
        "attribute": kinds(policy.attributes),
        "input": kinds(policy.declared_inputs),
    }

    def leaf(reference: Reference) -> Leaf:
        (sort, name), *_ = reference
        return declared[sort][name] if sort in declared else "decimal", (name,)

    return Reader(nodes, leaf)
