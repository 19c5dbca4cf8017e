"""Measure the accuracy of enrichment on lines that nobody who works on rules has read (tests/narratives).

Separate from `quality`, so that it takes seconds and its figures are not found among those that rules are tuned with.
"""

from collections.abc import Sequence

from benchmarks.quality import confidence_by_country, decide_lines, rows_by_country
from benchmarks.table import Row

TITLE = "How accurate enrichment is on a second author's lines"
FILE = "strangers_2.csv"
FIRST = "0.705, 0.838, 0.801"  # 2026-11-29, when they were written, before any change
ABOUT = (
    "Hand-written lines of business accounts at banks of seven countries, by an author who had not looked at rules, "
    "lists or models. They are never used to tune; their first figures stay."
)


def measure() -> Sequence[Row]:
    lines = decide_lines(FILE)
    about = f"{lines.height} lines of the second author, `{FILE}`"
    return [*rows_by_country(about, lines, FIRST), *confidence_by_country(lines)]
