"""Whether the balances prove the rows: opening balance plus rows makes each printed balance, down to the closing one.

Nothing is tolerated, and nothing is made to fit. Between two balances that agree with the rows between them every
amount is proved, if one of them alone were wrong. A row with a printed balance on one side only is not: its amount and
its sign could be anything. So a listing without an opening balance is never proved whole.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import accumulate, pairwise

from pipelines.intake.pdf.page.result import Kind, Reason, Verdict

_MOST_REASONS = 20
_ZERO = Decimal(0)


@dataclass(frozen=True)
class Posting:
    """A row for proving, oldest first."""

    amount: Decimal
    balance: Decimal | None  # printed
    page: int


@dataclass(frozen=True)
class Point:
    """A balance that stands after so many rows."""

    after: int
    balance: Decimal
    page: int | None
    name: str


@dataclass(frozen=True)
class Proof:
    """What the balances say. `balances`: after each row, printed or between two that the rows connect. `proved`: each
    row, whether it lies between two printed balances that agree with the rows between them."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    balances: tuple[Decimal | None, ...]
    proved: tuple[bool, ...]


def proved(
    postings: Sequence[Posting],
    opening: Decimal | None,
    closing: Decimal | None,
    between: Sequence[Point],
    kind: Kind,
    *,
    fills: bool = True,
) -> Proof:
    """The proof of rows by the balances that are printed, each of which counts.

    `fills`: rows stand in the order of their days, so that a balance between two is that after a row.
    """
    points = _points(postings, opening, closing, between)
    steps = list(pairwise(points))
    sums = [_ZERO, *accumulate(posting.amount for posting in postings)]
    broken = [(one, two) for one, two in steps if one.balance + sums[two.after] - sums[one.after] != two.balance]
    reasons = [_break(one, two, sums) for one, two in broken]
    held = [(one, two) for one, two in steps if (one, two) not in broken]
    covered = {index for one, two in held for index in range(one.after, two.after)}
    verdict, more = _verdict(postings, points, broken, len(covered), opening, closing, kind)
    return Proof(
        verdict,
        (*reasons[:_MOST_REASONS], *more),
        balances=tuple(_filled(postings, held if fills else (), sums)),
        proved=tuple(index in covered for index in range(len(postings))),
    )


def _points(
    postings: Sequence[Posting], opening: Decimal | None, closing: Decimal | None, between: Sequence[Point]
) -> list[Point]:
    """Every balance in the order of the rows."""
    printed = [
        Point(index + 1, posting.balance, posting.page, "the balance printed")
        for index, posting in enumerate(postings)
        if posting.balance is not None
    ]
    first = [] if opening is None else [Point(0, opening, None, "the opening balance")]
    last_page = postings[-1].page if postings else None
    last = [] if closing is None else [Point(len(postings), closing, last_page, "the closing balance")]
    middle = sorted([*printed, *between], key=lambda point: point.after)
    return [*first, *middle, *last]


def _break(one: Point, two: Point, sums: Sequence[Decimal]) -> Reason:
    made = one.balance + sums[two.after] - sums[one.after]
    page = two.page or one.page
    where = f" on page {page}" if page else ""
    message = f"{two.name.capitalize()}{where} is {two.balance:,.2f}; the rows before it make {made:,.2f}, "
    return Reason("BalanceMismatch", f"{message}a difference of {two.balance - made:,.2f}.", page)


def _verdict(
    postings: Sequence[Posting],
    points: Sequence[Point],
    broken: Sequence[tuple[Point, Point]],
    covered: int,
    opening: Decimal | None,
    closing: Decimal | None,
    kind: Kind,
) -> tuple[Verdict, list[Reason]]:
    if broken:
        share = covered / len(postings) if postings else 0
        return (Verdict.PARTIAL if share >= 0.5 else Verdict.UNRECONCILED), []
    if len(points) < 2:
        return Verdict.UNRECONCILED, [Reason("NoBalances", "No two balances are printed that could prove the rows.")]
    if opening is not None and closing is not None:
        return Verdict.RECONCILED, []
    return _open_ended(postings, points, kind)


def _open_ended(postings: Sequence[Posting], points: Sequence[Point], kind: Kind) -> tuple[Verdict, list[Reason]]:
    """Without an opening or a closing balance: a listing from online banking has neither, and a balance on each row."""
    before, behind = points[0].after, len(postings) - points[-1].after
    if behind:
        message = f"No balance proves the last {behind} rows."
        return Verdict.PARTIAL, [Reason("RowsUnproved", message, postings[-1].page)]
    if kind is not Kind.LISTING or before > 1:
        return Verdict.PARTIAL, [Reason("NoOpeningOrClosing", "The opening or the closing balance is not stated.")]
    if not before:
        return Verdict.RECONCILED, []
    oldest = Reason(
        "OldestRowUnproved",
        "No balance stands before the oldest row: the others are proved, its amount and sign are as printed.",
        postings[0].page,
    )
    return Verdict.PARTIAL, [oldest]


def _filled(
    postings: Sequence[Posting], held: Sequence[tuple[Point, Point]], sums: Sequence[Decimal]
) -> Iterator[Decimal | None]:
    """Printed balances, and those between two that the rows connect."""
    between = {
        after: one.balance + sums[after] - sums[one.after]
        for one, two in held
        for after in range(one.after + 1, two.after + 1)
    }
    for index, posting in enumerate(postings):
        yield posting.balance if posting.balance is not None else between.get(index + 1)


def is_newest_first(dates: Sequence[date | None]) -> bool:
    """Whether rows run backwards by their dates."""
    known = [day for day in dates if day]
    return sum(after < before for before, after in pairwise(known)) > sum(
        after > before for before, after in pairwise(known)
    )


def follows(amounts: Sequence[Decimal], balances: Sequence[Decimal | None]) -> int:
    """How many balances follow from the one before."""
    rows = list(zip(amounts, balances, strict=True))
    return sum(
        before is not None and after is not None and before + amount == after
        for (_, before), (amount, after) in pairwise(rows)
    )
