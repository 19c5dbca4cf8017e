"""Commit a batch in one transaction: values are replaced, jobs end and events become due, or nothing happens at all.

The caller computes a `BatchResult` and makes its files durable first. `commit_values` then works in three steps:

1. *Gather*: close the batch, which fences off runs that lost it; lock its customers, and read their current state.
2. *Decide*: `BatchResult.find_superseded` names the customers that changed since the batch read them.
   `BatchResult.without` leaves them out, and their jobs go back to the queue.
3. *Write* the rest: files, values, jobs' ends and their events, then the ruleset evaluation of the new values, the
   customers' summaries, and last the counts by day.

Which rules fire and which are reset is decided in the third step, by a pure function of rule states read under the
locks (`storage.monitoring.rule_matches`). It can't be decided earlier: a nightly evaluation may change a rule's state
until its customer is locked.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import polars as pl
from sqlalchemy import bindparam, insert, select, update

from pipelines.enrichment.enrichment import ENRICHMENT_VERSION
from pipelines.monitoring import EvaluationEffect, RulesetEvaluation
from pipelines.vocabulary.schemas import current
from storage.core.database import Writing
from storage.core.lake import Lake, StoredFile
from storage.core.models import Flow, clients, customers, locations
from storage.core.segments import register
from storage.customers import summaries
from storage.customers.customers import clients_of, knowledge_versions
from storage.enrichment import day_counts
from storage.enrichment.related_parties import find_relations_to
from storage.jobs import batches
from storage.jobs.jobs import Ending, find_with_unfinished_change, finish, request_recomputations
from storage.monitoring import evaluation_requests, rulesets
from storage.monitoring.rule_matches import apply_ruleset_evaluation

File = tuple[StoredFile, int]  # a durable file and its number of rows


@dataclass(frozen=True)
class NewValue:
    """A customer's enriched transactions: a range of rows in a new segment."""

    customer_number: int
    first_row: int
    row_count: int
    current_rows: int
    day_counts: bytes  # of current rows, as `day_counts.pack_counts` returns them


@dataclass(frozen=True)
class LockedCustomers:
    """The state of a batch's customers when it commits. The keys are customer numbers."""

    versions: Mapping[int, tuple[int, int]]  # data version and location version
    knowledge_versions: Mapping[int, int]
    yielded: frozenset[int]  # those that the batch leaves to unfinished jobs


@dataclass(frozen=True, kw_only=True)
class BatchResult:
    """What a batch computed, and from which versions. The keys of mappings are customer numbers."""

    token: int  # the batch's fencing token
    versions: Mapping[int, int]  # data version of each of the batch's customers, as read
    knowledge_versions: Mapping[int, int] = field(default_factory=dict)  # as `customers.knowledge_versions` read them
    segment: File | None = None  # the file with the values
    values: Sequence[NewValue] = ()  # of the customers whose value differs from the one read
    outcomes: File | None = None  # the file that endings refer to
    endings: Sequence[Ending] = ()  # of the batch's jobs
    recomputed: frozenset[int] = frozenset()  # customers whose value, changed or not, has ENRICHMENT_VERSION
    ruleset_evaluation: RulesetEvaluation | None = None  # of the new values
    yielding: bool = False  # leave customers to unfinished jobs that change their transactions, and so recompute them

    @property
    def replaced(self) -> frozenset[int]:
        """Customers who get a new value."""
        return frozenset(value.customer_number for value in self.values)

    def find_superseded(self, locked: LockedCustomers) -> frozenset[int]:
        """Return the customers that a later batch must compute again, because what this one read has changed."""
        data = {number: data_version for number, (data_version, _) in locked.versions.items()}
        knowledge = _find_differing(locked.knowledge_versions, self.knowledge_versions)
        return locked.yielded | _find_differing(data, self.versions) | knowledge

    def without(self, superseded: frozenset[int]) -> "BatchResult":
        """Return the result of the other customers."""
        return replace(
            self,
            values=[value for value in self.values if value.customer_number not in superseded],
            endings=[ending for ending in self.endings if ending.job.customer_number not in superseded],
            recomputed=self.recomputed - superseded,
        )


