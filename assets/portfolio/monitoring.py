"""Monitoring by night: customers are looked at by their clients' rulesets though nothing of them changed, for rules
move with time, too. When rulesets or attributes change, the customers concerned are looked at without waiting for it.

A look changes nothing twice, so a run that was killed is simply done again: only when it has looked is it removed what
was asked for. A look is decided on with the customers locked, only of transactions that are still theirs: whom a batch
moved meanwhile, the batch has looked at.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

import polars as pl
from dagster import AllPartitionMapping, AssetDep, AssetExecutionContext, MaterializeResult, ResourceParam, asset
from sqlalchemy import ColumnElement, and_

from assets.core.batches import Work
from assets.core.runs import ASKED_TAG, MONITORED
from assets.enrichment.transactions import enriched_transactions
from assets.monitoring import looking
from assets.portfolio.maintenance import Outcome, carry_out
from assets.portfolio.tables import GROUP, NIGHTLY, buckets
from assets.reports.reports import each_slice
from storage.core.store import Store
from storage.enrichment import transactions
from storage.jobs import batches
from storage.monitoring import look_requests, rulesets
from storage.monitoring.rule_matches import Cause, settle_if_possible
from storage.portfolio import maintenance
from storage.portfolio.maintenance import Task


def watched() -> ColumnElement[bool]:
    """Customers with transactions whose client has a ruleset that watches."""
    return and_(maintenance.with_transactions(), rulesets.watching())


@asset(
    name=MONITORED,
    partitions_def=buckets,
    group_name=GROUP,
    kinds={"polars"},
    deps=[AssetDep(enriched_transactions, partition_mapping=AllPartitionMapping())],
    freshness_policy=NIGHTLY,
)
def monitored_customers(context: AssetExecutionContext, store: ResourceParam[Store]) -> MaterializeResult:
    """The bucket's customers, looked at by their clients' rulesets as of now: rules fire, and are armed again.

    Of a run that a change asked for, they are those whom changes concern; of all others, everybody.
    """
    everybody = ASKED_TAG not in context.run.tags
    outcome = look_at(store, int(context.partition_key), lambda: datetime.now(UTC), everybody=everybody)
    metadata = {
        "customers": outcome.customers,
        "customers with matches": outcome.changed,
        "customers failed": outcome.failed,
        "customers left to a batch": outcome.left,
    }
    return MaterializeResult(metadata=metadata)


def look_at(store: Store, bucket: int, clock: Callable[[], datetime], *, everybody: bool) -> Outcome:
    """Look at everybody whom a ruleset watches, or at those of them who are asked for; either way, what was asked for
    before is answered then.
    """
    with store.db.reading() as r:
        asked = look_requests.unanswered(r, bucket)
    whom = watched() if everybody else and_(watched(), look_requests.concerned(bucket))
    do = partial(look_again, store, clock=clock)
    outcome = carry_out(store, Task.MONITORING, bucket, whom, do, yielding=False)
    with store.db.writing() as w:
        look_requests.answer(w, asked)
    return outcome


def look_again(store: Store, work: Work, clock: Callable[[], datetime]) -> Outcome:
    """Look at customers as they are stored, and decide on it."""
    with store.db.reading() as r:
        watchings = looking.watching(r, work.customers)
        places = transactions.current_locations(r, watchings.customers)
    good, damaged = transactions.readable(store.lake, places)
    place_of = {place.customer_number: place for place in good}
    versions = {number: place.data_version for number, place in place_of.items()}

    def rows_of(customer_numbers: Sequence[int]) -> list[pl.DataFrame]:
        mine = [place_of[number] for number in customer_numbers if number in place_of]
        return list(each_slice(store.lake, mine, lambda rows: rows)) if mine else []

    look = looking.look(store, watchings, versions, rows_of, Cause.TIME, clock())
    with store.db.writing() as w:
        batches.commit(w, work.token)
        settled = settle_if_possible(w, look, clock(), watchings.customers & versions.keys())
    left = len(settled.moved)
    return Outcome(len(places) - left, settled.customers, len(settled.failed) + len(damaged), left)
