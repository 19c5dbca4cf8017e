"""Check whether a ruleset may be saved: all faults of a document at once, each with its place and a message.

What rulesets share with policies is checked by `pipelines.decisions.check`: the ruleset is converted to a policy whose
first step has all its rules, and the findings' places are translated back.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from pipelines.decisions.check import MAX_FAULTS, ranges, references, sort_findings
from pipelines.decisions.check.bounds import find_broken_bound
from pipelines.decisions.check.files import parse_file
from pipelines.decisions.check.findings import Finding, finding
from pipelines.decisions.check.references import Data, entries
from pipelines.decisions.check.shape import parse_shape, plain
from pipelines.metrics import METRICS
from pipelines.monitoring.ruleset import Ruleset
from pipelines.vocabulary.errors import Fault, build_pointer

CALCULATING = ("rules", "mutedWhile", "appliesTo")  # members that contain numbers and conditions


@dataclass(frozen=True)
class CheckedRuleset:
    """The result of a check. `ruleset`: None if there is a fault."""

    ruleset: Ruleset | None
    faults: list[Fault]
    warnings: list[Fault]


def check_text(text: str, yaml: bool) -> CheckedRuleset:
    """Check a file's text, as YAML or JSON."""
    document, unreadable = parse_file(text, yaml)
    return CheckedRuleset(None, [_as_ruleset_fault(unreadable)], []) if unreadable else check_document(document)


def check_document(document: object) -> CheckedRuleset:
    """Check a document given as plain data, from JSON (`strict_json` or the standard library's) or YAML."""
    if beyond := find_broken_bound(document, CALCULATING):
        return CheckedRuleset(None, [_as_ruleset_fault(beyond)], [])
    data = plain(document)
    ruleset, misshapen = parse_shape(data, Ruleset)
    parts: Data = data if isinstance(data, dict) else {}
    own = [*misshapen, *_unprintable_texts(data), *_check_baseline(parts), *_repeated_customers(parts)]
    faults = sort_findings([*map(_as_ruleset_fault, own), *_as_policy(parts)])[:MAX_FAULTS]
    warnings = sort_findings(map(_as_ruleset_fault, [*_unused_metrics(parts), *_repeated_metrics(parts)]))
    return CheckedRuleset(None if faults else ruleset, faults, warnings)


def _as_ruleset_fault(found: Finding) -> Fault:
    return Fault(found.pointer, f"Ruleset.{found.code.partition('.')[2]}", found.message)


# A ruleset as a policy


_RULES, _WHERE, _MUTED, _SINCE = range(4)  # indexes of that policy's steps


def _as_policy(ruleset: Data) -> Iterator[Fault]:
    policy = _policy(ruleset)
    dangling = list(islice(references.find_faults(policy), MAX_FAULTS))
    found = [*dangling, *ranges.find_rule_faults(policy, references.pointers_of_wrong_kind(dangling))]
    in_scopes = {each.pointer: each for each in _metrics_in_scopes(policy)}
    findings = [*(each for each in found if each.pointer not in in_scopes), *in_scopes.values()]
    return map(partial(_translate_back, len(_list_member(ruleset, "metrics"))), findings)


def _policy(ruleset: Data) -> Data:
    """Convert a ruleset to a policy.

    Baseline metrics follow the ruleset's own metrics. The baseline's attribute becomes a condition on a text, so that
    its kind is checked.
    """
    baseline = _part(ruleset, "baseline")
    reads_since = {"oneOf": {"of": baseline.get("since"), "texts": ["2026-03-01"]}}
    conditions = (_part(ruleset, "appliesTo").get("where"), ruleset.get("mutedWhile"), reads_since)
    return {
        "attributes": ruleset.get("attributes"),
        "metrics": [*_list_member(ruleset, "metrics"), *_list_member(baseline, "metrics")],
        "steps": [{"rules": ruleset.get("rules")}, *({"rules": [{"condition": each}]} for each in conditions)],
    }


def _part(parent: Data, name: str) -> Data:
    value = parent.get(name)
    return value if isinstance(value, dict) else {}


def _list_member(parent: Data, name: str) -> list[Any]:
    value = parent.get(name)
    return value if isinstance(value, list) else []


def _metrics_in_scopes(policy: Data) -> Iterator[Finding]:
    """Yield metrics where only attributes may be read, since customers are chosen before metrics are computed."""
    for pointer, sort, _, _ in references.leaves(policy):
        if sort == "metric" and pointer.startswith((f"/steps/{_WHERE}/", f"/steps/{_MUTED}/")):
            yield finding(pointer, "MetricNotAllowed", "Only attributes can be read here.")


