"""Rulesets for tests, and ruleset evaluations with given outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import polars as pl

from pipelines.monitoring import Cause, EvaluatedCustomers, EvaluationEffect, Observations, Ruleset, RulesetEvaluation
from pipelines.monitoring.transitions import OUTCOMES, REPEATS
from storage.core.store import Store
from storage.customers.customers import Customer, versions
from storage.monitoring import attributes, rule_matches, rulesets
from storage.monitoring.rulesets import StoredRuleset

LONG = {"moreThan": [{"metric": "history_days"}, "30"]}
LOW_SCORE = {"lessThan": [{"attribute": "score"}, "500"]}
SCORE = {"name": "score", "kind": "decimal"}


def a_rule(code: str, condition: object = LONG, **also: Any) -> dict[str, Any]:
    return {"code": code, "message": f"{code}.", "condition": condition, **also}


def a_ruleset(*rules: Mapping[str, Any], slug: str = "early-warning", **also: Any) -> Ruleset:
    reported = {"slug": slug, "name": slug.capitalize(), "rules": list(rules) or [a_rule("LONG")], **also}
    return Ruleset.model_validate(reported)


def create_ruleset(store: Store, client_id: UUID, ruleset: Ruleset, now: datetime) -> StoredRuleset:
    with store.db.writing() as w:
        return rulesets.create(w, client_id, ruleset, "test", now)


@dataclass(frozen=True)
class FakeObservations:
    """A replacement for `Observations` whose record names the customer."""

    unrecordable: frozenset[int]

    def describe_firings(self, customer_number: int, ruleset_id: UUID, rules: Sequence[str]) -> dict[str, Any]:
        if customer_number in self.unrecordable:
            raise ArithmeticError("this customer's values can't be recorded")
        return {"rules": [{"code": rule, "customer": customer_number} for rule in rules]}


def an_evaluation(
    store: Store,
    now: datetime,
    holds: Mapping[tuple[Customer, StoredRuleset, str], bool | None],
    *,
    repeat_after_days: int | None = None,
    unrecordable: Sequence[Customer] = (),
) -> RulesetEvaluation:
    """Return an evaluation as of `now` in which these rules hold, don't hold, or are unknown (None)."""
    outcomes = pl.DataFrame(
        [(who.number, stored.ruleset_id.bytes, rule, value) for (who, stored, rule), value in holds.items()],
        schema=OUTCOMES,
        orient="row",
    ).sort("customer_number", "ruleset_id", "rule")
    repeats = (
        outcomes.select("ruleset_id", "rule").unique().with_columns(repeat_after_days=repeat_after_days).cast(REPEATS)
    )
    numbers = sorted({who.number for who, _, _ in holds})
    with store.db.reading() as r:
        read = dict.fromkeys(numbers, frozenset({SCORE["name"]}))
        return RulesetEvaluation(
            cause=Cause.DATA,
            as_of=now.date(),
            zone="UTC",
            rulesets={each.ruleset_id: each for each in rulesets.load_active(r, rulesets.find_active(r, numbers))},
            seen=[EvaluatedCustomers(cast("Observations", _fake_observations(unrecordable)), outcomes)],
            outcomes=outcomes,
            repeats=repeats,
            versions=versions(r, numbers),
            attributes_read=read,
            attribute_changes=attributes.last_changes(r, read),
            failed=frozenset(),
        )


def _fake_observations(unrecordable: Sequence[Customer]) -> FakeObservations:
    return FakeObservations(frozenset(each.number for each in unrecordable))


def apply_evaluation(store: Store, evaluated: RulesetEvaluation, now: datetime) -> EvaluationEffect:
    with store.db.writing() as w:
        return rule_matches.apply_ruleset_evaluation(w, evaluated, evaluated.versions.keys(), now)
