"""Decision policies: list, read, edit with a check, publish, archive, and backtest them."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from api.console import declared, documents
from api.console.calls import Correctable
from api.console.declared import as_number
from api.console.rendering import as_json, as_sent
from api.console.routes import PageRoute
from api.console.visits import Page, SignedIn
from pipelines.decisions import Policy
from pipelines.decisions.authoring.text import as_yaml
from pipelines.decisions.policy import POLICY_SLUG
from pipelines.vocabulary.errors import InvalidRequest

router = APIRouter(route_class=PageRoute, include_in_schema=False)
ON_PAGE = 20
NO_SLUG = "The document must have a slug: up to 63 small letters, digits and hyphens."
CHANGED = "DecisionPolicy.ChangedMeanwhile"
OTHER = "Choose another slug, or edit that policy."
NEW = """\
slug: my-policy
name: My policy
defaultOutcome: conditional
defaultReason:
  code: NO_RULE
  message: No rule decided.
  customerMessage: We need to look at your application ourselves.
declaredInputs:
  - {name: requestedAmount, kind: decimal, format: currency, meaning: "What the applicant asks for."}
steps: []
"""


@router.get("/policies")
async def show_policies(
    page: SignedIn, archived: Annotated[str, Query()] = "", number: Annotated[str, Query(alias="page")] = "1"
) -> Response:
    which = {"includeDrafts": True, "includeArchived": archived == "yes"}
    found = await page.get("decision-policies", **which, page=number, pageSize=ON_PAGE)
    found |= {"currentPage": found["page"], "totalPages": -(-found["totalCount"] // ON_PAGE)}
    return page.show("policies.html", found=found, archived=archived)


@router.get("/policies/new")
async def show_new_policy(page: SignedIn) -> Response:
    page.require("decision-policies:write")
    return await _edit_page(page, None, NEW)


@router.post("/policies/new")
async def create_policy(page: SignedIn) -> Response:
    return await _check_or_save(page, None)


@router.get("/policies/{slug}")
async def show_policy(
    page: SignedIn, slug: str, version: Annotated[str, Query()] = "", number: Annotated[str, Query(alias="page")] = "1"
) -> Response:
    return await _policy_page(page, slug, version, number)


@router.get("/policies/{slug}/edit")
async def show_policy_editor(page: SignedIn, slug: str, version: Annotated[str, Query()] = "") -> Response:
    page.require("decision-policies:write")
    return await _edit_page(page, slug, _text_of(await _shown_version(page, slug, version)))


@router.post("/policies/{slug}/edit")
async def edit_policy(page: SignedIn, slug: str) -> Response:
    await page.check_form()
    await _newest_versions(page, slug)  # refuses an unknown slug, which saving would make a new policy
    return await _check_or_save(page, slug)


@router.post("/policies/{slug}/publish")
async def publish_policy(page: SignedIn, slug: str) -> Response:
    """Publish a version, or request it where a second person must approve it."""
    version = as_number(await page.form(), "version")
    try:
        done = await page.post("decision-policies", slug, "publish", json={"version": version})
    except Correctable as refusal:
        return await _policy_page(page, slug, refusal=refusal)
    if "approvalId" in done:
        return page.to(f"/policies/{slug}", "The publication is requested: somebody else must approve it.")
    return page.to(f"/policies/{slug}", f"Version {done['version']} is published: it decides from now on.")


@router.post("/policies/{slug}/challenger")
async def set_challenger(page: SignedIn, slug: str) -> Response:
    """Let a draft decide beside the published version for a share of the customers, or stop it."""
    form = await page.form()
    if form.get("action") == "stop":
        await page.delete("decision-policies", slug, "challenger")
        return page.to(f"/policies/{slug}", "No draft decides beside the published version any more.")
    version, percent = as_number(form, "version"), as_number(form, "percent")
    try:
        await page.put("decision-policies", slug, "challenger", json={"version": version, "percent": percent})
    except Correctable as refusal:
        return await _policy_page(page, slug, refusal=refusal)
    notice = f"Version {version} decides beside the published version for {percent} % of the customers, without effect."
    return page.to(f"/policies/{slug}", notice)


@router.post("/policies/{slug}/archive")
async def archive_policy(page: SignedIn, slug: str) -> Response:
    await page.check_form()
    await page.post("decision-policies", slug, "archive")
    return page.to(f"/policies/{slug}", "The policy is archived: it decides nothing.")


@router.post("/policies/{slug}/unarchive")
async def unarchive_policy(page: SignedIn, slug: str) -> Response:
    await page.check_form()
    await page.post("decision-policies", slug, "unarchive")
    return page.to(f"/policies/{slug}", "The policy is taken back from the archive.")


@router.get("/policies/{slug}/backtests")
async def show_backtests(page: SignedIn, slug: str, number: Annotated[str, Query(alias="page")] = "1") -> Response:
    return await _backtests_page(page, slug, number, {}, {})


@router.post("/policies/{slug}/backtests")
async def start_backtest(page: SignedIn, slug: str) -> Response:
    """Start a backtest of a version, with the same inputs for all customers."""
    form = await page.form()
    policy = await _shown_version(page, slug)
    inputs, faults = declared.read(policy["declaredInputs"], form, "input")
    against = str(form.get("against", ""))
    sent = {
        "version": as_number(form, "version"),
        "against": int(against) if against.isdecimal() else against,
        "asOf": [form["asOf"]] if form.get("asOf") else None,
        "inputs": inputs,
    }
    if not faults:
        try:
            job = await page.post("decision-policies", slug, "backtest", json=sent)
            return page.to(f"/policies/{slug}/backtests/{job['jobId']}", "The backtest has started.")
        except Correctable as refusal:
            faults = declared.faults_of(refusal, "inputs")
            if not faults or len(faults) < len(refusal.faults):
                faults[""] = refusal.detail
    return await _backtests_page(page, slug, "1", dict(form), faults)


@router.get("/policies/{slug}/backtests/{backtest_id}")
async def show_backtest(page: SignedIn, slug: str, backtest_id: str) -> Response:
    backtest = await page.get("decision-policies", slug, "backtests", backtest_id)
    job = await page.get("jobs", backtest_id, "status")
    policy = await page.get("decision-policies", slug, version=backtest["version"])
    rules = {policy["version"]: _rules_of(policy)}
    if (other := backtest["againstVersion"]) is not None:
        rules[other] = _rules_of(await page.get("decision-policies", slug, version=other))
    return page.show("backtest.html", policy=policy, backtest=backtest, error=job["error"], rules=rules)


@router.get("/policies/{slug}/backtests/{backtest_id}/page")
async def show_backtest_page(page: SignedIn, slug: str, backtest_id: str) -> Response:
    return as_sent(await page.file("decision-policies", slug, "backtests", backtest_id, "page.html"))


async def _policy_page(
    page: Page, slug: str, version: str = "", number: str = "1", refusal: Correctable | None = None
) -> Response:
    """Show a version of the policy, and a page of all its versions."""
    found = await page.get("decision-policies", slug, "versions", page=number, count=ON_PAGE)
    shown = await _shown_version(page, slug, version)
    published = await _published_number(page, slug)
    differs = published is not None and published != shown["version"]
    path = ("decision-policies", slug, "diff")
    changes = (await page.get(*path, to=shown["version"]))["changes"] if differs else ()
    may_backtest = page.may("decision-policies:write")
    coverage = await page.get("decision-policies", slug, "coverage", version=shown["version"]) if may_backtest else None
    status, fault = (200, "") if refusal is None else (refusal.status, refusal.detail)
    values = {"published": published, "changes": changes, "found": found, "coverage": coverage, "fault": fault}
    values["names"] = await page.names(each["publishedBy"] for each in found["versions"])
    return page.show("policy.html", status, policy=shown, rules=_rules_of(shown), text=_text_of(shown), **values)


def _rules_of(version: Mapping[str, Any]) -> dict[str, str]:
    """Return what a version's rules say to staff, by code."""
    return {rule["code"]: rule["message"] for step in version["steps"] for rule in step["rules"]}


