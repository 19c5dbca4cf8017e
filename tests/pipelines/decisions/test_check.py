"""A document is refused with all its faults at once, and gets warnings where it is lenient."""

import json
import random
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from pipelines.decisions import check, examples, readings
from pipelines.decisions.check.leniency import find_warnings
from pipelines.decisions.evaluate import evaluate_plan, step_column
from pipelines.decisions.plan import Plan, plan_policy
from pipelines.decisions.policy import INDETERMINATE, OUTCOMES, Policy
from pipelines.decisions.readings import NOT_SET, Attribute, column_of
from pipelines.metrics import cause_of
from pipelines.vocabulary import strict_json
from pipelines.vocabulary.rule_files import parse
from tests.conftest import times
from tests.pipelines.decisions import drawn
from tests.pipelines.decisions.comparing import Case, cases, metrics_of
from tests.pipelines.decisions.mutilated import mutilate
from tests.pipelines.decisions.small import evaluation

Json = Any
Found = set[tuple[str, str]]

X, Y = {"attribute": "x"}, {"attribute": "y"}
TEXT, FLAG = {"attribute": "text"}, {"attribute": "flag"}
DECLARED = [
    {"name": "x", "kind": "decimal"},
    {"name": "y", "kind": "decimal"},
    {"name": "text", "kind": "string"},
    {"name": "flag", "kind": "boolean"},
]


def rule(condition: Json, code: str = "R", **more: Json) -> Json:
    return {"code": code, "message": "It holds.", "customerMessage": "We found it.", "condition": condition, **more}


def step(*rules: Json, outcome: str = "blocked", name: str = "Step", **more: Json) -> Json:
    return {"name": name, "outcome": outcome, "rules": list(rules), **more}


DEFAULT_REASON = {"code": "DEFAULT", "message": "No step matched.", "customerMessage": "We can't lend to you yet."}


def policy(*steps: Json, **more: Json) -> Json:
    inputs = [{"name": "asked", "kind": "decimal"}]
    outcome = more.get("defaultOutcome", "proceed")
    base = {"slug": "small", "name": "Small", "defaultOutcome": outcome, "attributes": DECLARED}
    if outcome != "proceed":
        base["defaultReason"] = DEFAULT_REASON
    return {**base, "declaredInputs": inputs, "steps": list(steps), **more}


def asking(*conditions: Json, match: str = "any") -> Json:
    """Return a policy of one step with a rule for each condition."""
    return policy(step(*(rule(each, f"R{nth}") for nth, each in enumerate(conditions)), match=match))


def steps(*conditions: Json, outcomes: tuple[str, ...] = ("blocked", "conditional", "blocked")) -> Json:
    """Return a policy with a step for each condition."""
    numbered = enumerate(zip(conditions, outcomes, strict=False))
    return policy(*(step(rule(each, f"R{nth}"), outcome=of, name=f"S{nth}") for nth, (each, of) in numbered))


def policy_with_limit(**limit: Json) -> Json:
    products = [{"slug": "loan", "name": "Loan"}]
    return policy(products=products, limits=[{"product": "loan", "amount": {"input": "asked"}, **limit}])


def own(slug: str, *operands: str) -> Json:
    words = {"name": slug, "meaning": "Some.", "unit": "AUD", "format": "currency", "direction": "neutral"}
    return {"slug": slug, **words, "definition": {"source": "metrics", "operation": "add", "operands": list(operands)}}


def places_and_codes(findings: list[check.Finding]) -> Found:
    return {(each.pointer, each.code.removeprefix("DecisionPolicy.")) for each in findings}


def faults(document: Json) -> Found:
    return places_and_codes(check.check_document(document).faults)


def warnings(document: Json) -> Found:
    checked = check.check_document(document)
    assert checked.faults == []
    return places_and_codes(checked.warnings)


