"""A ruleset is refused with all its faults at once, each with its place."""

import copy
import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from pipelines.decisions.canonical import canonical, fingerprint
from pipelines.monitoring import CheckedRuleset, Ruleset, check_document, check_text
from pipelines.vocabulary import strict_json
from tests.pipelines.decisions.mutilated import mutilate
from tests.pipelines.decisions.test_junk import JUNK, places, with_junk
from tests.pipelines.monitoring import drawn

Json = Any
SCORE = {"attribute": "score"}
LOW = {"lessThan": [SCORE, "500"]}
ATTRIBUTES = [
    {"name": "score", "kind": "decimal"},
    {"name": "hardship", "kind": "boolean"},
    {"name": "loanStart", "kind": "string"},
]
CUSTOMER = "6f1b2f0e-5c1d-5a55-9b1a-0c1f5f7c9d21"


def rule(condition: Json = LOW, code: str = "LOW", **also: Json) -> Json:
    return {"code": code, "message": "The score is low.", "condition": condition, **also}


def ruleset(*rules: Json, **also: Json) -> Json:
    document = {"slug": "small", "name": "Small", "attributes": ATTRIBUTES, "rules": list(rules) or [rule()]}
    return document | also


def asking(condition: Json) -> Json:
    return ruleset(rule(condition))


def own(slug: str, *operands: str) -> Json:
    words = {"name": slug, "meaning": "Some.", "unit": "AUD", "format": "currency", "direction": "neutral"}
    definition = {"source": "metrics", "operation": "add", "operands": list(operands) or ["history_days", "1"]}
    return {"slug": slug, **words, "definition": definition}


def since(attribute: str, *metrics: Json) -> Json:
    return {"since": {"attribute": attribute}, "metrics": list(metrics) or [then()]}


def then(slug: str = "then", of: str = "revenue_90d") -> Json:
    return {"slug": slug, "of": of}


def reset(slug: str = "then") -> Json:
    return {"lessThan": [{"metric": "revenue_90d"}, {"metric": slug}]}


def faults(document: Json) -> list[tuple[str, str]]:
    found = check_document(document)
    assert (found.ruleset is None) == bool(found.faults)
    return [(each.pointer, each.code.removeprefix("Ruleset.")) for each in found.faults]


SOUND: Sequence[Json] = [
    ruleset(),
    ruleset(appliesTo="all", active=False, notes="Two\nlines.\tAnd a tab."),
    ruleset(appliesTo={"customers": [CUSTOMER]}, mutedWhile={"isTrue": {"attribute": "hardship"}}),
    ruleset(appliesTo={"where": LOW}),
    ruleset(rule({"not": {"isKnown": SCORE}})),
    ruleset(rule(reset()), baseline=since("loanStart")),
    ruleset(rule(reset()), baseline={"since": {"date": "2026-03-01"}, "metrics": [then()]}),
    ruleset(rule(reset()), metrics=[own("mine")], baseline=since("loanStart", then(of="mine"))),
    ruleset(rule(severity="critical", repeatAfterDays=1, recommendedActions=["Call — at once. 😀"])),
]


@pytest.mark.parametrize("document", SOUND)
def test_a_sound_document_is_read(document: Json) -> None:
    found = check_document(document)
    assert (found.faults, found.warnings) == ([], [])
    assert found.ruleset == Ruleset.model_validate(document)


