"""The page of a simulation agrees with its figures, and texts of others never become markup."""

import json
import random
import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid5

import msgspec
import pytest

from pipelines.monitoring.page import About, page, page_content
from pipelines.monitoring.simulated import describe_result
from pipelines.monitoring.simulation import MOST_EVENTS, Simulation, merge, simulate
from pipelines.pages import CONTENT_POLICY, Figure, Figures, Grid
from tests.pipelines.metrics.customers import START, customer
from tests.pipelines.monitoring.test_simulation import RULESET_ID, days, frame, ruleset
from tests.pipelines.pages.documents import parse_html

ABOUT = About("Some <ruleset>", [("From", "1 Apr 2024")], ["Each day is evaluated."])
FIRINGS = [
    {
        "customerId": str(UUID(int=1)),
        "date": "2024-05-01",
        "code": "SUM",
        "values": [
            {"name": "net_30d", "title": "Net <30>", "format": "currency", "value": Decimal("-12.5000"), "cause": None},
            {"name": "<b>score", "value": None, "cause": "not_set"},
            {"name": "flag", "value": True, "cause": None},
            {"name": "growth", "value": None, "cause": "no_baseline"},
        ],
    }
]


@pytest.fixture(scope="module")
def result() -> Any:
    """Return the result for three customers over 100 days, as the API reads it back."""
    of, every = ruleset(["SUM", "SCORE", "QUIET"]), days(START + timedelta(days=91), 100)
    chance = random.Random(3)
    rows = frame([row for number in (1, 2, 3) for row in customer(chance, number, rows=60, days=250)])
    [part] = simulate(Simulation(RULESET_ID, of, every), rows, {}, 1_000)
    tallies = merge([part.tallies])
    ids = {number: uuid5(RULESET_ID, str(number)) for number in tallies[MOST_EVENTS]["customer_number"]}
    found = describe_result(of, every[0].date, every[-1].date, tallies, ids)
    return json.loads(msgspec.json.Encoder(decimal_format="number").encode(found), parse_float=Decimal)


def figures(result: Any, about: About = ABOUT) -> list[Figure]:
    shown = page_content(result, about, []).sections[0].parts
    return [each for part in shown if isinstance(part, Figures) for each in part.figures if isinstance(each, Figure)]


def test_the_result_adds_up(result: Any) -> None:
    rules, months = result["rules"], result["months"]
    assert result["firings"] == sum(each["fired"] for each in rules) > 0
    assert (
        result["events"]
        == sum(each["events"] for each in months)
        == sum(each["events"] for each in result["byCustomer"])
    )
    for name in ("fired", "daysObserved", "daysHeld", "daysUnknown"):
        for nth, rule in enumerate(rules):
            assert rule[name] == sum(month["rules"][nth][name] for month in months)
    score = next(each for each in rules if each["code"] == "SCORE")
    assert score["daysUnknown"] == score["daysObserved"] == score["causes"][0]["days"]
    assert [each["month"] for each in months] == ["2024-04-01", "2024-05-01", "2024-06-01", "2024-07-01"]


def test_bars_are_as_long_as_their_figures(result: Any) -> None:
    months = figures(result)[0]
    sizes = [each["events"] for each in result["months"]]
    assert [bar.width for bar in months.chart.bars] == [round(size / max(sizes) * 400, 1) for size in sizes]


def test_the_page_is_well_formed_and_fetches_nothing(result: Any) -> None:
    html = page(result, ABOUT, FIRINGS)
    parse_html(html)
    assert not re.search(r"<script|https?://(?!www\.w3\.org)|\bon[a-z]+=|style=", html)
    assert CONTENT_POLICY.replace("'", "&#39;") in html


def test_names_never_become_markup(result: Any) -> None:
    html = page(result, ABOUT, FIRINGS)
    assert "Some &lt;ruleset&gt;" in html
    assert (
        "Net &lt;30&gt;: −$12.50; &lt;b&gt;score: unknown (it is not set); Flag: Yes; "
        "Growth: unknown (there is no baseline" in html
    )


def test_rules_values_and_customers_are_named(result: Any) -> None:
    customer_id = result["byCustomer"][0]["customerId"]
    about = replace(ABOUT, titles={"score": "Credit score"}, customers={customer_id: "Corner Bakery"})
    content = page_content(result, about, [{**FIRINGS[0], "customerId": customer_id}])
    [rules, months, by_customer, firings] = (part for part in content.sections[1].parts if isinstance(part, Grid))
    message = next(each["message"] for each in result["rules"] if each["code"] == "SUM")
    assert message in [row[0] for row in rules.rows]
    assert "SUM" in [row[-1] for row in rules.rows]
    assert "Sum" in [column.heading for column in months.columns]
    assert by_customer.rows[0][0] == "Corner Bakery"
    assert "Sum " in by_customer.rows[0][-1]
    assert firings.rows[0][0] == "Corner Bakery"
    assert firings.rows[0][2] == message
    charts = {figure.id: [row.label for row in figure.chart.rows] for figure in figures(result, about)}
    assert message in charts["rules"]
    assert any(label.startswith("Credit score: ") for label in charts["unknown"])


def test_a_result_without_firings_has_a_page(result: Any) -> None:
    never = {**result, "events": 0, "firings": 0, "customersFired": 0, "byCustomer": []}
    never["rules"] = [{**each, "fired": 0, "customers": 0, "causes": []} for each in result["rules"]]
    never["months"] = [{**each, "events": 0, "customers": 0} for each in result["months"]]
    never["atSwitchOn"] = {"customers": 0, "rules": []}
    assert [figure.id for figure in figures(never)] == ["months", "rules"]
    tables = page_content(never, ABOUT, []).sections[1].parts
    assert [part.caption for part in tables if isinstance(part, Grid)] == ["Rules"]
    assert "Some &lt;ruleset&gt;" in page({**never, "customers": 0}, ABOUT, [])
