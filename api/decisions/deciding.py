"""Evaluate a policy for a caller: read all inputs in one snapshot, compute or look up the figures, and decide.

Plans of policies and figures of customers are cached. This is safe because a plan depends only on the policy's
fingerprint, and figures only on the version of the customer's data, the day, the metrics' fingerprint and the findings
that were resolved.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import polars as pl

from api.core.derived import BYTES_PER_ROW
from api.core.recent import Recent
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
    PlannedPolicy,
    StatedAttribute,
    Value,
    decision,
    kinds_by_name,
)
from pipelines.decisions.numbers import round_value
from pipelines.decisions.policy import NAME
from pipelines.decisions.sensitivity import Axis, numeric_leaves
from pipelines.figures import facts
from pipelines.figures.context import Context
from pipelines.figures.facts import Facts
from pipelines.intake.masking import mask_text
from pipelines.vocabulary.errors import Conflict, Fault, InvalidRequest
from pipelines.vocabulary.schemas import TRANSACTIONS
from storage.core.database import Reading
from storage.core.lake import Lake
from storage.core.models import PolicyState
from storage.customers.customers import Customer
from storage.decisions import context, policies
from storage.decisions.evaluations import NewEvaluation
from storage.decisions.policies import Challenger, PolicyVersion, StoredPolicy
from storage.enrichment import transactions
from storage.enrichment.transactions import Location
from storage.jobs import jobs
from storage.monitoring import attributes
from storage.monitoring.attributes import Attribute as StoredAttribute

if TYPE_CHECKING:
    from api.http.dependencies import Caller

PLANS, FIGURES = 256, 1_024  # most entries in the caches (our judgement); a customer's figures are one row
MISSING, UNKNOWN, INVALID = (f"DecisionPolicy.{kind}" for kind in ("MissingInputs", "UnknownInputs", "InvalidInputs"))
IN_WORDS = {
    MISSING: "A declared input is missing.",
    UNKNOWN: "The policy doesn't declare one of the inputs.",
    INVALID: "A value is not of its kind.",
}
_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")
_KINDS: Mapping[Kind, str] = {
    "decimal": "a number, or a text that contains one, below 10^15",
    "boolean": "true or false",
    "string": f"a text of at most {MAX_TEXT:,} characters",
}


@dataclass(frozen=True)
class FigureKey:
    """Everything that a customer's figures depend on."""

    customer_number: int
    data_version: int
    as_of: date
    metrics_fingerprint: str
    resolved: frozenset[str]  # keys of resolved findings


@dataclass(frozen=True)
class Cache:
    """The caches of a process."""

    plans: Recent[str, PlannedPolicy] = field(default_factory=lambda: Recent(PLANS))
    figures: Recent[FigureKey, pl.DataFrame] = field(default_factory=lambda: Recent(FIGURES))

    def plan_version(self, version: PolicyVersion) -> PlannedPolicy:
        return self.plans.get(version.fingerprint, lambda: PlannedPolicy.of(version.policy))


@dataclass(frozen=True)
class Snapshot:
    """Everything that an evaluation reads, at one moment."""

    customer: Customer
    policy: StoredPolicy
    version: PolicyVersion
    challenger: PolicyVersion | None
    location: Location | None
    attributes: Mapping[str, StoredAttribute]
    pending_jobs: tuple[UUID, ...]
    context: Context  # what metrics read besides transactions


