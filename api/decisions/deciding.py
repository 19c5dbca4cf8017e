"""Deciding for a caller: what is asked for, read in one snapshot; the figures, computed or known; and the decision.

A policy's plan and a customer's figures are kept for a while. Both are pure: a plan follows from the policy's
fingerprint, figures from the version of the customer's data, the day and the metrics' fingerprint.
"""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from threading import Lock
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

import polars as pl

from api.core.dependencies import Caller
from api.core.derived import BYTES_A_ROW
from api.core.schemas.rules import MAX_FAULTS
from api.customers.schemas.attributes import MAX_TEXT
from api.decisions.schemas.evaluations import SentAxis, SentEvaluation
from pipelines.decisions import (
    Attribute,
    Case,
    Decision,
    Kind,
    Node,
    Plan,
    Ready,
    StatedAttribute,
    Value,
    decision,
    kinds,
)
from pipelines.decisions.numbers import rounded
from pipelines.decisions.policy import NAME
from pipelines.decisions.sensitivity import Axis, numeric_leaves
from pipelines.figures import facts
from pipelines.figures.facts import Facts
from pipelines.intake.masking import mask_text
from pipelines.vocabulary.errors import Conflict, Fault, InvalidRequest
from pipelines.vocabulary.schemas import TRANSACTIONS
from storage.core.database import Reading
from storage.core.lake import Lake
from storage.core.models import PolicyState
from storage.customers.customers import Customer
from storage.decisions import policies
from storage.decisions.evaluations import NewEvaluation
from storage.decisions.policies import Challenger, PolicyVersion, StoredPolicy
from storage.enrichment import transactions
from storage.enrichment.transactions import Location
from storage.jobs import jobs
from storage.monitoring import attributes
from storage.monitoring.attributes import Attribute as StoredAttribute

PLANS, FIGURES = 256, 1_024  # kept at most; a customer's figures are one row
MISSING, UNKNOWN, INVALID = (f"DecisionPolicy.{kind}" for kind in ("MissingInputs", "UnknownInputs", "InvalidInputs"))
IN_WORDS = {
    MISSING: "Not every declared input is given.",
    UNKNOWN: "Inputs are given that the policy doesn't declare.",
    INVALID: "A value is not of its kind.",
}
_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")
_KINDS: Mapping[Kind, str] = {
    "decimal": "a number, or a text that is one, below 10^15",
    "boolean": "true or false",
    "string": f"a text of at most {MAX_TEXT:,} characters",
}

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The things asked for last. Two who ask for the same at once may both make it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._cached: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def get(self, key: K, make: Callable[[], V]) -> V:
        with self._lock:
            if key in self._cached:
                self._cached.move_to_end(key)
                return self._cached[key]
        made = make()
        with self._lock:
            self._cached[key] = made
            if len(self._cached) > self._most:
                self._cached.popitem(last=False)
        return made


@dataclass(frozen=True)
class FigureKey:
    """What a customer's figures follow from."""

    customer_number: int
    data_version: int
    as_of: date
    metrics_fingerprint: str


@dataclass(frozen=True)
class Cache:
    """What a process keeps for the next evaluation."""

    plans: Recent[str, Ready] = field(default_factory=lambda: Recent(PLANS))
    figures: Recent[FigureKey, pl.DataFrame] = field(default_factory=lambda: Recent(FIGURES))

    def ready(self, version: PolicyVersion) -> Ready:
        return self.plans.get(version.fingerprint, lambda: Ready.of(version.policy))


@dataclass(frozen=True)
class Snapshot:
    """All that an evaluation reads, as it stood at one moment."""

    customer: Customer
    policy: StoredPolicy
    version: PolicyVersion
    challenger: PolicyVersion | None
    place: Location | None
    attributes: Mapping[str, StoredAttribute]
    pending_jobs: tuple[UUID, ...]


def snapshot(r: Reading, customer: Customer, policy: StoredPolicy, number: int | None) -> Snapshot:
    """
    Raises:
        NotFound: there is no such version, or none that is published.
        Conflict: the policy is archived.
    """
    if policy.is_archived:
        raise Conflict("DecisionPolicy.Archived", "The decision policy is archived.")
    version = policies.version(r, policy, number)
    challenger = policy.challenger if number is None else None
    if challenger is not None and not _is_chosen(customer, policy, challenger):
        challenger = None
    return Snapshot(
        customer,
        policy,
        version,
        None if challenger is None else policies.version(r, policy, challenger.version),
        transactions.place_of(r, customer),
        {each.name: each for each in attributes.current(r, customer)},
        jobs.unfinished(r, customer.number),
    )


def _is_chosen(customer: Customer, policy: StoredPolicy, challenger: Challenger) -> bool:
    """The same customers for as long as the challenger is the same."""
    text = f"{policy.policy_id}/{challenger.version}/{customer.customer_id}"
    share = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
    return share * 100 < challenger.percent


