"""Evaluate a plan: one column per node, level by level, for one customer or a million; then steps, then limits.

Logic is three-valued (Kleene's): a condition is unknown unless its known parts determine it. Evaluation never raises
because of a customer's data.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce

import polars as pl

from pipelines.decisions.nodes import LEAVES, Graph, Node
from pipelines.decisions.numbers import ARITHMETIC, COMPARISONS, NUMBER, constant, in_bands, round_down
from pipelines.decisions.plan import Plan, PlannedCap, PlannedLimit, PlannedStep
from pipelines.decisions.policy import INDETERMINATE, OUTCOMES, Limit
from pipelines.decisions.readings import MAX_CACHED, column_of
from pipelines.vocabulary.checkpoints import checkpoint
from pipelines.vocabulary.plans import AS_WRITTEN

OUTCOME = pl.Enum([*OUTCOMES, INDETERMINATE])
MONEY = pl.Decimal(38, 2)

Columns = Sequence[pl.Expr]
CACHED_PLANS = 256  # whose columns are cached: as many plans as the API caches (our judgement)

ENGINE_VERSION = 1  # increase it with every change that can alter an outcome or a limit


def evaluate_plan(plan: Plan, readings: pl.DataFrame) -> pl.DataFrame:
    """Add the columns of nodes, rules, steps, the outcome and limits to readings.

    Args:
        readings: `readings.read_leaves`, one row per customer.

    Returns:
        The same rows with each node's column by its name; `rule_<step>_<rule>` (Boolean: counted as matched; null:
        undecidable); `step_<step>`; `outcome`; `step` (UInt32: the deciding or undecidable step, from 0; null: no step
        decided); and for each limit `amount_<n>` (MONEY; null: indeterminate), `uncapped_<n>` (MONEY; null: not capped)
        and `capped_<n>`.
    """
    return _add(readings, _columns(plan))


def evaluate_nodes(graph: Graph, readings: pl.DataFrame) -> pl.DataFrame:
    """Add each node's column, by its name, to readings (`readings.read_leaves`)."""
    return _add(readings, map(_level, graph.levels))


def _add(readings: pl.DataFrame, groups: Iterable[Columns]) -> pl.DataFrame:
    """Add groups of columns, one after the other, in one query: its overhead is as large as the cost of a group.

    The query is executed as written: every column is needed, so optimising it would take time for nothing.
    """
    checkpoint()
    added = reduce(pl.LazyFrame.with_columns, groups, readings.lazy())
    return added.select(pl.exclude("^limit .*$")).collect(engine="in-memory", optimizations=AS_WRITTEN)


@lru_cache(CACHED_PLANS)
def _columns(plan: Plan) -> tuple[Columns, ...]:
    """Return the columns of a plan in groups. A group reads only columns of the groups before it."""
    return (
        *map(_level, plan.levels),
        list(_rules(plan)),
        [_step_matches(nth, step) for nth, step in enumerate(plan.steps)],
        [_outcome(plan).alias("outcome"), _step(plan).alias("step")],
        [each for nth, planned in enumerate(plan.limits) for each in _work_out(nth, planned)],
        [each for nth, planned in enumerate(plan.limits) for each in _offer(nth, planned.limit)],
    )


def _level(nodes: Iterable[Node]) -> Columns:
    return [_value(node).alias(node.name) for node in nodes]


@lru_cache(MAX_CACHED)
def _value(node: Node) -> pl.Expr:
    operands = [pl.col(each) for each in node.operands]
    if node.operator in ARITHMETIC:
        return ARITHMETIC[node.operator](operands)
    if node.operator in COMPARISONS:
        return COMPARISONS[node.operator](*operands)
    return _OTHERS[node.operator](node, operands)


_OTHERS: Mapping[str, Callable[[Node, list[pl.Expr]], pl.Expr]] = {
    **dict.fromkeys(LEAVES, lambda node, _: pl.col(column_of(node))),
    "constant": lambda node, _: constant(node.label),
    "tiers": lambda node, operands: in_bands(operands, node.subject),
    "between": lambda _, operands: (operands[0] >= operands[1]) & (operands[0] <= operands[2]),
    "one_of": lambda node, operands: operands[0].is_in(node.subject),
    "is_true": lambda _, operands: operands[0],
    "is_known": lambda _, operands: operands[0].is_not_null(),
    "all": lambda _, operands: pl.all_horizontal(operands),
    "any": lambda _, operands: pl.any_horizontal(operands),
    "not": lambda _, operands: ~operands[0],
}


