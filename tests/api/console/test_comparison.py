"""The comparison of two dates: what is offered, what is shown first, and where its figures lead."""

import html
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from api.console.compared import find_table_and_format
from api.console.pages.comparison import REPORTS
from storage.access.roles import Role
from storage.core.store import Store
from tests.api.console.test_customers import Lender
from tests.api.console.visitor import Visitor
from tests.api.worker import end_submissions


@pytest.fixture(scope="module")
def lender(store: Store, base_url: str) -> Lender:
    return Lender(store, base_url)


@pytest.fixture(scope="module")
def visitor(lender: Lender) -> Visitor:
    return lender.visit(Role.VIEWER)


def cells(text: str, caption: str) -> dict[str, list[str]]:
    """Return the cells of a table without their markup, by the row's heading."""
    [table] = re.findall(rf"<caption>{caption}</caption>(.*?)</table>", text, re.DOTALL)
    found: dict[str, list[str]] = {}
    for row in re.findall("<tr>.*?</tr>", table, re.DOTALL):
        texts = re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        name, *others = (html.unescape(re.sub("<[^>]+>", "", each)).strip() for each in texts)
        found[name] = others
    return found


def test_today_is_compared_with_a_month_ago_by_default(visitor: Visitor, lender: Lender) -> None:
    text = visitor.get(f"{lender.home}/reports/compare").text
    today = datetime.now(UTC).date()
    chosen = dict(re.findall('name="((?:fromA|a)sOf)" type="date" value="([^"]+)"', text))
    assert abs(datetime.fromisoformat(chosen["asOf"]).date() - today) <= timedelta(days=1)  # the service's time zone
    days = datetime.fromisoformat(chosen["asOf"]) - datetime.fromisoformat(chosen["fromAsOf"])
    assert timedelta(days=28) <= days <= timedelta(days=31)
    assert "From version" not in text


