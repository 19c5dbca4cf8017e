"""A baseline metric equals the metric computed on that day."""

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from pipelines.decisions.readings import Attribute, Attributes
from pipelines.metrics import METRICS, cause_of, select_with_inputs, values
from pipelines.monitoring import Ruleset, VersionedRuleset, compute_figures, observe_customers, plan_rulesets
from pipelines.monitoring.baselines import CAUSES, NO_BASELINE
from tests.pipelines.metrics.customers import START, Row, customer, facts

Json = Any
ID = UUID(int=1)
AS_OF = START + timedelta(days=500)
NOW = datetime(2025, 5, 15, 3, 0, tzinfo=UTC)
SLUGS = ("revenue_90d", "days_behind", "history_days", "debt_service_90d", "mean_balance_90d", "revenue_volatility_12m")
NO_ATTRIBUTES: Attributes = {}


def ruleset_with_baseline(since: Json, slugs: Sequence[str] = SLUGS, **also: Any) -> VersionedRuleset:
    """Return a ruleset whose rules compare each metric with its baseline for equality."""
    document = {
        "slug": "since",
        "name": "Since",
        "attributes": [{"name": "start", "kind": "string"}],
        "baseline": {"since": since, "metrics": [{"slug": f"{slug}_then", "of": slug} for slug in slugs]},
        "rules": [
            {
                "code": f"C{nth}",
                "message": slug,
                "condition": {"equals": [{"metric": slug}, {"metric": f"{slug}_then"}]},
            }
            for nth, slug in enumerate(slugs)
        ],
        **also,
    }
    return VersionedRuleset(ID, 1, Ruleset.model_validate(document), None)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    chance = random.Random(4)
    return [row for number in range(15) for row in customer(chance, number, rows=chance.randint(1, 90))]


def list_baselines(rows: Sequence[Row], since: Json, attributes: Attributes = NO_ATTRIBUTES) -> list[Mapping[str, Any]]:
    """Return for each customer the baseline's day, and each metric's value and cause as of that day."""
    plan = plan_rulesets([ruleset_with_baseline(since)])
    described = compute_figures(plan, facts(rows, AS_OF), attributes, attributes, NOW)
    [baseline] = plan.baselines
    return [
        {"day": row[baseline.day]}
        | {slug: (row[column], row[cause_of(column)]) for column, slug in baseline.readings.items()}
        | {"customer": row["customer_number"]}
        for row in described.iter_rows(named=True)
    ]


def compute_on_day(rows: Sequence[Row], number: int, day: date) -> dict[str, Any]:
    """Return the metrics computed from the customer's rows up to the day, as of the day."""
    mine = [row for row in rows if row["customer_number"] == number and row["date"] <= day]
    found = values(facts(mine, day), select_with_inputs(SLUGS, METRICS)).to_dicts()
    if not found:
        return dict.fromkeys(SLUGS, (None, "no_transactions"))
    return {slug: (found[0][slug], found[0][cause_of(slug)]) for slug in SLUGS}


@pytest.mark.service  # computes all metrics for each day
@pytest.mark.parametrize("days", [-1, 0, 10, 90, 250, 499, 500])
def test_baseline_equals_the_metric_computed_on_that_day(rows: list[Row], days: int) -> None:
    day = START + timedelta(days=days)
    for described in list_baselines(rows, {"date": day.isoformat()}):
        assert described == {"day": day, "customer": described["customer"]} | compute_on_day(
            rows, described["customer"], day
        )


def test_customers_may_have_different_days(rows: list[Row]) -> None:
    days = {number: START + timedelta(days=30 * number + 7) for number in range(15)}
    held = {number: {"start": Attribute(day.isoformat())} for number, day in days.items()}
    causes = set()
    for described in list_baselines(rows, {"attribute": "start"}, held):
        number = described["customer"]
        assert described == {"day": days[number], "customer": number} | compute_on_day(rows, number, days[number])
        causes.add(described["revenue_90d"][1])
    assert None in causes, "some are known"
    assert len(causes) > 1


NONE = {"day": None, **dict.fromkeys(SLUGS, (None, NO_BASELINE))}


@pytest.mark.parametrize(
    "attribute",
    [
        None,
        Attribute(None),
        Attribute(Decimal(20240301)),
        Attribute("1 March 2024"),
        Attribute("20240301"),
        Attribute("2024-02-30"),
        Attribute("2024-03-01T10:00:00"),
        Attribute("2024-03-01", NOW),
        Attribute((AS_OF + timedelta(days=1)).isoformat()),
    ],
)
def test_missing_invalid_or_future_day_gives_no_baseline(rows: list[Row], attribute: Attribute | None) -> None:
    held = {3: {} if attribute is None else {"start": attribute}}
    assert [
        described for described in list_baselines(rows, {"attribute": "start"}, held) if described["customer"] == 3
    ] == [NONE | {"customer": 3}]


def test_future_date_gives_no_baseline(rows: list[Row]) -> None:
    day = AS_OF + timedelta(days=1)
    assert {described["day"] for described in list_baselines(rows, {"date": day.isoformat()})} == {None}


def test_customer_without_rows_has_no_values_at_the_baseline() -> None:
    held = {9: {"start": Attribute("2024-03-01")}}
    assert list_baselines([], {"attribute": "start"}, held) == [
        {"day": date(2024, 3, 1), "customer": 9, **dict.fromkeys(SLUGS, (None, "no_transactions"))}
    ]


def test_baselines_by_attribute_take_one_pass_for_all_customers() -> None:
    start = {"attribute": "start"}
    plan = plan_rulesets(
        [
            ruleset_with_baseline(start),
            VersionedRuleset(UUID(int=2), 1, ruleset_with_baseline(start, ["revenue_90d"]).ruleset, None),
        ]
    )
    assert [len(each.readings) for each in plan.baselines] == [len(SLUGS)]


def test_a_record_names_the_metric_and_the_day(rows: list[Row]) -> None:
    seen = observe_customers(
        plan_rulesets([ruleset_with_baseline({"date": "2024-06-01"}, ["history_days"])]), facts(rows, AS_OF), {}, NOW
    )
    [described] = seen.describe_firings(1, ID, ["C0"])["rules"]
    now, before = described["read"]
    assert [now["name"], now["baseline"]] == ["history_days", None]
    assert [before["name"], before["baseline"]] == ["history_days_then", {"of": "history_days", "date": "2024-06-01"}]
    assert now["metricId"] == before["metricId"] == str(METRICS["history_days"].id)
    assert described["trace"][0]["right"]["metric"] == "history_days_then"


def test_a_rule_without_a_baseline_is_unknown_and_says_why(rows: list[Row]) -> None:
    seen = observe_customers(
        plan_rulesets([ruleset_with_baseline({"attribute": "start"}, ["history_days"])]), facts(rows, AS_OF), {}, NOW
    )
    assert set(seen.outcomes["holds"].to_list()) == {None}
    assert set(seen.causes.select("kind", "name", "cause").iter_rows()) == {
        ("metric", "history_days_then", NO_BASELINE)
    }
    assert NO_BASELINE in CAUSES
