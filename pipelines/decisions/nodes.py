"""Nodes: one for each distinct value, calculation or condition of documents.

Equal expressions share one node, within a document and across all documents read into the same `Nodes`. Nodes have
levels: a node needs only nodes of lower levels, so each level is evaluated at once for all customers, one column per
node.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from pipelines.decisions.policy import (
    AttributeRef,
    Condition,
    InputRef,
    IsKnown,
    IsTrue,
    Kind,
    MetricRef,
    Not,
    Number,
    OneOf,
    Operation,
    Reference,
    Tiers,
)

LEAVES = ("metric", "attribute", "input")


@dataclass(frozen=True)
class Node:
    """A leaf, calculation or condition.

    `operands`: names of their nodes. `subject`: what identifies a leaf, its name first; otherwise the constant, the
    texts or the bounds.
    """

    name: str
    operator: str
    kind: Kind
    operands: tuple[str, ...]
    subject: tuple[str, ...]
    level: int

    @property
    def is_leaf(self) -> bool:
        return self.operator in LEAVES

    @property
    def label(self) -> str:
        """The leaf's own name."""
        return self.subject[0]


@dataclass(frozen=True, eq=False)  # compared and hashed by identity, so that what is derived from one can be cached
class Graph:
    """Nodes by name, operands before the nodes that use them."""

    nodes: Mapping[str, Node]

    @cached_property
    def levels(self) -> tuple[tuple[Node, ...], ...]:
        """The nodes by level, lowest first."""
        deepest = max((node.level for node in self.nodes.values()), default=-1)
        levels: list[list[Node]] = [[] for _ in range(deepest + 1)]
        for node in self.nodes.values():
            levels[node.level].append(node)
        return tuple(map(tuple, levels))

    def labels(self, operator: str) -> list[str]:
        """Return the names of the leaves of one sort, in the order of the document."""
        return [node.label for node in self.nodes.values() if node.operator == operator]

    def below(self, name: str) -> Iterator[Node]:
        """Yield a node and all nodes below it, each once, in the document's order."""
        return self._below(name, set())

    def leaves_below(self, name: str) -> Iterator[Node]:
        """Yield the leaves below a node."""
        return (node for node in self.below(name) if node.is_leaf)

    def _below(self, name: str, seen: set[str]) -> Iterator[Node]:
        if name not in seen:
            seen.add(name)
            yield self.nodes[name]
            for each in self.nodes[name].operands:
                yield from self._below(each, seen)


class Nodes:
    """Collects nodes while documents are read, and reuses equal ones."""

    def __init__(self) -> None:
        self.by_name: dict[str, Node] = {}
        self._names: dict[tuple[object, ...], str] = {}

    def add(self, operator: str, kind: Kind, operands: Sequence[str], subject: Sequence[str] = ()) -> str:
        """Return the name of the node with these parts; add it if it is new."""
        key = (operator, *operands, None, *subject)  # None keeps operands and subject apart
        if key not in self._names:
            name = self._names[key] = f"n{len(self._names)}"
            level = 1 + max((self.by_name[each].level for each in operands), default=-1)
            self.by_name[name] = Node(name, operator, kind, tuple(operands), tuple(subject), level)
        return self._names[key]


Leaf: TypeAlias = tuple[Kind, tuple[str, ...]]  # its kind and subject


@dataclass(frozen=True)
class Reader:
    """Reads one document's numbers and conditions into nodes. `leaf`: resolves a reference to its kind and subject."""

    nodes: Nodes
    leaf: Callable[[Reference], Leaf]

    def add_number(self, number: Number) -> str:
        match number:
            case str():
                return self.nodes.add("constant", "decimal", (), (number,))
            case MetricRef() | AttributeRef() | InputRef():
                return self._leaf(number)
            case Tiers(tiers=tiers):
                values = [self.add_number(band.value) for band in tiers.bands]
                operands = (self.add_number(tiers.of), *values, self.add_number(tiers.otherwise))
                return self.nodes.add("tiers", "decimal", operands, tuple(band.below for band in tiers.bands))
            case Operation():
                return self._operation(number, "decimal", self.add_number)

    def add_condition(self, condition: Condition) -> str:
        match condition:
            case IsTrue(is_true=reference):
                return self.nodes.add("is_true", "boolean", (self._leaf(reference),))
            case IsKnown(is_known=reference):
                return self.nodes.add("is_known", "boolean", (self._leaf(reference),))
            case OneOf(one_of=membership):
                return self.nodes.add("one_of", "boolean", (self._leaf(membership.of),), membership.texts)
            case Not(not_=inner):
                return self.nodes.add("not", "boolean", (self.add_condition(inner),))
            case Operation(operator="all" | "any"):
                return self._operation(condition, "boolean", self.add_condition)
            case Operation():
                return self._operation(condition, "boolean", self.add_number)

    def _operation(self, operation: Operation, kind: Kind, node_of: Callable[[Any], str]) -> str:
        return self.nodes.add(operation.operator, kind, tuple(node_of(each) for each in operation.operands))

    def _leaf(self, reference: Reference) -> str:
        (sort, _), *_ = reference
        kind, subject = self.leaf(reference)
        return self.nodes.add(sort, kind, (), subject)
