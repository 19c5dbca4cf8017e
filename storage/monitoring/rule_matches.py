"""What rules of monitoring come to: which have fired for whom, how often they were evaluated, and what matched.

A ruleset evaluation is computed before its transaction and decided on inside it (`settle`), with the customers' rows
locked and the rulesets held: what had fired is read there. So of two evaluations of one customer at once the second one
sees what the first one did, and nobody is told twice of one trigger. A ruleset evaluation counts for a customer only
while the customer's transactions and attributes are those that it saw, and for a ruleset only while that says what it
said.

State, match and event are one transaction's, with whatever else moves in it: all of it happens, or nothing.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import msgspec
import polars as pl
from sqlalchemy import bindparam, delete, func, insert, select

from pipelines.monitoring import Moves, Observed, Watch, Watched, moves
from pipelines.monitoring.moving import FIRING
from pipelines.vocabulary.errors import Corrupt, NotFound
from pipelines.webhooks.events import rule_triggered
from storage.core.database import AWAY, AnyRow, AnySelect, Reading, Writing, insert_into, values_of
from storage.core.models import customers, monitoring_rulesets, rule_counts, rule_matches, rule_states
from storage.core.paging import Page, Paged, limited, total_of
from storage.customers.customers import Customer, ids_of, versions
from storage.monitoring import attributes, rulesets
from storage.monitoring.rulesets import ActiveRuleset, StoredRuleset
from storage.webhooks import outbox
from storage.webhooks.outbox import NewEvent

COUNTED = ("observed", "held", "unknown", "fired")

log = logging.getLogger(__name__)

_encode = msgspec.json.Encoder(decimal_format="number", order="deterministic").encode


class Cause(StrEnum):
    """What brought the ruleset evaluation."""

    DATA = "data"  # the customer's transactions changed
    TIME = "time"  # the night came; or a ruleset or an attribute changed


@dataclass(frozen=True, eq=False)
class Seen:
    """Some customers of one client, seen by all of its rulesets."""

    watch: Watch
    observed: Observed
    outcomes: pl.DataFrame  # OUTCOMES


@dataclass(frozen=True, eq=False)
class RulesetEvaluation:
    """What looking came to, ready to be decided on: all that takes long is worked out. Numbers are customers'."""

    cause: Cause
    as_of: date  # the service's day
    zone: str  # the service's timezone
    by: Sequence[ActiveRuleset]
    watched: Sequence[Watched]  # by them
    seen: Sequence[Seen]
    outcomes: pl.DataFrame  # OUTCOMES of all that was seen
    rearm: pl.DataFrame  # REARM of all that was watched
    versions: Mapping[int, int]  # of the transactions that each customer was evaluated in
    attributes_read: Mapping[int, AbstractSet[str]]  # their names, of each customer of whom any were
    attribute_changes: Mapping[int, int]  # the last one of these
    failed: frozenset[int]  # customers that could not be evaluated

    @cached_property
    def of_ruleset(self) -> Mapping[UUID, tuple[ActiveRuleset, Watched]]:
        """By what was looked, by its id."""
        return {by.ruleset_id: (by, each) for by, each in zip(self.by, self.watched, strict=True)}


@dataclass(frozen=True)
class Settled:
    """What a ruleset evaluation changed: how many matches, of how many customers; who was evaluated without a result,
    and who has moved.
    """

    matches: int = 0
    customers: int = 0
    failed: frozenset[int] = frozenset()
    moved: frozenset[int] = frozenset()  # other transactions or attributes than were evaluated


@dataclass(frozen=True)
class Match:
    """All that fired of a ruleset for a customer in one ruleset evaluation, without its record."""

    number: int
    match_id: UUID
    client_id: UUID
    ruleset_id: UUID
    version: int
    customer_number: int
    at: datetime
    as_of: date
    data_version: int
    cause: Cause
    rules: Sequence[str]  # codes
    sha256: bytes  # of the record
    customer_id: UUID
    slug: str  # the ruleset's, now
    name: str


@dataclass(frozen=True)
class Count:
    """Ruleset evaluations of customers by a rule, over some days."""

    rule: str
    observed: int
    held: int
    unknown: int  # something that the condition needs was unavailable
    fired: int


# Deciding


