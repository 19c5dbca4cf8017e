"""Results of evaluations and their texts, on examples small enough to check by reading."""

from datetime import timedelta
from decimal import Decimal

import pytest

from pipelines.decisions.answer import build_trace
from pipelines.decisions.plan import plan_policy
from pipelines.decisions.policy import Policy
from pipelines.decisions.readings import Attribute
from pipelines.metrics import METRICS
from tests.pipelines.decisions.comparing import cases, rows
from tests.pipelines.decisions.drawn import NOW
from tests.pipelines.decisions.interpreter import Json
from tests.pipelines.decisions.small import Evaluation, declare, evaluation, policy, rule, step

DISHONOURS, REVENUE = METRICS["dishonours_180d"], METRICS["revenue_90d"]
LOAN = policy(
    attributes=declare(hardship="boolean", debt="decimal"),
    declaredInputs=declare(requested="decimal"),
    products=[{"slug": "loan", "name": "Loan"}, {"slug": "card", "name": "Card"}],
    steps=[
        step(
            rule({"isTrue": {"attribute": "hardship"}}, "HARDSHIP", recommendedActions=["Call them.", "File it."]),
            rule(
                {"atLeast": [{"metric": "dishonours_180d"}, "3"]}, "RETURNED", recommendedActions=["File it."], rank=1
            ),
        ),
        step(
            rule({"moreThan": [{"divide": [{"attribute": "debt"}, {"metric": "revenue_90d"}]}, "0.5"]}, "DEBT"),
            name="Careful",
            outcome="conditional",
        ),
    ],
    limits=[
        {
            "product": "loan",
            "amount": {"multiply": [{"metric": "revenue_90d"}, "0.5"]},
            "caps": [
                {"code": "ASKED", "message": "Not above what was asked for.", "value": {"input": "requested"}},
                {
                    "code": "DEBT",
                    "message": "Not above debt.",
                    "value": {"attribute": "debt"},
                    "onUnavailable": "ignore",
                },
            ],
        }
    ],
    indicators=[{"metric": "revenue_90d"}, {"metric": "dishonours_180d", "format": "decimal"}],
)
WITHOUT_STEPS = LOAN.model_copy(update={"steps": ()})
SOUND = {"dishonours_180d": Decimal(0), "revenue_90d": Decimal(50_000)}
CALM = {"hardship": Attribute(False), "debt": Attribute(Decimal(20_000))}
ASKED = {"requested": Decimal(22_000)}


def of_loan(
    metrics: dict[str, Decimal | str] | None = None,
    attributes: dict[str, Attribute] | None = None,
    requested: Decimal = ASKED["requested"],
) -> Evaluation:
    """Evaluate a customer who passes all rules, except for the given values."""
    return evaluation(LOAN, {**SOUND, **(metrics or {})}, {**CALM, **(attributes or {})}, {"requested": requested})


# The verdict


def test_blocked_customer_gets_reasons_in_order_of_rank() -> None:
    found = of_loan({"dishonours_180d": Decimal(4)}, {"hardship": Attribute(True)})
    assert found.verdict == {
        "outcome": "blocked",
        "recommendedActions": ["File it.", "Call them."],
        "reasons": [],
        "matchedRules": [
            {
                "code": "RETURNED",
                "message": "RETURNED holds.",
                "customerMessage": "We found RETURNED.",
                "metricIds": [DISHONOURS.id],
            },
            {
                "code": "HARDSHIP",
                "message": "HARDSHIP holds.",
                "customerMessage": "We found HARDSHIP.",
                "metricIds": [],
            },
        ],
        "principalReasons": ["We found RETURNED.", "We found HARDSHIP."],
    }


def test_customer_who_matches_no_step_gets_the_default_without_reasons() -> None:
    found = of_loan()
    assert found.verdict == {
        "outcome": "proceed",
        "recommendedActions": [],
        "reasons": [],
        "matchedRules": [],
        "principalReasons": [],
    }