def _rules(plan: Plan) -> Iterator[pl.Expr]:
    for nth, step in enumerate(plan.steps):
        for place, planned in enumerate(step.rules):
            holds = pl.col(planned.condition)
            counts_as = planned.rule.when_unknown
            counted = holds if counts_as is None else holds.fill_null(counts_as)
            yield counted.alias(rule_column(nth, place))


def _step_matches(nth: int, planned: PlannedStep) -> pl.Expr:
    rules = [pl.col(rule_column(nth, place)) for place in range(len(planned.rules))]
    together = pl.any_horizontal if planned.step.match == "any" else pl.all_horizontal
    return together(rules).alias(step_column(nth))


def _outcome(plan: Plan) -> pl.Expr:
    """Return the outcome of the first step that isn't false; indeterminate if that step is unknown."""
    outcome = pl.lit(plan.policy.default_outcome, OUTCOME)
    for nth, planned in reversed(list(enumerate(plan.steps))):
        matched = pl.col(step_column(nth))
        undecidable = pl.when(matched.is_null()).then(pl.lit(INDETERMINATE, OUTCOME))
        outcome = undecidable.when(matched).then(pl.lit(planned.step.outcome, OUTCOME)).otherwise(outcome)
    return outcome


def _step(plan: Plan) -> pl.Expr:
    step = pl.lit(None, pl.UInt32)
    for nth in reversed(range(len(plan.steps))):
        step = pl.when(pl.col(step_column(nth)).fill_null(value=True)).then(pl.lit(nth, pl.UInt32)).otherwise(step)
    return step


def _work_out(nth: int, planned: PlannedLimit) -> Iterator[pl.Expr]:
    """Yield the columns that `_offer` reads."""
    yield _at_least_zero(pl.col(planned.amount)).alias(_working_column("wanted", nth))
    yield _at_least_zero(_lowest_cap(planned.caps)).alias(_working_column("ceiling", nth))
    yield pl.all_horizontal(pl.col(each).is_not_null() for each in planned.required_nodes).alias(
        _working_column("is_known", nth)
    )
    yield (pl.col("outcome") != INDETERMINATE).alias(_working_column("is_decided", nth))
    yield pl.col("outcome").is_in(planned.limit.outcomes).alias(_working_column("is_offered", nth))


def _offer(nth: int, limit: Limit) -> Iterator[pl.Expr]:
    """Yield `amount_<n>`, `uncapped_<n>` and `capped_<n>`."""
    wanted, ceiling, known, is_decided, is_offered = (pl.col(_working_column(name, nth)) for name in _WORKING)
    is_known = is_decided & known
    is_capped = is_known & is_offered & (ceiling < wanted).fill_null(value=False)
    given = _round_limit(pl.min_horizontal(wanted, ceiling), limit)
    nothing = pl.when(is_decided & ~is_offered).then(constant("0"))
    yield nothing.when(is_known).then(given).cast(MONEY).alias(f"amount_{nth}")
    yield pl.when(is_capped).then(round_down(wanted, "0.01")).cast(MONEY).alias(f"uncapped_{nth}")
    yield is_capped.alias(f"capped_{nth}")


_WORKING = ("wanted", "ceiling", "is_known", "is_decided", "is_offered")


def _working_column(name: str, nth: int) -> str:
    """Return the name of a working column of a limit. With spaces, so that no other column has it."""
    return f"limit {nth} {name}"


def _at_least_zero(value: pl.Expr) -> pl.Expr:
    """Raise negative values to zero; null stays null."""
    return value.clip(lower_bound=constant("0"))


def _lowest_cap(caps: Sequence[PlannedCap]) -> pl.Expr:
    """Return the lowest known cap; null if none is known."""
    return pl.min_horizontal([pl.lit(None, NUMBER), *(pl.col(cap.value) for cap in caps)])


def _round_limit(value: pl.Expr, limit: Limit) -> pl.Expr:
    rounded = round_down(value, limit.round_down_to)
    return pl.when(rounded >= constant(limit.minimum)).then(rounded).otherwise(constant("0"))


def rule_column(step: int, place: int) -> str:
    return f"rule_{step}_{place}"


def step_column(step: int) -> str:
    return f"step_{step}"
