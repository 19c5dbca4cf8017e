"""Names and help texts don't use abandoned words; docs/glossary.md lists their replacements."""

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from api.cli import COMMANDS, app, imported

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
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def test_names_of_files_and_of_what_is_in_them(subtests: pytest.Subtests) -> None:
    for path in (path for package in PACKAGES for path in sorted(Path(package).rglob("*.py"))):
        with subtests.test(str(path)), tokenize.open(path) as file:
            names = {token.string for token in tokenize.generate_tokens(file.readline) if token.type == tokenize.NAME}
            assert not {name for name in {path.stem, *names} if not ORDINARY.fullmatch(name) and NAMES & words(name)}


def test_help_texts(subtests: pytest.Subtests) -> None:
    for command in commands():
        with subtests.test(" ".join(command)):
            shown = CliRunner().invoke(app, [*command, "--help"])
            assert shown.exit_code == 0
            assert not TERMS & words(shown.output)


def commands() -> Iterator[tuple[str, ...]]:
    for name in COMMANDS:
        yield from ((name, other) for other in getattr(imported(name), "commands", ()))
        yield (name,)


def words(text: str) -> set[str]:
    return {word.lower() for word in WORD.findall(text)}
