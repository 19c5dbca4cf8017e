"""Look up the headings of columns in one list of synonyms, regardless of case, punctuation and currency."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import yaml

from pipelines.intake.exports.currency import stated_in_heading

_SIDES = r"\b(?:dr|cr|debit|credit|in|out)\b"


@cache
def synonyms() -> Mapping[str, Sequence[str]]:
    """Return the headings of each role, the preferred ones first."""
    table = yaml.load(files("pipelines.intake.exports").joinpath("headings.yaml").read_text("utf-8"), yaml.CSafeLoader)
    return {role: tuple(headings) for role, headings in table.items()}


def roles_in(headings: Mapping[str, str]) -> dict[str, str]:
    """Map roles to columns. A column has one role; if two columns fit a role, the one with the preferred heading gets
    it.
    """
    # In reverse, so that the first of several columns with equal headings is found.
    by_heading = {_plain(heading): column for column, heading in reversed(tuple(headings.items()))}
    roles: dict[str, str] = {}
    for role, known in synonyms().items():
        columns = (by_heading[heading] for heading in known if heading in by_heading)
        free = (column for column in columns if column not in roles.values())
        if column := next(free, None):
            roles[role] = column
    return roles


def _plain(heading: str) -> str:
    """Return a heading in lower case, without a unit in brackets or (unless `headings.yaml` has it) a currency."""
    without_unit = re.sub(r"\(.*?\)|\[.*?\]", _side_in_brackets, heading.lower())
    words = re.sub(r"[^a-z0-9]+", " ", without_unit).split()
    code = (stated_in_heading(heading) or "").lower()
    if " ".join(words) in _known_headings() or code not in words:
        return " ".join(words)
    return " ".join(word for word in words if word not in (code, "in"))


def _side_in_brackets(brackets: re.Match[str]) -> str:
    """Keep only the words of a side, as in `(Dr)`; other brackets hold a unit."""
    return f" {' '.join(re.findall(_SIDES, brackets[0]))} "


@cache
def _known_headings() -> frozenset[str]:
    return frozenset(heading for known in synonyms().values() for heading in known)
