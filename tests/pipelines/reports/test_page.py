"""The page of a customer's reports: the figures of the bundle, safe, readable aloud, and never an error."""

import json
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipelines.pages import Folded
from pipelines.pages.wording import day
from pipelines.reports.aggregate.categories import PROFIT_AND_LOSS
from pipelines.reports.page import About, page, page_content, read_annex
from pipelines.reports.page.columns import figure
from pipelines.reports.page.sections import SECTIONS
from tests.conftest import examples
from tests.pipelines.pages.documents import Element, parse_html, table
from tests.pipelines.reports.bundles import MAIN, PENDING, THROUGH, Data, ReportMember, bundle, everything, tables

WHOM = About("Harbour Coffee Pty Ltd", "51824753556", "HC-1", "2f0c")
NOTHING: Mapping[str, Data] = {
    "completeness": {
        "summary": {"completenessScore": 0, "completenessTier": "insufficient", "totalMissingness": 1},
        "freshness": {"dataThrough": None, "daysBehind": None},
        "accounts": [],
        "gaps": [],
        "reasons": [{"code": "Completeness.NoTransactions", "message": "There are no posted transactions."}],
    },
    "risk": {"value": 1, "rating": "E", "pdConfidenceScore": 0, "pdConfidenceRating": "low", "errorCodes": []},
    "aggregate": {"tables": [{**each, "values": []} for each in tables()]},
}


def without_balances() -> dict[str, Data]:
    data = everything()
    for each in data["aggregate"]["tables"]:
        for row in each["values"]:
            row.update({name: None for name in row if "alance" in name})
    return data


def with_one_row() -> dict[str, Data]:
    data = everything(months=1, accounts=1)
    for each in data["aggregate"]["tables"]:
        each["values"] = each["values"][:1]
    data["completeness"]["gaps"] = []
    return data


def with_negative_months() -> dict[str, Data]:
    data = everything()
    for row in data["aggregate"]["tables"][0]["values"]:
        row.update(moneyIn=0, revenue=-12.5, net=-row["moneyOut"], closingBalance=-9000.01, openingBalance=-1)
    return data


BUNDLES: Mapping[str, Callable[[], Mapping[str, ReportMember]]] = {
    "everything": lambda: bundle(everything()),
    "36 months, 50 accounts": lambda: bundle(everything(months=36, accounts=50)),
    "one row": lambda: bundle(with_one_row()),
    "no balances": lambda: bundle(without_balances()),
    "negative months": lambda: bundle(with_negative_months()),
    "empty history": lambda: bundle(NOTHING),
    "empty data": lambda: bundle({"completeness": {}, "risk": {}, "aggregate": {}}),
    "pending": lambda: dict.fromkeys(("completeness", "risk", "aggregate"), PENDING),
    "failed at first": lambda: dict.fromkeys(("completeness", "risk", "aggregate"), replace(PENDING, failed=True)),
    "no member at all": dict,
}
every_bundle = pytest.mark.parametrize("name", BUNDLES)


@cache
def write_page(name: str) -> str:
    return page(BUNDLES[name](), WHOM)


@cache
def document_of(name: str) -> Element:
    return parse_html(write_page(name))


def parse_page(data: Mapping[str, Data]) -> Element:
    return parse_html(page(bundle(data), WHOM))


def whole() -> Element:
    """Return the page of `everything()`."""
    return document_of("everything")


@every_bundle
def test_the_page_is_a_whole_document_in_australian_english(name: str) -> None:
    text, document = write_page(name), document_of(name)
    assert text.lstrip().startswith("<!DOCTYPE html>")
    assert document.one("html").attributes["lang"] == "en-AU"
    assert document.one("h1").text == "Harbour Coffee Pty Ltd"
    assert "51 824 753 556" in document.one("header").text
    assert not {"None", "nan", "NaN"} & set(re.findall(r"\w+", document.one("body").text))


@every_bundle
def test_it_fetches_nothing_and_runs_nothing(name: str) -> None:
    text = write_page(name)
    assert not re.search(r"https?:|//[a-z]|@import|javascript:|data:", text)
    for each in document_of(name).all():
        assert each.tag not in {"script", "link", "img", "iframe", "object", "embed", "form", "base"}
        refused = {"src", "srcset", "style", "action", "xlink:href"} | {
            n for n in each.attributes if n.startswith("on")
        }
        assert not refused & set(each.attributes)
        assert each.attributes.get("href", "#").startswith("#")


