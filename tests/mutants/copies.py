"""Run the tests of a commit in a folder of its own."""

import io
import os
import re
import signal
import subprocess
import sysconfig
import tarfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mutants.changes import Mutant

LIMIT_S: Final = 60
BLAMED: Final = re.compile(r"^(?:SUBFAILED|FAILED|ERROR)\b.*?(tests/[\w/]+\.py(?:::\w+)*)", re.MULTILINE)
PASSED, USAGE_ERROR, NOTHING_TO_RUN = 0, 4, 5  # pytest's exit codes


@dataclass(frozen=True)
class Outcome:
    """What a run of tests found: caught, survived or untested, and the first test that failed."""

    result: str
    test: str = ""

    @property
    def is_caught(self) -> bool:
        return self.result.startswith("caught")


class Copy:
    """The files of a commit, with an interpreter that takes the project from there and only libraries from here.

    Children started with `python -I` ignore PYTHONPATH, so the copy has an environment of its own.
    """

    def __init__(self, commit: str, folder: Path) -> None:
        self._folder = folder
        self.output, self.coverage = folder / "output.txt", folder / "tests.coverage"
        archive = subprocess.run(["git", "archive", commit], check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        settings = folder / "pyproject.toml"
        settings.write_text(
            settings.read_text().replace("\nmarkers = [", '\nmarkers = ["service", ')
        )  # older ones lack it
        venv.create(folder / ".venv", symlinks=True)
        (site,) = folder.glob(".venv/lib/*/site-packages")
        (site / "copy.pth").write_text(f"{folder}\n{sysconfig.get_path('purelib')}\n")
        self._python = folder / ".venv/bin/python"
        command = self._python.with_name("tidemark")
        command.write_text(f"#!{self._python}\nfrom api.cli import main\nmain()\n")
        command.chmod(0o755)

    def judge(self, mutant: Mutant, tests: Sequence[str], marks: str) -> Outcome:
        """Run some tests on the code with a mutant. What fails or hangs must pass without it, or it says nothing."""
        while tests:
            with self._changed(mutant):
                code = self._run_tests(tests, marks)
                if code is None:  # perhaps the machine was suspended: only what hangs twice hangs
                    code = self._run_tests(tests, marks)
            if code in (PASSED, NOTHING_TO_RUN):
                return Outcome("survived" if code == PASSED else "untested")
            found = None if code is None else BLAMED.search(self.output.read_text(errors="replace"))
            test = found[1] if found else ""
            blamed = [name for name in tests if name == test or name.startswith(f"{test}::")] or list(tests)
            without = self._run_tests(blamed, marks)
            if without == USAGE_ERROR:
                raise RuntimeError(self.output.read_text(errors="replace"))
            if without == PASSED:
                return Outcome("caught (time)" if code is None else "caught", test)
            tests = tests[: len(tests) // 2] if code is None else [name for name in tests if name not in blamed]
        return Outcome("untested")

    def find_test(self, test: str) -> list[str]:
        """Return a test of another commit and those of its name in other files, as far as they are here."""
        file, _, name = test.partition("::")
        if not name:
            return []
        there = [test] if f"def {name.rpartition('::')[2]}(" in self._read(file) else []
        files = sorted(str(path.relative_to(self._folder)) for path in self._folder.glob("tests/**/test_*.py"))
        return there + [
            f"{other}::{name}" for other in files if other != file and f"\ndef {name}(" in self._read(other)
        ]

    def _read(self, path: str) -> str:
        return (self._folder / path).read_text() if (self._folder / path).exists() else ""

    def run_pytest(self, *arguments: str, limit_s: float | None = None) -> int | None:
        """Return the exit code, or None when the limit passed."""
        command = [str(self._python), "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        environment = {**os.environ, "COVERAGE_FILE": str(self.coverage)}
        with self.output.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=self._folder,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                return process.wait(limit_s)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)  # so that pytest drops its databases
                with suppress(subprocess.TimeoutExpired):
                    process.wait(10)
                return None
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _run_tests(self, tests: Sequence[str], marks: str) -> int | None:
        names = self._folder / "tests.txt"
        names.write_text("\n".join(tests))
        return self.run_pytest("-x", "--tb=no", "--hypothesis-seed=0", "-m", marks, f"@{names}", limit_s=LIMIT_S)

    @contextmanager
    def _changed(self, mutant: Mutant) -> Iterator[None]:
        file = self._folder / mutant.path
        original, times = file.read_text(), file.stat()
        file.write_text(mutant.apply(original))
        # Compiled code is reused for a file of the same size and second, so each mutant has a second of its own.
        os.utime(file, (times.st_atime, int(mutant.key[:7], 16)))
        try:
            yield
        finally:
            file.write_text(original)
            os.utime(file, (times.st_atime, times.st_mtime))
