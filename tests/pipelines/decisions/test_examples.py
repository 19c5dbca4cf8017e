"""The three examples and the one in the documentation decide as described."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipelines.decisions import check, examples
from pipelines.decisions.plan import plan_policy
from pipelines.decisions.policy import Policy
from pipelines.decisions.readings import Attribute, Value
from pipelines.decisions.starter import ATTRIBUTES
from pipelines.metrics.outcome import INSUFFICIENT_HISTORY
from tests.pipelines.decisions.small import Evaluation, evaluation
from tests.root import ROOT

Json = Any

PAGE = (ROOT / "docs" / "how-to" / "policies.md").read_text("utf-8")
DOCUMENTS = examples.load()
POLICIES = {slug: Policy.model_validate(document) for slug, document in DOCUMENTS.items()}


@pytest.mark.parametrize("name", sorted(examples.texts()))
def test_example_has_no_faults_and_no_warnings(name: str) -> None:
    checked = check.check_text(examples.texts()[name], yaml=True)
    assert (checked.faults, checked.warnings) == ([], [])
    assert checked.policy is not None
    assert name == f"{checked.policy.slug}.yaml"


def test_examples_together_use_every_feature() -> None:
    assert sorted(DOCUMENTS) == ["line-of-credit", "merchant-cash-advance", "working-capital-loan"]
    operators = {node.operator for policy in POLICIES.values() for node in plan_policy(policy).nodes.values()}
    assert operators >= {"tiers", "min", "multiply", "divide", "subtract", "between", "one_of", "is_true", "not", "all"}
    assert operators >= {"metric", "attribute", "input", "constant", "at_least", "more_than", "less_than", "equals"}
    assert {step.match for policy in POLICIES.values() for step in policy.steps} == {"any", "all"}
    assert {each.kind for policy in POLICIES.values() for each in policy.declared_inputs} == {
        "decimal",
        "string",
        "boolean",
    }


@pytest.mark.parametrize("slug", sorted(DOCUMENTS))
def test_examples_read_attributes_of_the_starter_set(slug: str) -> None:
    policy = POLICIES[slug]
    for each in policy.attributes:
        assert (each.kind, each.personal) == (ATTRIBUTES[each.name].kind, ATTRIBUTES[each.name].personal)
    assert sorted(plan_policy(policy).labels("attribute")) == sorted(each.name for each in policy.attributes)
    assert sorted(plan_policy(policy).labels("input")) == sorted(each.name for each in policy.declared_inputs)


def test_every_starter_attribute_is_used_by_an_example() -> None:
    assert {each.name for policy in POLICIES.values() for each in policy.attributes} == ATTRIBUTES.keys()


# Each example for a customer who passes, and what changes with one thing about them


def values(**given: str | bool) -> Mapping[str, Value]:
    return {name: Decimal(value) if re.fullmatch(r"-?[\d.]+", str(value)) else value for name, value in given.items()}


GOOD: Mapping[str, Mapping[str, Mapping[str, Value]]] = {
    "working-capital-loan": {
        "metrics": values(
            insolvency_rows_365d="0",
            dishonours_180d="1",
            lenders_repaid_45d="1",
            debt_service_to_true_revenue_180d="0.12",
            true_revenue_trend_90d="1.02",
            income_concentration_180d="0.3",
            median_monthly_receipts_6m="41250.40",
            true_revenue_monthly_mean_6m="40000",
            buffer_days_180d="21",
        ),
        "attributes": values(
            loan_purpose="stock",
            bureau_score="640",
            ato_debt="0",
            ato_payment_plan=False,
            time_trading_months="60",
            hardship_flag=False,
        ),
        "inputs": values(requestedAmount="80000", termMonths="12"),
    },
    "line-of-credit": {
        "metrics": values(
            insolvency_rows_365d="0",
            dishonours_90d="0",
            overdrawn_day_share_180d="0.01",
            balance_swing_180d="9000",
            true_revenue_30d="30000",
            true_revenue_monthly_mean_3m="31000",
            seen_debt_service_180d="6000",
            debt_cover_180d="1.25",
            mean_balance_90d="12345.67",
            days_behind="2",
        ),
        "attributes": values(
            loan_purpose="stock",
            ppsr_registrations="1",
            bas_lodged_to="202606",
            overdraft_limit="40000",
            hardship_flag=False,
        ),
        "inputs": values(requestedLimit="50000", basDueTo="202606", existingCustomer=False),
    },
    "merchant-cash-advance": {
        "metrics": values(
            insolvency_rows_365d="0",
            days_since_true_revenue="1",
            card_takings_90d="60000",
            card_takings_monthly="20000",
            stacked_running_180d="2",
            advance_repayments_90d="0",
            advance_repayments_45d="0",
            true_revenue_trend_90d="0.9",
            interest_and_fees_180d="800",
            card_takings_share_180d="0.7",
        ),
        "attributes": values(loan_purpose="wages", time_trading_months="18", ato_debt="3000", hardship_flag=False),
        "inputs": values(requestedAdvance="30000", holdback="0.12", channel="broker"),
    },
}


def evaluate_example(slug: str, **changed: Value | str | None) -> Evaluation:
    """Evaluate the good customer with other values; None removes an attribute, or a metric's history."""
    given = {sort: dict(its) for sort, its in GOOD[slug].items()}
    for name, value in changed.items():
        sort = next(sort for sort, its in given.items() if name in its)
        gone: Any = INSUFFICIENT_HISTORY if sort == "metrics" else None
        given[sort][name] = gone if value is None else values(it=value)["it"]  # pyrefly: ignore[bad-argument-type]
    held = {name: Attribute(value) for name, value in given["attributes"].items()}
    return evaluation(POLICIES[slug], given["metrics"], held, given["inputs"])  # pyrefly: ignore[bad-argument-type]


