"""Find the value of a label: beside it, or below it as in a table of one row.

A summary prints `Opening balance $100.00`, or a line of labels above a line of values, perhaps in two columns. So each
label comes with the words to its right, where its value is searched for first, and with the cells below it.
"""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import islice, pairwise

from pipelines.intake.pdf.page.dates import leading_date
from pipelines.intake.pdf.page.page import Line, Word

_AMOUNT = re.compile(r"[0-9]\.[0-9]{2}(?![0-9])")
_MONEY = re.compile(r"(?:due|is|of|:|=|[ (+-])*(?:\$ ?[0-9]|[0-9][0-9,]*\.[0-9]{2}(?![0-9]))", re.IGNORECASE)
_UNTIL = re.compile(r" *(?:to|[-–—]) *[0-9]", re.IGNORECASE)
_CLOSE = 1.3  # of a line's height: a line further below does not continue the one above
_GAP = 0.9  # of the characters' size: after a wider gap, another cell begins
_HEAD = 60  # first lines; labels that continue on a second line are searched for only there
_LINES_BELOW = 3
_FURTHEST_BELOW = 48.0  # points; our judgement, as is the next
_FURTHEST_ASIDE = 36.0  # points


@dataclass(frozen=True)
class Labelled:
    """A label's place among the lines, the text after it on its line, and the cells below it, the nearest first.

    If a label ends within a word (`BSB:062-000`), the rest of that word is in `text_after`, but not in `beside`.
    """

    position: int
    line: Line
    text_after: str  # all that follows on the line
    beside: tuple[Word, ...]
    below: tuple[tuple[Word, ...], ...]

    @property
    def first_cell(self) -> str:
        return text_of(cells(self.beside)[0]) if self.beside else ""


def find_label(lines: Sequence[Line], label: re.Pattern[str]) -> Iterator[Labelled]:
    """Yield every occurrence of a label, in reading order."""
    for position, line in enumerate(lines):
        for match in label.finditer(line.text):
            first, last = _words_of(line, *match.span())
            rest = line.words[last:]
            yield Labelled(
                position,
                line,
                line.text[match.end() :].strip(),
                rest,
                tuple(_cells_below(lines, position, line.words[first:last], (*line.words[:first], *rest))),
            )


def wrapped_labels(lines: Sequence[Line], label: re.Pattern[str]) -> Iterator[Labelled]:
    """Yield every occurrence of a label in a cell of two lines near the top: `Opening` above `balance`."""
    for position, (above, line) in enumerate(pairwise(lines[:_HEAD]), start=1):
        for cell in _cells_of_two_lines(above, line):
            if label.search(text_of(cell)):
                first = line.words.index(cell[-1]) + 1
                lower = [word for word in cell if word in line.words]
                others = [word for word in line.words if word not in lower]
                below = tuple(_cells_below(lines, position, lower, others))
                yield Labelled(position, line, text_of(line.words[first:]), line.words[first:], below)


def _cells_of_two_lines(above: Line, line: Line) -> Iterator[tuple[Word, ...]]:
    """Yield the words of cells that continue on the next line, directly below."""
    height = above.box.bottom - above.box.top
    if above.page != line.page or line.box.top - above.box.bottom > height or is_row(line) or is_row(above):
        return
    lower = cells(line.words)
    for cell in cells(above.words):
        beneath = [candidate for candidate in lower if _gap_between(candidate, cell) < 0]
        if len(beneath) == 1:
            yield (*cell, *beneath[0])


def states_money(found: Labelled) -> bool:
    """Return whether a label has an amount, in whole dollars or with cents."""
    texts = (found.text_after, *(text_of(cell) for cell in found.below))
    return any(_MONEY.match(text) for text in texts)


def is_row(line: Line) -> bool:
    """Return whether a line begins with a date (not a period) and has an amount. Such a row is never part of a
    summary.
    """
    text = line.text
    day = leading_date(text) if has_amount(text) else None
    return day is not None and not _UNTIL.match(text, day[1])


def row_continuations(lines: Sequence[Line]) -> Set[int]:
    """Return the positions of lines that continue a row: below it without a gap, and right of its date.

    They belong to the row's description: a number or a currency there is the payee's, not the account's.
    """
    found = set[int]()
    row: Line | None = None
    for position, line in enumerate(lines):
        if is_row(line):
            row = line
        elif row is None or not is_close(lines[position - 1], line):
            row = None
        elif line.words[0].left > row.words[0].right:
            found.add(position)
    return found


def is_close(above: Line, below: Line) -> bool:
    """Return whether a line stands below another one without a gap."""
    height = max(below.box.bottom - below.box.top, above.box.bottom - above.box.top)
    return above.page == below.page and below.box.top - above.box.bottom <= _CLOSE * height


def has_amount(text: str) -> bool:
    return _AMOUNT.search(text) is not None


def cells(words: Sequence[Word]) -> Sequence[tuple[Word, ...]]:
    """Group words that are separated by no more than a space."""
    found: list[list[Word]] = []
    for word in words:
        if found and word.left - found[-1][-1].right <= _GAP * max(word.size, 1.0):
            found[-1].append(word)
        else:
            found.append([word])
    return [tuple(group) for group in found]


def text_of(words: Sequence[Word]) -> str:
    return " ".join(word.text for word in words)


def _words_of(line: Line, start: int, end: int) -> tuple[int, int]:
    """Return the range of words that a span of a line's text touches."""
    offset, touched = 0, list[int]()
    for number, word in enumerate(line.words):
        if offset < end and offset + len(word.text) > start:
            touched.append(number)
        offset += len(word.text) + 1
    return touched[0], touched[-1] + 1


def _cells_below(
    lines: Sequence[Line], position: int, label: Sequence[Word], others: Sequence[Word]
) -> Iterator[tuple[Word, ...]]:
    """Yield the cells of the next lines that are nearer to this label than to the words beside it."""
    page, bottom = lines[position].page, max(word.bottom for word in label)
    for line in islice(lines, position + 1, position + 1 + _LINES_BELOW):
        if line.page != page or line.box.top - bottom > _FURTHEST_BELOW or is_row(line):
            return
        yield from (cell for cell in cells(line.words) if _belongs(cell, label, others))


def _belongs(cell: Sequence[Word], label: Sequence[Word], others: Sequence[Word]) -> bool:
    apart = _gap_between(cell, label)
    return apart <= _FURTHEST_ASIDE and all(apart <= _gap_between(cell, (other,)) for other in others)


def _gap_between(cell: Sequence[Word], label: Sequence[Word]) -> float:
    """Return the horizontal gap between two groups of words, in points; negative if they overlap."""
    return max(cell[0].left, label[0].left) - min(cell[-1].right, label[-1].right)
