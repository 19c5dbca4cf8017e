"""Rules by words apply on their side and under their conditions; broken rules are refused when they load."""

from importlib.resources import files
from typing import Any

import polars as pl
import pytest

from pipelines.enrichment.counterparties import counterparties
from pipelines.enrichment.counterparties.patterns import (
    KEYS,
    TIERS,
    Rule,
    Rulebook,
    Tier,
    file_of,
    load_shipped,
    parse_rules,
)
from pipelines.enrichment.wording.phrases import words_of
from pipelines.vocabulary.rule_files import RuleError, load_rules

Entry = dict[str, Any]
RENT: Entry = {"category": "rent", "any": ["RENT"], "matches": ["RENT", "SHOP RENT"], "not": ["TRENT"]}
PURPOSES = ["tax_office", "rent"]


def purposes_in(texts: list[str]) -> list[str | None]:
    return ["tax_office" if "ATO" in text else None for text in texts]


def rules(*entries: Entry, tier: Tier = "decisive") -> list[Rule]:
    return parse_rules({tier: entries}, purposes_in, PURPOSES)  # pyrefly: ignore[bad-argument-type]  # a list is what the file has


def categories(text: str, direction: str, *entries: Entry, **key: str) -> list[str]:
    """Return the categories that rules give one text, in the order of trial."""
    texts = pl.DataFrame({"text": [text]}).select(words_of(pl.col("text"))).to_series()
    keys = pl.DataFrame([{"key": 0, "text_number": 0, "direction": direction, **key}], KEYS)
    return Rulebook(rules(*entries)).find_matches(texts, keys).sort("rule")["category"].to_list()


def test_the_shipped_rules_have_no_faults() -> None:
    entries = {tier: load_rules(file_of(tier)) for tier in TIERS}
    parsed = parse_rules(entries, counterparties.load().purposes_in, counterparties.list_purposes())
    assert parsed == [*load_shipped()]


def test_a_change_of_a_rule_file_is_a_line_that_a_person_can_read() -> None:
    rules = files("pipelines.enrichment").joinpath("rules")
    listed = [file for folder in ("patterns", "counterparties") for file in rules.joinpath(folder).iterdir()]
    long = [(file.name, line) for file in listed for line in file.read_text("utf-8").splitlines() if len(line) > 130]
    assert long == []


def test_rule_applies_on_the_side_of_its_category() -> None:
    assert categories("SHOP RENT", "debit", RENT) == ["rent"]
    assert categories("SHOP RENT", "credit", RENT) == []


def test_rule_may_have_another_category_on_each_side() -> None:
    both = {**RENT, "category": {"credit": "rent_received", "debit": "rent"}}
    assert categories("RENT", "credit", both) == ["rent_received"]
    assert categories("RENT", "debit", both) == ["rent"]


def test_with_and_unless_decide_too() -> None:
    beside = {**RENT, "with": ["SHOP"], "unless": ["CAR"], "matches": ["SHOP RENT", "RENT OF SHOP"], "not": ["RENT"]}
    assert categories("SHOP RENT", "debit", beside) == ["rent"]
    assert categories("RENT", "debit", beside) == []
    assert categories("SHOP CAR RENT", "debit", beside) == []


@pytest.mark.parametrize(
    ("condition", "value", "other"),
    [("of", "rent", "tax_office"), ("account", "loan", "savings"), ("kind", "person", "business")],
)
def test_condition_admits_only_its_values(condition: str, value: str, other: str) -> None:
    column = {"of": "purpose", "account": "account_type", "kind": "counterparty_kind"}[condition]
    bound = {**RENT, condition: [value]}
    if condition == "of":
        bound |= {"of": ["tax_office"], "matches": ["ATO RENT", "RENT ATO"], "not": ["RENT"]}
        value, other = other, value
    assert categories("ATO RENT", "debit", bound, **{column: value}) == ["rent"]
    assert categories("ATO RENT", "debit", bound, **{column: other}) == []
    assert categories("ATO RENT", "debit", bound) == []


def test_indicative_rules_are_less_certain_than_decisive_ones() -> None:
    assert [rule.confidence for rule in (*rules(RENT), *rules(RENT, tier="indicative"))] == [0.95, 0.85]
    assert rules({**RENT, "confidence": 0.5})[0].confidence == 0.5


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"category": "nonsense"}, "there is no category nonsense"),
        ({"side": "credit"}, "rent does not belong on the side credit"),
        ({"confidence": 1.5}, "confidence is not between 0 and 1"),
        ({"matches": ["RENT", "HIRE"]}, "does not match 'HIRE'"),
        ({"matches": ["RENT"]}, "needs two examples that match"),
        ({"not": []}, "not is not a list of texts"),
        ({"not": ["RENT DUE"]}, "matches 'RENT DUE'"),
        ({"any": "RENT"}, "any is not a list of texts"),
        ({"matches": ["RENT", 4]}, "matches is not a list of texts"),
        ({"any": ["RENT <NOTHING>"]}, "there are no spellings of NOTHING"),
        ({"any": [" ".join(["<FEE>"] * 4)]}, "has more than 1,000 spellings"),
        ({"never": ["X"]}, "there is no field never"),
        ({"of": ["landlord"]}, "there is no landlord for `of`"),
        ({"of": ["rent"]}, "does not match 'RENT'"),
        ({"account": ["shoe box"]}, "there is no shoe box for `account`"),
        ({"kind": ["landlord"]}, "there is no landlord for `kind`"),
    ],
)
def test_a_broken_rule_refuses_to_load_with_its_place_and_reason(broken: Entry, reason: str) -> None:
    with pytest.raises(RuleError) as caught:
        rules(RENT, {**RENT, **broken})
    assert reason in str(caught.value)
    assert str(caught.value).startswith("patterns/decisive.yaml, rule 2 (")


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(RuleError) as caught:
        rules({**RENT, "confidence": 2}, {"category": "rent"})
    assert [line.split(" (")[0] for line in str(caught.value).splitlines()] == [
        "patterns/decisive.yaml, rule 1",
        "patterns/decisive.yaml, rule 2",
    ]


def test_example_is_tried_with_the_engine_that_uses_the_rule() -> None:
    assert rules({**RENT, "any": ["RENT*"], "matches": ["RENTALS", "rent-0042"]})


def test_word_with_spellings_stands_for_each_of_them() -> None:
    fee = {**RENT, "category": "bank_fees", "any": ["LEDGER <FEE> ON <ACCOUNT>"], "not": ["LEDGER FEED ON ACCOUNT"]}
    assert rules({**fee, "matches": ["LEDGER FEE ON ACCOUNT", "LEDGER CHG ON A/C", "LEDGER CHARGES ON ACCT"]})
