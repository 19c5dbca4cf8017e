"""The sums of money in and of money out that a summary states, against those of the rows.

They are only gone by where they are of this statement: with the opening balance they make the closing one. A summary
that makes it the other way round counts debts, whatever the balances were taken for.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

from pipelines.intake.pdf.page.amounts import printed_in
from pipelines.intake.pdf.page.labels import Labelled, is_row, labelled
from pipelines.intake.pdf.page.page import Line

_IN = re.compile(r"\b(?:total (?:credits|deposits|money in|paid in)|money in total)\b(?! \()", re.IGNORECASE)
_OUT = re.compile(r"\b(?:total (?:debits|withdrawals|money out|paid out)|money out total)\b(?! \()", re.IGNORECASE)


def contradicted(
    lines: Sequence[Line], amounts: Sequence[Decimal], opening: Decimal | None, closing: Decimal | None
) -> str | None:
    """What the stated sums say against the rows; None where nothing is stated, or where they agree."""
    summary = [line for line in lines if not is_row(line)]
    into, out = next(_sums(summary, _IN), None), next(_sums(summary, _OUT), None)
    if into is None or out is None or opening is None or closing is None or into == out:
        return None
    if opening - into + out == closing:
        return "The sums of the summary say that its balances are debts, or the contrary of what they were taken for."
    read = sum(each for each in amounts if each > 0), -sum(each for each in amounts if each < 0)
    if opening + into - out != closing or read == (into, out):
        return None
    return f"The summary states {into:,.2f} in and {out:,.2f} out; the rows make {read[0]:,.2f} and {read[1]:,.2f}."


def _sums(lines: Sequence[Line], label: re.Pattern[str]) -> Iterator[Decimal]:
    yield from (value for found in labelled(lines, label) if (value := _value(found)) is not None)


def _value(found: Labelled) -> Decimal | None:
    for words in (found.beside, *found.below):
        if amounts := printed_in(words):
            return amounts[0].money.value
    return None
