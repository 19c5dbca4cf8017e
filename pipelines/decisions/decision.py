"""Decide one customer, and record all that is needed to decide the case again and to prove the result is the same.

A record is one JSON text with sorted keys, so that the same case, policy and figures give the same bytes in any
process. It identifies each part of the decision: the policy (its fingerprint), the figures (the fingerprint of their
definitions and the version of the customer's data), the engine, and the case itself.
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
from pipelines.decisions.answer import Data, build_answer, build_trace
from pipelines.decisions.canonical import fingerprint, metrics_fingerprint
from pipelines.decisions.evaluate import ENGINE_VERSION, evaluate_plan
from pipelines.decisions.plan import Plan, plan_policy
from pipelines.decisions.policy import Policy
from pipelines.decisions.readings import Attribute, Value
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics import Metrics, cause_of
from pipelines.metrics.outcome import NO_TRANSACTIONS, VALUE

RECORD_VERSION = 2  # increase it with every change of the record's form

_encode = msgspec.json.Encoder(decimal_format="number", order="deterministic").encode


@dataclass(frozen=True)
class PlannedPolicy:
    """A policy's plan, with its fingerprint and that of its metrics."""

    plan: Plan
    fingerprint: str
    metrics_fingerprint: str

    @classmethod
    def of(cls, policy: Policy) -> "PlannedPolicy":
        plan = plan_policy(policy)
        return cls(plan, fingerprint(policy), metrics_fingerprint(plan))


@dataclass(frozen=True)
class StatedAttribute:
    """An attribute as the evaluation read it, and its provenance."""

    reading: Attribute
    source: str | None = None
    evidence_date: date | None = None
    set_at: datetime | None = None
    set_by: str | None = None


@dataclass(frozen=True)
class Case:
    """All that an evaluation needs besides the policy and the customer's figures."""

    evaluation_id: UUID
    customer_id: UUID
    customer_number: int
    policy_id: UUID
    policy_version: int
    data_version: int
    as_of: date  # of the figures
    at: datetime  # when attributes are read
    inputs: Mapping[str, Value]
    attributes: Mapping[str, StatedAttribute]  # the known ones among those that the policy reads
    pending_jobs: tuple[UUID, ...] = ()  # accepted, but not in the figures yet
    what_if: bool = False
    shadow_of: UUID | None = None  # for a challenger: the evaluation by the published version

    @property
    def stated_readings(self) -> Mapping[str, Attribute]:
        return {name: stated.reading for name, stated in self.attributes.items()}


@dataclass(frozen=True)
class Decision:
    outcome: str
    answer: Data  # the contract's evaluation result
    record: bytes


def compute_figures(facts: Facts, plan: Plan, customer_numbers: Iterable[int]) -> pl.DataFrame:
    """Return `metrics.values` of the plan's metrics for these customers, including customers without any rows."""
    return compute_metrics(facts, plan.metrics, customer_numbers)


def compute_metrics(facts: Facts, wanted: Metrics, customer_numbers: Iterable[int]) -> pl.DataFrame:
    """Return `metrics.values` for these customers, including customers without any rows.

    Args:
        wanted: metrics together with all their inputs.
    """
    known = metrics.values(facts, wanted) if wanted else facts.customers
    customers = pl.DataFrame({BY_CUSTOMER: list(customer_numbers)}, schema={BY_CUSTOMER: known.schema[BY_CUSTOMER]})
    without_rows = customers.join(known, on=BY_CUSTOMER, how="anti")
    causes = (pl.lit(NO_TRANSACTIONS).alias(cause_of(slug)) for slug in wanted)
    return pl.concat([known, without_rows.with_columns(causes)], how="diagonal").sort(BY_CUSTOMER)


def decide(planned: PlannedPolicy, case: Case, figures: pl.DataFrame) -> Decision:
    """Return the outcome, the answer and the record of a case.

    Args:
        figures: the customer's row of `compute_figures`.
    """
    plan = planned.plan
    read = readings.read_leaves(plan, figures, {case.customer_number: case.stated_readings}, case.inputs, case.at)
    row = evaluate_plan(plan, read).row(0, named=True)
    known = figures.row(0, named=True)
    answer = build_answer(plan, row, case.stated_readings, known) | {
        "evaluationId": case.evaluation_id,
        "policyVersion": case.policy_version,
        "dataVersion": case.data_version,
        "pendingJobs": case.pending_jobs,
        "whatIf": case.what_if,
    }
    return Decision(row["outcome"], answer, _encode_record(planned, case, known, answer, build_trace(plan, row)))


def _encode_record(planned: PlannedPolicy, case: Case, known: Mapping[str, Any], answer: Data, trace: Data) -> bytes:
    content = {
        "recordVersion": RECORD_VERSION,
        "engineVersion": ENGINE_VERSION,
        "metricsVersion": metrics.VERSION,
        "metricsFingerprint": planned.metrics_fingerprint,
        "policyFingerprint": planned.fingerprint,
        "case": _describe_case(case),
        "metrics": {slug: {"value": known[slug], "cause": known[cause_of(slug)]} for slug in planned.plan.metrics},
        "answer": answer,
        "trace": trace,
    }
    return _encode(content)


