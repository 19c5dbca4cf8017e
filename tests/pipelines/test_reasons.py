"""Each reason that can be given for a business is given for its example, and not for near misses.

The cases are data files beside the code that gives the reasons. A case is a list of rows, or a mapping of `rows`,
`attributes`, `inputs` and `history`; what a reason has beside `holds` and `not` applies to all its cases, and
`always` lists rows that all of them have. A row is `[days ago, amount, category]`; a list of days makes equal rows on
several days. It may name `balance`, `limit`, `account`, `party` (by its group), `lender` and `flags`; for findings also
`name`, `kind`, `channel`, `text` (`{day}` becomes the row's day), `number` (of the other account), `series`, `verified`
(its balance) and `times` (equal rows); for events also `by` (the source of the category). `history`: days from the
first row to today. A reason that needs a longer history is unknown, which does not count as not given.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from importlib.resources import files
from typing import Any
from uuid import UUID

import polars as pl
import pytest

from pipelines.decisions import examples
from pipelines.decisions.decision import compute_metrics
from pipelines.decisions.evaluate import evaluate_plan, rule_column
from pipelines.decisions.plan import plan_policy
from pipelines.decisions.policy import Policy
from pipelines.decisions.readings import Attribute, Value, read_leaves
from pipelines.enrichment.enrichment import derive
from pipelines.enrichment.facilities.joining import mark_facilities
from pipelines.enrichment.matching.duplicates import KNOWN
from pipelines.enrichment.reading import read_rows
from pipelines.figures.facts import Facts
from pipelines.integrity import findings, load_descriptions
from pipelines.metrics import METRICS
from pipelines.metrics.definition import Transactions, lacks_side
from pipelines.metrics.rows import is_met
from pipelines.monitoring import Ruleset, VersionedRuleset, observe_customers, plan_rulesets
from pipelines.monitoring.library import load_library
from pipelines.risk_models.event_definitions import definitions
from pipelines.risk_models.events import events
from pipelines.risk_models.readings import readings
from pipelines.scorecards.default import DEFAULT
from pipelines.vocabulary.rule_files import parse
from pipelines.vocabulary.schemas import TRANSACTIONS
from pipelines.vocabulary.taxonomy import GROUPS
from tests.pipelines.enrichment.examples import held_rows

NOW = datetime(2026, 11, 1, 3, tzinfo=UTC)
TODAY = NOW.date()
MIN_NEAR_MISSES = 3
HISTORY = 366  # days, unless a reason says otherwise: enough for every metric but those that look back further
POLICIES = {slug: Policy.model_validate(document) for slug, document in examples.load().items()}
RULESETS = {slug: Ruleset.model_validate(each.document) for slug, each in load_library().items()}
# Attributes of a customer that give no reason.
STATED: Mapping[str, Value] = {
    "loan_purpose": "stock",
    "hardship_flag": False,
    "ato_payment_plan": False,
    **dict.fromkeys(("ato_debt", "ppsr_registrations", "overdraft_limit"), Decimal(0)),
    "bas_lodged_to": Decimal(202606),
    "bureau_score": Decimal(640),
    "time_trading_months": Decimal(60),
}
ASKED: Mapping[str, Value] = {
    **dict.fromkeys(("requestedLimit", "requestedAdvance", "requestedAmount"), Decimal(10000)),
    "basDueTo": Decimal(202606),
    "existingCustomer": False,
    "holdback": Decimal("0.12"),
    "channel": "direct",
    "termMonths": Decimal(12),
}


@dataclass(frozen=True)
class Case:
    """One customer, and whether the reason is given for it."""

    reason: str
    name: str
    given: bool
    rows: tuple[list[Any], ...] = ()
    attributes: Mapping[str, Value] = field(default_factory=dict)
    inputs: Mapping[str, Value] = field(default_factory=dict)
    history: int = HISTORY


def cases(reasons: Mapping[str, Any]) -> list[Case]:
    return [case for reason, described in reasons.items() for case in _cases(reason, described)]


def _cases(reason: str, described: Mapping[str, Any]) -> Iterator[Case]:
    yield _case(reason, "holds", described, described.get("holds", []))
    for name, differs in described["not"].items():
        yield _case(reason, name, described, differs)


def _case(reason: str, name: str, described: Mapping[str, Any], differs: Any) -> Case:
    mine = differs if isinstance(differs, Mapping) else {"rows": differs}
    return Case(
        reason,
        name,
        name == "holds",
        (*described.get("always", ()), *mine.get("rows", ())),
        _values({**described.get("attributes", {}), **mine.get("attributes", {})}),
        _values({**described.get("inputs", {}), **mine.get("inputs", {})}),
        mine.get("history", described.get("history", HISTORY)),
    )


def _values(given: Mapping[str, Any]) -> Mapping[str, Value]:
    """Return the values with numbers as decimals, as policies read them."""
    return {name: value if isinstance(value, bool | str) else Decimal(str(value)) for name, value in given.items()}


def facts(of: Iterable[Case]) -> Facts:
    """Return the facts of the cases' customers, numbered from 0, with the facilities that enrichment finds."""
    rows = [row for number, case in enumerate(of) for row in _rows(number, case)]
    numbered = [{**row, "position": nth, "transaction_id": nth.to_bytes(16)} for nth, row in enumerate(rows)]
    return Facts(mark_facilities(pl.DataFrame(numbered, schema=TRANSACTIONS)).select(TRANSACTIONS.names()), TODAY)