@dataclass(frozen=True)
class Committed:
    """The customers whose value was replaced, those left to a later batch, and what the ruleset evaluation changed."""

    replaced: frozenset[int]
    superseded: frozenset[int]
    ruleset_effect: EvaluationEffect


def locate_values(rows: pl.DataFrame, customer_numbers: Collection[int]) -> list[NewValue]:
    """Return the customers' ranges of rows, in the order of the numbers. A customer without rows has an empty one.

    Args:
        rows: TRANSACTIONS of whole values, sorted by customer, as a segment holds them.
    """
    ranges = (
        rows.lazy()
        .with_row_index("first_row")
        .group_by("customer_number")
        .agg(pl.col("first_row").min(), pl.len().alias("row_count"), current().sum().alias("current_rows"))
        .collect()
    )
    found = {number: (first, count, live) for number, first, count, live in ranges.rows()}
    counts = day_counts.pack_counts(rows.lazy(), customer_numbers)
    numbered = ((number, *found.get(number, (0, 0, 0))) for number in customer_numbers)
    return [NewValue(number, first, count, live, counts[number]) for number, first, count, live in numbered]


def commit_values(w: Writing, lake: Lake, computed: BatchResult, now: datetime) -> Committed:
    """Commit a batch.

    Raises:
        Superseded: the batch is no longer open. Nothing was changed.
        Unavailable: a file was removed as an orphan.
    """
    batches.commit(w, computed.token)
    locked = _lock_customers(w, computed)
    superseded = computed.find_superseded(locked)
    accepted = computed.without(superseded)
    _write_values(w, lake, accepted, locked, now)
    effect = _apply_rulesets(w, accepted, now)
    summaries.refresh(w, accepted.replaced, summaries.DATA_COLUMNS)
    _record_day_counts(w, accepted, locked)
    return Committed(accepted.replaced, superseded, effect)


def move_pointers(
    w: Writing,
    lake: Lake,
    file: File,
    values: Sequence[NewValue],
    versions: Mapping[int, tuple[int, int]],
    now: datetime,
) -> None:
    """Point customers to their values in a new file. The old ones stay readable for the retention time.

    Args:
        versions: each customer's data version and location version from now on. The customers must be locked.
    """
    segment_id = register(w, lake, file, now)
    rows = [_location_row(value, segment_id, *versions[value.customer_number], now) for value in values]
    old = locations.c.customer_number.in_([value.customer_number for value in values])
    w.execute(update(locations).where(old, locations.c.replaced_at.is_(None)).values(replaced_at=now))
    w.execute(insert(locations), rows)
    w.execute(
        update(customers)
        .where(customers.c.number == bindparam("number_"))
        .values(
            data_version=bindparam("data_version_"),
            location_version=bindparam("location_version_"),
            enriched_rows=bindparam("current_rows"),
        ),
        [
            {
                "number_": value.customer_number,
                "data_version_": row["data_version"],
                "location_version_": row["location_version"],
                "current_rows": value.current_rows,
            }
            for value, row in zip(values, rows, strict=True)
        ],
    )


def _find_differing(now: Mapping[int, int], read: Mapping[int, int]) -> frozenset[int]:
    return frozenset(number for number, version in now.items() if version != read[number])


def _location_row(value: NewValue, segment_id: UUID, data: int, location: int, now: datetime) -> dict[str, Any]:
    return {
        "customer_number": value.customer_number,
        "data_version": data,
        "location_version": location,
        "segment_id": segment_id,
        "first_row": value.first_row,
        "row_count": value.row_count,
        "created_at": now,
    }


def _lock_customers(w: Writing, computed: BatchResult) -> LockedCustomers:
    """Lock the clients and customers of the batch until the commit, and read the customers' state.

    Clients are locked for reading: their knowledge can't change, but other batches needn't wait. Customers are locked
    with `FOR NO KEY UPDATE`, so new jobs can still refer to them.
    """
    selected = customers.c.number.in_(list(computed.versions))
    is_theirs = clients.c.client_id.in_(select(customers.c.client_id).where(selected))
    w.execute(select(clients.c.client_id).where(is_theirs).order_by(clients.c.client_id).with_for_update(read=True))
    query = select(customers.c.number, customers.c.data_version, customers.c.location_version).where(selected)
    rows = w.execute(query.order_by(customers.c.number).with_for_update(key_share=True))
    return LockedCustomers(
        versions={number: (data, location) for number, data, location in rows},
        knowledge_versions=knowledge_versions(w, computed.knowledge_versions),
        yielded=find_with_unfinished_change(w, computed.versions) if computed.yielding else frozenset(),
    )


