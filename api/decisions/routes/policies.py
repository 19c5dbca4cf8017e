"""Decision policies: written, checked, published, compared and put away."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.responses import Response

from api.core.answers import answer, listing
from api.core.authoring import as_records, require_acknowledged, sound
from api.core.deferred import Body, JsonBody, Query, QueryOf
from api.core.dependencies import Allow, Caller, PolicySlug
from api.core.derived import BYTES_A_ROW
from api.core.in_turn import InTurn
from api.core.operations import gives
from api.core.schemas.common import Paging
from api.decisions.reach import PART_ROWS, unreached
from api.decisions.schemas.policies import (
    PolicyDiffView,
    PolicyListView,
    PolicyPaging,
    PolicySchemaView,
    PolicyStateView,
    PolicyVersionView,
    SavedPolicyView,
    SentChallenger,
    SentPolicy,
    SentPublication,
    VersionListView,
    VersionView,
    WhichTwo,
    WhichVersion,
    shown,
    shown_whole,
)
from pipelines.decisions import check
from pipelines.decisions.authoring import diff, schema
from pipelines.decisions.policy import RESERVED_SLUGS
from storage.core.database import Writing
from storage.decisions import policies
from storage.decisions.policies import StoredPolicy


class _SlugConvertor(StringConvertor):
    """Every slug but the reserved one, whose address is the schema's: that has no other methods."""

    regex = f"(?!({'|'.join(RESERVED_SLUGS)})$)[^/]+"


register_url_convertor("policy", _SlugConvertor())
router = APIRouter(route_class=InTurn, prefix="/v1/decision-policies", tags=["Decision policies"])
Lister = Annotated[Caller, Depends(Allow("decision-policies:read"))]
Reader = Annotated[Caller, Depends(Allow("decision-policies:read", "decision-policies:write"))]
Author = Annotated[Caller, Depends(Allow("decision-policies:write"))]
Publisher = Annotated[Caller, Depends(Allow("decision-policies:publish"))]
PolicyBody = Annotated[Body[SentPolicy], Depends(JsonBody(SentPolicy))]
PublicationBody = Annotated[Body[SentPublication], Depends(JsonBody(SentPublication))]
ChallengerBody = Annotated[Body[SentChallenger], Depends(JsonBody(SentChallenger))]
WhichPolicies = Annotated[Query[PolicyPaging], Depends(QueryOf(PolicyPaging))]
WhichPage = Annotated[Query[Paging], Depends(QueryOf(Paging))]
OneVersion = Annotated[Query[WhichVersion], Depends(QueryOf(WhichVersion))]
TwoVersions = Annotated[Query[WhichTwo], Depends(QueryOf(WhichTwo))]
NOT_ENABLED = "DecisionPolicy.NotEnabled"
NO_VERSION = "DecisionPolicy.VersionNotFound"
ARCHIVED = "DecisionPolicy.Archived"
NO_CHALLENGER = ("DecisionPolicy.NotADraft", "DecisionPolicy.ChallengerInputs")
UNSOUND = ("DecisionPolicy.Invalid", "DecisionPolicy.WarningsNotAcknowledged")
TOO_MANY = ("DecisionPolicy.TooMany", "DecisionPolicy.TooManyVersions")


@router.get("", **gives(PolicyListView, refuses=[NOT_ENABLED]))
def list_decision_policies(caller: Lister, query: WhichPolicies) -> Response:
    """List published policies by slug. One that was never published is not among them."""
    with caller.reading() as r:
        policies.require_enabled(r, caller.client_id)
        asked = query.read()
        found = policies.find(r, caller.client_id, include_archived=asked.include_archived, page=asked.asked())
    items = [shown(stored, version) for stored, version in found.items]
    page = found.current_page or 1
    return answer({"items": items, "page": page, "pageSize": found.page_size, "totalCount": found.total})


@router.get("/schema", **gives(PolicySchemaView, refuses=[NOT_ENABLED]))
def get_decision_policy_schema(caller: Reader) -> Response:
    """Read the JSON Schema of a policy's document, for editors."""
    with caller.reading() as r:
        policies.require_enabled(r, caller.client_id)
    return answer({"schema": schema.as_json_schema()})


@router.put(
    "/{slug:policy}", **gives(SavedPolicyView, 201, also=200, refuses=[NOT_ENABLED, ARCHIVED, *UNSOUND, *TOO_MANY])
)
def save_decision_policy(caller: Author, slug: PolicySlug, body: PolicyBody) -> Response:
    """Save a document as a new draft, or get the newest version again where it says the same (200).

    All faults are told at once. Warnings, which tell of leniency and of what can't be reached, have to be acknowledged.
    """
    with caller.reading() as r:
        policies.require_enabled(r, caller.client_id)
    sent = body.read()
    checked = check.read(sent.document(slug))
    policy = sound(checked, slug)
    with caller.request.app.state.memory.taken(caller.asker, PART_ROWS * BYTES_A_ROW):
        found = [*checked.warnings, *unreached(caller.store, caller.client_id, policy, caller.now)]
    accepted = sent.acknowledged()
    require_acknowledged(found, lambda each: (each.code, each.pointer) in accepted)
    warnings = as_records(found)
    with caller.writing() as w:
        saved = policies.save_draft(w, caller.client_id, policy, warnings, caller.actor.who, caller.now)
        stored = policies.get(w, caller.client_id, slug)
        is_new = saved.created_at == caller.now
        if is_new:
            _audit(caller, w, "Policy.Saved", stored, saved.version)
    reported = {**shown_whole(stored, saved), "warnings": warnings}
    location = {"Location": f"/v1/decision-policies/{slug}?version={saved.version}"}
    return answer(reported, status=201, headers=location) if is_new else answer(reported)


