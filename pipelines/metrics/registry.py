"""The registry: metrics read strictly from `registry.yaml`. A faulty file is refused, with lines and reasons."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import yaml
from pydantic import ValidationError

from pipelines.metrics.definition import Metric, Metrics, lacks_side
from pipelines.vocabulary.rule_files import RuleError, parse

FILE = "registry.yaml"


def parse_registry(text: str, name: str = FILE) -> Metrics:
    """Parse a file's text into metrics by slug, in the file's order.

    Raises:
        RuleError: names every fault with file, line and reason.
    """
    document = parse(text, name)
    if not isinstance(document, list):
        raise RuleError(f"{name}: expected a list of metrics")
    entries = [_parse_entry(entry, place) for place, entry in enumerate(document)]
    metrics = [entry for entry in entries if isinstance(entry, Metric)]
    faults = [fault for entry in entries if isinstance(entry, list) for fault in entry]
    if not faults:
        faults = list(_faults_between(metrics))
    if faults:
        lines = _Lines(text)
        raise RuleError("\n".join(f"{name}, line {lines.find_line(path)}: {reason}" for path, reason in faults))
    return MappingProxyType({metric.slug: metric for metric in metrics})


Path = tuple[int | str, ...]
Fault = tuple[Path, str]


def _parse_entry(entry: object, place: int) -> Metric | list[Fault]:
    """Validate an entry through JSON: strict JSON never accepts a number for a text, nor a text for a number."""
    try:
        return Metric.model_validate_json(json.dumps(entry, default=str), strict=True)
    except ValidationError as error:
        return [((place, *each["loc"]), each["msg"]) for each in error.errors()]


def _faults_between(metrics: Sequence[Metric]) -> Iterator[Fault]:
    places = {metric.slug: place for place, metric in enumerate(metrics)}
    for slug, count in Counter(metric.slug for metric in metrics).items():
        if count > 1:
            yield (places[slug], "slug"), f"{slug} is defined {count} times"
    for place, metric in enumerate(metrics):
        if lacks_side(metric.definition):
            yield (place, "definition"), f"{metric.slug} counts rows without saying on which side of the account"
        for unknown in sorted(set(metric.inputs) - places.keys()):
            yield (place, "definition", "operands"), f"there is no metric {unknown}"
    try:
        list(in_order({metric.slug: metric for metric in metrics}))
    except CycleError as error:
        cycle = error.args[1]
        yield (places[cycle[0]], "definition", "operands"), f"computed from itself: {' ← '.join(cycle)}"


def in_order(metrics: Metrics) -> Iterator[Metric]:
    """Yield each metric after those that it is computed from.

    Raises:
        CycleError: a metric is computed from itself.
    """
    inputs = {slug: [each for each in metric.inputs if each in metrics] for slug, metric in metrics.items()}
    return (metrics[slug] for slug in TopologicalSorter(inputs).static_order())


def select_with_inputs(slugs: Sequence[str], among: Metrics) -> Metrics:
    """Return these metrics and all that they are made of, by slug.

    Raises:
        KeyError: there is no such metric.
    """
    closure: dict[str, Metric] = {}
    pending = list(slugs)
    while pending:
        metric = among[pending.pop()]
        if metric.slug not in closure:
            closure[metric.slug] = metric
            pending += metric.inputs
    return MappingProxyType(closure)


class _Lines:
    """Finds the line of a value in a YAML text."""

    def __init__(self, text: str) -> None:
        self.root: Any = yaml.compose(text, Loader=yaml.CSafeLoader)

    def find_line(self, path: Path) -> int:
        """Return the line, from 1, of the deepest node that exists on the path."""
        node = self.root
        for step in path:
            deeper = _child_at(node, step)
            node = deeper if deeper is not None else node
        return int(node.start_mark.line) + 1


def _child_at(node: Any, step: int | str) -> Any:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step]
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    return None


METRICS: Mapping[str, Metric] = parse_registry(files("pipelines.metrics").joinpath(FILE).read_text("utf-8"))
