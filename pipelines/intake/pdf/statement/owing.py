"""What a minus at an amount says, by the words of the rows that bear it.

Most accounts print money out with a minus. Cards and loans often print what was bought bare, and a payment with one;
then a balance without a mark is a debt. No balance tells the two apart: with every sign turned all of them come out as
well. What was paid or given back is called so on the row, and that tells.
"""

import re
from collections.abc import Sequence

from pipelines.intake.pdf.page.amounts import Printed, amounts_of
from pipelines.intake.pdf.page.dates import leading
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
)  # of whatever it names
_OUT = re.compile(
    r"\bpurchases?\b|\bwithdrawal\b|\bwdl\b|\beftpos\b|\batm\b|\bfees?\b|\bcharges?\b|\binterest charged\b|"
    r"\bcash advance\b|\bdrawdown\b",
    re.IGNORECASE,
)
_MINUSES = ("-", "()")
_MARKED = re.compile(r"[-−–‒﹣(][ $A]*[0-9]|[0-9] ?[-−–‒﹣)]")  # at an amount, or in a text
_TWO_COLUMNS = re.compile(
    r"\b(?:debits?|withdrawals?|(?:money|paid) out)\b.*\b(?:credits?|deposits?|(?:money|paid) in)\b|"
    r"\b(?:credits?|deposits?|(?:money|paid) in)\b.*\b(?:debits?|withdrawals?|(?:money|paid) out)\b",
    re.IGNORECASE,
)


def minus_of_rows(lines: Sequence[Line], *, is_debt: bool) -> int | None:
    """1 where a minus is money in, -1 where it is money out; None where no row has one, or no words tell.

    Args:
        lines: of one account.
        is_debt: it is a card or a loan, so that a payment pays it off.
    """
    rows = [line for line in lines if is_row(line) and not _is_balance(line)]
    marked = [line for line in rows if _MARKED.search(line.text) and _mark(line) in _MINUSES]
    if not marked:
        return None
    if ways := sum(_way(line, is_debt) for line in marked):
        return _sign(ways)
    bare = [line for line in rows if _mark(line) == ""]
    return _sign(-sum(_way(line, is_debt) + bool(_EARNED.search(line.text)) for line in bare))


def _mark(line: Line) -> str | None:
    """What stands at the amount of a row; None where it has none."""
    run = figures_of(line)
    return run[0].money.mark if run else None


def balances_below_zero(lines: Sequence[Line]) -> Sequence[bool]:
    """Of each balance behind the amount of a row, zeros left out, whether it bears a minus."""
    balances = [run[-1].money for line in lines if is_row(line) and len(run := figures_of(line)) > 1]
    return [balance.mark in _MINUSES for balance in balances if balance.value]


def has_two_columns(lines: Sequence[Line]) -> bool:
    """Whether a heading gives money in and money out a column each."""
    return any(_TWO_COLUMNS.search(line.text) for line in lines if not is_row(line) and not amounts_of(line))


def figures_of(line: Line) -> Sequence[Printed]:
    """The amounts that a row ends with; those before them are part of its text."""
    found: list[Printed] = []
    stop = len(line.words)
    for each in reversed(amounts_of(line)):
        if each.stop != stop:
            break
        found.append(each)
        stop = each.start
    return found[::-1]


def _is_balance(line: Line) -> bool:
    """A row that is none: it states the opening balance, the closing one, or one between pages."""
    day = leading(line.text)
    return day is not None and mark_kind(line.text[day[1] :].strip()) is not None


def _way(line: Line, is_debt: bool) -> int:
    """1 where a row's words are of money in, -1 of money out, 0 where they tell neither."""
    if _UNDONE.search(line.text):
        return 0
    is_in = bool(_GIVEN_BACK.search(line.text)) or (is_debt and bool(_PAID_OFF.search(line.text)))
    return is_in - bool(_OUT.search(line.text))


def _sign(number: int) -> int | None:
    return (number > 0) - (number < 0) or None
