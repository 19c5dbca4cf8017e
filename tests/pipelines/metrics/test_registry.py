"""The registry is checked when it is loaded, and faults are reported with file, line and reason."""

import json
from decimal import Decimal
from uuid import UUID

import pytest
from typer.testing import CliRunner

from api.cli import app
from pipelines.metrics import METRICS, select_with_inputs
from pipelines.metrics.definition import Arithmetic, Transactions
from pipelines.metrics.listing import as_markdown, record
from pipelines.metrics.registry import in_order, parse_registry
from pipelines.pages.wording import reading
from pipelines.reports.page.fields import Fields
from pipelines.reports.page.naming import reading_in_words
from pipelines.vocabulary.rule_files import RuleError
from tests.root import ROOT

SCORECARD = {
    "overdrawn_day_share_180d",
    "min_balance_days_180d",
    "balance_trend_180d",
    "buffer_days_180d",
    "inflow_to_outflow_180d",
    "revenue_trend_90d",
    "revenue_volatility_12m",
    "income_concentration_180d",
    "months_under_target_share_12m",
    "debt_service_to_revenue_180d",
    "lenders_repaid_45d",
    "stacked_running_180d",
    "new_debt_to_revenue_180d",
    "missed_repayments_180d",
    "dishonours_per_month_180d",
    "collector_payments_180d",
    "over_limit_fees_180d",
    "tax_arrears_signs_180d",
    "gambling_share_180d",
    "cash_share_180d",
    "owner_drawings_share_180d",
    "months_of_history",
}
ONE = """
- slug: revenue
  name: Revenue
  meaning: Trading receipts.
  unit: AUD
  format: currency
  direction: higher_is_better
  definition:
    source: transactions
    where: {groups: [revenue], atLeast: "10.50"}
    window: {days: 90}
    aggregate: sum
"""


def test_registry_has_over_eighty_metrics_including_those_of_the_scorecard() -> None:
    assert len(METRICS) >= 80
    assert METRICS.keys() >= SCORECARD
    assert (
        len({metric.name for metric in METRICS.values()})
        == len({metric.id for metric in METRICS.values()})
        == len(METRICS)
    )


def test_a_metrics_id_depends_only_on_its_slug() -> None:
    assert METRICS["revenue_90d"].id == UUID("430b1db4-aa3f-5124-9308-0a5e8c1d25c5")


@pytest.mark.parametrize("number", ["0.7362", "-12.3456", "1", "1234.5"])
def test_a_value_is_written_the_same_way_in_reports_and_decisions(number: str) -> None:
    """Reports know a driver's unit, decisions its metric's format."""
    for metric in METRICS.values():
        driver = Fields({"reading": Decimal(number), "unit": metric.unit})
        expected = reading(Decimal(number), metric.format)
        assert reading_in_words(driver).partition(" per ")[0] == expected, metric.slug


def test_a_definition_is_read_exactly() -> None:
    [metric] = parse_registry(ONE).values()
    assert isinstance(metric.definition, Transactions)
    assert str(metric.definition.where.at_least) == "10.50"
    assert metric.window == "90 days"


@pytest.mark.parametrize(
    ("original", "instead", "line", "reason"),
    [
        ("groups: [revenue]", "groups: [revenu]", 10, "there is no category group revenu"),
        ("groups: [revenue]", "categories: [cash, bas]", 10, "there is no category cash"),
        ("groups: [revenue]", "flags: [odd]", 10, "there is no flag odd"),
        ("groups: [revenue]", "channels: [pigeon]", 10, "there is no channel pigeon"),
        ("groups: [revenue]", "counterpartyKinds: [alien]", 10, "there is no counterparty kind alien"),
        ('atLeast: "10.50"', "atLeast: 10.50", 10, "a decimal is written as text"),
        ('atLeast: "10.50"', 'atLeast: "1e5"', 10, "a decimal is written as text"),
        ('atLeast: "10.50"', "colour: red", 10, "Extra inputs are not permitted"),
        ("days: 90", "days: 0", 11, "greater than or equal to 1"),
        ("days: 90", 'days: "90"', 11, "Input should be"),
        ("aggregate: sum", "aggregate: total", 12, "Input should be"),
        ("aggregate: sum", "aggregate: distinct", 9, "`by` is missing"),
        ("aggregate: sum", "aggregate: share", 9, "`of` is missing"),
        ("aggregate: sum", "aggregate: sum\n    by: account", 9, "`by` has no meaning here"),
        ("aggregate: sum", "aggregate: monthly_mean", 9, "needs a window in months"),
        ("aggregate: sum", "aggregate: mean\n    measure: rows", 9, "the measure `rows` can't be used with mean"),
        ("aggregate: sum", "aggregate: count", 9, "without saying on which side of the account"),
        ("aggregate: sum", "aggregate: days_since", 9, "without saying on which side of the account"),
        ("aggregate: sum", "aggregate: share\n    measure: rows\n    of: {}", 9, "without saying on which side"),
        ("aggregate: sum", "aggregate: sum\n    measure: rows", 9, "without saying on which side of the account"),
        ("source: transactions", "source: tea_leaves", 9, "does not match any of the expected tags"),
        ("name: Revenue", "name: Revenue\n  colour: red", 4, "Extra inputs are not permitted"),
        ("unit: AUD", "unit: AUD\n  unit: AUD", 6, "'unit' occurs twice"),
        ("slug: revenue", "slug: Revenue", 2, "String should match pattern"),
    ],
)
def test_a_fault_is_reported_with_file_line_and_reason(original: str, instead: str, line: int, reason: str) -> None:
    assert original in ONE
    with pytest.raises(RuleError) as refused:
        parse_registry(ONE.replace(original, instead), "mine.yaml")
    message = str(refused.value)
    assert message.startswith(f"mine.yaml, line {line}: "), message
    assert reason in message


