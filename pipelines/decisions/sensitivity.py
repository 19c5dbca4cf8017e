"""How close a decision is to another outcome: for each number read, the nearest value that changes the outcome.

If the number has no value, the search finds for each other outcome the value nearest to zero that gives it. All other
readings stay as they are, even those that a metric is computed from. The search is exact: it skips a range of values
that can't change the outcome (`enclosures`), and halves any other range, the nearer half first. Each result is
confirmed by evaluating the policy at the value and one step before it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import gcd

import polars as pl

from pipelines.decisions.enclosures import (
    MAX_UNITS,
    ONE,
    NodeValues,
    Range,
    depending_nodes,
    fixed_values,
    possible_outcomes,
)
from pipelines.decisions.evaluate import evaluate_plan
from pipelines.decisions.nodes import Node
from pipelines.decisions.numbers import NUMBER, as_number, units
from pipelines.decisions.plan import Plan, every_metric
from pipelines.decisions.policy import INDETERMINATE, OUTCOMES, Policy
from pipelines.decisions.readings import column_of
from pipelines.metrics import Metrics, cause_of
from pipelines.metrics.definition import Arithmetic, Balances, Groups, History, Transactions
from pipelines.vocabulary.checkpoints import checkpoint

MAX_STEPS = 500_000  # operands and rules that one search over all leaves may visit: a second or two; our judgement
_EVERY_OUTCOME = frozenset((*OUTCOMES, INDETERMINATE))
_CENT = ONE // 100
_TEN_THOUSANDTH = ONE // 10_000  # metrics have four places
_COUNTS = frozenset(
    ("count", "distinct", "days_since", "days_below", "days_beyond_limit", "longest_short", "days_since_short")
)
_OF_CENTS = frozenset(("sum", "min", "max", "last", "monthly_min"))  # a sum of amounts in cents, or one of them


@dataclass(frozen=True)
class Change:
    """The nearest value that gives another outcome."""

    value: Decimal
    outcome: str


@dataclass(frozen=True)
class Sensitivity:
    """The sensitivity of the outcome to one leaf.

    `value`: None if the leaf has none. `below`, `above`: the nearest changes on each side of the value. `changes`: only
    without a value; for each other possible outcome, the value nearest to zero that gives it, the nearest first.
    `complete`: False if the search was given up, so that there may be other changes.
    """

    node: Node
    value: Decimal | None
    below: Change | None = None
    above: Change | None = None
    changes: tuple[Change, ...] = ()
    complete: bool = True

    @property
    def all_changes(self) -> Sequence[Change]:
        """All changes found."""
        return [*(each for each in (self.below, self.above) if each is not None), *self.changes]

    @property
    def nearest(self) -> Change | None:
        """The change nearest to the value, or to zero if there is no value."""
        return min(self.all_changes, key=lambda each: abs(each.value - (self.value or 0)), default=None)


@dataclass(frozen=True)
class Axis:
    """A leaf, and the values to evaluate it at."""

    node: Node
    values: Sequence[Decimal]


class _GivenUp(Exception):
    """The search took too long."""


def numeric_leaves(plan: Plan) -> list[Node]:
    return [node for node in plan.nodes.values() if node.is_leaf and node.kind == "decimal"]


def find_sensitivities(plan: Plan, readings: pl.DataFrame, most_steps: int = MAX_STEPS) -> list[Sensitivity]:
    """Return the sensitivity to each number that the plan reads, in the document's order.

    Args:
        readings: one customer's row of `readings.read_leaves`.
    """
    row = evaluate_plan(plan, readings).row(0, named=True)
    search = _Search(plan, row, most_steps)
    return _confirm(plan, readings, row["outcome"], [search.find_sensitivity(node) for node in numeric_leaves(plan)])


def evaluate_grid(plan: Plan, readings: pl.DataFrame, across: Axis, down: Axis) -> pl.DataFrame:
    """Return `evaluate_plan` for one customer and all pairs of two leaves' values, row by row of the grid."""
    pairs = [(x, y) for y in down.values for x in across.values]
    columns = [(across.node, [x for x, _ in pairs]), (down.node, [y for _, y in pairs])]
    return evaluate_plan(plan, repeat_with(readings, columns, len(pairs)))