CONDITION = "/steps/0/rules/0/condition"
MISSHAPEN: list[tuple[Json, Found]] = [
    ([], {("", "NotAnObject")}),
    ("policy", {("", "NotAnObject")}),
    (policy(slug="Small"), {("/slug", "BadName")}),
    (policy(name=""), {("/name", "Empty")}),
    (policy(name="n" * 101), {("/name", "TooLong")}),
    (policy(surprise=1), {("/surprise", "UnknownField")}),
    (policy(**{"a/b~": 1}), {("/a~1b~0", "UnknownField")}),
    (policy(defaultOutcome="declined"), {("/defaultOutcome", "UnknownValue")}),
    (policy(steps={}), {("/steps", "NotAList")}),
    (policy(5), {("/steps/0", "NotAnObject")}),
    (policy(step()), {("/steps/0/rules", "TooFew")}),
    (asking("x"), {(CONDITION, "UnknownForm")}),
    (asking({}), {(CONDITION, "NotOneKey")}),
    (asking({"atLeast": [X, "1"], "atMost": [X, "2"]}), {(CONDITION, "NotOneKey")}),
    (asking({"atleast": [X, "1"]}), {(CONDITION, "UnknownForm")}),
    (asking({"atLeast": [X]}), {(f"{CONDITION}/atLeast/1", "Missing")}),
    (asking({"atLeast": [X, "1", "2"]}), {(f"{CONDITION}/atLeast", "TooMany")}),
    (asking({"atLeast": [X, 1]}), {(f"{CONDITION}/atLeast/1", "NotText")}),
    (asking({"atLeast": [X, 0.1]}), {(f"{CONDITION}/atLeast/1", "NotText")}),
    (asking({"atLeast": [X, float("nan")]}), {(f"{CONDITION}/atLeast/1", "NotText")}),
    (asking({"atLeast": [X, float("inf")]}), {(f"{CONDITION}/atLeast/1", "NotText")}),
    (asking({"atLeast": [X, 10**5000]}), {(f"{CONDITION}/atLeast/1", "NotText")}),
    (asking({"atLeast": [X, "NaN"]}), {(f"{CONDITION}/atLeast/1", "NotADecimal")}),
    (asking({"atLeast": [X, "1e400"]}), {(f"{CONDITION}/atLeast/1", "NotADecimal")}),
    (asking({"atLeast": [X, "1,000"]}), {(f"{CONDITION}/atLeast/1", "NotADecimal")}),
    (asking({"atLeast": [X, "1\n"]}), {(f"{CONDITION}/atLeast/1", "NotADecimal")}),
    (asking({"atLeast": [X, "0.123456789"]}), {(f"{CONDITION}/atLeast/1", "NotADecimal")}),
    (asking({"atLeast": [X, True]}), {(f"{CONDITION}/atLeast/1", "NotANumber")}),
    (asking({"atLeast": [X, None]}), {(f"{CONDITION}/atLeast/1", "NotANumber")}),
    (asking({"atLeast": [X, {"constant": "5000"}]}), {(f"{CONDITION}/atLeast/1", "UnknownForm")}),
    (asking({"atLeast": [X, {"add": ["1"]}]}), {(f"{CONDITION}/atLeast/1/add", "TooFew")}),
    (asking({"not": {"all": [{"not": {"is": X}}]}}), {(f"{CONDITION}/not/all/0/not", "UnknownForm")}),
    (asking({"not": {"not": {"isTrue": FLAG}, "any": []}}), {(f"{CONDITION}/not", "NotOneKey")}),
    (asking({"oneOf": {"of": TEXT, "texts": []}}), {(f"{CONDITION}/oneOf/texts", "TooFew")}),
    (asking({"oneOf": {"of": {"metric": "inflow_30d"}, "texts": ["a"]}}), {(f"{CONDITION}/oneOf/of", "UnknownForm")}),
    (policy(step(rule({"isTrue": FLAG}, rank="1"))), {("/steps/0/rules/0/rank", "NotAnInteger")}),
    (policy(step(rule({"isTrue": FLAG}, rank=101))), {("/steps/0/rules/0/rank", "OutOfRange")}),
    (policy(step(rule({"isTrue": FLAG}, rank=1.5))), {("/steps/0/rules/0/rank", "NotAnInteger")}),
    (policy(step(rule({"isTrue": FLAG}, rank=Decimal(2)))), {("/steps/0/rules/0/rank", "NotAnInteger")}),
    (policy(declaredInputs=[{"name": "1st", "kind": "decimal"}]), {("/declaredInputs/0/name", "BadName")}),
    (policy(declaredInputs=[{"name": "a", "kind": "number"}]), {("/declaredInputs/0/kind", "UnknownValue")}),
    (
        policy(declaredInputs=[{"name": "a", "kind": "decimal", "personal": "yes"}]),
        {("/declaredInputs/0/personal", "NotABoolean")},
    ),
    (policy_with_limit(roundDownTo="0"), {("/limits/0/roundDownTo", "NotADecimal")}),
    (policy_with_limit(minimum="-1"), {("/limits/0/minimum", "NotADecimal")}),
    (policy_with_limit(minimum="2000.005"), {("/limits/0/minimum", "NotADecimal")}),
    (policy_with_limit(outcomes=[]), {("/limits/0/outcomes", "TooFew")}),
    (
        policy_with_limit(
            caps=[{"code": "C", "message": "m", "value": {"tiers": {"of": {"input": "asked"}, "bands": [{}]}}}]
        ),
        {
            ("/limits/0/caps/0/value/tiers/bands/0/below", "Missing"),
            ("/limits/0/caps/0/value/tiers/bands/0/value", "Missing"),
            ("/limits/0/caps/0/value/tiers/otherwise", "Missing"),
        },
    ),
    (policy(name="lone \ud800"), {("/name", "BadText")}),
    (policy(name="a\0b"), {("/name", "BadText")}),
]


@pytest.mark.parametrize(("document", "expected"), MISSHAPEN)
def test_fault_of_shape_has_its_place_in_the_document(document: Json, expected: Found) -> None:
    assert faults(document) == expected


@pytest.mark.parametrize("document", [document for document, _ in MISSHAPEN])
def test_no_message_comes_from_a_library(document: Json) -> None:
    for fault in check.check_document(document).faults:
        assert fault.message[0].isupper() or fault.message[0] in "`0123456789", fault
        assert fault.message.endswith("."), fault
        assert not any(word in fault.message for word in ("_form", "Input", "tag", "Tuple", "pydantic", "{")), fault


def metric(**definition: Json) -> Json:
    return {**own("mine"), "definition": {"source": "transactions", "aggregate": "sum", **definition}}


