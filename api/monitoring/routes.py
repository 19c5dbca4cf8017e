"""Monitoring: rulesets that watch customers after a loan is granted, and their matches."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core.authoring import as_records
from api.core.derived import BYTES_PER_ROW
from api.core.schemas.common import Paging
from api.http import four_eyes
from api.http.dependencies import Allow, Caller, LibrarySlug, MatchId, RulesetId
from api.http.documented import DAMAGED_FILE, envelope, refuses
from api.http.four_eyes import REQUESTED
from api.http.idempotency import IDEMPOTENT
from api.http.responses import encode, respond, stream_list, totals
from api.http.route import Route
from api.monitoring.rulesets import (
    MatchFigures,
    build_activation_request,
    create,
    describe_matches,
    describe_with_counts,
    replace_document,
    require_valid,
)
from api.monitoring.schemas import (
    CheckedRulesetView,
    LibraryRulesetView,
    LibraryView,
    MatchesQuery,
    MatchListView,
    MatchView,
    ReplaceQuery,
    RulesetListView,
    RulesetsQuery,
    RulesetVersionListView,
    RulesetView,
    SavedRulesetView,
    SentRuleset,
    describe_library_ruleset,
    describe_version,
    fired_rules,
)
from api.reports import replay
from api.reports.schemas.reports import FigureQuery, LineageView
from pipelines.monitoring import check_document, library
from pipelines.vocabulary.errors import NotFound
from storage.core.models import ApprovalKind
from storage.monitoring import rule_matches, rulesets
from storage.monitoring.rule_matches import Match

router = APIRouter(route_class=Route, prefix="/v1/monitoring", tags=["Monitoring"])
Watcher = Annotated[Caller, Depends(Allow("monitoring:rules"))]
MatchReader = Annotated[Caller, Depends(Allow("monitoring:rules", "customer:work"))]
UNSOUND = ("Ruleset.Invalid", "Ruleset.UnknownCustomer", "Ruleset.SlugTaken")
CORRUPT, CORRUPT_MATCH = "Ruleset.Corrupt", "RuleMatch.Corrupt"
MATCHES_PER_SLICE = 100


@router.post(
    "/rulesets",
    status_code=201,
    response_model=envelope(SavedRulesetView),
    responses=REQUESTED | refuses(*UNSOUND, "Ruleset.TooMany"),
    dependencies=[IDEMPOTENT],
)
def create_ruleset(caller: Watcher, sent: SentRuleset) -> Response:
    """Create a ruleset. All faults of the document are listed at once.

    If it is active, all customers that it applies to are evaluated soon, after the work that is already waiting. If the
    client requires a second person or key for that, an active ruleset is only requested (202).
    """
    found = check_document(sent.document())
    ruleset = require_valid(found)
    with caller.writing() as w:
        requested = ruleset.active and four_eyes.applies(caller, w, ApprovalKind.ACTIVATE)
        with four_eyes.trial(w, only=requested):
            created = create(caller, w, ruleset)
        if requested:
            return caller.store_response(w, four_eyes.request(caller, w, build_activation_request(ruleset)))
        shown = {**describe_with_counts(w, created, caller.today), "warnings": as_records(found.warnings)}
        location = {"Location": f"/v1/monitoring/rulesets/{created.ruleset_id}"}
        return caller.store_response(w, respond(shown, status=201, headers=location))


@router.post("/check", response_model=envelope(CheckedRulesetView), responses=refuses("Ruleset.UnknownCustomer"))
def check_ruleset(caller: Watcher, sent: SentRuleset) -> Response:
    """Check a document as creating it would, and store nothing. Whether its slug is free is not checked."""
    found = check_document(sent.document())
    if found.ruleset is not None:
        with caller.reading() as r:
            rulesets.require_own_customers(r, caller.client_id, found.ruleset)
    return respond({"faults": as_records(found.faults), "warnings": as_records(found.warnings)})


@router.get("/rulesets", response_model=envelope(RulesetListView), responses=refuses(CORRUPT))
def list_rulesets(caller: Watcher, query: Annotated[RulesetsQuery, Query()]) -> Response:
    """List rulesets in order of their slugs, including inactive ones."""
    with caller.reading() as r:
        found = rulesets.find(r, caller.client_id, include_archived=query.include_archived, page=query.requested_page())
        shown = [describe_with_counts(r, each, caller.today) for each in found.items]
    return respond({"rulesets": shown, **totals(found)})


@router.get("/rulesets/{rulesetId}", response_model=envelope(RulesetView), responses=refuses(CORRUPT))
def get_ruleset(caller: Watcher, ruleset_id: RulesetId) -> Response:
    """Read a ruleset, and how often its rules fired in the last 30 days."""
    with caller.reading() as r:
        return respond(describe_with_counts(r, caller.ruleset(r, ruleset_id), caller.today))


@router.put(
    "/rulesets/{rulesetId}",
    response_model=envelope(SavedRulesetView),
    responses=REQUESTED | refuses(*UNSOUND, "Ruleset.Archived", "Ruleset.ChangedMeanwhile", CORRUPT),
)
def replace_ruleset(
    caller: Watcher, ruleset_id: RulesetId, sent: SentRuleset, query: Annotated[ReplaceQuery, Query()]
) -> Response:
    """Replace a ruleset's document by a new version; an equal document changes nothing.

    If the new version is active, a rule that keeps its code doesn't fire again for the same customers because of the
    change alone. `active` switches the ruleset on and off. If the client requires a second person or key for active
    rulesets, such a version is only requested (202).
    """
    found = check_document(sent.document())
    ruleset = require_valid(found)
    with caller.writing() as w:
        stored = caller.ruleset(w, ruleset_id)
        requested = ruleset.active and four_eyes.applies(caller, w, ApprovalKind.ACTIVATE)
        with four_eyes.trial(w, only=requested):
            saved = replace_document(caller, w, stored, ruleset, query.known_version)
        if requested and saved.updated_at == caller.now:
            return four_eyes.request(caller, w, build_activation_request(ruleset, stored))
        return respond({**describe_with_counts(w, saved, caller.today), "warnings": as_records(found.warnings)})


@router.post("/rulesets/{rulesetId}/archive", response_model=envelope(RulesetView), responses=refuses(CORRUPT))
def archive_ruleset(caller: Watcher, ruleset_id: RulesetId) -> Response:
    """Archive a ruleset: it watches nobody. When it is unarchived, all its rules are ready to fire again."""
    with caller.writing() as w:
        stored = rulesets.archive(w, caller.ruleset(w, ruleset_id), caller.now)
        if stored.updated_at == caller.now:
            caller.audit(w, "Ruleset.Archived", rulesetId=stored.ruleset_id)
        return respond(describe_with_counts(w, stored, caller.today))


@router.post("/rulesets/{rulesetId}/unarchive", response_model=envelope(RulesetView), responses=refuses(CORRUPT))
def unarchive_ruleset(caller: Watcher, ruleset_id: RulesetId) -> Response:
    """Unarchive a ruleset. If it is active, it watches again."""
    with caller.writing() as w:
        stored = rulesets.unarchive(w, caller.ruleset(w, ruleset_id), caller.now)
        if stored.updated_at == caller.now:
            caller.audit(w, "Ruleset.Unarchived", rulesetId=stored.ruleset_id)
        return respond(describe_with_counts(w, stored, caller.today))


@router.get(
    "/rulesets/{rulesetId}/versions", response_model=envelope(RulesetVersionListView), responses=refuses(CORRUPT)
)
def list_ruleset_versions(caller: Watcher, ruleset_id: RulesetId, query: Annotated[Paging, Query()]) -> Response:
    """List all versions, newest first, each with its document and time."""
    with caller.reading() as r:
        found = rulesets.find_versions(r, caller.ruleset(r, ruleset_id), query.requested_page())
    return respond({"versions": [describe_version(each) for each in found.items], **totals(found)})


@router.get(
    "/matches",
    response_model=envelope(MatchListView),
    responses=refuses("Customer.NotFound", "Ruleset.NotFound", CORRUPT_MATCH),
)
def list_matches(caller: Watcher, query: Annotated[MatchesQuery, Query()]) -> Response:
    """List matches, newest first, with the values that their rules read."""
    with caller.reading() as r:
        customer = None if query.customer_id is None else caller.customer(r, str(query.customer_id))
        ruleset = None if query.ruleset_id is None else caller.ruleset(r, str(query.ruleset_id))
        between = {"created_after": query.created_after, "created_before": query.created_before}
        found = rule_matches.find(
            r, caller.client_id, customer=customer, ruleset=ruleset, **between, page=query.requested_page()
        )
    return stream_list("matches", totals(found), _in_slices(caller, found.items))


@router.get("/matches/{matchId}", response_model=envelope(MatchView), responses=refuses(CORRUPT_MATCH))
def get_match(caller: Watcher, match_id: MatchId) -> Response:
    """Read a match. Its id is the `eventId` of the webhook that reported it."""
    with caller.reading() as r:
        [shown] = describe_matches(r, [caller.match(r, match_id)])
    return respond(shown)


@router.get(
    "/matches/{matchId}/lineage",
    response_model=envelope(LineageView),
    responses=refuses("Report.FigureNotFound", "Report.VersionExpired", CORRUPT, CORRUPT_MATCH, *DAMAGED_FILE),
)
def explain_match(caller: MatchReader, match_id: MatchId, query: Annotated[FigureQuery, Query()]) -> Response:
    """List the transactions behind a metric as the rule read it; for a baseline metric, those up to the baseline's day.

    The default is the first metric that was read.
    """
    with caller.reading() as r:
        found = caller.match(r, match_id)
        customer = caller.customer(r, str(found.customer_id))
        ruleset = rulesets.read_version(r, found.ruleset_id, found.version).ruleset
        fired = fired_rules(rule_matches.read_record(r, found))
        basis = replay.decision_basis(r, caller, customer, found.data_version, found.as_of, found.at)
        figures = MatchFigures(ruleset, fired, basis)
    figure = query.figure or figures.first
    with caller.request.app.state.memory.reserve(caller.requester, customer.enriched_rows * BYTES_PER_ROW):
        trace, facts, basis = figures.trace(figure, caller)
        return replay.respond_lineage(caller, "match", figure, trace, facts, basis, customer, query.requested_page())


@router.get("/library", response_model=envelope(LibraryView))
def list_library(_: Watcher) -> Response:
    """List the rulesets that come with the service. They watch customers only after you create them."""
    return respond(
        {"rulesets": [describe_library_ruleset(slug, each) for slug, each in library.load_library().items()]}
    )


@router.get("/library/{librarySlug}", response_model=envelope(LibraryRulesetView))
def get_library_ruleset(_: Watcher, slug: LibrarySlug) -> Response:
    """Read a ruleset of the library: the document to send, and the same as YAML with comments."""
    found = library.load_library().get(slug)
    if found is None:
        raise NotFound("Ruleset.NotFound", "There is no such ruleset.")
    return respond({**describe_library_ruleset(slug, found), "document": found.document, "text": found.text})


def _in_slices(caller: Caller, found: Sequence[Match]) -> Iterator[bytes]:
    """Yield matches as JSON objects joined by commas, slice by slice."""
    for start in range(0, len(found), MATCHES_PER_SLICE):
        with caller.reading() as r:
            yield b",".join(encode(each) for each in describe_matches(r, found[start : start + MATCHES_PER_SLICE]))
