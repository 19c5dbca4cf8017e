"""A comparison of two versions agrees with a loop over the customers in plain Python; parts add up to the whole."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipelines.decisions import backtest
from pipelines.decisions.answer import build_answer
from pipelines.decisions.backtest import TALLIES, UP_TO, Side, compare, decide, merge
from pipelines.decisions.backtest.coverage import describe_coverage
from pipelines.decisions.backtest.result import describe_days
from pipelines.decisions.evaluate import evaluate_plan
from pipelines.decisions.plan import Plan, plan_policy
from pipelines.decisions.policy import Policy
from pipelines.decisions.readings import read_leaves
from pipelines.decisions.unsettled import find_missing
from pipelines.figures.tallies import Tallies
from pipelines.metrics import cause_of
from pipelines.metrics.outcome import VALUE

AS_OF = date(2026, 6, 30)
NOW = datetime(2026, 6, 30, tzinfo=UTC)
METRICS = ("months_of_history", "dishonours_180d", "revenue_90d")


def rule(code: str, condition: object, **more: object) -> dict[str, object]:
    return {"code": code, "message": code, "customerMessage": code, "condition": condition, **more}


def step(name: str, outcome: str, *rules: object, match: str = "any") -> dict[str, object]:
    return {"name": name, "outcome": outcome, "match": match, "rules": list(rules)}


SHORT = rule("SHORT", {"lessThan": [{"metric": "months_of_history"}, "6"]})
DISHONOURS = rule("DISHONOURS", {"atLeast": [{"metric": "dishonours_180d"}, "3"]})
LARGE = rule(
    "LARGE",
    {"atLeast": [{"divide": [{"metric": "revenue_90d"}, {"metric": "dishonours_180d"}]}, "4000"]},
)
STEADY = rule("STEADY", {"atLeast": [{"metric": "months_of_history"}, "12"]})
TIERED = {
    "tiers": {
        "of": {"metric": "months_of_history"},
        "bands": [{"below": "8", "value": {"metric": "dishonours_180d"}}],
        "otherwise": {"metric": "revenue_90d"},
    }
}


def policy(steps: Sequence[object], limits: Sequence[object], default: str = "conditional") -> Plan:
    document = {
        "slug": "loan",
        "name": "Loan",
        "defaultOutcome": default,
        "products": [{"slug": "loan", "name": "Loan"}, {"slug": "card", "name": "Card"}],
        "steps": steps,
        "limits": limits,
    }
    return plan_policy(Policy.model_validate(document))


LOAN = {"product": "loan", "amount": {"multiply": [{"metric": "revenue_90d"}, "1.5"]}, "roundDownTo": "100"}
BEFORE = policy([step("Knock-outs", "blocked", SHORT, DISHONOURS), step("Good", "proceed", LARGE, STEADY)], [LOAN])
AFTER = policy(
    [
        step("Knock-outs", "blocked", rule("SHORT", {"lessThan": [{"metric": "months_of_history"}, "4"]})),
        step("Returned", "conditional", DISHONOURS),
        step("Good", "proceed", LARGE, STEADY, match="all"),
    ],
    [{**LOAN, "caps": [{"code": "CAP", "message": "Cap.", "value": TIERED}]}, {"product": "card", "amount": "5000"}],
    default="blocked",
)


def readings(customers: int, seed: int) -> pl.DataFrame:
    random = Random(seed)

    def values(values: Sequence[str]) -> list[Decimal | None]:
        return [None if random.random() < 0.15 else Decimal(random.choice(values)) for _ in range(customers)]

    columns = {
        "months_of_history": values(["2", "5", "7", "12", "20"]),
        "dishonours_180d": values(["0", "1", "3"]),
        "revenue_90d": values(["0", "900.55", "5000", "40000", "900000"]),
    }
    kinds = {"customer_number": pl.Int64(), **dict.fromkeys(columns, VALUE)}
    frame = pl.DataFrame({"customer_number": range(1, customers + 1), **columns}, schema=kinds)
    return frame.with_columns(
        pl.when(pl.col(name).is_null()).then(pl.lit("stale")).alias(cause_of(name)) for name in METRICS
    )


def sides(metrics: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    return tuple(evaluate_plan(plan, read_leaves(plan, metrics, {}, {}, NOW)) for plan in (BEFORE, AFTER))  # pyrefly: ignore[bad-return]


def outcomes(customers: int, seed: int = 3) -> pl.DataFrame:
    random = Random(seed)
    known = {number: random.random() < 0.2 for number in range(1, customers + 1) if random.random() < 0.6}
    return pl.DataFrame(
        {"customer_number": list(known), "defaulted": list(known.values())}, schema=backtest.KNOWN_OUTCOMES
    )


def rows_by_key(frame: pl.DataFrame, by: Sequence[str]) -> dict[tuple[Any, ...], Any]:
    rest = [name for name in frame.columns if name not in by and name != "as_of"]
    return {tuple(row[name] for name in by): tuple(row[name] for name in rest) for row in frame.to_dicts()}


@pytest.fixture(scope="module")
def metrics() -> pl.DataFrame:
    return readings(400, seed=1)


@pytest.fixture(scope="module")
def frames(metrics: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    return sides(metrics)


@pytest.fixture(scope="module")
def whole(frames: tuple[pl.DataFrame, pl.DataFrame]) -> tuple[pl.DataFrame, Tallies]:
    before, after = frames
    return compare(AS_OF, decide(BEFORE, before), decide(AFTER, after), outcomes(400))


# The oracle: one customer at a time


def decision(plan: Plan, row: Mapping[str, Any]) -> dict[str, Any]:
    """The outcome, codes of the rules that decided, and every rule's result by code."""
    results = {
        each.rule.code: row[f"rule_{nth}_{place}"]
        for nth, planned_step in enumerate(plan.steps)
        for place, each in enumerate(planned_step.rules)
    }
    deciding = [] if row["step"] is None else [each.rule.code for each in plan.steps[row["step"]].rules]
    wanted = None if row["outcome"] == "indeterminate" else True
    limits = {limit.limit.product: row[f"amount_{nth}"] for nth, limit in enumerate(plan.limits)}
    return {
        "outcome": row["outcome"],
        "decisive": {code for code in deciding if results[code] is wanted},
        "results": results,
        "limits": limits,
    }


