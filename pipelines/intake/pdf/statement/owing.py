"""Find what a minus at an amount means, from the words of the rows that have it.

Most accounts print money out with a minus. Cards and loans often print purchases without a mark and payments with a
minus; a balance without a mark is then a debt. Balances can't distinguish the two conventions, because they also agree
if all signs are inverted. But the rows say which are payments and refunds.
"""

import re
from collections.abc import Sequence

from pipelines.intake.minus_signs import MINUSES
from pipelines.intake.pdf.page.amounts import NEGATIVE_MARKS, Printed, amounts_of
from pipelines.intake.pdf.page.dates import leading_date
from pipelines.intake.pdf.page.labels import is_row
from pipelines.intake.pdf.page.page import Line
from pipelines.intake.pdf.table.rows import mark_kind

_GIVEN_BACK = re.compile(
    r"\bthank ?you\b|\bpayment received\b|\brefund(?:ed)?\b|\bcash ?back\b|\bchargeback\b|\bcredit voucher\b",
    re.IGNORECASE,
)
_PAID_OFF = re.compile(r"\b(?:payment|repayment|autopay)\b", re.IGNORECASE)  # money in where a debt is paid
_EARNED = re.compile(
    r"\bdeposit\b|\bsalary\b|\bdirect credit\b|\binterest (?:paid|earned)\b|\bcredit interest\b", re.IGNORECASE
)
_UNDONE = re.compile(
    r"\b(?:revers(?:al|ed)|waived|dishonou?r(?:ed)?|correction)\b", re.IGNORECASE
)  # whatever the row names, its direction is unclear
_OUT = re.compile(
    r"\bpurchases?\b|\bwithdrawal\b|\bwdl\b|\binterest charge[ds]?\b|\bdrawdown\b|"
    r"\b(?:annual|late|card|over ?limit|account|monthly|service|transaction|advance|bank|payment) fees?\b",
    re.IGNORECASE,
)
# Money out if the row has a minus. Without one, it may also be a business's takings, or an advance that a lender pays.
_OUT_IF_MARKED = re.compile(r"\beftpos\b|\batm\b|\bcash advance\b|\bfees?\b|\bcharges?\b", re.IGNORECASE)
_TAKEN = re.compile(r"\bsettlements?\b|\bdeposits?\b|\bmerchant\b|\btakings\b|\bpurchase order\b", re.IGNORECASE)
_MARKED = re.compile(rf"[{MINUSES}(][ $A]*[0-9]|[0-9] ?[{MINUSES})]")  # at an amount, or in a text
_TWO_COLUMNS = re.compile(
    r"\b(?:debits?|withdrawals?|(?:money|paid) out)\b.*\b(?:credits?|deposits?|(?:money|paid) in)\b|"
    r"\b(?:credits?|deposits?|(?:money|paid) in)\b.*\b(?:debits?|withdrawals?|(?:money|paid) out)\b",
    re.IGNORECASE,
)


def minus_of_rows(lines: Sequence[Line], *, is_debt: bool) -> int | None:
    """Return 1 if a minus is money in, -1 if it is money out; None if no row has one or the words don't say.

    Args:
        lines: of one account.
        is_debt: it is a card or a loan, so that payments are money in.
    """
    rows = [line for line in lines if is_row(line) and not _is_balance(line)]
    marked = [line for line in rows if _MARKED.search(line.text) and _mark(line) in NEGATIVE_MARKS]
    if not marked:
        return None
    if directions := sum(_direction(line, is_debt) or _direction_if_marked(line) for line in marked):
        return _sign(directions)
    bare = [line for line in rows if _mark(line) == ""]
    return _sign(-sum(_direction(line, is_debt) + bool(_EARNED.search(line.text)) for line in bare))


def _mark(line: Line) -> str | None:
    """Return the mark at the amount of a row; None if the row has no amount."""
    run = figures_of(line)
    return run[0].money.mark if run else None


def balances_below_zero(lines: Sequence[Line]) -> Sequence[bool]:
    """Return, for each balance other than zero after the amount of a row, whether it has a minus."""
    balances = [run[-1].money for line in lines if is_row(line) and len(run := figures_of(line)) > 1]
    return [balance.mark in NEGATIVE_MARKS for balance in balances if balance.value]


def has_two_columns(lines: Sequence[Line]) -> bool:
    """Return whether a heading has separate columns for money in and money out."""
    return any(_TWO_COLUMNS.search(line.text) for line in lines if not is_row(line) and not amounts_of(line))


def figures_of(line: Line) -> Sequence[Printed]:
    """Return the amounts that a row ends with. Amounts before them are part of its text."""
    found: list[Printed] = []
    stop = len(line.words)
    for amount in reversed(amounts_of(line)):
        if amount.stop != stop:
            break
        found.append(amount)
        stop = amount.start
    return found[::-1]


def _is_balance(line: Line) -> bool:
    """Return whether a row is not a transaction but states an opening, closing or carried balance."""
    day = leading_date(line.text)
    return day is not None and mark_kind(line.text[day[1] :].strip()) is not None


def _direction(line: Line, is_debt: bool) -> int:
    """Return 1 if a row's words say money in, -1 money out, 0 neither."""
    if _UNDONE.search(line.text):
        return 0
    is_in = bool(_GIVEN_BACK.search(line.text)) or (is_debt and bool(_PAID_OFF.search(line.text)))
    return is_in - bool(_OUT.search(line.text) and not _TAKEN.search(line.text))


def _direction_if_marked(line: Line) -> int:
    return -bool(_OUT_IF_MARKED.search(line.text) and not _UNDONE.search(line.text))


def _sign(number: int) -> int | None:
    return (number > 0) - (number < 0) or None
