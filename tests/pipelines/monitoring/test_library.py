"""Every rule of the library fires as documented, not just below its threshold, and not on too little data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from typer.testing import CliRunner

from api.cli import app
from pipelines.decisions.policy import kinds_by_name
from pipelines.decisions.readings import Attribute, Value
from pipelines.decisions.starter import ATTRIBUTES
from pipelines.metrics.definition import EVERY_ROW
from pipelines.monitoring import Ruleset, VersionedRuleset, check_document, check_text, observe_customers, plan_rulesets
from pipelines.monitoring.library import load_library
from pipelines.monitoring.library.listing import as_markdown
from pipelines.vocabulary.taxonomy import GROUPS
from tests.pipelines.metrics.customers import Row, facts
from tests.root import ROOT

TODAY = date(2026, 11, 1)
NOW = datetime(2026, 11, 1, 3, tzinfo=UTC)
CUSTOMER, RULESET = 1, UUID(int=1)
LIBRARY = load_library()
RULESETS = {slug: Ruleset.model_validate(each.document) for slug, each in LIBRARY.items()}
RULES = {(slug, rule.code) for slug, ruleset in RULESETS.items() for rule in ruleset.rules}


# A customer, and the results of one ruleset


def row(ago: int, amount: str = "0", category: str = "bank_fees", **given: object) -> Row:
    """Return a posted row dated `ago` days ago."""
    return {
        "customer_number": CUSTOMER,
        "account_id": b"account".ljust(16),
        "account_type": "transaction",
        "received_seq": 1,
        "since_seq": 1,
        "status": "posted",
        "date": TODAY - timedelta(days=ago),
        "amount": Decimal(amount),
        "category": category,
        "category_group": GROUPS[category],
        "is_transfer": False,
        "flags": [],
        **given,
    }


def history(days: int) -> list[Row]:
    """Return rows without effect that extend the history from `days` days ago to today."""
    return [row(days - 1), row(0)]


def every(ages: Sequence[int], amount: str, category: str) -> list[Row]:
    return [row(ago, amount, category) for ago in ages]


def loan_row(
    ago: int, lender: str, amount: str = "-100", category: str = "term_loan_repayment", **given: object
) -> Row:
    """Return a row of a lender's facility."""
    facility = lender.encode().ljust(16)
    return row(ago, amount, category, counterparty_lender_id=lender, facility_id=facility, **given)


def returned_row(ago: int, category: str = "term_loan_repayment") -> Row:
    return loan_row(ago, "a", category=category, flags=["dishonoured"])


def evaluate_rules(slug: str, rows: Sequence[Row], **attributes: Value) -> dict[str, bool | None]:
    """Return for each rule whether it holds; empty if the customer isn't evaluated."""
    plan = plan_rulesets([VersionedRuleset(RULESET, 1, RULESETS[slug], None)])
    known = {name: Attribute(value) for name, value in attributes.items()}
    numbered = [{**each, "position": nth, "transaction_id": nth.to_bytes(16)} for nth, each in enumerate(rows)]
    outcomes = observe_customers(plan, facts(numbered, TODAY), {CUSTOMER: known}, NOW).outcomes
    return dict(outcomes.select("rule", "holds").iter_rows())


# For each rule: rows for which it holds, rows for which it just doesn't, and rows that are too few


@dataclass(frozen=True)
class Example:
    fires: list[Row]
    not_yet: Sequence[list[Row]]
    too_little: list[Row]


LOAN_START = 200  # days ago
HELD: Mapping[str, Mapping[str, Value]] = {
    "decline-since-start": {"loanStart": (TODAY - timedelta(days=LOAN_START)).isoformat()},
}


def with_balance(balance: str, outflow: str = "-3000") -> list[Row]:
    """Return rows with this balance for 30 days, and outflows of AUD 100 a day."""
    return [row(29, outflow, "suppliers", balance=Decimal(balance)), row(0, balance=Decimal(balance))]