def summarise_evaluation(of: Evaluation) -> tuple[str, list[str], list[str | None]]:
    """Return the outcome, the codes of matched rules or missing values, and the amounts."""
    verdict = of.verdict
    codes = [each["code"] for each in verdict["matchedRules"]] or [str(each["name"]) for each in verdict["reasons"]]
    amounts = [str(each["amount"]) if each["kind"] == "computed" else None for each in of.answer["computedLimits"]]
    return verdict["outcome"], codes, amounts


LOAN, LINE, ADVANCE = "working-capital-loan", "line-of-credit", "merchant-cash-advance"


@pytest.mark.parametrize(
    ("slug", "changed", "outcome", "codes", "amounts"),
    [
        # 1.5 × 41,250.40 = 61,875.60; 40,000 × 0.15 × 12 = 72,000
        (LOAN, {}, "proceed", [], ["61500.00"]),
        (LOAN, {"bureau_score": "700"}, "proceed", [], ["72000.00"]),
        (LOAN, {"bureau_score": "549.99"}, "proceed", [], ["41000.00"]),
        (LOAN, {"termMonths": "3"}, "proceed", [], ["18000.00"]),
        (LOAN, {"time_trading_months": "23"}, "proceed", [], ["50000.00"]),
        (LOAN, {"requestedAmount": "4999"}, "proceed", [], ["0.00"]),
        (LOAN, {"true_revenue_monthly_mean_6m": None}, "proceed", [], [None]),
        (LOAN, {"loan_purpose": "household", "dishonours_180d": "9"}, "blocked", ["CONSUMER_PURPOSE"], ["0.00"]),
        (
            LOAN,
            {"time_trading_months": "11", "dishonours_180d": "5"},
            "blocked",
            ["DISHONOURS", "TRADING_TOO_SHORT"],
            ["0.00"],
        ),
        (LOAN, {"ato_debt": "50000.01"}, "blocked", ["TAX_DEBT"], ["0.00"]),
        (LOAN, {"ato_debt": "50000.01", "ato_payment_plan": True}, "conditional", ["TAX_PLAN"], ["61500.00"]),
        (LOAN, {"requestedAmount": "123751.20"}, "proceed", [], ["61500.00"]),
        (LOAN, {"requestedAmount": "123751.21"}, "conditional", ["LARGE_REQUEST"], ["61500.00"]),
        (LOAN, {"hardship_flag": None}, "indeterminate", ["hardship_flag"], [None]),
        (
            LOAN,
            {"dishonours_180d": None, "bureau_score": None},
            "indeterminate",
            ["dishonours_180d", "bureau_score"],
            [None],
        ),
        (LOAN, {"dishonours_180d": None, "bureau_score": "400"}, "blocked", ["BUREAU_SCORE"], ["0.00"]),
        # 0.8 × 31,000 = 24,800; 2 × 31,000 − 40,000 = 22,000; the mean balance is 12,345.67
        (LINE, {}, "proceed", [], ["22000.00", "10000.00"]),
        (LINE, {"overdraft_limit": "0"}, "proceed", [], ["24000.00", "10000.00"]),
        (LINE, {"overdraft_limit": "70000"}, "proceed", [], ["0.00", "10000.00"]),
        (LINE, {"mean_balance_90d": "999.99"}, "proceed", [], ["22000.00", "0.00"]),
        (LINE, {"bas_lodged_to": "202603"}, "conditional", ["BAS_LATE"], ["0.00", "10000.00"]),
        (LINE, {"balance_swing_180d": "30000.01"}, "conditional", ["NEW_AND_SWINGING"], ["0.00", "10000.00"]),
        (LINE, {"balance_swing_180d": "30000.01", "existingCustomer": True}, "proceed", [], ["22000.00", "10000.00"]),
        (LINE, {"debt_cover_180d": "1.2499"}, "blocked", ["NOT_GOOD_ENOUGH"], ["0.00", "0.00"]),
        (LINE, {"debt_cover_180d": None}, "indeterminate", ["debt_cover_180d"], [None, None]),
        (LINE, {"debt_cover_180d": None, "seen_debt_service_180d": "0"}, "proceed", [], ["22000.00", "10000.00"]),
        (LINE, {"overdraft_limit": None}, "proceed", [], [None, "10000.00"]),
        # 1.25 × 20,000 = 25,000; 20,000 × 0.12 × 9 = 21,600
        (ADVANCE, {}, "proceed", [], ["21600.00"]),
        (ADVANCE, {"holdback": "0.2"}, "proceed", [], ["25000.00"]),
        (ADVANCE, {"holdback": "0.21"}, "conditional", ["HOLDBACK_UNUSUAL"], ["25000.00"]),
        (ADVANCE, {"advance_repayments_45d": "6000"}, "blocked", ["STACKED"], ["0.00"]),
        (ADVANCE, {"advance_repayments_90d": "12000", "stacked_running_180d": "1"}, "proceed", [], ["21000.00"]),
        (ADVANCE, {"interest_and_fees_180d": "5000.01"}, "conditional", ["BROKERED"], ["21600.00"]),
        (ADVANCE, {"interest_and_fees_180d": "5000.01", "channel": "direct"}, "proceed", [], ["21600.00"]),
        (ADVANCE, {"ato_debt": "20000.01"}, "conditional", ["TAX_DEBT"], ["21600.00"]),
        (
            ADVANCE,
            {"days_since_true_revenue": "15", "card_takings_monthly": "4999"},
            "blocked",
            ["NO_RECENT_TAKINGS", "TAKINGS_TOO_LOW"],
            ["0.00"],
        ),
        (ADVANCE, {"loan_purpose": None}, "indeterminate", ["loan_purpose"], [None]),
    ],
)
def test_example_decides_as_described(
    slug: str, changed: Mapping[str, Any], outcome: str, codes: list[str], amounts: list[str | None]
) -> None:
    met = ["REVENUE", "COVER"] if slug == LINE and outcome == "proceed" else codes
    assert summarise_evaluation(evaluate_example(slug, **changed)) == (outcome, met, amounts)


