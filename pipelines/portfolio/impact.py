"""Compute what a change of the enrichment changes: categories, figures, ratings, decisions and monitoring matches.

`compare` compares the same customers' transactions before and after, such as under two releases, with and without a
client's own rules, or with two models. The caller supplies both frames, from stored rows or by enriching again, and
the policies and rulesets that decide on the customers. `merge` adds up the impacts on parts of a portfolio.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl

from pipelines import metrics
from pipelines.decisions import Attributes, Plan, Value, backtest, evaluate_plan
from pipelines.decisions.backtest import COMPARISON, KNOWN_OUTCOMES, Side, recorded
from pipelines.decisions.decision import compute_figures
from pipelines.figures.context import NO_CONTEXT, Context
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.monitoring import MonitoringPlan, observe_customers
from pipelines.reports import REPORTS
from pipelines.vocabulary.report_values import ratio
from pipelines.vocabulary.schemas import TRANSACTIONS, current

EXAMPLES = 20  # transactions shown: our judgement of what a person reads
_MONEY = pl.Decimal(38, 2)  # sums over a portfolio
_FIGURE = pl.Decimal(38, 4)

MOVED_PAIRS = pl.Schema(
    {
        "from": pl.String(),  # category
        "to": pl.String(),
        "count": pl.UInt32(),
        "dollars": _MONEY,  # AUD, sum of absolute amounts
    }
)
HEADLINES = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "report": pl.String(),
        "figure": pl.String(),
        "before": _FIGURE,
        "after": _FIGURE,
    }
)
SUMMED = pl.Schema(
    {
        "report": pl.String(),
        "figure": pl.String(),
        "customers": pl.UInt32(),  # whose figure changed
        "before": _FIGURE,  # the sum, or for scores and ratios the mean, over all compared customers with this figure
        "after": _FIGURE,
        "summed": pl.Boolean(),
    }
)
MOVED_ROWS = pl.Schema(
    {
        **{name: TRANSACTIONS[name] for name in ("customer_number", "transaction_id", "date", "description", "amount")},
        "from": pl.String(),
        "to": pl.String(),
        "from_source": TRANSACTIONS["category_source"],
        "to_source": TRANSACTIONS["category_source"],
    }
)
MOVED_CUSTOMERS = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "count": pl.UInt32(),  # rows with another category
        "dollars": _MONEY,  # AUD, sum of their absolute amounts
    }
)
RATINGS = pl.Schema({"customer_number": pl.Int64(), "before": pl.String(), "after": pl.String()})
DECISIONS = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "policy": pl.String(),  # slug
        **{name: COMPARISON[name] for name in ("change", "before", "after", "limits")},
    }
)
MATCHES = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "ruleset": pl.String(),  # slug
        "rule": pl.String(),
        "holds": pl.Boolean(),  # whether the rule's condition becomes true; otherwise it becomes false
    }
)
_KEY = ("customer_number", "transaction_id", "revision")
_FIGURE_KEY = ("customer_number", "report", "figure")


@dataclass(frozen=True, eq=False)
class TriedPolicy:
    """A published policy, and the inputs of each customer's last decision by it.

    For a customer without a decision, all inputs are unavailable.
    """

    slug: str
    plan: Plan
    inputs: Mapping[int, Mapping[str, Value]]  # by customer number


@dataclass(frozen=True, eq=False)
class Deciders:
    """The policies and rulesets that decide at the time `now` on the compared customers, all of one client."""

    now: datetime
    context: Context = NO_CONTEXT
    attributes: Attributes = field(default_factory=dict)
    policies: Sequence[TriedPolicy] = ()
    plan: MonitoringPlan | None = None  # of the client's active rulesets; None: it has none


NO_DECIDERS = Deciders(datetime.min.replace(tzinfo=UTC))


@dataclass(frozen=True)
class Impact:
    """The differences between two versions, for the customers and transactions that both have.

    `moved` (MOVED_PAIRS): most dollars first. `figures` (HEADLINES): all, changed or not. `examples` (MOVED_ROWS): the
    rows with the largest amounts. `rows`: transactions compared; `only_one`: transactions that only one version has.
    `of_customers` (MOVED_CUSTOMERS), `ratings` (RATINGS), `decisions` (DECISIONS), `matches` (MATCHES): what changes.
    """

    customers: int
    rows: int
    only_one: int
    moved: pl.DataFrame
    figures: pl.DataFrame
    examples: pl.DataFrame
    of_customers: pl.DataFrame
    ratings: pl.DataFrame
    decisions: pl.DataFrame
    matches: pl.DataFrame

    def changed_customers(self) -> list[int]:
        """Return the customers with a change: decisions first, then ratings, matches, and most dollars moved."""
        changes = (self.decisions, self.ratings, self.matches)
        marked = [each.select("customer_number").unique().with_columns(order=nth) for nth, each in enumerate(changes)]
        moved = self.of_customers.select("customer_number", "dollars", order=pl.lit(len(changes)))
        every = pl.concat([moved, *marked], how="diagonal")
        ranked = every.group_by("customer_number").agg(pl.col("order").min(), pl.col("dollars").max())
        order = ranked.sort("order", "dollars", "customer_number", descending=[False, True, False], nulls_last=True)
        return order["customer_number"].to_list()

    def changed_figures(self) -> pl.DataFrame:
        """Return the HEADLINES that differ."""
        return self.figures.filter(pl.col("before").ne_missing(pl.col("after")))

    def summed_figures(self) -> pl.DataFrame:
        """Return SUMMED over all customers: money and counts are added, scores and ratios averaged."""
        adds = pl.col("figure").is_in(_TOTALS)
        changed = pl.col("before").ne_missing(pl.col("after")).sum()
        return (
            self.figures.group_by("report", "figure", summed=adds)
            .agg(
                customers=changed, **{side: _aggregate_side(pl.col(side), adds.first()) for side in ("before", "after")}
            )
            .match_to_schema(SUMMED, integer_cast="upcast")
            .sort("report", "figure")
        )


def compare(before: pl.DataFrame, after: pl.DataFrame, as_of: date, deciders: Deciders = NO_DECIDERS) -> Impact:
    """Compare two versions of the same customers' transactions (schema TRANSACTIONS).

    Only transactions that both versions have are compared, because one may have submissions that the other lacks.

    Args:
        as_of: the day for which reports are computed, for both.
        deciders: what decides on the customers. Without it, only categories, figures and ratings are compared.
    """
    both = _find_common_keys(before, after)
    retained, renewed = (rows.join(both.select(_KEY), on=_KEY, how="semi") for rows in (before, after))
    compared = _current_pairs(retained, renewed)
    moved = compared.filter(pl.col("from").ne_missing(pl.col("to")))
    size = pl.col("amount").cast(_MONEY).abs()
    older, newer = (Facts(rows, as_of, deciders.context) for rows in (retained, renewed))
    figures, ratings = _compare_reports(older, newer)
    return Impact(
        customers=compared["customer_number"].n_unique(),
        rows=compared.height,
        only_one=_count_current(before) + _count_current(after) - 2 * compared.height,
        moved=_sort_by_dollars(moved.group_by("from", "to").agg(count=pl.len(), dollars=size.sum())),
        figures=figures,
        examples=_select_largest(moved.select(MOVED_ROWS.names())),
        of_customers=_combine(MOVED_CUSTOMERS, moved.group_by(BY_CUSTOMER).agg(count=pl.len(), dollars=size.sum())),
        ratings=ratings,
        decisions=compare_decisions(older, newer, deciders),
        matches=compare_matches(older, newer, deciders),
    )


def merge(impacts: Iterable[Impact]) -> Impact:
    """Add up the impacts on parts of the customers, such as buckets."""
    parts = list(impacts)
    moved = pl.concat([pl.DataFrame(schema=MOVED_PAIRS), *(part.moved for part in parts)])
    examples = pl.concat([pl.DataFrame(schema=MOVED_ROWS), *(part.examples for part in parts)])
    return Impact(
        customers=sum(part.customers for part in parts),
        rows=sum(part.rows for part in parts),
        only_one=sum(part.only_one for part in parts),
        moved=_sort_by_dollars(moved.group_by("from", "to").agg(pl.col("count").sum(), pl.col("dollars").sum())),
        figures=pl.concat([pl.DataFrame(schema=HEADLINES), *(part.figures for part in parts)]).sort(_FIGURE_KEY),
        examples=_select_largest(examples),
        of_customers=_combine(MOVED_CUSTOMERS, *(part.of_customers for part in parts)),
        ratings=_combine(RATINGS, *(part.ratings for part in parts)),
        decisions=_combine(DECISIONS, *(part.decisions for part in parts)),
        matches=_combine(MATCHES, *(part.matches for part in parts)),
    )


def _current_pairs(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Return the transactions that are current in both versions, with their two categories as `from` and `to`."""
    newer = after.filter(current()).select(*_KEY, to="category", to_source="category_source")
    older = before.filter(current()).rename({"category": "from", "category_source": "from_source"})
    return older.join(newer, on=_KEY, how="inner", validate="1:1")