@pytest.mark.parametrize(
    ("of_metric", "expected"),
    [
        ({**own("mine"), "definition": {"aggregate": "sum"}}, {("/definition/source", "Missing")}),
        ({**own("mine"), "definition": {"source": "ledger"}}, {("/definition", "UnknownForm")}),
        ({**own("mine"), "definition": "sum"}, {("/definition", "NotAnObject")}),
        (metric(window={"days": 90, "month": 1}), {("/definition/window/month", "UnknownField")}),
        (metric(window={"days": 0}), {("/definition/window/days", "OutOfRange")}),
        (metric(window={"months": "3"}), {("/definition/window/months", "NotAnInteger")}),
        (metric(aggregate="monthly_mean"), {("/definition", "InvalidValue")}),
        (metric(where={"categories": ["no_such"]}), {("/definition/where/categories", "InvalidValue")}),
        (metric(where={"atLeast": 5}), {("/definition/where/atLeast", "InvalidValue")}),
        (metric(where={"atLeast": "-1"}), {("/definition/where/atLeast", "InvalidValue")}),
        (metric(where={"atMost": "-0.01"}), {("/definition/where/atMost", "InvalidValue")}),
        (metric(where={"atLeast": "5", "atMost": "4.9"}), {("/definition/where", "InvalidValue")}),
        (metric(where={"atLeast": "0", "atMost": "0"}), set()),
        ({**own("mine", "1", "2"), "historyDays": 3_661}, {("/historyDays", "OutOfRange")}),
        ({**own("mine", "1", "2"), "historyMonths": 121}, {("/historyMonths", "OutOfRange")}),
        ({**own("mine", "1", "2"), "freshDays": 3_661}, {("/freshDays", "OutOfRange")}),
        ({**own("mine", "1", "2"), "historyDays": 3_660, "historyMonths": 120, "freshDays": 3_660}, set()),
        ({**own("mine", "1", "2"), "freshDays": -1}, {("/freshDays", "OutOfRange")}),
        ({**own("mine", "1", "2"), "unit": "EUR"}, {("/unit", "UnknownValue")}),
    ],
)
def test_own_metrics_are_checked_like_the_registrys(of_metric: Json, expected: Found) -> None:
    assert faults(policy(metrics=[of_metric])) == {(f"/metrics/0{pointer}", code) for pointer, code in expected}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (asking({"atLeast": [{"metric": "nope"}, "1"]}), {(f"{CONDITION}/atLeast/0/metric", "UnknownMetric")}),
        (asking({"isKnown": {"metric": "nope"}}), {(f"{CONDITION}/isKnown/metric", "UnknownMetric")}),
        (asking({"isKnown": {"attribute": "z"}}), {(f"{CONDITION}/isKnown/attribute", "UnknownAttribute")}),
        (asking({"isTrue": {"input": "x"}}), {(f"{CONDITION}/isTrue/input", "UnknownInput")}),
        (asking({"atLeast": [TEXT, "1"]}), {(f"{CONDITION}/atLeast/0/attribute", "WrongKind")}),
        (
            asking({"atLeast": [X, {"tiers": {"of": FLAG, "bands": [{"below": "1", "value": TEXT}], "otherwise": X}}]}),
            {
                (f"{CONDITION}/atLeast/1/tiers/of/attribute", "WrongKind"),
                (f"{CONDITION}/atLeast/1/tiers/bands/0/value/attribute", "WrongKind"),
            },
        ),
        (asking({"isTrue": X}), {(f"{CONDITION}/isTrue/attribute", "WrongKind")}),
        (asking({"oneOf": {"of": FLAG, "texts": ["a"]}}), {(f"{CONDITION}/oneOf/of/attribute", "WrongKind")}),
        (policy(indicators=[{"metric": "nope"}]), {("/indicators/0/metric", "UnknownMetric")}),
        (policy(limits=[{"product": "loan", "amount": "5"}]), {("/limits/0/product", "UnknownProduct")}),
        (policy(attributes=[DECLARED[0], DECLARED[0]]), {("/attributes/1/name", "Repeated")}),
        (
            policy_with_limit(caps=[{"code": "C", "message": "m", "value": {"input": "b"}}] * 2),
            {
                ("/limits/0/caps/0/value/input", "UnknownInput"),
                ("/limits/0/caps/1/value/input", "UnknownInput"),
                ("/limits/0/caps/1/code", "Repeated"),
            },
        ),
        (
            policy(step(rule({"isTrue": FLAG})), step(rule({"atLeast": [X, "1"]}))),
            {("/steps/1/name", "Repeated"), ("/steps/1/rules/0/code", "Repeated")},
        ),
        (policy(indicators=[{"metric": "inflow_30d"}] * 2), {("/indicators/1/metric", "Repeated")}),
        (policy(metrics=[own("revenue_90d", "inflow_30d", "1")]), {("/metrics/0/slug", "ShadowsRegistry")}),
        (policy(metrics=[own("customer_number", "inflow_30d", "1")]), {("/metrics/0/slug", "Reserved")}),
        (policy(metrics=[own("a", "b", "1")]), {("/metrics/0/definition/operands/0", "UnknownMetric")}),
        (policy(metrics=[own("a", "a", "1")]), {("/metrics/0/definition/operands", "Circle")}),
        (
            policy(metrics=[own("a", "b", "1"), own("b", "inflow_30d", "c"), own("c", "a", "1"), own("d", "a", "1")]),
            {(f"/metrics/{nth}/definition/operands", "Circle") for nth in range(3)},
        ),
    ],
)
def test_references_to_unknown_names_are_faults(document: Json, expected: Found) -> None:
    assert faults(document) == expected