HOSTILE = (
    "<script>alert(1)</script>",
    "</style></svg><img src=x onerror=alert(1)>",
    '" onload="alert(1)',
    "{{ 7 * 7 }}{% raw %}",
    "\u202eevil\u202d שלום مرحبا",
    "☕🏦👩‍👩‍👧‍👦",
    "x" * 1000,
    "a\x00b\x1b[31mc\ud800d",
    "",
)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_texts_of_others_never_become_markup(hostile: str) -> None:
    text = page(bundle(replace_texts(everything(), hostile)), About(hostile, hostile, hostile, hostile))
    text.encode()
    document = parse_html(text)
    tags = [(each.tag, sorted(each.attributes)) for each in document.all()]
    if hostile:
        assert tags == [(each.tag, sorted(each.attributes)) for each in whole().all()]
        visible = re.sub("[\x00-\x08\x1b\ud800\u202d\u202e]", "\ufffd", hostile)
        assert document.one("h1").text == visible
        assert [visible, visible] == [row[0] for row in table(document, "Top counterparties: Money in")[1:]]


@settings(examples(1), suppress_health_check=[HealthCheck.too_slow])
@given(st.text(min_size=1, max_size=40))
def test_no_text_becomes_markup(anything: str) -> None:
    assert tags_when_called(anything) == tags_when_called("Plain")


def tags_when_called(name: str) -> list[str]:
    few = {**everything(months=1), "aggregate": {"tables": tables(1)[3:6]}}
    return [each.tag for each in parse_html(page(bundle(replace_texts(few, name)), About(name))).all()]


def replace_texts(data: dict[str, Data], name: str) -> dict[str, Data]:
    """Return the data with every text that somebody else wrote replaced."""
    theirs = {"accountName", "bankName", "message", "settledBy", "counterparty", "lenderName", "description", "reason"}

    def walk(value: Any, under: str = "") -> Any:
        if isinstance(value, dict):
            names = theirs | ({"name"} if "rank" in value or "points" in value else set())
            return {key: name if key in names and each is not None else walk(each, key) for key, each in value.items()}
        return [walk(each, under) for each in value] if isinstance(value, list) else value

    renamed_data: dict[str, Data] = walk(data)
    return renamed_data


def aud(value: float | None) -> str:
    """Format dollars, independently of the page's own code."""
    if value is None:
        return "–"
    exact = Decimal(str(value))
    return ("−" if exact < 0 else "") + f"${abs(exact):,.2f}"


def name_month(iso: str) -> str:
    return date.fromisoformat(iso).strftime("%b %Y")


def test_the_months_have_the_figures_of_the_report() -> None:
    data = everything()
    heads, *rows = table(parse_page(data), "Monthly cash flow")
    assert heads[:5] == ["Month", "Partial", "Money in", "Money out", "Net"]
    expected = [
        [name_month(row["month"]), "Yes" if row["partial"] else "No"]
        + [aud(row[name]) for name in ("moneyIn", "moneyOut", "net", "revenue", "closingBalance", "minBalance")]
        + [str(row["negativeDays"]), str(row["dishonours"])]
        for row in data["aggregate"]["tables"][0]["values"]
    ]
    assert rows == expected


def test_the_annex_contains_every_table_of_the_report_in_full() -> None:
    data = everything(months=3)
    document = parse_page(data)
    [annex] = [each for each in document.all("section") if each.attributes["id"] == "annex"]
    captions = [each.one("caption").text.strip() for each in annex.all("table")]
    for each in data["aggregate"]["tables"]:
        assert each["name"] in captions
        heads, *rows = table(annex, each["name"])
        assert len(heads) == len(each["columns"])
        assert len(rows) == len(each["values"])
        money_columns = [i for i, column in enumerate(each["columns"]) if column["unit"] == "AUD"]
        for row, values in zip(rows, each["values"], strict=True):
            printed = [row[place] for place in money_columns]
            assert printed == [aud(list(values.values())[place]) for place in money_columns]


