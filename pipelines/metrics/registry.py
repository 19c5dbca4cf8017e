"""The registry: `registry.yaml`, read strictly, so that a broken file is refused with its name, line and reason."""

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


def checked(text: str, name: str = FILE) -> Metrics:
    """The file's text as metrics by slug, in its order.

    Raises:
        RuleError: naming every fault with file, line and reason.
    """
    document = parse(text, name)
    if not isinstance(document, list):
        raise RuleError(f"{name}: a list of metrics is expected")
    read = [_read(entry, place) for place, entry in enumerate(document)]
    metrics = [each for each in read if isinstance(each, Metric)]
    faults = [fault for each in read if isinstance(each, list) for fault in each]
    if not faults:
        faults = list(_faults_between(metrics))
    if faults:
        lines = _Lines(text)
        raise RuleError("\n".join(f"{name}, line {lines.of(path)}: {reason}" for path, reason in faults))
    return MappingProxyType({metric.slug: metric for metric in metrics})


Path = tuple[int | str, ...]
Fault = tuple[Path, str]


def _read(entry: object, place: int) -> Metric | list[Fault]:
    """Through JSON, where a number never passes for a text, nor a text for a number."""
    try:
        return Metric.model_validate_json(json.dumps(entry, default=str), strict=True)
    except ValidationError as error:
        return [((place, *each["loc"]), each["msg"]) for each in error.errors()]


def _faults_between(metrics: Sequence[Metric]) -> Iterator[Fault]:
    places = {metric.slug: place for place, metric in enumerate(metrics)}
    for slug, count in Counter(metric.slug for metric in metrics).items():
        if count > 1:
            yield (places[slug], "slug"), f"{slug} stands {count} times"
    for place, metric in enumerate(metrics):
        if lacks_side(metric.definition):
            yield (place, "definition"), f"{metric.slug} counts rows without saying on which side of the account"
        for unknown in sorted(set(metric.inputs) - places.keys()):
            yield (place, "definition", "operands"), f"there is no metric {unknown}"
    try:
        list(in_order({metric.slug: metric for metric in metrics}))
    except CycleError as error:
        circle = error.args[1]
        yield (places[circle[0]], "definition", "operands"), f"made of itself: {' ← '.join(circle)}"


def in_order(metrics: Metrics) -> Iterator[Metric]:
    """Each metric after those that it is made of.

    Raises:
        CycleError: one is made of itself.
    """
    inputs = {slug: [of for of in metric.inputs if of in metrics] for slug, metric in metrics.items()}
    return (metrics[slug] for slug in TopologicalSorter(inputs).static_order())


def with_inputs(slugs: Sequence[str], among: Metrics) -> Metrics:
    """These metrics and all that they are made of, by slug.

    Raises:
        KeyError: there is no such metric.
    """
    found: dict[str, Metric] = {}
    open_ = list(slugs)
    while open_:
        metric = among[open_.pop()]
        if metric.slug not in found:
            found[metric.slug] = metric
            open_ += metric.inputs
    return MappingProxyType(found)


class _Lines:
    """Where in a YAML text a value stands."""

    def __init__(self, text: str) -> None:
        self.root: Any = yaml.compose(text, Loader=yaml.CSafeLoader)

    def of(self, path: Path) -> int:
        """The line, from 1, of the deepest node on the path that there is."""
        node = self.root
        for step in path:
            deeper = _below(node, step)
            node = deeper if deeper is not None else node
        return int(node.start_mark.line) + 1


def _below(node: Any, step: int | str) -> Any:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step]
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    return None


METRICS: Mapping[str, Metric] = checked(files("pipelines.metrics").joinpath(FILE).read_text("utf-8"))