@pytest.mark.parametrize("outcome", ["conditional", "blocked"])
def test_default_that_refuses_or_refers_needs_a_reason(outcome: str) -> None:
    assert faults(policy(defaultOutcome=outcome)) == set()
    for missing in ({}, {"defaultReason": None}):
        silent = {**policy(), "defaultOutcome": outcome, **missing}
        assert faults(silent) == {("/defaultOutcome", "DefaultWithoutReason")}
    assert faults(policy(defaultOutcome=outcome, defaultReason={**DEFAULT_REASON, "customerMessage": ""})) == {
        ("/defaultReason/customerMessage", "Empty")
    }


def test_default_reason_must_have_its_own_code() -> None:
    assert faults(policy(step(rule(HIGH, "DEFAULT")), defaultReason=DEFAULT_REASON)) == {
        ("/defaultReason/code", "Repeated")
    }


def test_reserved_slug_is_refused() -> None:
    assert faults(policy(slug="schema")) == {("/slug", "ReservedSlug")}


def messages(document: Json) -> list[str]:
    return [fault.message for fault in check.check_document(document).faults]


def test_comparing_texts_gets_a_hint() -> None:
    of_kind, of_text = messages(asking({"equals": [TEXT, "stock"]}))
    assert of_kind.endswith("Texts are compared with `oneOf`.")
    assert of_text.endswith("Texts are compared with `oneOf`.")
    assert all("oneOf" not in each for each in messages(asking({"equals": [X, "1,000"]}, {"atLeast": [X, "x"]})))


def test_wrapped_constant_gets_a_hint() -> None:
    (message,) = messages(asking({"atLeast": [X, {"constant": "5000"}]}))
    assert message.endswith('or a constant, which is the text itself: "0.25".')
    assert "`constant`" not in message


def test_misspelt_name_gets_a_suggestion() -> None:
    (fault,) = check.check_document(asking({"atLeast": [{"metric": "dishonour_180d"}, "1"]})).faults
    assert fault.message.endswith("Did you mean `dishonours_180d`?")


def both_of(*conditions: Json) -> Json:
    return {"all": list(conditions)}


def tiers(*bounds: str) -> Json:
    bands = [{"below": bound, "value": X} for bound in bounds]
    return {"tiers": {"of": Y, "bands": bands, "otherwise": "0"}}


NEVER, ALWAYS = (CONDITION, "NeverTrue"), (CONDITION, "AlwaysTrue")
TEN_PERCENT = {"multiply": [X, "0.1"]}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (both_of({"atLeast": [X, "5"]}, {"lessThan": [X, "3"]}), {NEVER}),
        (both_of({"atLeast": [X, "5"]}, {"atMost": [X, "5"]}), set()),
        (both_of({"moreThan": [X, "5"]}, {"lessThan": [X, "5.00000001"]}), {NEVER}),
        (both_of({"atLeast": [X, "5"]}, {"lessThan": [Y, "3"]}), set()),
        (both_of({"atLeast": ["3", X]}, {"moreThan": [X, "3"]}), {NEVER}),
        (both_of({"equals": [X, "1"]}, {"equals": [X, "2"]}), {NEVER}),
        (both_of({"equals": [X, "1"]}, {"differs": [X, "1.0"]}), {NEVER}),
        (both_of({"moreThan": [X, Y]}, {"moreThan": [Y, X]}), {NEVER}),
        (both_of({"atLeast": [X, Y]}, {"atLeast": [Y, X]}), set()),
        (both_of({"atLeast": [TEN_PERCENT, "5"]}, {"lessThan": [TEN_PERCENT, "3"]}), {NEVER}),
        (both_of({"isTrue": FLAG}, {"not": {"isTrue": FLAG}}), {NEVER}),
        (both_of({"isTrue": FLAG}, {"not": {"isKnown": FLAG}}), {NEVER}),
        (both_of({"not": {"isKnown": X}}, {"atLeast": [TEN_PERCENT, "5"]}), {NEVER}),
        (
            both_of({"oneOf": {"of": TEXT, "texts": ["a", "b"]}}, {"oneOf": {"of": TEXT, "texts": ["c"]}}),
            {NEVER},
        ),
        (
            both_of({"oneOf": {"of": TEXT, "texts": ["a", "b"]}}, {"not": {"oneOf": {"of": TEXT, "texts": ["b"]}}}),
            set(),
        ),
        ({"between": [X, "5", "3"]}, {(CONDITION, "EmptyRange")}),
        ({"between": [X, "5", "5"]}, set()),
        ({"between": [X, "5", Y]}, set()),
        ({"any": [{"atLeast": [X, "3"]}, {"lessThan": [X, "5"]}]}, {ALWAYS}),
        ({"any": [{"atLeast": [X, "3"]}, {"lessThan": [X, "2"]}]}, set()),
        ({"not": both_of({"atLeast": [X, "5"]}, {"lessThan": [X, "3"]})}, {(f"{CONDITION}/not", "NeverTrue")}),
        ({"atLeast": [X, X]}, {ALWAYS}),
        ({"moreThan": [X, X]}, {NEVER}),
        ({"lessThan": ["1", {"add": ["0.5", "0.5"]}]}, {NEVER}),
        ({"equals": [{"divide": ["1", "3"]}, "0.33333333"]}, {ALWAYS}),
        ({"atLeast": [{"divide": [X, {"subtract": ["1", "1"]}]}, "1"]}, {(f"{CONDITION}/atLeast/0", "NoValue")}),
        ({"atLeast": [{"multiply": ["999999999", "999999999"]}, X]}, {(f"{CONDITION}/atLeast/0", "NoValue")}),
        ({"atLeast": [tiers("1", "2", "2"), "1"]}, {(f"{CONDITION}/atLeast/0/tiers/bands/2/below", "BandsDontRise")}),
        ({"atLeast": [tiers("1", "2", "10"), "1"]}, set()),
        (
            {"any": [both_of({"atLeast": [X, "5"]}, {"lessThan": [X, "3"]}), {"atLeast": [Y, Y]}, {"isTrue": FLAG}]},
            {(f"{CONDITION}/any/0", "NeverTrue"), (f"{CONDITION}/any/1", "AlwaysTrue")},
        ),
    ],
)
def test_exactly_the_contradictions_are_found(condition: Json, expected: Found) -> None:
    assert faults(asking(condition)) == expected


