"""Compare what the tests of two commits notice: `python -m tests.mutants 9b9ce16 HEAD`, or of one: `… HEAD`.

Choose mutants of the core and of storage by a seed, from lines that the first commit's tests run and that the second
commit has unchanged. Run each on the tests that cover its line, at each commit. What is known is kept in a folder, so
the work can be ended and resumed; write a table, and fail if a mutant that was caught is no longer.
"""

import argparse
import json
import queue
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.mutants.changes import Mutant, find_mutants
from tests.mutants.copies import Copy, Outcome
from tests.mutants.covering import Covering

TARGETS: Final = {
    "make test": "not slow and not service",
    "make test-service": "service and not slow",
    "make test-slow": "slow",
}
FOLDERS: Final = ("pipelines/", "storage/")
LEFT_OUT: Final = ("pipelines/sandbox/", "storage/migrations/")  # synthetic data, and what runs once per database
HEADING: Final = """# What the tests notice

{count} small changes of the core and of storage, chosen by a seed from the lines that tests run in process. Each ran on
the tests that cover its line, at most a minute. Written by `make mutants`; *survived* may also mean that a change makes
no difference. A mutant that was caught before and then survived `make test` is also tried on the test that caught it
before, and on the other targets.

"""

Results = Mapping[str, Mapping[str, str]]  # by the mutant's key: result, target, test


@dataclass(frozen=True)
class Options:
    commits: Sequence[str]
    folder: Path
    table: Path
    count: int
    seed: int
    workers: int


def main() -> int:
    options = _parse()
    options.folder.mkdir(exist_ok=True)
    mutants = list(islice(_choose(options), options.count))
    known: list[Results] = []
    for commit in options.commits:
        known.append(_judge_all(commit, mutants, known[0] if known else {}, options))
    lost = [mutant for mutant in mutants if _is_caught(known[0], mutant) and not _is_caught(known[-1], mutant)]
    options.table.write_text(_draw(options.commits, mutants, known))
    for mutant in lost:
        _say("caught before, not after:", mutant.path, mutant.function, mutant.key)
    return 1 if lost else 0


def _parse() -> Options:
    parser = argparse.ArgumentParser("python -m tests.mutants", description=__doc__)
    parser.add_argument("commits", nargs="+", help="before and after, or one alone")
    parser.add_argument("--folder", type=Path, default=Path(".mutants"), help="what is known, by commit")
    parser.add_argument("--table", type=Path, default=Path("benchmarks/MUTANTS.md"))
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--workers", type=int, choices=(1, 2), default=1)
    options = Options(**vars(parser.parse_args()))
    hashes = _git("rev-parse", *(f"{commit}^{{commit}}" for commit in options.commits)).split()
    return replace(options, commits=[commit[:10] for commit in hashes])


def _choose(options: Options) -> Iterator[Mutant]:
    """Yield mutants in an order that depends on the first commit alone, so that a later second needs few others."""
    before, after = (_read_modules(commit) for commit in (options.commits[0], options.commits[-1]))
    there = {key for path, source in after.items() for key in find_mutants(path, source)}
    mutants = [mutant for path, source in sorted(before.items()) for mutant in find_mutants(path, source).values()]
    covering = Covering(options.commits[0], options.folder)
    random.Random(options.seed).shuffle(mutants)
    for mutant in mutants:
        if (
            mutant.key in there
            and covering.find_tests(mutant.path, mutant.lines)
            and mutant.is_valid(before[mutant.path])
        ):
            yield mutant


@cache
def _read_modules(commit: str) -> Mapping[str, str]:
    paths = _git("ls-tree", "-r", "--name-only", commit, *FOLDERS).splitlines()
    paths = [path for path in paths if path.endswith(".py") and not path.startswith(LEFT_OUT)]
    return {path: _git("show", f"{commit}:{path}") for path in paths}


