"""How far a decision is from another: of each number that it read the nearest value that changes the outcome, of one
that has no value what it would have to be for each other outcome.

Everything else stays as it is: a metric made of others moves alone. The search is exact: a range of values that surely
keeps the outcome (`enclosures`) is left behind at once, any other is halved, the nearer half first. What it finds is
confirmed by evaluating, on both sides of the step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import gcd

import polars as pl

from pipelines.decisions.enclosures import MOST, ONE, Found, Range, depending, fixed, outcomes
from pipelines.decisions.evaluate import evaluated
from pipelines.decisions.nodes import Node
from pipelines.decisions.numbers import NUMBER, as_number, units
from pipelines.decisions.plan import Plan, every_metric
from pipelines.decisions.policy import INDETERMINATE, OUTCOMES, Policy
from pipelines.decisions.readings import column_of
from pipelines.metrics import Metrics, cause_of
from pipelines.metrics.definition import Arithmetic, Balances, Groups, History, Transactions
from pipelines.vocabulary.checkpoints import checkpoint

MOST_STEPS = 500_000  # operands and rules that one search for all leaves may look at: a second or two
_EVERY_OUTCOME = frozenset((*OUTCOMES, INDETERMINATE))
_CENT = ONE // 100
_UNITS_OF_METRIC = ONE // 10_000  # metrics have four places
_COUNTS = frozenset(("count", "distinct", "days_since", "days_below", "days_beyond_limit"))
_OF_CENTS = frozenset(("sum", "min", "max", "last", "monthly_min"))  # sums of cents, or one of them


@dataclass(frozen=True)
class Change:
    """The nearest value at which the outcome is another."""

    value: Decimal
    outcome: str


@dataclass(frozen=True)
class Sensitivity:
    """Of one leaf: its value (null: it has none), and the changes `below` and `above` it. Where there is no value,
    `changes`: for each other outcome that it can bring about the value nearest to zero, the nearest first. `complete`:
    what isn't told isn't there; else the search was given up.
    """

    node: Node
    value: Decimal | None
    below: Change | None = None
    above: Change | None = None
    changes: tuple[Change, ...] = ()
    complete: bool = True

    @property
    def described(self) -> Sequence[Change]:
        return [*(each for each in (self.below, self.above) if each is not None), *self.changes]

    @property
    def nearest(self) -> Change | None:
        """Of the value, or of zero where there is none."""
        return min(self.described, key=lambda each: abs(each.value - (self.value or 0)), default=None)


@dataclass(frozen=True)
class Axis:
    """A leaf, and the values that it is to have."""

    node: Node
    values: Sequence[Decimal]


class _GivenUp(Exception):
    """The search took too long."""


def numeric_leaves(plan: Plan) -> list[Node]:
    return [node for node in plan.nodes.values() if node.is_leaf and node.kind == "decimal"]


def sensitivities(plan: Plan, readings: pl.DataFrame, most_steps: int = MOST_STEPS) -> list[Sensitivity]:
    """Of each number that the plan reads, in the document's order.

    Args:
        readings: one customer's row of `readings.read`.
    """
    row = evaluated(plan, readings).row(0, named=True)
    search = _Search(plan, row, most_steps)
    return _confirmed(plan, readings, row["outcome"], [search.of(node) for node in numeric_leaves(plan)])


def grid(plan: Plan, readings: pl.DataFrame, across: Axis, down: Axis) -> pl.DataFrame:
    """`evaluated` of one customer for all values of two leaves, row by row of the grid."""
    pairs = [(x, y) for y in down.values for x in across.values]
    given = {across.node.name: [x for x, _ in pairs], down.node.name: [y for _, y in pairs]}
    leaves = {axis.node.name: axis.node for axis in (across, down)}
    return evaluated(plan, _with(readings, [(leaves[name], given[name]) for name in leaves], len(pairs)))


class _Search:
    """From one evaluation, outwards, leaf by leaf."""

    def __init__(self, plan: Plan, row: dict[str, object], most_steps: int) -> None:
        self._plan = plan
        self._row = row
        self._fixed = fixed(plan, row)
        self._found: Found = {}  # the same, with what one leaf moves
        self._rules = sum(len(step.rules) for step in plan.steps)
        self._left = most_steps

    def of(self, node: Node) -> Sensitivity:
        value = self._row[node.name]
        known = value if isinstance(value, Decimal) else None
        moving = depending(self._plan, node.name)
        self._found = dict(self._fixed)
        try:
            return self._of_unknown(node, moving) if known is None else self._of_known(node, moving, known)
        except _GivenUp:
            return Sensitivity(node, known, complete=False)

    def _of_known(self, node: Node, moving: Sequence[Node], value: Decimal) -> Sensitivity:
        below, above = (self._nearest(node, moving, units(value), sign, self._others) for sign in (-1, 1))
        return Sensitivity(node, value, below, above)

    def _of_unknown(self, node: Node, moving: Sequence[Node]) -> Sensitivity:
        """On both sides of zero, that itself included."""
        step = _step(self._plan.policy, node)
        starts = ((-step, 1), (step, -1))
        sides = [
            [self._nearest(node, moving, start, sign, frozenset((outcome,))) for start, sign in starts]
            for outcome in self._others
        ]
        nearest = (min(filter(None, changes), key=_size, default=None) for changes in sides)
        return Sensitivity(node, None, changes=tuple(sorted(filter(None, nearest), key=_size)))

    @property
    def _others(self) -> frozenset[str]:
        return _EVERY_OUTCOME - {self._row["outcome"]}

    def _nearest(
        self, node: Node, moving: Sequence[Node], start: int, sign: int, wanted: frozenset[str]
    ) -> Change | None:
        """The first value with one of the wanted outcomes, in steps outwards, on the grid of what the leaf can be."""
        step = _step(self._plan.policy, node)
        first = sign * (sign * start // step) * step  # on the grid, at the start or before it
        last = (MOST - sign * first) // step
        waiting = [(1, last)] if last > 0 else []
        while waiting:
            near, far = waiting.pop()
            found = self._outcomes(node, moving, _between(first + sign * near * step, first + sign * far * step))
            if not found & wanted:
                continue
            if near == far or found <= wanted:
                at = first + sign * near * step
                [outcome] = found if near == far else self._outcomes(node, moving, _between(at, at))
                return Change(as_number(at), outcome)
            middle = (near + far) // 2
            waiting += [(middle + 1, far), (near, middle)]
        return None

    def _outcomes(self, node: Node, moving: Sequence[Node], among: Range) -> frozenset[str]:
        checkpoint()
        self._left -= self._rules + sum(len(each.of) for each in moving)
        if self._left < 0:
            raise _GivenUp
        self._found[node.name] = among
        return outcomes(self._plan, self._found, moving)


def _between(one: int, other: int) -> Range:
    return Range(min(one, other), max(one, other))


def _size(change: Change) -> tuple[Decimal, bool, str]:
    """How far from zero; of two, what is above it, for most numbers are."""
    return abs(change.value), change.value < 0, change.outcome


def _step(policy: Policy, node: Node) -> int:
    """How close to each other two values of the leaf can be, in units."""
    return _step_of_metric(every_metric(policy), node.label) if node.operator == "metric" else 1


def _step_of_metric(metrics: Metrics, slug: str) -> int:
    """By what it is made of: how it is shown (`format`) says nothing of it."""
    match metrics[slug].definition:
        case History() | Groups():
            return ONE
        case Transactions(measure="rows", aggregate="sum"):
            return ONE
        case Transactions(aggregate=aggregate) | Balances(aggregate=aggregate) if aggregate in _COUNTS:
            return ONE
        case Transactions(aggregate=aggregate) | Balances(aggregate=aggregate) if aggregate in _OF_CENTS:
            return _CENT
        case Arithmetic(operation="add" | "subtract" | "min" | "max", operands=operands):
            return gcd(ONE, *(_step_of_operand(metrics, each) for each in operands))
        case _:
            return _UNITS_OF_METRIC


def _step_of_operand(metrics: Metrics, operand: str) -> int:
    """A constant is a multiple of itself."""
    return _step_of_metric(metrics, operand) if operand in metrics else units(Decimal(operand))


@dataclass(frozen=True)
class _Asked:
    """Whether a leaf's value comes to the outcome."""

    node: Node
    value: Decimal
    outcome: str
    expected: bool


