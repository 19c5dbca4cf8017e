"""Oracle for policies in plain Python: a document as JSON, one customer, loops and Decimals.

It is written from the documented semantics, and uses none of the plan, columns and arithmetic that it checks.
"""

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from pipelines.decisions.readings import Attribute, Value

Json = Any
PLACES = Decimal("0.00000001")
LARGEST = Decimal(1_000_000_000_000_000)
EXACT = Context(prec=120, rounding=ROUND_HALF_EVEN)
KINDS: Mapping[str, type] = {"decimal": Decimal, "string": str, "boolean": bool}
LEAVES = ("metric", "attribute", "input")
UNAVAILABLE = {
    "metric": "DecisionPolicy.MetricUnavailable",
    "attribute": "DecisionPolicy.AttributeUnavailable",
    "input": "DecisionPolicy.InputUnavailable",
}
COMPARE = {
    "atLeast": operator.ge,
    "atMost": operator.le,
    "moreThan": operator.gt,
    "lessThan": operator.lt,
    "equals": operator.eq,
    "differs": operator.ne,
}
CALCULATIONS = {"division_by_zero": "DecisionPolicy.DivisionByZero", "overflow": "DecisionPolicy.Overflow"}


@dataclass(frozen=True)
class Customer:
    """A customer. `metrics`: values, or causes why there is none."""

    metrics: Mapping[str, Decimal | str]
    attributes: Mapping[str, Attribute]


