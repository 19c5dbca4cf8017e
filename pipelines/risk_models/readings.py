"""The readings of scorecards: values of metrics, as far as there is evidence for them."""

from collections.abc import Sequence
from decimal import Decimal

import polars as pl

from pipelines import metrics
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics import METRICS, Metric, Metrics
from pipelines.metrics.definition import EVERY_ROW, Arithmetic, Groups, Transactions, Where
from pipelines.risk_models.evidence import evidence
from pipelines.scorecards.scorecard import READING
from pipelines.vocabulary.printing import RATIO

# A business whose rows can't be categorised shows no dishonours, and must not earn points for that: where less than
# this share of the money moved has a category, metrics that read categories or names have no reading. Our judgement.
LEAST_CATEGORISED = Decimal("0.5")
_BY_MEANING = ("counterparty", "lender", "category", "series", "facility")


def readings(facts: Facts, slugs: Sequence[str], among: Metrics = METRICS) -> pl.DataFrame:
    """Return `customer_number` and a column (READING) for each metric, for every customer; null: no reading."""
    categorised = evidence(facts).select(
        BY_CUSTOMER, categorised=pl.col("categorised") >= pl.lit(LEAST_CATEGORISED, RATIO)
    )
    known = (
        facts.cached(metrics.values) if among is METRICS else metrics.values(facts, metrics.with_inputs(slugs, among))
    )
    by_meaning = {slug for slug in slugs if reads_meaning(among[slug], among)}
    return known.join(categorised, on=BY_CUSTOMER, how="left", validate="1:1").select(
        BY_CUSTOMER,
        *(pl.col(slug).cast(READING) for slug in slugs if slug not in by_meaning),
        *(pl.when("categorised").then(pl.col(slug).cast(READING)).alias(slug) for slug in slugs if slug in by_meaning),
    )


def reads_meaning(metric: Metric, among: Metrics) -> bool:
    """Tell whether the metric depends on what a row is for, not only on its day, amount, account and balance."""
    match metric.definition:
        case Arithmetic(inputs=inputs):
            return any(reads_meaning(among[slug], among) for slug in inputs)
        case Groups():
            return True
        case Transactions(where=where, of=of, by=by):
            return by in _BY_MEANING or _filters_by_meaning(where) or (of is not None and _filters_by_meaning(of))
    return False


def _filters_by_meaning(where: Where) -> bool:
    plain = {"direction": where.direction, "external": where.external, "account_types": where.account_types}
    plain |= {"unreconciled": where.unreconciled}
    sizes = {"at_least": where.at_least, "at_most": where.at_most}
    return where != EVERY_ROW.model_copy(update={**plain, **sizes})
