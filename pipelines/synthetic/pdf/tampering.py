"""Forgeries: one row removed, or one digit changed. Sums in the table follow, as with a careful forger."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from random import Random
from types import MappingProxyType

from pipelines.synthetic.pdf.layout import PdfLayout
from pipelines.synthetic.pdf.table import Line

Forgery = Callable[[Sequence[Line], Sequence[int], Random], list[Line]]


def _delete_row(lines: Sequence[Line], provable: Sequence[int], rng: Random) -> list[Line]:
    gone = rng.choice(provable)
    return [line for n, line in enumerate(lines) if n != gone]


def _change_amount(lines: Sequence[Line], provable: Sequence[int], rng: Random) -> list[Line]:
    changed = rng.choice(provable)
    amount = _other_digit(lines[changed].amount, rng)
    return [replace(line, amount=amount) if n == changed else line for n, line in enumerate(lines)]


def _change_balance(lines: Sequence[Line], provable: Sequence[int], rng: Random) -> list[Line]:
    shown = [n for n in provable if lines[n].balance_shown]
    if not shown:
        raise ValueError("there is no balance to change")
    changed = rng.choice(shown)
    balance = _other_digit(lines[changed].balance, rng)
    return [replace(line, balance=balance) if n == changed else line for n, line in enumerate(lines)]


def _other_digit(value: Decimal, rng: Random) -> Decimal:
    """Replace one digit by another, never by a zero."""
    text = f"{abs(value):.2f}"
    at = rng.choice([n for n, sign in enumerate(text) if sign != "."])
    others = [digit for digit in "123456789" if digit != text[at]]
    return Decimal(text[:at] + rng.choice(others) + text[at + 1 :]).copy_sign(value)


FORGERIES: Mapping[str, Forgery] = MappingProxyType(
    {
        "row deleted": _delete_row,
        "digit of an amount changed": _change_amount,
        "digit of a balance changed": _change_balance,
    }
)


def provable(lines: Sequence[Line], *, between_balances: bool) -> Sequence[int]:
    """Return the rows whose loss the paper can show: without end balances, not the first and not the last."""
    return range(len(lines)) if between_balances else range(1, len(lines) - 1)


def forgeries_of(layout: PdfLayout) -> list[str]:
    """Return the forgeries that a paper of that layout can have."""
    return [name for name, done in FORGERIES.items() if layout.balances != "none" or done is not _change_balance]
