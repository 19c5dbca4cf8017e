"""Decisions on a customer: decide by a policy, see why and what would change it, override, write the letter."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from api.console import declared
from api.console.calls import Correctable
from api.console.pages.work import list_assignees
from api.console.rendering import as_sent
from api.console.routes import PageRoute
from api.console.visits import Page, SignedIn
from pipelines.decisions import INDETERMINATE
from pipelines.pages import wording

router = APIRouter(route_class=PageRoute, include_in_schema=False)
ON_PAGE = 20
WORK = "customer:work"
FAULTY = "Nothing was decided. Correct the fields that are marked."
LEAVES = ("metric", "attribute", "input")  # what a trace reads
Titles = Mapping[tuple[str, str], tuple[str, str | None]]  # (kind, name) → (title, format)


@router.get("/customers/{customer_id}/decisions")
async def show_decisions(
    page: SignedIn, customer_id: str, number: Annotated[str, Query(alias="page")] = "1"
) -> Response:
    customer = await page.get("customer", customer_id)
    found = await page.get("customer", customer_id, "evaluations", page=number, count=ON_PAGE)
    policies = (await page.get("decision-policies"))["items"]
    return page.show("decisions.html", customer=customer, found=found, policies=policies)


@router.get("/customers/{customer_id}/decide/{slug}")
async def show_application(
    page: SignedIn, customer_id: str, slug: str, again: Annotated[str, Query()] = ""
) -> Response:
    """Show the form, with the inputs of the evaluation `again`."""
    inputs = (await page.get("evaluations", again))["record"]["case"]["inputs"] if again else {}
    values = {f"input.{name}": value for name, value in inputs.items()}
    return await _application_page(page, customer_id, slug, {}, {}, values)


@router.post("/customers/{customer_id}/decide/{slug}")
async def decide(page: SignedIn, customer_id: str, slug: str) -> Response:
    """Store the attributes that were changed and decide; as a what-if, decide as if they were changed."""
    form = await page.form()
    policy = await page.get("decision-policies", slug)
    inputs, faults = declared.read(policy["declaredInputs"], form, "input")
    changed, wrong = declared.read_changes(policy["attributes"], form, "attribute")
    if not (faults := faults | wrong):
        sent: dict[str, Any] = {"inputs": inputs}
        try:
            if form.get("action") == "what-if":
                sent |= {"attributeOverrides": changed, "whatIf": True}
            elif changed:
                await page.put("customer", customer_id, "attributes", json={"attributes": changed})
            path = ("customer", customer_id, "decision-policies", slug, "evaluate")
            return page.to(f"/evaluations/{(await page.post(*path, json=sent))['evaluationId']}")
        except Correctable as refusal:
            members = ("inputs", "attributes", "attributeOverrides")
            for member in members:
                faults |= declared.faults_of(refusal, member)
            faults = faults or {"": refusal.detail}
    return await _application_page(page, customer_id, slug, dict(form), faults)


@router.get("/evaluations/{evaluation_id}")
async def show_decision(page: SignedIn, evaluation_id: str) -> Response:
    return await _decision_page(page, evaluation_id)


@router.post("/evaluations/{evaluation_id}/override")
async def override(page: SignedIn, evaluation_id: str) -> Response:
    """Override the outcome, or request it where a second person must approve it."""
    form = await page.form()
    sent = {name: str(form.get(name, "")) for name in ("outcome", "reason", "decidedBy")}
    try:
        done = await page.post("evaluations", evaluation_id, "override", json=sent)
    except Correctable as refusal:
        return await _decision_page(page, evaluation_id, refusal, sent)
    is_requested = "approvalId" in done
    notice = (
        "The override is requested: somebody else must approve it." if is_requested else "The decision is overridden."
    )
    return page.to(f"/evaluations/{evaluation_id}", notice)


@router.get("/evaluations/{evaluation_id}/changes")
async def show_changes(page: SignedIn, evaluation_id: str) -> Response:
    """Show what would change the outcome, from today's data and the inputs of the decision."""
    found = await page.get("evaluations", evaluation_id)
    case = found["record"]["case"]
    overridden = {name: each["value"] for name, each in case["attributes"].items() if each["from"] == "overridden"}
    sent = {"inputs": case["inputs"], "attributeOverrides": overridden, "version": found["policyVersion"]}
    path = ("customer", found["customerId"], "decision-policies", found["slug"], "sensitivity")
    try:
        changes = await page.post(*path, json=sent)
    except Correctable as refused:
        return page.show("decision-changes.html", refused.status, found=found, changes=None, problem=refused.detail)
    titles = _list_titles(await _policy(page, found))
    shown = [_change(each, titles[each["kind"], each["name"]]) for each in changes["sensitivities"]]
    changes["sensitivities"] = [each for each in shown if each["at"]]
    return page.show("decision-changes.html", found=found, changes=changes, problem="")