def _rows(number: int, case: Case) -> Iterator[dict[str, Any]]:
    quiet: list[list[Any]] = [[case.history - 1, 0, "bank_fees"], [0, 0, "bank_fees"]] if case.history else []
    for days, amount, category, *more in (*quiet, *case.rows):
        details = more[0] if more else {}
        for ago in (days if isinstance(days, list) else [days]) * details.get("times", 1):
            day = TODAY - timedelta(days=ago)
            yield {
                "customer_number": number,
                "account_id": details.get("account", "cash").encode().ljust(16),
                "account_type": "credit_card" if details.get("account") == "card" else "transaction",
                "credit_limit": _money(details.get("limit")),
                "received_seq": 1,
                "since_seq": 1,
                "status": "posted",
                "date": day,
                "amount": _money(amount),
                "balance": _money(details.get("balance")),
                "category": category,
                "category_source": details.get("by", "pattern"),
                "category_group": GROUPS[category],
                "is_transfer": False,
                "counterparty_group": details.get("party"),
                "counterparty_lender_id": details.get("lender"),
                "flags": details.get("flags", []),
                "description": details.get("text", "text").replace("{day}", day.strftime("%d %b")),
                "counterparty_name": details.get("name"),
                "counterparty_kind": details.get("kind"),
                "channel": details.get("channel"),
                "other_account": details.get("number"),
                "series_id": details["series"].encode() if "series" in details else None,
                "balance_verified": details.get("verified"),
            }


def _money(number: float | None) -> Decimal | None:
    return None if number is None else Decimal(str(number))


Given = list[bool | None]  # for each case, whether its reason is given; None: unknown


def by_scorecard(of: list[Case]) -> Given:
    """Return whether each case's reading is below all points; None if it has no value."""
    features = {feature.metric: feature for feature in DEFAULT.features}
    read_of = readings(facts(of), list(features)).sort("customer_number").to_dicts()
    read_by_case = [(features[case.reason], row[case.reason]) for case, row in zip(of, read_of, strict=True)]
    return [None if value is None else each.points_of(value) < each.max_points for each, value in read_by_case]