WORDS = {"code": "TOO_LITTLE", "message": "Too little.", "customerMessage": "Your revenue is too low."}
ENOUGH = step(
    rule({"atLeast": [{"metric": "revenue_90d"}, "60000"]}, "REVENUE"),
    rule({"atMost": [{"metric": "dishonours_180d"}, "3"]}, "FEW"),
    name="Good enough",
    outcome="proceed",
    match="all",
)


def test_refusal_by_the_default_has_a_reason() -> None:
    blocking = step(rule({"atLeast": [{"metric": "overdrawn_day_share_180d"}, "0.5"]}, "OVERDRAWN"))
    reason = {**WORDS, "recommendedActions": ["Look again in three months."]}
    refusing = policy(defaultOutcome="blocked", defaultReason=reason, steps=[blocking, ENOUGH])
    found = evaluation(refusing, {**SOUND, "overdrawn_day_share_180d": Decimal(0)})
    assert found.verdict == {
        "outcome": "blocked",
        "recommendedActions": ["Look again in three months."],
        "reasons": [],
        "matchedRules": [{**WORDS, "metricIds": [REVENUE.id]}],
        "principalReasons": ["Your revenue is too low."],
    }


def test_default_reason_is_given_only_when_the_default_decides() -> None:
    refusing = policy(defaultOutcome="blocked", defaultReason=WORDS, steps=[ENOUGH])
    let_through = evaluation(refusing, {**SOUND, "revenue_90d": Decimal(90_000)}).verdict
    assert [each["code"] for each in let_through["matchedRules"]] == ["REVENUE", "FEW"]
    open_still = evaluation(refusing, {**SOUND, "revenue_90d": "stale"}).verdict
    assert (open_still["outcome"], open_still["matchedRules"]) == ("indeterminate", [])
    assert open_still["principalReasons"] == []
    without_steps = evaluation(policy(defaultOutcome="conditional", defaultReason=WORDS)).verdict
    assert without_steps["matchedRules"] == [{**WORDS, "metricIds": []}]


def test_undecided_result_lists_everything_missing_and_how_to_resolve_it() -> None:
    found = of_loan({"dishonours_180d": "insufficient_history"}, {"hardship": Attribute(None)})
    reasons = [
        {
            "code": "DecisionPolicy.AttributeUnavailable",
            "message": "Hardship is unavailable: it is not set.",
            "metricIds": [],
            "cause": "not_set",
            "name": "hardship",
            "settle": "Set the customer's attribute “Hardship” (yes or no).",
        },
        {
            "code": "DecisionPolicy.MetricUnavailable",
            "message": "Dishonours, last 180 days is unavailable: the history is too short.",
            "metricIds": [DISHONOURS.id],
            "cause": "insufficient_history",
            "name": "dishonours_180d",
            "settle": "Submit earlier transactions: 30 days are needed.",
        },
    ]
    assert found.verdict["outcome"] == "indeterminate"
    assert found.verdict["reasons"] == reasons
    assert found.verdict["matchedRules"] == found.verdict["recommendedActions"] == []
    (limit,) = found.answer["computedLimits"]
    assert limit == {"kind": "indeterminate", "productId": LOAN.products[0].id, "reasons": reasons}


def test_matched_rule_decides_although_another_is_unknown() -> None:
    found = of_loan({"dishonours_180d": "stale"}, {"hardship": Attribute(True)})
    assert found.verdict["outcome"] == "blocked"
    assert [each["code"] for each in found.verdict["matchedRules"]] == ["HARDSHIP"]
    assert found.verdict["reasons"] == []


def test_division_by_zero_has_its_own_reason() -> None:
    (reason,) = of_loan({"revenue_90d": Decimal(0)}).verdict["reasons"]
    assert reason == {
        "code": "DecisionPolicy.DivisionByZero",
        "message": "A calculation of the policy (divide) is unavailable: its divisor is zero.",
        "metricIds": [REVENUE.id],
        "cause": "division_by_zero",
        "name": None,
        "settle": "Change the policy, or the values that this one is calculated from.",
    }


