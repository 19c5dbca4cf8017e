"""Evaluate customers by their clients' rulesets, all customers and rules of a client at once, in Polars.

This is the slow part and changes nothing. `storage.monitoring.rule_matches` applies the result in a transaction.

A batch evaluates its customers' new values before it commits them. The portfolio is evaluated at night, and when
rulesets or attributes change. A customer whose evaluation fails is skipped and counted, and evaluated again next time.
"""

import logging
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from uuid import UUID
from zoneinfo import ZoneInfo

import polars as pl

from assets.core.batches import isolate_failures
from pipelines.decisions import Attribute
from pipelines.figures.context import NO_CONTEXT, Context
from pipelines.figures.facts import COLUMNS, Facts
from pipelines.monitoring import (
    Cause,
    EvaluatedCustomers,
    MonitoringPlan,
    RulesetEvaluation,
    RulesetKey,
    VersionedRuleset,
    observe_customers,
    plan_rulesets,
)
from pipelines.monitoring.transitions import OUTCOMES, REPEATS
from storage.core.database import UNREACHABLE, Reading
from storage.core.store import Store
from storage.customers import customers
from storage.decisions import context
from storage.monitoring import attributes, rulesets
from storage.monitoring.rulesets import ActiveRuleset

PLANS_CACHED = 256  # plans of clients' rulesets: making a plan takes longer than evaluating it

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class WatchedClient:
    """A client's rulesets, the plan to evaluate them, and the attributes that it reads of the customers they watch."""

    rulesets: Sequence[VersionedRuleset]
    plan: MonitoringPlan
    attributes: Mapping[int, Mapping[str, Attribute]]  # by customer number; empty for one without any

    @property
    def customers(self) -> frozenset[int]:
        return frozenset(self.attributes)


@dataclass(frozen=True, eq=False)
class WatchedCustomers:
    """Customers that rulesets watch, by client, read in one snapshot."""

    of_clients: Sequence[WatchedClient]
    attributes_read: Mapping[int, Set[str]]  # as in RulesetEvaluation
    attribute_changes: Mapping[int, int]  # as in RulesetEvaluation
    failed: frozenset[int]  # customers of clients with a ruleset that can't be read
    context: Context  # what metrics read besides transactions

    @property
    def customers(self) -> frozenset[int]:
        return self.failed.union(*(each.customers for each in self.of_clients))


def read_watched_customers(r: Reading, customer_numbers: Iterable[int], zone: ZoneInfo) -> WatchedCustomers:
    """Read the rulesets that watch these customers. If there are none, this costs one look-up in an index.

    Args:
        zone: the service's time zone.
    """
    numbers = sorted(customer_numbers)
    active = rulesets.find_active(r, numbers)
    if not active:
        return WatchedCustomers([], {}, {}, frozenset(), NO_CONTEXT)
    by_client: dict[UUID, list[ActiveRuleset]] = defaultdict(list)
    for each in active:
        by_client[each.client_id].append(each)
    of_client: dict[UUID, list[int]] = defaultdict(list)
    for number, client_id in customers.clients_of(r, numbers).items():
        of_client[client_id].append(number)
    watched, failed = list[WatchedClient](), set[int]()
    for client_id, active_rulesets in by_client.items():
        try:
            watched.append(_read_watched_client(r, active_rulesets, sorted(of_client[client_id])))
        except UNREACHABLE:
            raise
        except (Exception, pl.exceptions.PanicException) as error:  # one client's rulesets must not stop the others
            log.error("a client's customers can't be evaluated: %s", type(error).__name__)
            failed.update(of_client[client_id])
    read = {number: each.plan.attributes for each in watched if each.plan.attributes for number in each.customers}
    known = context.read_for_metrics(r, numbers, zone)
    return WatchedCustomers(watched, read, attributes.last_changes(r, read), frozenset(failed), known)


