"""The largest accepted documents, each with one operator: the highest cost of a policy or ruleset."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import count, islice
from typing import Any

from pipelines.decisions.check import CALCULATING
from pipelines.decisions.check.bounds import MAX_DEPTH, MAX_NODES, find_broken_bound
from pipelines.decisions.policy import MAX_OPERANDS
from tests.pipelines.decisions.small import rule, step

Json = Any
Numbers = Iterator[str]
LEAF: Json = {"metric": "revenue_90d"}
_RULES_PER_STEP = 100


def fill_policy(condition: Callable[[Numbers], Json]) -> Json:
    """Return a policy with as many rules of these conditions as fit within the bounds."""
    numbers = (f"{number}.00000001" for number in count(1))  # all different, because equal numbers share one node
    most = list(islice(iter(lambda: condition(numbers), None), MAX_NODES))
    fitting = bisect_left(range(1, MAX_NODES + 1), True, key=lambda rules: not _fits(policy_of(most[:rules])))
    return policy_of(most[:fitting])


def _fits(document: Json) -> bool:
    return find_broken_bound(document, CALCULATING) is None


def policy_of(conditions: list[Json]) -> Json:
    parts = [conditions[start : start + _RULES_PER_STEP] for start in range(0, len(conditions), _RULES_PER_STEP)]
    steps = [
        {**step(name=f"Step {number}"), "rules": [rule(each, code=f"R{number}.{nth}") for nth, each in enumerate(part)]}
        for number, part in enumerate(parts)
    ]
    return {"slug": "largest", "name": "Largest", "defaultOutcome": "proceed", "steps": steps}


def _wide(operator: str, operands: int) -> Callable[[Numbers], Json]:
    def condition(numbers: Numbers) -> Json:
        return {"moreThan": [{operator: [LEAF, *(next(numbers) for _ in range(operands - 1))]}, next(numbers)]}

    return condition


def _deep(operator: str, operands: int) -> Callable[[Numbers], Json]:
    def condition(numbers: Numbers) -> Json:
        number = LEAF
        for _ in range(MAX_DEPTH - 2):  # the comparison and the reading are two levels, too
            number = {operator: [number, *(next(numbers) for _ in range(operands - 1))]}
        return {"moreThan": [number, next(numbers)]}

    return condition


def _products(numbers: Numbers) -> Json:
    """Return a sum of many products, each with another factor: such a document once exhausted a process's memory."""
    products = [{"multiply": [LEAF, next(numbers)]} for _ in range(MAX_OPERANDS - 2)]
    return {"moreThan": [{"add": products}, next(numbers)]}


def _tiers(numbers: Numbers) -> Json:
    bands = [{"below": next(numbers), "value": next(numbers)} for _ in range(MAX_OPERANDS)]
    return {"atLeast": [{"tiers": {"of": LEAF, "bands": bands, "otherwise": "1"}}, next(numbers)]}


def _comparison(operator: str) -> Callable[[Numbers], Json]:
    return lambda numbers: {operator: [LEAF, next(numbers)]}


def _of_many(operator: str) -> Callable[[Numbers], Json]:
    return lambda numbers: {operator: [{"moreThan": [LEAF, next(numbers)]} for _ in range(50)]}


def _nest(operator: str) -> Callable[[Numbers], Json]:
    def condition(numbers: Numbers) -> Json:
        held: Json = {"moreThan": [LEAF, next(numbers)]}
        for _ in range(MAX_DEPTH - 2):
            inner = held if operator == "not" else [held, {"lessThan": [LEAF, next(numbers)]}]
            held = {operator: inner}
        return held

    return condition


CONDITIONS: Mapping[str, Callable[[Numbers], Json]] = {
    **{
        f"{operator}, wide": _wide(operator, MAX_OPERANDS) for operator in ("add", "subtract", "multiply", "min", "max")
    },
    **{f"{operator}, deep": _deep(operator, 2) for operator in ("add", "subtract", "multiply", "divide", "min", "max")},
    **{f"{operator}, wide and deep": _deep(operator, MAX_OPERANDS) for operator in ("add", "multiply")},
    "sums of products": _products,
    "tiers, wide": _tiers,
    **{each: _comparison(each) for each in ("atLeast", "atMost", "moreThan", "lessThan", "equals", "differs")},
    "between": lambda numbers: {"between": [LEAF, next(numbers), next(numbers)]},
    **{f"{operator}, wide": _of_many(operator) for operator in ("all", "any")},
    **{f"{operator}, deep": _nest(operator) for operator in ("all", "any", "not")},
}