def read_snapshot(
    r: Reading, caller: "Caller", customer: Customer, policy: StoredPolicy, number: int | None
) -> Snapshot:
    """Read everything that an evaluation by a version of the policy needs; None: by the published version.

    Raises:
        NotFound: there is no such version, or no published one.
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
        transactions.find_location(r, customer),
        {each.name: each for each in attributes.read_current(r, customer)},
        jobs.find_unfinished_changes(r, customer.number),
        context.read_for_metrics(r, [customer.number], caller.store.settings.zone, caller.now),
    )


def _is_chosen(customer: Customer, policy: StoredPolicy, challenger: Challenger) -> bool:
    """Return whether the challenger runs for this customer. A challenger always runs for the same customers."""
    text = f"{policy.policy_id}/{challenger.version}/{customer.customer_id}"
    share = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
    return share * 100 < challenger.percent


@dataclass(frozen=True)
class Prepared:
    """A checked evaluation: the policy's plan, the case, and the names of overrides that the policy doesn't read."""

    planned: PlannedPolicy
    case: Case
    ignored: Sequence[str]

    @property
    def message(self) -> str | None:
        """A message about the ignored overrides. Only valid names are repeated in it, others are counted."""
        if not self.ignored:
            return None
        named = sorted(name for name in self.ignored if re.fullmatch(NAME, name))[:MAX_FAULTS]
        others = len(self.ignored) - len(named)
        stated = ", ".join([*named, *([f"{others} more"] if others else [])])
        return f"Overrides that the policy doesn't read were ignored: {stated}."


@dataclass(frozen=True)
class SentValues:
    """The values sent with an evaluation, each parsed as its kind."""

    inputs: Mapping[str, Value]
    overridden: Mapping[str, Attribute] = field(default_factory=dict)
    what_if: bool = False


def prepare(caller: "Caller", snapshot: Snapshot, sent: SentEvaluation) -> Prepared:
    """Check a sent evaluation against the policy's version.

    Raises:
        InvalidRequest: with every fault of the inputs and overrides.
    """
    planned = cache(caller).plan_version(snapshot.version)
    declared = kinds_by_name(planned.plan.policy.declared_inputs)
    inputs, faults = _read_inputs(declared, sent.inputs or {})
    overrides = sent.attribute_overrides or {}
    overridden, more = _read_overrides(planned.plan, overrides)
    _refuse([*faults, *more])
    case = _case(caller, snapshot, snapshot.version, planned.plan, SentValues(inputs, overridden, sent.what_if))
    return Prepared(planned, case, [name for name in overrides if name not in overridden])


def prepare_shadow(caller: "Caller", snapshot: Snapshot, real: Prepared) -> Prepared | None:
    """Prepare the challenger's evaluation of the same case; None if no challenger runs or the case is a what-if.

    A challenger declares no inputs that the published version lacks, so no input can be missing.
    """
    if snapshot.challenger is None or real.case.what_if:
        return None
    planned = cache(caller).plan_version(snapshot.challenger)
    declared = kinds_by_name(planned.plan.policy.declared_inputs)
    inputs = {name: value for name, value in real.case.inputs.items() if name in declared}
    case = _case(caller, snapshot, snapshot.challenger, planned.plan, SentValues(inputs))
    case = replace(case, what_if=False, shadow_of=real.case.evaluation_id)
    return Prepared(planned, case, ())


def figures(caller: "Caller", snapshot: Snapshot, prepared: Prepared) -> pl.DataFrame:
    """Return the customer's row of the plan's figures as of the case's day, from the cache if it is there."""
    case, planned = prepared.case, prepared.planned
    resolved = frozenset(snapshot.context.resolutions["key"])
    key = FigureKey(case.customer_number, case.data_version, case.as_of, planned.metrics_fingerprint, resolved)
    return cache(caller).figures.get(key, lambda: _compute_within_limit(caller, snapshot, key, planned.plan))


def _compute_within_limit(caller: "Caller", snapshot: Snapshot, key: FigureKey, plan: Plan) -> pl.DataFrame:
    with caller.request.app.state.memory.reserve(caller.requester, snapshot.customer.enriched_rows * BYTES_PER_ROW):
        return compute_figures(
            caller.store.lake, snapshot.location, snapshot.context, key.customer_number, key.as_of, plan
        )


def compute_figures(
    lake: Lake, location: Location | None, known: Context, customer_number: int, as_of: date, plan: Plan
) -> pl.DataFrame:
    """Compute the customer's row of the plan's figures from one version of its data.

    Args:
        known: what metrics read besides transactions.
    """
    rows = _NO_ROWS if location is None or not plan.metrics else location.scan(lake).select(facts.COLUMNS).collect()
    return decision.compute_figures(Facts(rows, as_of, known), plan, [customer_number])


_NO_ROWS = pl.DataFrame(schema={name: TRANSACTIONS[name] for name in facts.COLUMNS})


def decide(caller: "Caller", snapshot: Snapshot, prepared: Prepared) -> tuple[Decision, NewEvaluation]:
    """Return the decision, and the evaluation to store."""
    case = prepared.case
    decided = decision.decide(prepared.planned, case, figures(caller, snapshot, prepared))
    new = NewEvaluation(
        evaluation_id=case.evaluation_id,
        client_id=caller.client_id,
        customer_number=case.customer_number,
        policy_id=case.policy_id,
        version=case.policy_version,
        at=case.at,
        who=caller.actor.who,
        what_if=case.what_if,
        outcome=decided.outcome,
        data_version=case.data_version,
        as_of=case.as_of,
        record=decided.record,
        shadow_of=case.shadow_of,
    )
    return decided, new


def cache(caller: "Caller") -> Cache:
    process_cache: Cache = caller.request.app.state.cache
    return process_cache