@pytest.mark.parametrize("slug", sorted(DOCUMENTS))
def test_no_example_lends_to_a_business_that_pays_for_its_insolvency(slug: str) -> None:
    assert summarise_evaluation(evaluate_example(slug, insolvency_rows_365d="1"))[:2] == (
        "blocked",
        ["INSOLVENCY_PAYMENTS"],
    )


# The page


def on_the_page() -> list[Policy]:
    """Return the documentation's worked example, and the one with its own metrics."""
    found = [check.check_text(text, yaml=True) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
    assert [(each.faults, each.warnings) for each in found] == [([], []), ([], [])]
    return [each.policy for each in found if each.policy is not None]


def customers_on_the_page() -> Iterator[dict[str, str]]:
    header, _, *rows = re.findall(r"^\|.*\|$", PAGE.split("Five customers")[1].split("## Values")[0], re.MULTILINE)
    names = [cell.strip() for cell in header.strip("|").split("|")]
    for row in rows:
        yield dict(zip(names, (cell.strip() for cell in row.strip("|").split("|")), strict=True))


@pytest.mark.parametrize("customer", list(customers_on_the_page()), ids=lambda customer: customer[""])
def test_documented_results_equal_the_programs(customer: Mapping[str, str]) -> None:
    known = {
        name: INSUFFICIENT_HISTORY if value == "—" else Decimal(value)
        for name, value in customer.items()
        if name.endswith("d")
    }
    held = {} if customer["bureau_score"] == "—" else {"bureau_score": Attribute(Decimal(customer["bureau_score"]))}
    inputs = {"requestedAmount": Decimal(30000)}
    outcome, _, (amount,) = summarise_evaluation(evaluation(on_the_page()[0], known, held, inputs))
    expected = None if customer["offered"] == "—" else f"{customer['offered']}.00"
    assert (outcome, amount) == (customer["outcome"], expected)


def test_documentation_shows_a_policys_own_metrics() -> None:
    shop = on_the_page()[1]
    known = {"rent_90d": Decimal(9000), "rent_share_90d": Decimal("0.4"), "revenue_90d": Decimal("99999.99")}
    shop_inputs = values(purpose="equipment", requestedAmount="30000")
    found = evaluation(shop, known, {}, shop_inputs)
    assert summarise_evaluation(found) == ("conditional", ["RENT"], ["9999.99"])
    assert [(each["value"], each["format"]) for each in found.answer["indicators"]] == [
        (Decimal("0.4"), "percent"),
        (Decimal(9000), "integer"),
    ]


def test_documentation_has_five_customers_and_every_starter_attribute() -> None:
    assert len(list(customers_on_the_page())) == 5
    for each in ATTRIBUTES.values():
        assert f"| `{each.name}` | {each.kind} | {each.meaning}{' Personal.' * each.personal} |" in PAGE


def test_every_warning_is_documented() -> None:
    source = Path(check.__file__).parent
    texts = [(source / f"{name}.py").read_text("utf-8") for name in ("leniency", "__init__")]
    codes = set(re.findall(r'"((?:Lenient|Rule|Product|Step)\w+)"', "".join(texts)))
    assert codes >= {"LenientCap", "ProductWithoutLimit", "StepNeverReached"}
    for code in {*codes, "RuleIdle"}:
        assert f"| {code} |" in PAGE