def test_contradictions_from_a_wrong_kind_are_not_reported() -> None:
    odd = {"atLeast": [FLAG, "5"]}
    wrong = {("/steps/0/rules/0/condition/atLeast/0/attribute", "WrongKind")}
    again = {("/steps/1/rules/0/condition/atLeast/0/attribute", "WrongKind")}
    assert faults(steps(odd, {"atLeast": [FLAG, "7"]})) == wrong | again
    assert faults(steps(odd, {"isTrue": FLAG})) == wrong
    of_two = check.check_document(asking(odd, {"atLeast": [FLAG, "7"]}))
    assert (len(of_two.faults), of_two.warnings) == (2, [])
    both_wrong = both_of(odd, {"lessThan": [FLAG, "3"]})
    assert {code for _, code in faults(asking(both_wrong))} == {"WrongKind"}
    beside = asking({"any": [odd, both_of({"atLeast": [X, "5"]}, {"lessThan": [X, "3"]})]})
    assert {code for _, code in faults(beside)} == {"WrongKind", "NeverTrue"}


HIGH, HIGHER, LOW = {"atLeast": [X, "5"]}, {"atLeast": [X, "7"]}, {"lessThan": [X, "6"]}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (steps(HIGH, HIGHER), {("/steps/1", "StepUnreachable")}),
        (steps(HIGHER, HIGH), set()),
        (steps(HIGH, LOW, {"isTrue": FLAG}), {("/steps/2", "StepUnreachable")}),
        (
            policy(step(rule(HIGH, "A"), rule(LOW, "B")), step(rule({"isTrue": FLAG}), name="S")),
            {("/steps/1", "StepUnreachable")},
        ),
        (
            policy(step(rule(HIGH, "A"), rule({"lessThan": [X, "5"]}, "B"), match="all")),
            {("/steps/0", "StepUnreachable")},
        ),
        (
            policy(step(rule(HIGH)), step(rule(HIGHER, "A"), rule({"isTrue": FLAG}, "B"), name="S")),
            {("/steps/1/rules/0", "RuleUnreachable")},
        ),
        (
            policy(step(rule(HIGH, onUnavailable="notMatched")), step(rule(HIGHER, "A"), name="S")),
            set(),  # without `x` the first doesn't match, and the second is unknown
        ),
        (
            policy(
                step(rule(HIGH, onUnavailable="notMatched")),
                step(rule(HIGHER, "A", onUnavailable="matched"), name="S"),
            ),
            set(),
        ),
        (
            policy(step(rule(HIGH)), step(rule({"not": {"isKnown": X}}, "A"), name="S")),
            {("/steps/1", "StepUnreachable")},
        ),
        (asking(HIGH, {"not": {"lessThan": [X, "5.0"]}}), {("/steps/0/rules/1/condition", "RuleRepeated")}),
    ],
)
def test_unreachable_steps_and_rules_are_found(document: Json, expected: Found) -> None:
    assert faults(document) == expected


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ({"minimum": "5000", "caps": ["4000"]}, {("/limits/0/minimum", "MinimumAboveCap")}),
        ({"minimum": "5000", "caps": ["5000"]}, set()),
        ({"minimum": "5200", "caps": ["5400", X], "roundDownTo": "1000"}, {("/limits/0/minimum", "MinimumAboveCap")}),
        ({"minimum": "5000", "caps": [X, {"min": [Y, "4000"]}]}, {("/limits/0/minimum", "MinimumAboveCap")}),
        ({"minimum": "5000", "caps": [tiers("1")]}, set()),
        ({"amount": "10", "minimum": "11"}, {("/limits/0/minimum", "MinimumAboveCap")}),
        ({"outcomes": ["blocked"]}, {("/limits/0/outcomes", "NeverOffered")}),
        ({"amount": {"divide": ["1", "0"]}}, {("/limits/0/amount", "NoValue")}),
    ],
)
def test_limit_that_never_offers_anything_is_found(limit: Json, expected: Found) -> None:
    caps = [{"code": f"C{nth}", "message": "m", "value": value} for nth, value in enumerate(limit.get("caps", []))]
    assert faults(policy_with_limit(**{**limit, "caps": caps})) == expected


def test_faults_of_every_sort_are_reported_at_once() -> None:
    document = policy(
        step(
            rule({"atLeast": [{"metric": "nope"}, 5]}, "A"),
            rule(both_of({"atLeast": [X, "5"]}, {"lessThan": [X, "3"]}), "B"),
            rule({"isTrue": X}, "B"),
        ),
        surprise=1,
        metrics=[own("a", "a", "1")],
        limits=[{"product": "none", "amount": {"divide": ["1", "0"]}, "roundDownTo": "0"}],
    )
    assert faults(document) == {
        ("/surprise", "UnknownField"),
        ("/metrics/0/definition/operands", "Circle"),
        ("/steps/0/rules/0/condition/atLeast/0/metric", "UnknownMetric"),
        ("/steps/0/rules/0/condition/atLeast/1", "NotText"),
        ("/steps/0/rules/1/condition", "NeverTrue"),
        ("/steps/0/rules/2/code", "Repeated"),
        ("/steps/0/rules/2/condition/isTrue/attribute", "WrongKind"),
        ("/limits/0/product", "UnknownProduct"),
        ("/limits/0/amount", "NoValue"),
        ("/limits/0/roundDownTo", "NotADecimal"),
    }
    assert check.check_document(document).policy is None


