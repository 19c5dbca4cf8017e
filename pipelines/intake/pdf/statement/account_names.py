"""Find the holder of an account: by label, else the addressee of the letter."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from pipelines.intake.pdf.layout.layouts import Layout
from pipelines.intake.pdf.page.labels import Labelled, cells, find_label, text_of
from pipelines.intake.pdf.page.page import Line

_LABEL = re.compile(
    r"\b(?:account|a/c) (?:name|holder|title|owner)s?(?:\(s\))?[: ]*|^names?(?:\(s\))?: *|"
    r"\b(?:in the )?name of (?:account )?(?:holder|customer)s?[: ]*|^account of[: ]*|\bcustomer name[: ]*",
    re.IGNORECASE,
)
_DETAILS = re.compile(r"^account details$", re.IGNORECASE)
_HOLDER = re.compile(
    r"^(?:mr|mrs|ms|miss|mx|dr|prof)\b|\b(?:pty|ltd|limited|trust|trustee|incorporated|inc)\b", re.IGNORECASE
)
_NO_NAME = re.compile(
    r"^(?:bsb|account|acct|number|statement|period|page|date|opening|closing|balance|total|credit|interest|branch|"
    r"customer|[0-9$x*+-])",
    re.IGNORECASE,
)
_TITLE = re.compile(r"\b(?:statements?|accounts?|mastercard|visa|loan|saver|page [0-9]+)\b", re.IGNORECASE)
_POSTCODE = re.compile(r"\b(?:nsw|vic|qld|sa|wa|tas|nt|act)[ ,]+[0-9]{4}$", re.IGNORECASE)
_OF_THE_BANK = re.compile(r"\b(?:bank|gpo box|reply paid|abn|afsl|limited abn|locked bag)\b", re.IGNORECASE)
_ADDRESS_LEFT, _ADDRESS_GAP = 4.0, 1.4  # in points, and as a share of a line's height
_LINES_OF_A_HEAD = 12  # counting the lines of all of its columns
_LONGEST_ADDRESS = 6  # lines
_NAME_AND_STREET = 2  # lines above the town, at least


def account_name(lines: Sequence[Line], layout: Layout | None) -> str | None:
    """Return the holder's name: by label, else as the account's details begin, else the addressee."""
    labels = (text for found in find_label(lines, _LABEL) for text in _name_candidates(found))
    details = (
        text for found in find_label(lines, _DETAILS) for text in _name_candidates(found) if _HOLDER.search(text)
    )
    sent_to = _addressees(lines, (*layout.names, *layout.logos) if layout else ())
    return next(chain(filter(_is_name, labels), details, sent_to), None)


def _name_candidates(found: Labelled) -> Iterator[str]:
    beside = found.first_cell if found.beside else found.text_after
    yield beside.strip(" :")
    if not beside:
        yield from (text_of(cell).strip(" :") for cell in islice(found.below, 2))


def _is_name(text: str) -> bool:
    return len(text) > 2 and bool(re.search("[A-Za-z]{2}", text)) and not _NO_NAME.match(text)


def _addressees(lines: Sequence[Line], bank: Sequence[str]) -> Iterator[str]:
    """Yield the first line of each address (a block that ends with a state and a postcode), except the bank's own."""
    for position, line in enumerate(lines):
        for cell in cells(line.words):
            if _POSTCODE.search(text_of(cell)):
                above = islice(_block_above(lines, position, cell[0].left), _LONGEST_ADDRESS)
                block = [text for text in above if text not in bank]
                while len(block) > _NAME_AND_STREET and (_is_title(block[-1], bank) or not _is_name(block[-1])):
                    block.pop()
                if block and _is_name(block[-1]) and not any(_OF_THE_BANK.search(text) for text in block):
                    yield block[-1]


def _is_title(text: str, bank: Sequence[str]) -> bool:
    """Return whether a line above an address is a title of the document, or the name of a product."""
    if _HOLDER.search(text):
        return False
    return bool(_TITLE.search(text)) or any(text.upper().startswith(f"{name.upper()} ") for name in bank)


def _block_above(lines: Sequence[Line], position: int, left: float) -> Iterator[str]:
    """Yield the cells close above with the same left edge. Lines of another column may be between them."""
    below, page = lines[position].box, lines[position].page
    for line in reversed(lines[max(position - _LINES_OF_A_HEAD, 0) : position]):
        aligned = [cell for cell in cells(line.words) if abs(cell[0].left - left) <= _ADDRESS_LEFT]
        if line.page != page or below.top - line.box.bottom > _ADDRESS_GAP * (below.bottom - below.top):
            return
        if aligned:
            yield text_of(aligned[0])
            below = line.box
