"""Decisions on ruleset evaluations, given the state in which they are applied."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import Any, cast
from uuid import UUID

import polars as pl
import pytest

from pipelines.monitoring import (
    Cause,
    CurrentCustomer,
    CurrentState,
    EvaluatedCustomers,
    EvaluationEffect,
    Observations,
    Ruleset,
    RulesetEvaluation,
    VersionedRuleset,
    decide,
)
from pipelines.monitoring.transitions import FIRING, OUTCOMES, REPEATS

NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
CLIENT, RULESET, OTHER_RULESET = UUID(int=1), UUID(int=2), UUID(int=3)
RULES = [(RULESET, "A"), (RULESET, "B"), (OTHER_RULESET, "A")]


class Observation:
    """Stands in for `Observations`: its record names the customer, or raises."""

    def __init__(self, unrecordable: int | None) -> None:
        self._unrecordable = unrecordable

    def describe_firings(self, customer_number: int, ruleset_id: UUID, rules: Sequence[str]) -> dict[str, Any]:
        if customer_number == self._unrecordable and ruleset_id == OTHER_RULESET:
            raise ArithmeticError("this customer's values can't be described")
        return {"rules": rules, "customer": customer_number}


def version_ruleset(ruleset_id: UUID) -> VersionedRuleset:
    rule = {"code": "A", "message": "A.", "condition": {"moreThan": [{"metric": "history_days"}, "30"]}}
    document = {"slug": f"slug-{ruleset_id.int}", "name": "Name", "rules": [rule]}
    return VersionedRuleset(ruleset_id, 4, Ruleset.model_validate(document), None)


def make_evaluation(holds: Mapping[int, Sequence[bool | None]], unrecordable: int | None = None) -> RulesetEvaluation:
    """Return an evaluation with these results of RULES by customer, at data version 7 and attribute change 5."""
    rows = [
        (n, id_.bytes, code, value) for n, of in holds.items() for (id_, code), value in zip(RULES, of, strict=True)
    ]
    outcomes = pl.DataFrame(rows, schema=OUTCOMES, orient="row")
    return RulesetEvaluation(
        cause=Cause.DATA,
        as_of=NOW.date(),
        zone="UTC",
        rulesets={each: version_ruleset(each) for each in (RULESET, OTHER_RULESET)},
        seen=[EvaluatedCustomers(cast("Observations", Observation(unrecordable)), outcomes)],
        outcomes=outcomes,
        repeats=pl.DataFrame([(id_.bytes, code, None) for id_, code in RULES], schema=REPEATS, orient="row"),
        versions=dict.fromkeys(holds, 7),
        attributes_read=dict.fromkeys(holds, frozenset({"score"})),
        attribute_changes=dict.fromkeys(holds, 5),
        failed=frozenset(),
    )


def state(*numbers: int, fired: Sequence[tuple[int, UUID, str]] = ()) -> CurrentState:
    """Return a state in which nothing has changed since the evaluation."""
    firing = [(number, id_.bytes, code, NOW - timedelta(days=1)) for number, id_, code in fired]
    return CurrentState(
        customers={number: CurrentCustomer(CLIENT, UUID(int=number), 7) for number in numbers},
        attribute_changes=dict.fromkeys(numbers, 5),
        rulesets={(RULESET, 4), (OTHER_RULESET, 4)},
        firing=pl.DataFrame(firing, schema=FIRING, orient="row"),
    )


def decide_on(of: RulesetEvaluation, now: CurrentState, *numbers: int) -> EvaluationEffect:
    ids = count(100)
    return decide(of, set(numbers) or of.versions.keys(), now, NOW, lambda: UUID(int=next(ids)))


def matches(effect: EvaluationEffect) -> list[tuple[int, UUID, list[str]]]:
    return [(each.customer_number, each.ruleset_id, list(each.rules)) for each in effect.matches]


def test_rules_that_fire_make_a_match_per_customer_and_ruleset() -> None:
    effect = decide_on(make_evaluation({8: [True, True, True], 9: [None, False, True]}), state(8, 9))
    assert matches(effect) == [(8, RULESET, ["A", "B"]), (8, OTHER_RULESET, ["A"]), (9, OTHER_RULESET, ["A"])]
    assert effect.matched == {8, 9}


def test_a_match_names_its_event_and_what_was_evaluated() -> None:
    [match] = decide_on(make_evaluation({8: [True, False, False]}), state(8)).matches
    assert (match.match_id, match.version, match.data_version, match.at) == (UUID(int=100), 4, 7, NOW)
    assert match.event.event_id == match.match_id
    record = json.loads(match.record)
    assert record["observed"] == {"rules": ["A"], "customer": 8}
    assert (record["clientId"], record["customerId"]) == (str(CLIENT), str(UUID(int=8)))
    assert date.fromisoformat(record["asOf"]) == NOW.date()


def test_fired_rule_does_not_fire_again_until_it_is_reset() -> None:
    fired = [(8, RULESET, "A"), (8, RULESET, "B")]
    effect = decide_on(make_evaluation({8: [True, False, None]}), state(8, fired=fired))
    assert matches(effect) == []
    assert effect.transitions.reset.rows() == [(8, RULESET.bytes, "B")]


CHANGES: Mapping[str, Any] = {
    "its transactions": {"customers": {8: CurrentCustomer(CLIENT, UUID(int=8), 8)}},
    "its attributes": {"attribute_changes": {8: 6}},
    "it is gone": {"customers": {}},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_customer_that_has_changed_is_superseded(change: str) -> None:
    effect = decide_on(make_evaluation({8: [True, True, True]}), replace(state(8), **CHANGES[change]))
    assert effect.superseded == {8}
    assert matches(effect) == []
    assert effect.transitions.counts.is_empty()


def test_attributes_that_no_ruleset_reads_supersede_nothing() -> None:
    unread = replace(make_evaluation({8: [True, False, False]}), attributes_read={}, attribute_changes={})
    assert decide_on(unread, replace(state(8), attribute_changes={})).matched == {8}


@pytest.mark.parametrize("rulesets", [{(RULESET, 5), (OTHER_RULESET, 4)}, {(OTHER_RULESET, 4)}])
def test_a_ruleset_that_was_replaced_or_archived_changes_nothing(rulesets: set[tuple[UUID, int]]) -> None:
    effect = decide_on(make_evaluation({8: [True, True, True]}), replace(state(8), rulesets=rulesets))
    assert matches(effect) == [(8, OTHER_RULESET, ["A"])]
    assert effect.transitions.counts["ruleset_id"].to_list() == [OTHER_RULESET.bytes]


def test_only_the_given_customers_are_decided_on() -> None:
    effect = decide_on(make_evaluation({8: [True, False, False], 9: [True, False, False]}), state(9), 9)
    assert (effect.matched, effect.superseded) == ({9}, set())


def test_a_match_that_cannot_be_recorded_leaves_its_customer_unchanged() -> None:
    """Its other matches and resets are left out too: the next evaluation decides on all of them."""
    of = make_evaluation({8: [True, False, True], 9: [True, False, False]}, unrecordable=8)
    effect = decide_on(of, state(8, 9, fired=[(8, RULESET, "B")]))
    assert matches(effect) == [(9, RULESET, ["A"])]
    assert (effect.failed, effect.errors) == ({8}, ["ArithmeticError"])
    assert effect.transitions.reset.is_empty()
    assert effect.transitions.counts["observed"].to_list() == [1, 1, 1]


def test_customers_that_could_not_be_evaluated_are_failed() -> None:
    of = replace(make_evaluation({8: [True, False, False], 9: [True, False, False]}), failed=frozenset({8, 10}))
    assert decide_on(of, state(8, 9)).failed == {8}