def test_sections_can_be_filled_one_by_one() -> None:
    reports = bundle(everything())
    whole = [each for each in page_content(reports, About()).sections if each.id != "annex"]
    for section in whole:
        alone = page_content(reports, About(), only={section.id}).sections
        assert next(each for each in alone if each.id == section.id) == section
        assert [each.title for each in alone if each.id != "charts"] == [
            each.title for each in whole if each.id != "charts"
        ]
    few = page_content(reports, About(), only=()).sections
    assert all(not each.parts for each in few if each.id in {plan.id for plan in SECTIONS})


def test_tables_of_the_annex_alone_are_those_of_the_page() -> None:
    reports = bundle(everything(months=3))
    [annex] = [each for each in page_content(reports, About()).sections if each.id == "annex"]
    [grids] = [part.grids for part in annex.parts if isinstance(part, Folded)]
    alone = read_annex(reports)
    assert list(alone.tables) == [grid.caption for grid in grids]
    assert [alone.grid(grid.caption) for grid in grids] == list(grids)
    assert alone.grid("no such table") is None
    assert read_annex({}).tables == {}


def test_categories_are_summed_over_all_months_without_own_transfers() -> None:
    data = everything()
    sums: dict[str, Decimal] = {}
    for row in data["aggregate"]["tables"][2]["values"]:
        if not row["ownTransfer"]:
            sums[row["category"]] = sums.get(row["category"], Decimal(0)) + Decimal(str(row["moneyOut"]))
    rows = table(parse_page(data), "Where money went")[1:]
    assert {name: amount for name, amount, _ in rows} == {
        {"dishonour_fee": "Dishonour fee"}.get(slug, slug.capitalize()): f"${amount:,.2f}"
        for slug, amount in sums.items()
        if amount
    }
    assert sum(Decimal(share.removesuffix(" %")) for *_, share in rows) == pytest.approx(
        Decimal(100), abs=Decimal("0.2")
    )


def cards(document: Element) -> dict[str, str]:
    each = (each for each in document.all("div") if each.attributes.get("class") == "card")
    return {card.one("h3").text: " ".join(p.text for p in card.all("p")) for card in each}


def test_the_cards_say_the_scores_and_how_to_take_them() -> None:
    shown = cards(whole())
    assert shown["Completeness"] == "71.25 / 100 Substantial 18.75 % missing"
    assert shown["Risk rating"].startswith("B Indicative Risk figure 0.3125 between 0.25 and 0.4")
    assert shown["Confidence in the risk figure"] == "74.50 / 100 High"
    assert shown["Revenue, last 90 days"] == "$91,235 Money in $93,000 Money out $88,000 Net $5,000"


def test_the_time_of_computation_is_in_the_zone_of_the_service() -> None:
    in_sydney = page(bundle(everything()), replace(WHOM, zone=ZoneInfo("Australia/Sydney")))
    computed = bundle(everything())["risk"].generated_at
    assert computed is not None
    assert f"{computed.astimezone(ZoneInfo('Australia/Sydney')):%H:%M %Z}" in parse_html(in_sydney).text
    assert f"{computed:%H:%M} UTC" in parse_html(page(bundle(everything()), WHOM)).text


def test_reasons_say_what_resolving_them_adds_alone_and_together() -> None:
    text = whole().text
    assert "Supply account ending 4821 from 3 Mar 2026. (+3.50 points)" in text
    assert "If all of this were resolved, completeness would be 75.75: 4.50 points more." in text


@pytest.mark.parametrize(("likely", "marks"), [("rows_missing", 1), ("rounding", 0), ("ordering", 0)])
def test_small_breaks_and_orders_are_no_missing_rows(likely: str, marks: int) -> None:
    data = everything()
    data["completeness"]["gaps"] = [{**data["completeness"]["gaps"][0], "likely": likely}]
    text = parse_page(data).text
    assert ("no row is missing" in text) is (marks == 0)
    assert ("1 gap" in text) is bool(marks)


@pytest.mark.parametrize(
    ("calibration", "indicative", "probable"),
    [(None, True, False), ("none", True, False), ("synthetic", True, False), ("client", False, True)],
)
def test_a_figure_is_indicative_until_it_is_fitted_to_the_clients_outcomes(
    calibration: str | None, indicative: bool, probable: bool
) -> None:
    data = everything()
    data["risk"]["calibration"] = calibration
    card = cards(parse_page(data))["Risk rating"]
    assert ("Indicative" in card) is indicative
    assert ("31.25 % probability of default" in card) is probable


