"""Sheets to print on: marks from the top left corner, and the PDF made of them.

Marks are collected first and drawn last, because a page's head states the number of pages.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from io import BytesIO
from random import Random
from typing import Literal, NamedTuple

from reportlab.pdfbase.pdfmetrics import registerFont, stringWidth
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

WIDTH, HEIGHT = 595.0, 842.0  # A4
PAGE, PAGES = "\ue000", "\ue001"  # stand for a page's number and the number of pages until it is drawn
_BOLD = {"Helvetica": "Helvetica-Bold", "Times-Roman": "Times-Bold", "Courier": "Courier-Bold", "Vera": "VeraBd"}
_NARROW = 0.2  # of the font's size: the gap between words that have no blank between them
_INVISIBLE = 3  # text render mode
Font = Literal["Helvetica", "Times-Roman", "Courier", "Vera"]


@dataclass(frozen=True)
class PrintVariant:
    """How a file was printed: the differences between two files of one layout."""

    font: Font = "Helvetica"
    rotation: Literal[0, 90, 180, 270] = 0  # how the sheet lies in the file; it is shown upright
    skew: float = 0.0  # degrees that the sheet lay askew on the scanner
    spaces: Literal["blank", "no_break", "narrow"] = "blank"
    split_words: float = 0.0  # share of the texts printed in two pieces
    split_figures: bool = False  # figures printed in pieces, with a gap
    wrapped_figures: bool = False  # long ones on two lines, broken after the thousands
    by_column: bool = False  # the file holds the page column by column
    bold_twice: bool = False  # bold is the same text printed again beside itself
    watermark: str = ""  # across the page, behind everything
    halfway: bool = False  # dates and figures stand halfway down a row of several lines
    flush_left: bool = False  # figures begin under their headings' beginning
    shift: float = 0.0  # points that the table stands to the right
    centred: bool = False  # headings stand over the middle of their figures
    adverts: float = 0.0  # chance of one after a row
    fee_table: bool = False  # after the rows, in columns of its own
    small_print: bool = False  # on a last page
    rows_broken: bool = False  # a row may begin on one page and end on the next
    other_line: bool = False  # amounts on a description's last line if the layout has them on the first, or vice versa
    headings_on_first_page: bool = False
    strange_headings: bool = False
    balances_shown: float = 1.0  # share of those that the layout prints


class Mark(NamedTuple):
    """A text on its baseline, `y` points below the top edge."""

    x: float
    y: float
    text: str
    font: str
    size: float
    flush_right: bool  # ends at x
    spacing: float  # between letters
    hidden: bool


class Rule(NamedTuple):
    y: float
    left: float
    right: float


@dataclass
class Sheet:
    marks: list[Mark] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)


class Paper:
    """The sheets of a file and what is written on them."""

    def __init__(self, variant: PrintVariant, size: float, spacing: float = 0.0) -> None:
        self._variant, self._size, self._spacing = variant, size, spacing
        self.sheets: list[Sheet] = []

    def begin_sheet(self) -> None:
        """Begin a new sheet."""
        self.sheets.append(Sheet())

    def write(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 0,
        bold: bool = False,
        flush_right: bool = False,
        hidden: bool = False,
    ) -> None:
        spacing = 0.0 if size else self._spacing
        mark = Mark(x, y, text, self._font(bold), size or self._size, flush_right, spacing, hidden)
        self.sheets[-1].marks.append(mark)

    def rule(self, y: float, left: float = 40, right: float = WIDTH - 40) -> None:
        self.sheets[-1].rules.append(Rule(y, left, right))

    def width(self, text: str, *, bold: bool = False) -> float:
        """Return the width of a text in the table's size."""
        return _width(text, self._font(bold), self._size) + self._spacing * len(text)

    def lines(self, text: str, width: float) -> list[str]:
        """Break the text into lines, between words."""
        lines = [""]
        for word in text.split():
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self.width(longer) > width:
                lines.append(word)
            else:
                lines[-1] = longer
        return lines

    def to_pdf(self, producer: str, on: date, rng: Random) -> bytes:
        """Return the file, dated that day: the same bytes for the same marks, variant and `rng`."""
        sink = BytesIO()
        canvas = Canvas(sink, pagesize=(WIDTH, HEIGHT), invariant=1)
        canvas.setProducer(producer)
        canvas.setCreator(producer)
        canvas.setTitle("Statement")
        canvas.setDateFormatter(lambda *_: f"D:{on:%Y%m%d}061500+10'00'")
        for number, sheet in enumerate(self.sheets, start=1):
            self._draw(canvas, sheet, number, rng)
            canvas.showPage()
        canvas.save()
        return sink.getvalue()

    def _font(self, bold: bool) -> str:
        if self._variant.font == "Vera":
            _load_vera()
        return _BOLD[self._variant.font] if bold else self._variant.font

    def _draw(self, canvas: Canvas, sheet: Sheet, number: int, rng: Random) -> None:
        canvas.setPageRotation(self._variant.rotation)
        canvas.transform(*_ROTATIONS[self._variant.rotation])
        canvas.rotate(self._variant.skew)
        canvas.setLineWidth(0.5)
        for rule in sheet.rules:
            canvas.line(rule.left, HEIGHT - rule.y, rule.right, HEIGHT - rule.y)
        if self._variant.watermark:
            _put_behind(canvas, self._variant.watermark)
        text = canvas.beginText()
        marks = sorted(sheet.marks, key=lambda mark: round(mark.x)) if self._variant.by_column else sheet.marks
        for mark in marks:
            known = mark._replace(text=mark.text.replace(PAGE, str(number)).replace(PAGES, str(len(self.sheets))))
            for piece in self._pieces(known, rng):
                text.setFont(piece.font, piece.size)
                text.setCharSpace(piece.spacing)
                text.setTextRenderMode(_INVISIBLE if piece.hidden else 0)
                text.setTextOrigin(piece.x, HEIGHT - piece.y)
                text.textOut(piece.text)
        canvas.drawText(text)

    def _pieces(self, mark: Mark, rng: Random) -> Iterator[Mark]:
        """Yield the mark as the file holds it: one text or several."""
        if mark.flush_right:
            wide = _width(mark.text, mark.font, mark.size) + mark.spacing * (len(mark.text) - 1)
            mark = mark._replace(x=mark.x - wide, flush_right=False)
        if self._variant.split_figures and "." in mark.text and mark.text[-1].isdigit():
            yield from _with_a_gap(mark)
        elif self._variant.spaces == "narrow" and " " in mark.text and not mark.spacing:
            yield from _words(mark)
        elif len(mark.text) > 5 and rng.random() < self._variant.split_words:
            yield from _split(mark, rng.randrange(2, len(mark.text) - 2))
        elif self._variant.bold_twice and "Bold" in mark.font:
            yield from (mark, mark._replace(x=mark.x + 0.3))
        else:
            plain = self._variant.spaces == "blank"
            yield mark if plain else mark._replace(text=mark.text.replace(" ", "\xa0"))