def test_at_most_four_reasons_are_principal() -> None:
    held = {"isTrue": {"attribute": "x"}}
    rules = [rule(held, f"R{nth}", rank=rank) for nth, rank in enumerate((3, 100, 1, 2, 100, 1))]
    small = policy(attributes=declare(x="boolean"), steps=[step(*rules)])
    verdict = evaluation(small, attributes={"x": Attribute(True)}).verdict
    assert [each["code"] for each in verdict["matchedRules"]] == ["R2", "R5", "R3", "R0", "R1", "R4"]
    assert verdict["principalReasons"] == [f"We found {code}." for code in ("R2", "R5", "R3", "R0")]


@pytest.mark.parametrize(("on_unavailable", "codes"), [("matched", ["R"]), ("notMatched", []), ("indeterminate", [])])
def test_unknown_rule_that_counts_as_matched_is_listed(on_unavailable: str, codes: list[str]) -> None:
    asked = rule({"isTrue": {"attribute": "x"}}, onUnavailable=on_unavailable)
    found = evaluation(policy(attributes=declare(x="boolean"), steps=[step(asked)]))
    assert [each["code"] for each in found.verdict["matchedRules"]] == codes
    assert found.trace["steps"][0]["rules"][0]["condition"]["value"] is None


SETTLING = [
    ("dishonours_180d", "no_transactions", "Submit the customer's transactions."),
    ("closing_balance", "no_balances", "Submit transactions with their running balance."),
    ("revenue_monthly_mean_6m", "insufficient_history", "Submit earlier transactions: 6 complete months are needed."),
    ("fresh", "stale", "Submit the latest transactions: at most 10 days may have passed since the last."),
    ("made_of_fresh", "stale", "Submit the latest transactions: at most 10 days may have passed since the last."),
    ("made_of_fresh", "insufficient_history", "Submit earlier transactions: 90 days are needed."),
    (
        "history_days",
        "insufficient_history",
        "Submit earlier transactions: a longer history is needed.",
    ),
    (
        "fresh",
        "not_applicable",
        "Submit transactions from which the figure can be computed, or change the policy to do without it.",
    ),
]


@pytest.mark.parametrize(("slug", "cause", "settle"), SETTLING)
def test_advice_for_a_metric_follows_its_definition_and_cause(slug: str, cause: str, settle: str) -> None:
    (reason,) = evaluation(of_own(slug), {slug: cause}).verdict["reasons"]
    assert (reason["cause"], reason["settle"]) == (cause, settle)


def of_own(slug: str) -> Policy:
    """Return a policy that reads a metric, possibly one of its own."""
    definition = {"source": "metrics", "operation": "add", "operands": ["fresh", "revenue_90d"]}
    fresh = own("fresh", {"source": "history", "figure": "days"}, freshDays=10, historyDays=90)
    metrics = [fresh, own("made_of_fresh", definition, freshDays=20)]
    return policy(metrics=metrics, steps=[step(rule({"atLeast": [{"metric": slug}, "1"]}))])


def own(slug: str, definition: Json, **given: int) -> Json:
    words = {"name": slug, "meaning": slug, "unit": "days", "format": "days", "direction": "neutral"}
    return {"slug": slug, "definition": definition, **words, **given}


def test_expired_attribute_is_to_be_renewed() -> None:
    (reason,) = of_loan(attributes={"debt": Attribute(Decimal(1), NOW - timedelta(days=1))}).verdict["reasons"]
    assert reason["message"] == "Debt is unavailable: it has expired."
    assert reason["settle"] == "Renew the customer's attribute “Debt” (a number)."


def test_attribute_of_another_kind_is_to_be_set() -> None:
    (reason,) = of_loan(attributes={"debt": Attribute("12,000")}).verdict["reasons"]
    assert reason["message"] == "Debt is unavailable: the stored value is of another kind."
    assert reason["settle"] == "Set the customer's attribute “Debt” (a number)."


