"""Decision policies: save, check, publish, compare and archive them."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.responses import Response

from api.core.authoring import as_records, require_acknowledged, require_valid
from api.core.derived import BYTES_PER_ROW
from api.core.schemas.common import Paging
from api.decisions import actions
from api.decisions.reach import PART_ROWS, find_unreached_steps
from api.decisions.schemas.policies import (
    CheckedPolicyView,
    DiffQuery,
    PolicyDiffView,
    PolicyListView,
    PolicyPaging,
    PolicySchemaView,
    PolicyStateView,
    PolicyVersionView,
    SavedPolicyView,
    SaveQuery,
    SentChallenger,
    SentPolicy,
    SentPublication,
    VersionListView,
    VersionQuery,
    VersionView,
    describe_policy,
    describe_version,
)
from api.http import four_eyes
from api.http.dependencies import Allow, Caller, NewPolicySlug, PolicySlug
from api.http.documented import envelope, refuses
from api.http.four_eyes import REQUESTED
from api.http.responses import respond, respond_list
from api.http.route import Route
from pipelines.decisions import Policy, check
from pipelines.decisions.authoring import diff, schema
from pipelines.decisions.check import CheckedPolicy, Finding
from pipelines.decisions.policy import RESERVED_SLUGS
from pipelines.vocabulary.errors import InvalidRequest
from storage.access.approvals import Request
from storage.core.database import Writing
from storage.core.models import ApprovalKind
from storage.decisions import policies
from storage.decisions.policies import StoredPolicy


class _SlugConvertor(StringConvertor):
    """Matches every slug except reserved ones: `schema` is the path of the JSON Schema, which has only GET."""

    regex = f"(?!({'|'.join(RESERVED_SLUGS)})$)[^/]+"


register_url_convertor("policy", _SlugConvertor())
router = APIRouter(route_class=Route, prefix="/v1/decision-policies", tags=["Decision policies"])
Lister = Annotated[Caller, Depends(Allow("decision-policies:read"))]
Reader = Annotated[Caller, Depends(Allow("decision-policies:read", "decision-policies:write"))]
Author = Annotated[Caller, Depends(Allow("decision-policies:write"))]
Publisher = Annotated[Caller, Depends(Allow("decision-policies:publish"))]
NO_VERSION = "DecisionPolicy.VersionNotFound"
ARCHIVED = "DecisionPolicy.Archived"
CHANGED = "DecisionPolicy.ChangedMeanwhile"
NO_CHALLENGER = ("DecisionPolicy.NotADraft", "DecisionPolicy.ChallengerInputs")
UNSOUND = ("DecisionPolicy.Invalid", "DecisionPolicy.WarningsNotAcknowledged")
TOO_MANY = ("DecisionPolicy.TooMany", "DecisionPolicy.TooManyVersions")


@router.get("", response_model=envelope(PolicyListView))
def list_decision_policies(caller: Lister, query: Annotated[PolicyPaging, Query()]) -> Response:
    """List the policies that have been published, in order of their slugs."""
    with caller.reading() as r:
        which = {"include_archived": query.include_archived, "include_drafts": query.include_drafts}
        found = policies.find(r, caller.client_id, **which, page=query.requested_page())
    items = [describe_policy(stored, version) for stored, version in found.items]
    page = found.current_page or 1
    return respond({"items": items, "page": page, "pageSize": found.page_size, "totalCount": found.total})


@router.get("/schema", response_model=envelope(PolicySchemaView))
def get_decision_policy_schema(_: Reader) -> Response:
    """Read the JSON Schema of a policy's document, for editors."""
    return respond({"schema": schema.as_json_schema()})


@router.put(
    "/{slug:policy}",
    status_code=201,
    response_model=envelope(SavedPolicyView),
    responses={200: {"model": envelope(SavedPolicyView)}} | refuses(ARCHIVED, CHANGED, *UNSOUND, *TOO_MANY),
)
def save_decision_policy(
    caller: Author, slug: NewPolicySlug, sent: SentPolicy, query: Annotated[SaveQuery, Query()]
) -> Response:
    """Save a document as a new draft; if it equals the newest version, get that version again (200).

    All faults are listed at once. Warnings, about leniency and unreachable parts, must be acknowledged.
    """
    checked = check.check_document(sent.document(slug))
    policy = require_valid(checked, slug)
    findings = _warnings(caller, checked, policy)
    accepted = sent.acknowledged()
    require_acknowledged(findings, lambda each: (each.code, each.pointer) in accepted)
    warnings = as_records(findings)
    with caller.writing() as w:
        author, known = caller.actor.who, query.known_version
        saved = policies.save_draft(w, caller.client_id, policy, warnings, author, caller.now, known)
        stored = policies.get(w, caller.client_id, slug)
        is_new = saved.created_at == caller.now
        if is_new:
            _audit(caller, w, "Policy.Saved", stored, saved.version)
    reported = {**describe_version(stored, saved), "warnings": warnings}
    location = {"Location": f"/v1/decision-policies/{slug}?version={saved.version}"}
    return respond(reported, status=201, headers=location) if is_new else respond(reported)


@router.post("/{slug}/check", response_model=envelope(CheckedPolicyView))
def check_decision_policy(caller: Author, slug: NewPolicySlug, sent: SentPolicy) -> Response:
    """Check a document as saving it would, and store nothing."""
    checked = check.check_document(sent.document(slug))
    try:
        policy = require_valid(checked, slug)
    except InvalidRequest as refusal:
        return respond({"faults": as_records(refusal.faults), "warnings": []})
    return respond({"faults": [], "warnings": as_records(_warnings(caller, checked, policy))})


