"""Rule states, counts and matches: what ruleset evaluations changed, and for whom.

A ruleset evaluation is computed before the transaction and applied in it, in three steps: lock and read the customers,
rulesets and rule states (`_current_state`); decide (`pipelines.monitoring.deciding`, pure); write (`_reset`, `_fire`,
`_count`). Whether a rule fires is decided under the locks because another evaluation may have changed its state since:
of two evaluations of one customer at once, the second reads what the first one wrote, so a trigger is reported once.
Deciding before the transaction would need a version of each customer's rule states, and a retry if it has changed. It
would save little, because the slow part, evaluating the conditions, is done before the transaction anyway.

States, matches and events are written together with whatever else the transaction changes, or not at all.
"""

import logging
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import polars as pl
from sqlalchemy import bindparam, delete, func, insert, select

from pipelines.monitoring import (
    Cause,
    CurrentCustomer,
    CurrentState,
    EvaluationEffect,
    NewMatch,
    RulesetEvaluation,
    decide,
)
from pipelines.monitoring.transitions import FIRING
from pipelines.vocabulary.errors import Corrupt, NotFound
from storage.core.database import UNREACHABLE, AnyRow, AnySelect, Reading, Writing, insert_into, read_values
from storage.core.models import customers, monitoring_ruleset_versions, rule_counts, rule_matches, rule_states
from storage.core.paging import Page, Paged, count_total, limit_to_page
from storage.customers.customers import Customer
from storage.monitoring import attributes, rulesets
from storage.monitoring.rulesets import StoredRuleset
from storage.webhooks import outbox
from storage.webhooks.outbox import NewEvent
from storage.work import items
from storage.work.items import FIRED_BY, RULESET_NAME, RULESET_SLUG, ItemKind, NewItem

COUNTED = ("observed", "held", "unknown", "fired")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Match:
    """The rules of one ruleset that fired for one customer in one ruleset evaluation, without the record."""

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
    slug: str  # of the ruleset's version that fired, as the name
    name: str


@dataclass(frozen=True)
class Count:
    """How often a rule was evaluated over some days, and with which results."""

    rule: str
    observed: int
    held: int
    unknown: int  # something that the condition reads was unavailable
    fired: int


# Applying


def apply_ruleset_evaluation(
    w: Writing, evaluated: RulesetEvaluation, customer_numbers: AbstractSet[int], now: datetime
) -> EvaluationEffect:
    """Apply a ruleset evaluation to some of its customers.

    An error undoes only what was written here: the rest of the transaction must not depend on monitoring, and the next
    nightly evaluation tries again. All its customers then count as failed.
    """
    numbers = evaluated.versions.keys() & customer_numbers
    try:
        with w.begin_nested():
            effect = decide(evaluated, numbers, _current_state(w, evaluated, sorted(numbers)), now, uuid4)
            _reset(w, effect.transitions.reset)
            _fire(w, effect.matches, now)
            _count(w, effect.transitions.counts, evaluated.as_of)
    except UNREACHABLE:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        log.exception("a ruleset evaluation could not be applied: %s", type(error).__name__)
        return EvaluationEffect(failed=frozenset(numbers))
    for error_type in effect.errors:
        log.error("a match could not be recorded for one customer: %s", error_type)
    return effect


def _current_state(w: Writing, evaluated: RulesetEvaluation, numbers: Sequence[int]) -> CurrentState:
    """Read what the effect depends on. Customers and rulesets stay locked until the transaction ends."""
    query = select(customers.c.number, customers.c.client_id, customers.c.customer_id, customers.c.data_version)
    in_order = query.where(customers.c.number.in_(numbers)).order_by(customers.c.number)
    found = {number: CurrentCustomer(*row) for number, *row in w.execute(in_order.with_for_update(key_share=True))}
    read = {number: evaluated.attributes_read[number] for number in numbers if number in evaluated.attributes_read}
    return CurrentState(
        customers=found,
        attribute_changes=attributes.last_changes(w, read),
        rulesets=rulesets.lock_watching(w, {each.client_id for each in found.values()}),
        firing=_firing(w, numbers),
    )