def standing(*balances: tuple[int, str]) -> list[Row]:
    """Return rows with these balances, each with the number of days ago from which it applies."""
    return [row(ago, "0.01", "interest_received", balance=Decimal(balance)) for ago, balance in balances]


def overdrawn_for(days: int) -> list[Row]:
    return standing((29, "10"), (days - 1, "-0.01"), (0, "-0.01"))


def a_year_ago(before: str, now: str, days: int = 440) -> list[Row]:
    return [*history(days), row(400, before, "customer_transfer"), row(89, now, "customer_transfer")]


def since_start(first: int, then: Sequence[Row], now: Sequence[Row]) -> list[Row]:
    """Return rows from `first` days ago on, with a row on the loan's first day."""
    return [row(first), *then, row(LOAN_START), *now, row(0)]


def balances_since_start(then: str, now: str) -> list[Row]:
    return since_start(299, standing((299, then)), standing((LOAN_START - 1, now)))


def debt_since_start(then: str, now: str, first: int = 299) -> list[Row]:
    """Return rows with these repayments to lenders from revenue of AUD 10,000, before the loan and today."""
    paid_then, paid_now = row(220, then, "term_loan_repayment"), row(20, now, "term_loan_repayment")
    earned_then, earned_now = row(220, "10000", "customer_transfer"), row(20, "10000", "customer_transfer")
    return since_start(first, [paid_then, earned_then], [paid_now, earned_now])


def revenue_since_start(then: str, now: str, first: int = 299) -> list[Row]:
    return since_start(first, [row(210, then, "customer_transfer")], [row(89, now, "customer_transfer")])


def settlement_rows(before: str, now: str, costs: str = "-800", days: int = 105) -> list[Row]:
    """Return card settlements in the 84 days before the last 28, and in these 28, in which suppliers got `costs`."""
    usual = [row(40, before, "card_settlement"), row(40, "-3000", "suppliers")]
    return [*history(days), *usual, row(27, now, "card_settlement"), row(27, costs, "suppliers")]


def gambling_rows(share_of: str, amount: str = "-1000", days: int = 30) -> list[Row]:
    return [*history(days), row(days - 1, amount, "gambling"), row(9, share_of, "suppliers")]


def history_with_moved_money(amount: str, category: str, beside: str, days: int = 30) -> list[Row]:
    return [*history(days), row(13, amount, category), row(13, beside, "suppliers")]


TWO_RUN = [loan_row(50, "a"), loan_row(10, "a"), loan_row(40, "b"), loan_row(20, "b")]
ONE_AFTER_ANOTHER = [loan_row(50, "a"), loan_row(21, "a"), loan_row(20, "b"), loan_row(10, "b")]
RUNNING_AND_OLD = [*every(range(14, 30), "100", "card_settlement")]  # 16 days of settlements, none for 14 days

