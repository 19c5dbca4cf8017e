"""Dates that are wrapped in a narrow column: `01` above `AUG`, `2025-07-` above `04`, `07 JUL` above `25`; and the
time of day that a few banks print beside a date or above it.

They are put together before anything else is read: a row whose date is in two halves looks like one without a date,
which would have that of the row above.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from pipelines.intake.pdf.page.amounts import amounts_of
from pipelines.intake.pdf.page.dates import leading
from pipelines.intake.pdf.page.page import Line, Word

_ALIGNED = 3.0  # points between left edges of one column
_NEXT_LINE = 2.1  # of the size, from top to top
_CELL_APART = 0.5  # of the size: what follows the date is another cell
_MOST_WORDS = 3  # of a part of a date
TIME = re.compile(r"[0-2]?[0-9][:.][0-5][0-9](?: ?[ap]m)?", re.IGNORECASE)
_CUT = ("-", "/", ".")
_YEAR = re.compile(r"(?:20)?[0-9]{2}")


def with_whole_dates(lines: Sequence[Line]) -> list[Line]:
    """A page's lines, each date on the line where it begins."""
    whole = [_without_time(line) for line in lines]
    found: list[Line] = []
    for line, below in zip_longest(whole, whole[1:]):
        begins = below is not None and _joined(line, below) is not None  # the first half of a date of its own
        joined = _joined(found[-1], line) if found and not begins else None
        if joined is None:
            found.append(line)
        else:
            found[-1:] = joined
    return found


def _without_time(line: Line) -> Line:
    """The line without a time in front of its date."""
    if len(line.words) < 2 or not TIME.fullmatch(line.words[0].text) or leading(line.text) is not None:
        return line
    rest = Line(line.page, line.words[1:])
    return rest if leading(rest.text) is not None and amounts_of(rest) else line


def _joined(above: Line, below: Line) -> list[Line] | None:
    """The upper line with a whole date, and what is left of the lower one; None where no date is in two halves."""
    first, second = above.words[0], below.words[0]
    if abs(first.left - second.left) > _ALIGNED or second.top - first.top > _NEXT_LINE * first.size:
        return None
    is_cut = bool(TIME.fullmatch(first.text)) or first.text.endswith(_CUT)
    if (leading(below.text) is not None and not is_cut) or not amounts_of(above):
        return None
    for head in _cells_in_front(above.words):
        for tail in _cells_in_front(below.words):
            text = _date_of(_text(head), _text(tail), is_alone=len(tail) == len(below.words))
            if text is not None:
                return _moved(above, below, head, tail, text)
    return None


def _cells_in_front(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """What may be the first cell of a line: words behind which there is more than a blank."""
    for stop in range(1, min(_MOST_WORDS, len(words)) + 1):
        if stop == len(words) or words[stop].left - words[stop - 1].right > _CELL_APART * words[stop].size:
            yield words[:stop]


def _text(words: Sequence[Word]) -> str:
    return " ".join(word.text for word in words)


def _date_of(head: str, tail: str, *, is_alone: bool) -> str | None:
    """The date that two halves make. A year of four digits alone on its line may be that of the rows below."""
    if TIME.fullmatch(head):
        return tail if _is_date(tail) else None
    text = head + tail if head.endswith(_CUT) else f"{head} {tail}"
    begun, whole = leading(head), leading(text)
    if whole is None or whole[1] != len(text):
        return None
    if begun is None:
        return text
    is_year = begun[0].year is None and whole[0].year is not None and bool(_YEAR.fullmatch(tail))
    return text if is_year and not (is_alone and len(tail) > 2) else None


def _is_date(text: str) -> bool:
    found = leading(text)
    return found is not None and found[1] == len(text)


def _moved(above: Line, below: Line, head: Sequence[Word], tail: Sequence[Word], text: str) -> list[Line]:
    right = max(head[-1].right, tail[-1].right)
    date = replace(head[0], text=text, right=right)
    upper = Line(above.page, (date, *above.words[len(head) :]))
    rest = below.words[len(tail) :]
    return [upper, Line(below.page, rest)] if rest else [upper]