def settle(w: Writing, evaluated: RulesetEvaluation, now: datetime, only: Iterable[int] | None = None) -> Settled:
    """Decide on a ruleset evaluation, as of all that holds in this transaction.

    Args:
        only: these customers alone.
    """
    evaluated_customers = evaluated.versions.keys() if only is None else evaluated.versions.keys() & set(only)
    moved = _moved(w, evaluated, sorted(evaluated_customers))
    still = rulesets.hold(w, evaluated.by)
    made, matches, failed = _decided(w, evaluated, _that_count(evaluated, evaluated_customers - moved, still), now)
    _reset(w, made.reset)
    _fire(w, matches, now)
    _count(w, made.counts, evaluated.as_of)
    failed |= evaluated.failed & evaluated_customers
    return Settled(len(matches), len({each.customer_number for each in matches}), failed, moved)


def settle_if_possible(w: Writing, evaluated: RulesetEvaluation, now: datetime, only: AbstractSet[int]) -> Settled:
    """`settle`; whatever goes wrong with it leaves the rest of the transaction alone: the night evaluates again."""
    try:
        with w.begin_nested():
            return settle(w, evaluated, now, only)
    except AWAY:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        log.exception("a ruleset evaluation could not be decided on: %s", type(error).__name__)
        return Settled(failed=frozenset(only))


@dataclass(frozen=True)
class _NewMatch:
    match_id: UUID
    client_id: UUID
    ruleset_id: UUID
    version: int
    customer_number: int
    at: datetime
    as_of: date
    data_version: int
    cause: Cause
    rules: Sequence[str]
    record: bytes
    event: NewEvent


def _moved(w: Writing, evaluated: RulesetEvaluation, customer_numbers: Sequence[int]) -> frozenset[int]:
    """Customers who are no longer what was evaluated; all stay locked until the transaction ends."""
    mine = select(customers.c.number).where(customers.c.number.in_(customer_numbers)).order_by(customers.c.number)
    w.execute(mine.with_for_update(key_share=True)).all()
    now_at = versions(w, customer_numbers)
    read = {
        number: evaluated.attributes_read[number] for number in customer_numbers if number in evaluated.attributes_read
    }
    changes = attributes.last_changes(w, read)
    return frozenset(
        {number for number in customer_numbers if now_at.get(number) != evaluated.versions[number]}
        | {number for number in read if changes[number] != evaluated.attribute_changes[number]}
    )


def _that_count(
    evaluated: RulesetEvaluation, customer_numbers: AbstractSet[int], ruleset_ids: AbstractSet[UUID]
) -> pl.DataFrame:
    """OUTCOMES of these customers and rulesets: mostly of all that were evaluated."""
    outcomes = evaluated.outcomes
    if customer_numbers != evaluated.versions.keys():
        outcomes = outcomes.filter(pl.col("customer_number").is_in(sorted(customer_numbers)))
    if len(ruleset_ids) != len(evaluated.by):
        outcomes = outcomes.filter(pl.col("ruleset_id").is_in(sorted(each.bytes for each in ruleset_ids)))
    return outcomes


def _decided(
    w: Writing, evaluated: RulesetEvaluation, outcomes: pl.DataFrame, now: datetime
) -> tuple[Moves, list[_NewMatch], frozenset[int]]:
    """What changes, and for whom that could not be told: of them nothing does."""
    firing = _firing(w, outcomes["customer_number"].unique().to_list())
    made = moves(outcomes, firing, evaluated.rearm, evaluated.as_of, evaluated.zone)
    matches, failed = _matches(w, evaluated, made.fired, now)
    if not failed:
        return made, matches, failed
    others = outcomes.filter(~pl.col("customer_number").is_in(sorted(failed)))
    untouched = [each for each in matches if each.customer_number not in failed]
    return moves(others, firing, evaluated.rearm, evaluated.as_of, evaluated.zone), untouched, failed


def _firing(r: Reading, customer_numbers: Sequence[int]) -> pl.DataFrame:
    state = rule_states.c
    query = select(state.customer_number, state.ruleset_id, state.rule, state.fired_at)
    rows = r.execute(query.where(state.customer_number.in_(customer_numbers)))
    return pl.DataFrame(
        [(number, ruleset_id.bytes, rule, at) for number, ruleset_id, rule, at in rows], schema=FIRING, orient="row"
    )