def derived_metric(slug: str, *operands: str) -> str:
    definition = {"source": "metrics", "operation": "add", "operands": operands}
    texts = {"name": slug, "meaning": slug, "unit": "AUD", "format": "currency", "direction": "neutral"}
    return f"- {json.dumps({'slug': slug, **texts, 'definition': definition})}\n"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (derived_metric("a", "revenue", "unheard_of"), "there is no metric unheard_of"),
        (derived_metric("a", "b", "1") + derived_metric("b", "a", "1"), "computed from itself"),
        (derived_metric("a", "a", "1"), "computed from itself"),
        (derived_metric("revenue", "1", "2"), "revenue is defined 2 times"),
        (derived_metric("a", "revenue"), "at least 2 items"),
        (derived_metric("a", "revenue", "1e400"), "neither the slug of a metric nor a decimal"),
    ],
)
def test_faults_between_metrics_are_reported(more: str, reason: str) -> None:
    with pytest.raises(RuleError, match=reason):
        parse_registry(ONE + more)


def test_all_faults_are_reported_at_once() -> None:
    broken = ONE.replace("unit: AUD", "unit: EUR").replace("days: 90", "days: -1")
    with pytest.raises(RuleError) as refused:
        parse_registry(broken)
    assert len(str(refused.value).splitlines()) == 2


def test_metrics_come_after_their_inputs() -> None:
    seen = set[str]()
    for metric in in_order(METRICS):
        assert seen >= set(metric.inputs)
        seen.add(metric.slug)
    assert seen == METRICS.keys()


def test_a_metric_comes_with_its_inputs() -> None:
    needed = select_with_inputs(["dishonours_per_month_180d"], METRICS)
    expected = {"dishonours_per_month_180d", "dishonours_180d", "months_seen_180d", "days_seen_180d", "history_days"}
    assert needed.keys() == expected
    with pytest.raises(KeyError):
        select_with_inputs(["unheard_of"], METRICS)


def test_a_definition_survives_a_round_trip() -> None:
    for metric in METRICS.values():
        entry = {name: value for name, value in record(metric).items() if name not in {"metricId", "window"}}
        again = parse_registry(json.dumps([entry])) if not metric.inputs else None
        assert again is None or again[metric.slug] == metric
        assert isinstance(metric.definition, Arithmetic) is bool(metric.inputs)


def test_the_documentation_is_what_the_command_prints() -> None:
    printed = CliRunner().invoke(app, ["metrics", "list", "--markdown"]).stdout
    file = ROOT / "docs" / "reference" / "metrics.md"
    assert printed == as_markdown(METRICS) == file.read_text("utf-8"), "run `make generated`"
    assert all(f"| `{slug}` |" in printed for slug in METRICS)


def test_the_command_lists_every_metric() -> None:
    figures = json.loads(CliRunner().invoke(app, ["metrics", "list", "--json"]).stdout)
    assert [each["slug"] for each in figures] == list(METRICS)
    assert figures[0]["metricId"] == str(METRICS["history_days"].id)
    shown = CliRunner().invoke(app, ["metrics", "list"]).stdout
    assert "history_days" in shown
    assert "Example" in CliRunner().invoke(app, ["metrics", "list", "--help"]).stdout
