"""Run all or some benchmarks and write `benchmarks/RESULTS.md`.

`python -m benchmarks api reads --on SQLite` runs two of them on one database.
"""

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks import (
    api,
    arrivals,
    attacks,
    backlog,
    completeness,
    console,
    enrichment,
    evaluating,
    events,
    extraction,
    feedback,
    fleet,
    growth,
    history,
    hostile,
    income,
    labelled,
    monitoring,
    other_authors,
    policies,
    quality,
    reads,
    refresh,
    reports,
    risk,
    simulation,
    spine,
    statements,
    store,
    summaries,
    webhooks,
)
from benchmarks.service import DATABASES
from benchmarks.table import Row, Section, write


@dataclass(frozen=True)
class Part:
    """One section of the results. `measure` takes the chosen databases and returns the rows by column."""

    title: str
    about: str
    measure: Callable[[Sequence[str]], Mapping[str, Sequence[Row]]]


class PartModule(Protocol):
    """The module of a part: two read-only constants."""

    @property
    def TITLE(self) -> str: ...  # noqa: N802

    @property
    def ABOUT(self) -> str: ...  # noqa: N802


class ServiceModule(PartModule, Protocol):
    """The module of a part that measures a running service or its store."""

    def measure(self, folder: Path, database: str) -> Sequence[Row]: ...


class PureModule(PartModule, Protocol):
    """The module of a part that needs no database."""

    def measure(self) -> Sequence[Row]: ...


def on_databases(module: ServiceModule) -> Part:
    """Return a part that is measured on each database, in a separate folder."""
    return Part(
        module.TITLE, module.ABOUT, lambda databases: {name: _run_in_folder(module, name) for name in databases}
    )


def by_itself(module: PureModule) -> Part:
    """Return a part that is measured once, without a database."""
    return Part(module.TITLE, module.ABOUT, lambda _: {"measured": module.measure()})


def _run_in_folder(module: ServiceModule, database: str) -> Sequence[Row]:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-", ignore_cleanup_errors=True) as folder:
        return module.measure(Path(folder), database)


PARTS: Mapping[str, Part] = {
    "spine": on_databases(spine),
    "api": on_databases(api),
    "reads": on_databases(reads),
    "console": on_databases(console),
    "refresh": on_databases(refresh),
    "backlog": on_databases(backlog),
    "history": on_databases(history),
    "store": on_databases(store),
    "growth": on_databases(growth),
    "summaries": on_databases(summaries),
    "evaluating": on_databases(evaluating),
    "arrivals": on_databases(arrivals),
    "fleet": Part(fleet.TITLE, fleet.ABOUT, lambda _: fleet.measure()),
    "hostile": on_databases(hostile),
    "enrichment": by_itself(enrichment),
    "quality": by_itself(quality),
    "other_authors": by_itself(other_authors),
    "labelled": by_itself(labelled),
    "income": by_itself(income),
    "risk": by_itself(risk),
    "events": by_itself(events),
    "attacks": by_itself(attacks),
    "completeness": by_itself(completeness),
    "reports": by_itself(reports),
    "policies": by_itself(policies),
    "monitoring": by_itself(monitoring),
    "simulation": by_itself(simulation),
    "statements": by_itself(statements),
    "extraction": by_itself(extraction),
    "webhooks": on_databases(webhooks),
    "feedback": Part(feedback.TITLE, feedback.ABOUT, lambda _: feedback.measure()),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--on", action="append", choices=DATABASES, help="default: both; some parts need none")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    for name in arguments.parts or PARTS:
        part = PARTS[name]
        section = Section(part.title, part.about, part.measure(arguments.on or DATABASES))
        write(section, [known.title for known in PARTS.values()])
        print(section.to_markdown(), flush=True)  # noqa: T201  # the command's whole purpose


if __name__ == "__main__":
    main()