@pytest.mark.drawn
def test_every_defect_is_reported_at_an_existing_place() -> None:
    chance, described = random.Random(13), 0
    given = list(examples.load().values())
    for _ in range(times(100)):
        document = deepcopy(chance.choice((drawn.document(chance), *given)))
        for _ in range(chance.randint(1, 6)):
            mutilate(document, chance)
        for fault in check.check_document(document).faults:
            described += 1
            is_missing = fault.code == "DecisionPolicy.Missing"
            assert has_value_at(document, fault.pointer.rpartition("/")[0] if is_missing else fault.pointer), fault
    assert described > 150


def has_value_at(document: Json, pointer: str) -> bool:
    """Return whether the document has a value at the pointer."""
    for part in pointer.split("/")[1:]:
        if isinstance(document, list) and part.isdecimal() and int(part) < len(document):
            document = document[int(part)]
        elif isinstance(document, dict) and part in document:
            document = document[part]
        else:
            return False
    return True


# Bounds


def nest(depth: int) -> Json:
    condition: Json = {"atLeast": [X, "1"]}
    for _ in range(depth):
        condition = {"not": condition}
    return condition


def nest_lists(depth: int) -> Json:
    value: Json = []
    for _ in range(depth):
        value = [value]
    return value


def wide(count: int) -> Json:
    return [
        rule({"all": [{"moreThan": [X, f"{nth}.{place}"]} for place in range(1, 49)]}, f"R{nth}")
        for nth in range(count)
    ]


def test_a_document_beyond_bounds_is_refused_at_once(subtests: pytest.Subtests) -> None:
    for document, code in (
        (asking(nest(20)), "TooDeep"),
        (asking(nest(10_000)), "TooDeep"),
        (policy(surprise=nest_lists(10_000)), "TooDeep"),
        (policy(surprise=[0] * 1_000_000), "TooLarge"),
        (policy(step(*wide(40))), "TooCostly"),
        (policy(step(*wide(3_000))), "TooCostly"),
        (policy(notes="n" * 2_000_000), "TooLarge"),
        (policy(**{"n" * 2_000_000: 1}), "UnknownField"),
        (policy(**{"n" * 200: 1}), "UnknownField"),
    ):
        with subtests.test(str(document)[:100] if code != "TooDeep" else code):
            started = time.thread_time()
            assert {code for _, code in faults(document)} == {code}
            assert time.thread_time() - started < 1


def test_twenty_nested_operators_are_allowed() -> None:
    assert check.check_document(asking(nest(18))).policy is not None  # with the comparison and what it reads


@pytest.mark.service  # its subject is time
@pytest.mark.timeout(60)  # a second or two; faults that multiply would take hours
def test_largest_documents_are_checked_in_time() -> None:
    names = [rule({"moreThan": [{"metric": f"revenue_{nth}d_{nth}"}, "1"]}, f"R{nth}") for nth in range(100)]
    texts = [
        rule({"oneOf": {"of": TEXT, "texts": [f"{nth}-{place}" for place in range(190)]}}, f"R{nth}")
        for nth in range(90)
    ]
    chains = [own(f"m{nth}", *(f"m{other}" for other in range(nth + 1, nth + 18)), "1", "2") for nth in range(98)]
    strange = [own(f"m{nth}", *(f"revenue_{nth}_{place}d" for place in range(20))) for nth in range(900)]
    metrics = (policy(metrics=chains), policy(metrics=strange))
    for document in (policy(step(*names)), policy(step(*texts)), policy(step(*wide(19))), *metrics):
        assert len(check.check_document(document).faults) <= check.MAX_FAULTS


def test_a_text_is_read_as_yaml_or_json() -> None:
    document = asking({"atLeast": [X, "5"]})
    assert check.check_text(json.dumps(document), yaml=False) == check.check_text(json.dumps(document), yaml=True)
    assert check.check_text(json.dumps(document), yaml=False).policy == Policy.model_validate(document)


LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "yaml", "code"),
    [
        (LAUGHS, True, "NoAliases"),
        ("[" * 10_000, True, "TooLarge"),
        ("a:\n  - " + "- " * 10_000, True, "TooLarge"),
        ("- a\n" * 100_000, True, "TooLarge"),
        ("[" * 10_000 + "]" * 10_000, False, "NotJson"),
        ("n" * 2_000_000, True, "TooLarge"),
        ("slug: [", True, "NotYaml"),
        ("slug: 1\nslug: 2", True, "NotYaml"),
        ("slug: !!python/object/apply:os.system [ls]", True, "NotYaml"),
        ("when: 2026-99-99", True, "NotYaml"),
        ("number: " + "1" * 5_000, True, "NotYaml"),
        ("{", False, "NotJson"),
        ('{"slug": NaN}', False, "NotJson"),
        ('{"slug": 1, "slug": 2}', False, "NotJson"),
        ("", False, "NotJson"),
    ],
)
def test_invalid_file_is_refused(text: str, yaml: bool, code: str) -> None:
    started = time.thread_time()
    (fault,) = check.check_text(text, yaml).faults
    assert (fault.pointer, fault.code) == ("", f"DecisionPolicy.{code}")
    assert time.thread_time() - started < 1


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("name: x\nslug: [", "line 3, column 1"),
        ("slug: 1\nslug: 2", "line 2, column 1"),
        ("name: x\n  b: c: d", "line 2, column 4"),
        ("name: x\nwhen: 2026-99-99", "line 2, column 7"),
        ("number: " + "1" * 5_000, "line 1, column 9"),
        ("name: é\nslug: \x01b", "line 2, column 7"),
        ("name: x\n\t- b", "line 2, column 1"),
        ("slug: !!python/object/apply:os.system [ls]", "line 1, column 7"),
    ],
)
def test_yaml_error_has_its_line_and_column(text: str, place: str) -> None:
    (fault,) = check.check_text(text, yaml=True).faults
    assert fault.message.startswith(f"The file is not valid YAML: {place}: ")
    assert "unicode string" not in fault.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1: 2", {("", "NotPlain")}),
        ("slug: 2026-01-01", {("/slug", "NotPlain")}),
        ("slug: yes", {("/slug", "NotText"), ("/name", "Missing"), ("/defaultOutcome", "Missing")}),
    ],
)
def test_values_that_only_yaml_has_are_refused(text: str, expected: Found) -> None:
    assert places_and_codes(check.check_text(text, yaml=True).faults) == expected


def test_json_numbers_are_not_texts() -> None:
    document = strict_json.parse(json.dumps(asking({"atLeast": [X, 1e400]})).replace("Infinity", "1e400").encode())
    assert faults(document) == {(f"{CONDITION}/atLeast/1", "NotText")}
    ranked = strict_json.parse(json.dumps(policy(step(rule({"isTrue": FLAG}, rank=7)))).encode())
    assert check.check_document(ranked).policy is not None


# Warnings


KNOWN, UNKNOWN = {"isKnown": X}, {"not": {"isKnown": X}}
AT_RULE, AT_COUNT = "/steps/0/rules/0/condition", "/steps/0/rules/0/onUnavailable"


def with_one_rule(condition: Json, outcome: str = "blocked", default: str = "proceed", **more: Json) -> Json:
    return policy(step(rule(condition, **more), outcome=outcome), defaultOutcome=default)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (with_one_rule(HIGH), set()),
        (with_one_rule(HIGH, onUnavailable="notMatched"), {(AT_COUNT, "LenientNotMatched")}),
        (with_one_rule(HIGH, outcome="conditional", onUnavailable="notMatched"), {(AT_COUNT, "LenientNotMatched")}),
        (with_one_rule(HIGH, outcome="proceed", default="blocked", onUnavailable="notMatched"), set()),
        (with_one_rule(HIGH, onUnavailable="matched"), set()),
        (
            with_one_rule(HIGH, outcome="proceed", default="blocked", onUnavailable="matched"),
            {(AT_COUNT, "LenientMatched")},
        ),
        (with_one_rule({"moreThan": [{"input": "asked"}, "5"]}, onUnavailable="notMatched"), set()),
        (with_one_rule(KNOWN), {(AT_RULE, "LenientIsKnown")}),
        (with_one_rule(UNKNOWN), set()),
        (with_one_rule(UNKNOWN, outcome="proceed", default="blocked"), {(AT_RULE, "LenientIsKnown")}),
        (with_one_rule(KNOWN, outcome="proceed", default="blocked"), set()),
        (with_one_rule(both_of(KNOWN, HIGH)), {(AT_RULE, "LenientIsKnown")}),
        (with_one_rule({"any": [UNKNOWN, HIGH]}), set()),
        (with_one_rule({"isKnown": {"input": "asked"}}, outcome="blocked"), set()),
        (
            policy_with_limit(caps=[{"code": "C", "message": "m", "value": X, "onUnavailable": "ignore"}]),
            {("/limits/0/caps/0/onUnavailable", "LenientCap")},
        ),
        (policy_with_limit(caps=[{"code": "C", "message": "m", "value": "9", "onUnavailable": "ignore"}]), set()),
        (
            {**policy_with_limit(outcomes=["blocked"]), "steps": [step(rule(UNKNOWN))]},
            {("/limits/0/outcomes", "LenientOutcomes")},
        ),
        ({**policy_with_limit(outcomes=["proceed"]), "steps": [step(rule(UNKNOWN))]}, set()),
        (policy(products=[{"slug": "loan", "name": "Loan"}]), {("/products/0", "ProductWithoutLimit")}),
        (asking(HIGH, HIGHER), {("/steps/0/rules/1/condition", "RuleIdle")}),
        (asking(HIGH, HIGHER, match="all"), {("/steps/0/rules/0/condition", "RuleIdle")}),
        (asking(HIGH, {"atLeast": [Y, "7"]}), set()),
    ],
)
def test_lenient_parts_give_warnings(document: Json, expected: Found) -> None:
    assert warnings(document) == expected


def test_step_that_no_customer_reached_gives_a_warning() -> None:
    plan = plan_policy(Policy.model_validate(steps(HIGHER, HIGH, {"isTrue": FLAG})))
    (finding,) = check.find_unreached(plan, {0: 10, 1: 4}, customers=10)
    assert (finding.pointer, finding.code) == ("/steps/2", "DecisionPolicy.StepNeverReached")
    assert check.find_unreached(plan, {}, customers=0) == []


