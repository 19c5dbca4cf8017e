"""Decide what a ruleset evaluation changes: which rules fire or are reset, and which matches and events follow.

The result is a function of two values: the evaluation, which was computed beforehand, and the state of its customers
and rules when it is applied. A customer counts only if its transactions and attributes are still those that were
evaluated, and a ruleset only if the evaluated version is still the active one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from uuid import UUID

import msgspec
import polars as pl

from pipelines.figures.periods import BY_CUSTOMER
from pipelines.monitoring.observing import Observations
from pipelines.monitoring.planning import RulesetKey, VersionedRuleset
from pipelines.monitoring.transitions import NO_TRANSITIONS, Transitions, compute_transitions
from pipelines.webhooks.events import Event, rule_triggered

_encode = msgspec.json.Encoder(decimal_format="number", order="deterministic").encode


class Cause(StrEnum):
    """Why customers were evaluated."""

    DATA = "data"  # their transactions changed
    TIME = "time"  # every night, or when a ruleset or an attribute changed


@dataclass(frozen=True, eq=False)
class EvaluatedCustomers:
    """Some customers of one client, evaluated by all of its rulesets."""

    observed: Observations
    outcomes: pl.DataFrame  # OUTCOMES


@dataclass(frozen=True, eq=False)
class RulesetEvaluation:
    """Customers evaluated by their clients' rulesets. Mappings by int have customer numbers as keys."""

    cause: Cause
    as_of: date  # the service's day
    zone: str  # the service's timezone
    rulesets: Mapping[UUID, VersionedRuleset]
    seen: Sequence[EvaluatedCustomers]
    outcomes: pl.DataFrame  # OUTCOMES of all these customers
    repeats: pl.DataFrame  # REPEATS of all rulesets
    versions: Mapping[int, int]  # data version that each customer was evaluated at
    attributes_read: Mapping[int, AbstractSet[str]]  # names; only of customers with at least one
    attribute_changes: Mapping[int, int]  # number of the last change of these attributes
    failed: frozenset[int]  # customers that could not be evaluated

    @property
    def keys(self) -> frozenset[RulesetKey]:
        return frozenset(each.key for each in self.rulesets.values())


@dataclass(frozen=True)
class CurrentCustomer:
    client_id: UUID
    customer_id: UUID
    data_version: int


@dataclass(frozen=True, eq=False)
class CurrentState:
    """The state of some evaluated customers when their evaluation is applied."""

    customers: Mapping[int, CurrentCustomer]
    attribute_changes: Mapping[int, int]  # as in RulesetEvaluation
    rulesets: AbstractSet[RulesetKey]  # that watch these customers
    firing: pl.DataFrame  # FIRING


@dataclass(frozen=True)
class NewMatch:
    """The rules of one ruleset that fired for one customer, and the event. Fields are in the table's column order."""

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
    record: bytes
    event: Event


@dataclass(frozen=True, eq=False)
class EvaluationEffect:
    """What a ruleset evaluation changes, and for which customers it changes nothing."""

    transitions: Transitions = NO_TRANSITIONS
    matches: Sequence[NewMatch] = ()
    superseded: frozenset[int] = frozenset()  # their transactions or attributes have changed since
    failed: frozenset[int] = frozenset()  # they could not be evaluated, or a match could not be recorded
    errors: Sequence[str] = ()  # types of the errors of matches that could not be recorded

    @property
    def matched(self) -> frozenset[int]:
        """Customers with matches."""
        return frozenset(match.customer_number for match in self.matches)


def decide(
    evaluated: RulesetEvaluation,
    numbers: AbstractSet[int],
    state: CurrentState,
    now: datetime,
    new_id: Callable[[], UUID],
) -> EvaluationEffect:
    """Decide on some of the evaluated customers.

    If one match of a customer can't be recorded, nothing changes for that customer: the next evaluation tries again.

    Args:
        numbers: the numbers of these customers.
        now: the time of matches and events.
        new_id: returns the next match's id, which is its event's id too.
    """
    superseded = frozenset(number for number in numbers if _has_changed(evaluated, state, number))
    outcomes = _valid_outcomes(evaluated, state, numbers - superseded)
    transitions = _transitions(evaluated, state, outcomes)
    matches, errors = _record_matches(evaluated, state, transitions.fired, now, new_id)
    if errors:
        transitions = _transitions(evaluated, state, outcomes.filter(~pl.col(BY_CUSTOMER).is_in(sorted(errors))))
    failed = (evaluated.failed & numbers) | errors.keys()
    return EvaluationEffect(transitions, matches, superseded, failed, list(errors.values()))


