"""What the API and the commands of monitoring share: documents refused with every fault at once, and the figures behind
a match.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from api.core.authoring import counted
from api.http.dependencies import Caller
from api.monitoring.schemas import COUNTED_DAYS, FiredRule, match_shown, shown
from api.reports import replay
from api.reports.replay import Then
from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Formula, Trace, no_figure, pointer
from pipelines.monitoring import Checked, Ruleset
from pipelines.monitoring.baselines import CAUSES, NO_BASELINE
from pipelines.vocabulary.errors import InvalidRequest
from storage.core.database import Reading
from storage.monitoring import rule_matches
from storage.monitoring.rule_matches import Match
from storage.monitoring.rulesets import StoredRuleset


def sound(checked: Checked) -> Ruleset:
    """The ruleset of a document without faults.

    Raises:
        InvalidRequest: with all faults.
    """
    if checked.faults or checked.ruleset is None:
        described = f"The ruleset has {counted(len(checked.faults), 'fault')}."
        raise InvalidRequest("Ruleset.Invalid", described, tuple(checked.faults))
    return checked.ruleset


def with_counts(r: Reading, stored: StoredRuleset, today: date) -> dict[str, Any]:
    """A ruleset as it is shown, with what its rules came to of late."""
    since = today - timedelta(days=COUNTED_DAYS - 1)
    return shown(stored, rule_matches.counts(r, stored, since), rule_matches.fired_now(r, stored))


def matches_shown(r: Reading, found: Sequence[Match]) -> Iterator[dict[str, Any]]:
    for match in found:
        yield match_shown(match, rule_matches.record(r, match))


class Behind:
    """The figures that a match's rules read: a metric as it stood then, or as of the day of the baseline."""

    def __init__(self, ruleset: Ruleset, rules: Sequence[FiredRule], then: Then) -> None:
        """
        Args:
            ruleset: as it was looked by.
            rules: those of the match.
            then: what was evaluated.
        """
        self.ruleset = ruleset
        self.read = {each.name: each for rule in rules for each in rule.read if each.kind == "metric"}
        self.then = then

    @property
    def first(self) -> str:
        """The figure that is meant when none is named."""
        return f"/{next(iter(self.read), '')}"

    def traced(self, figure: str, caller: Caller) -> tuple[Trace, Facts, Then]:
        """A figure's lineage, and what it was worked out of.

        Raises:
            NotFound: there is no such metric, or no such input of it; or a baseline metric that the match didn't read.
        """
        slug = pointer(figure)[0]
        if slug not in self.ruleset.baselines:
            return self._traced(figure, caller, self.then)
        if slug not in self.read or (baseline := self.read[slug].baseline) is None:
            raise no_figure([slug])
        if baseline.day is None:
            facts = self.then.facts(caller)
            return Formula(f"unavailable: {CAUSES[NO_BASELINE]}", {}, lambda _: None), facts, self.then
        of_today = "/" + baseline.of + figure[1 + len(slug) :]
        return self._traced(of_today, caller, replace(self.then, as_of=baseline.day))

    def _traced(self, figure: str, caller: Caller, then: Then) -> tuple[Trace, Facts, Then]:
        facts = then.facts(caller)
        return replay.traced_metric(figure, facts, self.ruleset.every_metric), facts, then
