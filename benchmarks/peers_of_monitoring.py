"""Peers of a ruleset evaluation: the same conditions, customer by customer, on metrics in a dictionary per customer.

In plain Python a condition is a small tree that is evaluated with exact decimals and three-valued logic. Its results
are also the oracle for our own evaluation. In CEL (`common-expression-language`) each rule is an expression over
doubles, compiled once. An inequality with null is an error, which `&&` ignores if another operand decides; an equality
with null is false.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any, TypeAlias
from uuid import UUID

import cel
import polars as pl

from pipelines.decisions.policy import Condition, MetricRef, Number, Operation
from pipelines.monitoring import MonitoringPlan

Known = Mapping[str, Any]  # of one customer, by the names of the plan; None: unavailable
Outcomes = Sequence[bool | None]  # of all rules, in the plan's order
_PLACES = Decimal("1e-8")


Operand: TypeAlias = "Node | str | Decimal"


@dataclass(frozen=True)
class Node:
    """A condition or a calculated number as plain data. Operands are nodes, names of metrics, or decimals."""

    operator: str
    operands: Sequence[Operand]


def conditions_of(plan: MonitoringPlan) -> list[Node]:
    """Return the condition of every rule, in the plan's order."""
    return [_condition_of_rule(plan, ruleset_id, code) for ruleset_id, code in plan.rules]


def prepare_customers(figures: pl.DataFrame) -> Sequence[Known]:
    """Return what the conditions may read of each customer. This preparation is not measured."""
    return figures.select(pl.selectors.decimal()).to_dicts()


def _condition_of_rule(plan: MonitoringPlan, ruleset_id: UUID, code: str) -> Node:
    planned = plan.rulesets[ruleset_id]
    names = {slug: name for name, slug in planned.slugs.items()}
    return _convert(planned.rules[code].rule.condition, names)


def _convert(condition: Condition | Number, names: Mapping[str, str]) -> Node:
    """Convert a condition. The library's rules read only metrics and combine them only in these ways."""
    assert isinstance(condition, Operation)
    return Node(condition.operator, [_operand(each, names) for each in condition.operands])


def _operand(operand: Condition | Number, names: Mapping[str, str]) -> Operand:
    if isinstance(operand, str):
        return Decimal(operand)
    return names[operand.metric] if isinstance(operand, MetricRef) else _convert(operand, names)


# In plain Python


def evaluate_in_python(conditions: Sequence[Node], customers: Sequence[Known]) -> list[Outcomes]:
    return [[_holds(each, known) for each in conditions] for known in customers]


def _holds(node: Node, known: Known) -> bool | None:
    if node.operator == "all":
        parts = [_holds(each, known) for each in node.operands if isinstance(each, Node)]
        return False if False in parts else None if None in parts else True
    left, right = (_number(each, known) for each in node.operands)
    return None if left is None or right is None else bool(_COMPARED[node.operator](left, right))


def _number(operand: Operand, known: Known) -> Decimal | None:
    match operand:
        case Decimal():
            return operand
        case str():
            value: Decimal | None = known[operand]
            return value
        case Node():
            operands = [_number(each, known) for each in operand.operands]
            if None in operands:
                return None
            return reduce(_CALCULATED[operand.operator], (each for each in operands if each is not None)).quantize(
                _PLACES
            )


_COMPARED: Mapping[str, Callable[[Decimal, Decimal], bool]] = {
    "at_least": operator.ge,
    "at_most": operator.le,
    "more_than": operator.gt,
    "less_than": operator.lt,
    "equals": operator.eq,
}
_CALCULATED: Mapping[str, Callable[[Decimal, Decimal], Decimal]] = {
    "add": operator.add,
    "multiply": operator.mul,
    "divide": operator.truediv,
}


# In CEL


class InCel:
    """Conditions in CEL. Names of the plan are not valid in CEL, so each gets a number."""

    def __init__(self, conditions: Sequence[Node]) -> None:
        names = sorted({name for each in conditions for name in _names(each)})
        self._variables = {name: f"m{nth}" for nth, name in enumerate(names)}
        self._programs = [cel.compile(self._text(each)) for each in conditions]

    def prepare(self, customers: Sequence[Known]) -> list[dict[str, float | None]]:
        """Prepare customers for `outcomes`. This is not measured."""
        return [{variable: _as_float(known[name]) for name, variable in self._variables.items()} for known in customers]

    def outcomes(self, customers: Sequence[dict[str, float | None]]) -> list[Outcomes]:
        contexts = (cel.Context(variables=each) for each in customers)
        return [[_execute(program, context) for program in self._programs] for context in contexts]

    def _text(self, operand: Operand) -> str:
        match operand:
            case Decimal():
                return repr(float(operand))
            case str():
                return self._variables[operand]
            case Node():
                return f"({f' {_SIGNS[operand.operator]} '.join(map(self._text, operand.operands))})"


_SIGNS = {
    "all": "&&",
    "at_least": ">=",
    "at_most": "<=",
    "more_than": ">",
    "less_than": "<",
    "equals": "==",
    "add": "+",
    "multiply": "*",
    "divide": "/",
}


def _names(operand: Operand) -> Iterator[str]:
    if isinstance(operand, str):
        yield operand
    elif isinstance(operand, Node):
        for each in operand.operands:
            yield from _names(each)


def _as_float(value: Decimal | None) -> float | None:
    return None if value is None else float(value)


def _execute(program: Any, context: Any) -> bool | None:
    try:
        return bool(program.execute(context))
    except TypeError:  # a comparison with null that no other operand decided
        return None
