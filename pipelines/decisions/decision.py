"""One customer decided, and the record of it: all that is needed to decide the same again, and to prove that it is.

A record is one JSON text with its keys in order, so that the same case, policy and figures give the same bytes in any
process. It tells apart what the decision was made of: the policy (its fingerprint), the figures (theirs, and the
version of the customer's data), the engine, and what the evaluation itself was given.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

import msgspec
import polars as pl

from pipelines import metrics
from pipelines.decisions import readings
from pipelines.decisions.answer import Data, answered, traced
from pipelines.decisions.canonical import fingerprint, metrics_fingerprint
from pipelines.decisions.evaluate import ENGINE_VERSION, evaluated
from pipelines.decisions.plan import Plan, planned
from pipelines.decisions.policy import Policy
from pipelines.decisions.readings import Attribute, Value
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics import Metrics, cause_of
from pipelines.metrics.outcome import NO_TRANSACTIONS, VALUE

RECORD_VERSION = 1  # raised with every change of a record's form

_encode = msgspec.json.Encoder(decimal_format="number", order="deterministic").encode


@dataclass(frozen=True)
class Ready:
    """A policy's plan, with what it and its metrics are known by."""

    plan: Plan
    fingerprint: str
    metrics_fingerprint: str

    @classmethod
    def of(cls, policy: Policy) -> "Ready":
        plan = planned(policy)
        return cls(plan, fingerprint(policy), metrics_fingerprint(plan))


@dataclass(frozen=True)
class StatedAttribute:
    """An attribute as the evaluation read it, and where it is from."""

    reading: Attribute
    source: str | None = None
    evidence_date: date | None = None
    set_at: datetime | None = None
    set_by: str | None = None


@dataclass(frozen=True)
class Case:
    """All that an evaluation is told beside the policy and the customer's figures."""

    evaluation_id: UUID
    customer_id: UUID
    customer_number: int
    policy_id: UUID
    policy_version: int
    data_version: int
    as_of: date  # of the figures
    at: datetime  # when attributes are asked for
    inputs: Mapping[str, Value]
    attributes: Mapping[str, StatedAttribute]  # those that the policy reads, as far as they are known
    pending_jobs: tuple[UUID, ...] = ()  # accepted, and not in the figures yet
    what_if: bool = False
    shadow_of: UUID | None = None  # the evaluation that was answered, where this one is a challenger's

    @property
    def stated(self) -> Mapping[str, Attribute]:
        return {name: described.reading for name, described in self.attributes.items()}


@dataclass(frozen=True)
class Decision:
    outcome: str
    answer: Data  # the contract's evaluation result
    record: bytes


def figures(facts: Facts, plan: Plan, customer_numbers: Iterable[int]) -> pl.DataFrame:
    """`metrics.values` of the plan's metrics for each of these customers, those without any rows included."""
    return figures_of(facts, plan.metrics, customer_numbers)


def figures_of(facts: Facts, wanted: Metrics, customer_numbers: Iterable[int]) -> pl.DataFrame:
    """The same of any metrics, with all that they are made of."""
    known = metrics.values(facts, wanted) if wanted else facts.customers
    everybody = pl.DataFrame({BY_CUSTOMER: list(customer_numbers)}, schema={BY_CUSTOMER: known.schema[BY_CUSTOMER]})
    silent = everybody.join(known, on=BY_CUSTOMER, how="anti")
    causes = (pl.lit(NO_TRANSACTIONS).alias(cause_of(slug)) for slug in wanted)
    return pl.concat([known, silent.with_columns(causes)], how="diagonal").sort(BY_CUSTOMER)


def decided(ready: Ready, case: Case, shown: pl.DataFrame) -> Decision:
    """What is answered, and the record of it.

    Args:
        shown: the customer's row of `figures`.
    """
    plan = ready.plan
    read = readings.read(plan, shown, {case.customer_number: case.stated}, case.inputs, case.at)
    row = evaluated(plan, read).row(0, named=True)
    known = shown.row(0, named=True)
    answer = answered(plan, row, case.stated, known) | {
        "evaluationId": case.evaluation_id,
        "policyVersion": case.policy_version,
        "dataVersion": case.data_version,
        "pendingJobs": case.pending_jobs,
        "whatIf": case.what_if,
    }
    return Decision(row["outcome"], answer, _record(ready, case, known, answer, traced(plan, row)))


def _record(ready: Ready, case: Case, known: Mapping[str, Any], answer: Data, trace: Data) -> bytes:
    content = {
        "recordVersion": RECORD_VERSION,
        "engineVersion": ENGINE_VERSION,
        "metricsVersion": metrics.VERSION,
        "metricsFingerprint": ready.metrics_fingerprint,
        "policyFingerprint": ready.fingerprint,
        "case": _case(case),
        "metrics": {slug: {"value": known[slug], "cause": known[cause_of(slug)]} for slug in ready.plan.metrics},
        "answer": answer,
        "trace": trace,
    }
    return _encode(content)


