"""Assemble lines into rows, and recognise the lines that are not transactions.

A row begins with a date, or with an amount if a day's date is printed only once. Lines with neither continue a
description: of the row above if amounts are on a row's first line, of the row below if they are on its last. Between
rows there are balances carried between pages, totals, adverts and footers.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pipelines.intake.pdf.layout.columns import Cells
from pipelines.intake.pdf.page.amounts import Money
from pipelines.intake.pdf.page.dates import Printed as PrintedDate
from pipelines.intake.pdf.page.result import Box

_YEAR = r"^(?:(?:19|20)[0-9]{2} )?"  # some banks print a date's year in the description
_OPENING = re.compile(
    _YEAR + r"(?:(?:statement |account |your )?(?:opening|starting|beginning|previous|start)(?: statement)? "
    r"(?:account )?balance\b|balance (?:at|as at|from) (?:the )?(?:start|beginning|last|previous|opening)\b)",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    _YEAR + r"(?:(?:statement |account |your )?(?:closing|ending|final|finishing|end)(?: statement)? "
    r"(?:account )?balance\b|(?:new|current) balance$|balance (?:at|as at) (?:the )?(?:end|close|closing)\b)",
    re.IGNORECASE,
)
_CARRIED = re.compile(
    _YEAR + r"(?:page )?(?:sub ?-?total |totals? |balance )?(?:carried (?:forward|over)|c/f(?:wd)?\b|c/fwd\b)",
    re.IGNORECASE,
)
_BROUGHT = re.compile(
    _YEAR + r"(?:sub ?-?total |totals? |balance )?(?:brought (?:forward|over)|b/f(?:wd)?\b|forward\b).{0,24}$",
    re.IGNORECASE,
)
_SUMMED = (  # words after `total`
    "debits?|credits?|withdrawals?|deposits?|payments?|purchases|transactions?|page|period|fees|interest|charges|money|"
    "in|out|and|&|or|statement|section|other|card|cash|advances|transfers|refunds|balance|to|from|/|of|for|at|amount|"
    "your|all|end|this|the"
)
_TOTAL = re.compile(
    rf"^(?:sub|grand |page |transaction |statement |section )?[- ]?totals?(?: \(?(?:{_SUMMED})\)?)*[:.]?$|"
    r"^(?:net|total) (?:movement|change)|^totals? at end of|^(?:transaction|statement) totals?\b|"
    r"^total (?:debits|credits|withdrawals|deposits|payments|purchases|fees|interest|money)\b",
    re.IGNORECASE,
)
_FURNITURE = re.compile(
    r"^(?:page:? \d+(?: of \d+)?|\d+ of \d+|statement (?:no|number)\b.*|continued(?: on| over| next).*|"
    r"(?:please )?(?:see|turn|continued) over.*|transactions? (?:details )?\(?continued\)?.*)$",
    re.IGNORECASE,
)
# Words of titles above rows: the rows are money in, or money out, or the other words of the title decide.
_IN = frozenset("credits deposits refunds repayments receipts received incoming reversals rebates".split())  # noqa: SIM905
_OUT = frozenset(
    "debits withdrawals purchases fees charges charged cheques advances spending outgoing surcharges".split()  # noqa: SIM905
)
_NEITHER = frozenset(
    "and other your new all transactions transaction card cash interest account bank direct eftpos atm bpay electronic "  # noqa: SIM905
    "government this period month details continued visa mastercard regular automatic payment payments made the of for "
    "to money in out adjustments transfers bonus international foreign currency".split()
)


@dataclass(frozen=True)
class Mark:
    """A balance between rows."""

    money: Money | None
    page: int
    before: int  # the number of rows above it
    kind: str  # opening, closing, carried, brought, stated


@dataclass(frozen=True)
class Title:
    """The sign of rows below a title. `sign_if_owing` differs for payments, which are money in on a card or loan."""

    sign: int
    sign_if_owing: int


@dataclass(frozen=True)
class RawRow:
    """A transaction as printed, before its sign and year are decided."""

    date: PrintedDate | None  # None: on the same day as the row above
    value_date: PrintedDate | None
    year: int | None
    description: str
    flows: Mapping[str, Money]
    balance: Money | None
    sign: int | None  # from a column of DR and CR
    title: Title | None  # above it
    boxes: tuple[Box, ...]
    is_date_unreadable: bool = False  # it has a date that couldn't be read

    @property
    def page(self) -> int:
        return self.boxes[0].page


def title_of(text: str, more: Mapping[str, int]) -> Title | None:
    """Parse a line as a title; None if it is not one or says nothing about signs.

    Args:
        text: of the line.
        more: the bank's own titles in lower case, with their signs.
    """
    plain = " ".join(re.findall(r"[a-z]+", re.sub(r"\(\$\)", " ", text.lower())))
    if (own := more.get(text.lower().strip()) or more.get(plain)) is not None:
        return Title(own, own)
    words = set(plain.split())
    if not words or len(words) > 8 or words - _IN - _OUT - _NEITHER or re.search("[0-9]", text):
        return None
    is_in, is_out = _says_in(words), _says_out(words)
    if is_in != is_out:
        return Title(1, 1) if is_in else Title(-1, -1)
    return Title(-1, 1) if "payments" in words and not is_in else None


def _says_in(words: AbstractSet[str]) -> bool:
    return bool(words & _IN) or {"money", "in"} <= words


def _says_out(words: AbstractSet[str]) -> bool:
    return bool(words & _OUT) or {"money", "out"} <= words or {"payments", "out"} <= words


def mark_kind(text: str) -> str | None:
    """Return what a line is if it isn't a transaction: the kind of a balance, or `total`; else None."""
    for kind, pattern in (
        ("opening", _OPENING),
        ("closing", _CLOSING),
        ("carried", _CARRIED),
        ("brought", _BROUGHT),
        ("total", _TOTAL),
    ):
        if pattern.search(text):
            return kind
    return None


