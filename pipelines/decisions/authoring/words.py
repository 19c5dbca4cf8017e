"""Numbers and conditions of a policy in words."""

from collections.abc import Callable, Mapping, Sequence

from pipelines.decisions.policy import (
    AttributeRef,
    Condition,
    InputRef,
    IsKnown,
    IsTrue,
    MetricRef,
    Not,
    Number,
    OneOf,
    Operation,
    Tiered,
    Tiers,
)


def describe_number(number: Number) -> str:
    match number:
        case str():
            return number
        case MetricRef(metric=name) | AttributeRef(attribute=name) | InputRef(input=name):
            return name
        case Tiers(tiers=tiers):
            return _describe_tiers(tiers)
        case Operation():
            return _CALCULATIONS[number.operator]([describe_number(each) for each in number.operands])


def _describe_tiers(tiers: Tiered) -> str:
    bands = [f"{describe_number(band.value)} below {band.below}" for band in tiers.bands]
    return f"(by {describe_number(tiers.of)}: {', '.join(bands)}, otherwise {describe_number(tiers.otherwise)})"


_CALCULATIONS: Mapping[str, Callable[[Sequence[str]], str]] = {
    "add": lambda operands: f"({' + '.join(operands)})",
    "subtract": lambda operands: f"({' − '.join(operands)})",
    "multiply": lambda operands: f"({' × '.join(operands)})",
    "divide": lambda operands: f"({' ÷ '.join(operands)})",
    "min": lambda operands: f"the least of ({', '.join(operands)})",
    "max": lambda operands: f"the greatest of ({', '.join(operands)})",
}


def describe_condition(condition: Condition) -> str:
    match condition:
        case Not(not_=inner):
            return f"not ({describe_condition(inner)})"
        case OneOf(one_of=membership):
            return f"{describe_number(membership.of)} is one of {', '.join(map(_quote, membership.texts))}"
        case IsTrue(is_true=reference):
            return f"{describe_number(reference)} is true"
        case IsKnown(is_known=reference):
            return f"{describe_number(reference)} is known"
        case Operation(operator="all" | "any" as operator):
            return f" {_JOINED[operator]} ".join(f"({describe_condition(each)})" for each in condition.operands)
        case Operation():
            return _describe_comparison(condition)


_JOINED: Mapping[str, str] = {"all": "and", "any": "or"}


def _describe_comparison(comparison: Operation) -> str:
    left, *others = map(describe_number, comparison.operands)
    return f"{left} {_COMPARISONS[comparison.operator]} {' and '.join(others)}"


_COMPARISONS: Mapping[str, str] = {
    "at_least": "is at least",
    "at_most": "is at most",
    "more_than": "is more than",
    "less_than": "is less than",
    "equals": "equals",
    "differs": "differs from",
    "between": "is between",
}


def _quote(text: str) -> str:
    return f"“{text}”"
