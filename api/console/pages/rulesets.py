"""Monitoring rulesets: list, adopt from the library, edit with a check, switch on and off, simulate."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from api.console import documents
from api.console.calls import Refused
from api.console.declared import as_number
from api.console.rendering import as_sent
from api.console.routes import PageRoute
from api.console.visits import Page, SignedIn
from pipelines.decisions.authoring.text import as_yaml
from pipelines.monitoring import Ruleset
from pipelines.vocabulary.errors import InvalidRequest

router = APIRouter(route_class=PageRoute, include_in_schema=False)
ON_PAGE = 20
NEWEST = 5  # alerts on a ruleset's page
REQUESTED = "The change is requested: somebody else must approve it."
CHANGED = "Ruleset.ChangedMeanwhile"
NEW = """\
slug: my-ruleset
name: My ruleset
active: false
rules:
  - code: REVENUE_LOW
    message: Revenue of the last 90 days is below 10,000.
    severity: warning
    condition:
      lessThan: [{metric: revenue_90d}, "10000"]
    recommendedActions:
      - Ask what has changed.
"""


@router.get("/rulesets")
async def show_rulesets(
    page: SignedIn, archived: Annotated[str, Query()] = "", number: Annotated[str, Query(alias="page")] = "1"
) -> Response:
    which = {"includeArchived": archived == "yes", "page": number, "count": ON_PAGE}
    found = await page.get("monitoring", "rulesets", **which)
    return page.show("rulesets.html", found=found, archived=archived)


@router.get("/rulesets/library")
async def show_library(page: SignedIn) -> Response:
    found = await page.get("monitoring", "library")
    return page.show("ruleset-library.html", found=found["rulesets"])


@router.get("/rulesets/new")
async def show_new_ruleset(page: SignedIn, adopted: Annotated[str, Query(alias="from")] = "") -> Response:
    """Show the editor with an example, or with a ruleset of the library."""
    if not adopted:
        await page.get("monitoring", "library")  # the same refusal as for saving
        return await _edit_page(page, None, NEW)
    return await _edit_page(page, None, (await page.get("monitoring", "library", adopted))["text"])


@router.post("/rulesets/new")
async def create_ruleset(page: SignedIn) -> Response:
    return await _check_or_save(page, None)


@router.get("/rulesets/{ruleset_id}")
async def show_ruleset(page: SignedIn, ruleset_id: str) -> Response:
    return await _ruleset_page(page, ruleset_id)


@router.get("/rulesets/{ruleset_id}/edit")
async def show_ruleset_editor(page: SignedIn, ruleset_id: str) -> Response:
    ruleset = await page.get("monitoring", "rulesets", ruleset_id)
    return await _edit_page(page, ruleset_id, _text_of(ruleset))


@router.post("/rulesets/{ruleset_id}/edit")
async def edit_ruleset(page: SignedIn, ruleset_id: str) -> Response:
    return await _check_or_save(page, ruleset_id)


@router.post("/rulesets/{ruleset_id}/active")
async def switch_ruleset(page: SignedIn, ruleset_id: str) -> Response:
    """Switch the ruleset on or off, by a new version of its document."""
    active = (await page.form()).get("active") == "yes"
    ruleset = await page.get("monitoring", "rulesets", ruleset_id)
    try:
        done = await _replace(page, ruleset_id, ruleset["document"] | {"active": active}, ruleset["version"])
    except Refused as refusal:
        if refusal.status not in (400, 409):
            raise
        return await _ruleset_page(page, ruleset_id, refusal)
    notice = "The ruleset watches from now on." if active else "The ruleset watches nobody any more."
    return page.to(f"/rulesets/{ruleset_id}", REQUESTED if "approvalId" in done else notice)


@router.post("/rulesets/{ruleset_id}/archive")
async def archive_ruleset(page: SignedIn, ruleset_id: str) -> Response:
    await page.check_form()
    await page.post("monitoring", "rulesets", ruleset_id, "archive")
    return page.to(f"/rulesets/{ruleset_id}", "The ruleset is archived: it watches nobody.")


@router.post("/rulesets/{ruleset_id}/unarchive")
async def unarchive_ruleset(page: SignedIn, ruleset_id: str) -> Response:
    await page.check_form()
    await page.post("monitoring", "rulesets", ruleset_id, "unarchive")
    return page.to(f"/rulesets/{ruleset_id}", "The ruleset is taken back from the archive.")


@router.get("/rulesets/{ruleset_id}/simulations")
async def show_simulations(
    page: SignedIn, ruleset_id: str, number: Annotated[str, Query(alias="page")] = "1"
) -> Response:
    return await _simulations_page(page, ruleset_id, number, {})


@router.post("/rulesets/{ruleset_id}/simulations")
async def start_simulation(page: SignedIn, ruleset_id: str) -> Response:
    form = await page.form()
    days = {name: form.get(name) or None for name in ("from", "to")}
    try:
        job = await page.post("monitoring", "rulesets", ruleset_id, "simulate", json=days)
    except Refused as refusal:
        if refusal.status not in (400, 409):
            raise
        return await _simulations_page(page, ruleset_id, "1", dict(form), refusal)
    return page.to(f"/rulesets/{ruleset_id}/simulations/{job['jobId']}", "The simulation has started.")


@router.get("/rulesets/{ruleset_id}/simulations/{simulation_id}")
async def show_simulation(page: SignedIn, ruleset_id: str, simulation_id: str) -> Response:
    ruleset = await page.get("monitoring", "rulesets", ruleset_id)
    simulation = await page.get("monitoring", "simulations", simulation_id)
    job = await page.get("jobs", simulation_id, "status")
    return page.show("ruleset-simulation.html", ruleset=ruleset, simulation=simulation, error=job["error"])


@router.get("/rulesets/{ruleset_id}/simulations/{simulation_id}/page")
async def show_simulation_page(page: SignedIn, ruleset_id: str, simulation_id: str) -> Response:
    await page.get("monitoring", "rulesets", ruleset_id)
    return as_sent(await page.file("monitoring", "simulations", simulation_id, "page.html"))


def _text_of(ruleset: Mapping[str, Any]) -> str:
    return as_yaml(Ruleset.model_validate(ruleset["document"]))


async def _ruleset_page(page: Page, ruleset_id: str, refusal: Refused | None = None) -> Response:
    ruleset = await page.get("monitoring", "rulesets", ruleset_id)
    alerts = await page.get("alerts", rulesetId=ruleset_id, page=1, count=NEWEST)
    status, fault = (200, "") if refusal is None else (refusal.status, refusal.detail)
    shown = {"alerts": alerts, "text": _text_of(ruleset), "fault": fault}
    return page.show("ruleset.html", status, ruleset=ruleset, **shown)


async def _check_or_save(page: Page, ruleset_id: str | None) -> Response:
    """Check or save the text of a form."""
    form = await page.form()
    text, is_saved, known = str(form.get("document", "")), form.get("action") == "save", as_number(form, "known")
    try:
        document = documents.read(text)
        found = await page.post("monitoring", "check", json=document)
        if is_saved and not found["faults"]:
            return await _save(page, ruleset_id, document, known)
    except InvalidRequest as refusal:
        return await _edit_page(page, ruleset_id, text, refusal.detail, known=known, status=400)
    except Refused as refusal:
        if refusal.status not in (400, 409):
            raise
        if refusal.code == CHANGED:
            return await _edit_page(page, ruleset_id, text, f"{refusal.detail} {documents.AGAIN}", status=409)
        return await _edit_page(page, ruleset_id, text, refusal.detail, known=known, status=refusal.status)
    return await _edit_page(page, ruleset_id, text, found=found, known=known, status=400 if is_saved else 200)


async def _save(page: Page, ruleset_id: str | None, document: Mapping[str, Any], known: int | None) -> Response:
    if ruleset_id is None:
        done = await page.post("monitoring", "rulesets", json=document)
    else:
        done = await _replace(page, ruleset_id, document, known)
    if "approvalId" in done:
        return page.to("/rulesets" if ruleset_id is None else f"/rulesets/{ruleset_id}", REQUESTED)
    return page.to(f"/rulesets/{done['rulesetId']}", f"Version {done['version']} is stored.")


async def _replace(page: Page, ruleset_id: str, document: Mapping[str, Any], known: int | None) -> dict[str, Any]:
    """Replace the known version, or request it. Another version than that is not replaced."""
    done: dict[str, Any] = await page.put("monitoring", "rulesets", ruleset_id, json=document, knownVersion=known)
    return done


async def _edit_page(
    page: Page,
    ruleset_id: str | None,
    text: str,
    fault: str = "",
    *,
    known: int | None = None,
    found: Mapping[str, Any] | None = None,
    status: int = 200,
) -> Response:
    """Show the editor with a text.

    Args:
        known: the version that the text is to replace; None: the one that is stored now.
    """
    values = {"ruleset_id": ruleset_id, "name": "", "path": "/rulesets/new", "known": "", "text": text, "found": found}
    if ruleset_id is not None:
        stored = await page.get("monitoring", "rulesets", ruleset_id)
        values |= {"name": stored["name"], "path": f"/rulesets/{ruleset_id}/edit", "known": known or stored["version"]}
    return page.show("ruleset-edit.html", status, fault=fault, **values)


async def _simulations_page(
    page: Page, ruleset_id: str, number: str, sent: Mapping[str, Any], refusal: Refused | None = None
) -> Response:
    ruleset = await page.get("monitoring", "rulesets", ruleset_id)
    found = await page.get("monitoring", "rulesets", ruleset_id, "simulations", page=number, count=ON_PAGE)
    status, fault = (200, "") if refusal is None else (refusal.status, refusal.detail)
    return page.show("ruleset-simulations.html", status, ruleset=ruleset, found=found, sent=sent, fault=fault)
