"""From rulesets to what runs: all of a client's in one plan, so that a thing that several of them read is one column.

A metric of a ruleset's own goes by a name of the plan: two rulesets may give one slug to different metrics, and what
two define alike is computed once. So is a baseline metric's reading as of the same day.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

import polars as pl

from pipelines.decisions.nodes import Graph, Leaf, Node, Nodes, Reader
from pipelines.decisions.policy import AttributeRef, InputRef, Kind, MetricRef, Reference, kinds
from pipelines.metrics import METRICS, Metric, Metrics, with_inputs
from pipelines.metrics.definition import DECIMAL, Arithmetic
from pipelines.monitoring.moving import REARM
from pipelines.monitoring.ruleset import Filtered, Ruleset, Since, SinceDate, WatchRule


@dataclass(frozen=True)
class Watched:
    """A ruleset as it is stored. `customers`: the numbers of those that it lists; None where it lists none."""

    ruleset_id: UUID
    version: int
    ruleset: Ruleset
    customers: frozenset[int] | None


@dataclass(frozen=True)
class PlannedRule:
    rule: WatchRule
    condition: str  # its node


@dataclass(frozen=True)
class PlannedMetric:
    """What is told of a metric that a ruleset reads. `baseline_of`: of which slug it is a reading; None: today's."""

    metric_id: str
    title: str
    baseline_of: str | None


@dataclass(frozen=True)
class PlannedRuleset:
    """`where`, `muted`: nodes, where there are such conditions. `slugs`: of the metrics that it reads, by their names
    in the plan.
    """

    watched: Watched
    where: str | None
    muted: str | None
    rules: Mapping[str, PlannedRule]  # by code
    slugs: Mapping[str, str]

    @cached_property
    def metrics(self) -> Mapping[str, PlannedMetric]:
        """What is told of those that it reads, by their names in the plan."""
        ruleset, every = self.watched.ruleset, self.watched.ruleset.every_metric
        baselines = ruleset.baselines
        read = {label: (baselines.get(slug, slug), baselines.get(slug)) for label, slug in self.slugs.items()}
        return {
            label: PlannedMetric(str(ruleset.metric_id(slug)), every[slug].name, baseline_of)
            for label, (slug, baseline_of) in read.items()
        }

    def called(self, leaf: Node) -> str:
        """As the ruleset calls it."""
        return self.slugs[leaf.label] if leaf.operator == "metric" else leaf.label


@dataclass(frozen=True)
class PlannedBaseline:
    """Metrics as of a day. `readings`: what each column of the plan is a reading of; `metrics`: with their inputs."""

    since: Since
    readings: Mapping[str, str]
    metrics: Metrics

    @property
    def day(self) -> str:
        """The column with each customer's day."""
        return f"day {said(self.since)}"


@dataclass(frozen=True)
class Watch(Graph):
    """Rulesets ready to be looked through, for one customer or a million."""

    rulesets: Mapping[UUID, PlannedRuleset]
    metrics: Metrics  # as of the ruleset evaluation, by their names in the plan, with what they are made of
    baselines: Sequence[PlannedBaseline]

    @cached_property
    def attributes(self) -> frozenset[str]:
        """The names of all that are read."""
        days = {each.since.attribute for each in self.baselines if not isinstance(each.since, SinceDate)}
        return frozenset({*self.labels("attribute"), *days})

    @cached_property
    def days(self) -> Mapping[str, str]:
        """The column with the day of each reading at a baseline, by the reading's name."""
        return {reading: each.day for each in self.baselines for reading in each.readings}

    @cached_property
    def rules(self) -> Sequence[tuple[UUID, str]]:
        """Every rule, by its ruleset's id and its code, in the order of both."""
        listed = [(each, code) for each, planned in self.rulesets.items() for code in planned.rules]
        return sorted(listed, key=lambda rule: (rule[0].bytes, rule[1]))

    @cached_property
    def rearm(self) -> pl.DataFrame:
        """REARM: every rule, sorted."""
        days = [self.rulesets[ruleset_id].rules[code].rule.rearm_after_days for ruleset_id, code in self.rules]
        rows = [(ruleset_id.bytes, code, after) for (ruleset_id, code), after in zip(self.rules, days, strict=True)]
        return pl.DataFrame(rows, schema=REARM, orient="row")


