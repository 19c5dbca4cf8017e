"""Decide money in or out only from what is printed: the column, CR and DR, a minus, brackets, the title above the row,
and whether balances without a mark are money or debts.

A sign is never chosen to make a balance agree, because balances can't prove a sign that was taken from them. Rows
without a printed sign get the one that balances suggest, and this is reported.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from pipelines.intake.pdf.page.amounts import NEGATIVE_MARKS, Money
from pipelines.intake.pdf.table.rows import Mark, RawRow

_MIN_AGAINST = 3  # descriptions; our judgement: fewer may be reversals
_WORDS_IN = re.compile(
    r"\b(?:deposit|direct credit|payment received|thank you|refund|interest (?:paid|earned)|credit interest)\b",
    re.IGNORECASE,
)
_WORDS_OUT = re.compile(
    r"\b(?:withdrawal|wdl|purchase|eftpos|atm|fees?|charges?|interest charged|cash advance)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Signed:
    """Amounts and balances from the holder's point of view: money out and debts are negative.

    `is_evident`: each sign is printed in some way. `is_contradicted`: on a debt, descriptions contradict most signs, as
    if it were not a debt. No balance can show this. `unreadable`: rows with both money in and out, or with
    contradictory marks.
    """

    amounts: tuple[Decimal, ...]
    balances: tuple[Decimal | None, ...]
    marks: tuple[Decimal | None, ...]
    is_evident: bool
    is_contradicted: bool = False
    unreadable: tuple[int, ...] = ()


@dataclass(frozen=True)
class AccountFacts:
    """What a statement says about an account outside its rows.

    `is_owing`: a balance without a mark is a debt. `is_debt`: it is a card or a loan, whatever marks its balances have.
    `minus`: what a minus at an amount means by the words of the rows, 1 money in and -1 money out. `is_known`: the
    pages say whether it is a debt or an account with money.
    """

    is_owing: bool
    is_debt: bool = False
    minus: int | None = None
    is_known: bool = True


def decide_signs(rows: Sequence[RawRow], marks: Sequence[Mark], stated: AccountFacts, *, columns_known: bool) -> Signed:
    """Decide the signs of a table's rows.

    Args:
        rows: as printed.
        marks: balances between them.
        stated: about the account.
        columns_known: the columns have printed headings; if not, it was assumed which is out and which is in.
    """
    conventions = _Conventions.of(rows, stated)
    found = [conventions.amount(row, columns_known=columns_known) for row in rows]
    return Signed(
        amounts=tuple(amount + 0 for amount, _ in found),  # turns -0 into 0
        balances=tuple(_balance(row.balance, stated.is_owing) for row in rows),
        marks=tuple(_balance(mark.money, stated.is_owing) for mark in marks),
        is_evident=all(evident for _, evident in found),
        is_contradicted=stated.is_owing and _is_contradicted(rows, [amount for amount, _ in found]),
        unreadable=tuple(index for index, row in enumerate(rows) if _is_unreadable(row)),
    )


def _is_contradicted(rows: Sequence[RawRow], amounts: Sequence[Decimal]) -> bool:
    """Return whether descriptions contradict more signs in a column of amounts than they confirm."""
    worded = [
        (_worded_sign(row.description), amount)
        for row, amount in zip(rows, amounts, strict=True)
        if "amount" in row.flows and amount
    ]
    against = sum(sign * amount < 0 for sign, amount in worded)
    return against >= _MIN_AGAINST and against > sum(sign * amount > 0 for sign, amount in worded)


def _worded_sign(description: str) -> int:
    is_in, is_out = bool(_WORDS_IN.search(description)), bool(_WORDS_OUT.search(description))
    return is_in - is_out


def _is_unreadable(row: RawRow) -> bool:
    amounts = [money for money in row.flows.values() if money.value]
    return len(amounts) > 1 or any(money.is_contradictory for money in amounts)


def _balance(money: Money | None, is_owing: bool) -> Decimal | None:
    """Return a balance with its sign. CR and DR decide it; without them, a debt is negative, and with a
    minus positive.
    """
    if money is None or money.is_contradictory:
        return None
    if money.is_worded:
        return money.value * (money.sign or 1)
    return (-1 if is_owing else 1) * money.value * (money.sign or 1)


@dataclass(frozen=True)
class _Conventions:
    """The meaning of a bare amount and of a minus in each column of a table.

    `turns_evident`: inverting all signs would contradict something that is printed, although not the balances.
    """

    bare: int | None  # sign of an amount without a mark in a column of amounts
    minus: int  # sign of an amount with a minus there
    habits: frozenset[str]  # columns of one direction whose amounts usually have a minus
    is_debt: bool
    turns_evident: bool

    @classmethod
    def of(cls, rows: Sequence[RawRow], stated: AccountFacts) -> "_Conventions":
        amounts = [row.flows["amount"] for row in rows if "amount" in row.flows]
        marks = {money.mark for money in amounts if money.mark and not money.is_contradictory}
        is_debt = stated.is_debt or stated.is_owing
        worded = stated.minus if is_debt or not stated.is_known else None  # on other accounts, a minus is money out
        minus = worded or (1 if stated.is_owing or (stated.is_debt and _has_debit_balances(rows)) else -1)
        evident = stated.is_known or stated.minus is not None
        return cls(
            _bare(marks, minus, is_debt=is_debt), minus, _columns_with_minus(rows, is_debt=is_debt), is_debt, evident
        )

    def amount(self, row: RawRow, *, columns_known: bool) -> tuple[Decimal, bool]:
        """Return a row's amount, and whether its sign is printed."""
        role, money = next(
            ((role, money) for role, money in row.flows.items() if money.value), next(iter(row.flows.items()))
        )
        if role == "amount":
            sign = self._sign_of_amount(row, money)
            evident = sign is not None and self._is_printed(row, money)
            return money.value * (sign or 1), evident or not money.value
        return money.value * self._sign_of_column(role, money), columns_known or money.is_worded

    def _sign_of_amount(self, row: RawRow, money: Money) -> int | None:
        if row.sign is not None:
            return row.sign * (-1 if money.mark in NEGATIVE_MARKS else 1)
        if money.is_worded:
            return money.sign
        if (titled := self._sign_of_title(row)) is not None:
            return -titled if money.mark in NEGATIVE_MARKS and titled != self.minus else titled
        if money.mark == "+":
            return 1
        return self.minus if money.mark in NEGATIVE_MARKS else self.bare

    def _is_printed(self, row: RawRow, money: Money) -> bool:
        """Return whether something other than a minus or its absence shows an amount's sign."""
        return self.turns_evident or row.sign is not None or money.is_worded or money.mark == "+" or bool(row.title)

    def _sign_of_title(self, row: RawRow) -> int | None:
        if row.title is None:
            return None
        return row.title.sign_if_owing if self.is_debt else row.title.sign

    def _sign_of_column(self, role: str, money: Money) -> int:
        usual = -1 if role == "debit" else 1
        if money.is_worded:
            return money.sign or usual
        turned = money.mark in NEGATIVE_MARKS and role not in self.habits
        return -usual if turned else usual


