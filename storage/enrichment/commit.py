"""The one transaction that ends a batch: pointers move, jobs end, events become due, or nothing happens at all.

The files it names are durable before it begins. It is conditional: the batch must still be open (fencing), and of each
customer, the version must still be the one that the batch read (compare and swap), and so must be what else is known of
it. Customers that moved meanwhile lose: their jobs go back to the queue while the others' are committed.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, insert, select, update

from storage.core.database import Reading, Writing
from storage.core.lake import Stored
from storage.core.models import Flow, JobStatus, clients, customers, jobs, locations
from storage.core.segments import register
from storage.customers.customers import clients_of, knowledge_versions
from storage.enrichment.related_parties import whom_they_stand_beside
from storage.jobs import batches
from storage.jobs.jobs import Ending, finish, request_recomputations, with_unfinished_submission
from storage.monitoring import evaluation_requests, rulesets
from storage.monitoring.rule_matches import RulesetEvaluation, Settled, settle_if_possible


@dataclass(frozen=True)
class NewValue:
    """A customer's new enriched transactions: which rows of the batch's segment."""

    customer_number: int
    first_row: int
    row_count: int
    current_rows: int


@dataclass(frozen=True)
class Recomputed:
    """Customers whose value, changed or not, is what this version of the enrichment makes of their rows."""

    enrichment_version: int
    customers: frozenset[int]


@dataclass(frozen=True)
class Committed:
    """Which customers' values were replaced, and which had moved and were left to a later batch."""

    moved: frozenset[int]
    superseded: frozenset[int]
    settled: Settled = field(default_factory=Settled)  # what rulesets made of the new values


def commit_values(
    w: Writing,
    token: int,
    read_versions: Mapping[int, int],
    values: Sequence[NewValue],
    segment: tuple[Stored, int] | None,
    outcomes: tuple[Stored, int] | None,
    endings: Sequence[Ending],
    now: datetime,
    recomputed: Recomputed | None = None,
    *,
    read_knowledge: Mapping[int, int] | None = None,
    evaluated: RulesetEvaluation | None = None,
    yielding: bool = False,
) -> Committed:
    """Commit a batch.

    Args:
        token: the batch's fencing token.
        read_versions: data version of every customer as the batch read it (customer number → version).
        values: the values that changed; unchanged customers need no new one.
        segment, outcomes: the files (and their row counts) that values and endings refer to.
        endings: how each job of the batch ends, if its customer has not moved.
        recomputed: whose value is now known to be up to date with the enrichment, if they have not moved.
        read_knowledge: how often what else is known of the customers had changed when the batch read it; customers of
            whom more is known since are left to a later batch, too.
        look: what rulesets make of the new values; decided on for those that are committed.
        yielding: leave customers with an unfinished submission to it, as if they had moved already: it waits for
            nobody, and recomputes them anyway.

    Raises:
        Superseded: the batch is no longer open; nothing was changed.
    """
    batches.commit(w, token)
    _hold_clients(w, read_versions)
    superseded = _superseded(w, read_versions) | _known_better(w, read_knowledge or {})
    if yielding:
        superseded |= with_unfinished_submission(w, read_versions)
    winners = [value for value in values if value.customer_number not in superseded]
    retained = [ending for ending in endings if ending.job.customer_number not in superseded]
    if outcomes and any(ending.outcomes_path for ending in retained):
        register(w, outcomes, now)
    if segment and winners:
        segment_id = register(w, segment, now)
        _point(w, segment_id, winners, now)
    if recomputed:
        _bring_up(w, recomputed.customers - superseded, recomputed.enrichment_version)
    finish(w, retained, now)
    _requeue(w, token)
    moved = frozenset(value.customer_number for value in winners)
    _enrich_groups(w, moved, now)
    # Jobs' events come before those of rules.
    settled = settle_if_possible(w, evaluated, now, moved) if evaluated and moved else Settled()
    if moved:
        _request_evaluations(w, evaluated, moved, settled, now)
    return Committed(moved, superseded, settled)


def _request_evaluations(
    w: Writing, evaluated: RulesetEvaluation | None, moved: frozenset[int], settled: Settled, now: datetime
) -> None:
    """For those who were evaluated without a result, because an attribute changed meanwhile, or not by all that watches
    now. Whom looking failed for is left to the night. Last, because attributes and rulesets change before they ask,
    too.
    """
    followed = {each.key for each in evaluated.by} if evaluated else set()
    others = {each.client_id for each in rulesets.active(w, moved) if each.key not in followed}
    wanting = set(settled.moved)
    if others:
        whose = clients_of(w, moved - settled.failed)
        wanting |= {number for number, client_id in whose.items() if client_id in others}
    evaluation_requests.for_customers(w, wanting, now)


