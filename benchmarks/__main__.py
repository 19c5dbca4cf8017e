"""Run benchmarks, all or those named, and write `benchmarks/RESULTS.md`.

`python -m benchmarks doors reads --on SQLite` runs two of them on one database.
"""

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from benchmarks import backlog, doors, growth, history, reads, refresh, spine
from benchmarks.service import DATABASES
from benchmarks.table import Row, Section, write


class Part(Protocol):
    """What each module of a part has."""

    TITLE: str
    ABOUT: str

    def measure(self, folder: Path, database: str) -> Sequence[Row]: ...


PARTS: Mapping[str, Part] = {
    "spine": spine,
    "doors": doors,
    "reads": reads,
    "refresh": refresh,
    "backlog": backlog,
    "history": history,
    "growth": growth,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--on", action="append", choices=DATABASES, help="default: both")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for name in asked.parts or PARTS:
        part = PARTS[name]
        section = Section(part.TITLE, part.ABOUT, {on: _measured(name, on) for on in asked.on or DATABASES})
        write(section, [part.TITLE for part in PARTS.values()])
        print(section.printed(), flush=True)  # noqa: T201  # the command's whole purpose


def _measured(name: str, database: str) -> Sequence[Row]:
    with tempfile.TemporaryDirectory(prefix=f"tidemark-bench-{name}-", ignore_cleanup_errors=True) as folder:
        return PARTS[name].measure(Path(folder), database)


if __name__ == "__main__":
    main()