def _has_debit_balances(rows: Sequence[RawRow]) -> bool:
    """Return whether debts are marked DR or OD, so that money out does not need a minus."""
    return any(row.balance is not None and row.balance.mark in ("DR", "OD") for row in rows)


def _columns_with_minus(rows: Sequence[RawRow], *, is_debt: bool) -> frozenset[str]:
    """Return the columns in which a minus is a convention and doesn't invert the sign: most amounts out have it, or all
    amounts in. A single amount in with a minus is a reversal, but on a debt it may be a payment.
    """
    outward, inward = ([row.flows[role] for row in rows if role in row.flows] for role in ("debit", "credit"))
    out = sum(money.mark in NEGATIVE_MARKS for money in outward) * 2 > len(outward)
    into = len(inward) > (0 if is_debt else 1) and all(money.mark in NEGATIVE_MARKS for money in inward)
    return frozenset(role for role, has in (("debit", out), ("credit", into)) if has)


def _bare(marks: set[str], minus: int, *, is_debt: bool) -> int | None:
    """Return the sign of an amount without a mark: the opposite of marked ones, or money out on a debt."""
    has_minus = bool(marks & set(NEGATIVE_MARKS))
    has_in = bool(marks & {"CR", "C", "+"}) or (has_minus and minus > 0)
    has_out = bool(marks & {"DR", "D", "OD"}) or (has_minus and minus < 0)
    if is_debt:
        return None if has_out and has_in else 1 if has_out else -1
    if has_in == has_out:
        return None
    return -1 if has_in else 1


def suggest_signs(signed: Signed, rows: Sequence[RawRow], opening: Decimal | None) -> Signed:
    """Give amounts without a printed sign the one that the balances on both sides suggest, so that the rows are usable.
    They remain unproved.
    """
    if signed.is_evident:
        return signed
    if any(role in row.flows for row in rows for role in ("debit", "credit")):
        turned = tuple(-amount for amount in signed.amounts)
        better = _count_following(turned, signed.balances, opening) > _count_following(
            signed.amounts, signed.balances, opening
        )
        return replace(signed, amounts=turned if better else signed.amounts)
    befores = (opening, *signed.balances[:-1])
    return replace(
        signed,
        amounts=tuple(
            -amount if before is not None and after is not None and before - amount == after != before else amount
            for before, amount, after in zip(befores, signed.amounts, signed.balances, strict=True)
        ),
    )


def _count_following(amounts: Sequence[Decimal], balances: Sequence[Decimal | None], opening: Decimal | None) -> int:
    befores = (opening, *balances[:-1])
    return sum(
        before is not None and after is not None and before + amount == after
        for before, amount, after in zip(befores, amounts, balances, strict=True)
    )
