"""Decisions on customers: evaluate, explain, vary, look up and override them."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core.derived import BYTES_PER_ROW
from api.decisions import actions, deciding
from api.decisions.deciding import Snapshot
from api.decisions.schemas.evaluations import (
    AllEvaluationsView,
    DecisionOverrideView,
    EvaluationListView,
    EvaluationPaging,
    EvaluationsQuery,
    EvaluationSummaryView,
    EvaluationView,
    RecordedEvaluationView,
    SensitivitiesView,
    SentEvaluation,
    SentGrid,
    SentOverride,
    SentSensitivity,
)
from api.http import four_eyes
from api.http.dependencies import Allow, Caller, CustomerId, EvaluationId, PolicySlug
from api.http.documented import DAMAGED_FILE, envelope, refuses
from api.http.four_eyes import REQUESTED
from api.http.idempotency import IDEMPOTENT
from api.http.responses import respond, respond_list, totals
from api.http.route import Route, heavy
from api.reports import replay
from api.reports.schemas.reports import FigureQuery, LineageView
from pipelines.decisions import Node, Plan, evaluate_plan, metric_of, readings, sensitivity
from pipelines.decisions.sensitivity import Axis, Change, Sensitivity
from pipelines.decisions.suggestions import suggest_changes
from pipelines.vocabulary.errors import Fault, InvalidRequest
from storage.access.approvals import Request
from storage.core.models import ApprovalKind
from storage.decisions import evaluations, policies
from storage.decisions.evaluations import Evaluation, Filter

router = APIRouter(route_class=Route, prefix="/v1", tags=["Decisions"])
Evaluator = Annotated[Caller, Depends(Allow("decision-policies:evaluate"))]
Overrider = Annotated[Caller, Depends(Allow("decision-policies:override"))]
REFUSED = (
    *("DecisionPolicy.VersionNotFound", "DecisionPolicy.Archived"),
    *(deciding.MISSING, deciding.UNKNOWN, deciding.INVALID, *DAMAGED_FILE),
)


@router.post(
    "/customer/{customerId}/decision-policies/{slug}/evaluate",
    response_model=envelope(EvaluationView),
    responses=refuses(*REFUSED),
    dependencies=[IDEMPOTENT],
)
def evaluate_decision_policy(
    caller: Evaluator, customer_id: CustomerId, slug: PolicySlug, sent: SentEvaluation
) -> Response:
    """Decide on a customer by a policy, from its current transactions and attributes and the declared inputs.

    With `whatIf` or `attributeOverrides`, or by any version but the published one, the evaluation is a what-if: it
    decides nothing. Every evaluation is recorded with everything that it read.
    """
    snapshot = _read_snapshot(caller, customer_id, slug, sent.version)
    real = deciding.prepare(caller, snapshot, sent)
    shadow = deciding.prepare_shadow(caller, snapshot, real)
    decision, new = deciding.decide(caller, snapshot, real)
    shadows = [] if shadow is None else [deciding.decide(caller, snapshot, shadow)[1]]
    with caller.writing() as w:
        for each in (new, *shadows):
            evaluations.save(w, each)
        evaluation_id = real.case.evaluation_id
        caller.audit(w, "Policy.Evaluated", customerId=snapshot.customer.customer_id, evaluationId=evaluation_id)
        return caller.store_response(w, respond(decision.answer, real.message))


@router.post(
    "/customer/{customerId}/decision-policies/{slug}/sensitivity",
    response_model=envelope(SensitivitiesView),
    responses=refuses(*REFUSED, "DecisionPolicy.UnknownNumber", "DecisionPolicy.SameNumber"),
)
@heavy
def vary_decision(caller: Evaluator, customer_id: CustomerId, slug: PolicySlug, sent: SentSensitivity) -> Response:
    """Report how far the decision is from a different one.

    For each number that the policy reads, the response has the nearest value that changes the outcome while everything
    else stays the same; for an unavailable number, the value that it would need. With a `grid`, it also decides for all
    combinations of two numbers' values. Nothing is recorded.
    """
    snapshot = _read_snapshot(caller, customer_id, slug, sent.version)
    prepared = deciding.prepare(caller, snapshot, sent)
    plan, case = prepared.planned.plan, prepared.case
    axes = None if sent.grid is None else _axes(plan, sent.grid)
    figures = deciding.figures(caller, snapshot, prepared)
    read = readings.read_leaves(plan, figures, {case.customer_number: case.stated_readings}, case.inputs, case.at)
    found = sensitivity.find_sensitivities(plan, read)
    suggested = suggest_changes(plan, read, found)
    reported = {
        "outcome": evaluate_plan(plan, read)["outcome"][0],
        "policyVersion": case.policy_version,
        "dataVersion": case.data_version,
        "sensitivities": [_sensitivity(plan, *each) for each in zip(found, suggested, strict=True)],
        "grid": None if axes is None else _grid(plan, sensitivity.evaluate_grid(plan, read, *axes).to_dicts(), *axes),
    }
    return respond(reported, prepared.message)


@router.get("/customer/{customerId}/evaluations", response_model=envelope(EvaluationListView))
def list_evaluations(
    caller: Evaluator, customer_id: CustomerId, query: Annotated[EvaluationPaging, Query()]
) -> Response:
    """List the customer's evaluations, newest first.

    Evaluations by a challenger are included; their `shadowOf` is the id of the real decision.
    """
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        policy = None if query.policy is None else policies.get(r, caller.client_id, query.policy)
        found = evaluations.find(r, caller.client_id, customer=customer, policy=policy, page=query.requested_page())
    return respond_list("evaluations", found, EvaluationSummaryView)


@router.get("/evaluations", response_model=envelope(AllEvaluationsView))
def list_all_evaluations(caller: Evaluator, query: Annotated[EvaluationsQuery, Query()]) -> Response:
    """List evaluations of all customers, newest first, without those by challengers."""
    with caller.reading() as r:
        policy = None if query.policy is None else policies.get(r, caller.client_id, query.policy)
        wanted = Filter(
            policy, query.outcome, query.created_after, query.created_before, decisions_only=query.decisions_only
        )
        found = evaluations.find_filtered(r, caller.client_id, wanted, query.requested_page())
    items = [EvaluationSummaryView.of(each) for each in found.items]
    return respond({"evaluations": items, **totals(found), "hasMore": found.has_more})


@router.get(
    "/evaluations/{evaluationId}",
    response_model=envelope(RecordedEvaluationView),
    responses=refuses("Evaluation.Corrupt"),
)
def get_evaluation(caller: Evaluator, evaluation_id: EvaluationId) -> Response:
    """Read an evaluation with its record: what it read, which rule compared which value with what, and the response."""
    with caller.reading() as r:
        found = caller.evaluation(r, evaluation_id)
        record = evaluations.read_record(r, found)
        overrides = [DecisionOverrideView.of(each) for each in evaluations.overrides_of(r, found)]
        shadows = [each.evaluation_id for each in evaluations.shadows_of(r, found)]
    reported = {
        **EvaluationSummaryView.of(found).model_dump(by_alias=True),
        "shadowOf": found.shadow_of,
        "shadows": shadows,
        "overrides": overrides,
        "sha256": found.sha256.hex(),
        "record": msgspec.Raw(record),
    }
    return respond(reported)


@router.get(
    "/evaluations/{evaluationId}/lineage",
    response_model=envelope(LineageView),
    responses=refuses("Report.FigureNotFound", "Report.VersionExpired", *DAMAGED_FILE),
)
def explain_evaluation(
    caller: Evaluator, evaluation_id: EvaluationId, query: Annotated[FigureQuery, Query()]
) -> Response:
    """List the transactions behind a metric as the evaluation read it, or the formula and inputs of a derived metric.

    The policy's own metrics can be explained, too. The default is the first metric that the policy reads.
    """
    with caller.reading() as r:
        found = caller.evaluation(r, evaluation_id)
        customer = caller.customer(r, str(found.customer_id))
        version = policies.version(r, policies.get_of_any_client(r, found.policy_id), found.version)
        basis = replay.decision_basis(r, caller, customer, found.data_version, found.as_of, found.at)
    plan = deciding.cache(caller).plan_version(version).plan
    figure = query.figure or f"/{next(iter((*plan.labels('metric'), *plan.metrics)), '')}"
    with caller.request.app.state.memory.reserve(caller.requester, customer.enriched_rows * BYTES_PER_ROW):
        facts = basis.facts(caller)
        trace = replay.trace_metric(figure, facts, plan.metrics)
        return replay.respond_lineage(
            caller, "evaluation", figure, trace, facts, basis, customer, query.requested_page()
        )


@router.post(
    "/evaluations/{evaluationId}/override",
    status_code=201,
    response_model=envelope(DecisionOverrideView),
    responses=REQUESTED | refuses("Evaluation.NotADecision"),
    dependencies=[IDEMPOTENT],
)
def override_decision(caller: Overrider, evaluation_id: EvaluationId, sent: SentOverride) -> Response:
    """Record that a person decided differently, who and why. The evaluation itself stays unchanged.

    What-ifs and a challenger's evaluations can't be overridden, because they decided nothing. If the client requires a
    second person or key, the override is only requested (202).
    """
    with caller.reading() as r:
        found = caller.evaluation(r, evaluation_id)
    with caller.writing() as w:
        requested = four_eyes.applies(caller, w, ApprovalKind.OVERRIDE)
        with four_eyes.trial(w, only=requested):
            stored = actions.override(caller, w, found, sent.outcome, sent.reason, sent.decided_by)
        if requested:
            return caller.store_response(w, four_eyes.request(caller, w, _requested_override(found, sent)))
        location = {"Location": f"/v1/evaluations/{found.evaluation_id}"}
        return caller.store_response(w, respond(DecisionOverrideView.of(stored), status=201, headers=location))


def _requested_override(found: Evaluation, sent: SentOverride) -> Request:
    subject = {"evaluationId": str(found.evaluation_id), "customerId": str(found.customer_id)}
    return Request(ApprovalKind.OVERRIDE, subject["evaluationId"], subject, sent.model_dump(by_alias=True))


def _read_snapshot(caller: Caller, customer_id: str, slug: str, version: int | None) -> Snapshot:
    with caller.reading() as r:
        return deciding.read_snapshot(r, caller, caller.customer(r, customer_id), caller.policy(r, slug), version)


def _axes(plan: Plan, sent: SentGrid) -> tuple[Axis, Axis]:
    across = deciding.read_axis(plan, sent.across, "/grid/across")
    down = deciding.read_axis(plan, sent.down, "/grid/down")
    if across.node == down.node:
        fault = Fault("/grid/down", "DecisionPolicy.SameNumber", "Across and down must be two different numbers.")
        raise InvalidRequest(fault.code, fault.message, (fault,))
    return across, down


def _sensitivity(plan: Plan, found: Sensitivity, suggested: Sequence[Change]) -> dict[str, Any]:
    changes = {name: getattr(found, name) for name in ("below", "above", "nearest")}
    return {
        **_leaf(found.node),
        "metricId": _metric_id(plan, found.node),
        "value": found.value,
        **{name: None if each is None else vars(each) for name, each in changes.items()},
        "changes": [vars(each) for each in found.changes],
        "suggestions": [vars(each) for each in suggested],
        "complete": found.complete,
    }


def _metric_id(plan: Plan, node: Node) -> UUID | None:
    return plan.policy.metric_id(metric_of(plan.policy, node.label)) if node.operator == "metric" else None


def _leaf(node: Node) -> dict[str, Any]:
    return {"kind": node.operator, "name": node.label}


def _grid(plan: Plan, cells: list[dict[str, Any]], across: Axis, down: Axis) -> dict[str, Any]:
    width = len(across.values)
    rows = [cells[start : start + width] for start in range(0, len(cells), width)]
    products = {product.slug: product.id for product in plan.policy.products}
    return {
        "across": {**_leaf(across.node), "values": across.values},
        "down": {**_leaf(down.node), "values": down.values},
        "outcomes": [[cell["outcome"] for cell in row] for row in rows],
        "limits": [
            {
                "productId": products[planned.limit.product],
                "amounts": [[cell[f"amount_{nth}"] for cell in row] for row in rows],
            }
            for nth, planned in enumerate(plan.limits)
        ],
    }