def _put_behind(canvas: Canvas, words: str) -> None:
    canvas.saveState()
    canvas.setFont("Helvetica-Bold", 96)
    canvas.setFillGray(0.9)
    canvas.translate(WIDTH / 2, HEIGHT / 2)
    canvas.rotate(52)
    canvas.drawCentredString(0, 0, words)
    canvas.restoreState()


def _words(mark: Mark) -> Iterator[Mark]:
    x = mark.x
    for word in mark.text.split():
        yield mark._replace(x=x, text=word)
        x += _width(word, mark.font, mark.size) + _NARROW * mark.size


def _split(mark: Mark, at: int, gap: float = 0.0) -> Iterator[Mark]:
    first = mark.text[:at]
    yield mark._replace(text=first)
    yield mark._replace(x=mark.x + _width(first, mark.font, mark.size) + at * mark.spacing + gap, text=mark.text[at:])


def _with_a_gap(mark: Mark) -> Iterator[Mark]:
    """Split a figure before its decimal point. Its end stays at the column's edge."""
    gap = 0.12 * mark.size
    return _split(mark._replace(x=mark.x - gap), mark.text.rindex("."), gap)


@cache
def _load_vera() -> None:
    """Register the one font family with a real minus sign. It comes with reportlab."""
    registerFont(TTFont("Vera", "Vera.ttf"))
    registerFont(TTFont("VeraBd", "VeraBd.ttf"))


def _width(text: str, font: str, size: float) -> float:
    return float(stringWidth(text, font, size))


# From the page as shown to the sheet as it lies in the file; reportlab swaps its width and height.
_ROTATIONS = {
    0: (1, 0, 0, 1, 0, 0),
    90: (0, 1, -1, 0, HEIGHT, 0),
    180: (-1, 0, 0, -1, WIDTH, HEIGHT),
    270: (0, -1, 1, 0, 0, WIDTH),
}