@dataclass(frozen=True)
class Asked:
    """An evaluation that can be made: the policy's plan, the case, and overrides that nobody reads."""

    ready: Ready
    case: Case
    ignored: Sequence[str]

    @property
    def message(self) -> str | None:
        """Names the overrides that were ignored, in so far as they are names."""
        if not self.ignored:
            return None
        named = sorted(name for name in self.ignored if re.fullmatch(NAME, name))[:MAX_FAULTS]
        others = len(self.ignored) - len(named)
        stated = ", ".join([*named, *([f"{others} more"] if others else [])])
        return f"Overrides that the policy doesn't read were ignored: {stated}."


@dataclass(frozen=True)
class Given:
    """What was sent with an evaluation, each value of its kind."""

    inputs: Mapping[str, Value]
    overridden: Mapping[str, Attribute] = field(default_factory=dict)


def asked(caller: Caller, found: Snapshot, sent: SentEvaluation) -> Asked:
    """What is sent, as what the policy's version asks for.

    Raises:
        InvalidRequest: with every fault of the inputs and overrides.
    """
    ready = cached(caller).ready(found.version)
    declared = kinds(ready.plan.policy.declared_inputs)
    inputs, faults = _read_inputs(declared, sent.inputs or {})
    overrides = sent.attribute_overrides or {}
    overridden, more = _read_overrides(ready.plan, overrides)
    _refuse([*faults, *more])
    case = _case(caller, found, found.version, ready.plan, Given(inputs, overridden))
    return Asked(ready, case, [name for name in overrides if name not in overridden])


def shadow(caller: Caller, found: Snapshot, real: Asked) -> Asked | None:
    """The same by the challenger, where one is to be run beside a decision that is answered. It declares no inputs
    but those of the published version.
    """
    if found.challenger is None or real.case.what_if:
        return None
    ready = cached(caller).ready(found.challenger)
    declared = kinds(ready.plan.policy.declared_inputs)
    inputs = {name: value for name, value in real.case.inputs.items() if name in declared}
    case = _case(caller, found, found.challenger, ready.plan, Given(inputs))
    case = replace(case, what_if=False, shadow_of=real.case.evaluation_id)
    return Asked(ready, case, ())


def figures(caller: Caller, found: Snapshot, asked_: Asked) -> pl.DataFrame:
    """The customer's row of the plan's figures, as of the case's day."""
    case, ready = asked_.case, asked_.ready
    key = FigureKey(case.customer_number, case.data_version, case.as_of, ready.metrics_fingerprint)
    return cached(caller).figures.get(key, lambda: _computed(caller, found, key, ready.plan))


def _computed(caller: Caller, found: Snapshot, key: FigureKey, plan: Plan) -> pl.DataFrame:
    with caller.request.app.state.memory.taken(caller.asker, found.customer.enriched_rows * BYTES_A_ROW):
        return figures_at(caller.store.lake, found.place, key.customer_number, key.as_of, plan)


def figures_at(lake: Lake, place: Location | None, customer_number: int, as_of: date, plan: Plan) -> pl.DataFrame:
    """The customer's row of the plan's figures, from one version of its data."""
    rows = _NO_ROWS if place is None or not plan.metrics else place.scan(lake).select(facts.COLUMNS).collect()
    return decision.figures(Facts(rows, as_of), plan, [customer_number])


_NO_ROWS = pl.DataFrame(schema={name: TRANSACTIONS[name] for name in facts.COLUMNS})


def decided(caller: Caller, found: Snapshot, asked_: Asked) -> tuple[Decision, NewEvaluation]:
    """The decision, and what is kept of it."""
    made, case = decision.decide(asked_.ready, asked_.case, figures(caller, found, asked_)), asked_.case
    new = NewEvaluation(
        evaluation_id=case.evaluation_id,
        client_id=caller.client_id,
        customer_number=case.customer_number,
        policy_id=case.policy_id,
        version=case.policy_version,
        at=case.at,
        who=caller.actor.who,
        what_if=case.what_if,
        outcome=made.outcome,
        data_version=case.data_version,
        as_of=case.as_of,
        record=made.record,
        shadow_of=case.shadow_of,
    )
    return made, new


def cached(caller: Caller) -> Cache:
    found: Cache = caller.request.app.state.cache
    return found


def _case(caller: Caller, found: Snapshot, version: PolicyVersion, plan: Plan, given: Given) -> Case:
    """A new evaluation; by a version that isn't published it decides nothing, as with overrides."""
    stored = {name: found.attributes[name] for name in plan.labels("attribute") if name in found.attributes}
    stated = {name: _stated(each) for name, each in stored.items()}
    return Case(
        evaluation_id=uuid4(),
        customer_id=found.customer.customer_id,
        customer_number=found.customer.number,
        policy_id=found.policy.policy_id,
        policy_version=version.version,
        data_version=found.customer.data_version,
        as_of=caller.today,
        at=caller.now,
        inputs=given.inputs,
        attributes=stated | {name: StatedAttribute(each) for name, each in given.overridden.items()},
        pending_jobs=found.pending_jobs,
        what_if=bool(given.overridden) or version.state != PolicyState.PUBLISHED,
    )


