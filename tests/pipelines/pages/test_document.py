"""Every part of a page is drawn in a document that needs no other file, and can be read aloud and without colours."""

import base64
import hashlib
import re
from dataclasses import replace
from datetime import date
from decimal import Decimal

from pipelines.pages import (
    CONTENT_POLICY,
    Card,
    Cards,
    Cell,
    Code,
    Column,
    Figure,
    Figures,
    Folded,
    Grid,
    Matrix,
    Note,
    Opening,
    Page,
    Point,
    Points,
    Section,
    charts,
    drop_none,
    number_columns,
    render,
)
from pipelines.pages.document import STYLE
from tests.pipelines.pages.documents import parse_html, table

HOSTILE = "</style><script>\u202e\x00"
GRID = Grid.of(f"Grid {HOSTILE}", (HOSTILE, *number_columns("Count"), Column("Says", "prose")), [(HOSTILE, "1", "two")])
CHARTS = {
    "line": charts.line_chart(
        [(date(2026, 1, 1), Decimal(-1))], date(2026, 3, 1), [(date(2026, 2, 1), date(2026, 2, 9))]
    ),
    "months": charts.month_chart([(date(2026, 1, 1), Decimal(3), Decimal(2), Decimal(1))]),
    "bars": charts.bar_chart([(HOSTILE, "1", {"track": 2, "solid": 1})]),
    "spans": charts.timeline([charts.Span(HOSTILE, "a", date(2026, 1, 1), date(2026, 2, 1), HOSTILE)]),
}
MATRIX = Matrix("Matrix", "From", (HOSTILE,), ((HOSTILE, (Cell("1", HOSTILE, 2, "same", HOSTILE),), "1"),), ("1", "1"))
PAGE = Page(
    "Kind",
    HOSTILE,
    ((HOSTILE, HOSTILE),),
    (HOSTILE,),
    (
        Section(
            "first", "First", drop_none(Cards((Card(HOSTILE, "1", (HOSTILE,), HOSTILE),)), None, Note(HOSTILE), MATRIX)
        ),
        Section(
            "second",
            "Second",
            (
                Figures(
                    tuple(
                        Figure(id_, HOSTILE, HOSTILE, chart, GRID, (("in", HOSTILE),)) for id_, chart in CHARTS.items()
                    )
                ),
                Points(HOSTILE, (Point(HOSTILE, HOSTILE, HOSTILE), Point("Only this."))),
                GRID,
                Folded((GRID,)),
                Opening(HOSTILE, HOSTILE, (Code(HOSTILE, HOSTILE),)),
            ),
        ),
    ),
    HOSTILE,
)


def test_the_content_security_policy_allows_only_the_documents_style() -> None:
    document = parse_html(render(PAGE))
    hashed = base64.b64encode(hashlib.sha256(document.one("style").text.encode()).digest()).decode()
    assert f"style-src 'sha256-{hashed}'" in CONTENT_POLICY
    assert CONTENT_POLICY.startswith("default-src 'none';")
    [policy] = [each for each in document.all("meta") if each.attributes.get("http-equiv") == "Content-Security-Policy"]
    assert policy.attributes["content"] == CONTENT_POLICY


def test_every_part_is_drawn_and_its_texts_never_become_markup() -> None:
    document = parse_html(render(PAGE))
    assert not list(document.all("script"))
    assert not set("\u202e\x00") & set(document.text)
    shown = HOSTILE.replace("\u202e", "\ufffd").replace("\x00", "\ufffd")
    assert document.one("h1").text == shown
    assert table(document, f"Grid {shown}") == [[shown, "Count", "Says"], [shown, "1", "two"]]
    assert document.one("pre").text == shown
    assert table(document, "Matrix") == [["From", shown, "All"], [shown, f"1{shown}", "1"], ["All", "1", "1"]]
    assert len(list(document.all("svg"))) == len(CHARTS)
    assert [each.text for each in document.all("li")] == [
        f"{shown} {shown} What would resolve this: {shown}",
        "Only this.",
    ]


def test_a_long_table_shows_some_rows_and_counts_the_others() -> None:
    rows = [(str(nth),) for nth in range(1_500)]
    first, last = (Grid.of("Long", ["Row"], rows, newest=newest) for newest in (False, True))
    assert (first.rows[0], last.rows[-1]) == (("0",), ("1499",))
    assert first.size == last.size == "400 rows shown; 1,100 more are in the JSON"


def test_tables_that_a_portrait_page_would_cut_off_are_wide() -> None:
    columns = [f"Money in {nth}" for nth in range(11)]
    narrow, wide = (Grid.of("Table", number_columns(*columns), [["$9.00"] * 10 + [last]]) for last in ("–", "9" * 70))
    assert (narrow.is_wide, wide.is_wide) == (False, True)
    assert not Grid.of("Words", columns[:8], [["Many short words that are broken between lines"] * 8]).is_wide
    assert not Grid.of("Nothing", number_columns(*columns), []).is_wide
    html = render(replace(PAGE, sections=(Section("both", "Both", (narrow, wide)),)))
    assert re.findall('<div class="(scroll[^"]*)"', html) == ["scroll", "scroll wide"]


def luminance(colour: str) -> float:
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_words_and_bars_stand_out_from_the_paper() -> None:
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", STYLE))
    for ground in ("#ffffff", colours["wash"]):
        for ink in ("ink", "soft", "strong", "in", "out"):
            assert contrast(colours[ink], ground) >= 4.5, (ink, ground)  # WCAG 2.2, 1.4.3: text
    for drawn in re.findall(r"--edge: (#[0-9a-f]{6})", STYLE):
        assert contrast(drawn, "#ffffff") >= 3, drawn  # WCAG 2.2, 1.4.11: graphics
