"""Charts as geometry: the positions of lines, bars and labels in a drawing of WIDTH units, and the labels' texts.

The templates draw them. One design serves a phone, a screen and paper: a chart is as wide as a phone, so that its
letters stay readable when it is drawn small; large screens show two side by side. Colour is never the only difference:
kinds also differ in place or pattern, and every figure is in words or in a table beside the chart.

Positions are floats, as drawings need them; every figure that is written comes from the decimals.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from math import floor, log10

from pipelines.reports.page.wording import month, short_money

WIDTH, HEIGHT = 400, 236
LEFT, RIGHT, TOP, BOTTOM = 50, 392, 12, 208  # of the plot
MOST_DATES = 6  # along the bottom
DATE_WIDTH = 52  # of a month and its year
MONTH_STEPS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600)
ROW, BELOW, THICK = 29, 17, 7  # height of a row of words and bar, the bar's distance from its top, the bar's height


@dataclass(frozen=True)
class Tick:
    at: float
    label: str
    anchor: str = "middle"


@dataclass(frozen=True)
class Bar:
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Labelled:
    """A row of a chart: words above, a figure at the right, bars below.

    `kind` is the style of the bars; `track` frames the longest possible bar; `marks` are drawn dark on the bars.
    """

    y: float
    label: str
    figure: str
    bars: tuple[Bar, ...]
    marks: tuple[Bar, ...] = ()
    kind: str = "solid"
    track: Bar | None = None


@dataclass(frozen=True)
class Scale:
    """A linear map from a range of values to a range of positions."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        spread = (self.high - self.low) or 1
        return round(self.start + (value - self.low) / spread * (self.end - self.start), 1)


@dataclass(frozen=True)
class LineChart:
    path: str
    end: tuple[float, float] | None
    zero: float
    ticks: tuple[Tick, ...]
    dates: tuple[Tick, ...]
    shaded: tuple[Bar, ...]
    height: int = HEIGHT


@dataclass(frozen=True)
class MonthChart:
    """Bars up for money in, down for money out."""

    ins: tuple[Bar, ...]
    outs: tuple[Bar, ...]
    nets: tuple[Bar, ...]
    zero: float
    ticks: tuple[Tick, ...]
    dates: tuple[Tick, ...]
    height: int = HEIGHT


@dataclass(frozen=True)
class RowChart:
    """Labelled rows below each other; `dates` along the bottom if the rows are spans of time."""

    rows: tuple[Labelled, ...]
    dates: tuple[Tick, ...]
    height: int


@dataclass(frozen=True)
class Span:
    """A row of a timeline: a bar from one day to another, with `breaks` marked on it."""

    label: str
    figure: str
    first: date
    last: date
    kind: str = "solid"
    breaks: tuple[tuple[date, date], ...] = ()


def line_chart(
    balances: Sequence[tuple[date, Decimal | None]], through: date, gaps: Iterable[tuple[date, date]]
) -> LineChart:
    """Draw balances, each of which holds until the next; an unknown one leaves a hole in the line.

    Args:
        balances: day and balance, in order of the days; at least one.
        through: until when the last one holds.
        gaps: first and last day of stretches to shade.
    """
    first = balances[0][0]
    across = _across(first, max(through, balances[-1][0]))
    values = [float(balance) for _, balance in balances if balance is not None]
    up, ticks = _upright(min([0.0, *values]), max([0.0, *values]))
    _, last = balances[-1]
    return LineChart(
        path=" ".join(_steps(balances, through, across, up)),
        end=None if last is None else (across(max(through, balances[-1][0]).toordinal()), up(float(last))),
        zero=up(0),
        ticks=ticks,
        dates=_dates(across),
        shaded=tuple(_shaded(across, gaps)),
    )


def month_chart(months: Sequence[tuple[date, Decimal, Decimal, Decimal]]) -> MonthChart:
    """Draw months of `(month, money in, money out, net)`, both positive: at least one, in order, without holes."""
    most_in = max(float(each[1]) for each in months)
    most_out = max(float(each[2]) for each in months)
    up, ticks = _upright(-most_out, most_in)
    slot = (RIGHT - LEFT) / len(months)
    wide, zero = max(slot * 0.7, 0.3), up(0)

    def bar(place: int, value: float) -> Bar:
        top, bottom = sorted((zero, up(value)))
        return Bar(round(LEFT + slot * place + (slot - wide) / 2, 1), top, round(wide, 1), round(bottom - top, 1))

    return MonthChart(
        ins=tuple(bar(place, float(each[1])) for place, each in enumerate(months)),
        outs=tuple(bar(place, -float(each[2])) for place, each in enumerate(months)),
        nets=tuple(
            Bar(round(LEFT + slot * place, 1), round(up(float(each[3])) - 1, 1), round(slot, 1), 2)
            for place, each in enumerate(months)
        ),
        zero=zero,
        ticks=ticks,
        dates=tuple(_month_names([each[0] for each in months], slot)),
    )


def bar_chart(rows: Sequence[tuple[str, str, Decimal, Decimal | None]]) -> RowChart:
    """Draw bars of `(label, figure in words, size, largest possible size)` on one scale, nothing below zero."""
    whole = max((float(each) for _, _, size, most in rows for each in (size, most or size)), default=0) or 1.0

    def bar(y: float, size: Decimal) -> Bar:
        return Bar(0, y, round(min(max(float(size) / whole, 0.0), 1.0) * WIDTH, 1), THICK)

    drawn = (
        Labelled(y, label, words, (bar(y + BELOW, size),), track=None if most is None else bar(y + BELOW, most))
        for y, (label, words, size, most) in zip(range(0, len(rows) * ROW, ROW), rows, strict=True)
    )
    return RowChart(tuple(drawn), (), len(rows) * ROW)


