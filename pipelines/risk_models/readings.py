"""The readings of scorecards: values of metrics, with the coverage of the evidence behind each."""

from collections.abc import Sequence

import polars as pl

from pipelines import metrics
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics import METRICS, Metrics
from pipelines.risk_models.coverage import coverage
from pipelines.risk_models.provisional import with_provisional_revenue
from pipelines.scorecards.expected import EVERYTHING, Expected
from pipelines.scorecards.scorecard import READING


def readings(
    facts: Facts, slugs: Sequence[str], among: Metrics = METRICS, expected: Expected = EVERYTHING
) -> pl.DataFrame:
    """Return `customer_number` and for each metric its reading (READING) and COVERAGE_OF + slug, for every customer.

    A null reading is missing; a null coverage means that the reading's evidence isn't expected.
    """
    read_from = facts_for_readings(facts, expected)
    known = metrics.values(read_from, metrics.select_with_inputs(slugs, among))
    read = known.select(BY_CUSTOMER, *(pl.col(slug).cast(READING) for slug in slugs))
    return read.join(coverage(facts, slugs, among, expected), on=BY_CUSTOMER, how="left", validate="1:1")


def facts_for_readings(facts: Facts, expected: Expected) -> Facts:
    """Return the facts that readings are computed from: with provisional revenue where words are not expected."""
    return facts if expected.words else with_provisional_revenue(facts)
