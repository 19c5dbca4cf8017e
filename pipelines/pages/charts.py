"""Charts as geometry: where things are in a drawing of WIDTH units, for the template to draw.

One design serves a phone, a screen and paper: a chart is as wide as a phone, so that its letters stay readable when it
is drawn small; large screens set two beside each other. Colour alone means nothing: kinds of bars differ in place,
outline or pattern, and every figure is also in words or in a table beside the chart.

Positions are floats, as drawings need them; every figure that is written comes from the decimals.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from math import floor, log10

from pipelines.pages.wording import day, month, short_money

WIDTH, HEIGHT = 400, 236
LEFT, RIGHT, TOP, BOTTOM = 50, 392, 12, 208  # of the plot
MAX_DATES = 5  # along the bottom
DATE_WIDTH = 60  # of a month and its year in the widest of the usual fonts
MONTH_STEPS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600)
ROW_HEIGHT, BAR_HEIGHT = 29, 7
FIRST_BAR, NEXT_BAR = 17, 9  # distance of a row's first bar from its top, and of each further bar from the one before
STRIPED = ("gap", "out")  # kinds of bars that are drawn with a pattern


@dataclass(frozen=True)
class Tick:
    at: float
    label: str
    anchor: str = "middle"


@dataclass(frozen=True)
class Bar:
    """`kind` says how it is drawn: a class of the style sheet, or one of STRIPED."""

    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Row:
    """The words above the bars of a row: a label at the left, a figure at the right."""

    y: float
    label: str
    figure: str


@dataclass(frozen=True)
class Chart:
    """Everything in a drawing, in the order drawn. `zero` is the height of the zero line, `path` a line's path data and
    `end` its last point.
    """

    height: int = HEIGHT
    ticks: tuple[Tick, ...] = ()
    dates: tuple[Tick, ...] = ()
    rows: tuple[Row, ...] = ()
    bars: tuple[Bar, ...] = ()
    zero: float | None = None
    path: str = ""
    end: tuple[float, float] | None = None

    @property
    def patterns(self) -> list[str]:
        """Return the patterns that the bars need."""
        return [kind for kind in STRIPED if any(bar.kind == kind for bar in self.bars)]


@dataclass(frozen=True)
class Span:
    """A row of a timeline: a bar of this kind from one day to another, and breaks within it that stand out."""

    label: str
    figure: str
    first: date
    last: date
    kind: str = "solid"
    breaks: tuple[tuple[date, date], ...] = ()


@dataclass(frozen=True)
class Scale:
    """Map a range of values to a range of positions."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        spread = (self.high - self.low) or 1
        return round(self.start + (value - self.low) / spread * (self.end - self.start), 1)


def line_chart(
    balances: Sequence[tuple[date, Decimal | None]], through: date, gaps: Iterable[tuple[date, date]]
) -> Chart:
    """Draw balances, each as a level line until the next. An unknown balance leaves a gap.

    Args:
        balances: day and balance, in order of the days; at least one.
        through: how long the last one stands.
        gaps: first and last day of stretches to shade.
    """
    end = max(through, balances[-1][0])
    across = _horizontal_scale(balances[0][0], end)
    values = [float(balance) for _, balance in balances if balance is not None]
    up, ticks = _vertical_scale(min([0.0, *values]), max([0.0, *values]))
    last = balances[-1][1]
    return Chart(
        ticks=ticks,
        dates=_date_ticks(across),
        bars=tuple(_shade_gaps(across, gaps)),
        zero=up(0),
        path=" ".join(_draw_line(balances, end, across, up)),
        end=None if last is None else (across(end.toordinal()), up(float(last))),
    )


def month_chart(months: Sequence[tuple[date, Decimal, Decimal, Decimal]]) -> Chart:
    """Draw money in upwards and money out downwards, month by month, and the net of both.

    Args:
        months: month, money in, money out (positive), net: at least one, in order, without gaps.
    """
    up, ticks = _vertical_scale(-max(float(each[2]) for each in months), max(float(each[1]) for each in months))
    slot = (RIGHT - LEFT) / len(months)
    wide, zero = max(slot * 0.7, 0.3), up(0)

    def bar(kind: str, place: int, value: float) -> Bar:
        top, bottom = sorted((zero, up(value)))
        x = round(LEFT + slot * place + (slot - wide) / 2, 1)
        return Bar(kind, x, top, round(wide, 1), round(bottom - top, 1))

    def bars(place: int, came: float, went: float, net: float) -> Iterator[Bar]:
        yield bar("in", place, came)
        yield bar("out", place, -went)
        yield Bar("net", round(LEFT + slot * place, 1), round(up(net) - 1, 1), round(slot, 1), 2)

    return Chart(
        ticks=ticks,
        dates=_month_ticks((each[0], round(LEFT + slot * (place + 0.5), 1)) for place, each in enumerate(months)),
        bars=tuple(bar for place, each in enumerate(months) for bar in bars(place, *map(float, each[1:]))),
        zero=zero,
    )


BACKGROUND = frozenset({"gap", "track"})


