"""Whether a page of a statement isn't in the file, by what the pages that are there say of it.

A sum that is carried to the next page needs a next page, and one brought from the page before needs that. Neither is
where a statement ends or begins: taken for it, the rows of the lost page would be missed by nobody.
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

_NO_NEXT = "The last page carries its balance to a next page, which isn't in the file."
_NO_PREVIOUS = "The first page brings its balance from a page before it, which isn't in the file."


def is_between_pages(lines: Sequence[Line], position: int) -> bool:
    """Whether a balance carried or brought is one from page to page, as the line or its wrapped rest says."""
    line = lines[position]
    if not (_CARRIED.search(line.text) or _BROUGHT.search(line.text)):
        return False
    below = lines[position + 1 : position + 2]
    rest = below[0].text if below and below[0].page == line.page and not is_row(below[0]) else ""
    return bool(_BETWEEN_PAGES.search(f"{line.text} {rest}"))


def missing_page(lines: Sequence[Line], document: Document, *, opens: bool, closes: bool) -> str | None:
    """What says that a page is missing where an account's part of a document begins or ends; None where nothing does.

    Args:
        lines: the account's.
        document: that it is of.
        opens: it states an opening balance.
        closes: it states a closing balance.
    """
    if _ends_in_the_middle(lines):
        return _NO_NEXT
    if _begins_in_the_middle(lines):
        return _NO_PREVIOUS
    pages, (first, last) = document.pages, (document.numbers[0], document.numbers[-1])
    if not opens and first and first.number > 1 and lines[0].page == pages[0].number:
        return (
            f"The file begins with the page that says it is number {first.number}, and no opening balance is printed."
        )
    if not closes and last and last.number < (last.of or 0) and lines[-1].page == pages[-1].number:
        return f"The file ends with page {last.number} of {last.of}, and no closing balance is printed."
    return None


def gaps_in(document: Document) -> Iterator[tuple[Page, str]]:
    """Where numbers of pages say that one isn't in the file: the page behind, and what it says. A page without a number
    between two others has the number between theirs.
    """
    before, place_before = 0, -1
    for place, (page, printed) in enumerate(zip(document.pages, document.numbers, strict=True)):
        if printed is None:
            continue
        if printed.number - before > place - place_before > 0:
            said = f"after number {before}" if before else "and no other stands before it"
            yield page, f"The page says that it is number {printed.number}, {said}: pages between are missing."
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
