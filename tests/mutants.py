"""`make mutants BASE=9b9ce16`: check that tests still catch what those of an earlier commit caught.

Mutants are small changes of core and storage, drawn with a seed from lines that tests run. Each gets a minute with the
tests that cover its line. Only mutants that survive are tried at the earlier commit, and only those that were caught
there are tried on the larger targets. Results are stored in FOLDER, so that a run can be interrupted and resumed.
"""

import ast
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import NamedTuple

from coverage import CoverageData

from tests.parts import git

COUNT, SEED = 100, 16
LIMIT_S, MAX_TESTS, USAGE_ERROR = 60, 500, 4  # of a run of pytest: its time, its tests, and its answer to wrong options
FOLDER, TABLE = Path(".mutants"), Path("benchmarks/MUTANTS.md")
TARGETS: Mapping[str, Sequence[str]] = {
    "test": ("-m", "not slow and not service", "--timeout=20"),  # finds a hanging test before the minute is over
    "test-service": ("-m", "service and not slow"),
    "test-slow": ("-m", "slow or hypothesis", "--hypothesis-profile=thorough"),
}
BEFORE = ("-m", "not slow", "--timeout=20")  # `make test` before the marker `service` existed: unknown ones are errors
MEASURED = """-n3 --dist=worksteal --no-loadscope-reorder --maxfail=0 --timeout=900
    --cov=pipelines --cov=storage --cov-context=test --cov-report="""
FAILED = r"(?m)^(?:SUBFAILED|FAILED|ERROR|ImportError while loading conftest)\b.*?(tests/[\w/]+\.py(?:::\w+)*)"
PAIRS = "< <= > >= == != + - += -= * / // % & | and or any all min max True False is_null is_not_null continue break"
SWAPS = {text: PAIRS.split()[place ^ 1] for place, text in enumerate(PAIRS.split())}
SWAPS |= {"not": "", "is": "is not", "in": "not in"}


class Mutant(NamedTuple):
    """A line and its change. Its text and function identify it in other commits, too."""

    path: str
    function: str
    old: str
    new: str

    def line_in(self, source: str) -> int:
        return places(source).get((self.function, self.old), 0)

    def apply(self, source: str) -> str:
        lines = source.split("\n")
        lines[self.line_in(source) - 1] = self.new
        return "\n".join(lines)


@cache
def places(source: str) -> Mapping[tuple[str, str], int]:
    """Return line numbers by function and line, of lines that occur once in their innermost function."""
    lines = source.split("\n")
    outer_first = (f for f in ast.walk(ast.parse(source)) if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef))
    found = {n: (f.name, lines[n - 1]) for f in outer_first for n in range(f.body[0].lineno, (f.end_lineno or 0) + 1)}
    counts = Counter(found.values())
    return {place: number for number, place in found.items() if counts[place] == 1}


def find_mutants(path: str, source: str) -> Iterator[Mutant]:
    place_at = {number: place for place, number in places(source).items()}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        function, old = place_at.get(token.start[0], ("", ""))
        if old and (new := change(old, token)) != old and "\n" not in new:
            yield Mutant(path, function, old, new)


def change(line: str, token: tokenize.TokenInfo) -> str:
    """Return the line with a small change of one token, if there is one for it. The result may not be valid Python."""
    text, after = token.string, line[token.end[1] :]
    if text == "return" and after:
        after = " None"
    elif text in ("if", "elif", "while") and after.endswith(":"):
        after = f" not ({after[1:-1]}):"
    elif number := re.fullmatch(r'("?)(\d[\d_]*(?:\.\d+)?)\1', text):
        text = f"{number[1]}{Decimal(number[2]) + 1}{number[1]}"
    return line[: token.start[1]] + SWAPS.get(text, text) + after


