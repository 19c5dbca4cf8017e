"""Detect that a page of a statement is missing, from what the other pages say.

A total carried to the next page needs a next page, and a total brought from the previous page needs a previous page. A
statement doesn't begin or end with such a total. This is checked because rows of a missing page would go unnoticed.
"""

import re
from collections.abc import Iterator, Sequence

from pipelines.intake.pdf.document.documents import Document
from pipelines.intake.pdf.page.labels import is_row
from pipelines.intake.pdf.page.page import Line, Page

_FORWARD = r"(?:forward|over|f(?:wd)?\b)"
_CARRIED = re.compile(rf"\b(?:carried {_FORWARD}|c/{_FORWARD})", re.IGNORECASE)
_BROUGHT = re.compile(rf"\b(?:brought {_FORWARD}|b/{_FORWARD})", re.IGNORECASE)
_BETWEEN_PAGES = re.compile(
    r"\bsub ?-?totals?\b|\bpage totals?\b|\b(?:next|previous|last|preceding) page\b", re.IGNORECASE
)
_ENDS = re.compile(r"\bclosing (?:account )?balance\b|\b(?:balance )?brought forward\b", re.IGNORECASE)

_NO_NEXT = "The last page carries its balance to a next page, which is not in the file."
_NO_PREVIOUS = "The first page brings its balance from a previous page, which is not in the file."


def is_between_pages(lines: Sequence[Line], position: int) -> bool:
    """Return whether a line, or its wrapped rest, states a balance carried to or brought from another page."""
    line = lines[position]
    if not (_CARRIED.search(line.text) or _BROUGHT.search(line.text)):
        return False
    below = lines[position + 1 : position + 2]
    rest = below[0].text if below and below[0].page == line.page and not is_row(below[0]) else ""
    return bool(_BETWEEN_PAGES.search(f"{line.text} {rest}"))


def missing_page(lines: Sequence[Line], document: Document, *, opens: bool, closes: bool) -> str | None:
    """Return why a page must be missing before or after an account's part of a document, or None.

    Args:
        lines: of the account.
        document: the one with the account.
        opens: whether an opening balance is stated.
        closes: whether a closing balance is stated.
    """
    if _ends_in_the_middle(lines):
        return _NO_NEXT
    if _begins_in_the_middle(lines):
        return _NO_PREVIOUS
    pages, (first, last) = document.pages, (document.numbers[0], document.numbers[-1])
    if not opens and first and first.number > 1 and lines[0].page == pages[0].number:
        return f"The file begins with the page that is numbered {first.number}, and no opening balance is printed."
    if not closes and last and last.number < (last.total or 0) and lines[-1].page == pages[-1].number:
        return f"The file ends with page {last.number} of {last.total}, and no closing balance is printed."
    return None


def gaps_in(document: Document) -> Iterator[tuple[Page, str]]:
    """Yield the page after each gap in the page numbers, with a message. Pages without a number count as one each."""
    before, place_before = 0, -1
    for place, (page, printed) in enumerate(zip(document.pages, document.numbers, strict=True)):
        if printed is None:
            continue
        if printed.number - before > place - place_before > 0:
            position = f"follows number {before}" if before else "is the first"
            yield page, f"The page is numbered {printed.number} but {position}: pages are missing."
        before, place_before = printed.number, place


def _ends_in_the_middle(lines: Sequence[Line]) -> bool:
    places = [place for place, line in enumerate(lines) if _CARRIED.search(line.text)]
    if not places or not is_between_pages(lines, places[-1]):
        return False
    return not any(is_row(line) or _ENDS.search(line.text) for line in lines[places[-1] + 1 :])


def _begins_in_the_middle(lines: Sequence[Line]) -> bool:
    rows = (place for place, line in enumerate(lines) if is_row(line))
    head = range(next(rows, len(lines)))
    return any(_BROUGHT.search(lines[place].text) and is_between_pages(lines, place) for place in head)