def pairs(frames: tuple[pl.DataFrame, pl.DataFrame]) -> list[tuple[int, dict[str, Any], dict[str, Any]]]:
    before, after = (frame.to_dicts() for frame in frames)
    return [
        (one["customer_number"], decision(BEFORE, one), decision(AFTER, other))
        for one, other in zip(before, after, strict=True)
    ]


def has_other_limit(one: dict[str, Any], other: dict[str, Any]) -> bool:
    products = {*one["limits"], *other["limits"]}
    return any(one["limits"].get(each) != other["limits"].get(each) for each in products)


def test_every_kind_of_change_occurs(whole: tuple[pl.DataFrame, Tallies]) -> None:
    """Otherwise the other tests of this file would prove less than they claim."""
    comparison, tallies = whole
    assert set(comparison["change"].to_list()) == {None, "outcome", "limits"}
    assert set(tallies["transitions"]["before"].to_list()) == {"proceed", "conditional", "blocked", "indeterminate"}
    assert set(tallies["causes"]["cause"].to_list()) == {"stale", "division_by_zero"}
    assert None in tallies["causes"]["about"].to_list()
    assert "loan" in tallies["causes"]["about"].to_list()


def test_transitions_count_customers_changed_limits_and_defaults(
    whole: tuple[pl.DataFrame, Tallies], frames: tuple[pl.DataFrame, pl.DataFrame]
) -> None:
    known = dict(outcomes(400).iter_rows())
    expected: dict[tuple[str, str], list[int]] = {}
    for number, one, other in pairs(frames):
        counts = expected.setdefault((one["outcome"], other["outcome"]), [0, 0, 0, 0])
        defaulted = known.get(number)
        for place, more in enumerate((True, has_other_limit(one, other), defaulted is not None, defaulted is True)):
            counts[place] += more
    found = rows_by_key(whole[1]["transitions"], ["before", "after"])
    assert found == {key: tuple(counts) for key, counts in expected.items()}


def test_limit_totals_of_a_transition_count_and_sum_only_known_limits(
    whole: tuple[pl.DataFrame, Tallies], frames: tuple[pl.DataFrame, pl.DataFrame]
) -> None:
    expected: dict[tuple[str, str, str], list[Any]] = {}
    for _, one, other in pairs(frames):
        for product in ("loan", "card"):
            sums = expected.setdefault((one["outcome"], other["outcome"], product), [0, 0, 0, Decimal(0), Decimal(0)])
            sums[0] += 1
            for place, side in enumerate((one, other)):
                amount = side["limits"].get(product)
                if amount is not None:
                    sums[1 + place] += 1
                    sums[3 + place] += amount
    found = rows_by_key(whole[1]["limits"], ["before", "after", "product"])
    assert found == {key: tuple(sums) for key, sums in expected.items()}