def by_policy(slug: str, of: list[Case]) -> Given:
    """Return whether the rule of that code holds, or for the default's reason, whether the default decides."""
    plan, policy = plan_policy(POLICIES[slug]), POLICIES[slug]
    columns = {
        planned_.rule.code: pl.col(rule_column(nth, place))
        for nth, step in enumerate(plan.steps)
        for place, planned_ in enumerate(step.rules)
    }
    if policy.default_reason is not None:
        columns[policy.default_reason.code] = pl.col("step").is_null()
    shown = compute_metrics(facts(of), plan.metrics, range(len(of)))
    held = {
        number: {name: Attribute(value) for name, value in {**STATED, **case.attributes}.items()}
        for number, case in enumerate(of)
    }
    asked = [tuple((each.name, {**ASKED, **case.inputs}[each.name]) for each in policy.declared_inputs) for case in of]
    described: dict[int, bool | None] = {}
    for inputs in set(asked):  # a policy is evaluated for many customers at once, with one set of inputs
        mine = shown.filter(pl.col("customer_number").is_in([n for n, each in enumerate(asked) if each == inputs]))
        decided = evaluate_plan(plan, read_leaves(plan, mine, held, dict(inputs), NOW))
        for row in decided.with_columns(column.alias(code) for code, column in columns.items()).to_dicts():
            described[row["customer_number"]] = row[of[row["customer_number"]].reason]
    return [described[number] for number in range(len(of))]


def by_ruleset(slug: str, of: list[Case]) -> Given:
    plan = plan_rulesets([VersionedRuleset(UUID(int=1), 1, RULESETS[slug], None)])
    stated = {
        number: {name: Attribute(value) for name, value in case.attributes.items()} for number, case in enumerate(of)
    }
    outcomes = observe_customers(plan, facts(of), stated, NOW).outcomes.select("customer_number", "rule", "holds")
    holds = {(number, rule): given for number, rule, given in outcomes.iter_rows()}
    return [holds.get((number, case.reason)) for number, case in enumerate(of)]


def by_finding(of: list[Case]) -> Given:
    """Return whether the customer has the finding."""
    found = findings(facts(of)).select("customer_number", "finding")
    given = set(found.iter_rows())
    return [(number, case.reason) in given for number, case in enumerate(of)]


def by_event(of: list[Case]) -> Given:
    """Return whether the event caps the customer's rating."""
    given = set(events(facts(of)).select("customer_number", "code").iter_rows())
    return [(number, case.reason) in given for number, case in enumerate(of)]


def _data(package: str, name: str) -> Any:
    return parse(files(package).joinpath(name).read_text("utf-8"), name)


OF_SCORECARD = _data("pipelines.risk_models", "default_reasons.yaml")
OF_EVENTS = _data("pipelines.risk_models", "events_reasons.yaml")
OF_FINDINGS = _data("pipelines.integrity", "findings_reasons.yaml")
OF_POLICIES = _data("pipelines.decisions", "examples_reasons.yaml")
OF_RULESETS = _data("pipelines.monitoring", "library_reasons.yaml")


def givers() -> Iterator[Any]:
    """Yield what gives reasons: its cases by reason, the reasons that it can give, and the function that gives them."""
    yield pytest.param(OF_SCORECARD, {feature.metric for feature in DEFAULT.features}, by_scorecard, id="scorecard")
    yield pytest.param(OF_EVENTS, set(definitions()), by_event, id="events")
    yield pytest.param(OF_FINDINGS, set(load_descriptions()), by_finding, id="findings")
    for slug, policy in POLICIES.items():
        codes = {rule.code for step in policy.steps for rule in step.rules}
        default = set() if policy.default_reason is None else {policy.default_reason.code}
        yield pytest.param(OF_POLICIES.get(slug, {}), codes | default, partial(by_policy, slug), id=slug)
    for slug, ruleset in RULESETS.items():
        codes = {rule.code for rule in ruleset.rules}
        yield pytest.param(OF_RULESETS.get(slug, {}), codes, partial(by_ruleset, slug), id=slug)


@pytest.mark.parametrize(("reasons", "expected", "given"), list(givers()))
def test_a_reason_is_given_for_its_example_and_for_no_near_miss(
    reasons: Mapping[str, Any], expected: set[str], given: Callable[[list[Case]], Given], subtests: pytest.Subtests
) -> None:
    assert reasons.keys() == expected
    assert [reason for reason, described in reasons.items() if len(described["not"]) < MIN_NEAR_MISSES] == []
    all_cases = cases(reasons)
    for case, is_given in zip(all_cases, given(all_cases), strict=True):
        with subtests.test(f"{case.reason}: {case.name}"):
            assert is_given is case.given


