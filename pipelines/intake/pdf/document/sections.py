"""Split a document into the sections of its accounts.

Banks print several accounts in one statement. A new account's number begins a section, unless it is printed at the head
of each page or the account is only mentioned: a section has rows.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.intake.pdf.layout.layouts import Layout
from pipelines.intake.pdf.page.account_numbers import AccountNumber, find_labelled, names_both
from pipelines.intake.pdf.page.account_numbers import branch_and_number as pair_in
from pipelines.intake.pdf.page.dates import leading_date
from pipelines.intake.pdf.page.labels import cells, has_amount, is_close, is_row, row_continuations, text_of
from pipelines.intake.pdf.page.page import Line, Page

_STATES_BALANCE = re.compile(r"\b(?:opening|previous|closing) balance|\bbrought forward", re.IGNORECASE)
_HEADING = re.compile(
    r"\b(?:dates?|descriptions?|details|transactions?|particulars|debits?|credits?|withdrawals?|deposits?|amount|balance|"
    r"money (?:in|out)|paid (?:in|out))\b",
    re.IGNORECASE,
)
_SAME_PLACE = 4.0  # points: tolerance for heads at one height on every page, and for lines at one left edge
_TITLE_LINES = 3  # above the number that may belong to it


@dataclass(frozen=True)
class Section:
    """The lines of one account, in reading order."""

    lines: Sequence[Line]
    first_page: int
    last_page: int


def split(pages: Sequence[Page], layout: Layout | None) -> Sequence[Section]:
    """Split a document by account; into one section if it doesn't have several accounts."""
    lines = [line for page in pages for line in page.lines]
    if not lines:
        return ()
    beginnings = _beginnings(lines, len(pages), layout)
    ends = [*beginnings[1:], len(lines)]
    return tuple(_section(lines[first:last]) for first, last in zip(beginnings, ends, strict=True))


def _section(lines: Sequence[Line]) -> Section:
    return Section(lines, lines[0].page, lines[-1].page)


@dataclass(frozen=True)
class _Mention:
    """An account's number in a line that is not a row."""

    position: int
    number: str
    bsb: str | None = None
    is_card: bool = False

    def is_same_account(self, other: "_Mention") -> bool:
        ends_alike = self.number.endswith(other.number) or other.number.endswith(self.number)
        return ends_alike and (self.bsb == other.bsb or None in (self.bsb, other.bsb))


def _beginnings(lines: Sequence[Line], pages: int, layout: Layout | None) -> list[int]:
    """Return the first line of each section. The first section includes the lines before its account."""
    mentions = _without_furniture(list(_mentions(lines, layout)), lines, pages)
    runs = _runs(mentions, lines)
    return [0, *(_find_title_above(lines, run.position) for run in runs[1:])]


def _mentions(lines: Sequence[Line], layout: Layout | None) -> Iterator[_Mention]:
    continuations = row_continuations(lines)
    for position, line in enumerate(lines):
        text = line.text
        if position in continuations or has_amount(text) or leading_date(text) or (layout and layout.ignores(text)):
            continue
        found = next((number for number in find_labelled(text) if number.number), None) or _find_unlabelled(
            lines, position
        )
        if found and found.number:
            yield _Mention(position, found.number, found.bsb, found.is_card)


def _find_unlabelled(lines: Sequence[Line], position: int) -> AccountNumber | None:
    """Return the number of a line with only a BSB and a number, as below `BSB  Account number` or at the
    page's head.
    """
    line = lines[position]
    alone = any(pair_in(text) and not re.search("[A-Za-z]", text) for text in _texts(line))
    above = lines[position - 1].text if position and lines[position - 1].page == line.page else ""
    return pair_in(line.text) if alone or names_both(above) else None


def _texts(line: Line) -> Sequence[str]:
    return [line.text, *(text_of(cell) for cell in cells(line.words))]


def _without_furniture(mentions: Sequence[_Mention], lines: Sequence[Line], pages: int) -> Sequence[_Mention]:
    """Remove repetitions of a number that is at the same height on every page, such as at its head."""
    places: dict[tuple[str, int], list[_Mention]] = {}
    for mention in mentions:
        places.setdefault((mention.number, round(lines[mention.position].box.top / _SAME_PLACE)), []).append(mention)
    everywhere = [
        alike for alike in places.values() if len({lines[mention.position].page for mention in alike}) == pages
    ]
    repeated = {mention.position for alike in everywhere if pages > 2 for mention in alike[1:]}
    return [mention for mention in mentions if mention.position not in repeated]


def _runs(mentions: Sequence[_Mention], lines: Sequence[Line]) -> Sequence[_Mention]:
    """Return the mentions that begin a section: each names another account than the one before, and has rows before
    the next account.
    """
    runs: list[_Mention] = []
    for number, mention in enumerate(mentions):
        if runs and mention.is_same_account(runs[-1]):
            continue
        others = (other for other in mentions[number + 1 :] if not other.is_same_account(mention))
        until = next((other.position for other in others), None)
        if _has_rows(lines[mention.position : until], mention):
            runs.append(mention)
    return runs


def _has_rows(lines: Sequence[Line], mention: _Mention) -> bool:
    """Return whether lines have dated amounts and a stated balance, or dates below a heading. Dates are not enough for
    a card, because an account's additional card has no balance of its own.
    """
    if any(_STATES_BALANCE.search(line.text) for line in lines) and any(map(is_row, lines)):
        return True
    heading = next((position for position, line in enumerate(lines) if _is_heading(line)), len(lines))
    return not mention.is_card and any(leading_date(line.text) for line in lines[heading:])


def _is_heading(line: Line) -> bool:
    words = {match.lower() for match in _HEADING.findall(line.text)}
    return len(words) >= 2 and not has_amount(line.text)


def _find_title_above(lines: Sequence[Line], position: int) -> int:
    """Return the line where an account's section begins: a title may be close above its number."""
    first = position
    while first > max(position - _TITLE_LINES, 0) and _is_title_of(lines[first - 1], lines[first]):
        first -= 1
    return first


def _is_title_of(above: Line, below: Line) -> bool:
    aligned = abs(above.words[0].left - below.words[0].left) <= _SAME_PLACE
    is_title = not has_amount(above.text) and leading_date(above.text) is None
    return aligned and is_title and is_close(above, below)
