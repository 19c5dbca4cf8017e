"""Join dates that wrap in a narrow column: `01` above `AUG`, `2025-07-` above `04`, `07 JUL` above `25`; and remove the
time of day that a few banks print beside or above a date.

This comes before all other reading: a row with a split date looks like one without a date, and would get the date of
the row above.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from pipelines.intake.pdf.page.amounts import amounts_of
from pipelines.intake.pdf.page.dates import leading_date
from pipelines.intake.pdf.page.page import Line, Word

_ALIGNED = 3.0  # points, at most, between left edges in one column
_NEXT_LINE = 2.1  # of the size, at most, from top to top
_CELL_APART = 0.5  # of the size: a wider gap after the date begins another cell
_MAX_WORDS = 3  # in a part of a date
TIME = re.compile(r"[0-2]?[0-9][:.][0-5][0-9](?: ?[ap]m)?", re.IGNORECASE)
_CUT = ("-", "/", ".")
_YEAR = re.compile(r"(?:20)?[0-9]{2}")


def join_wrapped_dates(lines: Sequence[Line]) -> list[Line]:
    """Return a page's lines with each date whole on the line where it begins."""
    whole = [_remove_time(line) for line in lines]
    found: list[Line] = []
    for line, below in zip_longest(whole, whole[1:]):
        begins = below is not None and _join_date(line, below) is not None  # the first half of another date
        joined = _join_date(found[-1], line) if found and not begins else None
        if joined is None:
            found.append(line)
        else:
            found[-1:] = joined
    return found


def _remove_time(line: Line) -> Line:
    """Remove a time in front of a line's date."""
    if len(line.words) < 2 or not TIME.fullmatch(line.words[0].text) or leading_date(line.text) is not None:
        return line
    rest = Line(line.page, line.words[1:])
    return rest if leading_date(rest.text) is not None and amounts_of(rest) else line


def _join_date(above: Line, below: Line) -> list[Line] | None:
    """Return the upper line with a whole date, and the rest of the lower line; None if they don't share a date."""
    first, second = above.words[0], below.words[0]
    if abs(first.left - second.left) > _ALIGNED or second.top - first.top > _NEXT_LINE * first.size:
        return None
    is_cut = bool(TIME.fullmatch(first.text)) or first.text.endswith(_CUT)
    if (leading_date(below.text) is not None and not is_cut) or not amounts_of(above):
        return None
    for head in _cells_in_front(above.words):
        for tail in _cells_in_front(below.words):
            text = _date_of_halves(_text(head), _text(tail), is_alone=len(tail) == len(below.words))
            if text is not None:
                return _move_date(above, below, head, tail, text)
    return None


def _cells_in_front(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """Yield the possible first cells of a line: words followed by more than a space."""
    for stop in range(1, min(_MAX_WORDS, len(words)) + 1):
        if stop == len(words) or words[stop].left - words[stop - 1].right > _CELL_APART * words[stop].size:
            yield words[:stop]


def _text(words: Sequence[Word]) -> str:
    return " ".join(word.text for word in words)


def _date_of_halves(head: str, tail: str, *, is_alone: bool) -> str | None:
    """Return the date that two halves make. A year of four digits alone on its line is left for the rows below."""
    if TIME.fullmatch(head):
        return tail if _is_date(tail) else None
    text = head + tail if head.endswith(_CUT) else f"{head} {tail}"
    begun, whole = leading_date(head), leading_date(text)
    if whole is None or whole[1] != len(text):
        return None
    if begun is None:
        return text
    is_year = begun[0].year is None and whole[0].year is not None and bool(_YEAR.fullmatch(tail))
    return text if is_year and not (is_alone and len(tail) > 2) else None


def _is_date(text: str) -> bool:
    found = leading_date(text)
    return found is not None and found[1] == len(text)


def _move_date(above: Line, below: Line, head: Sequence[Word], tail: Sequence[Word], text: str) -> list[Line]:
    right = max(head[-1].right, tail[-1].right)
    date = replace(head[0], text=text, right=right)
    upper = Line(above.page, (date, *above.words[len(head) :]))
    rest = below.words[len(tail) :]
    return [upper, Line(below.page, rest)] if rest else [upper]