EXAMPLES: Mapping[tuple[str, str], Example] = {
    ("balance-below-buffer", "BUFFER_7_DAYS"): Example(
        with_balance("699.99"), [with_balance("700")], [row(29, "-3000", "suppliers"), row(0)]
    ),
    ("balance-below-buffer", "BUFFER_2_DAYS"): Example(
        with_balance("199.99"), [with_balance("200")], [row(28, "-3000", balance=Decimal(1)), row(0)]
    ),
    ("card-settlements-stopped", "SETTLEMENTS_STOPPED"): Example(
        [*history(65), *RUNNING_AND_OLD],
        [[*history(65), *RUNNING_AND_OLD, row(13, "1", "platform_payout")], [*history(65), *RUNNING_AND_OLD[1:]]],
        [*history(64), *RUNNING_AND_OLD],
    ),
    ("card-settlements-stopped", "SETTLEMENTS_DIVERTED"): Example(
        settlement_rows("6000", "999.99"),
        [
            settlement_rows("6000", "1000"),
            settlement_rows("5999.99", "1"),
            settlement_rows("6000", "999.99", "-799.99"),
        ],
        settlement_rows("6000", "999.99", days=104),
    ),
    ("collectors-and-limits", "COLLECTOR_PAID"): Example(
        [*history(31), row(29, "-80", "debt_collector")],
        [[*history(31), row(30, "-80", "debt_collector")]],
        [*history(24), row(9, "-80", "debt_collector")],
    ),
    ("collectors-and-limits", "OVER_LIMIT_FEE"): Example(
        [*history(31), row(29, "-15", "overdrawn_fee")],
        [[*history(31), row(30, "-15", "overdrawn_fee")]],
        [*history(24), row(9, "-15", "overdrawn_fee")],
    ),
    ("collectors-and-limits", "BEYOND_LIMIT"): Example(
        overdrawn_for(5),
        [overdrawn_for(4), [{**each, "credit_limit": Decimal(100)} for each in overdrawn_for(5)]],
        history(30),
    ),
    ("data-stale", "STALE_14_DAYS"): Example([row(15)], [[row(14)]], []),
    ("data-stale", "STALE_45_DAYS"): Example([row(46)], [[row(45)]], []),
    ("decline-since-start", "REVENUE_BELOW_START"): Example(
        revenue_since_start("20000", "14000"),
        [revenue_since_start("20000", "14000.01"), revenue_since_start("14999.99", "1")],
        revenue_since_start("20000", "14000", first=278),
    ),
    ("decline-since-start", "BALANCE_BELOW_START"): Example(
        balances_since_start("10000", "5000"),
        [balances_since_start("10000", "5000.01"), balances_since_start("4999.99", "1")],
        since_start(299, [], []),
    ),
    ("decline-since-start", "DEBT_SERVICE_ABOVE_START"): Example(
        debt_since_start("-1000", "-3001"),
        [debt_since_start("-1000", "-3000")],
        debt_since_start("-1000", "-3001", first=278),
    ),
    ("dishonour-in-7-days", "DISHONOUR"): Example(
        [*history(8), row(6, "50", "returned_payment")],
        [[*history(8), row(7, "50", "returned_payment")], [*history(8), row(6, "-10", "dishonour_fee")]],
        [*history(6), row(3, "50", "returned_payment")],
    ),
    ("dishonour-in-7-days", "DISHONOURS_REPEATED"): Example(
        [*history(31), *every((8, 15, 29), "50", "returned_payment")],
        [[*history(31), *every((8, 15, 30), "50", "returned_payment")]],
        [*history(24), *every((8, 15, 20), "50", "returned_payment")],
    ),
    ("gambling-share", "GAMBLING_SHARE"): Example(
        gambling_rows("-18900"),
        [gambling_rows("-19000"), gambling_rows("-1", "-999.99")],
        gambling_rows("-18900", days=29),
    ),
    ("gambling-share", "GAMBLING_DOUBLED"): Example(
        [*history(105), row(50, "-1500", "gambling"), row(29, "-1000.01", "gambling")],
        [
            [*history(105), row(50, "-1500", "gambling"), row(29, "-1000", "gambling")],
            [*history(105), row(29, "-999.99", "gambling")],
        ],
        [*history(104), row(50, "-1500", "gambling"), row(29, "-1000.01", "gambling")],
    ),
    ("garnishee", "GARNISHEE"): Example(
        [*history(31), row(29, "-900", "garnishee")],
        [[*history(31), row(30, "-900", "garnishee")]],
        [*history(24), row(9, "-900", "garnishee")],
    ),
    ("large-unexplained-transfer", "LARGE_UNEXPLAINED"): Example(
        history_with_moved_money("-10000", "unknown_debit", "-32857"),
        [
            history_with_moved_money("-10000", "unknown_debit", "-32858"),
            history_with_moved_money("-9999.99", "unknown_debit", "-1"),
            history_with_moved_money("-10000", "suppliers", "-1"),
        ],
        history_with_moved_money("-10000", "unknown_debit", "-1", days=29),
    ),
    ("large-unexplained-transfer", "LARGE_TO_OWNERS"): Example(
        history_with_moved_money("-10000", "owner_drawings", "-11428"),
        [
            history_with_moved_money("-10000", "owner_drawings", "-11429"),
            history_with_moved_money("-9999.99", "related_entity", "-1"),
        ],
        history_with_moved_money("-10000", "owner_drawings", "-1", days=29),
    ),
    ("missed-super", "SUPER_MISSED"): Example(
        [*history(50), row(20, "-1000", "wages")],
        [
            [*history(50), row(20, "-999.99", "wages")],
            [*history(50), row(19, "-1000", "wages")],
            [*history(50), row(20, "-1000", "wages"), row(49, "-1", "superannuation")],
        ],
        [*history(49), row(20, "-1000", "wages")],
    ),
    ("missed-super", "SUPER_SHORT"): Example(
        [*history(80), row(60, "-3000", "wages"), row(60, "-179.99", "superannuation")],
        [
            [*history(80), row(60, "-3000", "wages"), row(60, "-180", "superannuation")],
            [*history(80), row(60, "-2999.99", "wages")],
        ],
        [*history(79), row(60, "-3000", "wages")],
    ),
    ("new-lender", "NEW_LENDER"): Example(
        [*history(195), loan_row(30, "a"), loan_row(5, "a"), loan_row(29, "b")],
        [
            [*history(195), loan_row(30, "a"), loan_row(29, "a")],
            [*history(195), loan_row(30, "a"), loan_row(29, "b", category="director_loan_out")],
            [*history(195), loan_row(29, "ato", category="tax_payment_plan")],
        ],
        [*history(194), loan_row(29, "b")],
    ),
    ("new-lender", "TWO_NEW_LENDERS"): Example(
        [*history(195), loan_row(29, "b"), loan_row(3, "c", "5000", "cash_advance_funding")],
        [[*history(195), loan_row(29, "b"), loan_row(3, "b"), loan_row(30, "c"), loan_row(3, "c")]],
        [*history(194), loan_row(29, "b"), loan_row(3, "c")],
    ),
    ("new-tax-payment-plan", "PLAN_BEGUN"): Example(
        [*history(205), row(44, "-300", "tax_payment_plan")],
        [
            [*history(205), row(45, "-300", "tax_payment_plan")],
            [*history(205), row(44, "-300", "tax_payment_plan"), row(45, "-300", "tax_payment_plan")],
        ],
        [*history(204), row(44, "-300", "tax_payment_plan")],
    ),
    ("new-tax-payment-plan", "PLAN_STOPPED"): Example(
        [*history(205), *every((45, 75), "-300", "tax_payment_plan")],
        [
            [*history(205), *every((44, 75, 105), "-300", "tax_payment_plan")],
            [*history(205), *every((75,), "-300", "tax_payment_plan")],
        ],
        [*history(204), *every((45, 75), "-300", "tax_payment_plan")],
    ),
    ("own-repayment-returned", "REPAYMENT_RETURNED"): Example(
        [*history(15), returned_row(13)],
        [
            [*history(15), returned_row(14)],
            [*history(15), loan_row(13, "a")],
            [*history(15), returned_row(13, category="card_repayment")],
            [*history(15), row(13, "-100", "rent", flags=["dishonoured"])],
        ],
        [*history(13), returned_row(3)],
    ),
    ("own-repayment-returned", "REPAYMENTS_RETURNED"): Example(
        [*history(31), returned_row(29), returned_row(13)],
        [[*history(31), returned_row(30), returned_row(13)]],
        [*history(24), returned_row(20), returned_row(13)],
    ),
    ("revenue-down-on-season", "REVENUE_DOWN_30"): Example(
        a_year_ago("20000", "14000"),
        [a_year_ago("20000", "14000.01"), a_year_ago("14999.99", "1")],
        a_year_ago("20000", "14000", days=439),
    ),
    ("revenue-down-on-season", "REVENUE_DOWN_50"): Example(
        a_year_ago("20000", "10000"),
        [a_year_ago("20000", "10000.01"), a_year_ago("14999.99", "1")],
        a_year_ago("20000", "10000", days=439),
    ),
    ("stacking", "STACKED"): Example(
        [*history(60), *TWO_RUN],
        [
            [*history(60), *ONE_AFTER_ANOTHER],
            [*history(60), loan_row(50, "a"), loan_row(10, "a"), row(20, "-1", "card_repayment")],
        ],
        [*history(59), *TWO_RUN],
    ),
    ("stacking", "STACKED_DEEP"): Example(
        [*history(60), *TWO_RUN, loan_row(30, "c")],
        [[*history(60), *TWO_RUN, loan_row(51, "c")]],
        [*history(59), *TWO_RUN, loan_row(30, "c")],
    ),
    ("stacking", "FUNDED_BESIDE"): Example(
        [*history(60), loan_row(50, "a"), loan_row(5, "a"), loan_row(29, "b", "1000", "term_loan_funding")],
        [
            [*history(60), loan_row(50, "a"), loan_row(5, "a"), loan_row(29, "b", "999.99", "term_loan_funding")],
            [*history(60), loan_row(50, "a"), loan_row(5, "a"), loan_row(30, "b", "1000", "term_loan_funding")],
            [*history(60), loan_row(50, "a"), loan_row(30, "a"), loan_row(29, "b", "1000", "term_loan_funding")],
        ],
        [*history(59), loan_row(50, "a"), loan_row(5, "a"), loan_row(29, "b", "1000", "term_loan_funding")],
    ),
    ("tax-arrears", "TAX_INTEREST"): Example(
        [*history(91), row(89, "-20", "tax_interest")],
        [[*history(91), row(90, "-20", "tax_interest")], [*history(91), row(89, "20", "tax_interest")]],
        [*history(29), row(9, "-20", "tax_interest")],
    ),
    ("tax-arrears", "BAS_UNPAID"): Example(
        [*history(320), *every((140, 240), "-2000", "bas")],
        [
            [*history(320), *every((139, 140, 240), "-2000", "bas")],
            [*history(320), *every((140,), "-2000", "bas"), row(240, "2000", "tax_refund")],
        ],
        [*history(319), *every((140, 240), "-2000", "bas")],
    ),
}
BY_RULE = pytest.mark.parametrize(("slug", "code"), sorted(EXAMPLES), ids=lambda each: each)