# Property: a customer with less data never gets a better result


def without_ignored_caps(document: Json) -> Json:
    """Make all caps count: most drawn policies ignore an unknown cap, and would have to be left out."""
    changed = deepcopy(document)
    for limit in changed["limits"]:
        for cap in limit["caps"]:
            cap["onUnavailable"] = "indeterminate"
    return changed


def remove_some(plan: Plan, given: pl.DataFrame, chance: random.Random) -> pl.DataFrame:
    """Remove some of the metrics and attributes."""
    gone = [node for node in plan.nodes.values() if node.is_leaf and node.operator != "input" and chance.random() < 0.4]
    some = pl.Series([chance.random() < 0.7 for _ in range(given.height)], dtype=pl.Boolean)
    values = [pl.when(~some).then(pl.col(column_of(node))).alias(column_of(node)) for node in gone]
    causes = [
        pl.when(some).then(pl.lit(NOT_SET)).otherwise(cause_of(column_of(node))).alias(cause_of(column_of(node)))
        for node in gone
    ]
    return given.with_columns(*values, *causes)


def read_leaves_of_case(plan: Plan, case: Case) -> pl.DataFrame:
    held = {number: customer.attributes for number, customer in enumerate(case.customers)}
    return readings.read_leaves(plan, metrics_of(case.customers), held, case.inputs, drawn.NOW)


def severest(plan: Plan, row: Json) -> int:
    """Return the most severe outcome that a row may have once all is known."""
    possible = []
    for nth, each in enumerate(plan.steps):
        if (matched := row[step_column(nth)]) is not False:
            possible.append(each.step.outcome)
        if matched:
            return max(map(OUTCOMES.index, possible))
    return max(map(OUTCOMES.index, [*possible, plan.policy.default_outcome]))


def lenient_changes(plan: Plan, before: Json, after: Json) -> list[str]:
    found = []
    if after["outcome"] != INDETERMINATE and OUTCOMES.index(after["outcome"]) < severest(plan, before):
        found.append("outcome")
    for nth in range(len(plan.limits)):
        had, has = before[f"amount_{nth}"], after[f"amount_{nth}"]
        if had is not None and has is not None and has > had:
            found.append(f"limit {nth}")
    return found


def find_moved_outcomes(
    seed: int, count: int, is_wanted: Callable[[set[str]], bool], as_drawn: bool = False
) -> Iterator[tuple[int, list[Json]]]:
    """Yield for each drawn policy with such warnings how many outcomes changed, and what became more lenient."""
    chance = random.Random(seed)
    for case in cases(seed, count, customers=12):
        plan = plan_policy(Policy.model_validate(case.document if as_drawn else without_ignored_caps(case.document)))
        if is_wanted({each.code.removeprefix("DecisionPolicy.") for each in find_warnings(plan.policy)}):
            given = read_leaves_of_case(plan, case)
            before, after = (evaluate_plan(plan, each).to_dicts() for each in (given, remove_some(plan, given, chance)))
            pairs = list(zip(before, after, strict=True))
            lenient = [(plan.policy, one, other) for one, other in pairs if lenient_changes(plan, one, other)]
            yield sum(one["outcome"] != other["outcome"] for one, other in pairs), lenient


@pytest.mark.drawn
def test_less_data_gives_a_better_result_only_with_a_warning() -> None:
    found = list(find_moved_outcomes(7, times(90), lambda codes: not codes))
    assert [lenient for _, lenient in found if lenient] == []
    assert len(found) > 30
    assert sum(changed for changed, _ in found) > 35


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_less_data_gives_no_better_result_in_thousands_of_policies(seed: int) -> None:
    found = list(find_moved_outcomes(100 + seed, 1_000, lambda codes: not codes))
    assert [lenient for _, lenient in found if lenient] == []
    assert sum(changed for changed, _ in found) > 400


@pytest.mark.slow  # the subject is another test
@pytest.mark.parametrize("code", ["LenientCap", "LenientIsKnown", "LenientMatched", "LenientNotMatched"])
def test_each_warning_is_needed(code: str) -> None:
    """In policies with only this warning, some customer does get a better result with less data."""
    found = find_moved_outcomes(8, 400, lambda codes: codes == {code}, as_drawn=code == "LenientCap")
    assert any(lenient for _, lenient in found)


def test_offer_for_a_harsher_outcome_only_is_lenient() -> None:
    document = {**policy_with_limit(outcomes=["conditional"]), "steps": [step(rule(HIGH, onUnavailable="matched"))]}
    document["steps"][0]["outcome"] = "conditional"
    assert warnings(document) == {("/limits/0/outcomes", "LenientOutcomes")}
    held = {"x": Attribute(Decimal(1))}
    with_it, without = (
        evaluation(Policy.model_validate(document), attributes=each, inputs={"asked": Decimal(5000)}).row["amount_0"]
        for each in (held, {})
    )
    assert (with_it, without) == (Decimal(0), Decimal(5000))


@pytest.mark.parametrize("slug", sorted(examples.load()))
def test_example_has_no_warnings(slug: str) -> None:
    assert check.check_document(examples.load()[slug]).warnings == []


@pytest.mark.parametrize("text", ["12:30", "1:30:00", "1:30.5"])
def test_yaml_reads_what_looks_like_base_60_as_text(text: str) -> None:
    assert parse(f"at: {text}\nwhole: 12\npart: 1.5\n", "document") == {"at": text, "whole": 12, "part": 1.5}
