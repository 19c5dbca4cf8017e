"""Evaluating customers by their clients' rulesets: what is computed before a ruleset evaluation is decided on, in
Polars, for all customers and rules at once. `storage.monitoring.rule_matches.settle` decides.

The batch that moves customers' values evaluates them before it commits; the portfolio is evaluated by night, and when
it is asked to. Whom one ruleset evaluation can't be computed for is passed over and counted: the next one finds them as
they were.
"""

import logging
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from uuid import UUID

import polars as pl

from assets.core.batches import isolating
from pipelines.decisions import Attribute
from pipelines.figures.facts import COLUMNS, Facts
from pipelines.monitoring import Watch, Watched, observed, watch
from pipelines.monitoring.moving import OUTCOMES, REARM
from storage.core.database import AWAY, Reading
from storage.core.store import Store
from storage.customers import customers
from storage.monitoring import attributes, rulesets
from storage.monitoring.rule_matches import Cause, RulesetEvaluation, Seen
from storage.monitoring.rulesets import ActiveRuleset

WATCHES_CACHED = 256  # plans of clients' rulesets: to make one takes longer than to evaluate by it

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Watching:
    """A client's customers that its rulesets concern, with what these read of them."""

    by: Sequence[ActiveRuleset]
    watched: Sequence[Watched]
    watch: Watch
    attributes: Mapping[int, Mapping[str, Attribute]]  # of every one of the customers

    @property
    def customers(self) -> frozenset[int]:
        return frozenset(self.attributes)


@dataclass(frozen=True, eq=False)
class Watchings:
    """What watches some customers, client by client, as of one snapshot."""

    of_clients: Sequence[Watching]
    attributes_read: Mapping[int, Set[str]]  # as in Look
    attribute_changes: Mapping[int, int]  # as in Look
    failed: frozenset[int]  # customers of clients with a ruleset that can't be read

    @property
    def customers(self) -> frozenset[int]:
        return self.failed.union(*(each.customers for each in self.of_clients))


def watching(r: Reading, customer_numbers: Iterable[int]) -> Watchings:
    """What watches these customers: nothing, at the price of one look at an index, where their clients have no
    rulesets.
    """
    numbers = sorted(customer_numbers)
    active = rulesets.active(r, numbers)
    if not active:
        return Watchings([], {}, {}, frozenset())
    by_client: dict[UUID, list[ActiveRuleset]] = defaultdict(list)
    for each in active:
        by_client[each.client_id].append(each)
    of_client: dict[UUID, list[int]] = defaultdict(list)
    for number, client_id in customers.clients_of(r, numbers).items():
        of_client[client_id].append(number)
    found, failed = list[Watching](), set[int]()
    for client_id, by in by_client.items():
        try:
            found.append(_watching(r, by, sorted(of_client[client_id])))
        except AWAY:
            raise
        except (Exception, pl.exceptions.PanicException) as error:  # one client's rulesets blind no other's
            log.error("a client's customers can't be evaluated: %s", type(error).__name__)
            failed.update(of_client[client_id])
    read = {number: each.watch.attributes for each in found if each.watch.attributes for number in each.customers}
    return Watchings(found, read, attributes.last_changes(r, read), frozenset(failed))


def evaluate(
    store: Store,
    watchings: Watchings,
    versions: Mapping[int, int],
    rows_of: Callable[[Sequence[int]], Iterable[pl.DataFrame]],
    cause: Cause,
    now: datetime,
) -> RulesetEvaluation:
    """Evaluate the customers; nothing is changed.

    Args:
        versions: of the transactions that are evaluated, by customer number.
        rows_of: customers' transactions (facts.COLUMNS at least), whole customers at a time.
    """
    failed: list[int] = []
    seen: list[Seen] = []
    as_of = now.astimezone(store.settings.zone).date()
    for each in watchings.of_clients:
        for rows in rows_of(sorted(each.customers)):
            numbers = rows["customer_number"].unique().sort().to_list()
            seen += isolating(partial(_seen, each, rows.select(COLUMNS), as_of, now), numbers, failed)
    evaluated_customers = watchings.customers & versions.keys()
    return RulesetEvaluation(
        cause=cause,
        as_of=as_of,
        zone=store.settings.timezone,
        by=[by for each in watchings.of_clients for by in each.by],
        watched=[one for each in watchings.of_clients for one in each.watched],
        seen=seen,
        outcomes=pl.concat([pl.DataFrame(schema=OUTCOMES), *(each.outcomes for each in seen)]),
        rearm=pl.concat([pl.DataFrame(schema=REARM), *(each.watch.rearm for each in watchings.of_clients)]),
        versions={number: versions[number] for number in sorted(evaluated_customers)},
        attributes_read=watchings.attributes_read,
        attribute_changes=watchings.attribute_changes,
        failed=watchings.failed.union(failed),
    )


def of_batch(store: Store, transactions: pl.DataFrame, versions: Mapping[int, int]) -> RulesetEvaluation | None:
    """Evaluate customers' new values, which a batch is about to commit; None where nothing watches them.

    Whatever goes wrong with it is no reason for the batch to fail: the night evaluates them again.

    Args:
        transactions: of all the customers in `versions`, as they will stand in that version.
    """
    try:
        with store.db.reading() as r:
            watchings = watching(r, versions)
        if not watchings.customers:
            return None
        return evaluate(store, watchings, versions, partial(_rows_of, transactions), Cause.DATA, datetime.now(UTC))
    except AWAY:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        log.exception("a batch's customers could not be evaluated: %s", type(error).__name__)
        return None


def _rows_of(transactions: pl.DataFrame, customer_numbers: Sequence[int]) -> list[pl.DataFrame]:
    return [transactions.filter(pl.col("customer_number").is_in(list(customer_numbers)))]


_watches: OrderedDict[tuple[tuple[UUID, int], ...], Watch] = OrderedDict()


def _watching(r: Reading, by: Sequence[ActiveRuleset], numbers: Sequence[int]) -> Watching:
    watched = rulesets.watched(r, by)
    plan = _plan([each.key for each in by], watched)
    listed = [each.customers for each in watched]
    concerned = set(numbers) if None in listed else set(numbers).intersection(frozenset().union(*filter(None, listed)))
    stated: dict[int, dict[str, Attribute]] = {number: {} for number in sorted(concerned)}
    for number, each in attributes.of_all(r, concerned) if plan.attributes else ():
        if each.name in plan.attributes:
            stated[number][each.name] = Attribute(each.value, each.expires_at)
    return Watching(by, watched, plan, stated)


def _plan(keys: Sequence[tuple[UUID, int]], watched: Sequence[Watched]) -> Watch:
    """Kept from one evaluation to the next: versions of rulesets never change."""
    key = tuple(keys)
    plan = _watches.pop(key, None) or watch(watched)
    _watches[key] = plan
    while len(_watches) > WATCHES_CACHED:
        _watches.popitem(last=False)
    return plan


def _seen(watching: Watching, rows: pl.DataFrame, as_of: date, now: datetime, numbers: Sequence[int]) -> list[Seen]:
    mine = rows.filter(pl.col("customer_number").is_in(list(numbers)))
    stated = {number: watching.attributes[number] for number in numbers}
    found = observed(watching.watch, Facts(mine, as_of), stated, now)
    return [Seen(watching.watch, found, found.outcomes)]