def test_bands_contain_every_customer_with_a_limit_once(
    whole: tuple[pl.DataFrame, Tallies], frames: tuple[pl.DataFrame, pl.DataFrame]
) -> None:
    expected: dict[tuple[str, str, int | None], list[Any]] = {}
    for _, one, other in pairs(frames):
        for name, side in (("before", one), ("after", other)):
            for product, amount in side["limits"].items():
                band = None if amount is None else min(bound for bound in UP_TO if amount <= bound)
                sums = expected.setdefault((name, product, band), [0, Decimal(0)])
                sums[0] += 1
                sums[1] += amount or 0
    found = rows_by_key(whole[1]["bands"], ["side", "product", "up_to"])
    assert found == {key: tuple(sums) for key, sums in expected.items()}


def test_a_change_is_attributed_to_the_deciding_rules_whose_result_differs(
    whole: tuple[pl.DataFrame, Tallies], frames: tuple[pl.DataFrame, pl.DataFrame]
) -> None:
    expected = {}
    for number, one, other in pairs(frames):
        differing = {
            code
            for code in one["decisive"] | other["decisive"]
            if one["results"].get(code, False) is not other["results"].get(code, False)
        }
        expected[number] = sorted(differing) if one["outcome"] != other["outcome"] else []
    found = dict(whole[0].select("customer_number", "changed_by").iter_rows())
    assert found == expected
    changed = [
        codes or [None]
        for (_, one, other), codes in zip(pairs(frames), expected.values(), strict=True)
        if one["outcome"] != other["outcome"]
    ]
    counts = Counter(code for codes in changed for code in codes)
    assert rows_by_key(whole[1]["changes"], ["code"]) == {(code,): (count,) for code, count in counts.items()}


def test_a_change_of_the_outcome_takes_precedence_over_changed_limits(
    whole: tuple[pl.DataFrame, Tallies], frames: tuple[pl.DataFrame, pl.DataFrame]
) -> None:
    expected = {
        number: "outcome" if one["outcome"] != other["outcome"] else "limits" if has_other_limit(one, other) else None
        for number, one, other in pairs(frames)
    }
    assert dict(whole[0].select("customer_number", "change").iter_rows()) == expected


def test_rules_and_steps_are_counted_over_all_customers(
    whole: tuple[pl.DataFrame, Tallies], frames: tuple[pl.DataFrame, pl.DataFrame]
) -> None:
    found = rows_by_key(whole[1]["rules"], ["side", "code"])
    steps = rows_by_key(whole[1]["steps"], ["side", "place"])
    for name, plan, frame in (("before", BEFORE, frames[0]), ("after", AFTER, frames[1])):
        rows = frame.to_dicts()
        decisions = [decision(plan, row) for row in rows]
        for nth, planned_step in enumerate(plan.steps):
            at = [row["step"] for row in rows]
            reached = sum(step is None or step >= nth for step in at)
            decided_here = sum(row["step"] == nth and row["outcome"] != "indeterminate" for row in rows)
            undecidable = sum(row["step"] == nth and row["outcome"] == "indeterminate" for row in rows)
            assert steps[name, nth] == (planned_step.step.name, reached, decided_here, undecidable)
            for each in planned_step.rules:
                code = each.rule.code
                results = [one["results"][code] for one in decisions]
                expected = (
                    results.count(True),
                    sum(code in one["decisive"] for one in decisions if one["outcome"] != "indeterminate"),
                    results.count(None),
                )
                assert found[name, code][2:] == expected


