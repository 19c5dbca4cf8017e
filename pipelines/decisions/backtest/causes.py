"""What keeps values from being known, of many customers at once: `unsettled.missing`, counted.

The way goes down from what is unknown, level by level, to the leaves that have no reading, and to calculations that
came to nothing although all they need is there.
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
        "name": pl.String(),  # the leaf's; null: a calculation
        "cause": pl.String(),
        "customers": pl.Int64(),
    }
)


def counted(plan: Plan, evaluated: pl.DataFrame, asked: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """Customers' rows (`evaluate.evaluated`) → MISSING: how many of them lack what, and why.

    Args:
        asked: nodes whose value is wanted, by name, each with the customers of whom it is (Boolean, never null).
    """
    wanted = _wanted(plan, evaluated, asked)
    found = (_by_cause(wanted.filter(missing), node, cause) for node, missing, cause in _ends(plan))
    return pl.concat([pl.DataFrame(schema=MISSING), *found])


def _wanted(plan: Plan, evaluated: pl.DataFrame, asked: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """Beside each node's column one that says of whom it is asked and unknown; from the top down."""
    above = {name: list[pl.Expr]() for name in plan.nodes}
    for name, of_whom in asked.items():
        above[name].append(of_whom)
    for node in plan.nodes.values():
        for operand, counts in zip(node.of, _counting(node), strict=True):
            above[operand].append(pl.col(_asked(node.name)) & counts)
    frame = evaluated
    for level in reversed(plan.levels):
        frame = frame.with_columns(
            (pl.any_horizontal([pl.lit(value=False), *above[node.name]]) & pl.col(node.name).is_null()).alias(
                _asked(node.name)
            )
            for node in level
        )
    return frame


def _counting(node: Node) -> Iterator[pl.Expr]:
    """Of each operand, for whom it counts: of tiers the one that is placed, then the value of its band alone."""
    if node.operator != "tiers":
        yield from (pl.lit(value=True) for _ in node.of)
        return
    placed = pl.col(node.of[0])
    below = [placed < constant(bound) for bound in node.subject]
    before = [pl.lit(value=False), *below]
    yield pl.lit(value=True)
    for passed, inside in zip(before, [*below, pl.lit(value=True)], strict=True):
        yield (placed.is_not_null() & ~passed & inside).fill_null(value=False)


def _ends(plan: Plan) -> Iterator[tuple[Node, pl.Expr, pl.Expr]]:
    """Nodes where the way down ends: for whom, and why."""
    for node in plan.nodes.values():
        asked = pl.col(_asked(node.name))
        if node.is_leaf:
            yield node, asked, pl.col(cause_of(column_of(node)))
        elif node.of and node.operator != "tiers":  # of tiers the placed one or the chosen value is unknown
            yield node, asked & pl.all_horizontal(pl.col(each).is_not_null() for each in node.of), _own_cause(node)


def _own_cause(node: Node) -> pl.Expr:
    if node.operator != "divide":
        return pl.lit(OVERFLOW)
    return pl.when(pl.col(node.of[1]) == 0).then(pl.lit(DIVISION_BY_ZERO)).otherwise(pl.lit(OVERFLOW))


def _by_cause(lacking: pl.DataFrame, node: Node, cause: pl.Expr) -> pl.DataFrame:
    counted = lacking.with_columns(cause=cause).group_by("cause").len("customers")
    described = counted.with_columns(
        node=pl.lit(node.name), operator=pl.lit(node.operator), name=pl.lit(node.label if node.is_leaf else None)
    )
    return described.select(pl.col(name).cast(kind) for name, kind in MISSING.items())


def _asked(name: str) -> str:
    return f"asked {name}"
