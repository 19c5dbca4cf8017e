"""Words and lines of a page as shown. Every later step reads these instead of the file."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pipelines.intake.pdf.page.result import Box


@dataclass(frozen=True, slots=True)
class Word:
    """Adjacent characters. Places are in points from the top left corner of the page with its text turned level."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    font: str  # as named in the file; empty for a word that OCR read
    size: float  # of its characters, in points

    def move(self, across: float, down: float) -> "Word":
        left, right = self.left + across, self.right + across
        return replace(self, left=left, top=self.top + down, right=right, bottom=self.bottom + down)


@dataclass(frozen=True, eq=False)
class Line:
    """Words on one baseline, from left to right. Lines are compared by identity, because what is found in them is
    cached by line.
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

    def move(self, across: float, down: float) -> "Line":
        """Return the line at another place on its page."""
        return Line(self.page, tuple(word.move(across, down) for word in self.words))


@dataclass(frozen=True, slots=True)
class Turn:
    """How far a page's text is turned clockwise as shown: a scan may be skewed, or a page drawn sideways.

    Words are stored as if the text were level. `to_page_as_shown` returns their place on the page.
    """

    cosine: float = 1.0
    sine: float = 0.0
    across: float = 0.0  # points, like `down`: added after turning level, so that all coordinates are positive
    down: float = 0.0

    @classmethod
    def of(cls, degrees: float, width: float, height: float) -> "Turn":
        cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        bare = cls(cosine, sine)
        corners = [bare.to_level(x, y) for x in (0.0, width) for y in (0.0, height)]
        if abs(sine) < 0.5 and cosine > 0:  # skewed, neither sideways nor upside down: the corner stays
            return bare if abs(sine) > 1e-9 else cls()
        return cls(cosine, sine, -min(x for x, _ in corners), -min(y for _, y in corners))

    @property
    def is_none(self) -> bool:
        return self.cosine == 1.0 and self.sine == self.across == self.down == 0.0

    def size(self, width: float, height: float) -> tuple[float, float]:
        """Return the width and height of the level text of a page with this width and height as shown."""
        return (height, width) if abs(self.sine) > 0.5 else (width, height)

    def move(self, left: float, top: float) -> "Turn":
        """Return the turn of a part of the page that begins at a point of the level text."""
        return replace(self, across=self.across - left, down=self.down - top)

    def to_level(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Convert a point, or arrays of points, from the page as shown to the level text."""
        return (
            x * self.cosine + y * self.sine + self.across,
            y * self.cosine - x * self.sine + self.down,
        )

    def to_page_as_shown(self, box: Box) -> Box:
        """Return the box on the page as shown that contains a level box."""
        if self.is_none:
            return box
        corners = [self._to_shown(x, y) for x in (box.left, box.right) for y in (box.top, box.bottom)]
        across, down = zip(*corners, strict=True)
        return Box(box.page, min(across), min(down), max(across), max(down))

    def _to_shown(self, x: float, y: float) -> tuple[float, float]:
        x, y = x - self.across, y - self.down
        return x * self.cosine - y * self.sine, x * self.sine + y * self.cosine


@dataclass(frozen=True, slots=True)
class Page:
    """A page's lines from top to bottom. A sheet may show two pages; `turn` then includes where this one begins."""

    number: int  # from 1, in the order in which pages are read
    width: float  # of its sheet as shown
    height: float
    lines: Sequence[Line]
    is_picture: bool  # almost without text, and largely covered by an image
    read_by_ocr: bool
    turn: Turn = Turn()
    on_sheet: int | None = None  # the number of its sheet, if other than its own
    is_half: bool = False  # whether it is half of its sheet

    @property
    def sheet(self) -> int:
        """The number of its sheet, which is a page of the file, from 1."""
        return self.on_sheet or self.number

    def to_sheet(self, box: Box) -> Box:
        """Convert a place on the page to its place on the sheet."""
        shown = self.turn.to_page_as_shown(box)
        return shown if shown.page == self.sheet else replace(shown, page=self.sheet)

    def with_number(self, number: int) -> "Page":
        """Return the page at another place in the order of reading."""
        if number == self.number:
            return self
        lines = [Line(number, line.words) for line in self.lines]
        return replace(self, number=number, lines=lines, on_sheet=self.sheet)
