from typing import Any

import pytest

from pipelines.enrich.patterns import Counterparty, checked, load
from pipelines.enrich.taxonomy import RuleError

Entry = dict[str, Any]
RENT: Entry = {"category": "rent", "pattern": r"\bRENT\b", "matches": ["RENT", "SHOP RENT"], "not": ["TRENT"]}


def test_a_rule_concludes_on_the_side_of_its_category() -> None:
    (rule,) = checked([RENT])
    assert (rule.sign, rule.category.slug, rule.counterparty, rule.confidence) == ("debit", "rent", None, 0.85)


def test_a_rule_may_conclude_differently_on_each_side() -> None:
    rules = checked([{**RENT, "category": {"credit": "rent_received", "debit": "rent"}}])
    assert [(rule.sign, rule.category.slug) for rule in rules] == [("credit", "rent_received"), ("debit", "rent")]


def test_a_named_counterparty_is_more_certain_than_words() -> None:
    (rule,) = checked([{**RENT, "of": {"name": "Stockland", "kind": "business"}}])
    assert rule.counterparty == Counterparty("Stockland", "business")
    assert rule.confidence == 0.95


def test_a_rule_that_is_less_sure_says_so() -> None:
    assert checked([{**RENT, "confidence": 0.5}])[0].confidence == 0.5


def test_long_numbers_read_as_zeros_in_examples_too() -> None:
    assert checked([{**RENT, "pattern": "RENT 0000$", "matches": ["RENT 123456", "RENT 4321"]}])


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"category": "nonsense"}, "there is no category nonsense"),
        ({"sign": "credit"}, "rent does not belong on the side credit"),
        ({"confidence": 1.5}, "confidence is not between 0 and 1"),
        ({"matches": ["RENT", "HIRE"]}, "does not match 'HIRE'"),
        ({"matches": ["RENT"]}, "needs two examples that match"),
        ({"not": []}, "one that does not"),
        ({"not": ["RENT DUE"]}, "matches 'RENT DUE'"),
        ({"pattern": "("}, "can't be tried"),
        ({"matches": ["RENT", 4]}, "can't be tried"),
        ({"never": ["X"]}, "missing or unknown: never"),
        ({"of": {"name": "Stockland"}}, "`of` takes name, kind and lender_id"),
        ({"of": {"name": "Stockland", "kind": "landlord"}}, "there is no kind landlord"),
        ({"of": {"name": "Prospa", "kind": "lender"}}, "a lender has a lender_id"),
    ],
)
def test_a_broken_rule_refuses_to_load_with_its_place_and_reason(broken: Entry, reason: str) -> None:
    with pytest.raises(RuleError) as caught:
        checked([RENT, {**RENT, **broken}])
    assert reason in str(caught.value)
    assert str(caught.value).startswith("patterns.yaml, rule 2 (")


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(RuleError) as caught:
        checked([{**RENT, "not": ["RENT"]}, {"category": "rent"}])
    assert [line.split(" (")[0] for line in str(caught.value).splitlines()] == [
        "patterns.yaml, rule 1",
        "patterns.yaml, rule 2",
    ]


def test_one_lender_has_one_name() -> None:
    lenders = {rule.counterparty for rule in load() if rule.counterparty and rule.counterparty.lender_id}
    assert len({lender.lender_id for lender in lenders}) == len(lenders)
