"""Count why values are unknown, for many customers at once: `unsettled.find_missing`, counted.

The search goes down from the unknown values, level by level, to leaves without a reading, and to calculations that have
no result although all their operands are known.
"""

from collections.abc import Iterator, Mapping

import polars as pl

from pipelines.decisions.nodes import Node
from pipelines.decisions.numbers import constant
from pipelines.decisions.plan import Plan
from pipelines.decisions.readings import column_of
from pipelines.metrics import cause_of
from pipelines.metrics.outcome import DIVISION_BY_ZERO, OVERFLOW

MISSING = pl.Schema(
    {
        "node": pl.String(),
        "operator": pl.String(),
        "name": pl.String(),  # the name of the leaf; null for a calculation
        "cause": pl.String(),
        "customers": pl.Int64(),
    }
)


def count_missing(plan: Plan, evaluated: pl.DataFrame, needed: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """Count how many customers lack which value, and why (MISSING).

    Args:
        evaluated: a frame of `evaluate.evaluate_plan`.
        needed: nodes whose values are needed, by name, each with the customers that need it (Boolean, never null).
    """
    marked = _mark_unknown(plan, evaluated, needed)
    counts = (_by_cause(marked.filter(missing), node, cause) for node, missing, cause in _ends_of_search(plan))
    return pl.concat([pl.DataFrame(schema=MISSING), *counts])


def _mark_unknown(plan: Plan, evaluated: pl.DataFrame, needed: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """Add a column for each node, from the top down: whether its value is needed and unknown."""
    above = {name: list[pl.Expr]() for name in plan.nodes}
    for name, customers in needed.items():
        above[name].append(customers)
    for node in plan.nodes.values():
        for operand, counts in zip(node.operands, _conditions_of_relevance(node), strict=True):
            above[operand].append(pl.col(_unknown_column(node.name)) & counts)
    frame = evaluated
    for level in reversed(plan.levels):
        frame = frame.with_columns(
            (pl.any_horizontal([pl.lit(value=False), *above[node.name]]) & pl.col(node.name).is_null()).alias(
                _unknown_column(node.name)
            )
            for node in level
        )
    return frame


def _conditions_of_relevance(node: Node) -> Iterator[pl.Expr]:
    """Yield for each operand the customers for whom it matters.

    The first operand of tiers is the value that chooses the band, and matters to all. The others are the bands' values,
    and only the chosen one matters.
    """
    if node.operator != "tiers":
        yield from (pl.lit(value=True) for _ in node.operands)
        return
    placed = pl.col(node.operands[0])
    below = [placed < constant(bound) for bound in node.subject]
    before = [pl.lit(value=False), *below]
    yield pl.lit(value=True)
    for passed, inside in zip(before, [*below, pl.lit(value=True)], strict=True):
        yield (placed.is_not_null() & ~passed & inside).fill_null(value=False)


def _ends_of_search(plan: Plan) -> Iterator[tuple[Node, pl.Expr, pl.Expr]]:
    """Yield the nodes where the search may end, with the customers for whom it does, and the cause."""
    for node in plan.nodes.values():
        unknown = pl.col(_unknown_column(node.name))
        if node.is_leaf:
            yield node, unknown, pl.col(cause_of(column_of(node)))
        elif node.operands and node.operator != "tiers":  # tiers are unknown only if one of their operands is
            known = pl.all_horizontal(pl.col(each).is_not_null() for each in node.operands)
            yield node, unknown & known, _own_cause(node)


def _own_cause(node: Node) -> pl.Expr:
    if node.operator != "divide":
        return pl.lit(OVERFLOW)
    return pl.when(pl.col(node.operands[1]) == 0).then(pl.lit(DIVISION_BY_ZERO)).otherwise(pl.lit(OVERFLOW))


def _by_cause(lacking: pl.DataFrame, node: Node, cause: pl.Expr) -> pl.DataFrame:
    counts = lacking.with_columns(cause=cause).group_by("cause").len("customers")
    described = counts.with_columns(
        node=pl.lit(node.name), operator=pl.lit(node.operator), name=pl.lit(node.label if node.is_leaf else None)
    )
    return described.select(pl.col(name).cast(kind) for name, kind in MISSING.items())


def _unknown_column(name: str) -> str:
    return f"unknown {name}"  # node names have no space, so the columns can't collide