def _case(case: Case) -> Data:
    return {
        "evaluationId": case.evaluation_id,
        "customerId": case.customer_id,
        "policyId": case.policy_id,
        "policyVersion": case.policy_version,
        "dataVersion": case.data_version,
        "asOf": case.as_of,
        "at": case.at,
        "inputs": case.inputs,
        "attributes": {name: _described(each) for name, each in case.attributes.items()},
        "pendingJobs": case.pending_jobs,
        "whatIf": case.what_if,
        "shadowOf": case.shadow_of,
    }


def _described(described: StatedAttribute) -> Data:
    return {
        "value": described.reading.value,
        "from": described.reading.source,
        "expiresAt": described.reading.expires_at,
        "source": described.source,
        "evidenceDate": described.evidence_date,
        "setAt": described.set_at,
        "setBy": described.set_by,
    }


# A record read again


@dataclass(frozen=True)
class Recorded:
    """What a record says, with numbers as the decimals that were written."""

    content: Mapping[str, Any]

    @classmethod
    def of(cls, record: bytes) -> "Recorded":
        return cls(json.loads(record, parse_int=Decimal, parse_float=Decimal))

    def case(self, customer_number: int) -> Case:
        """What the evaluation was told; customers have a number in the database alone."""
        said = self.content["case"]
        return Case(
            evaluation_id=UUID(said["evaluationId"]),
            customer_id=UUID(said["customerId"]),
            customer_number=customer_number,
            policy_id=UUID(said["policyId"]),
            policy_version=int(said["policyVersion"]),
            data_version=int(said["dataVersion"]),
            as_of=date.fromisoformat(said["asOf"]),
            at=datetime.fromisoformat(said["at"]),
            inputs=said["inputs"],
            attributes={name: _restored(each) for name, each in said["attributes"].items()},
            pending_jobs=tuple(UUID(each) for each in said["pendingJobs"]),
            what_if=said["whatIf"],
            shadow_of=said["shadowOf"] and UUID(said["shadowOf"]),
        )

    def figures(self, customer_number: int, plan: Plan) -> pl.DataFrame | None:
        """The figures as they were recorded; None where the plan has others."""
        retained = self.content["metrics"]
        if retained.keys() != plan.metrics.keys():
            return None
        row = {slug: retained[slug]["value"] for slug in retained} | {
            cause_of(slug): retained[slug]["cause"] for slug in retained
        }
        kinds = dict.fromkeys(retained, VALUE) | {cause_of(slug): pl.String() for slug in retained}
        return pl.DataFrame([{BY_CUSTOMER: customer_number} | row], schema={BY_CUSTOMER: pl.Int64(), **kinds})


def _restored(said: Data) -> StatedAttribute:
    origin: Literal["stored", "overridden"] = said["from"]
    return StatedAttribute(
        Attribute(said["value"], _moment(said["expiresAt"]), origin),
        said["source"],
        None if said["evidenceDate"] is None else date.fromisoformat(said["evidenceDate"]),
        _moment(said["setAt"]),
        said["setBy"],
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


Part = Literal["policy", "data", "engine"]


@dataclass(frozen=True)
class Replay:
    """What deciding again came to. `differs`: which parts are not what they were; none where the bytes are the same."""

    record: bytes
    reproduced: bool
    differs: tuple[Part, ...]
    notes: tuple[str, ...]


def replayed(ready: Ready, earlier: bytes, customer_number: int, shown: pl.DataFrame | None) -> Replay:
    """Decide a recorded case again.

    Args:
        ready: the policy's version as it is stored now.
        shown: the customer's row of `figures`, from the version of its data that the record names; None where that is
            kept no longer: then the recorded figures are taken for true.
    """
    recorded = Recorded.of(earlier)
    case = recorded.case(customer_number)
    notes: list[str] = []
    if shown is None:
        notes.append("The version of the customer's data is kept no longer: the recorded figures were used.")
        shown = recorded.figures(customer_number, ready.plan)
    if shown is None:
        parts = _moved(recorded.content, None, ready)
        return Replay(b"", False, parts, (*notes, "They are not those that the policy reads now."))
    again = decided(ready, case, shown).record
    if again == earlier:
        return Replay(again, True, (), tuple(notes))
    return Replay(again, False, _moved(recorded.content, Recorded.of(again).content, ready), tuple(notes))


def _moved(before: Mapping[str, Any], after: Mapping[str, Any] | None, ready: Ready) -> tuple[Part, ...]:
    """Which parts are not what they were. Another policy or engine may give other figures from the same data; what
    neither policy nor data account for is the engine's.
    """
    policy: tuple[Part, ...] = ("policy",) if before["policyFingerprint"] != ready.fingerprint else ()
    versions = {"engineVersion": ENGINE_VERSION, "metricsVersion": metrics.VERSION, "recordVersion": RECORD_VERSION}
    other = any(before[name] != version for name, version in versions.items())
    other = other or (not policy and before["metricsFingerprint"] != ready.metrics_fingerprint)
    if policy or other:
        return (*policy, "engine") if other else policy
    return ("data",) if after is not None and before["metrics"] != after["metrics"] else ("engine",)
