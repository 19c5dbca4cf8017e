"""Measure the accuracy of enrichment on lines that nobody who works on rules has read (tests/narratives).

Separate from `quality`, so that it takes seconds and its figures are not found among those that rules are tuned with.
"""

from collections.abc import Sequence

import polars as pl

from benchmarks.quality import confidence_by_country, decide_lines, rows_by_country
from benchmarks.table import Row

TITLE = "How accurate enrichment is on five other authors' lines"
HELD_OUT = {  # file: author, and the figures before any change
    "strangers_2.csv": ("second", "0.705, 0.838, 0.801"),  # 2026-11-29
    "strangers_3.csv": ("third", "0.600, 0.647, 0.821"),  # 2026-11-30
    "strangers_4.csv": ("fourth", "0.863, 0.831, 0.951"),  # 2026-11-30
    "strangers_5.csv": ("fifth", "0.771, 0.750, 0.883"),  # 2026-11-30
    "strangers_6.csv": ("sixth", "0.808, 0.833, 0.940"),  # 2026-11-30
}
TUNED_WITH = {
    "strangers_3_develop.csv": ("third", "0.631, 0.688, 0.827"),  # 2026-11-30
    "strangers_4_develop.csv": ("fourth", "0.831, 0.859, 0.905"),  # 2026-11-30
    "strangers_5_develop.csv": ("fifth", "0.746, 0.721, 0.879"),  # 2026-11-30
    "strangers_6_develop.csv": ("sixth", "0.838, 0.846, 0.956"),  # 2026-11-30
}
ABOUT = (
    "Hand-written lines of accounts at banks of nine countries, by authors who had not looked at rules, lists or "
    "models. They are never used to tune, except for the files that are marked; first figures stay. Confidence is "
    "that of all lines that are not tuned with."
)


def measure() -> Sequence[Row]:
    decided = {file: decide_lines(file) for file in HELD_OUT}
    columns = ("country", "category", "true_category", "category_source", "confidence")
    unfamiliar = pl.concat(lines.select(columns) for lines in decided.values())
    return [
        *(row for file, lines in decided.items() for row in _measure_author(file, lines)),
        *(row for file in TUNED_WITH for row in _measure_tuned(file)),
        *confidence_by_country(unfamiliar),
    ]


def _measure_author(file: str, lines: pl.DataFrame) -> Sequence[Row]:
    author, first = HELD_OUT[file]
    return rows_by_country(f"{lines.height} lines of the {author} author, `{file}`", lines, first)


def _measure_tuned(file: str) -> Sequence[Row]:
    """Measure only the whole file: its figures say that its lines are covered, not how well others are."""
    author, first = TUNED_WITH[file]
    lines = decide_lines(file)
    about = f"{lines.height} lines of the {author} author that rules are tuned with, `{file}`"
    return rows_by_country(about, lines, first)[:2]
