"""Names and help texts don't use abandoned words; docs/glossary.md lists their replacements."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from api.cli import COMMANDS, app, import_command

PACKAGES = ("api", "assets", "benchmarks", "isolation", "pipelines", "storage")
TERMS = frozenset({"book", "books", "door", "doors", "lane", "lanes", "room", "rooms", "seat", "seats", "upkeep"})
NAMES = TERMS | {
    "armed",
    "booked",
    "fall",
    "fallen",
    "falls",
    "kept",
    "look",
    "looked",
    "looking",
    "looks",
    "once",
    "rise",
    "risen",
}
NAMES |= {"rises", "telling", "told", "understood", "unread", "withdrawal", "withdrawals"}
ORDINARY = re.compile(  # English in names, and the words of banks and libraries
    r"(?i)(.*_)?look(ed|s)?_(up|after|back)(_.*)?|(.*_)?at_once(_.*)?|_?(cash|branch)_withdrawals?(_.*)?"
)
# Comments and literals. A regular expression needs a tenth of the time of `tokenize`.
TEXT = re.compile(r"""(?s)#[^\n]*|(\"""|'''|"|')(\\.|(?!\1).)*?\1""")
NAME = re.compile(r"\b[^\W\d]\w*")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def test_names_of_files_and_of_what_is_in_them(subtests: pytest.Subtests) -> None:
    for path in (path for package in PACKAGES for path in sorted(Path(package).rglob("*.py"))):
        with subtests.test(str(path)):
            names = NAME.findall(TEXT.sub(" ", path.read_text()))
            assert not {name for name in {path.stem, *names} if is_abandoned(name)}


@cache
def is_abandoned(name: str) -> bool:
    return bool(NAMES & words(name)) and not ORDINARY.fullmatch(name)


def test_help_texts(subtests: pytest.Subtests) -> None:
    for command in commands():
        with subtests.test(" ".join(command)):
            shown = CliRunner().invoke(app, [*command, "--help"])
            assert shown.exit_code == 0
            assert not TERMS & words(shown.output)


def commands() -> Iterator[tuple[str, ...]]:
    for name in COMMANDS:
        yield from ((name, other) for other in getattr(import_command(name), "commands", ()))
        yield (name,)


def words(text: str) -> set[str]:
    return {word.lower() for word in WORD.findall(text)}
