"""Oracle of ruleset evaluations and transitions in plain Python: documents as JSON, rule by rule, for each customer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.pipelines.decisions.interpreter import Customer, Reader, Seen
from tests.pipelines.monitoring.drawn import DrawnCustomer, DrawnRuleset

Json = Any
TRACED = {"atLeast", "atMost", "moreThan", "lessThan", "equals", "differs", "between", "oneOf", "isTrue", "isKnown"}


@dataclass(frozen=True)
class RuleResult:
    """A rule's result: whether it holds, its unknown readings with causes, all its readings, and its comparisons."""

    holds: bool | None
    causes: frozenset[tuple[str, ...]]
    readings: tuple[tuple[Any, ...], ...]
    comparisons: tuple[tuple[str, Any], ...]


def rule_results(drawn: DrawnRuleset, number: int, who: DrawnCustomer, now: datetime) -> Mapping[str, RuleResult]:
    """Return each rule's result by its code; empty if the ruleset doesn't apply or is muted."""
    metrics = {slug: who.metrics[of] for slug, of in drawn.metrics.items()}
    reader = Reader(drawn.document, Customer(metrics, who.attributes), {}, now)
    applies, muted = drawn.document["appliesTo"], drawn.document["mutedWhile"]
    if drawn.listed is not None and number not in drawn.listed:
        return {}
    if "where" in applies and reader.condition(applies["where"]).value is not True:
        return {}
    if muted is not None and reader.condition(muted).value is True:
        return {}
    return {rule["code"]: _rule_result(reader.condition(rule["condition"])) for rule in drawn.document["rules"]}


def _rule_result(seen: Seen) -> RuleResult:
    nodes = list(_with_operands(seen))
    leaves = dict.fromkeys(each for each in nodes if each.what[0] in ("metric", "attribute"))
    missing = frozenset((*each.what, str(each.cause)) for each in leaves if each.value is None)
    assert seen.value is None or isinstance(seen.value, bool)
    return RuleResult(
        seen.value,
        missing if seen.value is None else frozenset(),
        tuple((*each.what, each.value, each.cause) for each in leaves),
        tuple((each.what[0], each.value) for each in dict.fromkeys(nodes) if each.what[0] in TRACED),
    )


def _with_operands(seen: Seen) -> Iterator[Seen]:
    yield seen
    for each in seen.of:
        yield from _with_operands(each)


# Transitions


@dataclass
class Machine:
    """The state of one rule for one customer. `fired_at`: None while it is ready. `zone`: the timezone of days."""

    repeat_after_days: int | None
    zone: ZoneInfo
    fired_at: datetime | None = None

    def evaluation(self, holds: bool | None, now: datetime) -> str:
        """Return `fired`, `reset` or an empty text for an evaluation, and change the state."""
        if holds is None:
            return ""
        if not holds:
            had_fired = self.fired_at is not None
            self.fired_at = None
            return "reset" if had_fired else ""
        days = self.repeat_after_days
        if self.fired_at is None or (days is not None and self._day(now) >= self._day(self.fired_at, days)):
            self.fired_at = now
            return "fired"
        return ""

    def _day(self, at: datetime, later: int = 0) -> date:
        return at.astimezone(self.zone).date() + timedelta(days=later)