async def _newest_versions(page: Page, slug: str) -> Sequence[Mapping[str, Any]]:
    found = await page.get("decision-policies", slug, "versions", page=1, count=ON_PAGE)
    versions: list[Mapping[str, Any]] = found["versions"]
    return versions


async def _published_number(page: Page, slug: str) -> int | None:
    published = await page.find("decision-policies", slug)
    return None if published is None else published["version"]


async def _shown_version(page: Page, slug: str, version: str = "") -> dict[str, Any]:
    """Return the chosen version, or the published one, or the newest of a policy that was never published."""
    if not version and (published := await page.find("decision-policies", slug)):
        return published
    chosen = version or (await _newest_versions(page, slug))[0]["version"]
    shown: dict[str, Any] = await page.get("decision-policies", slug, version=chosen)
    return shown


def _text_of(version: Mapping[str, Any]) -> str:
    return as_yaml(Policy.model_validate_json(as_json(version["document"])))


async def _check_or_save(page: Page, slug: str | None) -> Response:
    """Check or save the text of a form. Warnings that the form accepts are acknowledged."""
    form = await page.form()
    text, is_saved = str(form.get("document", "")), form.get("action") == "save"
    known = 0 if slug is None else as_number(form, "known")
    accepted, found = {str(each) for each in form.getlist("accept")}, None
    try:
        document = documents.read(text)
        own_slug = slug or str(document.get("slug", ""))
        if not re.fullmatch(POLICY_SLUG, own_slug):
            return await _edit_page(page, slug, text, NO_SLUG, known=known, status=400)
        found = await page.post("decision-policies", own_slug, "check", json=document)
        acknowledged = [each for each in found["warnings"] if _key(each) in accepted]
        if is_saved and not found["faults"] and len(acknowledged) == len(found["warnings"]):
            named = [{"code": each["code"], "pointer": each["pointer"]} for each in acknowledged]
            sent = document | {"acknowledge": named}
            saved = await page.put("decision-policies", own_slug, json=sent, knownVersion=known)
            where = f"/policies/{own_slug}?version={saved['version']}"
            return page.to(where, f"Version {saved['version']} is stored as a draft.")
    except InvalidRequest as refusal:
        return await _edit_page(page, slug, text, refusal.detail, known=known, status=400)
    except Correctable as refusal:
        if refusal.code != CHANGED:
            return await _edit_page(page, slug, text, refusal.detail, known=known, status=refusal.status)
        fault = f"{refusal.detail} {OTHER if slug is None else documents.AGAIN}"
        return await _edit_page(page, slug, text, fault, found=found, accepted=accepted, status=409)
    status = 400 if is_saved else 200
    return await _edit_page(page, slug, text, known=known, found=found, accepted=accepted, status=status)


