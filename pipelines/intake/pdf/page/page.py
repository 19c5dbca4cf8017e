"""Words and lines of a page as it is shown: what every later step reads instead of the file."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pipelines.intake.pdf.page.result import Box


@dataclass(frozen=True, slots=True)
class Word:
    """Characters that stand together. Points from the top left corner of the page, its text upright and level."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    font: str  # as the file names it; empty for a word that was read from a picture
    size: float  # of its characters

    def moved(self, across: float, down: float) -> "Word":
        left, right = self.left + across, self.right + across
        return replace(self, left=left, top=self.top + down, right=right, bottom=self.bottom + down)


@dataclass(frozen=True, eq=False)
class Line:
    """Words on one baseline, from left to right. It equals itself alone: what is found in it is asked for again and
    again, and kept.
    """

    page: int  # from 1
    words: tuple[Word, ...]

    @cached_property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @cached_property
    def box(self) -> Box:
        words = self.words
        return Box(
            self.page,
            min(word.left for word in words),
            min(word.top for word in words),
            max(word.right for word in words),
            max(word.bottom for word in words),
        )

    def moved(self, across: float, down: float) -> "Line":
        """The same line elsewhere on its page."""
        return Line(self.page, tuple(word.moved(across, down) for word in self.words))


@dataclass(frozen=True, slots=True)
class Turn:
    """How far the text of a page is turned clockwise from level, as the page is shown: a scan that lay askew, a page
    that was drawn sideways. Words are kept level; `shown` gives their place on the page.
    """

    cosine: float = 1.0
    sine: float = 0.0
    across: float = 0.0  # added after turning back, so that the page stays right of and below its corner
    down: float = 0.0

    @classmethod
    def of(cls, degrees: float, width: float, height: float) -> "Turn":
        cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        bare = cls(cosine, sine)
        corners = [bare.to_upright(x, y) for x in (0.0, width) for y in (0.0, height)]
        if abs(sine) < 0.5 and cosine > 0:  # askew, neither sideways nor upside down: the corner stays
            return bare if abs(sine) > 1e-9 else cls()
        return cls(cosine, sine, -min(x for x, _ in corners), -min(y for _, y in corners))

    @property
    def is_none(self) -> bool:
        return self.cosine == 1.0 and self.sine == self.across == self.down == 0.0

    def size(self, width: float, height: float) -> tuple[float, float]:
        """How wide and high the level text of a page is that is shown so wide and high."""
        return (height, width) if abs(self.sine) > 0.5 else (width, height)

    def moved(self, left: float, top: float) -> "Turn":
        """Of a part of the page that begins at a point of the level text."""
        return replace(self, across=self.across - left, down=self.down - top)

    def to_upright(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Of a point, or of arrays of them."""
        return (
            x * self.cosine + y * self.sine + self.across,
            y * self.cosine - x * self.sine + self.down,
        )

    def shown(self, box: Box) -> Box:
        """Around the corners of a level box, on the page as shown."""
        if self.is_none:
            return box
        corners = [self._back(x, y) for x in (box.left, box.right) for y in (box.top, box.bottom)]
        across, down = zip(*corners, strict=True)
        return Box(box.page, min(across), min(down), max(across), max(down))

    def _back(self, x: float, y: float) -> tuple[float, float]:
        x, y = x - self.across, y - self.down
        return x * self.cosine - y * self.sine, x * self.sine + y * self.cosine


@dataclass(frozen=True, slots=True)
class Page:
    """A page's lines from top to bottom. Two may stand on one sheet: then each is a page, and `turn` says where on the
    sheet it begins.
    """

    number: int  # from 1, in the order in which pages are read
    width: float  # of its sheet as shown
    height: float
    lines: Sequence[Line]
    is_picture: bool  # no text of its own, an image over most of it
    read_by_ocr: bool
    turn: Turn = Turn()
    on_sheet: int | None = None  # where it isn't the sheet of its own number
    is_half: bool = False  # of its sheet

    @property
    def sheet(self) -> int:
        """The page of the file that shows it, from 1."""
        return self.on_sheet or self.number

    def shown(self, box: Box) -> Box:
        """Where a place of the page is on its sheet."""
        shown = self.turn.shown(box)
        return shown if shown.page == self.sheet else replace(shown, page=self.sheet)

    def numbered(self, number: int) -> "Page":
        """The same page at another place in the order of reading."""
        if number == self.number:
            return self
        lines = [Line(number, line.words) for line in self.lines]
        return replace(self, number=number, lines=lines, on_sheet=self.sheet)
