"""What stands at a label: beside it, or below it as in a table of one row.

A summary prints `Opening balance $100.00`, or a line of labels above a line of values; two such columns may stand side
by side. So a label's value is looked for to its right first, as far as the next label would begin, then below.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from pipelines.intake.pdf.page.dates import leading
from pipelines.intake.pdf.page.page import Line, Word

_AMOUNT = re.compile(r"[0-9]\.[0-9]{2}(?![0-9])")
_MONEY = re.compile(r"(?:due|is|of|:|=|[ (+-])*(?:\$ ?[0-9]|[0-9][0-9,]*\.[0-9]{2}(?![0-9]))", re.IGNORECASE)
_UNTIL = re.compile(r" *(?:to|[-–—]) *[0-9]", re.IGNORECASE)
_GAP = 0.9  # of the characters' size: wider than a blank, so another cell begins
_HEAD = 60  # lines in which labels of two lines are looked for
_LINES_BELOW = 3
_FURTHEST_BELOW = 48.0  # points
_FURTHEST_ASIDE = 36.0


@dataclass(frozen=True)
class Labelled:
    """A label's place among the lines, what follows it on its line, and the cells below it, the nearest first.

    A label that ends within a word (`BSB:062-000`) has that word's rest in `behind`, and not in `beside`.
    """

    position: int
    line: Line
    behind: str  # all that follows
    beside: tuple[Word, ...]
    below: tuple[tuple[Word, ...], ...]

    @property
    def first_cell(self) -> str:
        return text_of(cells(self.beside)[0]) if self.beside else ""


def labelled(lines: Sequence[Line], label: re.Pattern[str]) -> Iterator[Labelled]:
    """Every place where a label stands, in reading order."""
    for position, line in enumerate(lines):
        for match in label.finditer(line.text):
            first, last = _words_of(line, *match.span())
            rest = line.words[last:]
            yield Labelled(
                position,
                line,
                line.text[match.end() :].strip(),
                rest,
                tuple(_below(lines, position, line.words[first:last], (*line.words[:first], *rest))),
            )


def wrapped_labels(lines: Sequence[Line], label: re.Pattern[str]) -> Iterator[Labelled]:
    """Every place at the head where a label stands in a cell of two lines: `Opening` above `balance`."""
    for position, (above, line) in enumerate(pairwise(lines[:_HEAD]), start=1):
        for cell in _continued(above, line):
            if label.search(text_of(cell)):
                first = line.words.index(cell[-1]) + 1
                lower = [word for word in cell if word in line.words]
                others = [word for word in line.words if word not in lower]
                below = tuple(_below(lines, position, lower, others))
                yield Labelled(position, line, text_of(line.words[first:]), line.words[first:], below)


def _continued(above: Line, line: Line) -> Iterator[tuple[Word, ...]]:
    """The words of cells that two lines share, one close below the other."""
    height = above.box.bottom - above.box.top
    if above.page != line.page or line.box.top - above.box.bottom > height or is_row(line) or is_row(above):
        return
    lower = cells(line.words)
    for cell in cells(above.words):
        beneath = [each for each in lower if _apart(each, cell) < 0]
        if len(beneath) == 1:
            yield (*cell, *beneath[0])


def states_money(found: Labelled) -> bool:
    """Whether an amount stands at a label, in whole dollars or with cents."""
    texts = (found.behind, *(text_of(cell) for cell in found.below))
    return any(_MONEY.match(text) for text in texts)


def is_row(line: Line) -> bool:
    """A line that begins with a date, not with a period, and has an amount: no place for what a summary states."""
    text = line.text
    day = leading(text) if has_amount(text) else None
    return day is not None and not _UNTIL.match(text, day[1])


def has_amount(text: str) -> bool:
    return _AMOUNT.search(text) is not None


def cells(words: Sequence[Word]) -> Sequence[tuple[Word, ...]]:
    """Words in groups between which the gap is wider than a blank."""
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
    """The words that a stretch of a line's text touches, as a range."""
    offset, touched = 0, list[int]()
    for number, word in enumerate(line.words):
        if offset < end and offset + len(word.text) > start:
            touched.append(number)
        offset += len(word.text) + 1
    return touched[0], touched[-1] + 1


def _below(
    lines: Sequence[Line], position: int, label: Sequence[Word], others: Sequence[Word]
) -> Iterator[tuple[Word, ...]]:
    """The cells of the next lines that stand nearer to this label than to what is beside it."""
    page, bottom = lines[position].page, max(word.bottom for word in label)
    for line in islice(lines, position + 1, position + 1 + _LINES_BELOW):
        if line.page != page or line.box.top - bottom > _FURTHEST_BELOW or is_row(line):
            return
        yield from (cell for cell in cells(line.words) if _belongs(cell, label, others))


def _belongs(cell: Sequence[Word], label: Sequence[Word], others: Sequence[Word]) -> bool:
    apart = _apart(cell, label)
    return apart <= _FURTHEST_ASIDE and all(apart <= _apart(cell, (other,)) for other in others)


def _apart(cell: Sequence[Word], label: Sequence[Word]) -> float:
    """How far apart two groups stand from left to right; negative by as much as they overlap."""
    return max(cell[0].left, label[0].left) - min(cell[-1].right, label[-1].right)