UNSOUND: Sequence[tuple[Json, str, str]] = [
    # Shape
    ([], "", "NotAnObject"),
    ({}, "/slug", "Missing"),
    (ruleset(severity="info"), "/severity", "UnknownField"),
    (ruleset(rules=[]), "/rules", "TooFew"),
    (ruleset(*(rule({"lessThan": [SCORE, str(n)]}, f"R{n}") for n in range(51))), "/rules", "TooMany"),
    (ruleset(slug="Big"), "/slug", "BadName"),
    (ruleset(active="yes"), "/active", "NotABoolean"),
    (ruleset(rule(severity="fatal")), "/rules/0/severity", "UnknownValue"),
    (ruleset(rule(repeatAfterDays=0)), "/rules/0/repeatAfterDays", "OutOfRange"),
    (ruleset(rule(repeatAfterDays=3_661)), "/rules/0/repeatAfterDays", "OutOfRange"),
    (ruleset(rule(repeatAfterDays=1.5)), "/rules/0/repeatAfterDays", "NotAnInteger"),
    (ruleset(rule(code="no code")), "/rules/0/code", "BadName"),
    (ruleset(appliesTo="some"), "/appliesTo", "UnknownValue"),
    (ruleset(appliesTo={"segment": "a"}), "/appliesTo", "UnknownForm"),
    (ruleset(appliesTo={"customers": []}), "/appliesTo/customers", "TooFew"),
    (ruleset(appliesTo={"customers": ["me"]}), "/appliesTo/customers/0", "NotAnId"),
    (ruleset(appliesTo={"customers": [CUSTOMER, CUSTOMER.upper()]}), "/appliesTo/customers/1", "Repeated"),
    (ruleset(baseline={"since": {"date": "1 March"}, "metrics": [then()]}), "/baseline/since/date", "InvalidValue"),
    (ruleset(baseline={"since": "loanStart", "metrics": [then()]}), "/baseline/since", "UnknownForm"),
    (ruleset(baseline={"since": {"date": "2026-03-01"}, "metrics": []}), "/baseline/metrics", "TooFew"),
    # Names
    (ruleset(rule(), rule({"isKnown": SCORE})), "/rules/1/code", "Repeated"),
    (ruleset(attributes=[*ATTRIBUTES, ATTRIBUTES[0]]), "/attributes/3/name", "Repeated"),
    (asking({"isKnown": {"attribute": "scores"}}), "/rules/0/condition/isKnown/attribute", "UnknownAttribute"),
    (asking({"isTrue": SCORE}), "/rules/0/condition/isTrue/attribute", "WrongKind"),
    (asking({"isKnown": {"metric": "none"}}), "/rules/0/condition/isKnown/metric", "UnknownMetric"),
    (asking({"isKnown": {"input": "amount"}}), "/rules/0/condition/isKnown/input", "InputNotAllowed"),
    (ruleset(metrics=[own("revenue_90d")]), "/metrics/0/slug", "ShadowsRegistry"),
    (ruleset(metrics=[own("a"), own("a")]), "/metrics/1/slug", "Repeated"),
    (ruleset(metrics=[own("a", "b", "1"), own("b", "a", "1")]), "/metrics/0/definition/operands", "Circle"),
    (ruleset(metrics=[own("a", "b", "1")]), "/metrics/0/definition/operands/0", "UnknownMetric"),
    # Whom it is for
    (ruleset(appliesTo={"where": reset("revenue_30d")}), "/appliesTo/where/lessThan/0/metric", "MetricNotAllowed"),
    (ruleset(mutedWhile={"isKnown": {"metric": "x"}}), "/mutedWhile/isKnown/metric", "MetricNotAllowed"),
    (ruleset(mutedWhile={"isTrue": {"attribute": "x"}}), "/mutedWhile/isTrue/attribute", "UnknownAttribute"),
    (ruleset(mutedWhile={"isTrue": {"input": "x"}}), "/mutedWhile/isTrue/input", "InputNotAllowed"),
    (ruleset(appliesTo={"where": {"all": [LOW, {"atLeast": [SCORE, "500"]}]}}), "/appliesTo/where", "NeverTrue"),
    # Baselines
    (ruleset(rule(reset()), baseline=since("start")), "/baseline/since/attribute", "UnknownAttribute"),
    (ruleset(rule(reset()), baseline=since("score")), "/baseline/since/attribute", "WrongKind"),
    (ruleset(baseline=since("loanStart", then(of="none"))), "/baseline/metrics/0/of", "UnknownMetric"),
    (ruleset(baseline=since("loanStart", then(), then())), "/baseline/metrics/1/slug", "Repeated"),
    (ruleset(baseline=since("loanStart", then("revenue_90d"))), "/baseline/metrics/0/slug", "ShadowsRegistry"),
    (ruleset(baseline=since("loanStart", then(), then("b", "then"))), "/baseline/metrics/1/of", "UnknownMetric"),
    (ruleset(metrics=[own("a")], baseline=since("loanStart", then("a"))), "/baseline/metrics/0/slug", "Repeated"),
    (
        ruleset(metrics=[own("a", "then", "1")], baseline=since("loanStart")),
        "/metrics/0/definition/operands/0",
        "BaselineInMetric",
    ),
    # Conditions
    (asking({"all": [LOW, {"atLeast": [SCORE, "500"]}]}), "/rules/0/condition", "NeverTrue"),
    (asking({"any": [LOW, {"not": LOW}]}), "/rules/0/condition", "AlwaysTrue"),
    (asking({"between": [SCORE, "2", "1"]}), "/rules/0/condition", "EmptyRange"),
    (asking({"atLeast": [{"divide": [SCORE, "0"]}, "1"]}), "/rules/0/condition/atLeast/0", "NoValue"),
    (ruleset(rule(), rule(code="SAME")), "/rules/1/condition", "RuleRepeated"),
    # Texts
    (ruleset(name="a\u202eb"), "/name", "BadText"),
    (ruleset(name="a\nb"), "/name", "BadText"),
    (ruleset(notes="a\x1bb"), "/notes", "BadText"),
    (ruleset(rule(message="a\u2066b")), "/rules/0/message", "BadText"),
    (ruleset(rule(recommendedActions=["a", "b\x7f"])), "/rules/0/recommendedActions/1", "BadText"),
    (ruleset(name="a\x00"), "/name", "BadText"),
    (ruleset(name="a\ud800"), "/name", "BadText"),
]


