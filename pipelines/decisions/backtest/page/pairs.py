"""Pairs of bars below each other on one scale: what was, outlined, above what would be, filled.

Geometry as in `pipelines.reports.page.charts`: a chart is as wide as a phone, and told by place and outline, never by
colour alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.reports.page.charts import WIDTH, Bar

ROW, BELOW, THICK, APART = 37, 17, 6, 8  # a pair with its words; below its top the bars begin


@dataclass(frozen=True)
class Pair:
    label: str
    figure: str
    before: float
    after: float


@dataclass(frozen=True)
class PairRow:
    y: int
    label: str
    figure: str
    before: Bar
    after: Bar


@dataclass(frozen=True)
class PairChart:
    rows: tuple[PairRow, ...]
    height: int


def pair_chart(pairs: Sequence[Pair]) -> PairChart:
    """Nothing is below zero; the longest bar is as wide as the drawing."""
    whole = max((size for pair in pairs for size in (pair.before, pair.after)), default=0) or 1.0

    def bar(y: int, size: float) -> Bar:
        return Bar(0, y, round(size / whole * WIDTH, 1), THICK)

    rows = tuple(
        PairRow(y, pair.label, pair.figure, bar(y + BELOW, pair.before), bar(y + BELOW + APART, pair.after))
        for y, pair in zip(range(0, len(pairs) * ROW, ROW), pairs, strict=True)
    )
    return PairChart(rows, len(pairs) * ROW)
