"""Differences between two versions are reported in words, and none is left out."""

import random
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

import pytest

from pipelines.decisions import examples
from pipelines.decisions.authoring.diff import describe_changes
from pipelines.decisions.canonical import canonical, fingerprint, metrics_fingerprint
from pipelines.decisions.plan import plan_policy
from pipelines.decisions.policy import Policy
from tests.conftest import times
from tests.pipelines.decisions import drawn

Json = Any
LOAN = examples.load()["working-capital-loan"]


def change_example(path: str, value: Json) -> Policy:
    """Return the example with another value at the pointer; None removes it."""
    document = deepcopy(LOAN)
    at, last = find_parent(document, [int(step) if step.isdecimal() else step for step in path.split("/")[1:]])
    if value is None:
        del at[last]
    elif isinstance(at, list):
        at[last : last + 1] = [value]
    else:
        at[last] = value
    return Policy.model_validate(document)


def find_parent(document: Json, path: Sequence[int | str]) -> tuple[Json, Any]:
    """Return the object that holds the last step of the path, and that step."""
    for step in path[:-1]:
        document = document[step]
    return document, path[-1]


LIMIT = "Limit of working_capital_loan"
BY_AGE = "(by time_trading_months: 50000 below 24,"
BEFORE = Policy.model_validate(LOAN)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("/name", "Loan", "Policy: name changed from “Working capital loan” to “Loan”."),
        ("/defaultOutcome", "conditional", "Policy: defaultOutcome changed from proceed to conditional."),
        (
            "/defaultReason",
            {"code": "NO", "message": "It is so.", "customerMessage": "No."},
            "Policy: defaultReason changed from none to NO “It is so.”.",
        ),
        ("/declaredInputs/1", None, "Input termMonths: removed."),
        ("/attributes/1/kind", "string", "Attribute bureau_score: kind changed from decimal to string."),
        ("/attributes/1/personal", False, "Attribute bureau_score: personal changed from true to false."),
        (
            "/metrics/0/definition/window/months",
            3,
            "Metric median_monthly_receipts_6m: definition.window.months changed from 6 to 3.",
        ),
        (
            "/metrics/0/definition/where/flags",
            ["dishonour"],
            "Metric median_monthly_receipts_6m: definition.where.flags changed from none to “dishonour”.",
        ),
        ("/metrics/0/freshDays", None, "Metric median_monthly_receipts_6m: freshDays changed from 45 to none."),
        ("/products/1", {"slug": "line", "name": "Line"}, "Product line: added (Line)."),
        ("/steps/1/match", "all", "Step Knock-outs: match changed from any to all."),
        ("/steps/2/outcome", "proceed", "Step Manual review: outcome changed from conditional to proceed."),
        (
            "/steps/1/rules/3/condition/lessThan/1",
            "6",
            (
                "Rule TRADING_TOO_SHORT: condition changed from “time_trading_months is less than 12” to "
                "“time_trading_months is less than 6”."
            ),
        ),
        (
            "/steps/1/rules/1/onUnavailable",
            "notMatched",
            "Rule DISHONOURS: onUnavailable changed from indeterminate to notMatched.",
        ),
        (
            "/steps/2/rules/2/recommendedActions",
            [],
            "Rule TAX_PLAN: recommendedActions changed from “Obtain the tax office's statement of the plan.” to none.",
        ),
        ("/limits/0/minimum", "1000", f"{LIMIT}: minimum changed from 5000 to 1000."),
        (
            "/limits/0/outcomes",
            ["proceed"],
            f"{LIMIT}: outcomes changed from proceed, conditional to proceed.",
        ),
        (
            "/limits/0/amount",
            {"input": "requestedAmount"},
            f"{LIMIT}: amount changed from the least of (requestedAmount, 250000) to requestedAmount.",
        ),
        (
            "/limits/0/caps/2/value/tiers/otherwise",
            "90000",
            f"{LIMIT}: cap SECOND_YEAR: value changed from {BY_AGE} otherwise 250000) to {BY_AGE} otherwise 90000).",
        ),
        ("/limits/0/caps/1", None, f"{LIMIT}: cap REPAYABLE: removed."),
        ("/indicators/4", None, "Indicator buffer_days_180d: removed."),
        ("/indicators/4/format", "integer", "Indicator buffer_days_180d: format changed from days to integer."),
    ],
)
def test_a_change_is_one_line(path: str, value: Json, expected: str) -> None:
    assert describe_changes(BEFORE, change_example(path, value)) == [expected]


def test_a_new_rule_says_when_it_is_met() -> None:
    condition = {"all": [{"not": {"isTrue": {"attribute": "hardship_flag"}}}, {"isKnown": {"attribute": "ato_debt"}}]}
    rule = {"code": "NEW", "message": "m", "customerMessage": "m", "condition": condition}
    (line,) = describe_changes(BEFORE, change_example("/steps/1/rules/7", rule))
    assert line == "Rule NEW: added, met when (not (hardship_flag is true)) and (ato_debt is known)."