def _case(caller: "Caller", snapshot: Snapshot, version: PolicyVersion, plan: Plan, sent: SentValues) -> Case:
    """Return a new case. It is a what-if by request, with overridden attributes, or by an unpublished version."""
    stored = {name: snapshot.attributes[name] for name in plan.labels("attribute") if name in snapshot.attributes}
    stated = {name: _as_stated_attribute(each) for name, each in stored.items()}
    return Case(
        evaluation_id=uuid4(),
        customer_id=snapshot.customer.customer_id,
        customer_number=snapshot.customer.number,
        policy_id=snapshot.policy.policy_id,
        policy_version=version.version,
        data_version=snapshot.customer.data_version,
        as_of=caller.today,
        at=caller.now,
        inputs=sent.inputs,
        attributes=stated | {name: StatedAttribute(each) for name, each in sent.overridden.items()},
        pending_jobs=snapshot.pending_jobs,
        what_if=sent.what_if or bool(sent.overridden) or version.state != PolicyState.PUBLISHED,
    )


def _as_stated_attribute(stored: StoredAttribute) -> StatedAttribute:
    reading = Attribute(stored.value, stored.expires_at)
    return StatedAttribute(reading, stored.source, stored.evidence_date, stored.set_at, stored.set_by)


# Parsing the sent values


def read_inputs(declared: Mapping[str, Kind], sent: Mapping[str, Any]) -> dict[str, Value]:
    """Parse a value for each declared input.

    Raises:
        InvalidRequest: with every fault.
    """
    inputs, faults = _read_inputs(declared, sent)
    _refuse(faults)
    return inputs


def _read_inputs(declared: Mapping[str, Kind], sent: Mapping[str, Any]) -> tuple[dict[str, Value], list[Fault]]:
    """Parse inputs. Faults are ordered: missing inputs, unknown inputs, values of the wrong kind."""
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
    """Parse the overrides of attributes that the policy reads. Null means that the attribute counts as not set."""
    read = {node.label: node.kind for node in plan.nodes.values() if node.operator == "attribute"}
    values, faults = _read(
        "attributeOverrides", read, {name: each for name, each in sent.items() if name in read and each is not None}
    )
    unset: dict[str, Value | None] = {name: None for name, each in sent.items() if name in read and each is None}
    return {name: Attribute(each, source="overridden") for name, each in (values | unset).items()}, faults


def _read(where: str, declared: Mapping[str, Kind], sent: Mapping[str, Any]) -> tuple[dict[str, Value], list[Fault]]:
    values: dict[str, Value] = {}
    faults: list[Fault] = []
    for name, raw in sent.items():
        kind = declared[name]
        value = _PARSERS[kind](raw)
        if value is None:
            faults.append(Fault(f"/{where}/{name}", INVALID, f"{name} must be {_KINDS[kind]}."))
        else:
            values[name] = value
    return values, faults


def _parse_decimal(raw: Any) -> Decimal | None:
    """Parse a number and round it to eight places, as policies calculate."""
    if not isinstance(raw, str) or not _NUMBER.fullmatch(raw):
        return None
    number = round_value(Decimal(raw))
    return None if number is None else Decimal(f"{number.normalize() + 0:f}")  # + 0 turns -0 into 0


def _parse_boolean(raw: Any) -> bool | None:
    return raw if type(raw) is bool else None


def _parse_string(raw: Any) -> str | None:
    return mask_text(raw) if type(raw) is str and len(raw) <= MAX_TEXT else None


_PARSERS: Mapping[Kind, Callable[[Any], Value | None]] = {
    "decimal": _parse_decimal,
    "boolean": _parse_boolean,
    "string": _parse_string,
}


def _refuse(faults: Sequence[Fault]) -> None:
    if faults:
        code = next(code for code in IN_WORDS if any(fault.code == code for fault in faults))
        raise InvalidRequest(code, IN_WORDS[code], tuple(faults[:MAX_FAULTS]))


def _pointer(where: str, name: str) -> str:
    """Point to a member; text that isn't a valid name is not repeated."""
    return f"/{where}/{name}" if re.fullmatch(NAME, name) else f"/{where}"


def read_axis(plan: Plan, sent: SentAxis, pointer: str) -> Axis:
    """Parse one axis of a grid.

    Raises:
        InvalidRequest: the policy reads no such number, or a value isn't a number.
    """
    values = [_parse_decimal(each) for each in sent.values]
    node = next((each for each in numeric_leaves(plan) if (each.operator, each.label) == sent.leaf), None)
    faults = [
        *_check_known(node, pointer),
        *(
            Fault(f"{pointer}/values/{nth}", INVALID, f"A value must be {_KINDS['decimal']}.")
            for nth, value in enumerate(values)
            if value is None
        ),
    ]
    if node is None or faults:
        raise InvalidRequest(faults[0].code, faults[0].message, tuple(faults[:MAX_FAULTS]))
    return Axis(node, [value for value in values if value is not None])


def _check_known(node: Node | None, pointer: str) -> Iterator[Fault]:
    if node is None:
        yield Fault(
            pointer, "DecisionPolicy.UnknownNumber", "Name one numeric metric, attribute or input of the policy."
        )