def _matches(
    w: Writing, evaluated: RulesetEvaluation, fired: pl.DataFrame, now: datetime
) -> tuple[list[_NewMatch], frozenset[int]]:
    """A match for each customer and ruleset of what fired (STATE), in their order; and whose could not be made."""
    by_one = fired.group_by("customer_number", "ruleset_id", maintain_order=True).agg("rule").rows()
    concerned = {number for number, _, _ in by_one}
    ids, seen = ids_of(w, concerned), _seen(evaluated, concerned)
    made, failed = list[_NewMatch](), set[int]()
    for number, ruleset_id, rules in by_one:
        try:
            made.append(_match(evaluated, seen[number], (number, ids[number]), UUID(bytes=ruleset_id), rules, now))
        except (Exception, pl.exceptions.PanicException) as error:  # one customer's data take no other's match away
            log.error("a match could not be recorded for one customer: %s", type(error).__name__)
            failed.add(number)
    return made, frozenset(failed)


def _seen(evaluated: RulesetEvaluation, customer_numbers: Iterable[int]) -> Mapping[int, Seen]:
    wanted = pl.Series("customer_number", sorted(customer_numbers), pl.Int64)
    numbers = [each.outcomes["customer_number"].unique() for each in evaluated.seen]
    among = [mine.filter(mine.is_in(wanted.implode())).to_list() for mine in numbers]
    return {number: each for each, mine in zip(evaluated.seen, among, strict=True) for number in mine}


def _match(
    evaluated: RulesetEvaluation,
    seen: Seen,
    customer: tuple[int, UUID],
    ruleset_id: UUID,
    rules: Sequence[str],
    now: datetime,
) -> _NewMatch:
    number, customer_id = customer
    active, watched = evaluated.of_ruleset[ruleset_id]
    match_id = uuid4()
    described = {
        "matchId": match_id,
        "clientId": active.client_id,
        "customerId": customer_id,
        "rulesetId": ruleset_id,
        "rulesetVersion": active.version,
        "at": now,
        "asOf": evaluated.as_of,
        "dataVersion": evaluated.versions[number],
        "cause": evaluated.cause,
        "observed": seen.observed.record(number, ruleset_id, rules),
    }
    event = rule_triggered(
        active.client_id,
        customer_id,
        ruleset_id,
        watched.ruleset.slug,
        watched.ruleset.name,
        event_id=match_id,
        timestamp=now,
    )
    return _NewMatch(
        match_id=match_id,
        client_id=active.client_id,
        ruleset_id=ruleset_id,
        version=active.version,
        customer_number=number,
        at=now,
        as_of=evaluated.as_of,
        data_version=evaluated.versions[number],
        cause=evaluated.cause,
        rules=rules,
        record=_encode(described),
        event=NewEvent(match_id, active.client_id, number, None, event.event_type, event.body, now),
    )


def _reset(w: Writing, reset: pl.DataFrame) -> None:
    if reset.is_empty():
        return
    state = rule_states.c
    these = (
        state.customer_number == bindparam("number"),
        state.ruleset_id == bindparam("ruleset"),
        state.rule == bindparam("code"),
    )
    gone = [{"number": number, "ruleset": UUID(bytes=id_), "code": rule} for number, id_, rule in reset.rows()]
    w.execute(delete(rule_states).where(*these), gone)


def _fire(w: Writing, matches: Sequence[_NewMatch], now: datetime) -> None:
    """States, matches and events."""
    if not matches:
        return
    key = ("customer_number", "ruleset_id", "rule")
    state = insert_into(w, rule_states)
    again = {name: state.excluded[name] for name in ("fired_at", "match_id")}
    fired = [
        dict(zip(key, (each.customer_number, each.ruleset_id, rule), strict=True))
        | {"fired_at": now, "match_id": each.match_id}
        for each in matches
        for rule in each.rules
    ]
    w.execute(state.on_conflict_do_update(index_elements=key, set_=again), fired)
    w.execute(insert(rule_matches), [_row(each) for each in matches])
    outbox.enqueue(w, [each.event for each in matches])


def _row(match: _NewMatch) -> dict[str, Any]:
    said = {name: value for name, value in vars(match).items() if name != "event"}
    return {**said, "rules": list(match.rules), "sha256": sha256(match.record).digest()}


