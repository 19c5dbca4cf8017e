"""Compute metrics as of a baseline's day: from the rows dated up to it, with freshness measured to it.

All customers of a baseline are computed in one pass, whether it names one day for all or an attribute with each
customer's own day. Each baseline takes a pass of its own.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime

import polars as pl

from pipelines.decisions import readings
from pipelines.decisions.decision import compute_metrics
from pipelines.decisions.readings import NONE, Attributes
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics import cause_of
from pipelines.monitoring.planning import PlannedBaseline
from pipelines.monitoring.ruleset import Since, SinceDate, day_of
from pipelines.monitoring.snapshots import FactsOfDays

NO_BASELINE = "no_baseline"
CAUSES: Mapping[str, str] = {**readings.CAUSES, NO_BASELINE: "there is no baseline day, or it is still to come"}


def compute_baseline(
    planned: PlannedBaseline, facts: Facts, customers: pl.Series, attributes: Attributes, now: datetime
) -> pl.DataFrame:
    """Return a row for each customer: `customer_number`, its day in the column `PlannedBaseline.day`, and each
    reading's value and cause.

    Args:
        customers: numbers, sorted.
    """
    days = _days_that_have_come(planned.since, facts, customers, attributes, now)
    known = days.filter(pl.col("date").is_not_null())
    figures = compute_metrics(_facts_as_of(facts, known), planned.metrics, customers)
    day = pl.col("date")
    return figures.join(days, on=BY_CUSTOMER, validate="1:1", maintain_order="left").select(
        BY_CUSTOMER,
        day.alias(planned.day),
        *(pl.when(day.is_not_null()).then(name).alias(column) for column, name in planned.readings.items()),
        *(
            pl.when(day.is_null()).then(pl.lit(NO_BASELINE)).otherwise(cause_of(name)).alias(cause_of(column))
            for column, name in planned.readings.items()
        ),
    )


def _facts_as_of(facts: Facts, days: pl.DataFrame) -> Facts:
    """Return the facts of these customers, each as of its own `date`."""
    if days.is_empty():
        return Facts(facts.transactions.clear(), facts.as_of)
    if isinstance(facts, FactsOfDays):
        return facts.as_of_days(days)
    return FactsOfDays(facts, days.with_columns(snapshot=BY_CUSTOMER))


def _days_that_have_come(
    since: Since, facts: Facts, customers: pl.Series, attributes: Attributes, now: datetime
) -> pl.DataFrame:
    """Return `customer_number` and `date`. The date is null if none is known or it is after the day of computing."""
    stated = _stated_days(since, customers.to_list(), attributes, now)
    today = facts.history.select(BY_CUSTOMER, today=pl.col("data_through") + pl.duration(days=facts.days_behind))
    named = pl.DataFrame([customers.alias(BY_CUSTOMER), pl.Series("date", stated, pl.Date)])
    joined = named.join(today, on=BY_CUSTOMER, how="left", validate="1:1", maintain_order="left")
    has_come = pl.col("date") <= pl.col("today").fill_null(facts.as_of)
    return joined.select(BY_CUSTOMER, date=pl.when(has_come).then("date"))


def _stated_days(
    since: Since, customers: Sequence[int], attributes: Attributes, now: datetime
) -> Sequence[date | None]:
    if isinstance(since, SinceDate):
        return [since.date] * len(customers)
    held = (attributes.get(number, {}).get(since.attribute, NONE) for number in customers)
    return [day_of(readings.read_attribute(each, "string", now)[0]) for each in held]