def _key(finding: Mapping[str, str]) -> str:
    """Return what the form sends for a warning that is accepted."""
    return f"{finding['code']} {finding['pointer']}"


async def _edit_page(
    page: Page,
    slug: str | None,
    text: str,
    fault: str = "",
    *,
    known: int | None = None,
    found: Mapping[str, Any] | None = None,
    accepted: Collection[str] = (),
    status: int = 200,
) -> Response:
    """Show the editor with a text.

    Args:
        known: the newest version when the text was written; None: the newest now.
    """
    name = "" if slug is None else (await _shown_version(page, slug))["name"]
    if slug is not None and known is None:
        known = (await _newest_versions(page, slug))[0]["version"]
    warnings = [] if found is None else [{**each, "key": _key(each)} for each in found["warnings"]]
    values = {"known": known, "fault": fault, "found": found, "warnings": warnings, "accepted": accepted}
    return page.show("policy-edit.html", status, slug=slug, name=name, text=text, **values)


async def _backtests_page(
    page: Page, slug: str, number: str, sent: Mapping[str, Any], faults: Mapping[str, str]
) -> Response:
    found = await page.get("decision-policies", slug, "backtests", page=number, count=ON_PAGE)
    policy = await _shown_version(page, slug)
    newest = await _newest_versions(page, slug)
    versions = newest if any(each["version"] == policy["version"] for each in newest) else (*newest, policy)
    fields = declared.fields(policy["declaredInputs"], "input", sent, faults)
    numbered = [(str(each["version"]), f"Version {each['version']}, {each['state']}") for each in versions]
    values = {"found": found, "numbered": numbered, "fields": fields, "sent": sent, "fault": faults.get("", "")}
    return page.show("backtests.html", 400 if faults else 200, policy=policy, **values)
