"""Evaluate rulesets for the whole portfolio every night, because conditions also change as time passes.

When a ruleset or an attribute changes, the customers that it affects are evaluated without waiting for the night.
Applying the same evaluation twice changes nothing. So a run that was killed can be repeated: its requests are deleted
only when the evaluation has finished. A customer whose transactions changed in the meantime is skipped, because the
batch that changed them has evaluated it.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

import polars as pl
from dagster import AllPartitionMapping, AssetDep, AssetExecutionContext, MaterializeResult, ResourceParam, asset
from sqlalchemy import ColumnElement, and_

from assets.core.batches import Work
from assets.core.runs import MONITORED, ON_REQUEST_TAG
from assets.core.waiting import waits_for_storage
from assets.enrichment.transactions import enriched_transactions
from assets.monitoring import ruleset_evaluation
from assets.portfolio.maintenance import Counts, carry_out
from assets.portfolio.tables import GROUP, NIGHTLY, buckets
from assets.reports.reports import compute_by_slice
from pipelines.monitoring import Cause
from storage.core.store import Store
from storage.enrichment import transactions
from storage.jobs import batches
from storage.monitoring import evaluation_requests, rulesets
from storage.monitoring.rule_matches import apply_ruleset_evaluation
from storage.portfolio import maintenance
from storage.portfolio.maintenance import Task


def is_watched() -> ColumnElement[bool]:
    """Select customers with transactions whose client has an active ruleset."""
    return and_(maintenance.has_transactions(), rulesets.has_watching_ruleset())


@asset(
    name=MONITORED,
    partitions_def=buckets,
    group_name=GROUP,
    kinds={"polars"},
    deps=[AssetDep(enriched_transactions.key, partition_mapping=AllPartitionMapping())],
    freshness_policy=NIGHTLY,
)
@waits_for_storage()
def monitored_customers(context: AssetExecutionContext, store: ResourceParam[Store]) -> MaterializeResult:
    """Evaluate the bucket's customers by their clients' rulesets as of now, and let rules fire or be reset.

    A run that was requested because a ruleset or an attribute changed evaluates only the customers that the change
    affects; other runs evaluate all.
    """
    everybody = ON_REQUEST_TAG not in context.run.tags
    counts = evaluate(store, int(context.partition_key), lambda: datetime.now(UTC), everybody=everybody)
    metadata = {
        "customers": counts.customers,
        "customers with matches": counts.changed,
        "customers failed": counts.failed,
        "customers left to a batch": counts.skipped,
    }
    return MaterializeResult(metadata=metadata)


def evaluate(store: Store, bucket: int, clock: Callable[[], datetime], *, everybody: bool) -> Counts:
    """Evaluate the bucket's customers that a ruleset watches: all of them, or those with a request.

    Either way, this answers all requests that were made before it began.
    """
    with store.db.reading() as r:
        requests = evaluation_requests.find_unanswered(r, bucket)
    condition = is_watched() if everybody else and_(is_watched(), evaluation_requests.has_request(bucket))
    do = partial(evaluate_slice, store, clock=clock)
    counts = carry_out(store, Task.MONITORING, bucket, condition, do, skips_unfinished=False)
    with store.db.writing() as w:
        evaluation_requests.delete_answered(w, requests)
    return counts


def evaluate_slice(store: Store, work: Work, clock: Callable[[], datetime]) -> Counts:
    """Evaluate customers by their stored data, and apply the result."""
    with store.db.reading() as r:
        watched_customers = ruleset_evaluation.read_watched_customers(r, work.customers, store.settings.zone)
        locations = transactions.current_locations(r, watched_customers.customers)
    good, damaged = transactions.separate_damaged(store.lake, locations)
    location_of = {location.customer_number: location for location in good}
    versions = {number: location.data_version for number, location in location_of.items()}

    def rows_of(customer_numbers: Sequence[int]) -> list[pl.DataFrame]:
        found = [location_of[number] for number in customer_numbers if number in location_of]
        return list(compute_by_slice(store.lake, found, lambda rows: rows))

    evaluated = ruleset_evaluation.evaluate(store, watched_customers, versions, rows_of, Cause.TIME, clock())
    with store.db.writing() as w:
        batches.commit(w, work.token)
        effect = apply_ruleset_evaluation(w, evaluated, evaluated.versions.keys(), clock())
    left = len(effect.superseded)
    return Counts(len(locations) - left, len(effect.matched), len(effect.failed) + len(damaged), left)
