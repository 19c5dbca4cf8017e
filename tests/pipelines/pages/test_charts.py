"""Charts are as long as their figures, stay within their frames, and name dates that don't touch."""

import re
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.pages import charts
from tests.pipelines.reports.bundles import starts

balances = st.lists(
    st.tuples(st.dates(date(2000, 1, 1), date(2030, 1, 1)), st.none() | st.integers(-(10**14), 10**14)),
    min_size=1,
    max_size=30,
    unique_by=lambda each: each[0],
)


@given(balances)
def test_the_line_stays_within_its_frame_and_starts_anew_after_what_is_unknown(
    drawn: list[tuple[date, int | None]],
) -> None:
    rows = [(on, None if cents is None else Decimal(cents).scaleb(-2)) for on, cents in sorted(drawn)]
    chart = charts.line_chart(rows, rows[-1][0], [])
    known = [balance is not None for _, balance in rows]
    begun = sum(now and not before for before, now in zip([False, *known], known, strict=False))
    assert chart.path.count("M") == begun
    for x in re.findall(r"[MH](-?[\d.]+)", chart.path):
        assert charts.LEFT <= float(x) <= charts.RIGHT
    for y in re.findall(r"(?:V|M\S+ )(-?[\d.]+)", chart.path):
        assert charts.TOP <= float(y) <= charts.BOTTOM
    heights = [tick.at for tick in chart.ticks]
    assert heights == sorted(heights, reverse=True)
    assert len({tick.label for tick in chart.ticks}) == len(heights) <= 8
    assert "$0" in {tick.label for tick in chart.ticks}


def test_a_balance_stands_until_the_next_one_is_stated() -> None:
    rows = [(date(2026, 1, 1), Decimal(0)), (date(2026, 1, 11), Decimal(100))]
    chart = charts.line_chart(rows, date(2026, 1, 21), [(date(2026, 1, 6), date(2026, 1, 11))])
    middle = (charts.LEFT + charts.RIGHT) / 2
    assert chart.path == f"M50 208 H{middle:g} H{middle:g}V12 H392"
    assert [(band.kind, band.x, band.width) for band in chart.bars] == [("gap", 135.5, 85.5)]


def test_bars_are_as_high_as_what_came_in_and_went_out() -> None:
    months = [
        (date(2026, month, 1), Decimal(300), Decimal(100 * month), Decimal(300 - 100 * month)) for month in (1, 2)
    ]
    chart = charts.month_chart(months)
    ins, outs = ([bar for bar in chart.bars if bar.kind == kind] for kind in ("in", "out"))
    assert ins[0].height == pytest.approx(3 * outs[0].height, abs=0.2)
    assert outs[1].height == pytest.approx(2 * outs[0].height, abs=0.2)
    assert ins[0].y + ins[0].height == pytest.approx(chart.zero)
    assert outs[0].y == chart.zero


@given(st.dates(date(1970, 1, 1), date(2100, 1, 1)), st.integers(0, 20_000))
def test_dates_along_the_foot_never_touch(first: date, days: int) -> None:
    last = first + timedelta(days=days)
    dates = charts.timeline([charts.Span("a", "b", first, last)]).dates
    assert 1 <= len(dates) <= charts.MAX_DATES + 1
    assert all(later.at - earlier.at >= charts.DATE_WIDTH for earlier, later in pairwise(dates))


def test_months_are_named_under_their_bars() -> None:
    months = [(date.fromisoformat(start), Decimal(1), Decimal(1), Decimal(0)) for start in starts(36)]
    dates = charts.month_chart(months).dates
    assert 3 <= len(dates) <= 6
    assert {tick.label for tick in dates} <= {date.fromisoformat(start).strftime("%b %Y") for start in starts(36)}


def test_bars_of_a_row_stand_below_each_other_and_a_track_behind() -> None:
    pairs = charts.bar_chart([("a", "1", {"was": 4, "will": Decimal(1)}), ("b", "2", {"was": 0, "will": 2})])
    assert [bar.width for bar in pairs.bars] == [400, 100, 0, 200]
    assert [bar.y for bar in pairs.bars] == [17, 26, 55, 64]
    assert pairs.height == 76
    track, solid = charts.bar_chart([("a", "1 of 4", {"track": 4, "solid": 1})]).bars
    assert (track.y, track.width) == (solid.y, 4 * solid.width)


def test_a_chart_without_rows_or_sizes_is_no_error() -> None:
    assert charts.bar_chart([]) == charts.Chart(height=0)
    assert charts.bar_chart([("a", "0", {"solid": 0})]).bars[0].width == 0