def test_starter_attribute_says_where_its_value_comes_from() -> None:
    asked = {"lessThan": [{"attribute": "bureau_score"}, "450"]}
    (reason,) = evaluation(policy(attributes=declare(bureau_score="decimal"), steps=[step(rule(asked))])).verdict[
        "reasons"
    ]
    assert reason["settle"].startswith(
        "Set the customer's attribute “Bureau score” (a number). Request a report from the"
    )


# Limits


def limit_of(found: Evaluation) -> Json:
    (limit,) = found.answer["computedLimits"]
    assert limit.pop("productId") == LOAN.products[0].id
    return limit


def test_capped_limit_shows_the_uncapped_amount_and_which_cap_it_was() -> None:
    assert limit_of(of_loan()) == {
        "kind": "computed",
        "amount": Decimal("20000.00"),
        "capped": True,
        "uncappedAmount": Decimal("25000.00"),
        "cappedBy": {"code": "DEBT", "message": "Not above debt."},
    }
    free = of_loan(attributes={"debt": Attribute(Decimal(25_000))}, requested=Decimal(30_000))
    assert limit_of(free) == {"kind": "computed", "amount": Decimal("25000.00"), "capped": False}


def test_blocked_customer_is_offered_zero_even_if_the_limit_is_unknown() -> None:
    found = of_loan({"revenue_90d": "stale"}, {"hardship": Attribute(True)})
    assert limit_of(found) == {"kind": "computed", "amount": Decimal(0), "capped": False}


def test_limit_may_be_indeterminate_although_the_outcome_is_known() -> None:
    found = evaluation(WITHOUT_STEPS, {**SOUND, "revenue_90d": "no_transactions"}, {}, {"requested": Decimal("1e15")})
    assert found.verdict["outcome"] == "proceed"
    (limit,) = found.answer["computedLimits"]
    assert limit["kind"] == "indeterminate"
    assert [(each["name"], each["settle"]) for each in limit["reasons"]] == [
        ("revenue_90d", "Submit the customer's transactions."),
        ("requested", "Supply another value of “Requested” (a number)."),
    ]


def test_unknown_cap_with_ignore_is_left_out() -> None:
    found = evaluation(WITHOUT_STEPS, SOUND, {}, ASKED)
    assert limit_of(found)["amount"] == Decimal("22000.00")


# What was read


def test_metrics_and_attributes_read_are_listed_with_their_source() -> None:
    overridden = Attribute(Decimal("20000.123456789"), source="overridden")
    answer = of_loan(attributes={"hardship": Attribute(None), "debt": overridden}).answer
    assert answer["attributes"] == [
        {"name": "hardship", "value": None, "source": "stored"},
        {"name": "debt", "value": Decimal("20000.123456789"), "source": "overridden"},
    ]
    assert answer["metrics"] == [
        {"metricId": DISHONOURS.id, "name": DISHONOURS.name},
        {"metricId": REVENUE.id, "name": REVENUE.name},
    ]
    assert answer["products"] == [{"productId": LOAN.products[0].id, "slug": "loan", "name": "Loan"}]


def test_unusable_attribute_is_shown_as_null() -> None:
    answer = of_loan(attributes={"debt": Attribute(Decimal(5), NOW), "hardship": Attribute("yes")}).answer
    assert [each["value"] for each in answer["attributes"]] == [None, None]


def test_unread_metrics_and_attributes_are_not_listed() -> None:
    small = policy(attributes=declare(x="boolean", y="boolean"), steps=[step(rule({"isTrue": {"attribute": "x"}}))])
    answer = evaluation(small, attributes={"x": Attribute(False), "y": Attribute(True)}).answer
    assert [each["name"] for each in answer["attributes"]] == ["x"]


