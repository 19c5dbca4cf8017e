"""Draw pages as pictures, with a transaction marked or with everything that was recognised."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pypdfium2 as pdfium
from PIL import Image, ImageDraw

from pipelines.intake.pdf.document.document import Unreadable, open_document
from pipelines.intake.pdf.extraction import TracedPage, trace_pages
from pipelines.intake.pdf.page.result import Box, Refusal

_LONGEST = 6_000  # pixels per side, however large the page
_EXPLAINED_SCALE = 2.0
_ROW = ((0, 160, 70, 30), (0, 140, 60, 255))  # fill, edge
_WORD = (None, (120, 120, 120, 160))
_COLUMN = (None, (220, 0, 0, 255))
_MARKED = (255, 214, 0, 90)  # transparent yellow
_MARKED_EDGE = (214, 130, 0, 255)
_AROUND = 1.5  # points of margin around the words


def draw_page(
    content: bytes, password: str | None, page: int, highlight: Sequence[Box] = (), scale: float = 2.0
) -> bytes:
    """Draw a page (from 1) as PNG at `scale` pixels per point, with the boxes on it marked.

    Raises:
        Unreadable: the file can't be opened, or the page can't be drawn.
        IndexError: the file has no such page.
    """
    with open_document(content, password) as document, _picture(document, page, scale) as (picture, per_point):
        return _png(_draw_highlights(picture, [box for box in highlight if box.page == page], per_point))


@contextmanager
def _picture(document: pdfium.PdfDocument, number: int, scale: float) -> Iterator[tuple[Image.Image, float]]:
    """Yield a picture of a page as shown, with notes and form fields, and its pixels per point, which are limited."""
    if not 1 <= number <= len(document):
        raise IndexError(f"the file has {len(document)} pages, and no page {number}")
    try:
        page = document[number - 1]
        per_point = min(scale, _LONGEST / max(*page.get_size(), 1.0))
        bitmap = page.render(scale=per_point)
    except pdfium.PdfiumError:
        message = f"Page {number} is damaged and can't be drawn."
        raise Unreadable(Refusal.CORRUPT, message, len(document)) from None
    try:
        yield bitmap.to_pil().convert("RGB"), per_point
    finally:
        bitmap.close()
        page.close()


def draw_explained_pages(content: bytes, password: str | None) -> Iterator[tuple[int, bytes]]:
    """Yield each page that was read with what was recognised on it: words (grey), rows (green), edges of columns (red).

    Copies of pages are not read.

    Raises:
        Unreadable: the file can't be opened.
    """
    drawn = list(trace_pages(content, password))
    with open_document(content, password) as document:
        for trace in drawn:
            with _picture(document, trace.number, _EXPLAINED_SCALE) as (picture, per_point):
                yield trace.number, _png(_draw_trace(picture, trace, per_point))


def _draw_trace(picture: Image.Image, trace: TracedPage, per_point: float) -> Image.Image:
    draw = ImageDraw.Draw(picture, "RGBA")
    for boxes, fill, edge in ((trace.rows, *_ROW), (trace.words, *_WORD), (trace.columns, *_COLUMN)):
        for box in boxes:
            draw.rectangle(_pixels(box, per_point), fill, edge)
    return picture


def _draw_highlights(picture: Image.Image, boxes: Sequence[Box], per_point: float) -> Image.Image:
    draw = ImageDraw.Draw(picture, "RGBA")
    for box in boxes:
        draw.rectangle(_pixels(box, per_point, _AROUND), _MARKED, _MARKED_EDGE)
    return picture


def _pixels(box: Box, per_point: float, around: float = 0.0) -> tuple[float, float, float, float]:
    left, top = (box.left - around) * per_point, (box.top - around) * per_point
    right, bottom = (box.right + around) * per_point, (box.bottom + around) * per_point
    return left, top, max(right, left + 1), max(bottom, top + 1)


def _png(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()
