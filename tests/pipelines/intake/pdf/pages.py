"""Build pages from texts: a line is its words, with `|` where the next cell begins."""

from collections.abc import Sequence

from pipelines.intake.pdf.page.page import Line, Page, Word

CELL = 230.0  # points from cell to cell
CHARACTER = 5.0
LEADING = 14.0
SIZE = 9.0


def page(number: int, *texts: str, top: float = 40.0) -> Page:
    """Build an A4 page from lines; an empty text leaves a line blank."""
    lines = [line(text, number, top + LEADING * position) for position, text in enumerate(texts) if text]
    return Page(number, 595.0, 842.0, lines, is_picture=False, read_by_ocr=False)


def line(text: str, number: int = 1, top: float = 40.0, font: str = "Helvetica", size: float = SIZE) -> Line:
    words: list[Word] = []
    for position, cell in enumerate(text.split("|")):
        left = 40.0 + CELL * position
        for word in cell.split():
            right = left + CHARACTER * len(word)
            words.append(Word(word, left, top, right, top + size, font, size))
            left = right + CHARACTER / 2
    return Line(number, tuple(words))


def lines(*texts: str) -> Sequence[Line]:
    return page(1, *texts).lines
