"""Cases of a lender's portfolio as a table of numbers: what was known of each customer on a day, and the outcome.

Each case becomes a customer of its own with only the rows dated up to its day, so nothing later can leak in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.enrichment.enrichment import enrich
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics import METRICS, Metrics
from pipelines.metrics.registry import FILE, parse_registry
from pipelines.risk_models.expecting import decide_expected_evidence
from pipelines.risk_models.files import Outcomes, accepted_rows
from pipelines.risk_models.readings import readings
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.expected import EVERYTHING, Expected
from pipelines.scorecards.scorecard import COVERAGE_OF
from pipelines.vocabulary.errors import Unprocessable
from pipelines.vocabulary.schemas import TRANSACTIONS

SCALE_FREE = ("ratio", "per month", "days")  # units that are the same in any currency
DEFAULT_METRICS = tuple(feature.metric for feature in DEFAULT.features)
DAILY_INFLOW = ("seen_inflow_180d", "days_seen_180d")  # metrics whose quotient is the money in per day
TO_INFLOW = "{} in days of money in"


@dataclass(frozen=True, eq=False)
class Cohort:
    """Cases and their readings, in the same order.

    Attributes:
        cases: `case, customer, as_of, defaulted`, and the columns that were given with them.
        further: other readings as floats, null where missing, and the coverage of those that are metrics.
        default_readings: the exact readings of the scorecard that comes with Tidemark, and their coverage.
        without_transactions: how many cases had no rows up to their day and were left out.
        expected: the evidence expected of every case, on which coverage depends.
    """

    cases: pl.DataFrame
    further: pl.DataFrame
    default_readings: pl.DataFrame
    without_transactions: int
    expected: Expected

    @property
    def defaulted(self) -> NDArray[np.int8]:
        return self.cases["defaulted"].to_numpy()

    @property
    def further_names(self) -> list[str]:
        return [name for name in self.further.columns if not name.startswith(COVERAGE_OF)]


def cohort_from_files(
    rows: pl.DataFrame, outcomes: Outcomes, *, registry_only: bool = False, expected: Expected | None = None
) -> Cohort:
    """Return the cohort of two CSV files, after enriching their rows.

    Its further readings are the metrics of `flows.yaml` and columns given with the outcomes.

    Args:
        registry_only: leave out `flows.yaml` and given columns, which reports can't read.
        expected: evidence expected of every case; None: decided from all of them (`decide_expected_evidence`).

    Raises:
        Unprocessable: no case has any rows.
    """
    seen = accepted_rows(rows, outcomes.cases)
    enriched = enrich(pl.DataFrame(schema=TRANSACTIONS), seen).transactions.collect()
    if registry_only:
        return _cohort(enriched, outcomes.cases, (), METRICS, (), expected)
    return _cohort(
        enriched, outcomes.cases, outcomes.given, load_metrics_and_flows(), _name_scale_free_flows(), expected
    )


def cohort_from_transactions(
    transactions: pl.DataFrame, cases: pl.DataFrame, expected: Expected = EVERYTHING
) -> Cohort:
    """Return the cohort of stored transactions; it has no further readings.

    Args:
        transactions: of all the cases' customers (schema TRANSACTIONS).
        cases: `case, customer, customer_number, as_of, defaulted`.

    Raises:
        Unprocessable: no case has any rows.
    """
    days = cases.select("case", BY_CUSTOMER, "as_of")
    seen = (
        transactions.join(days, on=BY_CUSTOMER, how="inner")
        .filter(pl.col("date") <= pl.col("as_of"))
        .with_columns(pl.col("case").alias(BY_CUSTOMER))
        .select(TRANSACTIONS.names())
    )
    return _cohort(seen, cases.drop(BY_CUSTOMER), (), METRICS, (), expected)


@cache
def load_metrics_and_flows() -> Metrics:
    """Return the registry's metrics and those of `flows.yaml`."""
    registry = files("pipelines.metrics").joinpath(FILE).read_text("utf-8")
    return parse_registry(
        registry + files("pipelines.risk_models").joinpath("flows.yaml").read_text("utf-8"), "flows.yaml"
    )


def _name_scale_free_flows() -> list[str]:
    flows = (metric for slug, metric in load_metrics_and_flows().items() if slug not in METRICS)
    return [metric.slug for metric in flows if metric.unit in SCALE_FREE]


def _cohort(
    seen: pl.DataFrame,
    cases: pl.DataFrame,
    given: Sequence[str],
    metrics: Metrics,
    further: Sequence[str],
    expected: Expected | None,
) -> Cohort:
    known = cases.filter(pl.col("case").is_in(seen[BY_CUSTOMER].unique().implode())).sort("case")
    if known.is_empty():
        raise Unprocessable(
            "Risk.UnknownCustomers", "No customer of the outcomes has a transaction dated up to the case's `asOf`."
        )
    facts = Facts(seen, known["as_of"].max())  # pyrefly: ignore[bad-argument-type]
    expected = decide_expected_evidence(facts) if expected is None else expected
    exact = readings(facts, [*DEFAULT_METRICS, *further, *DAILY_INFLOW], metrics, expected).sort(BY_CUSTOMER)
    inflow = pl.col(DAILY_INFLOW[0]).cast(pl.Float64) / pl.col(DAILY_INFLOW[1]).cast(pl.Float64)
    slugs = [*further, *(COVERAGE_OF + slug for slug in further)]
    floats = exact.select(pl.col(slugs).cast(pl.Float64), inflow=pl.when(inflow > 0).then(inflow))
    to_inflow = [(pl.col(name) / pl.col("inflow")).alias(TO_INFLOW.format(name)) for name in given]
    return Cohort(
        cases=known,
        further=pl.concat([floats, known.select(given)], how="horizontal").with_columns(to_inflow).drop("inflow"),
        default_readings=exact.select(*DEFAULT_METRICS, *(COVERAGE_OF + slug for slug in DEFAULT_METRICS)),
        without_transactions=cases.height - known.height,
        expected=expected,
    )
