"""The page of a backtest agrees with its figures, and texts of others never become markup."""

import json
import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any, TypeVar

import msgspec
import pytest

from pipelines.decisions.backtest import Side, compare, decide, merge
from pipelines.decisions.backtest.page import About, page, page_content
from pipelines.decisions.backtest.result import describe_days
from pipelines.pages import CONTENT_POLICY, Figure, Figures, Grid, Matrix
from tests.pipelines.decisions.test_backtest import AFTER, AS_OF, BEFORE, outcomes, readings, sides
from tests.pipelines.pages.documents import parse_html

EARLIER = date(2026, 3, 31)
P = TypeVar("P")
ABOUT = About("Loan", "version 1", "version 2", [("As of", "30 Jun 2026")])


def days(*of: date, from_records: bool = False) -> list[Any]:
    """Return the days as the API reads them back."""
    before, after = sides(readings(300, seed=5))
    one = decide(BEFORE, before)
    first = Side(one.decisions, one.limits, {}) if from_records else one
    parts = [compare(day, first, decide(AFTER, after), outcomes(300))[1] for day in of]
    written = msgspec.json.Encoder(decimal_format="number").encode(describe_days(merge(parts), of))
    found: list[Any] = json.loads(written, parse_float=Decimal)
    return found


def parts(days: Sequence[Any], kind: type[P]) -> list[P]:
    """Return the parts of that kind in the first day's section."""
    return [part for part in page_content(days, ABOUT, [], 0).sections[0].parts if isinstance(part, kind)]


def text_of(html: str) -> str:
    return " ".join(re.sub("<[^>]+>", " ", html).split())


@pytest.fixture(scope="module")
def one_day() -> list[Any]:
    return days(AS_OF)


def test_the_matrix_has_every_transition_and_adds_up(one_day: Sequence[Any]) -> None:
    [matrix] = parts(one_day, Matrix)
    counts = {(each["before"], each["after"]): each["customers"] for each in one_day[0]["transitions"]}
    names = ["proceed", "conditional", "blocked", "indeterminate"]
    cells = {
        (before, after): int(cell.figure.replace(",", ""))
        for before, (_, row, _) in zip(names, matrix.rows, strict=True)
        for after, cell in zip(names, row, strict=True)
    }
    assert {pair: count for pair, count in cells.items() if count} == counts
    assert matrix.totals[-1] == "300"


def test_the_highest_band_is_named_by_its_own_bound_not_by_the_band_before_it(one_day: Sequence[Any]) -> None:
    [day] = deepcopy(one_day)
    day["limits"][0]["bands"] = [{"upTo": bound, "before": 1, "after": 0} for bound in (None, 0, 20_000, 10**15)]
    chart = next(each for part in parts([day], Figures) for each in part.figures if "More than" in str(each))
    labels = ("Indeterminate", "Nothing", "Up to $20k", "More than $5m")
    assert all(label in str(chart) for label in labels)


def test_the_direction_of_a_changed_outcome_is_marked(one_day: Sequence[Any]) -> None:
    [matrix] = parts(one_day, Matrix)
    marks = [[cell.mark for cell in row] for _, row, _ in matrix.rows]
    assert {marks[0][0], marks[2][2], marks[3][3]} <= {"same", "nobody"}
    assert marks[0][2] == "stricter"
    assert marks[2][1] == "lenient"
    assert marks[2][3] == "unsettled"


def test_bars_are_as_long_as_their_figures(one_day: Sequence[Any]) -> None:
    [figures] = parts(one_day, Figures)
    [chart] = [each.chart for each in figures.figures if each.title == "Outcomes"]  # pyrefly: ignore[missing-attribute]
    sizes = [(each["before"]["customers"], each["after"]["customers"]) for each in one_day[0]["outcomes"]]
    whole = max(size for pair in sizes for size in pair)
    assert [bar.width for bar in chart.bars] == [round(size / whole * 400, 1) for pair in sizes for size in pair]


def test_the_page_is_well_formed_and_fetches_nothing(one_day: Sequence[Any]) -> None:
    html = page(one_day, ABOUT, [], 0)
    ids = [each.attributes["id"] for each in parse_html(html).all() if "id" in each.attributes]
    assert not re.search(r"<script|https?://(?!www\.w3\.org)|\bon[a-z]+=|style=", html)
    assert CONTENT_POLICY.replace("'", "&#39;") in html
    assert len(set(ids)) == len(ids)


def test_names_never_become_markup(one_day: Sequence[Any]) -> None:
    about = About("<b>Loan</b>", "<i>old</i>", "new & better", [("Input", "<script>")], ["<u>"])
    customer = {"customerId": "<a>", "asOf": "2026-06-30", "before": "proceed", "after": "blocked"}
    changed = [customer | {"changedBy": ["<code>"], "limits": [{"product": "<p> ", "before": 1, "after": None}]}]
    html = page(one_day, about, changed, 1)
    assert not re.search("<b>Loan|<i>old|<script>|<u>|<a>|<code>|<p> ", html)
    assert "&lt;b&gt;Loan" in html


def test_rules_values_and_customers_are_named(one_day: Sequence[Any]) -> None:
    day = one_day[0]
    code = next(each["code"] for each in day["changedBy"] if each["code"])
    [missing, *_] = [each["name"] for each in day["causes"]["after"] if each["about"] is None and each["name"]]
    named = {
        "messages": {code: "Too little revenue."},
        "titles": {missing: "Yearly revenue"},
        "customers": {"1": "Cafe"},
    }
    changed = {"customerId": "1", "asOf": "2026-06-30", "before": "proceed", "after": "blocked", "limits": []}
    rows = [changed | {"changedBy": [code, "OTHER_RULE"]}, changed | {"customerId": "2", "changedBy": []}]
    content = page_content(one_day, replace(ABOUT, **named), rows, 2)
    tables = [part for section in content.sections for part in section.parts if isinstance(part, Grid)]
    rules = next(table for table in tables if table.caption.startswith("Rules"))
    assert ["Too little revenue.", code] in [[row[0], row[-1]] for row in rules.rows]
    assert [(row[0], row[4]) for row in tables[-1].rows] == [("Cafe", "Too little revenue. Other rule"), ("2", "–")]
    [drawn] = [part for part in content.sections[0].parts if isinstance(part, Figures)]
    labels = {figure.title: str(figure.chart) for figure in drawn.figures if isinstance(figure, Figure)}
    assert "Too little revenue." in labels["What changes the outcome"]
    assert "Yearly revenue: " in labels["Why indeterminate: version 2"]


def test_several_days_have_an_overview_and_a_section_each() -> None:
    html = page(days(EARLIER, AS_OF), ABOUT, [], 0)
    assert "Day by day" in html
    assert re.findall("<h2[^>]*>(As of [^<]+)</h2>", html) == ["As of 31 Mar 2026", "As of 30 Jun 2026"]


def test_a_recorded_side_has_no_rules() -> None:
    tables = parts(days(AS_OF, from_records=True), Grid)
    rules = next(table for table in tables if table.caption.startswith("Rules"))
    assert {row[1] for row in rules.rows} == {"–"}


def test_no_customers_give_a_page() -> None:
    [nothing] = json.loads(msgspec.json.encode(describe_days(merge([]), [AS_OF])))
    html = page([nothing], ABOUT, [], 0)
    assert "Customers compared 0" in text_of(html)