class Copy:
    """The files of a commit with their own environment, because confined children can read nothing else."""

    def __init__(self, commit: str, selection: Sequence[str]) -> None:
        self.commit, self.selection = git("rev-parse", "--short=10", f"{commit}^{{commit}}"), selection
        self.folder = FOLDER.absolute() / self.commit
        self.folder.mkdir(parents=True, exist_ok=True)
        git("archive", f"--output={self.folder}.tar", self.commit)
        shutil.unpack_archive(f"{self.folder}.tar", self.folder, filter="data")  # a mutant left there is undone
        shutil.rmtree(self.folder / ".venv", ignore_errors=True)
        shutil.copytree(sys.prefix, self.folder / ".venv", symlinks=True, copy_function=os.link)
        (next(self.folder.glob(".venv/lib/*/site-packages")) / "0.pth").write_text(str(self.folder))  # is read first

    def read(self, path: str) -> str:
        return (self.folder / path).read_text() if (self.folder / path).exists() else ""

    def covering(self, mutant: Mutant) -> list[str]:
        """Return the tests of a mutant's line: those beside its module first, then those in files with few of them."""
        measured = self.folder / "measured.coverage"
        if not measured.exists():
            print("measuring what the tests run at", self.commit, flush=True)  # noqa: T201
            self.run(mutant._replace(new=mutant.old), *self.selection, *MEASURED.split(), limit_s=0)
            (self.folder / ".coverage").rename(measured)  # only now: a run that was ended writes one, too
        data = CoverageData(str(measured))
        data.read()
        lines = data.contexts_by_lineno(str(self.folder / mutant.path))  # such as tests/test_a.py::test_b[1]|run
        tests = {re.split(r"[|\[]", test)[0] for test in lines.get(mutant.line_in(self.read(mutant.path)), ()) if test}
        near, sizes = f"tests/{mutant.path.rpartition('/')[0]}/", Counter(test.split("::")[0] for test in tests)
        return sorted(tests, key=lambda test: (not test.startswith(near), sizes[test.split("::")[0]], test))[:MAX_TESTS]

    def catch(self, mutant: Mutant, tests: Sequence[str], *options: str) -> str:
        """Return the first test that fails with the mutant, passes without it and fails again, if there is one."""
        for _ in range(9):  # if nine tests fail anyway, something else is wrong
            if not tests or not (failing := self.run(mutant, *options, *tests)):
                break
            if not self.run(mutant._replace(new=mutant.old), *options, failing) and self.run(mutant, *options, failing):
                return failing
            tests = [test for test in tests if test not in (failing, failing.split("::")[0])]
        return ""

    def run(self, mutant: Mutant, *options: str, limit_s: int = LIMIT_S) -> str:
        """Return the first test that fails, or nothing. At the limit pytest is interrupted, and drops its databases."""
        changed, source, output = self.folder / mutant.path, self.read(mutant.path), self.folder / "output.txt"
        limit = ("timeout", "--foreground", "--signal=INT", "--kill-after=10", str(limit_s))
        pytest = (".venv/bin/python", "-m", "pytest", "-p", "no:cacheprovider", "--hypothesis-seed=0", "-rfE", "-x")
        changed.write_text(mutant.apply(source))
        with output.open("w") as file:
            ended = subprocess.run([*limit, *pytest, *options], check=False, cwd=self.folder, stdout=file, stderr=file)
        changed.write_text(source)  # a second later at least, so that Python compiles it anew
        found = re.search(FAILED, output.read_text(errors="replace"))
        assert found or ended.returncode != USAGE_ERROR, output
        return found[1] if found else ""


def choose(now: Copy, before: Copy) -> tuple[list[Mutant], str]:
    """Draw mutants, at most one per line. Return also the beginning of a sentence that reports how many there are."""
    paths = git("ls-tree", "-r", "--name-only", now.commit, "pipelines/", "storage/").splitlines()
    found = [mutant for path in paths if path.endswith(".py") for mutant in find_mutants(path, now.read(path))]
    there = [mutant for mutant in found if mutant.line_in(before.read(mutant.path))]
    random.Random(SEED).shuffle(there)
    chosen: dict[tuple[str, ...], Mutant] = {}
    for mutant in there:
        with suppress(SyntaxError):
            if len(chosen) < COUNT and ast.parse(mutant.apply(now.read(mutant.path))) and now.covering(mutant):
                chosen.setdefault(mutant[:3], mutant)
    summary = (
        f"Seed {SEED} chose {len(chosen)} of {len(found)} mutants of {now.commit}. {len(found) - len(there)} were left "
        f"out, because {before.commit} does not have that line in that function. Results"
    )
    return sorted(chosen.values()), summary


def judge(mutant: Mutant, now: Copy, before: Copy) -> list[str]:
    """Return the target and the test that catch it now, and the test that caught it before if it survives at first."""
    if test := now.catch(mutant, now.covering(mutant), *now.selection):
        return ["test", test, ""]
    if not (earlier := before.catch(mutant, before.covering(mutant), *before.selection)):
        return ["survived", "", ""]
    texts = {str(file.relative_to(now.folder)): file.read_text() for file in now.folder.glob("tests/**/test_*.py")}
    same, part = f"def {earlier.rpartition('::')[2]}(", re.split("[/.]", mutant.path)[1]
    files = sorted(texts, key=lambda file: (same not in texts[file], part not in texts[file], file))
    for target, selection in TARGETS.items():
        if test := now.catch(mutant, files[:20], *selection):
            return [target, test, earlier]
    return ["lost", "", earlier]


def main() -> int:
    before, now = Copy(sys.argv[1], BEFORE), Copy(sys.argv[2], TARGETS["test"])
    mutants, summary = choose(now, before)
    answers = FOLDER / f"{before.commit}-{now.commit}.jsonl"
    answers.touch()
    known = {Mutant(*line[:4]): line[4:] for line in map(json.loads, answers.read_text().splitlines())}
    for mutant in sorted(set(mutants) - known.keys()):
        known[mutant] = judge(mutant, now, before)
        with answers.open("a") as file:
            file.write(json.dumps([*mutant, *known[mutant]]) + "\n")
        print(f"{len(known)}/{len(mutants)}", mutant.path, *known[mutant], flush=True)  # noqa: T201
    counts = Counter(known[mutant][0] for mutant in mutants)
    rows = [["line", "change", "caught now by", "test", "caught before by"], ["---"] * 5]
    for mutant in mutants:
        shown = f"`{mutant.old.strip()}` → `{mutant.new.strip()}`".replace("|", "\\|")
        rows.append([f"{mutant.path}:{mutant.line_in(now.read(mutant.path))}", shown, *known[mutant]])
    sums = ", ".join(f"{result} {count}" for result, count in counts.most_common())
    TABLE.write_text("\n".join([f"# Mutants\n\n{summary}: {sums}.\n", *(f"| {' | '.join(row)} |" for row in rows), ""]))
    return min(counts["lost"], 1)


if __name__ == "__main__":
    sys.exit(main())