@pytest.mark.parametrize(("document", "pointer", "code"), UNSOUND)
def test_fault_has_its_place(document: Json, pointer: str, code: str) -> None:
    assert (pointer, code) in faults(document)


def test_each_of_these_faults_is_the_only_one_at_its_place() -> None:
    for document, pointer, _ in UNSOUND:
        assert [each for each, _ in faults(document)].count(pointer) == 1


def test_all_faults_are_reported_at_once_and_in_order() -> None:
    document = ruleset(
        rule({"isKnown": {"metric": "none"}}, "A"),
        rule({"all": [LOW, {"atLeast": [SCORE, "500"]}]}, "A"),
        severity="info",
        appliesTo={"where": {"isKnown": {"metric": "revenue_90d"}}},
        mutedWhile={"isTrue": SCORE},
        metrics=[own("days", "nothing", "1")],
        baseline=since("start", then(of="nothing")),
    )
    assert faults(document) == [
        ("/appliesTo/where/isKnown/metric", "MetricNotAllowed"),
        ("/baseline/metrics/0/of", "UnknownMetric"),
        ("/baseline/since/attribute", "UnknownAttribute"),
        ("/metrics/0/definition/operands/0", "UnknownMetric"),
        ("/mutedWhile/isTrue/attribute", "WrongKind"),
        ("/rules/0/condition/isKnown/metric", "UnknownMetric"),
        ("/rules/1/code", "Repeated"),
        ("/rules/1/condition", "NeverTrue"),
        ("/severity", "UnknownField"),
    ]


def test_messages_name_places_of_the_ruleset() -> None:
    document = ruleset(rule(), rule(), metrics=[own("a")], baseline=since("loanStart", then("b"), then("b")))
    says = {each.pointer: each.message for each in check_document(document).faults}
    assert says == {
        "/rules/1/code": "This is already used at /rules/0/code.",
        "/rules/1/condition": "This rule has the same condition as the one at /rules/0.",
        "/baseline/metrics/1/slug": "This is already used at /baseline/metrics/0/slug.",
    }


def test_codes_and_messages_do_not_mention_policies() -> None:
    for document, _, _ in UNSOUND:
        for each in check_document(document).faults:
            assert each.code.startswith("Ruleset.")
            assert "polic" not in each.message.lower()
            assert "/steps" not in each.message + each.pointer


def test_metric_that_no_rule_reads_gives_a_warning() -> None:
    document = ruleset(
        metrics=[own("used"), own("idle", "history_days", "2")], baseline=since("loanStart", then(of="used"))
    )
    found = check_document(document)
    assert found.faults == []
    assert [(each.pointer, each.code) for each in found.warnings] == [
        ("/baseline/metrics/0", "Ruleset.MetricUnread"),
        ("/metrics/1", "Ruleset.MetricUnread"),
    ]


