"""Find the number printed on a page: `Page 2 of 5`, `2/5`, `Page 2`. Label and value may be separate cells."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.intake.pdf.page.labels import cells, is_row, text_of
from pipelines.intake.pdf.page.page import Line

_MAY_HAVE = re.compile(r"page|(?<![0-9/.])[0-9]{1,3} ?(?:of|/) ?[0-9]{1,3}(?![0-9/.])", re.IGNORECASE)
_OF_OTHERS = r"(?<!see )(?<!to )(?<!on )(?<!over )(?<!and )"  # such a text refers to another page
_LABEL = rf"{_OF_OTHERS}\bpage:? *(?:(?:number|no\.?):? *)?"
_WITH_TOTAL = re.compile(rf"{_LABEL}([0-9]{{1,3}}) *(?:of|/) *([0-9]{{1,3}})\b", re.IGNORECASE)
_BARE = re.compile(r"[-– (]*([0-9]{1,3}) ?(?:of|/) ?([0-9]{1,3})[-– )]*", re.IGNORECASE)
_ALONE = re.compile(rf"{_LABEL}([0-9]{{1,3}})[-– )]*$", re.IGNORECASE)
_HEAD = 10  # lines above the rows; a number without the word `page` counts only there or on the last line


@dataclass(frozen=True, slots=True)
class PageNumber:
    """A printed page number. `total`: the number of pages, if printed. `top`: its place on the page, in points."""

    number: int
    total: int | None
    top: float

    def follows(self, other: "PageNumber") -> bool:
        return self.number == other.number + 1 and self.total == other.total


def printed_number(lines: Sequence[Line]) -> PageNumber | None:
    """Return the number of a page by its lines. `Page 2 of 5` is preferred to `Page 2`, and that to `2/5`."""
    likely = [(place, line) for place, line in enumerate(lines) if _MAY_HAVE.search(line.text) and not is_row(line)]
    if not likely:
        return None
    rows = next((place for place, line in enumerate(lines) if is_row(line)), len(lines))
    anywhere = [line for _, line in likely]
    edge = [line for place, line in likely if place < min(rows, _HEAD) or place == len(lines) - 1]
    for found in (_numbers_with_total(anywhere), _numbers_alone(anywhere), _numbers_without_word(edge)):
        if (number := next(found, None)) is not None:
            return number
    return None


def _numbers_with_total(lines: Sequence[Line]) -> Iterator[PageNumber]:
    for line in lines:
        if match := _WITH_TOTAL.search(line.text):
            yield from _valid_number(line, match[1], match[2])


def _numbers_without_word(lines: Sequence[Line]) -> Iterator[PageNumber]:
    for line in lines:
        for cell in cells(line.words):
            if match := _BARE.fullmatch(text_of(cell)):
                yield from _valid_number(line, match[1], match[2])


def _numbers_alone(lines: Sequence[Line]) -> Iterator[PageNumber]:
    for line in lines:
        for text in (line.text, *map(text_of, cells(line.words))):
            if match := _ALONE.search(text):
                yield from _valid_number(line, match[1], None)


def _valid_number(line: Line, number: str, total: str | None) -> Iterator[PageNumber]:
    """Yield a page number if it is valid: at least 1, and not more than the number of pages."""
    if 1 <= int(number) <= int(total or number):
        yield PageNumber(int(number), int(total) if total else None, line.box.top)
