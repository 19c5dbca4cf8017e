"""Build files from the pages of others, as people do with printers, scanners and PDF programs."""

import io
from collections.abc import Callable, Iterable, Sequence

import pikepdf

A4 = (595.0, 842.0)


def merge_files(*files: bytes, order: Sequence[int] | None = None) -> bytes:
    """Join the pages of files in order, or in the given `order` of pages, from 0."""

    def fill(made: pikepdf.Pdf, pages: Sequence[pikepdf.Page]) -> None:
        made.pages.extend(pages[place] for place in (range(len(pages)) if order is None else order))

    return _build(files, fill)


def two_on_a_sheet(content: bytes, *, beside: bool, turned: int = 0) -> bytes:
    """Put two pages on each sheet, side by side (landscape) or above each other (portrait), shown turned by degrees."""
    width, height = reversed(A4) if beside else A4
    first = (0, 0, width / 2, height) if beside else (0, height / 2, width, height)
    second = (width / 2, 0, width, height) if beside else (0, 0, width, height / 2)

    def fill(made: pikepdf.Pdf, pages: Sequence[pikepdf.Page]) -> None:
        for place in range(0, len(pages), 2):
            made.add_blank_page(page_size=(width, height))
            made.pages[-1].Rotate = turned
            for page, part in zip(pages[place : place + 2], (first, second), strict=False):
                made.pages[-1].add_overlay(page, pikepdf.Rectangle(*part))

    return _build([content], fill)


def _build(files: Iterable[bytes], fill: Callable[[pikepdf.Pdf, Sequence[pikepdf.Page]], None]) -> bytes:
    made, saved = pikepdf.Pdf.new(), io.BytesIO()
    opened = [pikepdf.open(io.BytesIO(content)) for content in files]
    fill(made, [page for file in opened for page in file.pages])
    made.save(saved)
    return saved.getvalue()
