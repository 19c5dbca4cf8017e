"""Cases of a lender's portfolio as a table of numbers: what could be known of each customer on a day, and what became
of it.

Every case is a customer of its own, who has only the rows dated up to its day: what came later can't leak in.
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
from pipelines.risk_models.files import Outcomes, accepted
from pipelines.risk_models.readings import readings
from pipelines.scorecards.default import DEFAULT
from pipelines.vocabulary.errors import Unprocessable
from pipelines.vocabulary.schemas import TRANSACTIONS

SCALE_FREE = ("ratio", "per month", "days")  # units that are the same in any currency
OF_DEFAULT = tuple(feature.metric for feature in DEFAULT.features)
A_DAYS_INFLOW = ("seen_inflow_180d", "days_seen_180d")
TO_INFLOW = "{} in days of money in"


@dataclass(frozen=True, eq=False)
class Cohort:
    """`cases`: `case, customer, as_of, defaulted` and what was given with them; `readings`: in the same order, a column
    of floats for each feature, null where missing; `default_readings`: what the scorecard that comes with Tidemark
    looks at, exactly. `unknown`: cases without any row up to their day, left out of all.
    """

    cases: pl.DataFrame
    readings: pl.DataFrame
    default_readings: pl.DataFrame
    unknown: int

    @property
    def defaulted(self) -> NDArray[np.int8]:
        return self.cases["defaulted"].to_numpy()


def of_files(rows: pl.DataFrame, outcomes: Outcomes, *, registry_only: bool = False) -> Cohort:
    """The cohort of two plain files, their rows enriched first: what the default scorecard looks at, the flows, and
    what is given with the outcomes.

    Args:
        registry_only: nothing but what reports can read: no flows, nothing given.

    Raises:
        Unprocessable: no case has any row.
    """
    seen = accepted(rows, outcomes.cases)
    enriched = enrich(pl.DataFrame(schema=TRANSACTIONS), seen).transactions.collect()
    if registry_only:
        return _cohort(enriched, outcomes.cases, (), METRICS, OF_DEFAULT)
    return _cohort(enriched, outcomes.cases, outcomes.given, with_flows(), (*OF_DEFAULT, *_scale_free_flows()))


def of_transactions(transactions: pl.DataFrame, cases: pl.DataFrame) -> Cohort:
    """The cohort of stored transactions: what the default scorecard looks at.

    Args:
        transactions: of all the cases' customers (schema TRANSACTIONS).
        cases: `case, customer, customer_number, as_of, defaulted`.

    Raises:
        Unprocessable: no case has any row.
    """
    days = cases.select("case", BY_CUSTOMER, "as_of")
    seen = (
        transactions.join(days, on=BY_CUSTOMER, how="inner")
        .filter(pl.col("date") <= pl.col("as_of"))
        .with_columns(pl.col("case").alias(BY_CUSTOMER))
        .select(TRANSACTIONS.names())
    )
    return _cohort(seen, cases.drop(BY_CUSTOMER), (), METRICS, OF_DEFAULT)


@cache
def with_flows() -> Metrics:
    """The registry's metrics, and those of `flows.yaml`."""
    registry = files("pipelines.metrics").joinpath(FILE).read_text("utf-8")
    return parse_registry(
        registry + files("pipelines.risk_models").joinpath("flows.yaml").read_text("utf-8"), "flows.yaml"
    )


def _scale_free_flows() -> list[str]:
    flows = (metric for slug, metric in with_flows().items() if slug not in METRICS)
    return [metric.slug for metric in flows if metric.unit in SCALE_FREE]


def _cohort(
    seen: pl.DataFrame, cases: pl.DataFrame, given: Sequence[str], metrics: Metrics, slugs: Sequence[str]
) -> Cohort:
    known = cases.filter(pl.col("case").is_in(seen[BY_CUSTOMER].unique().implode())).sort("case")
    if known.is_empty():
        raise Unprocessable("Risk.UnknownCustomers", "No customer of the outcomes has any transaction up to its day.")
    facts = Facts(seen, known["as_of"].max())  # pyrefly: ignore[bad-argument-type]
    read = readings(facts, [*slugs, *A_DAYS_INFLOW], metrics).sort(BY_CUSTOMER)
    inflow = pl.col(A_DAYS_INFLOW[0]).cast(pl.Float64) / pl.col(A_DAYS_INFLOW[1]).cast(pl.Float64)
    floats = read.select(pl.col(slugs).cast(pl.Float64), inflow=pl.when(inflow > 0).then(inflow))
    to_inflow = [(pl.col(name) / pl.col("inflow")).alias(TO_INFLOW.format(name)) for name in given]
    return Cohort(
        cases=known,
        readings=pl.concat([floats, known.select(given)], how="horizontal").with_columns(to_inflow).drop("inflow"),
        default_readings=read.select(OF_DEFAULT),
        unknown=cases.height - known.height,
    )
