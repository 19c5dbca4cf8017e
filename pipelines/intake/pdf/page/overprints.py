"""Find figures printed over other figures: a figure that was painted over is still in the file below its cover.

The two figures are read as one word, which has too many characters for its width and is not a valid amount.
"""

import re
from collections.abc import Iterator

from pipelines.intake.pdf.page.amounts import money
from pipelines.intake.pdf.page.page import Page, Word

_FIGURES = re.compile(r"[-+$(]*[0-9][0-9.,$]*[.,][0-9.,$]*\)?-?")
_DIGIT, _MARK = 0.5, 0.25  # usual widths, as shares of the font's size
_TOO_NARROW = 0.9  # of the usual width; narrow fonts come close to it


def find_overprinted(page: Page) -> Iterator[Word]:
    """Yield the words of a page that consist of two figures, one over the other."""
    if page.read_by_ocr:
        return
    for line in page.lines:
        for word in line.words:
            if _FIGURES.fullmatch(word.text) and money(word.text) is None and _is_narrow(word):
                yield word


def _is_narrow(word: Word) -> bool:
    digits = sum(character.isdigit() for character in word.text)
    usual = (_DIGIT * digits + _MARK * (len(word.text) - digits)) * word.size
    return word.right - word.left < _TOO_NARROW * usual
