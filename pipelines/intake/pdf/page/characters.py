"""Read the characters of a page in bulk. Calls for each character dominate the time, so there are only three of them.

Font, size, colour and angle belong to a text object, not to a character, and are read once for each. Characters that
are not visible (invisible, or white on white) are left out: accessible statements write “blank” into empty cells.
"""

import ctypes
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import repeat
from typing import Any

import numpy as np
import pypdfium2.raw as pdfium
from numpy.typing import NDArray

_INVISIBLE = 3  # text render mode
_WHITE = 245  # of 255, each of red, green and blue
_FILLED = (pdfium.FPDF_FILLMODE_ALTERNATE, pdfium.FPDF_FILLMODE_WINDING)
_SMALLEST = 2.0  # points: smaller text is not meant to be read; our judgement
_MAX_BACKGROUNDS = 5_000  # objects of a page that may be the background of white text; limits the time


@dataclass(frozen=True)
class Characters:
    """Parallel arrays in the order of the content; boxes from the top left corner of the page as shown."""

    code: NDArray[np.uint32]
    left: NDArray[np.float64]
    top: NDArray[np.float64]
    right: NDArray[np.float64]
    bottom: NDArray[np.float64]
    size: NDArray[np.float64]
    angle: NDArray[np.float64]  # degrees clockwise on the page as shown, -180 … 180
    run: NDArray[np.int32]  # its text object, as an index into `fonts`
    after_space: NDArray[np.bool_]  # a space precedes it in the content
    fonts: tuple[str, ...]
    invisible: bool  # most of the text is not drawn: a scan with an OCR layer

    def __len__(self) -> int:
        return len(self.code)

    def only(self, chosen: NDArray[Any]) -> "Characters":
        """Return the chosen characters, by mask or by index."""
        values: dict[str, Any] = {
            field.name: value[chosen] if isinstance(value := getattr(self, field.name), np.ndarray) else value
            for field in fields(self)
        }
        return Characters(**values)


@dataclass(frozen=True)
class _Run:
    """The features that the characters of one text object share."""

    font: str
    size: float
    angle: float  # degrees anticlockwise in the page's own space
    invisible: bool
    white: bool


def count(text_page: Any) -> int:
    return max(0, int(pdfium.FPDFText_CountChars(text_page)))


def characters_of(page: Any, text_page: Any) -> Characters:
    """Return the visible characters of a page. Spaces are recorded only in `after_space`."""
    number = count(text_page)
    code = np.fromiter(map(pdfium.FPDFText_GetUnicode, repeat(text_page), range(number)), np.uint32, number)
    boxes = _boxes(page, text_page, number)
    run, firsts = _runs(text_page, number)
    shared = _read_runs(text_page, firsts)
    invisible = np.array([run_facts.invisible for run_facts in shared], bool)[run]
    white = np.array([run_facts.white for run_facts in shared], bool)[run]
    solid = _is_solid(code)
    is_layer = bool(solid.any()) and bool(invisible[solid].mean() > 0.5)
    size = np.array([run_facts.size for run_facts in shared])[run]
    seen = solid & (size >= _SMALLEST) & (boxes[:, 2] > boxes[:, 0])
    if not is_layer:
        seen &= ~invisible & (~white | _has_background(page, boxes, white & solid))
    turn = pdfium.FPDFPage_GetRotation(page) * 90
    angle = np.array([_signed_angle(turn - run_facts.angle) for run_facts in shared])[run]
    return Characters(
        code=_replace_invalid(code[seen]),
        left=boxes[seen, 0],
        top=boxes[seen, 1],
        right=boxes[seen, 2],
        bottom=boxes[seen, 3],
        size=size[seen],
        angle=angle[seen],
        run=run[seen],
        after_space=_after_space(solid)[seen],
        fonts=tuple(run_facts.font for run_facts in shared),
        invisible=is_layer,
    )