def test_reasons_say_what_would_resolve_them() -> None:
    items = [each.text for each in whole().all("li")]
    assert any("What would resolve this: Supply account ending 4821 from 3 Mar 2026." in item for item in items)
    assert any("Risk.Uncalibrated" in item for item in items)


def test_drivers_have_points_reading_and_rank_among_peers() -> None:
    _, *rows = table(whole(), "Drivers of the risk rating")
    assert rows[0][:4] == ["Buffer days", "12.2 days", "5.00 of 20", "31"]
    assert rows[2][:4] == ["Dishonours per month", "Unknown", "0.00 of 20", "–"]


def test_what_would_move_the_rating_is_said() -> None:
    items = [each.text for each in whole().all("li")]
    assert "Buffer days from 12.25 to 20 would lift the rating from B to A." in items


def test_accounts_are_named_wherever_their_ids_occur() -> None:
    data = everything()
    data["aggregate"]["tables"] = [
        {
            "id": "own_transfers",
            "name": "Own transfers",
            "columns": [{"name": "fromAccountId", "unit": "text"}, {"name": "toAccountId", "unit": "text"}],
            "values": [{"fromAccountId": MAIN, "toAccountId": "elsewhere"}],
        }
    ]
    expected = [["From account", "To account"], ["Harbour Coffee Pty Ltd ••••1001", "elsewhere"]]
    assert table(parse_page(data), "Own transfers") == expected


def test_debts_run_from_their_first_draw_or_the_first_day_to_their_end_or_the_last_day() -> None:
    [drawing] = [each for each in whole().all("svg") if each.one("title").text == "Debt over time"]
    running, ended = (
        (each.attributes["class"], float(each.attributes["x"]), float(each.attributes["width"]))
        for each in drawing.all("rect")
    )
    days = (THROUGH - date(2025, 9, 1)).days + 1  # from the first row of any account
    drawn, repaid = (date(2026, 2, 11) - date(2025, 9, 1)).days, (date(2026, 1, 12) - date(2025, 9, 1)).days + 1
    assert running[0] == "solid"
    assert running[1:] == pytest.approx((400 * drawn / days, 400 * (days - drawn) / days), abs=0.2)
    assert ended[0] == "outline"
    assert ended[1:] == pytest.approx((0, 400 * repaid / days), abs=0.2)


def test_a_drawing_that_leaves_out_rows_says_so() -> None:
    data = everything()
    account, gap = data["completeness"]["accounts"][0], data["completeness"]["gaps"][0]
    data["completeness"] |= {
        "accounts": [{**account, "accountId": str(number)} for number in range(61)],
        "gaps": [gap],
    }
    [figure] = [each for each in parse_page(data).all("figure") if "Coverage of each account" in each.text]
    assert "61 accounts from first to last row, no gaps. The drawing shows the first 60 of 61." in figure.text


def test_the_shown_lines_of_profit_add_up_to_what_was_kept() -> None:
    [plan] = [each for each in SECTIONS if each.id == "profit"]
    columns = [set(each.columns) for each in plan.tables]
    for result in PROFIT_AND_LOSS.derived:
        assert any({result.name, *result.inputs} <= shown for shown in columns), result.name


def test_a_gap_between_two_statements_is_named() -> None:
    data = everything()
    data["completeness"]["gaps"][0] |= {"evidence": "statement_missing", "likely": None}
    assert table(parse_page(data), "Gaps")[1][1] == "Between the periods of two statements"


def test_gaps_name_their_account_and_evidence() -> None:
    _, *rows = table(whole(), "Gaps")
    assert rows[0] == [
        "Harbour Coffee Pty Ltd ••••1001",
        "The running balance does not follow (likely: rows missing)",
        "3 Mar 2026",
        "19 Mar 2026",
        "15",
        "−$1,234.50",
    ]