def bar_chart(rows: Sequence[tuple[str, str, Mapping[str, Decimal | float]]]) -> Chart:
    """Draw rows of bars on one scale from zero; the longest bar is as wide as the drawing.

    Args:
        rows: label, figure in words, and sizes by kind of bar. The bars of a row are below each other. A bar of a kind
            in BACKGROUND lies behind the next one instead, and shows how large that could be.
    """
    sizes = [[(kind, max(float(size), 0.0)) for kind, size in each.items()] for _, _, each in rows]
    whole = max((size for each in sizes for _, size in each), default=0) or 1.0
    height = ROW_HEIGHT + NEXT_BAR * max(
        (sum(kind not in BACKGROUND for kind, _ in each) - 1 for each in sizes), default=0
    )

    def bars(y: float, row: Sequence[tuple[str, float]]) -> Iterator[Bar]:
        for kind, size in row:
            yield Bar(kind, 0, y, round(size / whole * WIDTH, 1), BAR_HEIGHT)
            y += 0 if kind in BACKGROUND else NEXT_BAR

    return Chart(
        height=len(rows) * height,
        rows=tuple(Row(place * height, label, figure) for place, (label, figure, _) in enumerate(rows)),
        bars=tuple(bar for place, each in enumerate(sizes) for bar in bars(place * height + FIRST_BAR, each)),
    )


def timeline(spans: Sequence[Span]) -> Chart:
    """Draw spans of time below each other on one scale; at least one."""
    first, last = min(span.first for span in spans), max(span.last for span in spans)
    across = Scale(first.toordinal(), last.toordinal() + 1, 0, WIDTH)
    return Chart(
        height=len(spans) * ROW_HEIGHT + 20,
        dates=_date_ticks(across),
        rows=tuple(Row(place * ROW_HEIGHT, span.label, span.figure) for place, span in enumerate(spans)),
        bars=tuple(
            _stretch(kind, across, begins, ends, place * ROW_HEIGHT + FIRST_BAR)
            for place, span in enumerate(spans)
            for kind, begins, ends in [(span.kind, span.first, span.last), *(("break", *each) for each in span.breaks)]
        ),
    )


def _stretch(kind: str, across: Scale, first: date, last: date, y: float) -> Bar:
    """Return the bar from the first day to the last, both included; never too narrow to be seen."""
    start, end = across(first.toordinal()), across(last.toordinal() + 1)
    wide = max(end - start, 2)
    return Bar(kind, round(min(start, across.end - wide), 1), y, round(wide, 1), BAR_HEIGHT)


def _horizontal_scale(first: date, last: date) -> Scale:
    return Scale(first.toordinal(), max(last.toordinal(), first.toordinal() + 1), LEFT, RIGHT)


def _vertical_scale(low: float, high: float) -> tuple[Scale, tuple[Tick, ...]]:
    """Return a scale from the bottom of the plot to its top that starts and ends on round figures, and its ticks."""
    step = _round_step((high - low) / 4)
    bottom, top = floor(low / step), -floor(-high / step)
    if bottom == top:
        top += 1
    up = Scale(bottom * step, top * step, BOTTOM, TOP)
    return up, tuple(Tick(up(each * step), short_money(each * step), "end") for each in range(bottom, top + 1))


def _round_step(least: float) -> float:
    """Return the least step of 1, 2, 2.5, 5 or 10 times a power of ten that is at least this; never below a dollar."""
    if least <= 1:
        return 1
    power: float = 10 ** floor(log10(least))
    return next(power * each for each in (1, 2, 2.5, 5, 10) if power * each >= least)


def _draw_line(
    balances: Sequence[tuple[date, Decimal | None]], through: date, across: Scale, up: Scale
) -> Iterator[str]:
    until = [*(start for start, _ in balances[1:]), through]
    is_after_gap = True
    for (start, balance), end in zip(balances, until, strict=True):
        if balance is None:
            is_after_gap = True
            continue
        x, y = across(start.toordinal()), up(float(balance))
        yield f"M{x:g} {y:g}" if is_after_gap else f"H{x:g}V{y:g}"
        yield f"H{across(end.toordinal()):g}"
        is_after_gap = False


def _shade_gaps(across: Scale, gaps: Iterable[tuple[date, date]]) -> Iterator[Bar]:
    for first, last in gaps:
        start = max(across(first.toordinal()), LEFT)
        end = min(across(last.toordinal()), RIGHT)
        if end >= LEFT and start <= RIGHT:
            yield Bar("gap", min(start, RIGHT - 2), TOP, round(max(end - start, 2), 1), BOTTOM - TOP)


def _date_ticks(across: Scale) -> tuple[Tick, ...]:
    """Return as many months along the bottom as fit; the first and the last day if fewer than two months begin."""
    first, last = (date.fromordinal(min(int(each), date.max.toordinal())) for each in (across.low, across.high))
    starts = list(_firsts_of_months(first, last))
    if len(starts) < 2:
        ends = (first, across.start, "start"), (last, across.end, "end")
        return tuple(Tick(at, day(on), anchor) for on, at, anchor in ends)
    return _month_ticks((each, across(each.toordinal())) for each in starts)


def _month_ticks(months: Iterable[tuple[date, float]]) -> tuple[Tick, ...]:
    """Return ticks for as many of the months, at their places, as fit without touching."""
    all_months = list(months)
    step = next((each for each in MONTH_STEPS if len(all_months) / each <= MAX_DATES), MONTH_STEPS[-1])
    chosen = [(each, at) for each, at in all_months if (each.year * 12 + each.month - 1) % step == 0]
    return tuple(_drop_touching(Tick(_keep_inside(at), month(each)) for each, at in chosen))


def _keep_inside(at: float) -> float:
    """Move the middle of a date so far from the edges that the whole date is inside the drawing."""
    return min(max(at, DATE_WIDTH / 2), WIDTH - DATE_WIDTH / 2)


def _drop_touching(ticks: Iterable[Tick]) -> Iterator[Tick]:
    """Leave out ticks that would touch the one before."""
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