def _enrich_groups(w: Writing, moved: frozenset[int], now: datetime) -> None:
    """Customers beside whom one of these stands are enriched once more: money may have moved between the two. Who then
    comes to the same as before tells nobody, so it ends.
    """
    of_client: dict[UUID, set[int]] = defaultdict(set)
    concerned = {each.customer_number for each in whom_they_stand_beside(w, moved)}
    for number, client_id in clients_of(w, concerned).items():
        of_client[client_id].add(number)
    for client_id, numbers in sorted(of_client.items()):
        request_recomputations(w, client_id, numbers, Flow.REENRICHMENT, now)


def _superseded(w: Writing, read_versions: Mapping[int, int]) -> frozenset[int]:
    """Customers whose version is no longer the one read; all rows stay locked until the commit, but not their keys:
    new jobs may refer to them meanwhile.
    """
    query = select(customers.c.number, customers.c.data_version).where(customers.c.number.in_(list(read_versions)))
    now_at = w.execute(query.order_by(customers.c.number).with_for_update(key_share=True))
    return frozenset(number for number, version in now_at if version != read_versions[number])


def _hold_clients(w: Writing, read_versions: Mapping[int, int]) -> None:
    """What is known of all of a client's customers can't change until the commit; batches don't wait for each other."""
    whose = select(customers.c.client_id).where(customers.c.number.in_(list(read_versions)))
    held = select(clients.c.client_id).where(clients.c.client_id.in_(whose)).order_by(clients.c.client_id)
    w.execute(held.with_for_update(read=True))


def _known_better(w: Writing, read_knowledge: Mapping[int, int]) -> frozenset[int]:
    """Customers of whom something else is known than what the batch read. Their rows are locked already."""
    now_at = knowledge_versions(w, read_knowledge)
    return frozenset(number for number, version in now_at.items() if version != read_knowledge[number])


def _point(w: Writing, segment_id: UUID, values: Iterable[NewValue], now: datetime) -> None:
    """Move the customers' pointers; the places they leave are kept for the retention time."""
    versions = _versions(w, [value.customer_number for value in values])
    w.execute(
        update(locations)
        .where(locations.c.customer_number == bindparam("number"), locations.c.replaced_at.is_(None))
        .values(replaced_at=bindparam("now", type_=locations.c.replaced_at.type)),
        [{"number": value.customer_number, "now": now} for value in values],
    )
    w.execute(
        insert(locations),
        [_location(value, segment_id, versions[value.customer_number], now) for value in values],
    )
    w.execute(
        update(customers)
        .where(customers.c.number == bindparam("customer"))
        .values(
            data_version=customers.c.data_version + 1,
            location_version=customers.c.location_version + 1,
            enriched_rows=bindparam("current"),
        ),
        [{"customer": value.customer_number, "current": value.current_rows} for value in values],
    )


def _bring_up(w: Writing, customer_numbers: frozenset[int], enrichment_version: int) -> None:
    """Only those that are behind: most batches need no write here."""
    behind = customers.c.enrichment_version != enrichment_version
    statement = update(customers).where(customers.c.number.in_(customer_numbers), behind)
    w.execute(statement.values(enrichment_version=enrichment_version))


def _versions(r: Reading, customer_numbers: Sequence[int]) -> dict[int, tuple[int, int]]:
    query = select(customers.c.number, customers.c.data_version, customers.c.location_version)
    rows = r.execute(query.where(customers.c.number.in_(customer_numbers)))
    return {row.number: (row.data_version, row.location_version) for row in rows}


def _location(value: NewValue, segment_id: UUID, versions: tuple[int, int], now: datetime) -> dict[str, Any]:
    return {
        "customer_number": value.customer_number,
        "data_version": versions[0] + 1,
        "location_version": versions[1] + 1,
        "segment_id": segment_id,
        "first_row": value.first_row,
        "row_count": value.row_count,
        "created_at": now,
    }


def _requeue(w: Writing, token: int) -> None:
    """What the batch could not end goes back to the queue, as if it had not been tried."""
    statement = update(jobs).where(jobs.c.batch_token == token, jobs.c.status == JobStatus.RUNNING)
    w.execute(statement.values(status=JobStatus.QUEUED, batch_token=None, attempts=jobs.c.attempts - 1))