def test_coverage_counts_decisions_by_rule_over_all_days(frames: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    days = (AS_OF, date(2026, 3, 31))
    each = [compare(day, decide(BEFORE, frames[0]), decide(AFTER, frames[1]), outcomes(400))[1] for day in days]
    described_days = describe_days(merge(each), days)
    for side, plan, frame in (("before", BEFORE, frames[0]), ("after", AFTER, frames[1])):
        rows = frame.to_dicts() * len(days)
        expected = []
        for nth, planned_step in enumerate(plan.steps):
            for place, planned_rule in sorted(enumerate(planned_step.rules), key=lambda each: each[1].rule.code):
                counts: Counter[str] = Counter()
                for row in rows:
                    result, is_here = row[f"rule_{nth}_{place}"], row["step"] == nth
                    counts["reached"] += row["step"] is None or row["step"] >= nth
                    counts["matched"] += result is True
                    counts["decisive"] += is_here and result is True and row["outcome"] != "indeterminate"
                    counts["undecidable"] += result is None
                expected.append({"step": planned_step.step.name, "code": planned_rule.rule.code, **counts})
        assert describe_coverage(described_days, side) == {
            "decisions": len(rows),
            "byDefault": sum(row["step"] is None for row in rows),
            "rules": expected,
            "neverReached": [],
            "neverMatched": [],
        }


def test_coverage_names_rules_that_are_never_reached_or_never_match() -> None:
    everybody = rule("EVERYBODY", {"atLeast": ["1", "0"]})
    nobody = rule("NOBODY", {"atLeast": ["0", "1"]})
    plan = policy([step("First", "proceed", everybody, nobody), step("Second", "blocked", STEADY)], [])
    side = decide(plan, evaluate_plan(plan, read_leaves(plan, readings(50, seed=5), {}, {}, NOW)))
    recorded = Side(side.decisions, side.limits, {})
    days = describe_days(compare(AS_OF, recorded, side, outcomes(0))[1], [AS_OF])
    coverage = describe_coverage(days, "after")
    assert coverage is not None
    assert (coverage["neverReached"], coverage["neverMatched"]) == (["STEADY"], ["NOBODY"])
    assert coverage["byDefault"] == 0
    assert describe_coverage(days, "before") is None


def test_causes_are_those_of_single_answers(
    whole: tuple[pl.DataFrame, Tallies], frames: tuple[pl.DataFrame, pl.DataFrame]
) -> None:
    expected: Counter[tuple[str, str | None, str, str]] = Counter()
    for name, plan, frame in (("before", BEFORE, frames[0]), ("after", AFTER, frames[1])):
        for row in frame.to_dicts():
            for about, names in unknown(plan, row).items():
                found = {each.node.name: each for root in names for each in find_missing(plan, row, root)}
                expected.update((name, about, each.node.name, each.cause) for each in found.values())
    counted = rows_by_key(whole[1]["causes"], ["side", "about", "node", "cause"])
    assert {key: values[-1] for key, values in counted.items()} == dict(expected)


def unknown(plan: Plan, row: Mapping[str, Any]) -> dict[str | None, list[str]]:
    """Return the nodes to explain: the undecidable rules, or if there is a verdict, those of indeterminate limits."""
    if row["outcome"] == "indeterminate":
        rules = plan.steps[row["step"]].rules
        return {
            None: [each.condition for place, each in enumerate(rules) if row[f"rule_{row['step']}_{place}"] is None]
        }
    return {
        limit.limit.product: [limit.amount, *(cap.value for cap in limit.caps)]
        for nth, limit in enumerate(plan.limits)
        if row[f"amount_{nth}"] is None
    }


def test_decisive_rules_are_those_that_the_answer_names(frames: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    side = decide(BEFORE, frames[0])
    shown = dict.fromkeys(BEFORE.metrics)
    for row, found in zip(frames[0].to_dicts(), side.decisions.to_dicts(), strict=True):
        verdict = build_answer(BEFORE, row, {}, shown)["verdict"]
        described_codes = {each["code"] for each in verdict["matchedRules"]}
        undecided = {code for code in found["decisive"] if code.endswith("?")}
        assert set(found["decisive"]) - undecided == described_codes
        assert bool(undecided) == (row["outcome"] == "indeterminate")


@pytest.mark.service  # several backtests for each example
@pytest.mark.parametrize("parts", [2, 3, 7])
def test_parts_add_up_to_one_pass(metrics: pl.DataFrame, whole: tuple[pl.DataFrame, Tallies], parts: int) -> None:
    found = []
    for part in range(parts):
        before, after = sides(metrics.filter(pl.col("customer_number") % parts == part))
        found.append(compare(AS_OF, decide(BEFORE, before), decide(AFTER, after), outcomes(400)))
    comparison, tallies = whole
    assert_frame_equal(pl.concat([each for each, _ in found]).sort("customer_number"), comparison)
    together = merge(each for _, each in found)
    for name in TALLIES:
        assert_frame_equal(together[name], tallies[name])


def test_no_customers_give_empty_tallies() -> None:
    before, after = sides(readings(0, seed=1))
    comparison, tallies = compare(AS_OF, decide(BEFORE, before), decide(AFTER, after), outcomes(0))
    assert comparison.is_empty()
    assert {name: frame.filter(pl.lit(name not in ("steps", "rules"))).height for name, frame in tallies.items()} == (
        dict.fromkeys(TALLIES, 0)
    )


def test_recorded_decisions_stand_in_for_a_version(frames: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    """A version compared with its own decisions: nothing changes, and the recorded side has no rules to count."""
    side = decide(BEFORE, frames[0])
    comparison, tallies = compare(AS_OF, Side(side.decisions, side.limits, {}), side, outcomes(0))
    assert comparison["change"].null_count() == comparison.height == 400
    assert tallies["rules"]["side"].unique().to_list() == ["after"]