def test_the_page_computes_nothing_and_leads_to_what_changed(
    visitor: Visitor, lender: Lender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.reports.replay.diff", None)
    text = visitor.get(f"{lender.home}/reports/compare?fromAsOf=2026-05-01&asOf=2026-06-30").text
    path = f"{lender.home}/reports/compare/changes?fromAsOf=2026-05-01&amp;asOf=2026-06-30&amp;report="
    for report in REPORTS:
        assert f'hx-get="{path}{report}"' in text
        assert f'<a href="{path}{report}">' in text
        assert f'id="headlines-{report}"' in text


def test_days_and_earlier_reports_are_offered(visitor: Visitor, lender: Lender) -> None:
    text = visitor.get(f"{lender.home}/reports/compare?asOf=2026-06-30").text
    offers = {words: html.unescape(query) for query, words in re.findall(r'compare\?([^"]+)">([^<]+)<', text)}
    assert list(offers)[:3] == ["a month ago", "three months ago", "a year ago"]
    assert all("asOf=2026-06-30" in query for query in offers.values())
    [reports] = [words for words in offers if words.startswith("the reports of ")]
    assert "fromKnownAt=" in offers[reports]
    shown = visitor.get(f"{lender.home}/reports/compare/changes?{offers[reports]}").text
    assert "data version 1" in shown


def test_headline_figures_come_first(visitor: Visitor, lender: Lender) -> None:
    headlines: dict[str, list[str]] = {}
    for report, words in REPORTS.items():
        shown = visitor.get(f"{lender.home}/reports/compare/changes?from=0&report={report}").text
        captions = re.findall("<caption>([^<]+)<", shown)
        assert captions[0] == f"Headline figures: {words}"
        headlines |= cells(shown, captions[0])
    assert list(headlines)[1:5] == ["Risk rating", "Risk figure", "Confidence in the risk figure", "Completeness"]
    assert headlines["Money in, last 90 days"] == ["–", "$12.34", ""]


def test_each_report_leads_to_the_others(visitor: Visitor, lender: Lender) -> None:
    shown = visitor.get(f"{lender.home}/reports/compare/changes?from=0").text
    links = dict(re.findall('<a href="([^"]+)"(?: aria-current="page")?>(Risk|Completeness|Money)<', shown))
    assert list(links.values()) == ["Risk", "Completeness", "Money"]
    for link, words in links.items():
        assert f"<h3>{words}</h3>" in visitor.get(html.unescape(link)).text


def test_for_an_unknown_report_or_table_the_first_report_is_shown(visitor: Visitor, lender: Lender) -> None:
    for query in ("report=metrics", "table=metrics/x", "table=risk/x"):
        shown = visitor.get(f"{lender.home}/reports/compare/changes?from=0&{query}")
        assert (shown.status_code, "<h3>Risk</h3>" in shown.text) == (200, True)


def test_figures_have_their_units_and_lead_to_their_lineage(visitor: Visitor, lender: Lender) -> None:
    shown = visitor.get(f"{lender.home}/reports/compare/changes?from=0&report=aggregate").text
    link = re.findall('<a href="([^"]+/figure[^"]+)">\\$12.34</a>', shown)[0]
    figure = visitor.get(html.unescape(link))
    assert figure.status_code == 200
    assert "$12.34" in figure.text
    table = visitor.get(f"{lender.home}/reports/compare/changes?from=0&table=completeness/quality").text
    assert cells(table, "Completeness, quality")["Rows with balance"][1:3] == ["0", ""]


def test_every_linked_figure_of_a_comparison_can_be_explained(visitor: Visitor, lender: Lender) -> None:
    pages = (visitor.get(f"{lender.home}/reports/compare/changes?from=0&report={each}").text for each in REPORTS)
    shown = "".join(pages)
    links = {html.unescape(link) for link in re.findall('<a href="([^"]+/figure[^"]+)"', shown)}
    assert len(links) > 20
    by_kind = {re.sub("[0-9]+", "#", link): link for link in links}
    for link in list(by_kind.values())[::4]:
        assert visitor.get(link).status_code == 200, link


def test_a_table_is_shown_in_part_and_on_request_as_a_whole(
    visitor: Visitor, lender: Lender, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = f"{lender.home}/reports/compare/changes"
    shown = visitor.get(f"{home}?from=0&report=aggregate").text
    more = re.findall('<a href="([^"]+)">All ([0-9]+) changed', shown)
    path, count = next((html.unescape(path), int(count)) for path, count in more if "monthly_cash_flow" in path)
    assert len(cells(shown, "Monthly cash flow")) <= 1 + 3
    whole = visitor.get(path).text
    assert re.findall("<caption>([^<]+)<", whole) == ["Monthly cash flow"]
    assert whole.count("<tr>") == 1 + count
    monkeypatch.setattr("api.console.pages.comparison.FIGURES_ON_PAGE", 2)
    second = visitor.get(f"{path}&page=2").text
    assert (second.count("<tr>"), "page 2 of" in second) == (3, True)


def test_a_state_that_cannot_be_computed_is_said(visitor: Visitor, lender: Lender) -> None:
    refused = visitor.get(f"{lender.home}/reports/compare/changes?fromKnownAt=yesterday")
    assert refused.status_code == 400
    assert 'role="alert"' in refused.text
    assert visitor.get(f"{lender.home}/reports/compare/changes?to=99").status_code == 404


def test_times_of_forms_are_in_the_service_s_zone(store: Store, base_url: str) -> None:
    lender = Lender(store, base_url)
    visitor = lender.visit(Role.VIEWER)
    between = datetime.now(store.settings.zone)
    lender.client.submit_transactions(lender.customer_id)
    end_submissions(store, [{"amount": Decimal("5.00"), "direction": "credit"}])
    local = between.replace(tzinfo=None).isoformat()
    text = visitor.get(f"{lender.home}/reports/compare/changes?fromKnownAt={local}").text
    assert re.findall("data version ([0-9]+)", text) == ["1", "2"]


@pytest.mark.parametrize("page", ["reports", "reports/compare"])
def test_forms_show_times_as_they_read_them(visitor: Visitor, lender: Lender, store: Store, page: str) -> None:
    known = datetime(2026, 6, 30, 4, 5, 6, tzinfo=UTC)
    text = visitor.get(f"{lender.home}/{page}?knownAt={known:%Y-%m-%dT%H:%M:%SZ}").text
    [shown] = re.findall('name="knownAt" [^>]*value="([^"]+)"', text)
    assert datetime.fromisoformat(shown).replace(tzinfo=store.settings.zone) == known
    assert visitor.get(f"{lender.home}/reports?knownAt=0001-01-01T00:00:00%2B14:00").status_code == 400


@pytest.mark.parametrize(
    ("pointer", "value", "shape"),
    [("/summary/totalMissingness", "0.106", "percent"), ("/revenue_trend_90d", "0.736", "percent"),
     ("/summary/completenessScore", "89.4", "points"), ("/limit/amount", "100.00", "currency")],
)  # fmt: skip
def test_figures_outside_tables_are_written_as_in_reports(pointer: str, value: str, shape: str) -> None:
    assert find_table_and_format(pointer, Decimal(value)) == ("", shape)