def _confirmed(plan: Plan, readings: pl.DataFrame, outcome: str, found: list[Sensitivity]) -> list[Sensitivity]:
    """Only what evaluating says, too: the other outcome at the value, and not one step before it."""
    asked = [question for each in found for question in _questions(plan.policy, outcome, each)]
    leaves = {each.node.name: each.node for each in asked}
    columns = [
        (leaf, [each.value if each.node.name == name else None for each in asked]) for name, leaf in leaves.items()
    ]
    described = evaluated(plan, _with(readings, columns, len(asked)))["outcome"].to_list()
    pairs = zip(asked, described, strict=True)
    wrong = {each.node.name for each, at in pairs if (at == each.outcome) != each.expected}
    return [Sensitivity(each.node, each.value, complete=False) if each.node.name in wrong else each for each in found]


def _questions(policy: Policy, outcome: str, found: Sensitivity) -> Iterator[_Asked]:
    """Of each change; a step before it stands the outcome of today, or, without a value today, any but the change's."""
    node, step = found.node, as_number(_step(policy, found.node))
    for change in found.described:
        yield _Asked(node, change.value, change.outcome, expected=True)
    for change in found.changes:
        if change.value:
            before = change.value - step.copy_sign(change.value)
            yield _Asked(node, before, change.outcome, expected=False)
    if found.value is not None and found.below is not None:
        yield _Asked(node, min(found.below.value + step, found.value), outcome, expected=True)
    if found.value is not None and found.above is not None:
        yield _Asked(node, max(found.above.value - step, found.value), outcome, expected=True)


def _with(readings: pl.DataFrame, columns: Sequence[tuple[Node, Sequence[Decimal | None]]], rows: int) -> pl.DataFrame:
    """The row so many times, with other values of leaves in some; null: the one that it has."""
    repeated = readings.select(pl.all().gather([0] * rows))
    for node, values in columns:
        column, given = column_of(node), pl.Series(values, dtype=NUMBER)
        cause = pl.when(given.is_null()).then(cause_of(column))
        repeated = repeated.with_columns(pl.coalesce(given, column).alias(column), cause.alias(cause_of(column)))
    return repeated
