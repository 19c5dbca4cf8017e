"""Transitions of rules over histories of ruleset evaluations equal those of one state machine per customer and rule."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.monitoring import Transitions, compute_transitions, transitions
from pipelines.monitoring.transitions import BY_STATE, COUNTS, FIRING, OUTCOMES, REPEATS, STATE
from tests.conftest import examples
from tests.pipelines.monitoring.oracle import Machine

START = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
ZONE = ZoneInfo("Australia/Sydney")  # its days begin at 13:00 UTC then
ONE, OTHER = b"1" * 16, b"2" * 16
REPEAT_AFTER: Mapping[tuple[bytes, str], int | None] = {
    (ONE, "A"): None,
    (ONE, "B"): 1,
    (OTHER, "A"): 3,  # a code is one ruleset's own
}
Key = tuple[int, bytes, str]
KEYS: Sequence[Key] = [(number, *rule) for number in (7, 8) for rule in REPEAT_AFTER]
NOBODY: Mapping[Key, datetime] = {}

RulesetEvaluation = tuple[timedelta, Mapping[Key, bool | None]]  # how long after the one before, and what was seen
hours = st.sampled_from((1, 12, 23, 24, 25, 72)).map(lambda some: timedelta(hours=some))
evaluations = st.tuples(hours, st.dictionaries(st.sampled_from(KEYS), st.sampled_from((True, True, False, None))))


def transitions_at(
    holds: Mapping[Key, bool | None], firing: Mapping[Key, datetime] = NOBODY, now: datetime = START
) -> Transitions:
    repeats = [(*rule, days) for rule, days in REPEAT_AFTER.items()]
    return compute_transitions(
        pl.DataFrame([(*key, value) for key, value in holds.items()], OUTCOMES, orient="row"),
        pl.DataFrame([(*key, since) for key, since in firing.items()], FIRING, orient="row"),
        pl.DataFrame(repeats, REPEATS, orient="row"),
        now.astimezone(ZONE).date(),
        ZONE.key,
    )


def apply_transitions(firing: Mapping[Key, datetime], moved: Transitions, now: datetime) -> Mapping[Key, datetime]:
    """Return the stored state after the transitions: a row for each rule that has fired."""
    reset = set(moved.reset.iter_rows())
    left = {key: since for key, since in firing.items() if key not in reset}
    return left | dict.fromkeys(moved.fired.iter_rows(), now)


def equals_the_machines(history: Sequence[RulesetEvaluation]) -> bool:
    machines = {key: Machine(REPEAT_AFTER[key[1:]], ZONE) for key in KEYS}
    firing: Mapping[Key, datetime] = {}
    now = START
    for after, holds in history:
        now += after
        expected = {key: machines[key].evaluation(value, now) for key, value in holds.items()}
        moved = transitions_at(holds, firing, now)
        firing = apply_transitions(firing, moved, now)
        if {key for key, what in expected.items() if what == "fired"} != set(moved.fired.iter_rows()):
            return False
        if {key for key, what in expected.items() if what == "reset"} != set(moved.reset.iter_rows()):
            return False
        if firing != {key: each.fired_at for key, each in machines.items() if each.fired_at}:
            return False
        if expected_counts(holds, expected) != set(moved.counts.iter_rows()):
            return False
    return True


def expected_counts(holds: Mapping[Key, bool | None], came: Mapping[Key, str]) -> set[tuple[object, ...]]:
    """Return the expected rows of COUNTS."""
    of_rules: dict[tuple[bytes, str], Counter[object]] = {}
    for key, value in holds.items():
        of_rules.setdefault(key[1:], Counter()).update(["observed", value, came[key]])
    return {
        (*rule, counts["observed"], counts[True], counts[None], counts["fired"]) for rule, counts in of_rules.items()
    }


@examples(5)
@given(st.lists(evaluations, max_size=12))
def test_rules_trigger_and_reset_as_the_oracle_does(history: Sequence[RulesetEvaluation]) -> None:
    assert equals_the_machines(history)


KEY = KEYS[0]
AGAIN: Key = (7, ONE, "B")


def fired_keys(moved: Transitions) -> list[Key]:
    return list(moved.fired.iter_rows())


def test_a_trigger_is_reported_once() -> None:
    assert fired_keys(transitions_at({KEY: True})) == [KEY]
    assert fired_keys(transitions_at({KEY: True}, {KEY: START})) == []


def test_the_same_evaluation_again_reports_nothing() -> None:
    moved = transitions_at({KEY: True, AGAIN: True})
    assert fired_keys(transitions_at({KEY: True, AGAIN: True}, apply_transitions(NOBODY, moved, START))) == []


def test_a_false_condition_resets_a_rule_and_an_unknown_one_does_not() -> None:
    assert list(transitions_at({KEY: False}, {KEY: START}).reset.iter_rows()) == [KEY]
    assert list(transitions_at({KEY: None}, {KEY: START}).reset.iter_rows()) == []
    assert fired_keys(transitions_at({KEY: None})) == []


def test_a_true_rule_fires_again_after_its_days() -> None:
    assert fired_keys(transitions_at({AGAIN: True}, {AGAIN: START}, START + timedelta(hours=10))) == [AGAIN]
    assert fired_keys(transitions_at({AGAIN: True}, {AGAIN: START}, START + timedelta(hours=10, microseconds=-1))) == []
    assert fired_keys(transitions_at({AGAIN: False}, {AGAIN: START}, START + timedelta(hours=10))) == []


def test_nightly_evaluations_a_little_earlier_each_time_skip_no_day() -> None:
    for day in range(1, 100):
        assert fired_keys(transitions_at({AGAIN: True}, {AGAIN: START}, START + timedelta(days=day, seconds=-day))) == [
            AGAIN
        ]


def test_a_clock_that_jumps_back_fires_nothing() -> None:
    assert fired_keys(transitions_at({AGAIN: True}, {AGAIN: START}, START - timedelta(days=400))) == []


def test_states_of_what_was_not_evaluated_stay() -> None:
    moved = transitions_at({}, {KEY: START})
    assert [moved.fired.height, moved.reset.height, moved.counts.height] == [0, 0, 0]
    assert [moved.fired.schema, moved.reset.schema, moved.counts.schema] == [STATE, STATE, COUNTS]


def test_transitions_are_sorted() -> None:
    moved = transitions_at(dict.fromkeys(reversed(KEYS), True))
    assert moved.fired.equals(moved.fired.sort(BY_STATE))
    assert fired_keys(moved) == sorted(KEYS)


# Mutants


MUTANTS: Mapping[str, tuple[str, str]] = {
    "unknown fires": ('true = outcomes.filter("holds")', 'true = outcomes.filter(pl.col("holds").fill_null(True))'),
    "unknown resets": ('~pl.col("holds")', '~pl.col("holds").fill_null(False)'),
    "true resets": ('outcomes.filter(~pl.col("holds"))', "outcomes"),
    "fires at every evaluation": ('true.join(firing, on=BY_STATE, how="anti")', "true"),
    "never fires again": ("due <= as_of", "due < pl.lit(None, pl.Date)"),
    "fires again too late": ("due <= as_of", "due < as_of"),
    "fires again at once": ("due <= as_of", "due.is_not_null()"),
    "weeks for days": ("pl.duration(days=", "pl.duration(weeks="),
    "days of another zone": (".dt.convert_time_zone(zone)", ""),
    "one ruleset's rule for another's": ('BY_RULE = ("ruleset_id", "rule")', 'BY_RULE = ("rule",)'),
    "one customer's rule for another's": ("BY_STATE = (BY_CUSTOMER, *BY_RULE)", "BY_STATE = BY_RULE"),
    "counts what is unknown as held": ("held=holds.sum()", "held=holds.fill_null(True).sum()"),
    "counts what is false as unknown": ("holds.null_count()", "(~holds).sum()"),
    "counts every firing rule as fired": ("fired=pl.len()", "fired=pl.len() + 1"),
}


def histories() -> list[Sequence[RulesetEvaluation]]:
    chance = random.Random(5)
    return [[_evaluation(chance) for _ in range(chance.randint(1, 8))] for _ in range(20)]


def _evaluation(chance: random.Random) -> RulesetEvaluation:
    seen = {key: chance.choice((True, True, False, None)) for key in KEYS if chance.random() < 0.7}
    return timedelta(hours=chance.choice((1, 12, 23, 24, 25, 72))), seen


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_detected(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced, by = MUTANTS[mutant]
    source = Path(transitions.__file__).read_text("utf-8")
    assert source.count(replaced) == 1
    names: dict[str, Any] = {"__name__": transitions.__name__}
    exec(source.replace(replaced, by), names)
    monkeypatch.setitem(globals(), "compute_transitions", names["compute_transitions"])
    assert not all(map(equals_the_machines_without_error, histories()))


def test_unchanged_code_is_not_detected() -> None:
    assert all(map(equals_the_machines, histories()))


def equals_the_machines_without_error(history: Sequence[RulesetEvaluation]) -> bool:
    """Return whether the transitions equal the machines'. An exception counts as a difference."""
    try:
        return equals_the_machines(history)
    except pl.exceptions.PolarsError:
        return False