def _translate_back(own_metrics: int, found: Finding) -> Fault:
    """Return a policy's finding with the ruleset's places and codes."""
    pointer = _place_in_ruleset(own_metrics, found.pointer)
    if found.code.endswith(".UnknownInput"):
        says = "Rulesets have no inputs: read a metric or an attribute."
        return Fault(pointer, "Ruleset.InputNotAllowed", says)
    says = _POINTER.sub(lambda match: _place_in_ruleset(own_metrics, match[0]), found.message)
    return _as_ruleset_fault(Fault(pointer, found.code, says))


def _place_in_ruleset(own_metrics: int, pointer: str) -> str:
    """Return the pointer in the ruleset for a pointer in the policy."""
    for in_policy, in_ruleset in _PLACES.items():
        if pointer.startswith(f"{in_policy}/") or pointer == in_policy:
            return in_ruleset + pointer.removeprefix(in_policy)
    match = _METRIC.match(pointer)
    if match is not None and int(match[1]) >= own_metrics:
        return f"/baseline/metrics/{int(match[1]) - own_metrics}{pointer[match.end() :]}"
    return pointer


_POINTER = re.compile(r"/(?:steps|metrics)/[\w/]*\w")
_METRIC = re.compile(r"/metrics/(\d+)")
_PLACES = {
    f"/steps/{_RULES}/rules": "/rules",
    f"/steps/{_WHERE}/rules/0/condition": "/appliesTo/where",
    f"/steps/{_MUTED}/rules/0/condition": "/mutedWhile",
    f"/steps/{_SINCE}/rules/0/condition/oneOf/of": "/baseline/since",
}


# Checks that policies don't have


def _check_baseline(ruleset: Data) -> Iterator[Finding]:
    own = _members(entries(ruleset, "metrics"), "slug")
    baseline_metrics = _baseline_metrics(ruleset)
    yield from references.find_dangling(baseline_metrics, "of", "metric", {*METRICS, *own})
    at_baseline = _members(baseline_metrics, "slug") - own - METRICS.keys()
    for pointer, metric in entries(ruleset, "metrics"):
        for place, operand in references.operands_of(metric):
            if operand in at_baseline:
                says = "A metric can't be computed from a baseline metric: compare the two in a rule's condition."
                yield finding(f"{pointer}/definition/operands/{place}", "BaselineInMetric", says)


def _baseline_metrics(ruleset: Data) -> list[tuple[str, Data]]:
    return entries(_part(ruleset, "baseline"), "metrics", "/baseline")


def _members(placed: list[tuple[str, Data]], name: str) -> set[str]:
    return {each[name] for _, each in placed if isinstance(each.get(name), str)}


def _repeated_customers(ruleset: Data) -> Iterator[Finding]:
    listed = [str(each).lower() for each in _list_member(_part(ruleset, "appliesTo"), "customers")]
    placed = [(f"/appliesTo/customers/{place}", {"id": each}) for place, each in enumerate(listed)]
    for each in references.find_repeated(placed, "id"):
        yield finding(each.pointer.removesuffix("/id"), "Repeated", "This customer is already listed.")


def _unused_metrics(ruleset: Data) -> Iterator[Finding]:
    """Yield metrics that nothing reads."""
    used = {name for _, sort, name, _ in references.leaves(_policy(ruleset)) if sort == "metric"}
    used |= _members(_baseline_metrics(ruleset), "of")
    used |= {operand for _, each in entries(ruleset, "metrics") for _, operand in references.operands_of(each)}
    for pointer, metric in [*entries(ruleset, "metrics"), *_baseline_metrics(ruleset)]:
        if isinstance(metric.get("slug"), str) and metric["slug"] not in used:
            yield finding(pointer, "MetricUnread", "No rule reads this metric.")


def _repeated_metrics(ruleset: Data) -> Iterator[Finding]:
    """Yield metrics with equal definitions: matches record both under the slug that is read first."""
    first: dict[str, str] = {}
    for pointer, metric in [*entries(ruleset, "metrics"), *_baseline_metrics(ruleset)]:
        computed = {name: each for name, each in metric.items() if name not in _WORDS}
        at = first.setdefault(json.dumps([pointer.startswith("/baseline"), computed], sort_keys=True), pointer)
        if at != pointer and computed:
            yield finding(pointer, "MetricRepeated", f"This metric equals the one at {at}, which has another slug.")


# Members that describe a metric and don't affect its value.
_WORDS = ("slug", "name", "meaning", "unit", "format", "direction")


def _unprintable_texts(value: Any, *steps: int | str) -> Iterator[Finding]:
    """Yield texts that may look different from what they contain. Notes may have several lines."""
    if isinstance(value, (dict, list)):
        for step, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _unprintable_texts(each, *steps, step)
    elif isinstance(value, str) and _UNPRINTABLE.search(_LINES.sub(" ", value) if steps == ("notes",) else value):
        says = "A text contains a control character or one that changes the direction of writing."
        yield finding(build_pointer(steps), "BadText", says)


_LINES = re.compile(r"\r?\n|\t")
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
