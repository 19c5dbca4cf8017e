"""Write results to sections of `RESULTS.md`; each run replaces the sections that it measured."""

import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent / "RESULTS.md"
PREFACE = """# Results

Written by `make bench` (some parts: `make bench PARTS="api reads"`; without PostgreSQL: `make bench ON=SQLite`).
Machines and their noise differ: trust the ratios, each of which comes from one run.
"""


@dataclass(frozen=True)
class Row:
    """One line of the results: a figure with its unit, and its target."""

    what: str
    figure: str
    target: str = ""


@dataclass(frozen=True)
class Section:
    """The results of a part; the same rows in each column."""

    title: str
    about: str
    rows_of: Mapping[str, Sequence[Row]]  # by column: a database, or `measured` if the part needs none

    def to_markdown(self) -> str:
        circumstances = (
            f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, Python {platform.python_version()}, "
            f"polars {version('polars')}, dagster {version('dagster')}."
        )
        lines = "\n".join(
            f"| {same[0].what} | {' | '.join(row.figure for row in same)} | {same[0].target} |"
            for same in zip(*self.rows_of.values(), strict=True)
        )
        head = f"| what | {' | '.join(self.rows_of)} | target |\n|{'---|' * (len(self.rows_of) + 2)}"
        return f"## {self.title}\n\n{self.about} {circumstances}\n\n{head}\n{lines}\n"


def write(section: Section, order: Sequence[str]) -> None:
    """Put a section into the results, in place of an earlier one with its title."""
    known = {title: text for title, text in _sections() if title in order} | {section.title: section.to_markdown()}
    RESULTS.write_text("\n".join([PREFACE, *(known[title] for title in order if title in known)]))


def _sections() -> list[tuple[str, str]]:
    text = RESULTS.read_text() if RESULTS.exists() else ""
    parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]
    return [(part.splitlines()[0].removeprefix("## "), part.strip() + "\n") for part in parts]


def seconds(value: float) -> str:
    return f"{value:.2f} s"


def milliseconds(value: float) -> str:
    return f"{value * 1000:.1f} ms"


def mebibytes(value: float) -> str:
    return f"{value / 2**20:,.0f} MiB"


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]