def timeline(spans: Sequence[Span]) -> RowChart:
    """Draw spans of time below each other on one scale; at least one."""
    across = Scale(
        min(span.first for span in spans).toordinal(), max(span.last for span in spans).toordinal() + 1, 0, WIDTH
    )
    rows = tuple(_span(place * ROW, span, across) for place, span in enumerate(spans))
    return RowChart(rows, _dates(across), len(spans) * ROW + 20)


def _span(y: float, span: Span, across: Scale) -> Labelled:
    bar = _stretch(across, span.first, span.last, y + BELOW)
    breaks = tuple(_stretch(across, first, last, y + BELOW) for first, last in span.breaks)
    return Labelled(y, span.label, span.figure, (bar,), breaks, span.kind)


def _stretch(across: Scale, first: date, last: date, y: float) -> Bar:
    """Return a bar over the days, both ends included, wide enough to be visible."""
    start, end = across(first.toordinal()), across(last.toordinal() + 1)
    wide = max(end - start, 2)
    return Bar(round(min(start, across.end - wide), 1), y, round(wide, 1), THICK)


def _across(first: date, last: date) -> Scale:
    return Scale(first.toordinal(), max(last.toordinal(), first.toordinal() + 1), LEFT, RIGHT)


def _upright(low: float, high: float) -> tuple[Scale, tuple[Tick, ...]]:
    """Return a vertical scale that starts and ends on round figures, and ticks at its round figures."""
    step = _round_step((high - low) / 4)
    bottom, top = floor(low / step), -floor(-high / step)
    if bottom == top:
        top += 1
    up = Scale(bottom * step, top * step, BOTTOM, TOP)
    return up, tuple(Tick(up(each * step), short_money(each * step), "end") for each in range(bottom, top + 1))


def _round_step(least: float) -> float:
    """Return the next of 1, 2, 2.5, 5 or 10 times a power of ten; at least one dollar."""
    if least <= 1:
        return 1
    power: float = 10 ** floor(log10(least))
    return next(power * each for each in (1, 2, 2.5, 5, 10) if power * each >= least)


def _steps(balances: Sequence[tuple[date, Decimal | None]], through: date, across: Scale, up: Scale) -> Iterator[str]:
    until = [*(day for day, _ in balances[1:]), max(through, balances[-1][0])]
    holed = True
    for (day, balance), end in zip(balances, until, strict=True):
        if balance is None:
            holed = True
            continue
        x, y = across(day.toordinal()), up(float(balance))
        yield f"M{x:g} {y:g}" if holed else f"H{x:g}V{y:g}"
        yield f"H{across(end.toordinal()):g}"
        holed = False


def _shaded(across: Scale, gaps: Iterable[tuple[date, date]]) -> Iterator[Bar]:
    for first, last in gaps:
        start = max(across(first.toordinal()), LEFT)
        end = min(across(last.toordinal()), RIGHT)
        if end >= LEFT and start <= RIGHT:
            yield Bar(min(start, RIGHT - 2), TOP, round(max(end - start, 2), 1), BOTTOM - TOP)


def _dates(across: Scale) -> tuple[Tick, ...]:
    """Return as many months along the bottom as fit, or both ends if fewer than two months begin between them."""
    first, last = (date.fromordinal(min(int(each), date.max.toordinal())) for each in (across.low, across.high))
    starts = list(_firsts_of_months(first, last))
    if len(starts) < 2:
        ends = (first, across.start, "start"), (last, across.end, "end")
        return tuple(Tick(at, f"{day.day} {month(day)}", anchor) for day, at, anchor in ends)
    step = next((each for each in MONTH_STEPS if len(starts) / each <= MOST_DATES), MONTH_STEPS[-1])
    chosen = [each for each in starts if (each.year * 12 + each.month - 1) % step == 0]
    ticks = (Tick(_within(across(each.toordinal())), month(each)) for each in chosen)
    return tuple(_apart(ticks))


def _within(at: float) -> float:
    """Move a date's centre so that the whole date stays within the drawing."""
    return min(max(at, DATE_WIDTH / 2), WIDTH - DATE_WIDTH / 2)


def _apart(ticks: Iterable[Tick]) -> Iterator[Tick]:
    """Yield the ticks that don't touch the one before."""
    free = 0.0
    for tick in ticks:
        if tick.at - DATE_WIDTH / 2 >= free:
            yield tick
            free = tick.at + DATE_WIDTH / 2


def _firsts_of_months(first: date, last: date) -> Iterator[date]:
    for count in range(first.year * 12 + first.month - 1, last.year * 12 + last.month):
        start = date(count // 12, count % 12 + 1, 1)
        if first <= start <= last:
            yield start


def _month_names(months: Sequence[date], slot: float) -> Iterator[Tick]:
    """Yield the months' names under their bars, as many as fit."""
    step = next((each for each in MONTH_STEPS if len(months) / each <= MOST_DATES), MONTH_STEPS[-1])
    named = ((place, each) for place, each in enumerate(months) if (each.year * 12 + each.month - 1) % step == 0)
    return _apart(Tick(_within(round(LEFT + slot * (place + 0.5), 1)), month(each)) for place, each in named)