def outcome(slug: str, code: str, rows: Sequence[Row]) -> bool | None:
    return evaluate_rules(slug, rows, **HELD.get(slug, {}))[code]


def test_every_rule_has_its_examples() -> None:
    assert EXAMPLES.keys() == RULES


@BY_RULE
def test_rule_fires_for_its_example(slug: str, code: str) -> None:
    assert outcome(slug, code, EXAMPLES[slug, code].fires) is True


@BY_RULE
def test_rule_does_not_fire_just_below_its_threshold(slug: str, code: str) -> None:
    assert {outcome(slug, code, rows) for rows in EXAMPLES[slug, code].not_yet} == {False}


@BY_RULE
def test_rule_is_unknown_on_too_little_data(slug: str, code: str) -> None:
    assert outcome(slug, code, EXAMPLES[slug, code].too_little) is None


@BY_RULE
def test_customers_in_hardship_are_not_evaluated(slug: str, code: str) -> None:
    rows, held = EXAMPLES[slug, code].fires, HELD.get(slug, {})
    assert evaluate_rules(slug, rows, **held, hardship_flag=True) == {}
    assert evaluate_rules(slug, rows, **held, hardship_flag=False)[code] is True


AGEING = {(slug, code) for slug, code in RULES if slug not in {"data-stale", "revenue-down-on-season"}} - {
    ("decline-since-start", code) for _, code in RULES
}