@dataclass(frozen=True)
class Seen:
    """A number or condition of the document, with its value, cause and operands.

    `asked`: the operands that were needed: for tiers the placed number and one value, else all.
    """

    what: tuple[str, ...]
    value: Value | None
    cause: str | None = None
    of: tuple["Seen", ...] = ()
    asked: tuple["Seen", ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Reason:
    """A reason. `name`: the leaf's; None for a calculation. `metrics`: the slugs below it."""

    code: str
    cause: str
    name: str | None
    metrics: tuple[str, ...]


@dataclass(frozen=True)
class RuleResult:
    code: str
    counted: bool | None
    condition: Seen


@dataclass(frozen=True)
class StepResult:
    matched: bool | None
    rules: tuple[RuleResult, ...]


@dataclass(frozen=True)
class LimitResult:
    product: str
    amount: Decimal | None
    uncapped: Decimal | None
    capped: bool
    reasons: tuple[Reason, ...]
    seen: tuple[Seen, ...]  # the amount, then each cap


@dataclass(frozen=True)
class PolicyResult:
    """The result of an evaluation. `step`: the deciding or undecidable one. `matched`: codes, the most important first;
    the default's code if no step decided. `rests_on`: slugs of the metrics that each of them names.
    """

    outcome: str
    step: int | None
    matched: tuple[str, ...]
    rests_on: tuple[tuple[str, ...], ...]
    reasons: tuple[Reason, ...]
    limits: tuple[LimitResult, ...]
    steps: tuple[StepResult, ...]


def policy_result(document: Json, customer: Customer, inputs: Mapping[str, Value], now: datetime) -> PolicyResult:
    reader = Reader(document, customer, inputs, now)
    steps = tuple(_step(reader, step) for step in document["steps"])
    nth = next((nth for nth, step in enumerate(steps) if step.matched is not False), None)
    outcome: str = document["defaultOutcome"]
    described: list[tuple[str, list[Seen]]] = []
    reasons: tuple[Reason, ...] = ()
    if nth is not None and steps[nth].matched is None:
        outcome = "indeterminate"
        reasons = _reasons(rule.condition for rule in steps[nth].rules if rule.counted is None)
    elif nth is not None:
        outcome = document["steps"][nth]["outcome"]
        described = _weightiest_first(document["steps"][nth]["rules"], steps[nth].rules)
    elif document["defaultReason"] is not None:
        described = [(document["defaultReason"]["code"], _unmet(document["steps"], steps))]
    matched = tuple(code for code, _ in described)
    rests_on = tuple(tuple(dict.fromkeys(slug for each in seen for slug in _metrics(each))) for _, seen in described)
    limits = tuple(_limit(reader, limit, outcome, reasons) for limit in document["limits"])
    return PolicyResult(outcome, nth, matched, rests_on, reasons, limits, steps)


# Steps


def _step(reader: "Reader", step: Json) -> StepResult:
    rules = tuple(_rule(reader, rule) for rule in step["rules"])
    together = _all if step["match"] == "all" else _any
    return StepResult(together([rule.counted for rule in rules]), rules)


def _rule(reader: "Reader", rule: Json) -> RuleResult:
    condition = reader.condition(rule["condition"])
    counted = condition.value
    if counted is None and rule["onUnavailable"] != "indeterminate":
        counted = rule["onUnavailable"] == "matched"
    assert counted is None or isinstance(counted, bool)
    return RuleResult(rule["code"], counted, condition)


def _weightiest_first(rules: Sequence[Json], described: Sequence[RuleResult]) -> list[tuple[str, list[Seen]]]:
    ranked = [
        (rule["rank"], place, rule["code"], each.condition)
        for place, (rule, each) in enumerate(zip(rules, described, strict=True))
        if each.counted
    ]
    return [(code, [condition]) for _, _, code, condition in sorted(ranked, key=lambda each: each[:2])]


def _unmet(given: Sequence[Json], steps: Sequence[StepResult]) -> list[Seen]:
    """Return the false conditions of steps that need all their rules."""
    pairs = [(step, rule) for step, described in zip(given, steps, strict=True) for rule in described.rules]
    return [rule.condition for step, rule in pairs if step["match"] == "all" and rule.counted is False]


# Limits


def _limit(reader: "Reader", limit: Json, outcome: str, verdict: tuple[Reason, ...]) -> LimitResult:
    amount = reader.number(limit["amount"])
    caps = [(cap, reader.number(cap["value"])) for cap in limit["caps"]]
    seen = (amount, *(value for _, value in caps))
    product = limit["product"]
    if outcome == "indeterminate":
        return LimitResult(product, None, None, False, verdict, seen)
    if outcome not in limit["outcomes"]:
        return LimitResult(product, Decimal(0), None, False, (), seen)
    required = [amount, *(value for cap, value in caps if cap["onUnavailable"] == "indeterminate")]
    if any(each.value is None for each in required):
        return LimitResult(product, None, None, False, _reasons(required), seen)
    return _offer(limit, _decimal(amount), [_decimal(value) for _, value in caps if value.value is not None], seen)


def _offer(limit: Json, wanted: Decimal, ceilings: Sequence[Decimal], seen: tuple[Seen, ...]) -> LimitResult:
    wanted = max(wanted, Decimal(0))
    ceiling = max(min(ceilings, default=wanted), Decimal(0))
    capped = ceiling < wanted
    given = _down(min(ceiling, wanted), Decimal(limit["roundDownTo"]))
    offered = given if given >= Decimal(limit["minimum"]) else Decimal(0)
    uncapped = _down(wanted, Decimal("0.01")) if capped else None
    return LimitResult(limit["product"], offered, uncapped, capped, (), seen)


def _down(value: Decimal, multiple: Decimal) -> Decimal:
    times = EXACT.divide(value, multiple).quantize(Decimal(1), ROUND_DOWN, EXACT)
    return EXACT.multiply(times, multiple)


def _decimal(seen: Seen) -> Decimal:
    assert isinstance(seen.value, Decimal)
    return seen.value


# Reasons


def _reasons(places: Iterable[Seen]) -> tuple[Reason, ...]:
    """Return what is missing at these places, each once."""
    return tuple(map(_reason, dict.fromkeys(each for place in places for each in _find_missing(place))))


def _find_missing(seen: Seen) -> Iterator[Seen]:
    if seen.value is not None:
        return
    unknown = [each for each in seen.asked if each.value is None]
    if not unknown:
        yield seen
    for each in unknown:
        yield from _find_missing(each)


def _reason(seen: Seen) -> Reason:
    assert seen.cause is not None
    sort, *names = seen.what
    metrics = tuple(dict.fromkeys(_metrics(seen)))
    if sort in LEAVES:
        return Reason(UNAVAILABLE[sort], seen.cause, names[0], metrics)
    return Reason(CALCULATIONS[seen.cause], seen.cause, None, metrics)


def _metrics(seen: Seen) -> Iterator[str]:
    if seen.what[0] == "metric":
        yield seen.what[1]
    for each in seen.of:
        yield from _metrics(each)


# Reading the document


class Reader:
    def __init__(self, document: Json, customer: Customer, inputs: Mapping[str, Value], now: datetime) -> None:
        self._kinds = {each["name"]: each["kind"] for each in document["attributes"]}
        self._customer = customer
        self._inputs = inputs
        self._now = now

    def number(self, stated: Json) -> Seen:
        if isinstance(stated, str):
            return Seen(("constant", stated), Decimal(stated))
        ((form, operands),) = stated.items()
        if form in LEAVES:
            return self.leaf(stated)
        if form == "tiers":
            return self._tiers(operands)
        of = tuple(map(self.number, operands))
        if any(each.value is None for each in of):
            return Seen((form,), None, None, of, of)
        value, cause = _calculate(form, list(map(_decimal, of)))
        return Seen((form,), value, cause, of, of)

    def _tiers(self, tiers: Json) -> Seen:
        placed = self.number(tiers["of"])
        bounds = [band["below"] for band in tiers["bands"]]
        values = [self.number(each) for each in (*(band["value"] for band in tiers["bands"]), tiers["otherwise"])]
        what, of = ("tiers", *bounds), (placed, *values)
        if placed.value is None:
            return Seen(what, None, None, of, (placed,))
        nth = next((nth for nth, bound in enumerate(bounds) if _decimal(placed) < Decimal(bound)), -1)
        return Seen(what, values[nth].value, None, of, (values[nth],))

    def condition(self, stated: Json) -> Seen:
        ((form, operands),) = stated.items()
        match form:
            case "all" | "any":
                of = tuple(map(self.condition, operands))
                together = _all if form == "all" else _any
                return Seen((form,), together([each.value for each in of]), None, of, of)
            case "not":
                of = (self.condition(operands),)
                return Seen((form,), _not(of[0].value), None, of, of)
            case "isKnown":
                of = (self.leaf(operands),)
                return Seen((form,), of[0].value is not None, None, of, of)
            case "isTrue":
                of = (self.leaf(operands),)
                return Seen((form,), of[0].value, None, of, of)
            case "oneOf":
                of = (self.leaf(operands["of"]),)
                value = None if of[0].value is None else of[0].value in operands["texts"]
                return Seen((form, *operands["texts"]), value, None, of, of)
            case _:
                of = tuple(map(self.number, operands))
                return Seen((form,), _compare(form, [each.value for each in of]), None, of, of)

    def leaf(self, reference: Json) -> Seen:
        ((sort, name),) = reference.items()
        read = {"metric": self._metric, "attribute": self._attribute, "input": self._input}[sort]
        value, cause = read(name)
        return Seen((sort, name), value, cause)

    def _metric(self, name: str) -> tuple[Value | None, str | None]:
        reading = self._customer.metrics[name]
        return (None, reading) if isinstance(reading, str) else _round(reading)

    def _attribute(self, name: str) -> tuple[Value | None, str | None]:
        held = self._customer.attributes.get(name)
        if held is None or held.value is None:
            return None, "not_set"
        if held.expires_at is not None and held.expires_at <= self._now:
            return None, "expired"
        if type(held.value) is not KINDS[self._kinds[name]]:
            return None, "wrong_kind"
        return _round(held.value) if isinstance(held.value, Decimal) else (held.value, None)

    def _input(self, name: str) -> tuple[Value | None, str | None]:
        value = self._inputs[name]
        return _round(value) if isinstance(value, Decimal) else (value, None)


# Arithmetic and logic


def _round(exact: Decimal) -> tuple[Decimal | None, str | None]:
    rounded = exact.quantize(PLACES, ROUND_HALF_EVEN, EXACT)
    return (None, "overflow") if rounded <= -LARGEST or rounded >= LARGEST else (rounded, None)


def _calculate(form: str, operands: list[Decimal]) -> tuple[Decimal | None, str | None]:
    if form in {"min", "max"}:
        return (min if form == "min" else max)(operands), None
    value, *others = operands
    for other in others:
        if form == "divide" and other == 0:
            return None, "division_by_zero"
        exact = {"add": EXACT.add, "subtract": EXACT.subtract, "multiply": EXACT.multiply, "divide": EXACT.divide}
        rounded, cause = _round(exact[form](value, other))
        if rounded is None:
            return None, cause
        value = rounded
    return value, None


def _compare(form: str, values: Sequence[Any]) -> bool | None:
    if form == "between":
        value, lowest, highest = values
        return _all([_compare("atLeast", [value, lowest]), _compare("atMost", [value, highest])])
    left, right = values
    if left is None or right is None:
        return None
    return bool(COMPARE[form](left, right))


def _all(values: Sequence[object]) -> bool | None:
    """Return False if any value is False, whatever else is unknown."""
    if any(value is False for value in values):
        return False
    return None if any(value is None for value in values) else True


def _any(values: Sequence[object]) -> bool | None:
    return _not(_all([_not(value) for value in values]))


def _not(value: object) -> bool | None:
    return None if value is None else not value