@pytest.mark.parametrize(
    ("member", "notice"),
    [
        (PENDING, "The risk report has not been computed yet."),
        (replace(PENDING, failed=True), "The risk report could not be computed, and there is no earlier one."),
        (ReportMember("stale", failed=True, data_json="{}"), "failed: this is the last good one."),
        (ReportMember("stale", data_json="{}"), "The risk report is older than the data"),
        (ReportMember("ready", data_json="{}"), None),
    ],
)
def test_what_is_pending_failed_or_stale_is_said_at_the_top(member: ReportMember, notice: str | None) -> None:
    document = parse_html(page({**bundle(everything()), "risk": member}, WHOM))
    notices = [each.text for each in document.all("div") if each.attributes.get("class") == "notices"]
    assert bool(notices) is (notice is not None)
    assert notice is None or notice in notices[0]


def test_what_rests_on_unreconciled_statements_is_said_at_the_top_and_listed_by_column() -> None:
    data = everything()
    for kind, figures in {
        "completeness": [{"row": "/accounts/0", "shares": {"transactionCount": 0.25}}],
        "risk": [{"row": "", "shares": {"value": 0.1}}, {"row": "/drivers/1", "shares": {"reading": 0.5}}],
        "aggregate": [
            {"row": f"/tables/monthly_cash_flow/values/{nth}", "shares": {"moneyIn": share, "net": 0.5}}
            for nth, share in enumerate((0.125, 0.75))
        ],
    }.items():
        data[kind]["unreconciled"] = {"rows": 9, "shareOfRows": 0.3, "shareOfAmount": 0.125, "figures": figures}
    document = parse_page(data)
    [notice] = [each.text for each in document.all("div") if each.attributes.get("class") == "notices"]
    assert "12.50 % of the money moved (30.00 % of the rows) rests on PDF statements that do not reconcile." in notice
    assert table(document, "Figures that rest on statements that do not reconcile")[1:] == [
        ["Accounts", "Transactions", "1", "25.00 %"],
        ["Risk rating", "Value", "1", "10.00 %"],
        ["Revenue trend", "Reading", "1", "50.00 %"],
        ["Monthly cash flow", "Money in", "2", "75.00 %"],
        ["Monthly cash flow", "Net", "2", "50.00 %"],
    ]
    assert not [each for each in whole().all("div") if each.attributes.get("class") == "notices"]


def test_a_long_table_shows_the_newest_rows_and_counts_the_others() -> None:
    data = everything(months=30)
    rows = data["aggregate"]["tables"][1]["values"]
    first = date(2020, 1, 1)
    rows[:0] = [{**rows[0], "date": (first + timedelta(days=count)).isoformat()} for count in range(300)]
    caption = f"Daily balance ({400} rows shown; {len(rows) - 400} more are in the JSON)"
    printed = table(parse_page(data), caption)
    assert len(printed) == 401
    assert printed[-1][0] == day(date.fromisoformat(rows[-1]["date"]))


@every_bundle
def test_every_drawing_has_a_name_and_a_description(name: str) -> None:
    document = document_of(name)
    ids = [each.attributes["id"] for each in document.all() if "id" in each.attributes]
    assert len(ids) == len(set(ids))
    for drawing in document.all("svg"):
        assert drawing.attributes["role"] == "img"
        title, described = drawing.one("title"), drawing.one("desc")
        assert title.text.strip()
        assert described.text.strip()
        named = [title.attributes["id"], described.attributes["id"]]
        assert drawing.attributes["aria-labelledby"].split() == named
    used = set(re.findall(r"url\(#([\w-]+)\)|aria-labelledby=\"([\w -]+)\"", page(BUNDLES[name](), WHOM)))
    assert {each for pair in used for part in pair for each in part.split()} <= set(ids)


