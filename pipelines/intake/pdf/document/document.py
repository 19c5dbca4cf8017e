"""A file's pages as words and lines, within limits: whoever sends a file may mean harm, or may not have looked at it.

One page is open at a time, so a file of two hundred pages takes the memory of one.
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

_HEADER_WITHIN = 1_024  # bytes: what may stand before %PDF
_FEW = 20  # characters: a stamp or a page number on a picture
_MOST = 0.4  # of the page's area: a picture that is the page
_MOST_OBJECTS = 2_000  # looked at for such a picture
_LONGEST_PICTURE = 4_000  # pixels a side of a page given to OCR


@dataclass(frozen=True)
class Limits:
    """What a file may hold before it is refused."""

    max_pages: int = 400
    max_characters: int = 3_000_000
    max_scanned_pages: int = 60


LIMITS = Limits()


class Unreadable(Exception):
    """A file that is refused, and why."""

    def __init__(self, refusal: Refusal, message: str, pages: int = 0) -> None:
        super().__init__(message)
        self.refusal, self.message, self.pages = refusal, message, pages


@contextmanager
def opened(content: bytes, password: str | None) -> Iterator[pdfium.PdfDocument]:
    """The document, closed behind the block.

    Raises:
        Unreadable: it is none, is broken, or its password is missing or wrong.
    """
    if b"%PDF" not in content[: _HEADER_WITHIN + 4]:
        raise Unreadable(Refusal.CORRUPT, "The file is empty." if not content else "The file is not a PDF.")
    try:
        document = _document(content, password)
    except (pdfium.PdfiumError, ValueError) as error:
        raise _not_opened(error, password) from None
    try:
        yield document
    finally:
        document.close()


def _document(content: bytes, password: str | None) -> pdfium.PdfDocument:
    """Opened with the password, or without it where none is needed: an owner's keeps nobody from reading."""
    try:
        return pdfium.PdfDocument(content, password=password)
    except pdfium.PdfiumError:
        if password:
            with suppress(pdfium.PdfiumError):
                return pdfium.PdfDocument(content)
        raise


def _not_opened(error: Exception, password: str | None) -> Unreadable:
    code = getattr(error, "err_code", None)
    if code == raw.FPDF_ERR_PASSWORD and password:
        return Unreadable(Refusal.WRONG_PASSWORD, "The password does not open the file.")
    if code == raw.FPDF_ERR_PASSWORD:
        return Unreadable(Refusal.ENCRYPTED, "The file is protected by a password; send it along.")
    if code == raw.FPDF_ERR_SECURITY:
        return Unreadable(Refusal.ENCRYPTED, "The file is encrypted in a way that is not supported.")
    return Unreadable(Refusal.CORRUPT, "The file is damaged and can't be opened as a PDF.")


def pages_of(
    document: pdfium.PdfDocument,
    limits: Limits = LIMITS,
    scanned: Scanned | None = None,
    on_page: Callable[[int, int], None] | None = None,
) -> list[Page]:
    """The pages in the order of the file; two where a sheet holds two.

    Raises:
        Unreadable: there are too many, or too much on them, or none can be read.
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
    """One pass over a document, counting what the limits count."""

    def __init__(self, document: pdfium.PdfDocument, limits: Limits, scanned: Scanned | None) -> None:
        self.document, self.limits, self.scanned = document, limits, scanned
        self.characters = self.pictures = self.broken = 0

    def sheet(self, index: int, number: int) -> Sequence[Page]:
        """The pages on a sheet of the file, numbered from a number on."""
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
            return self._picture(handle, empty)
        level = upright(characters, empty.width, empty.height)
        page = replace(empty, read_by_ocr=characters.invisible, turn=level.turn)
        lines = _lines(level.characters, page.number)
        return _pages_on(page, lines, lambda cut: _parted(level.characters, page.number, cut))

    def _count(self, characters: int) -> None:
        self.characters += characters
        if self.characters > self.limits.max_characters:
            message = f"The file holds more than {self.limits.max_characters:,} characters."
            raise Unreadable(Refusal.LIMITS_EXCEEDED, message, len(self.document))

    def _picture(self, handle: Any, empty: Page) -> Sequence[Page]:
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
        return _pages_on(page, lines, lambda cut: _parted_words(words, page.number, scale, cut))


def _size(handle: Any) -> tuple[float, float]:
    return raw.FPDF_GetPageWidthF(handle), raw.FPDF_GetPageHeightF(handle)


def _pages_on(
    sheet: Page, lines: Sequence[Line], parted: Callable[[Cut], tuple[Sequence[Line], Sequence[Line]]]
) -> Sequence[Page]:
    """The sheet as one page, or the two on it, each with places from its own corner."""
    cut = cut_of(lines, *sheet.turn.size(sheet.width, sheet.height))
    if cut is None:
        return [replace(sheet, lines=lines)]
    first, second = parted(cut)
    moved = [line.moved(-cut.left, -cut.top) for line in second]
    half = replace(sheet, lines=first, is_half=True)
    return [half, replace(half, number=half.number + 1, lines=moved, turn=half.turn.moved(cut.left, cut.top))]


def _lines(characters: Characters, page: int) -> Sequence[Line]:
    return join_wrapped_dates(lines_of(characters, page))


def _parted(characters: Characters, page: int, cut: Cut) -> tuple[Sequence[Line], Sequence[Line]]:
    """Lines of either side, made anew: lines of two pages that stand nearly level are not one."""
    second = cut.is_second(characters.left, characters.top)
    return _lines(characters.only(~second), page), _lines(characters.only(second), page + 1)


def _parted_words(
    words: Sequence[ScannedWord], page: int, scale: float, cut: Cut
) -> tuple[Sequence[Line], Sequence[Line]]:
    sides: tuple[list[ScannedWord], list[ScannedWord]] = ([], [])
    for word in words:
        sides[cut.is_second(word.left / scale, word.top / scale)].append(word)
    return lines_of_scanned(sides[0], page, scale), lines_of_scanned(sides[1], page + 1, scale)


def picture_scale(width: float, height: float) -> float:
    """Pixels a point at which a page is given to OCR: 200 dpi, less for a page as large as a poster."""
    return float(min(DOTS_PER_INCH / 72, _LONGEST_PICTURE / max(width, height, 1.0)))


def _png(handle: Any, width: float, height: float, scale: float) -> bytes:
    """The page in grey."""
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
    """An image covers most of the page."""
    objects = min(raw.FPDFPage_CountObjects(handle), _MOST_OBJECTS)
    return any(_covered(raw.FPDFPage_GetObject(handle, index)) > _MOST * area for index in range(objects))


def _covered(each: Any) -> float:
    kind = raw.FPDFPageObj_GetType(each)
    if kind == raw.FPDF_PAGEOBJ_FORM:  # scanners wrap the picture
        return max((_covered(raw.FPDFFormObj_GetObject(each, index)) for index in range(_in_form(each))), default=0.0)
    if kind != raw.FPDF_PAGEOBJ_IMAGE:
        return 0.0
    left, top, right, bottom = bounds(each)
    return abs(right - left) * abs(top - bottom)


def _in_form(form: Any) -> int:
    return int(min(raw.FPDFFormObj_CountObjects(form), 50))