def _judge_all(commit: str, mutants: Sequence[Mutant], before: Results, options: Options) -> Results:
    file = options.folder / f"{commit}.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    known: dict[str, Mapping[str, str]] = {line["mutant"]: line for line in map(json.loads, lines)}
    sources = _read_modules(commit)
    missing = [mutant for mutant in mutants if mutant.key not in known]
    if not missing:
        return known
    covering = Covering(commit, options.folder)
    copies = queue.SimpleQueue[Copy]()

    def judge(mutant: Mutant) -> Mapping[str, str]:
        here = find_mutants(mutant.path, sources[mutant.path])[mutant.key]
        copy, start = copies.get(), time.monotonic()
        try:
            target, outcome = _judge(here, copy, covering, before.get(mutant.key, {}))
        finally:
            copies.put(copy)
        seconds = f"{time.monotonic() - start:.0f}"
        return {"mutant": mutant.key, "result": outcome.result, "target": target, "test": outcome.test, "s": seconds}

    with ExitStack() as stack:
        for _ in range(options.workers):
            folder = stack.enter_context(TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True))
            copies.put(Copy(commit, Path(folder)))
        pool = stack.enter_context(ThreadPoolExecutor(options.workers))
        stack.callback(pool.shutdown, cancel_futures=True)
        for done in as_completed([pool.submit(judge, mutant) for mutant in missing]):
            result = done.result()
            known[result["mutant"]] = result
            with file.open("a") as lasting:
                lasting.write(json.dumps(result) + "\n")
            _say(f"{len(known)}/{len(mutants)}", " ".join(result.values()))
    return known


def _judge(mutant: Mutant, copy: Copy, covering: Covering, before: Mapping[str, str]) -> tuple[str, Outcome]:
    """Return the first target that catches a mutant. Beyond `make test`, look only for what was caught before."""
    first = next(iter(TARGETS))
    tests = covering.find_tests(mutant.path, mutant.lines)
    chosen = covering.choose(mutant.path, tests)
    outcome = copy.judge(mutant, chosen, TARGETS[first])
    if outcome.is_caught or not before.get("result", "").startswith("caught"):
        return first, outcome
    same = copy.find_test(before["test"])
    file = before["test"].partition("::")[0]
    others = covering.choose(mutant.path, {test for test in tests if test.partition("::")[0] == file} - {*chosen})
    for target, marks in TARGETS.items():
        candidates = [*same, *others] if target == first else [*same, *others, *chosen]
        further = copy.judge(mutant, list(dict.fromkeys(candidates)), marks)
        if further.is_caught:
            return target, further
    return first, outcome


def _is_caught(results: Results, mutant: Mutant) -> bool:
    return results[mutant.key]["result"].startswith("caught")


def _draw(commits: Sequence[str], mutants: Sequence[Mutant], known: Sequence[Results]) -> str:
    titles = ["statement", "change", *commits, "target", "test"]
    rows: list[Sequence[str]] = [titles, ["---"] * len(titles)]
    sources = _read_modules(commits[-1])
    for mutant in sorted(mutants, key=lambda mutant: (mutant.path, mutant.start)):
        here = find_mutants(mutant.path, sources[mutant.path])[mutant.key]
        caught = known[-1][mutant.key] if _is_caught(known[-1], mutant) else {"target": "", "test": ""}
        results = [results[mutant.key]["result"] for results in known]
        change = " → ".join(f"`{text}`" for text in here.draw(sources[mutant.path]))
        rows.append([f"{here.path}:{here.lines[0]}", change, *results, caught["target"], caught["test"]])
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    counts = [Counter(results[mutant.key]["result"] for mutant in mutants) for results in known]
    sums = [", ".join(f"{number} {result}" for result, number in sorted(count.items())) for count in counts]
    summary = [f"- {commit}: {text}" for commit, text in zip(commits, sums, strict=True)]
    return HEADING.format(count=len(mutants)) + "\n".join([*summary, "", *lines, ""])


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def _say(*words: str) -> None:
    print(*words, flush=True)  # noqa: T201  # the command's progress


if __name__ == "__main__":
    raise SystemExit(main())