def test_indicators_have_the_metrics_format_or_the_policys() -> None:
    assert of_loan().answer["indicators"] == [
        {"kind": "reading", "metricId": REVENUE.id, "value": Decimal(50_000), "format": "currency"},
        {"kind": "reading", "metricId": DISHONOURS.id, "value": Decimal(0), "format": "decimal"},
    ]


@pytest.mark.parametrize(
    ("shape", "described"), [("integer", "12346"), ("decimal", "12345.6000"), (None, "12345.6000")]
)
def test_an_indicator_in_whole_numbers_has_no_decimals(shape: str | None, described: str) -> None:
    small = policy(indicators=[{"metric": "revenue_90d", "format": shape}])
    [indicator] = evaluation(small, {"revenue_90d": Decimal("12345.6000")}).answer["indicators"]
    assert str(indicator["value"]) == described


def test_unavailable_indicator_is_left_out() -> None:
    indicators = of_loan({"revenue_90d": "stale"}).answer["indicators"]
    assert [each["metricId"] for each in indicators] == [DISHONOURS.id]


def test_indicator_that_no_rule_reads_is_computed() -> None:
    small = policy(indicators=[{"metric": "revenue_90d"}])
    assert list(plan_policy(small).metrics) == ["revenue_90d"]
    assert evaluation(small, SOUND).answer["indicators"][0]["value"] == Decimal(50_000)


def test_policys_own_metric_has_its_own_id() -> None:
    mine, theirs = of_own("fresh"), of_own("fresh").model_copy(update={"slug": "other"})
    ids = [evaluation(each, {"fresh": Decimal(1)}).answer["metrics"][0]["metricId"] for each in (mine, theirs)]
    assert len({*ids, METRICS["history_days"].id}) == 3


# The trace


def test_trace_shows_rules_with_values_and_thresholds() -> None:
    trace = of_loan({"dishonours_180d": "stale", "revenue_90d": Decimal(0)}).trace
    careful = trace["steps"][1]
    assert careful == {
        "name": "Careful",
        "outcome": "conditional",
        "match": "any",
        "matched": None,
        "rules": [
            {
                "code": "DEBT",
                "pointer": "/steps/1/rules/0",
                "counted": None,
                "condition": {
                    "operator": "moreThan",
                    "value": None,
                    "of": [
                        {
                            "operator": "divide",
                            "value": None,
                            "cause": "division_by_zero",
                            "of": [
                                {"attribute": "debt", "value": Decimal(20_000)},
                                {"metric": "revenue_90d", "value": Decimal(0)},
                            ],
                        },
                        {"constant": "0.5", "value": Decimal("0.5")},
                    ],
                },
            }
        ],
    }
    knock_outs = [each["condition"] for each in trace["steps"][0]["rules"]]
    assert knock_outs[1]["of"][0] == {"metric": "dishonours_180d", "value": None, "cause": "stale"}
    assert trace["limits"] == [
        {
            "product": "loan",
            "amount": {
                "operator": "multiply",
                "value": Decimal(0),
                "of": [{"metric": "revenue_90d", "value": Decimal(0)}, {"constant": "0.5", "value": Decimal("0.5")}],
            },
            "caps": [
                {"code": "ASKED", "value": {"input": "requested", "value": Decimal(22_000)}},
                {"code": "DEBT", "value": {"attribute": "debt", "value": Decimal(20_000)}},
            ],
            "notOffered": False,
            "limitedBy": None,
            "uncapped": None,
            "rounded": None,
            "belowMinimum": False,
            "offered": None,
        }
    ]


END = ("notOffered", "limitedBy", "uncapped", "rounded", "belowMinimum", "offered")


def end_of(limit: Json, **attributes: Decimal) -> tuple[object, ...]:
    """Return the end of a limit's trace, for a customer who proceeds."""
    small = policy(
        attributes=declare(x="decimal", y="decimal"),
        products=[{"slug": "loan", "name": "Loan"}],
        limits=[{"product": "loan", **limit}],
    )
    [traced] = evaluation(small, attributes={name: Attribute(value) for name, value in attributes.items()}).trace[
        "limits"
    ]
    return tuple(traced[name] for name in END)