def _has_changed(evaluated: RulesetEvaluation, state: CurrentState, number: int) -> bool:
    customer = state.customers.get(number)
    if customer is None or customer.data_version != evaluated.versions[number]:
        return True
    return number in evaluated.attributes_read and (
        state.attribute_changes[number] != evaluated.attribute_changes[number]
    )


def _valid_outcomes(evaluated: RulesetEvaluation, state: CurrentState, numbers: AbstractSet[int]) -> pl.DataFrame:
    """Return OUTCOMES of these customers for rulesets that are still active. Usually these are all rows, and then
    nothing is copied.
    """
    outcomes = evaluated.outcomes
    if numbers != evaluated.versions.keys():
        outcomes = outcomes.filter(pl.col(BY_CUSTOMER).is_in(sorted(numbers)))
    if not evaluated.keys <= state.rulesets:
        valid = [ruleset_id.bytes for ruleset_id, version in evaluated.keys & state.rulesets]
        outcomes = outcomes.filter(pl.col("ruleset_id").is_in(valid))
    return outcomes


def _transitions(evaluated: RulesetEvaluation, state: CurrentState, outcomes: pl.DataFrame) -> Transitions:
    return compute_transitions(outcomes, state.firing, evaluated.repeats, evaluated.as_of, evaluated.zone)


def _record_matches(
    evaluated: RulesetEvaluation, state: CurrentState, fired: pl.DataFrame, now: datetime, new_id: Callable[[], UUID]
) -> tuple[list[NewMatch], dict[int, str]]:
    """Return a match for each customer and ruleset in `fired` (STATE), in this order, and the error's type for each
    customer whose matches could not be recorded.
    """
    by_ruleset = fired.group_by(BY_CUSTOMER, "ruleset_id", maintain_order=True).agg("rule").rows()
    seen = _seen_by_customer(evaluated, {number for number, _, _ in by_ruleset})
    matches, errors = list[NewMatch](), dict[int, str]()
    for number, rows in groupby(by_ruleset, key=itemgetter(0)):
        try:
            matches += [
                _record_match(
                    evaluated, state.customers[number], number, seen[number], UUID(bytes=id_), rules, now, new_id()
                )
                for _, id_, rules in rows
            ]
        except (Exception, pl.exceptions.PanicException) as error:  # one customer's data must not stop the others
            errors[number] = type(error).__name__
    return matches, errors


def _seen_by_customer(evaluated: RulesetEvaluation, numbers: Iterable[int]) -> Mapping[int, Observations]:
    wanted = sorted(numbers)
    customers = [each.outcomes.select(pl.col(BY_CUSTOMER).unique()) for each in evaluated.seen]
    found = [frame.filter(pl.col(BY_CUSTOMER).is_in(wanted))[BY_CUSTOMER].to_list() for frame in customers]
    return {number: each.observed for each, part in zip(evaluated.seen, found, strict=True) for number in part}


def _record_match(
    evaluated: RulesetEvaluation,
    customer: CurrentCustomer,
    number: int,
    observed: Observations,
    ruleset_id: UUID,
    rules: Sequence[str],
    now: datetime,
    match_id: UUID,
) -> NewMatch:
    versioned = evaluated.rulesets[ruleset_id]
    record = {
        "matchId": match_id,
        "clientId": customer.client_id,
        "customerId": customer.customer_id,
        "rulesetId": ruleset_id,
        "rulesetVersion": versioned.version,
        "at": now,
        "asOf": evaluated.as_of,
        "dataVersion": customer.data_version,
        "cause": evaluated.cause,
        "observed": observed.describe_firings(number, ruleset_id, rules),
    }
    return NewMatch(
        match_id=match_id,
        client_id=customer.client_id,
        ruleset_id=ruleset_id,
        version=versioned.version,
        customer_number=number,
        at=now,
        as_of=evaluated.as_of,
        data_version=customer.data_version,
        cause=evaluated.cause,
        rules=rules,
        record=_encode(record),
        event=rule_triggered(
            customer.client_id,
            customer.customer_id,
            ruleset_id,
            versioned.ruleset.slug,
            versioned.ruleset.name,
            event_id=match_id,
            timestamp=now,
        ),
    )
