"""The statement for a privacy policy lists personal information and automated decisions."""

from copy import deepcopy
from typing import Any

from pipelines.decisions import examples
from pipelines.decisions.authoring.statement import as_markdown, describe_automation
from pipelines.decisions.policy import Policy
from pipelines.decisions.starter import ATTRIBUTES

LOAN = examples.load()["working-capital-loan"]


def describe_policy(document: Any) -> Any:
    (policy,) = describe_automation([Policy.model_validate(document)])["policies"]
    return policy


def test_personal_information_is_declared_as_such_and_read() -> None:
    document = deepcopy(LOAN)
    document["attributes"].append({"name": "unread", "kind": "string", "personal": True})
    document["declaredInputs"][1]["personal"] = True
    assert [
        (each["name"], each["from"], each["kind"]) for each in describe_policy(document)["personalInformation"]
    ] == [
        ("bureau_score", "attribute", "decimal"),
        ("hardship_flag", "attribute", "boolean"),
        ("termMonths", "input", "decimal"),
    ]


def test_only_metrics_computed_from_transactions_are_listed() -> None:
    figures = describe_policy(LOAN)["bankTransactions"]
    assert "Dishonours, last 180 days" in figures
    assert "Median monthly receipts, 6 months" in figures
    assert "True revenue trend, 90 days" not in figures  # made of two that are named
    assert "True revenue, last 90 days" in figures


def test_automatic_decisions_are_separate_from_assisted_ones() -> None:
    stated = describe_policy(LOAN)
    alone, assisted = stated["decidedAutomatically"], stated["decidedWithAssistance"]
    assert [each.split(":")[0] for each in alone] == [
        "Not eligible",
        "Knock-outs",
        "Otherwise the application is let through.",
        "How much is offered of Working capital loan.",
    ]
    assert "refused when any of these are met" in alone[1]
    assert "Five or more dishonoured payments within 180 days." in alone[1]
    assert [each.split(":")[0] for each in assisted] == [
        "Manual review",
        "Applications that can't be decided because information is missing are left to a person.",
    ]


def test_a_default_that_refers_is_decided_by_a_person() -> None:
    stated = describe_policy(LOAN | {"defaultOutcome": "conditional"})
    assert "Otherwise the application is referred to a person." in stated["decidedWithAssistance"]
    assert not any(each.startswith("Otherwise") for each in stated["decidedAutomatically"])


def test_default_outcome_has_its_reason() -> None:
    reason = {"code": "NO", "message": "Nothing spoke for it.", "customerMessage": "We can't lend to you yet."}
    stated = describe_policy(LOAN | {"defaultOutcome": "blocked", "defaultReason": reason})
    assert "Otherwise the application is refused. Nothing spoke for it." in stated["decidedAutomatically"]


def test_markdown_has_all_sections() -> None:
    policies = [Policy.model_validate(document) for document in examples.load().values()]
    page = as_markdown(describe_automation(policies))
    assert page.count("\n## ") == 3
    assert "- bureau_score (attribute): Credit score of the guarantor." in page
    assert as_markdown(describe_automation([])) == "# Decisions made by a computer program\n"


def test_policy_without_personal_information_says_none() -> None:
    page = as_markdown(
        describe_automation([Policy.model_validate({"slug": "p", "name": "P", "defaultOutcome": "proceed"})])
    )
    assert "### Personal information that is used\n\n- None.\n" in page


def test_starter_attributes_have_documented_names_and_sources() -> None:
    assert ATTRIBUTES.keys() >= {
        *("ppsr_registrations", "bureau_score", "ato_debt", "ato_payment_plan", "bas_lodged_to"),
        *("time_trading_months", "overdraft_limit", "loan_purpose", "hardship_flag"),
    }
    assert {name for name, each in ATTRIBUTES.items() if each.personal} == {"bureau_score", "hardship_flag"}
