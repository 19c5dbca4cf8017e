"""What headings of columns mean: looked up in one list of synonyms, whatever case, signs and currency they are in."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import yaml

from pipelines.intake.exports.currency import stated_in_heading

_RETAINED_IN_BRACKETS = r"\b(?:dr|cr|debit|credit|in|out)\b"


@cache
def synonyms() -> Mapping[str, Sequence[str]]:
    """The headings of each role, the preferred ones first."""
    table = yaml.safe_load(files("pipelines.intake.exports").joinpath("headings.yaml").read_text("utf-8"))
    return {role: tuple(headings) for role, headings in table.items()}


def roles_in(headings: Mapping[str, str]) -> dict[str, str]:
    """Role → column. A column has one role; of two that could have it, the one with the preferred heading has."""
    by_heading = {_plain(heading): column for column, heading in reversed(tuple(headings.items()))}
    roles: dict[str, str] = {}
    for role, known in synonyms().items():
        free = (by_heading[each] for each in known if each in by_heading and by_heading[each] not in roles.values())
        if column := next(free, None):
            roles[role] = column
    return roles


def _plain(heading: str) -> str:
    """The heading in lower case, without units in brackets, and without a currency's code unless it is known so."""
    without_unit = re.sub(r"\(.*?\)|\[.*?\]", _side_in_brackets, heading.lower())
    words = re.sub(r"[^a-z0-9]+", " ", without_unit).split()
    code = (stated_in_heading(heading) or "").lower()
    if " ".join(words) in _known() or code not in words:
        return " ".join(words)
    return " ".join(word for word in words if word not in (code, "in"))


def _side_in_brackets(brackets: re.Match[str]) -> str:
    """`(Dr)` says which side a column is; other brackets hold a unit."""
    return f" {' '.join(re.findall(_RETAINED_IN_BRACKETS, brackets[0]))} "


@cache
def _known() -> frozenset[str]:
    return frozenset(heading for known in synonyms().values() for heading in known)
