"""Run `make test-service` and `make test-slow` in parts, one at a time, so that they can be resumed.

A part is a folder of tests, a file of them or, in BY_TEST, a single test. RECORD, which is committed, has the time and
commit at which each part last passed. A part is not run again if only the record and the docs have changed since that
commit. Two parts run side by side, of which only one may start services.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any

RECORD = Path(__file__).with_name("record.json")
RECORDING = Lock()
NOT_CODE = (":!tests/record.json", ":!docs", ":!*.md")
CORE = PurePosixPath("tests/pipelines")
FAULTS = PurePosixPath("tests/faults")  # one file takes minutes and starts its own services
BY_TEST = "tests/faults/test_fleet.py"  # one test takes ten minutes
WITH_SERVICES = ("faults", "flows")  # whose tests share services
TWO_AT_ONCE = ("-n", "2", "--dist", "loadfile")


@dataclass(frozen=True)
class Selection:
    """Tests chosen by markers, with options of pytest."""

    prefix: str
    markers: str
    options: tuple[str, ...] = ()


TARGETS: Mapping[str, tuple[Selection, ...]] = {
    "service": (Selection("", "service and not slow"),),
    "slow": (
        Selection("", "slow"),
        Selection("properties/", "(hypothesis or drawn) and not slow", ("--hypothesis-profile=thorough",)),
    ),
}


@dataclass(frozen=True)
class Part:
    name: str
    files: tuple[str, ...]  # or tests
    selection: Selection
    starts_services: bool

    def run(self) -> str | None:
        """Run the tests; return pytest's last line, or None if a test failed."""
        options = (*self.selection.options, *(() if self.starts_services else TWO_AT_ONCE))
        command = ["pytest", "-m", self.selection.markers, *options, *self.files]
        self._say(" ".join(command))
        process = subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        closing = ""
        for line in process.stdout:
            self._say(line.rstrip("\n"))
            closing = line.strip(" =\n") or closing
        return closing if process.wait() == 0 else None

    def _say(self, line: str) -> None:
        print(f"{self.name} | {line}", flush=True)  # noqa: T201


def parts_of(target: str) -> list[Part]:
    return [
        Part(f"{target}/{selection.prefix}{name}", tuple(files), selection, name.startswith(WITH_SERVICES))
        for selection in TARGETS[target]
        for name, files in group_files(files_with(selection.markers)).items()
    ]


def files_with(markers: str) -> list[str]:
    """Collect the test files that have a test with these markers and, of BY_TEST, those tests."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-m", markers, "tests"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    tests = re.findall(r"^tests/\S+\.py::.+$", listed, re.MULTILINE)
    return list(dict.fromkeys(test if test.startswith(BY_TEST) else test.partition("::")[0] for test in tests))


def group_files(files: Iterable[str]) -> dict[str, list[str]]:
    """Group files into parts: one per test, or per file in FAULTS, or per subject in CORE, else one per folder."""
    groups: dict[str, list[str]] = {}
    for file in files:
        name, _, test = file.partition("::")
        path = PurePosixPath(name)
        depth = 3 if path.is_relative_to(CORE) else 2
        inside = path.with_suffix("") if path.parent == FAULTS else PurePosixPath(*path.parent.parts[:depth])
        if test:
            inside /= re.sub(r"\W+", "-", test).strip("-")
        groups.setdefault(str(inside.relative_to("tests")), []).append(file)
    return groups


def is_unchanged_since(commit: str) -> bool:
    """Return whether only the record and the docs differ from a commit. An unknown commit has changed."""
    known = commit == "HEAD" or commit in git("rev-list", "HEAD").split()
    return known and not git("diff", "--name-only", commit, "--", ".", *NOT_CODE)


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout.strip()


def read_record() -> dict[str, dict[str, Any]]:
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def note_pass(name: str, closing: str) -> None:
    commit = git("rev-parse", "HEAD") + ("" if is_unchanged_since("HEAD") else " with changes")
    passed = {"passed": f"{datetime.now(UTC):%Y-%m-%d %H:%M}Z", "commit": commit, "result": closing}
    RECORD.write_text(json.dumps(read_record() | {name: passed}, indent=1, sort_keys=True) + "\n")


def run_in_turn(parts: Iterable[Part]) -> list[str]:
    """Run the parts and record those that pass. Return the names of those that fail."""
    failed = []
    for part in parts:
        if closing := part.run():
            with RECORDING:
                note_pass(part.name, closing)
        else:
            failed.append(part.name)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.parts", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("parts", nargs="*", help="names of parts; default: all that have not passed on this code")
    parser.add_argument("--list", action="store_true", help="only list the parts, and when each last passed")
    arguments = parser.parse_args()
    parts = parts_of(arguments.target)
    if unknown := set(arguments.parts) - {part.name for part in parts}:
        parser.error(f"no part of {arguments.target}: {' '.join(sorted(unknown))}")
    record = read_record()
    if arguments.list:
        for part in parts:
            print(part.name, *record.get(part.name, {}).values(), sep="  ")  # noqa: T201
        return 0
    if arguments.parts:
        chosen = [part for part in parts if part.name in arguments.parts]
    else:
        chosen = [part for part in parts if not is_unchanged_since(record.get(part.name, {}).get("commit", ""))]
    services = iter([part for part in chosen if part.starts_services])
    others = iter([part for part in chosen if not part.starts_services])  # both take from it
    with ThreadPoolExecutor(2) as pool:
        failed = [name for names in pool.map(run_in_turn, (chain(services, others), others)) for name in names]
    if failed:
        print("\nfailed:", *failed)  # noqa: T201
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