@pytest.mark.parametrize(("slug", "code"), sorted(AGEING), ids=lambda each: each)
def test_rule_does_not_fire_on_stale_data(slug: str, code: str) -> None:
    """Windows end at the last row, whenever that was: half-year-old rows must not fire a rule today."""
    old = [{**each, "date": each["date"] - timedelta(days=180)} for each in EXAMPLES[slug, code].fires]
    assert outcome(slug, code, old) is None


def test_customers_without_a_start_day_are_not_compared_with_it() -> None:
    rows = EXAMPLES["decline-since-start", "REVENUE_BELOW_START"].fires
    assert evaluate_rules("decline-since-start", rows) == {}
    unread = evaluate_rules("decline-since-start", rows, loanStart="some day")
    assert set(unread.values()) == {None}


# The documents


@pytest.mark.parametrize("slug", sorted(LIBRARY))
def test_document_has_no_faults_and_is_inactive(slug: str) -> None:
    for found in (check_text(LIBRARY[slug].text, yaml=True), check_document(LIBRARY[slug].document)):
        assert (found.faults, found.warnings) == ([], [])
        assert found.ruleset == RULESETS[slug]
    assert RULESETS[slug].active is False


@pytest.mark.parametrize("slug", sorted(LIBRARY))
def test_document_has_reasons_and_recommended_actions(slug: str) -> None:
    ruleset = RULESETS[slug]
    about, why, limits = ruleset.notes.split("\n")
    assert about == LIBRARY[slug].about
    assert limits.startswith("Limits: ")
    assert len(why) > 100
    for rule in ruleset.rules:
        assert rule.recommended_actions
        assert rule.message.endswith(".")


