"""Check names and references: names that occur twice, refer to nothing, or refer to a value of another kind.

It works on the plain document, so that a fault of shape in one place hides no fault in another.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pipelines.decisions.check.findings import Finding, finding
from pipelines.decisions.nodes import LEAVES
from pipelines.decisions.policy import RESERVED_SLUGS
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics import METRICS
from pipelines.metrics.definition import DECIMAL

Data = Mapping[str, Any]
Placed = tuple[str, Any]  # a JSON pointer and the value there
_AS = {"decimal": "a number", "string": "a text", "boolean": "true or false"}
_MAX_METRICS = 100  # checked for circles; a policy with more is refused for their number
_LISTS = {"attribute": "attributes", "input": "declaredInputs"}


def find_faults(document: object) -> Iterator[Finding]:
    """Yield the faults of names and references in a plain document that `bounds` has passed."""
    policy = document if isinstance(document, dict) else {}
    for check in (
        _find_reserved_slug,
        _default_without_reason,
        _find_repeated_names,
        _find_shadowing,
        _operands,
        _circles,
        _leaves,
        _indicators,
        _limits,
    ):
        yield from check(policy)


def entries(given: Any, name: str, pointer: str = "") -> list[tuple[str, Data]]:
    """Return the objects of the list `name` with their pointers; empty if it is not a list."""
    listed = given.get(name)
    placed = enumerate(listed if isinstance(listed, list) else ())
    return [(f"{pointer}/{name}/{place}", each) for place, each in placed if isinstance(each, dict)]


def rules(policy: Data) -> list[tuple[str, Data]]:
    return [rule for pointer, step in entries(policy, "steps") for rule in entries(step, "rules", pointer)]


# The policy as a whole


def _find_reserved_slug(policy: Data) -> Iterator[Finding]:
    if policy.get("slug") in RESERVED_SLUGS:
        yield finding("/slug", "ReservedSlug", "This slug is reserved: choose another.")


def _default_without_reason(policy: Data) -> Iterator[Finding]:
    """Yield a fault if the default refuses or refers customers without a reason to give them."""
    if policy.get("defaultOutcome") in ("conditional", "blocked") and policy.get("defaultReason") is None:
        says = (
            "Customers who match no step get this outcome: add a `defaultReason` with code, message, customerMessage."
        )
        yield finding("/defaultOutcome", "DefaultWithoutReason", says)


# Names


def _find_repeated_names(policy: Data) -> Iterator[Finding]:
    for name, member in _NAMED:
        yield from find_repeated(entries(policy, name), member)
    yield from find_repeated([*rules(policy), *_default(policy)], "code")
    for pointer, limit in entries(policy, "limits"):
        yield from find_repeated(entries(limit, "caps", pointer), "code")


def _default(policy: Data) -> list[tuple[str, Data]]:
    reason = policy.get("defaultReason")
    return [("/defaultReason", reason)] if isinstance(reason, dict) else []


_NAMED = (
    ("declaredInputs", "name"),
    ("attributes", "name"),
    ("metrics", "slug"),
    ("products", "slug"),
    ("steps", "name"),
    ("limits", "product"),
    ("indicators", "metric"),
)


def find_repeated(placed: Sequence[tuple[str, Data]], member: str) -> Iterator[Finding]:
    """Yield members that repeat the value of an earlier one."""
    first: dict[str, str] = {}
    for pointer, each in placed:
        name, at = each.get(member), f"{pointer}/{member}"
        if isinstance(name, str) and first.setdefault(name, at) != at:
            yield finding(at, "Repeated", f"This is already used at {first[name]}.")


def _names(policy: Data, name: str, member: str) -> dict[str, Data]:
    return {each[member]: each for _, each in entries(policy, name) if isinstance(each.get(member), str)}


def _metrics(policy: Data) -> set[str]:
    return {*METRICS, *_names(policy, "metrics", "slug")}


# The policy's own metrics


def _find_shadowing(policy: Data) -> Iterator[Finding]:
    for pointer, slug in _own_slugs(policy):
        if slug in METRICS:
            yield finding(f"{pointer}/slug", "ShadowsRegistry", "The registry has this slug: choose another.")
        if slug == BY_CUSTOMER:  # a column in the same frame as the metrics' values
            yield finding(f"{pointer}/slug", "Reserved", "This slug is reserved for the service: choose another.")


def _operands(policy: Data) -> Iterator[Finding]:
    known = _metrics(policy)
    for pointer, metric in entries(policy, "metrics"):
        for place, operand in operands_of(metric):
            if operand not in known and not DECIMAL.fullmatch(operand):
                yield _unknown_finding(f"{pointer}/definition/operands/{place}", "metric", operand, known)


def operands_of(metric: Data) -> list[tuple[int, str]]:
    """Return the operands of a metric's definition with their indexes."""
    definition = metric.get("definition")
    operands = definition.get("operands") if isinstance(definition, dict) else None
    listed = operands if isinstance(operands, list) else ()
    return [(place, each) for place, each in enumerate(listed) if isinstance(each, str)]


