"""What counts as an improvement, a notice and an alarm in the trials of attacks."""

from typing import Any

import polars as pl
import pytest

from pipelines.attacks.registry import attacks, lookalikes
from pipelines.trials.results import summarise_attacks, summarise_lookalikes, summarise_untouched
from pipelines.trials.trial import TRIED, UNTOUCHED

PLAIN: dict[str, Any] = {
    "has_evidence": True,
    "defaults": False,
    "lacks_account": False,
    "grade": "C",
    "value": 0.1,
    "verdict": "conditional",
    "limit": 50_000,
    "codes": ["Risk.Uncalibrated"],
    "findings": [],
}


def row(subject: int, manipulation: str, **changed: object) -> dict[str, Any]:
    return {"subject": subject, "manipulation": manipulation, **PLAIN, **changed}


def trial_rows(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=TRIED)


def result_of_attack(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    frame = trial_rows(row(0, UNTOUCHED, **before), row(0, "round_trip", **after))
    return summarise_attacks(frame, [attacks()["round_trip"]])[0]


@pytest.mark.parametrize(
    ("after", "improved"),
    [
        ({"grade": "B"}, {"grade"}),
        ({"grade": "D"}, set()),
        ({"value": 0.095}, {"value"}),
        ({"value": 0.0951}, set()),
        ({"limit": 51_000}, {"limit"}),
        ({"limit": 50_999}, set()),
        ({"limit": None}, set()),
        ({"verdict": "proceed"}, {"verdict"}),
        ({"verdict": "indeterminate"}, set()),
        ({"verdict": "blocked"}, set()),
    ],
)
def test_what_counts_as_an_improvement(after: dict[str, Any], improved: set[str]) -> None:
    result = result_of_attack({}, after)
    assert {name for name in ("grade", "value", "limit", "verdict") if result[name]} == improved


def test_case_that_was_undecided_improves_by_a_condition_but_not_by_a_refusal() -> None:
    assert result_of_attack({"verdict": "indeterminate"}, {"verdict": "conditional"})["verdict"] == 1
    assert result_of_attack({"verdict": "indeterminate"}, {"verdict": "blocked"})["verdict"] == 0


def test_limit_of_nothing_improves_by_any_limit() -> None:
    assert result_of_attack({"limit": 0}, {"limit": 0})["limit"] == 0
    assert result_of_attack({"limit": 0}, {"limit": 5_000})["limit"] == 1


def test_customers_with_the_best_grade_have_nothing_to_gain() -> None:
    result = result_of_attack({"grade": "A"}, {"grade": "A", "value": 0.001})
    assert (result["customers"], result["belowBest"], result["value"]) == (1, 0, None)


@pytest.mark.parametrize(
    ("after", "noticed", "found"),
    [
        ({}, 0, 0),
        ({"findings": ["round_trip"]}, 1, 1),
        ({"codes": ["Completeness.Gaps", "Risk.Uncalibrated"]}, 1, 0),
        ({"grade": "D"}, 1, 0),
        ({"codes": []}, 0, 0),
    ],
)
def test_what_counts_as_noticed(after: dict[str, Any], noticed: float, found: float) -> None:
    result = result_of_attack({}, after)
    assert (result["noticed"], result["found"]) == (noticed, found)


def test_finding_that_was_there_before_is_not_noticed() -> None:
    assert result_of_attack({"findings": ["round_trip"]}, {"findings": ["round_trip"]})["noticed"] == 0


def test_attack_without_evidence_need_not_be_noticed() -> None:
    assert result_of_attack({}, {"has_evidence": False})["noticed"] is None


def test_lookalike_is_an_alarm_if_it_brings_a_finding() -> None:
    frame = trial_rows(
        *(row(subject, UNTOUCHED) for subject in range(4)),
        row(0, "deposit_returned", findings=["round_trip"]),
        *(row(subject, "deposit_returned") for subject in range(1, 4)),
    )
    result = summarise_lookalikes(frame, [lookalikes()["deposit_returned"]])[0]
    assert (result["customers"], result["found"], result["newReason"]) == (4, 0.25, 0)


def test_untouched_customers_are_described() -> None:
    frame = trial_rows(
        row(0, UNTOUCHED, grade="A", findings=["round_trip", "parked"]),
        row(1, UNTOUCHED, grade="E", value=0.4, defaults=True),
        row(2, UNTOUCHED, grade="B", findings=["parked"]),
        row(2, "round_trip", grade="E"),
    )
    described = summarise_untouched(frame)
    assert (described["customers"], described["auc"]) == (3, 1)
    assert described["good"] == described["found"] == pytest.approx(2 / 3)
    assert described["foundOf"] == pytest.approx({"parked": 2 / 3, "round_trip": 1 / 3})


def test_a_finding_that_an_account_is_missing_is_no_false_alarm_where_one_is() -> None:
    missing = {"lacks_account": True, "findings": ["account_withheld"]}
    cases = {
        "true": (missing, 0),
        "a different finding besides": (missing | {"findings": ["account_withheld", "round_trip"]}, 1),
        "every account is there": (missing | {"lacks_account": False}, 1),
        "no finding": ({}, 0),
    }
    shares = {name: summarise_untouched(trial_rows(row(0, UNTOUCHED, **case))) for name, (case, _) in cases.items()}
    assert {name: each["falseAlarm"] for name, each in shares.items()} == {name: to for name, (_, to) in cases.items()}


def test_a_better_grade_counts_apart_where_evidence_remains() -> None:
    shown = [result_of_attack({}, {"grade": "B", "has_evidence": evidence}) for evidence in (True, False)]
    assert [(each["grade"], each["gradeShown"], each["belowBestShown"]) for each in shown] == [(1, 1, 1), (1, None, 0)]
