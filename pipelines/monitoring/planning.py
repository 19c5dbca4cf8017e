"""Make one plan of all rulesets of a client, so that what several of them read is computed once, as one column.

The plan has its own names for metrics that rulesets define: two rulesets may give the same slug to different metrics,
and metrics with the same definition share a column. Readings of one metric as of the same baseline day share one too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

import polars as pl

from pipelines.decisions.nodes import Graph, Leaf, Node, Nodes, Reader
from pipelines.decisions.policy import AttributeRef, InputRef, Kind, MetricRef, Reference, kinds_by_name
from pipelines.metrics import METRICS, Metric, Metrics, select_with_inputs
from pipelines.metrics.definition import DECIMAL, Arithmetic, Format
from pipelines.monitoring.ruleset import Filtered, MonitoringRule, Ruleset, Since, SinceDate
from pipelines.monitoring.transitions import REPEATS

RulesetKey = tuple[UUID, int]  # a ruleset's id and version


@dataclass(frozen=True)
class VersionedRuleset:
    """A version of a stored ruleset. `customers`: the numbers of those that it lists; None if it lists none."""

    ruleset_id: UUID
    version: int
    ruleset: Ruleset
    customers: frozenset[int] | None

    @property
    def key(self) -> RulesetKey:
        return self.ruleset_id, self.version


@dataclass(frozen=True)
class PlannedRule:
    rule: MonitoringRule
    condition: str  # its node's name


@dataclass(frozen=True)
class PlannedMetric:
    """How a metric that a ruleset reads is described. `baseline_of`: for a baseline metric, the slug that it reads."""

    metric_id: str
    title: str
    format: Format
    baseline_of: str | None


@dataclass(frozen=True)
class PlannedRuleset:
    """A ruleset in a plan. `where`, `muted`: names of nodes; None without such a condition. `slugs`: what the ruleset
    calls the metrics that it reads, by their names in the plan.
    """

    source: VersionedRuleset
    where: str | None
    muted: str | None
    rules: Mapping[str, PlannedRule]  # by code
    slugs: Mapping[str, str]

    @cached_property
    def metrics(self) -> Mapping[str, PlannedMetric]:
        """How the metrics that it reads are described, by their names in the plan."""
        ruleset, every = self.source.ruleset, self.source.ruleset.every_metric
        baselines = ruleset.baselines
        read = {label: (baselines.get(slug, slug), baselines.get(slug)) for label, slug in self.slugs.items()}
        return {
            label: PlannedMetric(str(ruleset.metric_id(slug)), every[slug].name, every[slug].format, baseline_of)
            for label, (slug, baseline_of) in read.items()
        }

    @cached_property
    def attribute_formats(self) -> Mapping[str, Format | None]:
        return {attribute.name: attribute.format for attribute in self.source.ruleset.attributes}

    def name_leaf(self, leaf: Node) -> str:
        """Return the ruleset's own name for what a leaf reads."""
        return self.slugs[leaf.label] if leaf.operator == "metric" else leaf.label


@dataclass(frozen=True)
class PlannedBaseline:
    """Metrics as of a day. `readings`: the metric behind each column of the plan; `metrics`: these and their inputs."""

    since: Since
    readings: Mapping[str, str]
    metrics: Metrics

    @property
    def day(self) -> str:
        """The column with each customer's day."""
        return f"day {since_text(self.since)}"


@dataclass(frozen=True)
class MonitoringPlan(Graph):
    """The plan of some rulesets: what to compute once to evaluate all of them, for any number of customers."""

    rulesets: Mapping[UUID, PlannedRuleset]
    metrics: Metrics  # as of the ruleset evaluation, by their names in the plan, with their inputs
    baselines: Sequence[PlannedBaseline]

    @cached_property
    def attributes(self) -> frozenset[str]:
        """The names of all attributes that are read."""
        days = {each.since.attribute for each in self.baselines if not isinstance(each.since, SinceDate)}
        return frozenset({*self.labels("attribute"), *days})

    @cached_property
    def days(self) -> Mapping[str, str]:
        """The column with the day of each reading at a baseline, by the reading's column."""
        return {reading: each.day for each in self.baselines for reading in each.readings}

    @cached_property
    def rules(self) -> Sequence[tuple[UUID, str]]:
        """Every rule as its ruleset's id and its code, sorted."""
        listed = [(each, code) for each, planned in self.rulesets.items() for code in planned.rules]
        return sorted(listed, key=lambda rule: (rule[0].bytes, rule[1]))

    @cached_property
    def repeats(self) -> pl.DataFrame:
        """REPEATS of every rule, sorted."""
        days = [self.rulesets[ruleset_id].rules[code].rule.repeat_after_days for ruleset_id, code in self.rules]
        rows = [(ruleset_id.bytes, code, after) for (ruleset_id, code), after in zip(self.rules, days, strict=True)]
        return pl.DataFrame(rows, schema=REPEATS, orient="row")


