"""One side of a comparison: the decisions of a version for some customers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from pipelines.decisions.backtest import causes
from pipelines.decisions.backtest.tallies import empty_tally
from pipelines.decisions.evaluate import MONEY, OUTCOME, rule_column, step_column
from pipelines.decisions.plan import Plan, PlannedLimit
from pipelines.decisions.policy import INDETERMINATE
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tallies import Tallies

UNDECIDABLE = "?"  # after the code of a rule that could not be decided

DECISIONS = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "outcome": OUTCOME,
        "step": pl.String(),  # the step that decided or was undecidable; null: none
        "decisive": pl.List(pl.String()),  # codes of its rules that decided, or that were undecidable
        "results": pl.List(pl.String()),  # codes of all rules that matched or were undecidable, in any step
    }
)
LIMITS = pl.Schema({"customer_number": pl.Int64(), "product": pl.String(), "amount": MONEY})  # null: indeterminate


@dataclass(frozen=True)
class Side:
    """One side's results for some customers: DECISIONS, LIMITS, and tallies without `as_of` and `side`."""

    decisions: pl.DataFrame
    limits: pl.DataFrame
    tallies: Tallies


def decide(plan: Plan, evaluated: pl.DataFrame) -> Side:
    """Return a version's results for the customers in a frame of `evaluate.evaluate_plan`."""
    return Side(
        evaluated.select(
            BY_CUSTOMER,
            "outcome",
            _step_names(plan).alias("step"),
            _codes(_results_of_deciding_rules(plan)).alias("decisive"),
            _codes(_results(plan)).alias("results"),
        ),
        _long_limits(plan, evaluated),
        {
            "steps": _count_steps(plan, evaluated),
            "rules": _count_rules(plan, evaluated),
            "causes": pl.concat(_count_causes(plan, evaluated)),
        },
    )


def _step_names(plan: Plan) -> pl.Expr:
    names = {nth: planned.step.name for nth, planned in enumerate(plan.steps)}
    return pl.col("step").replace_strict(names, default=None, return_dtype=pl.String)


Named = Iterator[tuple[str, pl.Expr]]  # a rule's code, and its result: true, false, or null (undecidable)


def _results(plan: Plan) -> Named:
    for nth, planned in enumerate(plan.steps):
        for place, each in enumerate(planned.rules):
            yield each.rule.code, pl.col(rule_column(nth, place))


def _results_of_deciding_rules(plan: Plan) -> Named:
    undecided = pl.col("outcome") == INDETERMINATE
    for nth, planned in enumerate(plan.steps):
        at_step = (pl.col("step") == nth).fill_null(value=False)
        for place, each in enumerate(planned.rules):
            result = pl.col(rule_column(nth, place))
            counts = at_step & pl.when(undecided).then(result.is_null()).otherwise(result.fill_null(value=False))
            yield each.rule.code, pl.when(counts).then(result).otherwise(pl.lit(value=False))


def _codes(results: Named) -> pl.Expr:
    parts = [
        pl.when(result.is_null()).then(pl.lit(code + UNDECIDABLE)).when(result).then(pl.lit(code))
        for code, result in results
    ]
    return pl.concat_list(parts).list.drop_nulls() if parts else pl.lit([], pl.List(pl.String()))


def _long_limits(plan: Plan, evaluated: pl.DataFrame) -> pl.DataFrame:
    each = (
        evaluated.select(BY_CUSTOMER, product=pl.lit(planned.limit.product), amount=pl.col(f"amount_{nth}"))
        for nth, planned in enumerate(plan.limits)
    )
    return pl.concat([pl.DataFrame(schema=LIMITS), *each])


def _count_steps(plan: Plan, evaluated: pl.DataFrame) -> pl.DataFrame:
    """Count customers by step. A customer reaches a step if no earlier step decided or was undecidable."""
    at = pl.col("step")
    parts = [
        evaluated.select(
            place=pl.lit(nth, pl.Int64),
            step=pl.lit(planned.step.name),
            reached=(at.is_null() | (at >= nth)).sum().cast(pl.Int64),
            decided=((at == nth) & pl.col(step_column(nth)).fill_null(value=False)).sum().cast(pl.Int64),
            undecidable=((at == nth) & pl.col(step_column(nth)).is_null()).sum().cast(pl.Int64),
        )
        for nth, planned in enumerate(plan.steps)
    ]
    return pl.concat([empty_tally("steps"), *parts])


def _count_rules(plan: Plan, evaluated: pl.DataFrame) -> pl.DataFrame:
    """Count each rule's results over all customers; only `decisive` depends on whether its step was reached."""
    decisive = iter(_results_of_deciding_rules(plan))
    parts = [
        evaluated.select(
            place=pl.lit(nth, pl.Int64),
            step=pl.lit(planned.step.name),
            code=pl.lit(each.rule.code),
            matched=pl.col(rule_column(nth, place)).sum().cast(pl.Int64),
            decisive=next(decisive)[1].sum().cast(pl.Int64),
            undecidable=pl.col(rule_column(nth, place)).is_null().sum().cast(pl.Int64),
        )
        for nth, planned in enumerate(plan.steps)
        for place, each in enumerate(planned.rules)
    ]
    return pl.concat([empty_tally("rules"), *parts])


def _count_causes(plan: Plan, evaluated: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Count why verdicts are indeterminate and, for customers with a verdict, why limits are."""
    undecided = evaluated.filter(pl.col("outcome") == INDETERMINATE)
    yield _label_product(None, causes.count_missing(plan, undecided, _blocking_conditions(plan)))
    for nth, planned in enumerate(plan.limits):
        without_amount = evaluated.filter(pl.col("outcome") != INDETERMINATE, pl.col(f"amount_{nth}").is_null())
        yield _label_product(
            planned.limit.product, causes.count_missing(plan, without_amount, _needed_for_limit(planned))
        )


def _blocking_conditions(plan: Plan) -> Mapping[str, pl.Expr]:
    """Return the conditions that are unknown in the step that stays undecided, each with the customers concerned."""
    needed: dict[str, pl.Expr] = {}
    for nth, planned in enumerate(plan.steps):
        for place, each in enumerate(planned.rules):
            blocked = (pl.col("step") == nth).fill_null(value=False) & pl.col(rule_column(nth, place)).is_null()
            needed[each.condition] = needed.get(each.condition, pl.lit(value=False)) | blocked
    return needed


def _needed_for_limit(planned: PlannedLimit) -> Mapping[str, pl.Expr]:
    """Return the nodes that a limit needs, each for all customers."""
    return dict.fromkeys(planned.required_nodes, pl.lit(value=True))


def _label_product(product: str | None, counts: pl.DataFrame) -> pl.DataFrame:
    return counts.select(pl.lit(product, pl.String).alias("about"), *causes.MISSING)
