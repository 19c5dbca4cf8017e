"""Whether a page of a statement isn't in the file, by what the pages that are there say of it.

A sum that is carried to the next page needs a next page, and one brought from the page before needs that. Neither is
where a statement ends or begins: taken for it, the rows of the lost page would be missed by nobody.
"""

import re
from collections.abc import Sequence

from pipelines.intake.pdf.labels import cells, is_row, text_of
from pipelines.intake.pdf.page import Line, Page

_FORWARD = r"(?:forward|over|f(?:wd)?\b)"
_CARRIED = re.compile(rf"\b(?:carried {_FORWARD}|c/{_FORWARD})", re.IGNORECASE)
_BROUGHT = re.compile(rf"\b(?:brought {_FORWARD}|b/{_FORWARD})", re.IGNORECASE)
_BETWEEN_PAGES = re.compile(
    r"\bsub ?-?totals?\b|\bpage totals?\b|\b(?:next|previous|last|preceding) page\b", re.IGNORECASE
)
_ENDS = re.compile(r"\bclosing (?:account )?balance\b|\b(?:balance )?brought forward\b", re.IGNORECASE)
_NUMBER = re.compile(
    r"(?<!see )(?<!to )(?<!on )\bpage:? *(?:number:? *)?([0-9]{1,3})(?: *(?:of|/) *([0-9]{1,3}))?\b(?! *[.,/-]?[0-9])",
    re.IGNORECASE,
)

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


def missing_page(lines: Sequence[Line], pages: Sequence[Page], *, opens: bool, closes: bool) -> str | None:
    """What says that a page is missing from an account's part of a file; None where nothing does.

    Args:
        lines: the account's.
        pages: all of the file.
        opens: it states an opening balance.
        closes: it states a closing balance.
    """
    if _ends_in_the_middle(lines):
        return _NO_NEXT
    if _begins_in_the_middle(lines):
        return _NO_PREVIOUS
    first, last = _numbered(pages, lines[0].page), _numbered(pages, lines[-1].page)
    if not opens and first and first[0] > 1 and lines[0].page == 1:
        return f"The file begins with the page that says it is number {first[0]}, and no opening balance is printed."
    if not closes and last and last[0] < last[1] and lines[-1].page == len(pages):
        return f"The file ends with page {last[0]} of {last[1]}, and no closing balance is printed."
    return None


def _ends_in_the_middle(lines: Sequence[Line]) -> bool:
    places = [place for place, line in enumerate(lines) if _CARRIED.search(line.text)]
    if not places or not is_between_pages(lines, places[-1]):
        return False
    return not any(is_row(line) or _ENDS.search(line.text) for line in lines[places[-1] + 1 :])


def _begins_in_the_middle(lines: Sequence[Line]) -> bool:
    rows = (place for place, line in enumerate(lines) if is_row(line))
    head = range(next(rows, len(lines)))
    return any(_BROUGHT.search(lines[place].text) and is_between_pages(lines, place) for place in head)


def _numbered(pages: Sequence[Page], number: int) -> tuple[int, int] | None:
    """What a page says it is: its number, and of how many (its own where it doesn't say)."""
    lines = next((page.lines for page in pages if page.number == number), ())
    texts = (text_of(cell) for line in lines if not is_row(line) for cell in cells(line.words))
    found = next((match for text in texts if (match := _NUMBER.search(text)) and match.end() == len(text)), None)
    return (int(found[1]), int(found[2] or found[1])) if found else None