def is_furniture(text: str) -> bool:
    return bool(_FURNITURE.search(text))


def are_amounts_last(cells: Sequence[Cells]) -> bool:
    """Return whether amounts are on the last line of rows with several lines. Dated lines without amounts are evidence
    for it, texts after amounts against it.
    """
    last = first = 0
    for one, after in itertools.pairwise(cells):
        if one.date and one.words and not one.flows and not after.date:
            last += 1
        if one.date and one.flows and not after.date and not after.flows and after.words:
            first += 1
    return last > first


def rows_of_block(block: Sequence[Cells], is_last: bool, step: float, title: Title | None) -> Iterator[RawRow]:
    """Yield the rows of consecutive lines.

    Args:
        block: lines with nothing else between them.
        is_last: whether amounts are on the last line of a row.
        step: usual distance between lines, in points.
        title: above the lines.
    """
    for segment in _segments(block):
        yield from _rows_of_segment(segment, is_last, step, title)


def _segments(block: Sequence[Cells]) -> Iterator[list[Cells]]:
    """Yield the lines from each date up to the next."""
    segment: list[Cells] = []
    for cells in block:
        if cells.date and segment:
            yield segment
            segment = []
        segment.append(cells)
    if segment:
        yield segment


def _rows_of_segment(segment: Sequence[Cells], is_last: bool, step: float, title: Title | None) -> Iterator[RawRow]:
    with_amount = [index for index, cells in enumerate(segment) if cells.flows]
    if not with_amount:
        return
    groups = [list(segment)] if len(with_amount) == 1 else _share_lines(segment, with_amount, is_last, step)
    for number, group in enumerate(groups):
        yield _row(group, segment if number == 0 else (), title)


def _share_lines(segment: Sequence[Cells], with_amount: Sequence[int], is_last: bool, step: float) -> list[list[Cells]]:
    """Divide a day's lines into rows. Lines between two amounts belong to the closer one; if neither is clearly closer,
    to the upper or lower as in the rest of the table.
    """
    groups = [[segment[index]] for index in with_amount]
    lead = [cells for cells in segment[: with_amount[0]] if cells.words]
    groups[0][:0] = lead
    for number, index in enumerate(with_amount):
        after = with_amount[number + 1] if number + 1 < len(with_amount) else len(segment)
        between = list(segment[index + 1 : after])
        cut = _count_of_upper(segment[index], between, segment[after] if after < len(segment) else None, is_last, step)
        groups[number].extend(between[:cut])
        if number + 1 < len(groups):
            groups[number + 1][:0] = between[cut:]
    return groups


def _count_of_upper(above: Cells, between: Sequence[Cells], below: Cells | None, is_last: bool, step: float) -> int:
    """Return how many lines between two rows belong to the upper one: those above the widest gap if it is clearly
    wider.
    """
    if below is None or not between:
        return len(between)
    chain = [above, *between, below]
    gaps = [
        other.line.box.top - one.line.box.top if other.line.page == one.line.page else step
        for one, other in itertools.pairwise(chain)
    ]
    widest = max(range(len(gaps)), key=lambda index: gaps[index])
    others = [gap for index, gap in enumerate(gaps) if index != widest]
    if gaps[widest] > 1.12 * max(others):
        return widest
    return 0 if is_last else len(between)


def _row(group: Sequence[Cells], dated: Sequence[Cells], title: Title | None) -> RawRow:
    """Return the row of a group of lines, with date and year from `dated`, if any."""
    return RawRow(
        date=dated[0].date if dated else None,
        value_date=next((cells.value_date for cells in group if cells.value_date), None),
        year=next((cells.row_year for cells in dated if cells.row_year), None),
        description=" ".join(text for cells in group if (text := cells.text)),
        flows=next(cells.flows for cells in group if cells.flows),
        balance=next((cells.balance for cells in reversed(group) if cells.balance), None),
        sign=next((cells.sign for cells in group if cells.sign), None),
        title=title,
        boxes=boxes_of(group),
        is_date_unreadable=any(cells.flows and cells.is_date_unreadable for cells in group),
    )


def boxes_of(group: Sequence[Cells]) -> tuple[Box, ...]:
    """Return boxes around lines, one per page."""
    pages = sorted({cells.line.page for cells in group})
    return tuple(_around([cells.line.box for cells in group if cells.line.page == page]) for page in pages)


def _around(boxes: Sequence[Box]) -> Box:
    return Box(
        boxes[0].page,
        min(box.left for box in boxes),
        min(box.top for box in boxes),
        max(box.right for box in boxes),
        max(box.bottom for box in boxes),
    )