class _Search:
    """Searches from one evaluation outwards, leaf by leaf."""

    def __init__(self, plan: Plan, row: dict[str, object], most_steps: int) -> None:
        self._plan = plan
        self._row = row
        self._fixed = fixed_values(plan, row)
        self._found: NodeValues = {}  # the same, updated for the leaf that varies
        self._rules = sum(len(step.rules) for step in plan.steps)
        self._left = most_steps

    def find_sensitivity(self, node: Node) -> Sensitivity:
        value = self._row[node.name]
        known = value if isinstance(value, Decimal) else None
        depending = depending_nodes(self._plan, node.name)
        self._found = dict(self._fixed)
        try:
            return (
                self._search_around_zero(node, depending)
                if known is None
                else self._search_around_value(node, depending, known)
            )
        except _GivenUp:
            return Sensitivity(node, known, complete=False)

    def _search_around_value(self, node: Node, depending: Sequence[Node], value: Decimal) -> Sensitivity:
        below, above = (self._nearest(node, depending, units(value), sign, self._other_outcomes) for sign in (-1, 1))
        return Sensitivity(node, value, below, above)

    def _search_around_zero(self, node: Node, depending: Sequence[Node]) -> Sensitivity:
        """Search on both sides of zero, including zero itself."""
        step = step_of(self._plan.policy, node)
        starts = ((-step, 1), (step, -1))
        sides = [
            [self._nearest(node, depending, start, sign, frozenset((outcome,))) for start, sign in starts]
            for outcome in self._other_outcomes
        ]
        nearest = (min(filter(None, changes), key=_size, default=None) for changes in sides)
        return Sensitivity(node, None, changes=tuple(sorted(filter(None, nearest), key=_size)))

    @property
    def _other_outcomes(self) -> frozenset[str]:
        return _EVERY_OUTCOME - {self._row["outcome"]}

    def _nearest(
        self, node: Node, depending: Sequence[Node], start: int, sign: int, wanted: frozenset[str]
    ) -> Change | None:
        """Return the first value outwards from `start` with a wanted outcome, among the values the leaf can have."""
        step = step_of(self._plan.policy, node)
        first = sign * (sign * start // step) * step  # a multiple of the step, at the start or before it
        last = (MAX_UNITS - sign * first) // step
        waiting = [(1, last)] if last > 0 else []  # ranges of steps from `first`, the nearest last
        while waiting:
            near, far = waiting.pop()
            found = self._outcomes(
                node, depending, _range_between(first + sign * near * step, first + sign * far * step)
            )
            if not found & wanted:
                continue
            if near == far or found <= wanted:
                at = first + sign * near * step
                [outcome] = found if near == far else self._outcomes(node, depending, _range_between(at, at))
                return Change(as_number(at), outcome)
            middle = (near + far) // 2
            waiting += [(middle + 1, far), (near, middle)]
        return None

    def _outcomes(self, node: Node, depending: Sequence[Node], among: Range) -> frozenset[str]:
        checkpoint()
        self._left -= self._rules + sum(len(each.operands) for each in depending)
        if self._left < 0:
            raise _GivenUp
        self._found[node.name] = among
        return possible_outcomes(self._plan, self._found, depending)


def _range_between(one: int, other: int) -> Range:
    return Range(min(one, other), max(one, other))


def _size(change: Change) -> tuple[Decimal, bool, str]:
    """Return the sort key: the distance from zero, positive values first, since most numbers are positive."""
    return abs(change.value), change.value < 0, change.outcome


def step_of(policy: Policy, node: Node) -> int:
    """Return the distance between neighbouring values of the leaf, in units."""
    return _step_of_metric(every_metric(policy), node.label) if node.operator == "metric" else 1


def _step_of_metric(metrics: Metrics, slug: str) -> int:
    """Return the distance between a metric's values, from its definition; its `format` only says how it is shown."""
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
            return _TEN_THOUSANDTH


def _step_of_operand(metrics: Metrics, operand: str) -> int:
    """Return the step of an operand. A constant is its own step."""
    return _step_of_metric(metrics, operand) if operand in metrics else units(Decimal(operand))


@dataclass(frozen=True)
class _Question:
    """Whether a leaf's value gives the outcome."""

    node: Node
    value: Decimal
    outcome: str
    expected: bool


def _confirm(plan: Plan, readings: pl.DataFrame, outcome: str, found: list[Sensitivity]) -> list[Sensitivity]:
    """Drop results that the engine doesn't confirm: the new outcome at the value, and not one step before it."""
    questions = [question for each in found for question in _questions(plan.policy, outcome, each)]
    answers = find_outcomes_at(plan, readings, [(each.node, each.value) for each in questions])
    pairs = zip(questions, answers, strict=True)
    wrong = {each.node.name for each, answer in pairs if (answer == each.outcome) != each.expected}
    return [Sensitivity(each.node, each.value, complete=False) if each.node.name in wrong else each for each in found]


def _questions(policy: Policy, outcome: str, found: Sensitivity) -> Iterator[_Question]:
    """Yield what to confirm for each change: its outcome at the value, and not yet one step nearer.

    If the leaf has a value today, one step nearer must give today's outcome; if not, any outcome but the change's.
    """
    node, step = found.node, as_number(step_of(policy, found.node))
    for change in found.all_changes:
        yield _Question(node, change.value, change.outcome, expected=True)
    for change in found.changes:
        if change.value:
            before = change.value - step.copy_sign(change.value)
            yield _Question(node, before, change.outcome, expected=False)
    if found.value is not None and found.below is not None:
        yield _Question(node, min(found.below.value + step, found.value), outcome, expected=True)
    if found.value is not None and found.above is not None:
        yield _Question(node, max(found.above.value - step, found.value), outcome, expected=True)


def find_outcomes_at(plan: Plan, readings: pl.DataFrame, points: Sequence[tuple[Node, Decimal]]) -> list[str]:
    """Return the outcome at each point: one leaf has this value, and all others stay as they are.

    Args:
        readings: one customer's row of `readings.read_leaves`.
    """
    leaves = {leaf.name: leaf for leaf, _ in points}
    columns = [
        (leaf, [value if moved.name == name else None for moved, value in points]) for name, leaf in leaves.items()
    ]
    return evaluate_plan(plan, repeat_with(readings, columns, len(points)))["outcome"].to_list()


def repeat_with(
    readings: pl.DataFrame, columns: Sequence[tuple[Node, Sequence[Decimal | None]]], rows: int
) -> pl.DataFrame:
    """Repeat the row, and replace the leaves' values; null leaves the value as it is."""
    repeated = readings.select(pl.all().gather([0] * rows))
    for node, values in columns:
        column, given = column_of(node), pl.Series(values, dtype=NUMBER)
        cause = pl.when(given.is_null()).then(cause_of(column))
        repeated = repeated.with_columns(pl.coalesce(given, column).alias(column), cause.alias(cause_of(column)))
    return repeated