@router.get("/{slug:policy}", **gives(PolicyVersionView, refuses=[NOT_ENABLED, NO_VERSION]))
def get_decision_policy(caller: Reader, slug: PolicySlug, query: OneVersion) -> Response:
    """Read a policy as it is published, or any version of it."""
    with caller.reading() as r:
        stored = caller.policy(r, slug)
        return answer(shown_whole(stored, policies.version(r, stored, query.read().version)))


@router.get("/{slug}/versions", **gives(VersionListView, refuses=[NOT_ENABLED]))
def list_decision_policy_versions(caller: Reader, slug: PolicySlug, query: WhichPage) -> Response:
    """List all versions, the newest first: which held when."""
    with caller.reading() as r:
        stored = caller.policy(r, slug)
        return listing("versions", policies.versions(r, stored, query.read().asked()), VersionView)


@router.get("/{slug}/diff", **gives(PolicyDiffView, refuses=[NOT_ENABLED, NO_VERSION]))
def diff_decision_policy(caller: Reader, slug: PolicySlug, query: TwoVersions) -> Response:
    """Say in words what two versions have different."""
    with caller.reading() as r:
        stored = caller.policy(r, slug)
        asked = query.read()
        before = policies.version(r, stored, asked.from_)
        after = policies.newest(r, stored) if asked.to is None else policies.version(r, stored, asked.to)
    changes = diff.describe_changes(before.policy, after.policy)
    return answer({"from": before.version, "to": after.version, "changes": changes})


@router.post(
    "/{slug}/publish",
    **gives(PolicyVersionView, refuses=[NOT_ENABLED, NO_VERSION, ARCHIVED, "DecisionPolicy.VersionRetired"]),
)
def publish_decision_policy(caller: Publisher, slug: PolicySlug, body: PublicationBody) -> Response:
    """Let a version decide from now on; the one before is retired. Asked again, nothing changes."""
    with caller.reading() as r:
        caller.policy(r, slug)
    number = body.read().version
    with caller.writing() as w:
        before = caller.policy(w, slug)
        version = policies.publish(w, before, number, caller.actor.who, caller.now)
        if version.published_at == caller.now:
            _audit(caller, w, "Policy.Published", before, version.version)
        return answer(shown_whole(caller.policy(w, slug), version))


@router.post("/{slug}/archive", **gives(PolicyStateView, refuses=[NOT_ENABLED]))
def archive_decision_policy(caller: Author, slug: PolicySlug) -> Response:
    """Put a policy away: nobody is decided by it and nothing is saved in it until it is taken back."""
    with caller.writing() as w:
        stored = policies.archive(w, caller.policy(w, slug))
        _audit(caller, w, "Policy.Archived", stored)
    return answer(PolicyStateView.of(stored))


@router.post("/{slug}/unarchive", **gives(PolicyStateView, refuses=[NOT_ENABLED]))
def unarchive_decision_policy(caller: Author, slug: PolicySlug) -> Response:
    """Take an archived policy back, with the version that was published."""
    with caller.writing() as w:
        stored = policies.unarchive(w, caller.policy(w, slug))
        _audit(caller, w, "Policy.Unarchived", stored)
    return answer(PolicyStateView.of(stored))


@router.put(
    "/{slug}/challenger",
    **gives(PolicyStateView, refuses=[NOT_ENABLED, NO_VERSION, ARCHIVED, *NO_CHALLENGER]),
)
def set_challenger(caller: Author, slug: PolicySlug, body: ChallengerBody) -> Response:
    """Shadow-run a draft on a share of the evaluations: its answers are stored beside the real ones, and not told.

    Its inputs must be among those of the published version; publishing one that lacks any of them ends it.
    """
    with caller.reading() as r:
        caller.policy(r, slug)
    asked = body.read()
    with caller.writing() as w:
        stored = policies.set_challenger(w, caller.policy(w, slug), asked.version, asked.percent)
        _audit(caller, w, "Policy.ChallengerSet", stored, asked.version)
    return answer(PolicyStateView.of(stored))


@router.delete("/{slug}/challenger", **gives(PolicyStateView, refuses=[NOT_ENABLED]))
def remove_challenger(caller: Author, slug: PolicySlug) -> Response:
    """Shadow-run nothing any more."""
    with caller.writing() as w:
        stored = policies.remove_challenger(w, caller.policy(w, slug))
        _audit(caller, w, "Policy.ChallengerRemoved", stored)
    return answer(PolicyStateView.of(stored))


def _audit(caller: Caller, w: Writing, action: str, stored: StoredPolicy, version: int | None = None) -> None:
    numbered = {} if version is None else {"version": str(version)}
    caller.audit(w, action, policyId=stored.policy_id, **numbered)