def _circles(policy: Data) -> Iterator[Finding]:
    made_of = {slug: [each for _, each in operands_of(own)] for slug, own in _names(policy, "metrics", "slug").items()}
    for pointer, slug in _own_slugs(policy)[:_MAX_METRICS]:
        if slug in _all_below(made_of, slug):
            yield finding(f"{pointer}/definition/operands", "Circle", "This metric is computed from itself.")


def _own_slugs(policy: Data) -> list[tuple[str, str]]:
    return [(at, each["slug"]) for at, each in entries(policy, "metrics") if isinstance(each.get("slug"), str)]


def _all_below(made_of: Mapping[str, Sequence[str]], slug: str) -> set[str]:
    reached: set[str] = set()
    waiting = list(made_of[slug])
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += made_of.get(name, ())
    return reached


# References


def _leaves(policy: Data) -> Iterator[Finding]:
    metrics = _metrics(policy)
    declared = {sort: _names(policy, name, "name") for sort, name in _LISTS.items()}
    for pointer, sort, name, wanted in leaves(policy):
        if sort == "metric" and name not in metrics:
            yield _unknown_finding(pointer, "metric", name, metrics)
        if sort in declared and name not in declared[sort]:
            yield _unknown_finding(pointer, sort, name, declared[sort])
        if sort in declared and name in declared[sort]:
            yield from _check_kind(pointer, declared[sort][name].get("kind"), wanted)


def _check_kind(pointer: str, kind: object, wanted: str | None) -> Iterator[Finding]:
    if isinstance(kind, str) and kind in _AS and wanted not in {None, kind}:
        hint = " Texts are compared with `oneOf`." if (kind, wanted) == ("string", "decimal") else ""
        says = f"This is declared as {_AS[kind]}, but {_AS[str(wanted)]} is needed here.{hint}"
        yield finding(pointer, _WRONG_KIND, says)


_WRONG_KIND = "WrongKind"


def pointers_of_wrong_kind(findings: Iterable[Finding]) -> list[str]:
    """Return the pointers of references to a value of a wrong kind."""
    return [each.pointer for each in findings if each.code.endswith(f".{_WRONG_KIND}")]


def leaves(policy: Data) -> Iterator[tuple[str, str, str, str | None]]:
    """Yield each reference in steps and limits: its pointer, sort and name, and the kind needed (None: any)."""
    waiting: list[tuple[str, Any, str | None]] = [(at, each, "decimal") for at, each in _roots(policy)]
    while waiting:
        pointer, value, wanted = waiting.pop()
        if isinstance(value, list):
            waiting += [(f"{pointer}/{place}", each, wanted) for place, each in enumerate(value)]
        if isinstance(value, dict):
            if (reference := _reference(value)) is not None:
                yield f"{pointer}/{reference[0]}", *reference, wanted
            waiting += [(f"{pointer}/{name}", each, _WANTS.get(name, wanted)) for name, each in _nested_members(value)]


_WANTS: Mapping[str, str | None] = {"isTrue": "boolean", "isKnown": None, "oneOf": "string"}


def _nested_members(value: Data) -> list[tuple[str, Any]]:
    return [(name, each) for name, each in value.items() if isinstance(each, (list, dict)) and "/" not in name]


def _reference(value: Data) -> tuple[str, str] | None:
    if len(value) == 1:
        ((sort, name),) = value.items()
        if sort in LEAVES and isinstance(name, str):
            return sort, name
    return None


def _roots(policy: Data) -> Iterator[Placed]:
    """Yield every condition and number at the top level of rules, limits and caps."""
    for pointer, rule in rules(policy):
        yield f"{pointer}/condition", rule.get("condition")
    for pointer, limit in entries(policy, "limits"):
        yield f"{pointer}/amount", limit.get("amount")
        for at, cap in entries(limit, "caps", pointer):
            yield f"{at}/value", cap.get("value")


def _indicators(policy: Data) -> Iterator[Finding]:
    yield from find_dangling(entries(policy, "indicators"), "metric", "metric", _metrics(policy))


def _limits(policy: Data) -> Iterator[Finding]:
    yield from find_dangling(entries(policy, "limits"), "product", "product", _names(policy, "products", "slug"))


def find_dangling(
    placed: Sequence[tuple[str, Data]], member: str, what: str, known: Collection[str]
) -> Iterator[Finding]:
    """Yield members that name something unknown."""
    for pointer, each in placed:
        name = each.get(member)
        if isinstance(name, str) and name not in known:
            yield _unknown_finding(f"{pointer}/{member}", what, name, known)


def _unknown_finding(pointer: str, what: str, name: str, known: Collection[str]) -> Finding:
    close = get_close_matches(name[:80], known, n=1, cutoff=0.75)
    hint = f" Did you mean `{close[0]}`?" if close else ""
    return finding(pointer, f"Unknown{what.capitalize()}", f"{_UNKNOWN[what]}{hint}")


_UNKNOWN: Mapping[str, str] = {
    "metric": "There is no such metric, neither in the registry nor in `metrics`.",
    "attribute": "No such attribute is declared in `attributes`.",
    "input": "No such input is declared in `declaredInputs`.",
    "product": "No such product is listed in `products`.",
}