def _stated(stored: StoredAttribute) -> StatedAttribute:
    reading = Attribute(stored.value, stored.expires_at)
    return StatedAttribute(reading, stored.source, stored.evidence_date, stored.set_at, stored.set_by)


# What is sent


def read_inputs(declared: Mapping[str, Kind], sent: Mapping[str, Any]) -> dict[str, Value]:
    """A value for each declared input.

    Raises:
        InvalidRequest: with every fault.
    """
    inputs, faults = _read_inputs(declared, sent)
    _refuse(faults)
    return inputs


def _read_inputs(declared: Mapping[str, Kind], sent: Mapping[str, Any]) -> tuple[dict[str, Value], list[Fault]]:
    """What is missing first, then what is unknown, then what is of another kind."""
    missing = [
        Fault(f"/inputs/{name}", MISSING, f"The input {name} is missing.") for name in declared if name not in sent
    ]
    unknown = [
        Fault(_pointer("inputs", name), UNKNOWN, "The policy declares no such input.")
        for name in sent
        if name not in declared
    ]
    read, wrong = _read("inputs", declared, {name: each for name, each in sent.items() if name in declared})
    return read, [*missing, *unknown, *wrong]


def _read_overrides(plan: Plan, sent: Mapping[str, Any]) -> tuple[dict[str, Attribute], list[Fault]]:
    """Only those that the policy reads; null: as if it were not set."""
    read = {node.label: node.kind for node in plan.nodes.values() if node.operator == "attribute"}
    values, faults = _read(
        "attributeOverrides", read, {name: each for name, each in sent.items() if name in read and each is not None}
    )
    unset: dict[str, Value | None] = {name: None for name, each in sent.items() if name in read and each is None}
    return {name: Attribute(each, source="overridden") for name, each in (values | unset).items()}, faults


def _read(where: str, declared: Mapping[str, Kind], sent: Mapping[str, Any]) -> tuple[dict[str, Value], list[Fault]]:
    found: dict[str, Value] = {}
    faults: list[Fault] = []
    for name, given in sent.items():
        kind = declared[name]
        value = _PARSERS[kind](given)
        if value is None:
            faults.append(Fault(f"/{where}/{name}", INVALID, f"{name} must be {_KINDS[kind]}."))
        else:
            found[name] = value
    return found, faults


def _decimal(given: Any) -> Decimal | None:
    """As policies count: eight places."""
    if not isinstance(given, str) or not _NUMBER.fullmatch(given):
        return None
    number = rounded(Decimal(given))
    return None if number is None else Decimal(f"{number.normalize() + 0:f}")  # no zero below zero


def _boolean(given: Any) -> bool | None:
    return given if type(given) is bool else None


def _string(given: Any) -> str | None:
    return mask_text(given) if type(given) is str and len(given) <= MAX_TEXT else None


_PARSERS: Mapping[Kind, Callable[[Any], Value | None]] = {"decimal": _decimal, "boolean": _boolean, "string": _string}


def _refuse(faults: Sequence[Fault]) -> None:
    if faults:
        code = next(code for code in IN_WORDS if any(fault.code == code for fault in faults))
        raise InvalidRequest(code, IN_WORDS[code], tuple(faults[:MAX_FAULTS]))


def _pointer(where: str, name: str) -> str:
    """What is no name is not repeated."""
    return f"/{where}/{name}" if re.fullmatch(NAME, name) else f"/{where}"


def axis(plan: Plan, sent: SentAxis, pointer: str) -> Axis:
    """
    Raises:
        InvalidRequest: the policy reads no such number, or a value is none.
    """
    values = [_decimal(each) for each in sent.values]
    node = next((each for each in numeric_leaves(plan) if (each.operator, each.label) == sent.leaf), None)
    faults = [
        *_fault_of_leaf(node, pointer),
        *(
            Fault(f"{pointer}/values/{nth}", INVALID, f"A value must be {_KINDS['decimal']}.")
            for nth, value in enumerate(values)
            if value is None
        ),
    ]
    if node is None or faults:
        raise InvalidRequest(faults[0].code, faults[0].message, tuple(faults[:MAX_FAULTS]))
    return Axis(node, [value for value in values if value is not None])


def _fault_of_leaf(node: Node | None, pointer: str) -> Iterator[Fault]:
    if node is None:
        yield Fault(
            pointer, "DecisionPolicy.UnknownNumber", "One metric, attribute or input that the policy counts with."
        )
