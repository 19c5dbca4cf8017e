"""Read a file's pages as words and lines, within limits, because a file may be hostile or not what it seems.

Only one page is open at a time, so pdfium needs no more memory for two hundred pages than for one.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import pypdfium2 as pdfium
from pypdfium2 import raw

from pipelines.intake.pdf.document.scanned import DOTS_PER_INCH, ScannedWord, lines_of_scanned
from pipelines.intake.pdf.document.sheets import Cut, cut_of
from pipelines.intake.pdf.page.characters import Characters, bounds, characters_of, count
from pipelines.intake.pdf.page.page import Line, Page
from pipelines.intake.pdf.page.result import Refusal
from pipelines.intake.pdf.page.words import lines_of, upright
from pipelines.intake.pdf.page.wrapped_dates import join_wrapped_dates

Scanned = Callable[[int, bytes], Sequence[ScannedWord]]

_HEADER_WITHIN = 1_024  # bytes that may precede %PDF, as in other readers
# Our judgement: a page is a scan if it has fewer characters than this (a stamp, a page number) and an image covers more
# than this.
_FEW = 20  # characters
_SCAN_SHARE = 0.4  # of the page's area
_MAX_OBJECTS = 2_000  # how many objects are searched for such an image
_LONGEST_PICTURE = 4_000  # pixels per side of a page given to OCR


@dataclass(frozen=True)
class Limits:
    """Limits beyond which a file is refused."""

    max_pages: int = 400
    max_characters: int = 3_000_000
    max_scanned_pages: int = 60


LIMITS = Limits()


class Unreadable(Exception):
    """A file is refused; `refusal` and `message` say why."""

    def __init__(self, refusal: Refusal, message: str, pages: int = 0) -> None:
        super().__init__(message)
        self.refusal, self.message, self.pages = refusal, message, pages


@contextmanager
def open_document(content: bytes, password: str | None) -> Iterator[pdfium.PdfDocument]:
    """Open a document for the duration of a block.

    Raises:
        Unreadable: it is not a PDF or is damaged, or its password is missing or wrong.
    """
    if b"%PDF" not in content[: _HEADER_WITHIN + 4]:
        raise Unreadable(Refusal.CORRUPT, "The file is empty." if not content else "The file is not a PDF.")
    try:
        document = _open(content, password)
    except (pdfium.PdfiumError, ValueError) as error:
        raise _reason_not_opened(error, password) from None
    try:
        yield document
    finally:
        document.close()


def _open(content: bytes, password: str | None) -> pdfium.PdfDocument:
    """Open a document with the password, or without it if none is needed: an owner's password does not prevent
    reading.
    """
    try:
        return pdfium.PdfDocument(content, password=password)
    except pdfium.PdfiumError:
        if password:
            with suppress(pdfium.PdfiumError):
                return pdfium.PdfDocument(content)
        raise


def _reason_not_opened(error: Exception, password: str | None) -> Unreadable:
    code = getattr(error, "err_code", None)
    if code == raw.FPDF_ERR_PASSWORD and password:
        return Unreadable(Refusal.WRONG_PASSWORD, "The password does not open the file.")
    if code == raw.FPDF_ERR_PASSWORD:
        return Unreadable(Refusal.ENCRYPTED, "The file is protected by a password; send it with the file.")
    if code == raw.FPDF_ERR_SECURITY:
        return Unreadable(Refusal.ENCRYPTED, "The file is encrypted in a way that is not supported.")
    return Unreadable(Refusal.CORRUPT, "The file is damaged and can't be opened as a PDF.")


def pages_of(
    document: pdfium.PdfDocument,
    limits: Limits = LIMITS,
    scanned: Scanned | None = None,
    on_page: Callable[[int, int], None] | None = None,
) -> list[Page]:
    """Read the pages in the order of the file; a sheet may have two.

    Raises:
        Unreadable: there are too many pages or characters, or no page can be read.
    """
    number = len(document)
    if number > limits.max_pages:
        message = f"The file has {number} pages; at most {limits.max_pages} are read."
        raise Unreadable(Refusal.TOO_MANY_PAGES, message, number)
    reading = _Reading(document, limits, scanned)
    pages: list[Page] = []
    for index in range(number):
        pages.extend(reading.sheet(index, len(pages) + 1))
        if on_page is not None:
            on_page(index + 1, number)
    if not number or reading.broken == number:
        raise Unreadable(Refusal.CORRUPT, "No page of the file can be read.", number)
    return pages


class _Reading:
    """One pass over a document that counts pages and characters against the limits."""

    def __init__(self, document: pdfium.PdfDocument, limits: Limits, scanned: Scanned | None) -> None:
        self.document, self.limits, self.scanned = document, limits, scanned
        self.characters = self.pictures = self.broken = 0

    def sheet(self, index: int, number: int) -> Sequence[Page]:
        """Return the pages on a sheet of the file, numbered from `number`."""
        handle = raw.FPDF_LoadPage(self.document.raw, index)
        if not handle:
            self.broken += 1
            return [Page(number, 0.0, 0.0, (), is_picture=False, read_by_ocr=False, on_sheet=index + 1)]
        try:
            return self._read(handle, Page(number, *_size(handle), (), False, False, on_sheet=index + 1))
        finally:
            raw.FPDF_ClosePage(handle)

    def _read(self, handle: Any, empty: Page) -> Sequence[Page]:
        text_page = raw.FPDFText_LoadPage(handle)
        if not text_page:
            self.broken += 1
            return [empty]
        try:
            self._count(count(text_page))
            characters = characters_of(handle, text_page)
        finally:
            raw.FPDFText_ClosePage(text_page)
        if len(characters) < _FEW and _shows_a_picture(handle, empty.width * empty.height):
            return self._read_picture(handle, empty)
        level = upright(characters, empty.width, empty.height)
        page = replace(empty, read_by_ocr=characters.invisible, turn=level.turn)
        lines = _lines(level.characters, page.number)
        return _pages_on(page, lines, lambda cut: _split_characters(level.characters, page.number, cut))

    def _count(self, characters: int) -> None:
        self.characters += characters
        if self.characters > self.limits.max_characters:
            message = f"The file has more than {self.limits.max_characters:,} characters."
            raise Unreadable(Refusal.LIMITS_EXCEEDED, message, len(self.document))

    def _read_picture(self, handle: Any, empty: Page) -> Sequence[Page]:
        self.pictures += 1
        page = replace(empty, is_picture=True)
        if self.scanned is None:
            return [page]
        if self.pictures > self.limits.max_scanned_pages:
            message = f"The file has more than {self.limits.max_scanned_pages} scanned pages."
            raise Unreadable(Refusal.LIMITS_EXCEEDED, message, len(self.document))
        scale = picture_scale(page.width, page.height)
        words = self.scanned(page.sheet, _png(handle, page.width, page.height, scale))
        lines = lines_of_scanned(words, page.number, scale)
        page = replace(page, read_by_ocr=bool(words))
        return _pages_on(page, lines, lambda cut: _split_words(words, page.number, scale, cut))


def _size(handle: Any) -> tuple[float, float]:
    return raw.FPDF_GetPageWidthF(handle), raw.FPDF_GetPageHeightF(handle)


def _pages_on(
    sheet: Page, lines: Sequence[Line], split: Callable[[Cut], tuple[Sequence[Line], Sequence[Line]]]
) -> Sequence[Page]:
    """Return a sheet as one page, or its two pages, each with places from its own corner."""
    cut = cut_of(lines, *sheet.turn.size(sheet.width, sheet.height))
    if cut is None:
        return [replace(sheet, lines=lines)]
    first, second = split(cut)
    moved = [line.move(-cut.left, -cut.top) for line in second]
    half = replace(sheet, lines=first, is_half=True)
    return [half, replace(half, number=half.number + 1, lines=moved, turn=half.turn.move(cut.left, cut.top))]


def _lines(characters: Characters, page: int) -> Sequence[Line]:
    return join_wrapped_dates(lines_of(characters, page))


def _split_characters(characters: Characters, page: int, cut: Cut) -> tuple[Sequence[Line], Sequence[Line]]:
    """Return the lines of the two sides. Lines are assembled again, because a line must not join words of two pages."""
    second = cut.is_second(characters.left, characters.top)
    return _lines(characters.only(~second), page), _lines(characters.only(second), page + 1)


def _split_words(
    words: Sequence[ScannedWord], page: int, scale: float, cut: Cut
) -> tuple[Sequence[Line], Sequence[Line]]:
    sides: tuple[list[ScannedWord], list[ScannedWord]] = ([], [])
    for word in words:
        sides[cut.is_second(word.left / scale, word.top / scale)].append(word)
    return lines_of_scanned(sides[0], page, scale), lines_of_scanned(sides[1], page + 1, scale)


def picture_scale(width: float, height: float) -> float:
    """Return the pixels per point at which a page is given to OCR: 200 dpi, less for a page as large as a poster."""
    return float(min(DOTS_PER_INCH / 72, _LONGEST_PICTURE / max(width, height, 1.0)))


def _png(handle: Any, width: float, height: float, scale: float) -> bytes:
    """Draw a page in grey."""
    across, down = max(1, round(width * scale)), max(1, round(height * scale))
    bitmap = pdfium.PdfBitmap.new_native(across, down, raw.FPDFBitmap_Gray)
    try:
        bitmap.fill_rect((255, 255, 255, 255), 0, 0, across, down)
        raw.FPDF_RenderPageBitmap(bitmap.raw, handle, 0, 0, across, down, 0, raw.FPDF_GRAYSCALE)
        png = io.BytesIO()
        bitmap.to_pil().save(png, "PNG")
        return png.getvalue()
    finally:
        bitmap.close()


def _shows_a_picture(handle: Any, area: float) -> bool:
    """Return whether an image covers more than _SCAN_SHARE of a page's area."""
    objects = min(raw.FPDFPage_CountObjects(handle), _MAX_OBJECTS)
    return any(_covered_area(raw.FPDFPage_GetObject(handle, index)) > _SCAN_SHARE * area for index in range(objects))


def _covered_area(handle: Any) -> float:
    kind = raw.FPDFPageObj_GetType(handle)
    if kind == raw.FPDF_PAGEOBJ_FORM:  # some scanners wrap the image in a form
        parts = (raw.FPDFFormObj_GetObject(handle, index) for index in range(_count_in_form(handle)))
        return max(map(_covered_area, parts), default=0.0)
    if kind != raw.FPDF_PAGEOBJ_IMAGE:
        return 0.0
    left, top, right, bottom = bounds(handle)
    return abs(right - left) * abs(top - bottom)


def _count_in_form(form: Any) -> int:
    return int(min(raw.FPDFFormObj_CountObjects(form), 50))