@pytest.mark.parametrize("slug", sorted(LIBRARY))
def test_the_file_is_named_after_the_ruleset(slug: str) -> None:
    folder = ROOT / "pipelines" / "monitoring" / "library"
    assert (folder / f"{slug}.yaml").read_text("utf-8") == LIBRARY[slug].text


@pytest.mark.parametrize("slug", sorted(LIBRARY))
def test_no_rule_reads_a_personal_characteristic(slug: str) -> None:
    """Rows are selected by their purpose, and the only attributes are the loan's start and hardship."""
    ruleset = RULESETS[slug]
    asked = {"hardship_flag": "boolean", "loanStart": "string"}
    assert kinds_by_name(ruleset.attributes).items() <= asked.items()
    assert ruleset.muted_while is not None
    assert ruleset.muted_while.model_dump(by_alias=True) == {"isTrue": {"attribute": "hardship_flag"}}
    assert "hardship_flag" not in str([rule.condition for rule in ruleset.rules])
    wheres = [getattr(metric.definition, "where", EVERY_ROW) for metric in ruleset.metrics]
    assert not any(where.counterparty_kinds for where in wheres)


def test_rulesets_and_policies_read_the_same_hardship_attribute() -> None:
    """Policies and rulesets use the same attribute, so a customer in hardship is exempt from both."""
    known = ATTRIBUTES["hardship_flag"]
    for ruleset in RULESETS.values():
        [declared] = [each for each in ruleset.attributes if each.name == "hardship_flag"]
        assert (declared.kind, declared.personal) == (known.kind, known.personal)


def test_all_rulesets_can_be_planned_together() -> None:
    versions = [VersionedRuleset(UUID(int=nth), 1, ruleset, None) for nth, ruleset in enumerate(RULESETS.values(), 1)]
    rows: list[dict[str, Any]] = [{**each, "transaction_id": bytes(16)} for each in history(600)]
    described = observe_customers(
        plan_rulesets(versions), facts(rows, TODAY), {CUSTOMER: {"loanStart": Attribute("2026-01-01")}}, NOW
    )
    assert described.outcomes.height == len(RULES)
    assert not described.outcomes["holds"].any()


def test_documentation_is_current() -> None:
    printed = CliRunner().invoke(app, ["rulesets", "library", "--markdown"]).stdout
    file = ROOT / "docs" / "reference" / "monitoring-library.md"
    assert printed == as_markdown(LIBRARY) == file.read_text("utf-8"), "run `make generated`"
    for slug, code in RULES:
        assert f"(#{slug})" in printed
        assert f"| `{code}` |" in printed