@router.get("/evaluations/{evaluation_id}/figure")
async def show_figure(
    page: SignedIn,
    evaluation_id: str,
    figure: Annotated[str, Query()] = "",
    number: Annotated[str, Query(alias="page")] = "1",
) -> Response:
    """Show the transactions behind a metric as the decision read it."""
    found = await page.get("evaluations", evaluation_id)
    lineage = await page.get("evaluations", evaluation_id, "lineage", figure=figure, page=number, count=ON_PAGE)
    metrics = {each["slug"]: each for each in (await _policy(page, found))["metrics"]}
    metric = metrics.get(lineage["figure"].strip("/").partition("/")[0])
    return page.show("decision-figure.html", found=found, lineage=lineage, metric=metric)


@router.get("/evaluations/{evaluation_id}/letter")
async def show_letter(page: SignedIn, evaluation_id: str) -> Response:
    return as_sent(await page.file("evaluations", evaluation_id, "letter.html"))


@router.get("/evaluations/{evaluation_id}/letter.pdf")
async def show_letter_as_pdf(page: SignedIn, evaluation_id: str) -> Response:
    return as_sent(await page.file("evaluations", evaluation_id, "letter.pdf"))


async def _application_page(
    page: Page,
    customer_id: str,
    slug: str,
    sent: Mapping[str, Any],
    faults: Mapping[str, str],
    filled: Mapping[str, Any] = MappingProxyType({}),
) -> Response:
    """Show the form with what was sent, or with the inputs that are `filled` and the stored attributes."""
    customer = await page.get("customer", customer_id)
    policy = await page.get("decision-policies", slug)
    stored = await _attributes(page, customer_id)
    values = sent or {**filled, **{f"attribute.{name}": value for name, value in stored.items()}}
    inputs = declared.fields(policy["declaredInputs"], "input", values, faults)
    attributes = declared.fields(policy["attributes"], "attribute", values, faults)
    shown = {"inputs": inputs, "attributes": attributes, "fault": faults.get("", FAULTY if faults else "")}
    return page.show("decide.html", 400 if faults else 200, customer=customer, policy=policy, **shown)


async def _attributes(page: Page, customer_id: str) -> dict[str, Any]:
    """Return the customer's attributes that are available now."""
    found = (await page.get("customer", customer_id, "attributes", page=1, count=1))["attributes"]
    return {name: each["value"] for name, each in found.items() if each["available"]}


async def _decision_page(
    page: Page, evaluation_id: str, refusal: Correctable | None = None, sent: Mapping[str, str] | None = None
) -> Response:
    found = await page.get("evaluations", evaluation_id)
    customer = await page.get("customer", found["customerId"])
    record = found["record"]
    answer, policy = record["answer"], await _policy(page, found)
    titles = _list_titles(policy)
    messages = {rule["code"]: rule["message"] for step in policy["document"]["steps"] for rule in step["rules"]}
    pending = await _pending_override(page, evaluation_id)
    is_real = not found["whatIf"] and found["shadowOf"] is None
    here = f"/evaluations/{evaluation_id}"
    work, people = await _work(page, found, is_real=is_real)
    if pending is not None:
        people.append(pending["requestedBy"])
    outcome = found["overriddenOutcome"] or found["outcome"]
    status, fault = (200, "") if refusal is None else (refusal.status, refusal.detail)
    return page.show(
        "decision.html",
        status,
        found=found,
        customer=customer,
        case=record["case"],
        verdict=answer["verdict"],
        limits=answer["computedLimits"],
        products={each["productId"]: each["name"] for each in answer["products"]},
        attributes=answer["attributes"],
        formats={leaf: format_ for leaf, (_, format_) in titles.items()},
        metrics=[
            {**metric, **record["metrics"][metric["slug"]]}
            for metric in policy["metrics"]
            if metric["slug"] in record["metrics"]
        ],
        steps=[
            {**step, "rules": [_rule(each, titles, messages) for each in step["rules"]]}
            for step in record["trace"]["steps"]
        ],
        is_real=is_real,
        pending=pending,
        names=await page.names([found["who"], *people]),
        here=here,
        **work,
        has_letter=is_real and outcome != INDETERMINATE,
        fault=fault,
        faults={} if refusal is None else refusal.faults,
        sent=sent or {"outcome": "", "reason": "", "decidedBy": page.session.user.name},
    )