def _firing(r: Reading, customer_numbers: Sequence[int]) -> pl.DataFrame:
    """Return the rules that have fired for the customers and were not reset since, in schema FIRING."""
    state = rule_states.c
    query = select(state.customer_number, state.ruleset_id, state.rule, state.fired_at)
    rows = r.execute(query.where(state.customer_number.in_(customer_numbers)))
    return pl.DataFrame(
        [(number, ruleset_id.bytes, rule, at) for number, ruleset_id, rule, at in rows], schema=FIRING, orient="row"
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
    reset_keys = [{"number": number, "ruleset": UUID(bytes=id_), "code": rule} for number, id_, rule in reset.rows()]
    w.execute(delete(rule_states).where(*these), reset_keys)


def _fire(w: Writing, matches: Sequence[NewMatch], now: datetime) -> None:
    """Write states, matches, alerts and events."""
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
    items.open_alerts(w, [_alert(each) for each in matches])
    outbox.enqueue(w, [_event(each) for each in matches])


def _row(match: NewMatch) -> dict[str, Any]:
    columns = {name: value for name, value in vars(match).items() if name != "event"}
    return {**columns, "rules": list(match.rules), "sha256": sha256(match.record).digest()}


def _alert(match: NewMatch) -> NewItem:
    subject = (match.client_id, match.customer_number, match.ruleset_id)
    return NewItem(match.match_id, ItemKind.ALERT, *subject, match.at)


def _event(match: NewMatch) -> NewEvent:
    return NewEvent(
        event_id=match.event.event_id,
        client_id=match.client_id,
        customer_number=match.customer_number,
        job_id=None,
        event_type=match.event.event_type,
        body=match.event.body,
        created_at=match.at,
    )


def _count(w: Writing, counts: pl.DataFrame, day: date) -> None:
    """Add to the day's counts. The rows are sorted, so that transactions that count the same rules can't deadlock."""
    if counts.is_empty():
        return
    statement = insert_into(w, rule_counts)
    sums = {name: rule_counts.c[name] + statement.excluded[name] for name in COUNTED}
    in_order = counts.sort("ruleset_id", "rule").to_dicts()
    rows = [{**row, "ruleset_id": UUID(bytes=row["ruleset_id"]), "day": day} for row in in_order]
    w.execute(statement.on_conflict_do_update(index_elements=["ruleset_id", "rule", "day"], set_=sums), rows)


# Reading


def get(r: Reading, client_id: UUID, match_id: UUID) -> Match:
    """Return the client's match.

    Raises:
        NotFound: unknown, or another client's.
    """
    return _get(r, _SHOWN.where(rule_matches.c.match_id == match_id, rule_matches.c.client_id == client_id))


def get_of_any_client(r: Reading, match_id: UUID) -> Match:
    """Return a match of any client: for the operator, who belongs to none.

    Raises:
        NotFound: unknown.
    """
    return _get(r, _SHOWN.where(rule_matches.c.match_id == match_id))


def with_ids(r: Reading, client_id: UUID, match_ids: Collection[UUID]) -> dict[UUID, Match]:
    """Return the client's matches with these ids."""
    query = _SHOWN.where(rule_matches.c.client_id == client_id, rule_matches.c.match_id.in_(match_ids))
    return {row.match_id: _as_match(row) for row in r.execute(query)}


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
    """Return the client's matches, newest first."""
    query = _SHOWN.where(rule_matches.c.client_id == client_id)
    if customer is not None:
        query = query.where(rule_matches.c.customer_number == customer.number)
    if ruleset is not None:
        query = query.where(rule_matches.c.ruleset_id == ruleset.ruleset_id)
    if created_after is not None:
        query = query.where(rule_matches.c.at > created_after)
    if created_before is not None:
        query = query.where(rule_matches.c.at < created_before)
    rows = r.execute(limit_to_page(query.order_by(rule_matches.c.number.desc()), page))
    total = count_total(r, query.with_only_columns(rule_matches.c.number))
    return Paged([_as_match(row) for row in rows], total, page)


def read_record(r: Reading, match: Match) -> bytes:
    """Return the match's record as JSON: `matchId, clientId, customerId, rulesetId, rulesetVersion, at, asOf,
    dataVersion, cause`, and `observed` as in `Observations.describe_firings`.

    Raises:
        Corrupt: the record was changed.
    """
    found: bytes = r.execute(select(rule_matches.c.record).where(rule_matches.c.number == match.number)).scalar_one()
    if sha256(found).digest() != match.sha256:
        raise Corrupt("RuleMatch.Corrupt", f"The record of match {match.match_id} was changed.")
    return found


def sum_counts(r: Reading, ruleset: StoredRuleset, since: date) -> list[Count]:
    """Return the counts of a ruleset's rules since a day of the service's timezone, by code.

    Rules that were never evaluated are left out. Rules that the ruleset no longer has are included.
    """
    query = select(rule_counts.c.rule, *(func.sum(rule_counts.c[name]) for name in COUNTED))
    selected = query.where(rule_counts.c.ruleset_id == ruleset.ruleset_id, rule_counts.c.day >= since)
    rows = r.execute(selected.group_by(rule_counts.c.rule).order_by(rule_counts.c.rule))
    return [Count(rule, *map(int, sums)) for rule, *sums in rows]


def count_firing(r: Reading, ruleset: StoredRuleset) -> dict[str, int]:
    """Return, by rule, for how many customers it fired and was not reset since. Rules with none are left out."""
    selected = rule_states.c.ruleset_id == ruleset.ruleset_id
    query = select(rule_states.c.rule, func.count().label("customers")).where(selected).group_by(rule_states.c.rule)
    return {row.rule: row.customers for row in r.execute(query.order_by(rule_states.c.rule))}


_OWN = [rule_matches.c[name] for name in Match.__dataclass_fields__ if name in rule_matches.c]
_SHOWN: AnySelect = (
    select(*_OWN, customers.c.customer_id, RULESET_SLUG.label("slug"), RULESET_NAME.label("name"))
    .join_from(rule_matches, customers, rule_matches.c.customer_number == customers.c.number)
    .join(monitoring_ruleset_versions, FIRED_BY)
)


def _get(r: Reading, query: AnySelect) -> Match:
    row = r.execute(query).first()
    if row is None:
        raise NotFound("RuleMatch.NotFound", "There is no match with this id.")
    return _as_match(row)


def _as_match(row: AnyRow) -> Match:
    return Match(**read_values(row, cause=Cause(row.cause)))
