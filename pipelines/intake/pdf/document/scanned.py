"""Assemble words that OCR read from the picture of a page into lines. Rows read by OCR are never proved."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipelines.intake.pdf.page.page import Line, Word
from pipelines.intake.pdf.page.result import Reason, Verdict

DOTS_PER_INCH = 200
_MIN_CONFIDENCE = 20.0  # of 100; our judgement: below it, a word is a speck
_LEVEL = 0.45  # of the height: words whose middles are closer are on one line


@dataclass(frozen=True)
class ScannedWord:
    """A word with its box in pixels of the picture given to OCR."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    confidence: float  # 0 … 100


def lines_of_scanned(words: Sequence[ScannedWord], page: int, scale: float) -> list[Line]:
    """Return the lines of a picture, turned level if the paper was skewed. `scale` is in pixels per point."""
    slope = _slope(words)
    placed = [
        _place_word(word, scale, slope) for word in words if word.confidence >= _MIN_CONFIDENCE and word.text.strip()
    ]
    return [Line(page, tuple(sorted(group, key=lambda word: word.left))) for group in _group_level(placed)]


def _place_word(scanned: ScannedWord, scale: float, slope: float) -> Word:
    offset = slope * (scanned.left + scanned.right) / 2
    top, bottom = (scanned.top - offset) / scale, (scanned.bottom - offset) / scale
    return Word(
        scanned.text.strip(), scanned.left / scale, top, scanned.right / scale, bottom, "", round(bottom - top, 1)
    )


def _slope(words: Sequence[ScannedWord]) -> float:
    """Return the median slope between neighbouring words: pixels down per pixel to the right.

    Words less than 60 pixels apart, and pages with 20 such pairs or fewer, show no slope (our judgement).
    """
    slopes = sorted(
        (_middle(after) - _middle(before)) / (after.left - before.left)
        for before, after in pairwise(words)
        if after.left - before.left > 60 and abs(_middle(after) - _middle(before)) < (before.bottom - before.top) / 2
    )
    return slopes[len(slopes) // 2] if len(slopes) > 20 else 0.0


def _middle(word: ScannedWord) -> float:
    return (word.top + word.bottom) / 2


def _group_level(words: Sequence[Word]) -> Iterator[list[Word]]:
    group: list[Word] = []
    for word in sorted(words, key=lambda word: word.top + word.bottom):
        if group and not _is_level(group, word):
            yield group
            group = []
        group.append(word)
    if group:
        yield group


def _is_level(group: Sequence[Word], word: Word) -> bool:
    middles = sum(member.top + member.bottom for member in group) / 2 / len(group)
    height = sorted(member.bottom - member.top for member in (*group, word))[len(group) // 2]
    return abs((word.top + word.bottom) / 2 - middles) <= _LEVEL * height


def cap_verdict(verdict: Verdict, reasons: tuple[Reason, ...], page: int) -> tuple[Verdict, tuple[Reason, ...]]:
    """Lower the verdict of a scanned statement and ask for a review: digits that OCR misread may still add up."""
    review = Reason("NeedsReview", "OCR read the text from a picture; compare it with the pages.", page)
    proved = verdict in (Verdict.RECONCILED, Verdict.RECONCILED_DATES_DOUBTFUL)
    return (Verdict.PARTIAL if proved else verdict), (*reasons, review)