def plan_rulesets(rulesets: Sequence[VersionedRuleset]) -> MonitoringPlan:
    """Return one plan of rulesets that `checking` has accepted. Each ruleset must be given only once."""
    nodes, metrics = Nodes(), _SharedMetrics()
    planned = {each.ruleset_id: _plan_ruleset(each, nodes, metrics) for each in rulesets}
    at_baselines = {label for readings in metrics.as_of.values() for label in readings}
    read = [
        node.label for node in nodes.by_name.values() if node.operator == "metric" and node.label not in at_baselines
    ]
    baselines = [
        PlannedBaseline(since, readings, select_with_inputs(list(readings.values()), metrics.by_name))
        for since, readings in metrics.as_of.items()
    ]
    return MonitoringPlan(nodes.by_name, planned, select_with_inputs(read, metrics.by_name), baselines)


def since_text(since: Since) -> str:
    """Return a text that differs between baselines: no attribute's name is a date."""
    return f"since {since.date}" if isinstance(since, SinceDate) else f"since {since.attribute}"


def _plan_ruleset(source: VersionedRuleset, nodes: Nodes, metrics: "_SharedMetrics") -> PlannedRuleset:
    ruleset, names = source.ruleset, _Names(source.ruleset, metrics)
    reader = Reader(nodes, names.leaf)
    applies, muted = ruleset.applies_to, ruleset.muted_while
    return PlannedRuleset(
        source,
        reader.add_condition(applies.where) if isinstance(applies, Filtered) else None,
        None if muted is None else reader.add_condition(muted),
        {rule.code: PlannedRule(rule, reader.add_condition(rule.condition)) for rule in ruleset.rules},
        names.slugs,
    )


class _Names:
    """Resolve one ruleset's names. `slugs`: those resolved so far, by their names in the plan."""

    def __init__(self, ruleset: Ruleset, metrics: "_SharedMetrics") -> None:
        self._ruleset, self._metrics = ruleset, metrics
        self._kinds: Mapping[str, Kind] = kinds_by_name(ruleset.attributes)
        self.slugs: dict[str, str] = {}

    def leaf(self, reference: Reference) -> Leaf:
        """Return the leaf of a reference. An attribute that rulesets declare as two kinds has two leaves."""
        match reference:
            case MetricRef(metric=slug):
                label = self._label(slug)
                self.slugs.setdefault(label, slug)
                return "decimal", (label,)
            case AttributeRef(attribute=name):
                return self._kinds[name], (name, self._kinds[name])
            case InputRef(input=name):
                raise ValueError(f"{name}: a ruleset can't read inputs")

    def _label(self, slug: str) -> str:
        baseline = self._ruleset.baseline
        if baseline is None or slug not in self._ruleset.baselines:
            return self._metrics.name_of(slug, self._ruleset)
        name = self._metrics.name_of(self._ruleset.baselines[slug], self._ruleset)
        return self._metrics.read_since(baseline.since, name)


class _SharedMetrics:
    """Metrics of all rulesets, each definition once. `by_name`: names in the plan. `as_of`: each baseline's metrics, by
    their columns."""

    def __init__(self) -> None:
        self.by_name: dict[str, Metric] = dict(METRICS)
        self.as_of: dict[Since, dict[str, str]] = {}
        self._own: dict[object, str] = {}

    def name_of(self, slug: str, ruleset: Ruleset) -> str:
        """Return a metric's name in the plan: its slug in the registry, or a made-up name for a ruleset's own."""
        own = ruleset.own_metrics.get(slug)
        if own is None:
            return slug
        metric = self._in_names_of_the_plan(own, ruleset)
        definition = (metric.definition, metric.history_days, metric.history_months, metric.fresh_days)
        if definition not in self._own:
            name = self._own[definition] = f"own.{len(self._own)}"
            self.by_name[name] = metric.model_copy(update={"slug": name})
        return self._own[definition]

    def read_since(self, since: Since, name: str) -> str:
        """Return the column of a metric's reading as of a baseline's day."""
        label = f"{name} {since_text(since)}"
        self.as_of.setdefault(since, {})[label] = name
        return label

    def _in_names_of_the_plan(self, metric: Metric, ruleset: Ruleset) -> Metric:
        definition = metric.definition
        if not isinstance(definition, Arithmetic):
            return metric
        operands = (each if DECIMAL.fullmatch(each) else self.name_of(each, ruleset) for each in definition.operands)
        return metric.model_copy(update={"definition": definition.model_copy(update={"operands": tuple(operands)})})
