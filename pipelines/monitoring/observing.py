"""Evaluate rulesets, all customers and rules at once: which conditions hold for which customers, and what they read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

import numpy as np
import polars as pl

from pipelines.decisions.decision import compute_metrics
from pipelines.decisions.evaluate import evaluate_nodes
from pipelines.decisions.readings import Attributes, column_of, read_leaves
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics import cause_of
from pipelines.monitoring.baselines import compute_baseline
from pipelines.monitoring.describing import describe_firing
from pipelines.monitoring.planning import MonitoringPlan, PlannedRuleset
from pipelines.monitoring.transitions import OUTCOMES, STATE

UNAVAILABLE = pl.Schema({**STATE, "kind": pl.String(), "name": pl.String(), "cause": pl.String()})
"""A row for each value that an unknown condition reads and that is unavailable."""


def compute_figures(
    plan: MonitoringPlan, facts: Facts, customers: Iterable[int], attributes: Attributes, now: datetime
) -> pl.DataFrame:
    """Return the metrics and baseline metrics of the customers in the facts and of `customers`: a row each, sorted.

    Columns: `customer_number`; each metric's and baseline metric's value, by its name in the plan, and cause, by
    `cause_of`; and each baseline's day.
    """
    current = compute_metrics(facts, plan.metrics, customers)
    at_baselines = [compute_baseline(each, facts, current[BY_CUSTOMER], attributes, now) for each in plan.baselines]
    return pl.concat([current, *(each.drop(BY_CUSTOMER) for each in at_baselines)], how="horizontal")


def observe_customers(plan: MonitoringPlan, facts: Facts, attributes: Attributes, now: datetime) -> "Observations":
    """Evaluate the customers in the facts and those in `attributes`, even if their attributes are empty."""
    return observe_figures(plan, compute_figures(plan, facts, attributes, attributes, now), attributes, now)


def observe_figures(
    plan: MonitoringPlan, figures: pl.DataFrame, attributes: Attributes, now: datetime
) -> "Observations":
    """Evaluate customers whose figures were computed before."""
    days = figures.select(each.day for each in plan.baselines)
    evaluated = evaluate_nodes(plan, read_leaves(plan, figures, attributes, {}, now))
    return Observations(plan, pl.concat([evaluated, days], how="horizontal"))


@dataclass(frozen=True, eq=False)
class Observations:
    """Evaluated customers.

    `evaluated`: a row for each customer, sorted; a column for each node and reading, named as by
    `readings.read_leaves`.
    """

    plan: MonitoringPlan
    evaluated: pl.DataFrame

    @cached_property
    def outcomes(self) -> pl.DataFrame:
        """OUTCOMES, sorted: each customer's rules of rulesets that apply to the customer and aren't muted."""
        rules = self.plan.rules
        is_evaluated = self._evaluated_rulesets[:, [self._ruleset_columns[ruleset_id] for ruleset_id, _ in rules]]
        customer, rule = np.nonzero(is_evaluated)
        holds = pl.Series(self._results[customer, rule])
        return pl.DataFrame(
            {
                BY_CUSTOMER: self.evaluated[BY_CUSTOMER].gather(customer),
                "ruleset_id": pl.Series([each.bytes for each, _ in rules], dtype=pl.Binary).gather(rule),
                "rule": pl.Series([code for _, code in rules], dtype=pl.String).gather(rule),
                "holds": holds.replace_strict({0: False, 1: True}, default=None, return_dtype=pl.Boolean),
            }
        ).cast(OUTCOMES)

    @cached_property
    def causes(self) -> pl.DataFrame:
        """UNAVAILABLE, sorted: the values that keep conditions unknown."""
        parts = [
            self._find_unavailable(nth, ruleset_id, code)
            for nth, (ruleset_id, code) in enumerate(self.plan.rules)
            if (self._results[:, nth] == _UNKNOWN).any()
        ]
        return pl.concat([UNAVAILABLE.to_frame(), *(each for of_rule in parts for each in of_rule)]).sort(
            UNAVAILABLE.names()
        )

    def describe_firings(self, customer_number: int, ruleset_id: UUID, rules: Sequence[str]) -> dict[str, Any]:
        """Return for each of the rules its report, the values that its condition read, and the comparisons.

        Decimals are exact.
        """
        planned = self.plan.rulesets[ruleset_id]
        row = self._select_columns(planned).row(self._customer_rows[customer_number], named=True)
        return {"rules": [describe_firing(self.plan, planned, planned.rules[code], row) for code in rules]}

    @cached_property
    def _ruleset_columns(self) -> Mapping[UUID, int]:
        return {ruleset_id: place for place, ruleset_id in enumerate(self.plan.rulesets)}

    @cached_property
    def _customer_rows(self) -> Mapping[int, int]:
        return {number: row for row, number in enumerate(self.evaluated[BY_CUSTOMER].to_list())}

    @cached_property
    def _frames_of_rulesets(self) -> dict[UUID, pl.DataFrame]:
        return {}

    def _select_columns(self, planned: PlannedRuleset) -> pl.DataFrame:
        """Return only the columns that the ruleset's rules read, because a row with all columns would be long."""
        ruleset_id = planned.source.ruleset_id
        if ruleset_id not in self._frames_of_rulesets:
            nodes = {node.name: node for rule in planned.rules.values() for node in self.plan.below(rule.condition)}
            leaves = [column_of(node) for node in nodes.values() if node.is_leaf]
            days = [each.day for each in self.plan.baselines]
            self._frames_of_rulesets[ruleset_id] = self.evaluated.select(*nodes, *leaves, *map(cause_of, leaves), *days)
        return self._frames_of_rulesets[ruleset_id]

    @cached_property
    def _results(self) -> "np.ndarray[Any, np.dtype[np.int8]]":
        """A row for each customer, a column for each rule: 1, 0 or `_UNKNOWN`."""
        conditions = [self.plan.rulesets[ruleset_id].rules[code].condition for ruleset_id, code in self.plan.rules]
        numbered = (pl.col(each).cast(pl.Int8).fill_null(_UNKNOWN) for each in conditions)
        return self.evaluated.select(each.alias(str(nth)) for nth, each in enumerate(numbered)).to_numpy()

    @cached_property
    def _evaluated_rulesets(self) -> "np.ndarray[Any, np.dtype[np.bool_]]":
        """A row for each customer, a column for each ruleset: whether it is evaluated."""
        expressions = (_is_evaluated(planned) for planned in self.plan.rulesets.values())
        return self.evaluated.select(each.alias(str(nth)) for nth, each in enumerate(expressions)).to_numpy()

    def _find_unavailable(self, nth: int, ruleset_id: UUID, code: str) -> Iterable[pl.DataFrame]:
        planned = self.plan.rulesets[ruleset_id]
        is_unknown = self._evaluated_rulesets[:, self._ruleset_columns[ruleset_id]] & (
            self._results[:, nth] == _UNKNOWN
        )
        rows = self.evaluated.filter(pl.Series(is_unknown))
        for leaf in self.plan.leaves_below(planned.rules[code].condition):
            yield rows.filter(pl.col(leaf.name).is_null()).select(
                pl.col(BY_CUSTOMER).cast(pl.Int64),
                ruleset_id=pl.lit(ruleset_id.bytes),
                rule=pl.lit(code),
                kind=pl.lit(leaf.operator),
                name=pl.lit(planned.name_leaf(leaf)),
                cause=pl.col(cause_of(column_of(leaf))),
            )


_UNKNOWN = -1


def _is_evaluated(planned: PlannedRuleset) -> pl.Expr:
    """Return whether a ruleset applies and is not muted. An unknown condition neither applies nor mutes."""
    listed, every_customer = planned.source.customers, pl.repeat(value=True, n=pl.len())
    applies = every_customer if listed is None else pl.col(BY_CUSTOMER).is_in(sorted(listed))
    if planned.where is not None:
        applies = pl.col(planned.where).fill_null(value=False)
    return applies if planned.muted is None else applies & ~pl.col(planned.muted).fill_null(value=False)