def test_metric_with_two_slugs_gives_a_warning() -> None:
    condition = {"all": [{"lessThan": [{"metric": "a"}, {"metric": "b"}]}, reset("then"), reset("before")]}
    baseline = since("loanStart", then(), then("before"))
    found = check_document(ruleset(rule(condition), metrics=[own("a"), own("b")], baseline=baseline))
    assert [(each.pointer, each.code, each.message) for each in found.warnings] == [
        (
            "/baseline/metrics/1",
            "Ruleset.MetricRepeated",
            "This metric equals the one at /baseline/metrics/0, which has another slug.",
        ),
        ("/metrics/1", "Ruleset.MetricRepeated", "This metric equals the one at /metrics/0, which has another slug."),
    ]


def nest(depth: int) -> Json:
    condition: Json = LOW
    for _ in range(depth):
        condition = {"not": condition}
    return condition


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (asking(nest(25)), "TooDeep"),
        (ruleset(mutedWhile=nest(25)), "TooDeep"),
        (ruleset(appliesTo={"where": nest(25)}), "TooDeep"),
        (ruleset(*(rule({"all": [LOW] * 50}, f"R{n}") for n in range(50))), "TooCostly"),
        (ruleset(notes="x" * 1_000_001), "TooLarge"),
        (ruleset(appliesTo={"customers": [CUSTOMER] * 20_000}), "TooLarge"),
    ],
)
def test_too_large_document_is_refused_before_anything_is_built(document: Json, code: str) -> None:
    [(_, found)] = faults(document)
    assert found == code


def test_documented_number_of_customers_may_be_listed() -> None:
    ids = [f"00000000-0000-4000-8000-{nth:012x}" for nth in range(10_001)]
    assert faults(ruleset(appliesTo={"customers": ids[:10_000]})) == []
    assert faults(ruleset(appliesTo={"customers": ids})) == [("/appliesTo/customers", "TooMany")]


# Files, and texts of one document


def test_a_file_is_yaml_or_json() -> None:
    text = json.dumps(ruleset())
    assert check_text(text, yaml=False) == check_text(text, yaml=True) == check_document(ruleset())
    refused: CheckedRuleset = check_text("{", yaml=False)
    assert [each.code for each in refused.faults] == ["Ruleset.NotJson"]
    assert [each.code for each in check_text("a: [", yaml=True).faults] == ["Ruleset.NotYaml"]
    assert [each.code for each in check_text("a: &a 1\nb: *a", yaml=True).faults] == ["Ruleset.NoAliases"]


def test_json_numbers_of_a_request_are_numbers() -> None:
    body = json.dumps(ruleset(rule(repeatAfterDays=30))).encode()
    assert check_document(strict_json.parse(body)) == check_document(json.loads(body))


def test_equal_documents_have_one_canonical_text() -> None:
    short, long = ruleset(), ruleset(notes="", active=True, appliesTo="all", mutedWhile=None, baseline=None)
    one, other = (Ruleset.model_validate(dict(each)) for each in (short, reversed(long.items())))
    assert canonical(one) == canonical(other)
    assert fingerprint(one) != fingerprint(Ruleset.model_validate(ruleset(active=False)))
    assert check_document(json.loads(canonical(one))).ruleset == one


def test_canonical_text_is_read_back_unchanged() -> None:
    for document in SOUND:
        read = check_document(document).ruleset
        assert read is not None
        assert Ruleset.model_validate_json(canonical(read)) == read


# Anything


@pytest.mark.parametrize("seed", range(2))
def test_junk_anywhere_is_refused_or_harmless(seed: int) -> None:
    chance = random.Random(seed)
    document = drawn.ruleset(chance, "drawn", 4).document
    everywhere = [(at, junk) for at in places(document) if at for junk in JUNK]
    for at, junk in chance.sample(everywhere, min(len(everywhere), 120)):
        found = check_document(with_junk(document, at, junk))
        assert (found.ruleset is None) == bool(found.faults)


def test_faults_of_mutilated_documents_are_at_existing_places() -> None:
    chance = random.Random(5)
    for _ in range(200):
        document = copy.deepcopy(chance.choice(SOUND))
        mutilate(document, chance)
        for each in check_document(document).faults:
            at: Json = document
            *way, last = each.pointer.split("/")[1:] or [""]
            for step in way:
                at = at[int(step)] if isinstance(at, list) else at[step]
            if each.pointer and each.code != "Ruleset.Missing":
                assert (int(last) < len(at)) if isinstance(at, list) else last in at