def cap(code: str, value: Json | str, **given: str) -> Json:
    return {"code": code, "message": "m", "value": value, **given}


X, Y = {"attribute": "x"}, {"attribute": "y"}
CAPPED: Json = {
    "amount": X,
    "caps": [cap("WIDE", "9000"), cap("Y", Y, onUnavailable="ignore"), cap("SAME", Y, onUnavailable="ignore")],
    "roundDownTo": "100",
    "minimum": "2000",
}


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"x": "5050"}, (False, None, "5050", "5000", False, "5000")),
        ({"x": "9950"}, (False, "WIDE", "9950", "9000", False, "9000")),
        ({"x": "5050", "y": "4999"}, (False, "Y", "5050", "4900", False, "4900")),
        ({"x": "5050", "y": "5050"}, (False, None, "5050", "5000", False, "5000")),
        ({"x": "5050", "y": "1999"}, (False, "Y", "5050", "1900", True, "0")),
        ({"x": "5050", "y": "-7"}, (False, "Y", "5050", "0", True, "0")),
        ({"x": "-5"}, (False, None, "0", "0", True, "0")),
        ({}, (False, None, None, None, False, None)),
    ],
)
def test_trace_of_a_limit_ends_with_the_offered_amount(
    attributes: dict[str, str], expected: tuple[object, ...]
) -> None:
    described = (Decimal(each) if isinstance(each, str) and each[0].isdigit() else each for each in expected)
    assert end_of(CAPPED, **{name: Decimal(text) for name, text in attributes.items()}) == tuple(described)


def test_trace_says_that_a_limit_is_not_offered_for_the_outcome() -> None:
    blocked_only = CAPPED | {"outcomes": ["blocked"]}
    assert end_of(blocked_only, x=Decimal(5050)) == (True, None, None, None, False, Decimal(0))


def test_traced_limit_equals_the_engines_offer() -> None:
    seen = set()
    for case in cases(seed=65, policies=60, customers=4):
        plan = plan_policy(Policy.model_validate(case.document))
        for row in rows(plan, case).iter_rows(named=True):
            for nth, described in enumerate(build_trace(plan, row)["limits"]):
                kind = (described["notOffered"], described["limitedBy"] is not None, described["belowMinimum"])
                if described["rounded"] is not None:
                    assert row[f"amount_{nth}"] == (0 if described["belowMinimum"] else described["rounded"])
                    assert row[f"capped_{nth}"] == (described["limitedBy"] is not None)
                else:
                    assert row[f"amount_{nth}"] == (0 if described["notOffered"] else None)
                seen.add((described["rounded"] is not None, *kind))
    assert len(seen) > 4


def test_trace_shows_lists_and_bands() -> None:
    words = {"oneOf": {"of": {"attribute": "state"}, "texts": ["NSW", "VIC"]}}
    bands = {"tiers": {"of": {"attribute": "x"}, "bands": [{"below": "1", "value": "5"}], "otherwise": "7"}}
    small = policy(
        attributes=declare(state="string", x="decimal"),
        steps=[step(rule(words), rule({"atLeast": [bands, "6"]}))],
    )
    found = evaluation(small, attributes={"state": Attribute("nsw"), "x": Attribute(Decimal(1))})
    first, second = (each["condition"] for each in found.trace["steps"][0]["rules"])
    assert first == {"oneOf": ["NSW", "VIC"], "value": False, "of": [{"attribute": "state", "value": "nsw"}]}
    assert second["of"][0] == {
        "tiers": ["1"],
        "value": Decimal(7),
        "of": [
            {"attribute": "x", "value": Decimal(1)},
            {"constant": "5", "value": Decimal(5)},
            {"constant": "7", "value": Decimal(7)},
        ],
    }
