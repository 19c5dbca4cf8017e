"""Differences between two versions of a policy in words, one line per change.

Parts are matched by their identifiers: a rule or a cap by its code, a step by its name, a limit by its product. A
renamed part is therefore reported as removed and added.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pipelines.decisions.authoring import words
from pipelines.decisions.policy import Cap, DeclaredAttribute, DeclaredInput, Limit, Policy, Product, Reason, Rule, Step
from pipelines.metrics.definition import Metric, Strict


def describe_changes(before: Policy, after: Policy) -> list[str]:
    """Return a line for each change; empty if the versions are equal."""
    return [
        *_compare_fields("Policy", before, after, _PARTS),
        *_compare_parts("Input", before.declared_inputs, after.declared_inputs, "name"),
        *_compare_parts("Attribute", before.attributes, after.attributes, "name"),
        *_compare_parts("Metric", before.metrics, after.metrics, "slug"),
        *_compare_parts("Product", before.products, after.products, "slug"),
        *_compare_steps(before, after),
        *_compare_steps_of_rules(before, after),
        *_compare_by_key("Rule", _rules(before), _rules(after), "code", frozenset()),
        *_compare_orders_of_rules(before, after),
        *_compare_parts("Limit of", before.limits, after.limits, "product", frozenset({"caps"})),
        *_compare_caps(before, after),
        *_compare_parts("Indicator", before.indicators, after.indicators, "metric"),
    ]


_PARTS = frozenset({"declared_inputs", "attributes", "metrics", "products", "steps", "limits", "indicators"})
_NO_PLACES: Mapping[str, str] = {}


# Parts


def _compare_parts(
    what: str,
    before: Sequence[Strict],
    after: Sequence[Strict],
    key: str,
    apart: frozenset[str] = frozenset(),
    places: Mapping[str, str] = _NO_PLACES,
) -> Iterator[str]:
    """Yield the changes of a list of parts.

    Args:
        key: the field that identifies a part.
        apart: fields whose changes are reported separately.
        places: the position of a new part, by its name.
    """
    yield from _compare_by_key(what, before, after, key, apart, places)
    yield from _compare_order(f"{what.removesuffix(' of')}s", _names(before, key), _names(after, key))


def _compare_by_key(
    what: str,
    before: Sequence[Strict],
    after: Sequence[Strict],
    key: str,
    apart: frozenset[str],
    places: Mapping[str, str] = _NO_PLACES,
) -> Iterator[str]:
    """Yield the parts that were added or removed, and changes of the others. Arguments as in `_compare_parts`."""
    old, new = ({getattr(each, key): each for each in parts} for parts in (before, after))
    for name in dict.fromkeys([*old, *new]):
        if name not in new:
            yield f"{what} {name}: removed."
        elif name not in old:
            yield f"{what} {name}: added{places.get(name, '')}{_introduce(new[name])}."
        else:
            yield from _compare_fields(f"{what} {name}", old[name], new[name], apart)


def _compare_steps(before: Policy, after: Policy) -> Iterator[str]:
    """Yield the changes of steps. The first step that matches decides, so a new step's position is reported."""
    places = {step.name: _place_of(after.steps, nth) for nth, step in enumerate(after.steps)}
    yield from _compare_parts("Step", before.steps, after.steps, "name", frozenset({"rules"}), places)


def _place_of(steps: Sequence[Step], nth: int) -> str:
    place = f" as step {nth + 1} of {len(steps)}"
    if nth + 1 < len(steps):
        return f"{place}, before “{steps[nth + 1].name}”"
    return f"{place}, after “{steps[nth - 1].name}”" if nth else place


def _names(parts: Sequence[Strict], key: str) -> list[str]:
    return [getattr(each, key) for each in parts]


def _compare_order(what: str, before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield a line if the parts that both versions have are in another order."""
    old, new = [each for each in before if each in after], [each for each in after if each in before]
    if old != new:
        yield f"{what}: the order is now {', '.join(new)}; it was {', '.join(old)}."


def _compare_fields(
    what: str, before: Strict, after: Strict, apart: frozenset[str] = frozenset(), under: str = ""
) -> Iterator[str]:
    for name, field in type(before).model_fields.items():
        old, new, path = getattr(before, name), getattr(after, name), f"{under}{field.alias}"
        if name in apart or old == new:
            continue
        if name not in _WORDS and isinstance(old, Strict) and type(old) is type(new):
            yield from _compare_fields(what, old, new, under=f"{path}.")
        else:
            yield f"{what}: {path} changed from {_describe(name, old)} to {_describe(name, new)}."


def _introduce(part: Strict) -> str:
    return _INTRODUCTIONS.get(type(part), lambda _: "")(part)


_INTRODUCTIONS: Mapping[type[Strict], Callable[[Any], str]] = {
    DeclaredInput: lambda declared: f" ({declared.kind})",
    DeclaredAttribute: lambda declared: f" ({declared.kind})",
    Metric: lambda metric: f": {metric.meaning.removesuffix('.')}",
    Product: lambda product: f" ({product.name})",
    Step: lambda step: f", {step.outcome} when {step.match} of its rules match",
    Rule: lambda rule: f", met when {words.describe_condition(rule.condition)}",
    Limit: lambda limit: f", {words.describe_number(limit.amount)}",
    Cap: lambda cap: f", {words.describe_number(cap.value)}",
}


# Rules and caps


def _rules(policy: Policy) -> list[Rule]:
    return [rule for step in policy.steps for rule in step.rules]


def _compare_steps_of_rules(before: Policy, after: Policy) -> Iterator[str]:
    old, new = _steps_by_rule(before), _steps_by_rule(after)
    for code in old:
        if code in new and old[code] != new[code]:
            yield f"Rule {code}: moved from step {old[code]} to step {new[code]}."


def _steps_by_rule(policy: Policy) -> Mapping[str, str]:
    return {rule.code: step.name for step in policy.steps for rule in step.rules}


def _compare_orders_of_rules(before: Policy, after: Policy) -> Iterator[str]:
    old, new = ({step.name: _names(step.rules, "code") for step in policy.steps} for policy in (before, after))
    for name in old:
        if name in new:
            yield from _compare_order(f"Rules of step {name}", old[name], new[name])


def _compare_caps(before: Policy, after: Policy) -> Iterator[str]:
    """Yield the changes of caps, for limits that both versions have."""
    old, new = ({limit.product: limit.caps for limit in policy.limits} for policy in (before, after))
    for product in old:
        if product in new:
            yield from _compare_parts(f"Limit of {product}: cap", old[product], new[product], "code")


# Values


def _describe(field: str, value: Any) -> str:
    return _WORDS.get(field, _as_text)(value)


def _as_text(value: Any) -> str:
    match value:
        case None:
            return "none"
        case Reason():
            return f"{value.code} “{value.message}”"
        case Strict():
            return _text(value.model_dump(mode="json", by_alias=True, exclude_defaults=True))
        case tuple():
            return ", ".join(map(_as_text, value)) or "none"
        case str():
            return f"“{value}”"
        case _:
            return str(value).lower()


def _text(data: object) -> str:
    return json.dumps(data, ensure_ascii=False)


_WORDS: Mapping[str, Callable[[Any], str]] = {
    "condition": lambda condition: f"“{words.describe_condition(condition)}”",
    **dict.fromkeys(("amount", "value"), words.describe_number),
    **dict.fromkeys(("round_down_to", "minimum"), str),
    **dict.fromkeys(("outcome", "default_outcome", "match", "kind", "format", "on_unavailable"), str),
    "outcomes": ", ".join,
}
