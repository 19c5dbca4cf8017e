"""Shared by monitoring's routes and commands: check documents, describe rulesets and matches, trace their figures."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from api.http.dependencies import Caller
from api.monitoring.schemas import COUNTED_DAYS, FiredRule, describe_match, describe_ruleset
from api.reports import replay
from api.reports.replay import Basis
from pipelines.decisions.canonical import canonical
from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Formula, Trace, no_figure, pointer
from pipelines.monitoring import CheckedRuleset, Ruleset
from pipelines.monitoring.baselines import CAUSES, NO_BASELINE
from pipelines.pages.wording import quantity
from pipelines.vocabulary.errors import Conflict, InvalidRequest
from storage.access.approvals import Approval, Request
from storage.core.database import Reading, Writing
from storage.core.models import ApprovalKind
from storage.monitoring import rule_matches, rulesets
from storage.monitoring.rule_matches import Match
from storage.monitoring.rulesets import StoredRuleset


def require_valid(checked: CheckedRuleset) -> Ruleset:
    """Return the ruleset of a checked document.

    Raises:
        InvalidRequest: the document has faults; all are listed.
    """
    if checked.faults or checked.ruleset is None:
        detail = f"The ruleset has {quantity(len(checked.faults), 'fault')}."
        raise InvalidRequest("Ruleset.Invalid", detail, tuple(checked.faults))
    return checked.ruleset


def describe_with_counts(r: Reading, stored: StoredRuleset, today: date) -> dict[str, Any]:
    """Return a ruleset's public fields, with how often its rules fired in the last COUNTED_DAYS days."""
    since = today - timedelta(days=COUNTED_DAYS - 1)
    return describe_ruleset(stored, rule_matches.sum_counts(r, stored, since), rule_matches.count_firing(r, stored))


def describe_matches(r: Reading, matches: Sequence[Match]) -> Iterator[dict[str, Any]]:
    for match in matches:
        yield describe_match(match, rule_matches.read_record(r, match))


def create(caller: Caller, w: Writing, ruleset: Ruleset) -> StoredRuleset:
    created = rulesets.create(w, caller.client_id, ruleset, caller.who, caller.now)
    caller.audit(w, "Ruleset.Created", rulesetId=created.ruleset_id)
    return created


def replace_document(
    caller: Caller, w: Writing, stored: StoredRuleset, ruleset: Ruleset, known: int | None = None
) -> StoredRuleset:
    """Replace the ruleset by a new version; an equal document changes nothing.

    Args:
        known: the version that it replaces; None: whichever is in force.
    """
    saved = rulesets.replace(w, stored, ruleset, caller.who, caller.now, known)
    if saved.updated_at == caller.now:
        caller.audit(w, "Ruleset.Replaced", rulesetId=saved.ruleset_id, version=str(saved.version))
    return saved


def build_activation_request(ruleset: Ruleset, replaces: StoredRuleset | None = None) -> Request:
    """Return the request to create this active ruleset, or to replace another one by it."""
    replaced = {} if replaces is None else {"rulesetId": str(replaces.ruleset_id)}
    what = {"document": json.loads(canonical(ruleset)), "replaces": None if replaces is None else replaces.version}
    subject = {**replaced, "slug": ruleset.slug}
    return Request(ApprovalKind.ACTIVATE, replaced.get("rulesetId", ruleset.slug), subject, what)


def perform_activation(caller: Caller, w: Writing, approved: Approval) -> None:
    """Create or replace the ruleset of an approved request.

    Raises:
        Conflict: the ruleset has changed since it was requested.
    """
    ruleset = Ruleset.model_validate_json(json.dumps(approved.request["document"]))
    if "rulesetId" not in approved.subject:
        create(caller, w, ruleset)
        return
    stored = rulesets.lock(w, caller.ruleset(w, approved.subject["rulesetId"]))
    if stored.version != approved.request["replaces"]:
        raise Conflict("Approval.SubjectChanged", "The ruleset has changed since this was requested: request it again.")
    replace_document(caller, w, stored, ruleset)


class MatchFigures:
    """The figures that a match's rules read: metrics as of the ruleset evaluation, or as of the day of the baseline.

    Args:
        ruleset: the version that was evaluated.
        rules: the rules that fired.
        basis: the data that was evaluated.
    """

    def __init__(self, ruleset: Ruleset, rules: Sequence[FiredRule], basis: Basis) -> None:
        self.ruleset = ruleset
        self.read = {each.name: each for rule in rules for each in rule.read if each.kind == "metric"}
        self.basis = basis

    @property
    def first(self) -> str:
        """The default figure: the first metric that was read."""
        return f"/{next(iter(self.read), '')}"

    def trace(self, figure: str, caller: Caller) -> tuple[Trace, Facts, Basis]:
        """Return a figure's lineage, and what it was computed from.

        Raises:
            NotFound: there is no such metric, or no such input of it, or the match didn't read this baseline metric.
        """
        slug = pointer(figure)[0]
        if slug not in self.ruleset.baselines:
            return self._trace(figure, caller, self.basis)
        if slug not in self.read or (baseline := self.read[slug].baseline) is None:
            raise no_figure([slug])
        if baseline.day is None:
            facts = self.basis.facts(caller)
            return Formula(f"unavailable: {CAUSES[NO_BASELINE]}", {}, lambda _: None), facts, self.basis
        underlying = "/" + baseline.of + figure[1 + len(slug) :]
        return self._trace(underlying, caller, replace(self.basis, as_of=baseline.day))

    def _trace(self, figure: str, caller: Caller, basis: Basis) -> tuple[Trace, Facts, Basis]:
        facts = basis.facts(caller)
        return replay.trace_metric(figure, facts, self.ruleset.every_metric), facts, basis
