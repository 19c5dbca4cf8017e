"""Prove that a mutant is caught where a test notices it, and survives where none can."""

import subprocess
from pathlib import Path

import pytest
from coverage import CoverageData

from tests.mutants.changes import find_mutants
from tests.mutants.copies import Copy, Outcome
from tests.mutants.covering import Covering

MODULE = "core/fees.py"
SOURCE = """LIMIT = 10

def fee(amount: int = 3) -> int:
    if amount > 100:
        return 100
    return amount * 1

def is_free(amount: int, known: bool) -> bool:
    return not known or amount in (0,)
"""
TESTS = """from core.fees import fee

def test_fee():
    assert fee(7) == 7

def test_most():
    assert (fee(100), fee(150)) == (100, 100)

def test_what_never_passes():
    assert fee(7) == 8
"""


def test_changes_of_bodies_are_found() -> None:
    changes = {mutant.draw(SOURCE) for mutant in find_mutants(MODULE, SOURCE).values()}
    free = "return not known or amount in (0,)"
    assert changes == {
        ("if amount > 100:", "if amount >= 100:"),
        ("if amount > 100:", "if amount > 101:"),
        ("if amount > 100:", "if not (amount > 100):"),
        ("return 100", "return 101"),
        ("return 100", "return None"),
        ("return amount * 1", "return amount / 1"),
        ("return amount * 1", "return amount * 2"),
        ("return amount * 1", "return None"),
        (free, "return known or amount in (0,)"),
        (free, "return not known and amount in (0,)"),
        (free, "return not known or amount not in (0,)"),
        (free, "return not known or amount in (1,)"),
        (free, "return None"),
    }


def test_mutant_is_known_by_its_statement() -> None:
    moved = SOURCE.replace("LIMIT = 10\n", "").replace("return amount * 1", "return amount * 3")
    lost = find_mutants(MODULE, SOURCE).keys() - find_mutants(MODULE, moved).keys()
    assert len(lost) == 3


def test_tests_of_a_line_are_those_near_the_module_and_then_the_quickest(tmp_path: Path) -> None:
    near, slow, quick, endless = (
        "core/test_fees.py::test_1",
        "test_a.py::test_2",
        "test_a.py::test_3",
        "test_b.py::test_4",
    )
    data = CoverageData(str(tmp_path / "abc.coverage"))
    for test in (near, slow, quick, endless):
        data.set_context(f"tests/{test}[a|b-1]|run")
        data.add_lines({f"/somewhere/{MODULE}": [4, 5] if test == slow else [4]})
    data.write()
    durations = {near: 9.0, slow: 2.0, endless: 99.0}
    log = "\n".join(f"{seconds}s call     tests/{test}[a|b-1]" for test, seconds in durations.items())
    (tmp_path / "abc.log").write_text(log)
    covering = Covering("abc", tmp_path)
    tests = covering.find_tests(MODULE, (4,))
    assert covering.find_tests(MODULE, (6, 5)) == {f"tests/{slow}"}
    assert tests == {f"tests/{test}" for test in (near, slow, quick, endless)}
    assert covering.choose(MODULE, tests) == [f"tests/{test}" for test in (near, quick, slow)]


def test_mutant_is_caught_only_by_a_test_that_passes_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for name, text in {MODULE: SOURCE, "tests/test_fees.py": TESTS, "pyproject.toml": "[tool.pytest]\n"}.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(text)
    author = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "Fees"]):
        subprocess.run(["git", *command], cwd=here, check=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # half of the time that pytest takes to start
    monkeypatch.setenv("PYTEST_PLUGINS", "_hypothesis_pytestplugin")
    copy = Copy("HEAD", there)
    found = {mutant.draw(SOURCE)[1]: mutant for mutant in find_mutants(MODULE, SOURCE).values()}
    wrong, equal = found["return amount * 2"], found["if amount >= 100:"]
    fee, most, failing = (f"tests/test_fees.py::{name}" for name in ("test_fee", "test_most", "test_what_never_passes"))
    assert copy.judge(wrong, [failing, fee], "") == Outcome("caught", fee)
    assert copy.judge(equal, [fee, most], "") == Outcome("survived")
    assert (there / MODULE).read_text() == SOURCE