def watch(watched: Sequence[Watched]) -> Watch:
    """The plan of rulesets that `checking` has found sound, each given once."""
    nodes, metrics = Nodes(), _SharedMetrics()
    rulesets = {each.ruleset_id: _planned(each, nodes, metrics) for each in watched}
    of_days = {label for readings in metrics.as_of.values() for label in readings}
    read = [node.label for node in nodes.found.values() if node.operator == "metric" and node.label not in of_days]
    baselines = [
        PlannedBaseline(since, readings, with_inputs(list(readings.values()), metrics.found))
        for since, readings in metrics.as_of.items()
    ]
    return Watch(nodes.found, rulesets, with_inputs(read, metrics.found), baselines)


def said(since: Since) -> str:
    """No attribute's name is a date: each has its own text."""
    return f"since {since.date}" if isinstance(since, SinceDate) else f"since {since.attribute}"


def _planned(watched: Watched, nodes: Nodes, metrics: "_SharedMetrics") -> PlannedRuleset:
    ruleset, names = watched.ruleset, _Names(watched.ruleset, metrics)
    reader = Reader(nodes, names.leaf)
    applies, muted = ruleset.applies_to, ruleset.muted_while
    return PlannedRuleset(
        watched,
        reader.of_condition(applies.where) if isinstance(applies, Filtered) else None,
        None if muted is None else reader.of_condition(muted),
        {rule.code: PlannedRule(rule, reader.of_condition(rule.condition)) for rule in ruleset.rules},
        names.slugs,
    )


class _Names:
    """What the names of one ruleset stand for. `slugs`: those that were asked for, by their names in the plan."""

    def __init__(self, ruleset: Ruleset, metrics: "_SharedMetrics") -> None:
        self._ruleset, self._metrics = ruleset, metrics
        self._kinds: Mapping[str, Kind] = kinds(ruleset.attributes)
        self.slugs: dict[str, str] = {}

    def leaf(self, reference: Reference) -> Leaf:
        """An attribute is another thing where it is declared as another kind."""
        match reference:
            case MetricRef(metric=slug):
                label = self._label(slug)
                self.slugs.setdefault(label, slug)
                return "decimal", (label,)
            case AttributeRef(attribute=name):
                return self._kinds[name], (name, self._kinds[name])
            case InputRef(input=name):
                raise ValueError(f"{name}: nobody supplies inputs to a ruleset")

    def _label(self, slug: str) -> str:
        baseline = self._ruleset.baseline
        if baseline is None or slug not in self._ruleset.baselines:
            return self._metrics.name_of(slug, self._ruleset)
        name = self._metrics.name_of(self._ruleset.baselines[slug], self._ruleset)
        return self._metrics.read_since(baseline.since, name)


class _SharedMetrics:
    """Metrics of all rulesets, each definition once. `as_of`: what is read of baselines, by its column."""

    def __init__(self) -> None:
        self.found: dict[str, Metric] = dict(METRICS)
        self.as_of: dict[Since, dict[str, str]] = {}
        self._own: dict[object, str] = {}

    def name_of(self, slug: str, ruleset: Ruleset) -> str:
        """In the plan: the registry's slug, or one that no registry's can be."""
        own = ruleset.own_metrics.get(slug)
        if own is None:
            return slug
        metric = self._in_names_of_the_plan(own, ruleset)
        definition = (metric.definition, metric.history_days, metric.history_months, metric.fresh_days)
        if definition not in self._own:
            name = self._own[definition] = f"own.{len(self._own)}"
            self.found[name] = metric.model_copy(update={"slug": name})
        return self._own[definition]

    def read_since(self, since: Since, name: str) -> str:
        """The column of a metric's reading as of a baseline's day."""
        label = f"{name} {said(since)}"
        self.as_of.setdefault(since, {})[label] = name
        return label

    def _in_names_of_the_plan(self, metric: Metric, ruleset: Ruleset) -> Metric:
        definition = metric.definition
        if not isinstance(definition, Arithmetic):
            return metric
        operands = (each if DECIMAL.fullmatch(each) else self.name_of(each, ruleset) for each in definition.operands)
        return metric.model_copy(update={"definition": definition.model_copy(update={"operands": tuple(operands)})})
