"""Read a file's metadata, and its contents other than the pages' own text: overlays, scripts, attachments."""

import re
from collections.abc import Iterator
from ctypes import c_int, create_string_buffer
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import pypdfium2 as pdfium
from pypdfium2 import raw

from pipelines.intake.pdf.page.result import Box

_MAX_OVERLAYS = 200  # per page; more add no information
_LONGEST_TEXT = 1_000  # bytes of metadata
_PIXELS = 100  # per point, because pdfium returns places as whole pixels
_MARKS = {
    raw.FPDF_ANNOT_FREETEXT: "text",
    raw.FPDF_ANNOT_STAMP: "a stamp",
    raw.FPDF_ANNOT_REDACT: "a redaction",
    raw.FPDF_ANNOT_SQUARE: "a box",
    raw.FPDF_ANNOT_CIRCLE: "a circle",
    raw.FPDF_ANNOT_POLYGON: "a shape",
    raw.FPDF_ANNOT_INK: "a drawing",
    raw.FPDF_ANNOT_LINE: "a line",
    raw.FPDF_ANNOT_WATERMARK: "a watermark",
    raw.FPDF_ANNOT_WIDGET: "a form field",
}
_NOTES = {
    raw.FPDF_ANNOT_HIGHLIGHT: "a highlight",
    raw.FPDF_ANNOT_UNDERLINE: "an underline",
    raw.FPDF_ANNOT_SQUIGGLY: "an underline",
    raw.FPDF_ANNOT_STRIKEOUT: "a line through text",
    raw.FPDF_ANNOT_TEXT: "a note",
    raw.FPDF_ANNOT_CARET: "a note",
}


@dataclass(frozen=True)
class Overlay:
    """An object that a program for comments or forms placed over a page."""

    what: str
    box: Box
    is_note: bool  # a reader's mark, common on genuine statements


@dataclass(frozen=True)
class Facts:
    """A file's metadata, and its contents other than the pages' own text."""

    producer: str = ""
    creator: str = ""
    created: datetime | None = None
    modified: datetime | None = None
    overlays: tuple[Overlay, ...] = ()
    scripts: int = 0
    attachments: int = 0


def facts_of(document: pdfium.PdfDocument) -> Facts:
    """Read the facts of an open document. Each page is loaded once, without its text."""
    return Facts(
        producer=_metadata(document, b"Producer"),
        creator=_metadata(document, b"Creator"),
        created=_parse_time(_metadata(document, b"CreationDate")),
        modified=_parse_time(_metadata(document, b"ModDate")),
        overlays=tuple(overlay for index in range(len(document)) for overlay in _overlays_on(document, index)),
        scripts=max(raw.FPDFDoc_GetJavaScriptActionCount(document.raw), 0),
        attachments=max(raw.FPDFDoc_GetAttachmentCount(document.raw), 0),
    )


def _metadata(document: pdfium.PdfDocument, key: bytes) -> str:
    """Return the printable characters of an entry in the file's metadata."""
    size = raw.FPDF_GetMetaText(document.raw, key, None, 0)
    text = create_string_buffer(size)
    raw.FPDF_GetMetaText(document.raw, key, text, size)
    decoded = text.raw[:_LONGEST_TEXT].decode("utf-16-le", errors="ignore")
    return "".join(character for character in decoded if character.isprintable()).strip()


def _parse_time(text: str) -> datetime | None:
    """Parse `D:20250312101530+10'00'`. A time without a zone stays without one."""
    found = re.match(r"(?:D:)?([0-9]{14})(?:(Z)|([+-])([0-9]{2})'?([0-9]{2})?)?", text)
    if not found:
        return None
    try:
        plain = datetime.strptime(found[1], "%Y%m%d%H%M%S")  # noqa: DTZ007  its zone is added next, if it has one
        return plain.replace(tzinfo=_zone(found)) if found[2] or found[3] else plain
    except ValueError:
        return None


def _zone(found: re.Match[str]) -> timezone:
    ahead = timedelta(hours=int(found[4] or 0), minutes=int(found[5] or 0))
    return timezone(-ahead if found[3] == "-" else ahead)


def _overlays_on(document: pdfium.PdfDocument, index: int) -> Iterator[Overlay]:
    page = raw.FPDF_LoadPage(document.raw, index)
    if not page:
        return
    try:
        for number in range(min(raw.FPDFPage_GetAnnotCount(page), _MAX_OVERLAYS)):
            annotation = raw.FPDFPage_GetAnnot(page, number)
            if annotation:
                yield from _overlay(page, index + 1, annotation)
                raw.FPDFPage_CloseAnnot(annotation)
    finally:
        raw.FPDF_ClosePage(page)


def _overlay(page: Any, number: int, annotation: Any) -> Iterator[Overlay]:
    kind = raw.FPDFAnnot_GetSubtype(annotation)
    hidden = raw.FPDFAnnot_GetFlags(annotation) & (raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW)
    what = _MARKS.get(kind) or _NOTES.get(kind)
    if what and not hidden:
        yield Overlay(what, _box(page, number, annotation), kind in _NOTES)


def _box(page: Any, number: int, annotation: Any) -> Box:
    """Return an annotation's place on the page as shown."""
    rectangle = raw.FS_RECTF()
    raw.FPDFAnnot_GetRect(annotation, rectangle)
    corners = [
        _to_page_as_shown(page, rectangle.left, rectangle.top),
        _to_page_as_shown(page, rectangle.right, rectangle.bottom),
    ]
    (left, right), (top, bottom) = (sorted(values) for values in zip(*corners, strict=True))
    return Box(number, left, top, right, bottom)


def _to_page_as_shown(page: Any, x: float, y: float) -> tuple[float, float]:
    across, down = c_int(), c_int()
    width, height = (round(size * _PIXELS) for size in (raw.FPDF_GetPageWidthF(page), raw.FPDF_GetPageHeightF(page)))
    raw.FPDF_PageToDevice(page, 0, 0, width, height, 0, x, y, across, down)
    return across.value / _PIXELS, down.value / _PIXELS
