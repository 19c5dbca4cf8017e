"""Compare the totals of money in and out in a summary with the rows.

Totals are used only if they belong to this statement: the opening balance and the totals must give the closing balance.
If they do so only with opposite signs, debts were read as money held, or the reverse.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

from pipelines.intake.pdf.page.amounts import printed_in
from pipelines.intake.pdf.page.labels import Labelled, find_label, is_row
from pipelines.intake.pdf.page.page import Line

_IN = re.compile(r"\b(?:total (?:credits|deposits|money in|paid in)|money in total)\b(?! \()", re.IGNORECASE)
_OUT = re.compile(r"\b(?:total (?:debits|withdrawals|money out|paid out)|money out total)\b(?! \()", re.IGNORECASE)


def contradiction_by_totals(
    lines: Sequence[Line], amounts: Sequence[Decimal], opening: Decimal | None, closing: Decimal | None
) -> str | None:
    """Return how stated totals contradict the rows; None if nothing is stated or they agree."""
    summary = [line for line in lines if not is_row(line)]
    into, out = next(_totals(summary, _IN), None), next(_totals(summary, _OUT), None)
    if into is None or out is None or opening is None or closing is None or into == out:
        return None
    if opening - into + out == closing:
        return "By the summary's totals, the balances are debts where they were read as money held, or the reverse."
    read = sum(amount for amount in amounts if amount > 0), -sum(amount for amount in amounts if amount < 0)
    if opening + into - out != closing or read == (into, out):
        return None
    return f"The summary states {into:,.2f} in and {out:,.2f} out; the rows give {read[0]:,.2f} and {read[1]:,.2f}."


def _totals(lines: Sequence[Line], label: re.Pattern[str]) -> Iterator[Decimal]:
    yield from (value for found in find_label(lines, label) if (value := _value(found)) is not None)


def _value(found: Labelled) -> Decimal | None:
    for words in (found.beside, *found.below):
        if amounts := printed_in(words):
            return amounts[0].money.value
    return None