def _is_solid(code: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return for each character whether it is neither a control character nor a space of any kind (even zero-width)."""
    blank = (code <= 0x20) | (code == 0xA0) | ((code >= 0x2000) & (code <= 0x200F)) | (code == 0x202F)
    blank |= (code == 0x205F) | (code == 0x3000) | (code == 0xFEFF) | (code == 0xFFFE) | (code == 0xAD)
    solid: NDArray[np.bool_] = ~(blank | ((code >= 0x7F) & (code < 0xA0)) | (code == 0x2028) | (code == 0x2029))
    return solid


def _replace_invalid(code: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Replace halves of surrogate pairs and invalid codes by the replacement character."""
    bad = ((code >= 0xD800) & (code <= 0xDFFF)) | (code > 0x10FFFF)
    return np.where(bad, np.uint32(0xFFFD), code).astype(np.uint32)


def _after_space(solid: NDArray[np.bool_]) -> NDArray[np.bool_]:
    after = np.zeros(len(solid), bool)
    after[1:] = ~solid[:-1]
    return after


def _boxes(page: Any, text_page: Any, number: int) -> NDArray[np.float64]:
    """Return left, top, right and bottom of each character on the page as shown. The boxes are the font's cells, not
    the ink, so that digits end where their column does.
    """
    rectangles = (pdfium.FS_RECTF * number)()
    places = map(ctypes.byref, rectangles)
    for _ in map(pdfium.FPDFText_GetLooseCharBox, repeat(text_page), range(number), places):
        pass
    raw = np.frombuffer(rectangles, np.float32, number * 4).reshape(number, 4).astype(np.float64)
    return to_page_as_shown(page, raw)


def to_page_as_shown(page: Any, raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convert boxes (left, top, right, bottom) from the page's own space to the page as shown."""
    (x0, y0), (x1, y1), (x2, y2) = (_point(page, *corner) for corner in ((0, 0), (1000, 0), (0, 1000)))
    across = np.array([x1 - x0, y1 - y0]) / 1000
    up = np.array([x2 - x0, y2 - y0]) / 1000
    one = raw[:, 0:1] * across + raw[:, 1:2] * up + (x0, y0)
    other = raw[:, 2:3] * across + raw[:, 3:4] * up + (x0, y0)
    placed = np.hstack([np.minimum(one, other), np.maximum(one, other)])
    finite: NDArray[np.float64] = np.nan_to_num(placed, nan=0.0, posinf=0.0, neginf=0.0)
    return finite


_FINE = 1_000  # device units per point, because pdfium returns places as whole numbers


def _point(page: Any, x: float, y: float) -> tuple[float, float]:
    width, height = pdfium.FPDF_GetPageWidthF(page), pdfium.FPDF_GetPageHeightF(page)
    across, down = ctypes.c_int(), ctypes.c_int()
    size = (min(round(width * _FINE), 2**30), min(round(height * _FINE), 2**30))
    pdfium.FPDF_PageToDevice(page, 0, 0, *size, 0, x, y, ctypes.byref(across), ctypes.byref(down))
    return across.value / _FINE, down.value / _FINE


def _runs(text_page: Any, number: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the run of each character, and the index of each run's first character. A space that pdfium inferred has
    no text object.
    """
    objects = map(pdfium.FPDFText_GetTextObject, repeat(text_page), range(number))
    address = np.fromiter(map(_address, objects), np.uint64, number)
    starts = np.ones(number, bool)
    starts[1:] = address[1:] != address[:-1]
    return (np.cumsum(starts) - 1).astype(np.int32), np.flatnonzero(starts)


def _address(handle: Any) -> int:
    return ctypes.addressof(handle.contents) if handle else 0


def _read_runs(text_page: Any, firsts: NDArray[np.int64]) -> list[_Run]:
    names: dict[int, str] = {}
    return [_read_run(text_page, int(first), names) for first in firsts]


def _read_run(text_page: Any, first: int, names: dict[int, str]) -> _Run:
    handle = pdfium.FPDFText_GetTextObject(text_page, first)
    if not handle:
        return _Run("", 0.0, 0.0, invisible=False, white=False)
    matrix = pdfium.FS_MATRIX(1, 0, 0, 1, 0, 0)
    pdfium.FPDFText_GetMatrix(text_page, first, ctypes.byref(matrix))
    size = abs(pdfium.FPDFText_GetFontSize(text_page, first)) * math.hypot(matrix.c, matrix.d)
    return _Run(
        font=_font(handle, names),
        size=size if math.isfinite(size) else 0.0,
        angle=math.degrees(math.atan2(matrix.b, matrix.a)),
        invisible=pdfium.FPDFTextObj_GetTextRenderMode(handle) == _INVISIBLE,
        white=_is_white(handle),
    )


def _font(handle: Any, names: dict[int, str]) -> str:
    font = pdfium.FPDFTextObj_GetFont(handle)
    if not font:
        return ""
    address = _address(font)
    if address not in names:
        length = pdfium.FPDFFont_GetBaseFontName(font, None, 0)
        buffer = ctypes.create_string_buffer(max(1, length))
        pdfium.FPDFFont_GetBaseFontName(font, buffer, length)
        names[address] = buffer.value.decode("utf-8", "replace")
    return names[address]


def _is_white(handle: Any) -> bool:
    """Return whether an object is filled with white or is transparent."""
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    if not pdfium.FPDFPageObj_GetFillColor(handle, *map(ctypes.byref, (red, green, blue, alpha))):
        return False
    return alpha.value < 8 or min(red.value, green.value, blue.value) >= _WHITE


def _has_background(page: Any, boxes: NDArray[np.float64], white: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for each character whether it is white on a background that isn't white, as in many headings."""
    on = np.zeros(len(boxes), bool)
    if not white.any():
        return on
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    for left, top, right, bottom in to_page_as_shown(page, np.array(list(_backgrounds(page))).reshape(-1, 4)):
        inside = (middle[:, 0] >= left) & (middle[:, 0] <= right) & (middle[:, 1] >= top) & (middle[:, 1] <= bottom)
        on |= white & inside
    return on


def _backgrounds(page: Any) -> Iterator[tuple[float, float, float, float]]:
    for index in range(min(pdfium.FPDFPage_CountObjects(page), _MAX_BACKGROUNDS)):
        handle = pdfium.FPDFPage_GetObject(page, index)
        kind = pdfium.FPDFPageObj_GetType(handle)
        if (kind == pdfium.FPDF_PAGEOBJ_PATH and _is_filled(handle)) or kind in (
            pdfium.FPDF_PAGEOBJ_IMAGE,
            pdfium.FPDF_PAGEOBJ_SHADING,
        ):
            yield bounds(handle)


def bounds(handle: Any) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of an object in the page's own space."""
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    pdfium.FPDFPageObj_GetBounds(handle, *map(ctypes.byref, (left, bottom, right, top)))
    return left.value, top.value, right.value, bottom.value


def _is_filled(path: Any) -> bool:
    mode, stroked = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDFPath_GetDrawMode(path, ctypes.byref(mode), ctypes.byref(stroked))
    return mode.value in _FILLED and not _is_white(path)


def _signed_angle(angle: float) -> float:
    return (angle + 180) % 360 - 180
