"""Where one account's part of a document ends and the next one's begins.

Banks print several accounts in one statement. A new account's number begins a section. An account's number that is
printed again at the head of each page begins none, nor do accounts that are only mentioned: a section has rows.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.intake.pdf.layout.layouts import Layout
from pipelines.intake.pdf.page.account_numbers import AccountNumber, labelled, names_both
from pipelines.intake.pdf.page.account_numbers import branch_and_number as pair_in
from pipelines.intake.pdf.page.dates import leading
from pipelines.intake.pdf.page.labels import cells, has_amount, is_row, text_of
from pipelines.intake.pdf.page.page import Line, Page

_STATES_BALANCE = re.compile(r"\b(?:opening|previous|closing) balance|\bbrought forward", re.IGNORECASE)
_HEADING = re.compile(
    r"\b(?:dates?|descriptions?|details|transactions?|particulars|debits?|credits?|withdrawals?|deposits?|amount|balance|"
    r"money (?:in|out)|paid (?:in|out))\b",
    re.IGNORECASE,
)
_SAME_PLACE = 4.0  # points: heads are printed at one height on every page, lines of a heading at one left edge
_TITLE_LINES = 3  # that may stand above the number, and belong to it
_TITLE_GAP = 1.3  # of a line's height: what is further apart belongs to what stands above


@dataclass(frozen=True)
class Section:
    """One account's lines, in reading order."""

    lines: Sequence[Line]
    first_page: int
    last_page: int


def split(pages: Sequence[Page], layout: Layout | None) -> Sequence[Section]:
    """The accounts' parts of a document; one where nothing speaks for several."""
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
    """An account's number in a line that is no row."""

    position: int
    number: str
    bsb: str | None = None
    is_card: bool = False

    def same(self, other: "_Mention") -> bool:
        ends_alike = self.number.endswith(other.number) or other.number.endswith(self.number)
        return ends_alike and (self.bsb == other.bsb or None in (self.bsb, other.bsb))


def _beginnings(lines: Sequence[Line], pages: int, layout: Layout | None) -> list[int]:
    """The first lines of sections. What stands before the first account belongs to it."""
    mentions = _without_furniture(list(_mentions(lines, layout)), lines, pages)
    runs = _runs(mentions, lines)
    return [0, *(_with_title(lines, run.position) for run in runs[1:])]


def _mentions(lines: Sequence[Line], layout: Layout | None) -> Iterator[_Mention]:
    for position, line in enumerate(lines):
        text = line.text
        if has_amount(text) or leading(text) or (layout and layout.ignores(text)):
            continue
        found = next((each for each in labelled(text) if each.number), None) or _below_heading(lines, position)
        if found and found.number and not _continues_a_row(lines, position):
            yield _Mention(position, found.number, found.bsb, found.is_card)


def _below_heading(lines: Sequence[Line], position: int) -> AccountNumber | None:
    """A line that is a BSB and a number and no more, as it stands below `BSB  Account number` or at a page's head."""
    line = lines[position]
    alone = any(pair_in(text) and not re.search("[A-Za-z]", text) for text in _texts(line))
    above = lines[position - 1].text if position and lines[position - 1].page == line.page else ""
    return pair_in(line.text) if alone or names_both(above) else None


def _texts(line: Line) -> Sequence[str]:
    return [line.text, *(text_of(cell) for cell in cells(line.words))]


def _without_furniture(mentions: Sequence[_Mention], lines: Sequence[Line], pages: int) -> Sequence[_Mention]:
    """Without the number at the head or foot of every page, where other accounts have sections of their own."""
    places: dict[tuple[str, int], list[_Mention]] = {}
    for mention in mentions:
        places.setdefault((mention.number, round(lines[mention.position].box.top / _SAME_PLACE)), []).append(mention)
    everywhere = [alike for alike in places.values() if len({lines[each.position].page for each in alike}) == pages]
    again = {each.position for alike in everywhere if pages > 2 for each in alike[1:]}
    return [mention for mention in mentions if mention.position not in again]


def _runs(mentions: Sequence[_Mention], lines: Sequence[Line]) -> Sequence[_Mention]:
    """The mentions that begin a section: of another account than the one before, and with rows until the next."""
    runs: list[_Mention] = []
    for number, mention in enumerate(mentions):
        if runs and mention.same(runs[-1]):
            continue
        others = (each for each in mentions[number + 1 :] if not each.same(mention))
        until = next((each.position for each in others), None)
        if _has_rows(lines[mention.position : until], mention):
            runs.append(mention)
    return runs


def _has_rows(lines: Sequence[Line], mention: _Mention) -> bool:
    """Dated lines below headings, or dated amounts and a balance. A further card of an account has no balance."""
    if any(_STATES_BALANCE.search(line.text) for line in lines) and any(map(is_row, lines)):
        return True
    heading = next((position for position, line in enumerate(lines) if _is_heading(line)), len(lines))
    return not mention.is_card and any(leading(line.text) for line in lines[heading:])


def _is_heading(line: Line) -> bool:
    words = {match.lower() for match in _HEADING.findall(line.text)}
    return len(words) >= 2 and not has_amount(line.text)


def _continues_a_row(lines: Sequence[Line], position: int) -> bool:
    """What stands close below a row, right of its date, is part of what it says; payees' numbers stand there, too."""
    below, left = lines[position], lines[position].words[0].left
    for above in reversed(lines[:position]):
        if above.page != below.page or not _close(above, below):
            return False
        if is_row(above):
            return left > above.words[0].right
        below = above
    return False


def _with_title(lines: Sequence[Line], position: int) -> int:
    """The line where an account's heading begins: a title may stand close above its number."""
    first = position
    while first > max(position - _TITLE_LINES, 0) and _is_title_of(lines[first - 1], lines[first]):
        first -= 1
    return first


def _is_title_of(above: Line, below: Line) -> bool:
    aligned = abs(above.words[0].left - below.words[0].left) <= _SAME_PLACE
    is_title = not has_amount(above.text) and leading(above.text) is None
    return above.page == below.page and aligned and is_title and _close(above, below)


def _close(above: Line, below: Line) -> bool:
    height = max(below.box.bottom - below.box.top, above.box.bottom - above.box.top)
    return below.box.top - above.box.bottom <= _TITLE_GAP * height