def _write_values(w: Writing, lake: Lake, accepted: BatchResult, locked: LockedCustomers, now: datetime) -> None:
    if accepted.outcomes and any(ending.outcomes_path for ending in accepted.endings):
        register(w, lake, accepted.outcomes, now)
    if accepted.segment and accepted.values:
        advanced = {number: (data + 1, location + 1) for number, (data, location) in locked.versions.items()}
        move_pointers(w, lake, accepted.segment, accepted.values, advanced, now)
    _set_enrichment_version(w, accepted.recomputed)
    finish(w, accepted.endings, now)
    batches.requeue(w, accepted.token)
    _recompute_related(w, accepted.replaced, now)


def _set_enrichment_version(w: Writing, customer_numbers: frozenset[int]) -> None:
    """Update only the customers that are behind: most batches then write nothing here."""
    if customer_numbers:
        behind = customers.c.enrichment_version != ENRICHMENT_VERSION
        statement = update(customers).where(customers.c.number.in_(customer_numbers), behind)
        w.execute(statement.values(enrichment_version=ENRICHMENT_VERSION))


def _recompute_related(w: Writing, replaced: frozenset[int], now: datetime) -> None:
    """Enrich again the customers that declare one of these as a related party: transfers between the two may differ.

    This terminates, because an unchanged value requests nothing further.
    """
    numbers_by_client: dict[UUID, set[int]] = defaultdict(set)
    declaring = {each.customer_number for each in find_relations_to(w, replaced)}
    for number, client_id in clients_of(w, declaring).items():
        numbers_by_client[client_id].add(number)
    for client_id, numbers in sorted(numbers_by_client.items()):
        request_recomputations(w, client_id, numbers, Flow.REENRICHMENT, now)


def _apply_rulesets(w: Writing, accepted: BatchResult, now: datetime) -> EvaluationEffect:
    """Apply the ruleset evaluation of the new values. This follows the jobs' ends, whose events come first."""
    evaluated, effect = accepted.ruleset_evaluation, EvaluationEffect()
    if accepted.replaced:
        if evaluated:
            effect = apply_ruleset_evaluation(w, evaluated, accepted.replaced, now)
        _request_evaluations(w, evaluated, accepted.replaced, effect, now)
    return effect


def _record_day_counts(w: Writing, accepted: BatchResult, locked: LockedCustomers) -> None:
    """Change the counts by day. This comes last, because another batch of the client may wait for it."""
    versions = {number: data_version + 1 for number, (data_version, _) in locked.versions.items()}
    counted = {value.customer_number: (versions[value.customer_number], value.day_counts) for value in accepted.values}
    if counted:
        day_counts.record_counts(w, accepted.token, counted)


def _request_evaluations(
    w: Writing, evaluated: RulesetEvaluation | None, replaced: frozenset[int], effect: EvaluationEffect, now: datetime
) -> None:
    """Request another ruleset evaluation of customers whose attributes have changed since the batch read them, or whose
    client has a ruleset that the batch did not evaluate. Customers that failed wait for the next nightly evaluation.

    To prevent deadlocks, the rows of requests are locked after all others except the counts by day. Transactions that
    change attributes or rulesets use the same order.
    """
    used = evaluated.keys if evaluated else frozenset()
    with_new_rulesets = {each.client_id for each in rulesets.find_active(w, replaced) if each.key not in used}
    requested = set(effect.superseded)
    if with_new_rulesets:
        clients_by_customer = clients_of(w, replaced - effect.failed)
        requested |= {number for number, client_id in clients_by_customer.items() if client_id in with_new_rulesets}
    evaluation_requests.request_for_customers(w, requested, now)