def evaluate(
    store: Store,
    watched_customers: WatchedCustomers,
    versions: Mapping[int, int],
    rows_of: Callable[[Sequence[int]], Iterable[pl.DataFrame]],
    cause: Cause,
    now: datetime,
) -> RulesetEvaluation:
    """Evaluate the customers. Nothing stored is changed.

    Args:
        versions: the data version to evaluate, by customer number.
        rows_of: returns customers' transactions (facts.COLUMNS at least) in parts of whole customers.
    """
    failed: list[int] = []
    seen: list[EvaluatedCustomers] = []
    as_of = now.astimezone(store.settings.zone).date()
    for each in watched_customers.of_clients:
        for rows in rows_of(sorted(each.customers)):
            numbers = rows["customer_number"].unique().sort().to_list()
            seen += isolate_failures(
                partial(_evaluate_customers, each, watched_customers.context, rows.select(COLUMNS), as_of, now),
                numbers,
                failed,
            )
    evaluated_customers = watched_customers.customers & versions.keys()
    return RulesetEvaluation(
        cause=cause,
        as_of=as_of,
        zone=store.settings.timezone,
        rulesets={one.ruleset_id: one for each in watched_customers.of_clients for one in each.rulesets},
        seen=seen,
        outcomes=pl.concat([pl.DataFrame(schema=OUTCOMES), *(each.outcomes for each in seen)]),
        repeats=pl.concat(
            [pl.DataFrame(schema=REPEATS), *(each.plan.repeats for each in watched_customers.of_clients)]
        ),
        versions={number: versions[number] for number in sorted(evaluated_customers)},
        attributes_read=watched_customers.attributes_read,
        attribute_changes=watched_customers.attribute_changes,
        failed=watched_customers.failed.union(failed),
    )


def evaluate_batch(store: Store, transactions: pl.DataFrame, versions: Mapping[int, int]) -> RulesetEvaluation | None:
    """Evaluate the new values that a batch is about to commit. Return None if no ruleset watches the customers.

    An error does not fail the batch: the next nightly evaluation tries again.

    Args:
        transactions: at least the rows of the customers in `versions`, as in these versions.
    """
    try:
        with store.db.reading() as r:
            watched_customers = read_watched_customers(r, versions, store.settings.zone)
        if not watched_customers.customers:
            return None
        return evaluate(
            store, watched_customers, versions, partial(_rows_of, transactions), Cause.DATA, datetime.now(UTC)
        )
    except UNREACHABLE:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        log.exception("a batch's customers could not be evaluated: %s", type(error).__name__)
        return None


def _rows_of(transactions: pl.DataFrame, customer_numbers: Sequence[int]) -> list[pl.DataFrame]:
    return [transactions.filter(pl.col("customer_number").is_in(list(customer_numbers)))]


_plans: OrderedDict[tuple[RulesetKey, ...], MonitoringPlan] = OrderedDict()


def _read_watched_client(r: Reading, active: Sequence[ActiveRuleset], numbers: Sequence[int]) -> WatchedClient:
    versions = rulesets.load_active(r, active)
    plan = _cached_plan(versions)
    listed = [each.customers for each in versions]
    concerned = set(numbers) if None in listed else set(numbers).intersection(frozenset().union(*filter(None, listed)))
    stated: dict[int, dict[str, Attribute]] = {number: {} for number in sorted(concerned)}
    for number, each in attributes.find_current(r, concerned) if plan.attributes else ():
        if each.name in plan.attributes:
            stated[number][each.name] = Attribute(each.value, each.expires_at)
    return WatchedClient(versions, plan, stated)


def _cached_plan(versions: Sequence[VersionedRuleset]) -> MonitoringPlan:
    """Return a plan, cached by the rulesets' versions, which never change."""
    key = tuple(each.key for each in versions)
    plan = _plans.pop(key, None) or plan_rulesets(versions)
    _plans[key] = plan
    while len(_plans) > PLANS_CACHED:
        _plans.popitem(last=False)
    return plan


def _evaluate_customers(
    client: WatchedClient, known: Context, rows: pl.DataFrame, as_of: date, now: datetime, numbers: Sequence[int]
) -> list[EvaluatedCustomers]:
    own_rows = rows.filter(pl.col("customer_number").is_in(list(numbers)))
    stated = {number: client.attributes[number] for number in numbers}
    found = observe_customers(client.plan, Facts(own_rows, as_of, known), stated, now)
    return [EvaluatedCustomers(found, found.outcomes)]
