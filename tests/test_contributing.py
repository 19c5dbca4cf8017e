"""The files that CONTRIBUTING names for an addition are there, and they are few."""

import re

from tests.root import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
PLACEHOLDER = re.compile("SUBJECT|NAME|BANK|SLUG")
PATH = re.compile(r"`([a-z_]+/[\w/.]+)`")


def test_every_path_exists() -> None:
    paths = [path for path in PATH.findall(TEXT) if not PLACEHOLDER.search(path)]
    assert len(paths) > 30
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_an_addition_takes_at_most_four_files_and_a_test() -> None:
    rows = re.findall(r"^\| \[an? [^|]+\| ([^|]+) \| ([^|]+) \|$", TEXT, flags=re.MULTILINE)
    assert len(rows) == TEXT.partition("## How to add")[2].partition("\n## ")[0].count("\n### ")
    for files, tests in rows:
        assert len(PATH.findall(files)) <= 4
        assert len(PATH.findall(tests)) <= 1