@router.get("/{slug:policy}", response_model=envelope(PolicyVersionView), responses=refuses(NO_VERSION))
def get_decision_policy(caller: Reader, slug: PolicySlug, query: Annotated[VersionQuery, Query()]) -> Response:
    """Read a policy's published version, or any other version."""
    with caller.reading() as r:
        stored = caller.policy(r, slug)
        return respond(describe_version(stored, policies.version(r, stored, query.version)))


@router.get("/{slug}/versions", response_model=envelope(VersionListView))
def list_decision_policy_versions(caller: Reader, slug: PolicySlug, query: Annotated[Paging, Query()]) -> Response:
    """List all versions, newest first, with the times when each was in force."""
    with caller.reading() as r:
        stored = caller.policy(r, slug)
        return respond_list("versions", policies.versions(r, stored, query.requested_page()), VersionView)


@router.get("/{slug}/diff", response_model=envelope(PolicyDiffView), responses=refuses(NO_VERSION))
def diff_decision_policy(caller: Reader, slug: PolicySlug, query: Annotated[DiffQuery, Query()]) -> Response:
    """Describe in words how two versions differ."""
    with caller.reading() as r:
        stored = caller.policy(r, slug)
        before = policies.version(r, stored, query.from_)
        after = policies.newest(r, stored) if query.to is None else policies.version(r, stored, query.to)
    changes = diff.describe_changes(before.policy, after.policy)
    return respond({"from": before.version, "to": after.version, "changes": changes})


@router.post(
    "/{slug}/publish",
    response_model=envelope(PolicyVersionView),
    responses=REQUESTED | refuses(NO_VERSION, ARCHIVED, "DecisionPolicy.VersionRetired"),
)
def publish_decision_policy(caller: Publisher, slug: PolicySlug, sent: SentPublication) -> Response:
    """Publish a version: it decides from now on, and the previous one is retired.

    Publishing it again changes nothing. If the client requires a second person or key, the publication is only
    requested (202).
    """
    with caller.writing() as w:
        stored = caller.policy(w, slug)
        requested = four_eyes.applies(caller, w, ApprovalKind.PUBLISH)
        with four_eyes.trial(w, only=requested):
            version = actions.publish(caller, w, stored, sent.version)
        if requested and version.published_at == caller.now:
            policy_id = str(stored.policy_id)
            subject, what = {"policyId": policy_id, "slug": slug}, {"version": version.version}
            return four_eyes.request(caller, w, Request(ApprovalKind.PUBLISH, policy_id, subject, what))
        return respond(describe_version(caller.policy(w, slug), version))


@router.post("/{slug}/archive", response_model=envelope(PolicyStateView))
def archive_decision_policy(caller: Publisher, slug: PolicySlug) -> Response:
    """Archive a policy: it decides nothing, and no version can be saved, until it is unarchived."""
    return _change_state(caller, slug, "Policy.Archived", policies.archive)


@router.post("/{slug}/unarchive", response_model=envelope(PolicyStateView))
def unarchive_decision_policy(caller: Publisher, slug: PolicySlug) -> Response:
    """Unarchive a policy. Its published version decides again."""
    return _change_state(caller, slug, "Policy.Unarchived", policies.unarchive)


@router.put(
    "/{slug}/challenger",
    response_model=envelope(PolicyStateView),
    responses=refuses(NO_VERSION, ARCHIVED, *NO_CHALLENGER),
)
def set_challenger(caller: Author, slug: PolicySlug, sent: SentChallenger) -> Response:
    """Shadow-run a draft for a share of the customers: its decisions are stored with the real ones, but not returned.

    Its inputs must be among those of the published version; publishing a version that lacks one of them removes the
    challenger.
    """
    change = partial(policies.set_challenger, number=sent.version, percent=sent.percent)
    return _change_state(caller, slug, "Policy.ChallengerSet", change, sent.version)


@router.delete("/{slug}/challenger", response_model=envelope(PolicyStateView))
def remove_challenger(caller: Author, slug: PolicySlug) -> Response:
    """Remove the challenger, so that it no longer decides beside the published version."""
    return _change_state(caller, slug, "Policy.ChallengerRemoved", policies.remove_challenger)


def _warnings(caller: Caller, checked: CheckedPolicy, policy: Policy) -> list[Finding]:
    """Return the warnings about a sound document, also those about steps that no customer reaches."""
    with caller.request.app.state.memory.reserve(caller.requester, PART_ROWS * BYTES_PER_ROW):
        return [*checked.warnings, *find_unreached_steps(caller.store, caller.client_id, policy, caller.now)]


def _change_state(
    caller: Author,
    slug: str,
    action: str,
    change: Callable[[Writing, StoredPolicy], StoredPolicy],
    version: int | None = None,
) -> Response:
    """Change a policy's state, and return the new one. A change that was made before is not audited again."""
    with caller.writing() as w:
        before = policies.lock(w, caller.policy(w, slug))
        stored = change(w, before)
        if stored != before:
            _audit(caller, w, action, stored, version)
    return respond(PolicyStateView.of(stored))


def _audit(caller: Caller, w: Writing, action: str, stored: StoredPolicy, version: int | None = None) -> None:
    numbered = {} if version is None else {"version": str(version)}
    caller.audit(w, action, policyId=stored.policy_id, **numbered)