def _find_common_keys(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    return before.filter(current()).select(_KEY).join(after.filter(current()), on=_KEY, how="semi")


def _count_current(rows: pl.DataFrame) -> int:
    return rows.filter(current()).height


def _sort_by_dollars(moved: pl.DataFrame) -> pl.DataFrame:
    cast = moved.select(pl.col(name).cast(kind) for name, kind in MOVED_PAIRS.items())
    return cast.sort("dollars", "count", "from", "to", descending=[True, True, False, False])


def _select_largest(moved: pl.DataFrame) -> pl.DataFrame:
    order = (pl.col("amount").abs(), "customer_number", "date", "transaction_id")
    return moved.sort(*order, descending=[True, False, False, False]).head(EXAMPLES)


def _combine(schema: pl.Schema, *frames: pl.DataFrame) -> pl.DataFrame:
    """Return the frames as one in this schema, sorted."""
    cast = (frame.select(pl.col(name).cast(kind) for name, kind in schema.items()) for frame in frames)
    return pl.concat([pl.DataFrame(schema=schema), *cast]).sort([name for name in schema if name != "limits"])


def _compare_reports(before: Facts, after: Facts) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return HEADLINES, and the RATINGS that differ."""
    (older, rated), (newer, rated_again) = map(read_reports, (before, after))
    joined = older.rename({"reading": "before"}).join(
        newer.rename({"reading": "after"}), on=_FIGURE_KEY, how="full", coalesce=True, validate="1:1"
    )
    ratings = rated.rename({"rating": "before"}).join(
        rated_again.rename({"rating": "after"}), on=BY_CUSTOMER, how="full", coalesce=True, validate="1:1"
    )
    differ = pl.col("before").ne_missing(pl.col("after"))
    return joined.select(HEADLINES.names()).sort(_FIGURE_KEY), _combine(RATINGS, ratings.filter(differ))


def read_reports(facts: Facts) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return each report's headline figures and all metrics, and the ratings.

    Columns: `customer_number`, `report`, `figure`, `reading` (four decimals); `customer_number`, `rating`.
    """
    reports = [
        (number, kind, json.loads(text, parse_float=Decimal))
        for kind, report in REPORTS.items()
        for number, text in report.compute(facts).iter_rows()
    ]
    readings = [(number, kind, name, value) for number, kind, data in reports for name, value in _HEADLINES[kind](data)]
    ratings = [(number, data["rating"]) for number, kind, data in reports if kind == "risk"]
    schema = {"customer_number": pl.Int64(), "report": pl.String(), "figure": pl.String(), "reading": _FIGURE}
    figures = pl.concat([pl.DataFrame(readings, schema=schema, orient="row"), _read_metrics(facts)])
    return figures, pl.DataFrame(ratings, {"customer_number": pl.Int64(), "rating": pl.String()}, orient="row")


def compare_decisions(before: Facts, after: Facts, deciders: Deciders) -> pl.DataFrame:
    """Return the DECISIONS that differ, as a backtest of each policy over both sides finds them."""
    each = (_compare_policy_decisions(policy, before, after, deciders) for policy in deciders.policies)
    return _combine(DECISIONS, *each)


def _compare_policy_decisions(policy: TriedPolicy, before: Facts, after: Facts, deciders: Deciders) -> pl.DataFrame:
    earlier, later = (_decide(policy, facts, deciders) for facts in (before, after))
    compared, _ = backtest.compare(before.as_of, earlier, later, pl.DataFrame(schema=KNOWN_OUTCOMES))
    return compared.drop_nulls("change").with_columns(policy=pl.lit(policy.slug))


def _decide(policy: TriedPolicy, facts: Facts, deciders: Deciders) -> Side:
    customers = facts.customers[BY_CUSTOMER].to_list()
    inputs = {number: policy.inputs.get(number, {}) for number in customers}
    shown = compute_figures(facts, policy.plan, customers)
    return backtest.decide(
        policy.plan,
        evaluate_plan(policy.plan, recorded.read_leaves(policy.plan, shown, deciders.attributes, inputs, deciders.now)),
    )


def compare_matches(before: Facts, after: Facts, deciders: Deciders) -> pl.DataFrame:
    """Return the MATCHES: rules whose condition holds on one side only. An unknown condition does not hold."""
    plan = deciders.plan
    if plan is None:
        return pl.DataFrame(schema=MATCHES)
    sides = (observe_customers(plan, facts, deciders.attributes, deciders.now).outcomes for facts in (before, after))
    held, holds = (side.filter("holds").select(BY_CUSTOMER, "ruleset_id", "rule") for side in sides)
    begins, ceases = holds.join(held, on=held.columns, how="anti"), held.join(holds, on=held.columns, how="anti")
    slugs = [(each.bytes, planned.source.ruleset.slug) for each, planned in plan.rulesets.items()]
    named = pl.DataFrame(slugs, {"ruleset_id": pl.Binary(), "ruleset": pl.String()}, orient="row")
    changed = pl.concat([begins.with_columns(holds=True), ceases.with_columns(holds=False)])
    return _combine(MATCHES, changed.join(named, on="ruleset_id", validate="m:1"))


def _read_completeness(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((name, data["summary"][name]) for name in ("completenessScore", "totalMissingness"))


def _read_risk(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((name, data[name]) for name in ("value", "pdConfidenceScore"))


def _read_aggregate(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Add up all months."""
    [months] = [table["values"] for table in data["tables"] if table["id"] == "monthly_cash_flow"]
    return ((name, sum(month[name] for month in months)) for name in _TOTALS)


_TOTALS: Sequence[str] = ("revenue", "moneyIn", "moneyOut", "net", "transfersIn", "transfersOut")
_HEADLINES: Mapping[str, Callable[[Mapping[str, Any]], Iterator[tuple[str, Any]]]] = {
    "completeness": _read_completeness,
    "risk": _read_risk,
    "aggregate": _read_aggregate,
}


def _read_metrics(facts: Facts) -> pl.DataFrame:
    values = facts.cached(metrics.values).select("customer_number", pl.col(list(metrics.METRICS)).cast(_FIGURE))
    long = values.unpivot(list(metrics.METRICS), index="customer_number", variable_name="figure", value_name="reading")
    return long.select("customer_number", pl.lit("metrics").alias("report"), "figure", "reading")


def _aggregate_side(figure: pl.Expr, adds: pl.Expr) -> pl.Expr:
    known = figure.drop_nulls()
    mean = ratio(known.sum(), known.len().cast(pl.Int64))
    return pl.when(adds).then(known.sum()).otherwise(mean).cast(_FIGURE)
