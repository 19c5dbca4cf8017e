"""Prove rows by balances: the opening balance plus rows must give each printed balance, down to the closing one.

There is no tolerance, and nothing is adjusted. If two balances agree with the rows between them, no single amount of
these rows can be wrong. A row with a printed balance on only one side is not proved: its amount and sign could be
anything. So a listing without an opening balance is never proved completely.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import accumulate, pairwise

from pipelines.intake.pdf.page.result import Kind, Reason, Verdict

_MAX_REASONS = 20
_ZERO = Decimal(0)


@dataclass(frozen=True)
class Posting:
    """A row to be proved; postings are ordered oldest first."""

    amount: Decimal
    balance: Decimal | None  # printed
    page: int


@dataclass(frozen=True)
class Point:
    """A balance that applies after the first `after` rows."""

    after: int
    balance: Decimal
    page: int | None
    name: str

    def derive_balance(self, after: int, sums: Sequence[Decimal]) -> Decimal:
        """Return the balance after the first `after` rows as it follows from this one; `sums`: of the first n rows."""
        return self.balance + sums[after] - sums[self.after]


@dataclass(frozen=True)
class Proof:
    """The result of a proof.

    `balances`: after each row, printed, or computed between two that agree with the rows. `proved`: for each row,
    whether it is between two printed balances that agree with the rows between them.
    """

    verdict: Verdict
    reasons: tuple[Reason, ...]
    balances: tuple[Decimal | None, ...]
    proved: tuple[bool, ...]


def prove(
    postings: Sequence[Posting],
    opening: Decimal | None,
    closing: Decimal | None,
    between: Sequence[Point],
    kind: Kind,
    *,
    in_day_order: bool = True,
) -> Proof:
    """Prove rows by all printed balances.

    `in_day_order`: rows are in the order of their days; otherwise balances that are not printed stay unknown.
    """
    points = _points(postings, opening, closing, between)
    steps = list(pairwise(points))
    sums = [_ZERO, *accumulate(posting.amount for posting in postings)]
    broken = [(start, end) for start, end in steps if start.derive_balance(end.after, sums) != end.balance]
    reasons = [_describe_break(start, end, sums) for start, end in broken]
    agreeing = [step for step in steps if step not in broken]
    covered = {index for start, end in agreeing for index in range(start.after, end.after)}
    verdict, more = _verdict(postings, points, broken, len(covered), opening, closing, kind)
    return Proof(
        verdict,
        (*reasons[:_MAX_REASONS], *more),
        balances=tuple(_fill_balances(postings, agreeing if in_day_order else (), sums)),
        proved=tuple(index in covered for index in range(len(postings))),
    )


def _points(
    postings: Sequence[Posting], opening: Decimal | None, closing: Decimal | None, between: Sequence[Point]
) -> list[Point]:
    """Return every balance in the order of the rows."""
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


def _describe_break(start: Point, end: Point, sums: Sequence[Decimal]) -> Reason:
    expected = start.derive_balance(end.after, sums)
    page = end.page or start.page
    where = f" on page {page}" if page else ""
    message = f"{end.name.capitalize()}{where} is {end.balance:,.2f}; the rows before it give {expected:,.2f}, "
    return Reason("BalanceMismatch", f"{message}a difference of {end.balance - expected:,.2f}.", page)


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
    """Return the verdict without an opening or closing balance, as in a listing with a balance on each row."""
    rows_before, rows_after = points[0].after, len(postings) - points[-1].after
    if rows_after:
        message = f"No balance proves the last {rows_after} rows."
        return Verdict.PARTIAL, [Reason("RowsUnproved", message, postings[-1].page)]
    if kind is not Kind.LISTING or rows_before > 1:
        return Verdict.PARTIAL, [Reason("NoOpeningOrClosing", "The opening or the closing balance is not stated.")]
    if not rows_before:
        return Verdict.RECONCILED, []
    oldest = Reason(
        "OldestRowUnproved",
        "No balance is printed before the oldest row: only the others are proved; its amount and sign are as printed.",
        postings[0].page,
    )
    return Verdict.PARTIAL, [oldest]


def _fill_balances(
    postings: Sequence[Posting], agreeing: Sequence[tuple[Point, Point]], sums: Sequence[Decimal]
) -> Iterator[Decimal | None]:
    """Yield the printed balances, and those computed between two that agree with the rows."""
    computed = {
        after: start.derive_balance(after, sums)
        for start, end in agreeing
        for after in range(start.after + 1, end.after + 1)
    }
    for index, posting in enumerate(postings):
        yield posting.balance if posting.balance is not None else computed.get(index + 1)


def is_newest_first(dates: Sequence[date | None]) -> bool:
    """Return whether dates go down more often than up."""
    known = [day for day in dates if day]
    return sum(after < before for before, after in pairwise(known)) > sum(
        after > before for before, after in pairwise(known)
    )


def count_following(amounts: Sequence[Decimal], balances: Sequence[Decimal | None]) -> int:
    """Count the balances that follow from the previous balance and the row's amount."""
    rows = list(zip(amounts, balances, strict=True))
    return sum(
        before is not None and after is not None and before + amount == after
        for (_, before), (amount, after) in pairwise(rows)
    )