def _count(w: Writing, counts: pl.DataFrame, day: date) -> None:
    """The rows in order, so that two transactions that count the same rules never wait for each other in a circle."""
    if counts.is_empty():
        return
    statement = insert_into(w, rule_counts)
    sums = {name: rule_counts.c[name] + statement.excluded[name] for name in COUNTED}
    in_order = counts.sort("ruleset_id", "rule").to_dicts()
    rows = [{**row, "ruleset_id": UUID(bytes=row["ruleset_id"]), "day": day} for row in in_order]
    w.execute(statement.on_conflict_do_update(index_elements=["ruleset_id", "rule", "day"], set_=sums), rows)


# Reading


def get(r: Reading, client_id: UUID, match_id: UUID) -> Match:
    """The client's match.

    Raises:
        NotFound: unknown, or another client's.
    """
    return _one(r, _SHOWN.where(rule_matches.c.match_id == match_id, rule_matches.c.client_id == client_id))


def with_id(r: Reading, match_id: UUID) -> Match:
    """The match, whoever's it is: for the operator, who belongs to no client.

    Raises:
        NotFound: unknown.
    """
    return _one(r, _SHOWN.where(rule_matches.c.match_id == match_id))


def find(
    r: Reading,
    client_id: UUID,
    *,
    customer: Customer | None = None,
    ruleset: StoredRuleset | None = None,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
    page: Page | None = None,
) -> Paged[Match]:
    """The client's matches, newest first."""
    query = _SHOWN.where(rule_matches.c.client_id == client_id)
    if customer is not None:
        query = query.where(rule_matches.c.customer_number == customer.number)
    if ruleset is not None:
        query = query.where(rule_matches.c.ruleset_id == ruleset.ruleset_id)
    if created_after is not None:
        query = query.where(rule_matches.c.at > created_after)
    if created_before is not None:
        query = query.where(rule_matches.c.at < created_before)
    rows = r.execute(limited(query.order_by(rule_matches.c.number.desc()), page))
    total = total_of(r, query.with_only_columns(rule_matches.c.number))
    return Paged([_shown(row) for row in rows], total, page)


def record(r: Reading, match: Match) -> bytes:
    """The JSON that the match made: `matchId, clientId, customerId, rulesetId, rulesetVersion, at, asOf, dataVersion,
    cause`, and `observed` as `Observed.record` told it.

    Raises:
        Corrupt: it is not what was written.
    """
    found: bytes = r.execute(select(rule_matches.c.record).where(rule_matches.c.number == match.number)).scalar_one()
    if sha256(found).digest() != match.sha256:
        raise Corrupt("RuleMatch.Corrupt", f"The record of match {match.match_id} was changed.")
    return found


def counts(r: Reading, ruleset: StoredRuleset, since: date) -> list[Count]:
    """What each of its rules came to since a day (the service's, included), by code; rules that were never looked by,
    and those that are gone, too, where they were.
    """
    query = select(rule_counts.c.rule, *(func.sum(rule_counts.c[name]) for name in COUNTED))
    mine = query.where(rule_counts.c.ruleset_id == ruleset.ruleset_id, rule_counts.c.day >= since)
    rows = r.execute(mine.group_by(rule_counts.c.rule).order_by(rule_counts.c.rule))
    return [Count(rule, *map(int, sums)) for rule, *sums in rows]


def fired_now(r: Reading, ruleset: StoredRuleset) -> dict[str, int]:
    """For how many customers each of its rules has fired and hasn't been seen false since, by code; without zeros."""
    mine = rule_states.c.ruleset_id == ruleset.ruleset_id
    query = select(rule_states.c.rule, func.count().label("customers")).where(mine).group_by(rule_states.c.rule)
    return {row.rule: row.customers for row in r.execute(query.order_by(rule_states.c.rule))}


_OWN = [rule_matches.c[name] for name in Match.__dataclass_fields__ if name in rule_matches.c]
_SHOWN: AnySelect = (
    select(*_OWN, customers.c.customer_id, monitoring_rulesets.c.slug, monitoring_rulesets.c.name)
    .join_from(rule_matches, customers, rule_matches.c.customer_number == customers.c.number)
    .join(monitoring_rulesets, monitoring_rulesets.c.ruleset_id == rule_matches.c.ruleset_id)
)


def _one(r: Reading, query: AnySelect) -> Match:
    row = r.execute(query).first()
    if row is None:
        raise NotFound("RuleMatch.NotFound", "There is no match with this id.")
    return _shown(row)


def _shown(row: AnyRow) -> Match:
    return Match(**values_of(row, cause=Cause(row.cause)))