def _describe_case(case: Case) -> Data:
    return {
        "evaluationId": case.evaluation_id,
        "customerId": case.customer_id,
        "policyId": case.policy_id,
        "policyVersion": case.policy_version,
        "dataVersion": case.data_version,
        "asOf": case.as_of,
        "at": case.at,
        "inputs": case.inputs,
        "attributes": {name: _describe_attribute(each) for name, each in case.attributes.items()},
        "pendingJobs": case.pending_jobs,
        "whatIf": case.what_if,
        "shadowOf": case.shadow_of,
    }


def _describe_attribute(stated: StatedAttribute) -> Data:
    return {
        "value": stated.reading.value,
        "from": stated.reading.source,
        "expiresAt": stated.reading.expires_at,
        "source": stated.source,
        "evidenceDate": stated.evidence_date,
        "setAt": stated.set_at,
        "setBy": stated.set_by,
    }


# Reading and replaying records


@dataclass(frozen=True)
class Recorded:
    """A record's content, with numbers as the decimals that were written."""

    content: Mapping[str, Any]

    @classmethod
    def of(cls, record: bytes) -> "Recorded":
        return cls(json.loads(record, parse_int=Decimal, parse_float=Decimal))

    def case(self, customer_number: int) -> Case:
        """Return the recorded case. The customer's number is passed in: only the database knows it."""
        recorded = self.content["case"]
        return Case(
            evaluation_id=UUID(recorded["evaluationId"]),
            customer_id=UUID(recorded["customerId"]),
            customer_number=customer_number,
            policy_id=UUID(recorded["policyId"]),
            policy_version=int(recorded["policyVersion"]),
            data_version=int(recorded["dataVersion"]),
            as_of=date.fromisoformat(recorded["asOf"]),
            at=datetime.fromisoformat(recorded["at"]),
            inputs=recorded["inputs"],
            attributes={name: _restore_attribute(each) for name, each in recorded["attributes"].items()},
            pending_jobs=tuple(UUID(each) for each in recorded["pendingJobs"]),
            what_if=recorded["whatIf"],
            shadow_of=recorded["shadowOf"] and UUID(recorded["shadowOf"]),
        )

    def figures(self, customer_number: int, plan: Plan) -> pl.DataFrame | None:
        """Return the recorded figures; None if the plan reads other metrics."""
        recorded = self.content["metrics"]
        if recorded.keys() != plan.metrics.keys():
            return None
        row = {slug: recorded[slug]["value"] for slug in recorded} | {
            cause_of(slug): recorded[slug]["cause"] for slug in recorded
        }
        types = dict.fromkeys(recorded, VALUE) | {cause_of(slug): pl.String() for slug in recorded}
        return pl.DataFrame([{BY_CUSTOMER: customer_number} | row], schema={BY_CUSTOMER: pl.Int64(), **types})


def _restore_attribute(recorded: Data) -> StatedAttribute:
    origin: Literal["stored", "overridden"] = recorded["from"]
    return StatedAttribute(
        Attribute(recorded["value"], _parse_time(recorded["expiresAt"]), origin),
        recorded["source"],
        None if recorded["evidenceDate"] is None else date.fromisoformat(recorded["evidenceDate"]),
        _parse_time(recorded["setAt"]),
        recorded["setBy"],
    )


def _parse_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


Part = Literal["policy", "data", "engine"]


@dataclass(frozen=True)
class Replay:
    """The result of deciding a recorded case again. `differs`: the parts that changed; empty if the bytes are equal."""

    record: bytes
    reproduced: bool
    differs: tuple[Part, ...]
    notes: tuple[str, ...]


def replay(planned: PlannedPolicy, earlier: bytes, customer_number: int, figures: pl.DataFrame | None) -> Replay:
    """Decide a recorded case again.

    Args:
        planned: the policy's version as it is stored now.
        figures: the customer's row of `compute_figures`, from the data version that the record names; None if that
            is no longer stored: then the recorded figures are used.
    """
    recorded = Recorded.of(earlier)
    case = recorded.case(customer_number)
    notes: list[str] = []
    if figures is None:
        notes.append("The version of the customer's data is no longer stored: the recorded figures were used.")
        figures = recorded.figures(customer_number, planned.plan)
    if figures is None:
        parts = _changed_parts(recorded.content, None, planned)
        return Replay(b"", False, parts, (*notes, "They are not the metrics that the policy reads now."))
    again = decide(planned, case, figures).record
    if again == earlier:
        return Replay(again, True, (), tuple(notes))
    return Replay(again, False, _changed_parts(recorded.content, Recorded.of(again).content, planned), tuple(notes))


def _changed_parts(
    before: Mapping[str, Any], after: Mapping[str, Any] | None, planned: PlannedPolicy
) -> tuple[Part, ...]:
    """Return the parts that changed.

    Another policy or engine may give other figures from the same data, so these are compared first. A difference that
    neither the policy nor the data explain is attributed to the engine.
    """
    policy: tuple[Part, ...] = ("policy",) if before["policyFingerprint"] != planned.fingerprint else ()
    versions = {"engineVersion": ENGINE_VERSION, "metricsVersion": metrics.VERSION, "recordVersion": RECORD_VERSION}
    metrics_differ = not policy and before["metricsFingerprint"] != planned.metrics_fingerprint
    if metrics_differ or any(before[name] != version for name, version in versions.items()):
        return (*policy, "engine")
    if policy:
        return policy
    return ("data",) if after is not None and before["metrics"] != after["metrics"] else ("engine",)
