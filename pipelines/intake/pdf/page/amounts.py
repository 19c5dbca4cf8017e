"""Find amounts as banks print them: `$1,234.50`, `1,234.50 CR`, `(12.00)`, `12.00-`, `+$5.00`, `1 234.50 DR`,
`20.00 OD`, `£12.00`, `12.00€`. Decimal points and commas for thousands are assumed (`number_styles`).

What is printed is separate from what it means: a mark is evidence for a sign, and its column decides what it applies to
(`signs`). An amount has cents; a number without them is a reference, a year or part of a name.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

from pipelines.intake.minus_signs import MINUSES
from pipelines.intake.pdf.page.page import Line, Word
from pipelines.intake.pdf.page.symbols import CODES, CURRENCY_BY_SYMBOL, SYMBOL

_CODE = "|".join(sorted(CODES))
_AMOUNT = re.compile(
    rf"""
    (?P<before>CR|DR)?
    (?P<open>\()?
    (?P<first>[{MINUSES}+])?
    (?:(?P<symbol>{SYMBOL}|{_CODE})|\$)?
    (?P<second>[{MINUSES}+])?
    (?P<whole>[0-9]{{1,3}}(?:,[0-9]{{3}})+|[0-9]{{0,13}})
    \.(?P<cents>[0-9]{{2}})
    (?P<third>[{MINUSES}+])?
    (?P<close>\))?
    (?P<behind>{SYMBOL}|{_CODE})?
    (?P<after>CR|DR|OD|C|D)?
    [*\#^†]?
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Words that could be part of one amount. A currency's code and a mark may stand alone.
_PART = re.compile(rf"(?:{SYMBOL}|[{MINUSES}\w$,.()+])+[*#^†]?")
_SPACED = re.compile(rf"^(?=.*[0-9])[{MINUSES}($+]*[0-9]{{1,3}}(?: [0-9]{{3}})+\.[0-9]{{2}}")
NEGATIVE_MARKS = ("-", "()")  # marks (`Money.mark`) whose meaning depends on the column
_MARKS = {"CR": 1, "C": 1, "DR": -1, "D": -1, "OD": -1, "+": 1, "-": -1, "()": -1}
# Distances as shares of the characters' size; our judgement.
_JOINED = 0.75  # parts of one amount are closer
_MARK_APART = 1.6  # CR and DR may be further away
_MAX_PARTS = 6  # words of one amount
_CENTS = re.compile(r"\.[0-9]{2}$")
_LETTERS = re.compile(r"(?:CR|DR|OD)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Money:
    """An amount without its sign, and the mark beside it: ``""``, ``-``, ``()``, ``+``, CR, DR or OD.

    `is_contradictory`: the marks contradict each other, such as a minus and CR. `currency`: ISO 4217, by a symbol or
    code beside it; None for a bare `$`.
    """

    value: Decimal
    mark: str = ""
    is_contradictory: bool = False
    currency: str | None = field(default=None, compare=False)

    @property
    def sign(self) -> int | None:
        """-1 for money out or a debt, 1 for money in; None without a mark or with contradictory ones."""
        return None if self.is_contradictory else _MARKS.get(self.mark)

    @property
    def is_worded(self) -> bool:
        """Whether the mark is CR, DR or OD, which have the same meaning in every column."""
        return self.mark.isalpha()


@dataclass(frozen=True, slots=True)
class Printed:
    """An amount on a line: words `start` up to, but not including, `stop`."""

    money: Money
    start: int
    stop: int
    left: float
    edge: float  # the right end of the digits, without a mark after them
    right: float


@lru_cache(maxsize=4_096)
def money(text: str) -> Money | None:
    """Parse a text without spaces as an amount; None if it isn't one."""
    match = _AMOUNT.fullmatch(text)
    if match is None or bool(match["open"]) != bool(match["close"]):
        return None
    signs = {"-" if sign in MINUSES else sign for sign in match.group("first", "second", "third") if sign}
    letters = {mark.upper() for mark in match.group("before", "after") if mark}
    marks = [*sorted(letters), *(["()"] if match["open"] else []), *sorted(signs)]
    value = Decimal(f"{match['whole'].replace(',', '') or '0'}.{match['cents']}")
    symbol = (match["symbol"] or match["behind"] or "").upper()
    is_contradictory = len({_MARKS[mark] for mark in marks}) > 1
    return Money(value, marks[0] if marks else "", is_contradictory, CURRENCY_BY_SYMBOL.get(symbol, symbol) or None)


@lru_cache(maxsize=16_384)
def amounts_of(line: Line) -> tuple[Printed, ...]:
    """Return `printed_in` of a whole line, cached."""
    return tuple(printed_in(line.words))


def printed_in(words: Sequence[Word]) -> list[Printed]:
    """Return the amounts of a line, joined from their parts: `$` and `12.00`, `1,2` and `34.56`, `12.00` and `CR`."""
    found, index = list[Printed](), 0
    last = max((place for place, word in enumerate(words) if "." in word.text), default=-1)  # no amount begins after it
    while index <= last:
        amount = _longest_amount(words, index)
        if amount is not None:
            found.append(amount)
        index = amount.stop if amount is not None else index + 1
    return found


def _longest_amount(words: Sequence[Word], start: int) -> Printed | None:
    """Return the longest amount that begins at a word."""
    if not _is_part(words[start].text) or not any("." in word.text for word in words[start : start + _MAX_PARTS]):
        return None
    stop, best, text, most = start, None, "", min(len(words), start + _MAX_PARTS)
    while stop < most and (stop == start or _continues(words[stop - 1], words[stop])):
        text = f"{text} {words[stop].text}".strip()
        stop += 1
        if (value := _parse_parts(text)) is not None:
            best = _as_printed(value, words, start, stop)
    return best


def _continues(before: Word, word: Word) -> bool:
    """Return whether a word may continue the amount of the word before it."""
    if not _is_part(word.text):
        return False
    apart = _MARK_APART if _LETTERS.fullmatch(word.text) else _JOINED
    return word.left - before.right < apart * max(word.size, 1.0)


@lru_cache(maxsize=4_096)
def _is_part(text: str) -> bool:
    """Return whether a word may be part of an amount."""
    return bool(_PART.fullmatch(text))


@lru_cache(maxsize=4_096)
def _parse_parts(text: str) -> Money | None:
    """Parse an amount in several parts. A space between digits is allowed only in place of a comma for thousands."""
    parts = text.split()
    for before, after in pairwise(parts):
        if before[-1].isdigit() and after[0].isdigit() and not _makes_thousands(text):
            return None
        if _CENTS.search(before) and after[0] in "$(£₹¥":
            return None  # the next amount
    return money("".join(parts))


def _makes_thousands(text: str) -> bool:
    return bool(_SPACED.match(text)) or bool(re.search(r",[0-9]{1,2} [0-9]{1,2}\.[0-9]{2}", text))


def _as_printed(value: Money, words: Sequence[Word], start: int, stop: int) -> Printed:
    last = stop - 1
    while last > start and not any(character.isdigit() for character in words[last].text):
        last -= 1
    return Printed(value, start, stop, words[start].left, _edge(words[last]), words[stop - 1].right)


def _edge(word: Word) -> float:
    """Return where the digits of a word end, assuming that all of its characters are equally wide."""
    behind = len(word.text) - len(word.text.rstrip("CRDOcrdo)+*#^†£€₹¥" + MINUSES))
    return word.right - behind * (word.right - word.left) / len(word.text) if behind else word.right