def test_metrics_of_policies_and_rulesets_state_the_side_of_their_rows() -> None:
    """The registry refuses other metrics when it is loaded, but policies and rulesets have metrics of their own."""
    of_their_own = [metric for each in (*POLICIES.values(), *RULESETS.values()) for metric in each.metrics]
    assert [metric.slug for metric in of_their_own if lacks_side(metric.definition)] == []


def test_all_shipped_policies_and_rulesets_have_cases_and_no_others() -> None:
    assert (OF_POLICIES.keys(), OF_RULESETS.keys()) == (POLICIES.keys(), RULESETS.keys())


def test_the_tax_office_is_distinguished_from_other_creditors_by_the_text() -> None:
    described = {
        "ATO GARNISHEE NOTICE S260-5 WITHDRAWAL": True,
        "Garnishee Notice ATO s260-5 Sch 1 TAA DED": True,
        "AUSTRALIAN TAXATION OFFICE GARNISHEE": True,
        "SERVICES AUST CHILD SUPPORT GARNISHEE SEC 72A": False,
        "GARNISHEE ORDER LOCAL COURT NSW 2025/00188": False,
    }
    sent = held_rows(*({"description": text, "amount": Decimal(-900)} for text in described)).select(KNOWN.names())
    garnishees = derive(read_rows(sent))
    of_tax_office = METRICS["tax_garnishees_180d"].definition
    assert isinstance(of_tax_office, Transactions)
    assert set(garnishees["category"]) == {"garnishee"}
    by_text = garnishees.select("description", is_met(of_tax_office.where).alias("met"))
    assert dict(by_text.iter_rows()) == described


# Texts that name what a reason is about, but state something else. Amounts: money out is negative.
RESEMBLING = {
    "returned_payment": {
        "DISHONOUR FEE REVERSAL": 10,
        "REFUND DISHONOUR FEE": 10,
        "RETURN OF BOND RENTAL": 2000,
        "RETURNED OVERPAYMENT J SMITH": 100,
        "REJECTED INVOICE CREDIT NOTE": 50,
    },
    "insolvency": {
        "BANKRUPTCY SEARCH AFSA": -15,
        "AFSA BANKRUPTCY REGISTER SEARCH": -15,
        "OFFICE FURNITURE LIQUIDATORS": -900,
        "CARPET LIQUIDATORS FYSHWICK": -300,
        "LIQUIDATORS AUCTION HOUSE PURCHASE VAN": -9000,
    },
    "garnishee": {
        "GARNISHEE DEDUCTION FROM WAGES J SMITH TO SERVICES AUSTRALIA": -120,
        "CHILD SUPPORT EMPLOYEE DEDUCTIONS": -120,
        "ATTACHMENT OF EARNINGS ORDER J SMITH": -100,
    },
    "rent_received": {
        "RETURN OF BOND RENTAL": 2000,
        "RENTAL BOND REFUND UNIT 3": 900,
        "RENT BOND RELEASE J SMITH": 900,
    },
    "debt_collector": {
        "MERCANTILE HOTEL": -30,
        "SCRAP METAL RECOVERIES PTY LTD": -300,
        "CREDIT CORP BUILDING SUPPLIES": -200,
        "BAYCORP PLUMBING PTY LTD": -200,
    },
    "gambling": {"STAR ENTERTAINMENT LIGHTING": -200, "CROWN SYDNEY FLOORING": -200},
    "term_loan_repayment": {"CREDIT CORP BUILDING SUPPLIES": -200, "PROSPA TILES": -200},
}


def test_a_text_that_only_resembles_a_reason_gets_another_category(subtests: pytest.Subtests) -> None:
    texts_of_all = ChainMap(*RESEMBLING.values())
    sent = [{"description": text, "amount": Decimal(amount)} for text, amount in texts_of_all.items()]
    derived = derive(read_rows(held_rows(*sent).select(KNOWN.names())))
    found = dict(derived.select("description", "category").iter_rows())
    for category, texts in RESEMBLING.items():
        for text in texts:
            with subtests.test(text):
                assert found[text] != category