async def _work(page: Page, found: Mapping[str, Any], *, is_real: bool) -> tuple[dict[str, Any], list[str | None]]:
    """Return what people do with a decision, to be shown if the user may work on it, and the ids of these people."""
    if not page.may(WORK):
        return {"item": None, "notes": [], "assignees": []}, []
    evaluation_id = found["evaluationId"]
    notes = (await page.get("customer", found["customerId"], "notes", evaluationId=evaluation_id))["notes"]
    item = await page.get("evaluations", evaluation_id, "assignee") if is_real else None
    assignees = await list_assignees(page) if item and item["isWaiting"] else []
    people = [each[who] for each in notes for who in ("createdBy", "deletedBy")]
    shown = {"item": item, "notes": notes, "assignees": assignees}
    return shown, people if item is None else [*people, item["assignee"]]


async def _pending_override(page: Page, evaluation_id: str) -> Mapping[str, Any] | None:
    """Return the request for an override of the decision that waits for a second person."""
    if not page.may(WORK):
        return None
    which = {"kind": "override", "status": "pending", "evaluationId": evaluation_id}
    found: Sequence[Mapping[str, Any]] = (await page.get("approvals", **which, page=1, count=1))["approvals"]
    return found[0] if found else None


async def _policy(page: Page, found: Mapping[str, Any]) -> Any:
    """Return the version of the policy that decided."""
    return await page.get("decision-policies", found["slug"], version=found["policyVersion"])


def _list_titles(policy: Mapping[str, Any]) -> Titles:
    """Return title and format of everything that a policy reads, by kind and name."""
    declared = {"input": policy["declaredInputs"], "attribute": policy["attributes"]}
    metrics = {("metric", each["slug"]): (each["name"], each["format"]) for each in policy["metrics"]}
    return metrics | {
        (kind, each["name"]): (wording.title(each["name"], each["format"]), each["format"])
        for kind, values in declared.items()
        for each in values
    }


def _change(found: Mapping[str, Any], named: tuple[str, str | None]) -> dict[str, Any]:
    """Return the changes of a number that a person can aim at or, if there are none, the exact ones.

    Values so large that they can't be computed with are left out: they make the outcome indeterminate.
    """
    exact = found["changes"] or [each for each in (found["below"], found["above"]) if each is not None]
    decided = [each for each in found["suggestions"] or exact if each["outcome"] != INDETERMINATE]
    title, format_ = named
    return {"title": title, "format": format_, "value": found["value"], "at": decided}


def _rule(traced: Mapping[str, Any], titles: Titles, messages: Mapping[str, str]) -> dict[str, Any]:
    """Return a traced rule with its message, and with the values that its condition read, each once."""
    read = {(kind, name): value for kind, name, value in _read(traced["condition"])}
    values = [(*titles[leaf], value) for leaf, value in read.items()]
    code = traced["code"]
    return {"code": code, "message": messages[code], "counted": traced["counted"], "read": values}


def _read(node: Mapping[str, Any]) -> Iterator[tuple[str, str, Decimal | str | bool | None]]:
    """Yield kind, name and value of what a traced condition reads."""
    for kind in LEAVES:
        if kind in node:
            yield kind, node[kind], node["value"]
    for each in node.get("of", ()):
        yield from _read(each)