@every_bundle
def test_headings_are_in_order_and_tables_have_theirs(name: str) -> None:
    document = document_of(name)
    levels = [int(each.tag[1]) for each in document.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    for each in document.all("table"):
        assert each.one("caption").text.strip()
        for cell in each.all("th"):
            assert cell.attributes["scope"] in {"col", "row"}
        widths = {len(list(row.all("th", "td"))) for row in each.all("tr")}
        assert len(widths) == 1


def paths(value: object, here: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    below: list[tuple[str | int, ...]] = []
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in members:
        below += [(*here, key), *paths(each, (*here, key))]
    return below


WHOLE = everything(months=2)
PATHS = paths(WHOLE)
ODD: tuple[object, ...] = (
    None,
    "",
    "odd",
    "2026-99-99",
    "0001-01-01",
    "9999-12-31",
    0,
    -1,
    1e15,
    10**30,
    True,
    [],
    {},
    [None],
    [[1]],
    {"a": 1},
)


@settings(examples(4), suppress_health_check=[HealthCheck.too_slow])
@example([(("risk", "drivers", 0, "reading"), 10**30)])
@example([(("risk", "drivers", 1, "reading"), 10**30)])
@given(st.lists(st.tuples(st.sampled_from(PATHS), st.sampled_from(ODD)), min_size=1, max_size=5))
def test_a_bundle_that_lacks_something_or_has_it_in_another_form_still_gives_a_page(
    changes: list[tuple[tuple[str | int, ...], object]],
) -> None:
    data = deepcopy(WHOLE)
    for path, odd in changes:
        put(data, path, odd)
    parse_html(page(bundle(data), WHOM))


def put(data: Any, path: tuple[str | int, ...], value: object) -> None:
    """Set the value at the path; do nothing if an earlier change removed the place."""
    *way, last = path
    try:
        for key in way:
            data = data[key]
        data[last] = deepcopy(value)
    except (KeyError, IndexError, TypeError):
        return


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (figure("2026-03-01", "month"), "Mar 2026"),
        (figure("2026-03-01", "date", "firstDate"), "1 Mar 2026"),
        (figure("2026-03-01", "text", "description"), "2026-03-01"),
        (figure("20260301", "", "reference"), "20260301"),
        (figure("visa_debit", "text", "name"), "visa_debit"),
        (figure("cash_advance", "text", "product"), "Cash advance"),
        (figure(Decimal("0.5"), "ratio", "share"), "50.00 %"),
        (figure(Decimal("0.5"), "ratio", "trend"), "0.5"),
        (figure(value=True, unit="boolean"), "Yes"),
    ],
)
def test_values_are_written_by_the_unit_of_their_column(written: str, expected: str) -> None:
    assert written == expected


def test_the_same_bundle_gives_the_same_page() -> None:
    assert page(bundle(everything()), WHOM) == page(bundle(json.loads(json.dumps(everything()))), WHOM)


def limited_reports() -> Data:
    """Return reports of a rating that evidence and an event limit, with a driver that is half unknown."""
    data = everything()
    data["risk"] |= {
        "limitedBy": ["evidence", "garnishee"],
        "covered": 0.62,
        "rating": "D",
        "events": [
            {"sentence": "A court took money", "ceiling": "D", "until": "2027-03-03", "resolved": False},
            {"sentence": "Payments to collectors", "ceiling": "C", "until": "2027-03-03", "resolved": True},
        ],
        "principalReasons": [{"code": "buffer_days", "kind": "unverified", "words": "Buffer: could not be verified."}],
    }
    data["risk"]["drivers"][0] |= {"coverage": 0.5, "state": "known"}
    data["risk"]["drivers"][2] |= {"coverage": 0, "state": "unknown"}
    return data


def test_what_limits_the_rating_is_said_in_sentences() -> None:
    document = parse_page(limited_reports())
    items = [each.text for each in document.all("li")]
    assert "A court took money: the rating is D at best until 3 Mar 2027." in items
    assert any(each.startswith("Only 62.00 % of the expected evidence could be verified") for each in items)
    assert not any("Payments to collectors" in each for each in items)
    assert "Buffer: could not be verified." in items
    assert "garnishee" not in document.text


def test_unknown_looks_different_from_bad() -> None:
    """An unknown share is striped; lost points are not."""
    drawn = next(each for each in parse_page(limited_reports()).all("figure") if each.attributes["id"] == "drivers")
    fills = [each.attributes.get("fill") or each.attributes["class"] for each in drawn.all("rect")]
    striped = [each for each in fills if each == "url(#drivers-gap)"]
    assert len(striped) == 2
    assert "unknown, up to 20" in drawn.text


def test_how_much_of_a_reading_was_verified_stands_beside_its_points() -> None:
    data = everything()
    drivers = data["risk"]["drivers"]
    drivers[0] |= {"coverage": 0.66, "state": "known"}
    drivers[1] |= {"coverage": 1, "state": "known"}
    drivers[2] |= {"coverage": 0, "state": "unknown"}
    table = next(each for each in parse_page(data).all("table") if "Verified" in each.text)
    for words in ("Only 66.00 % could be verified", "In full", "Could not be verified"):
        assert words in table.text