def test_swapped_limits_and_caps_are_named_in_the_plural() -> None:
    before = examples.load()["line-of-credit"]
    after = deepcopy(before)
    after["limits"].reverse()
    after["limits"][1]["caps"].reverse()
    limits, caps = describe_changes(Policy.model_validate(before), Policy.model_validate(after))
    assert limits.startswith("Limits: the order is now ")
    assert caps.startswith("Limit of line_of_credit: caps: the order is now ")


def test_moved_rule_and_swapped_steps_are_reported_once() -> None:
    document = deepcopy(LOAN)
    knock_outs, compared = document["steps"][1:]
    compared["rules"].append(knock_outs["rules"].pop(3))
    document["steps"][1:] = [compared, knock_outs]
    order, moved = describe_changes(BEFORE, Policy.model_validate(document))
    first, last = "Not eligible", "Manual review"
    assert order == f"Steps: the order is now {first}, {last}, Knock-outs; it was {first}, Knock-outs, {last}."
    assert moved == f"Rule TRADING_TOO_SHORT: moved from step Knock-outs to step {last}."


def with_steps(*steps: tuple[str, str]) -> Policy:
    """Return a policy with a step of one rule for each name and code."""
    words = {"message": "m", "customerMessage": "m", "condition": {"isKnown": {"metric": "revenue_90d"}}}
    listed = [{"name": name, "outcome": "blocked", "rules": [{"code": code, **words}]} for name, code in steps]
    return Policy.model_validate({"slug": "p", "name": "P", "defaultOutcome": "proceed", "steps": listed})


A, B, LOOK = ("Age", "A"), ("Bureau", "B"), ("Look", "L")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([LOOK], [A, LOOK], "added as step 1 of 2, before “Look”, blocked"),
        ([LOOK, B], [LOOK, A, B], "added as step 2 of 3, before “Bureau”, blocked"),
        ([LOOK], [LOOK, A], "added as step 2 of 2, after “Look”, blocked"),
        ([], [A], "added as step 1 of 1, blocked"),
    ],
)
def test_new_step_is_reported_with_its_place(
    before: Sequence[tuple[str, str]], after: Sequence[tuple[str, str]], expected: str
) -> None:
    first, *_ = describe_changes(with_steps(*before), with_steps(*after))
    assert first == f"Step Age: {expected} when any of its rules match."


def test_swapped_steps_are_reported_beside_renamed_ones() -> None:
    lines = describe_changes(with_steps(A, B, LOOK), with_steps(("Seen", "L"), B, A))
    assert "Step Look: removed." in lines
    assert "Step Seen: added as step 1 of 3, before “Bureau”, blocked when any of its rules match." in lines
    assert "Steps: the order is now Bureau, Age; it was Age, Bureau." in lines


def places(value: Json, path: tuple[int | str, ...] = ()) -> Iterator[tuple[int | str, ...]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from places(each, (*path, name))
    elif isinstance(value, list):
        for nth, each in enumerate(value):
            yield from places(each, (*path, nth))
    elif isinstance(value, str):
        yield path


@pytest.mark.drawn
def test_every_changed_text_is_reported() -> None:
    """In drawn policies and the examples, replace each text in turn by another one of its kind."""
    chance = random.Random(5)
    described = 0
    for document in [*(drawn.document(chance) for _ in range(times(2))), *examples.load().values()]:
        before = Policy.model_validate(document)
        for path in places(document):
            after = replace_at(document, path)
            if after is not None and after != before:
                described += 1
                assert describe_changes(before, after), path
    assert described > 500


def replace_at(document: Json, path: tuple[int | str, ...]) -> Policy | None:
    copy = deepcopy(document)
    at, last = find_parent(copy, path)
    at[last] = "17" if at[last].replace(".", "").replace("-", "").isdecimal() else "other"
    try:
        return Policy.model_validate(copy)
    except ValueError:
        return None


@pytest.mark.parametrize("slug", sorted(examples.load()))
def test_equal_documents_have_no_changes_and_one_fingerprint(slug: str) -> None:
    before = Policy.model_validate(examples.load()[slug])
    again = Policy.model_validate_json(canonical(before))
    assert describe_changes(before, again) == []
    assert (canonical(again), fingerprint(again)) == (canonical(before), fingerprint(before))


def test_fingerprint_depends_on_every_letter_and_nothing_else() -> None:
    turned = dict(reversed(LOAN.items()))
    assert fingerprint(Policy.model_validate(turned)) == fingerprint(BEFORE)
    assert fingerprint(change_example("/notes", "Other.")) != fingerprint(BEFORE)


def test_metrics_fingerprint_covers_the_metrics_read() -> None:
    own = metrics_fingerprint(plan_policy(BEFORE))
    assert metrics_fingerprint(plan_policy(change_example("/notes", "Other."))) == own
    assert metrics_fingerprint(plan_policy(change_example("/metrics/0/definition/window/months", 3))) != own
    assert metrics_fingerprint(plan_policy(change_example("/indicators/5", {"metric": "inflow_30d"}))) != own
