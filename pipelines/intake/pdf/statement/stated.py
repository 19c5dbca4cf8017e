"""The balances and limits that a statement states, and whether a balance without a sign is money or a debt."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain

from pipelines.intake.pdf.document.missing_pages import is_between_pages
from pipelines.intake.pdf.page.amounts import Money, printed_in
from pipelines.intake.pdf.page.dates import leading
from pipelines.intake.pdf.page.labels import Labelled, is_row, labelled, text_of, wrapped_labels
from pipelines.intake.pdf.page.page import Line, Word
from pipelines.intake.pdf.statement.owing import balances_below_zero

_OPENING = re.compile(
    r"\b(?:opening ?balance|previous (?:statement )?balance|starting balance|beginning balance|start(?:ing)? balance|"
    r"last statement balance|balance (?:at|from) (?:the )?(?:start|beginning|last statement|previous statement))",
    re.IGNORECASE,
)
_BROUGHT = re.compile(r"\b(?:balance )?(?:brought forward|b/f(?:wd)?)\b", re.IGNORECASE)
_CLOSING = re.compile(
    r"\b(?:closing (?:account )?balance|closingbalance|new (?:statement )?balance|ending balance|end(?:ing)? balance|"
    r"finishing balance|balance (?:at|as at) (?:the )?(?:end|close)(?: of)?)",
    re.IGNORECASE,
)
_AS_PRINTED = re.compile(r"\b(?:current balance|account balance|carried forward|c/f(?:wd)?)\b", re.IGNORECASE)
_OWING = re.compile(
    r"\b(?:(?:total |amount |(?<!opening )balance )(?:amount )?(?:owing|owed|outstanding)|you owe|"
    r"outstanding balance|payout (?:figure|amount))\b",
    re.IGNORECASE,
)
_LIMIT = re.compile(r"\b(?:credit|overdraft|account|approved|facility|card|loan) limit\b", re.IGNORECASE)
_MINIMUM = re.compile(r"\bmin(?:imum|\.)? (?:monthly )?(?:payment|repayment|amount)(?: due)?\b", re.IGNORECASE)
_WHOLE_DOLLARS = re.compile(r"[: ]*\$ ?([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?![0-9.,])")
_MOST_CANDIDATES = 6
_JOINS = re.compile(
    r"^(?:[:=*$+()]+|(?:as )?(?:at|on|of|is|for|from|to|owing|owed|statement|period|your|the|this|last|date|blank|"
    r"aud)\b[:,]?)\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Stated:
    """Balances signed for the holder: a debt is negative. None where the statement doesn't state them.

    `openings`, `closings`: all that may be meant, in reading order: where panels stand side by side, or a page tells of
    several accounts, more than one figure stands at a label.
    """

    opening: Decimal | None
    closing: Decimal | None
    openings: tuple[Decimal, ...]
    closings: tuple[Decimal, ...]
    is_debt: bool  # the account is owed, whatever its balances bear
    is_owing: bool  # a balance without a mark is a debt
    credit_limit: Decimal | None


def stated_in(lines: Sequence[Line], *, is_debt: bool, minus: int | None) -> Stated:
    """What the lines of one account state.

    Args:
        lines: of the account.
        is_debt: the account is a loan or a card, as far as other words tell.
        minus: what a minus at an amount is by the words of the rows: 1 money in, -1 money out.
    """
    opening = _first(lines, _OPENING) or _first(lines, _BROUGHT)
    owed = _first(lines, _OWING)
    closing = _usual(lines, _CLOSING) or owed or _last(lines, _AS_PRINTED)
    is_debt = is_debt or owed is not None
    is_owing = is_debt and _is_owing(lines, opening, closing, minus)
    openings = _candidates(lines, _OPENING) or _candidates(lines, _BROUGHT)
    closings = _candidates(lines, _CLOSING) or _candidates(lines, _OWING) or _candidates(lines, _AS_PRINTED)
    return Stated(
        opening=_signed(opening, is_owing),
        closing=_signed(closing, is_owing),
        openings=_each_signed(openings, is_owing),
        closings=_each_signed(closings, is_owing),
        is_debt=is_debt,
        is_owing=is_owing,
        credit_limit=_limit(lines),
    )


def _is_owing(lines: Sequence[Line], opening: Money | None, closing: Money | None, minus: int | None) -> bool:
    """Debts are printed bare, and money in credit with CR or a minus; unless debts bear a mark of their own.

    A minus says nothing by itself. Where it is money in on a row, it is that at a balance. Else what is to be paid
    tells whether the balance is a debt; at last debts bear it if all balances have one: seldom is a card in credit from
    first to last.
    """
    balances = [balance for balance in (opening, closing) if balance is not None]
    if any(balance.mark in ("DR", "D", "OD") for balance in balances):
        return False
    if minus == 1:
        return True
    stated = [balance.mark in ("-", "()") for balance in balances if balance.value]
    in_rows = balances_below_zero(lines)
    if not any(stated) and not any(in_rows):
        return True
    minimum = _first(lines, _MINIMUM)
    if minimum is not None and closing is not None and closing.value:
        is_in_credit = not minimum.value
        return is_in_credit == stated[-1]
    return not all(stated) if stated else sum(in_rows) * 2 <= len(in_rows)


def _signed(balance: Money | None, is_owing: bool) -> Decimal | None:
    if balance is None:
        return None
    if balance.is_worded or not is_owing:
        return balance.value * (balance.sign or 1)
    return -balance.value * (balance.sign or 1)


def _each_signed(balances: Sequence[Money], is_owing: bool) -> tuple[Decimal, ...]:
    """Each once; no more than somebody could have printed for one account."""
    signed = (_signed(balance, is_owing) for balance in balances)
    return tuple(dict.fromkeys(each for each in signed if each is not None))[:_MOST_CANDIDATES]


def _limit(lines: Sequence[Line]) -> Decimal | None:
    """Limits are printed in whole dollars, too."""
    found = _first(lines, _LIMIT)
    return found.value if found else next(_dollars(lines, _LIMIT), None)


def _dollars(lines: Sequence[Line], label: re.Pattern[str]) -> Iterator[Decimal]:
    for found in labelled(lines, label):
        for text in (found.behind, *map(text_of, found.below)):
            if match := _WHOLE_DOLLARS.match(text):
                yield Decimal(match[1].replace(",", "") + ".00")


def _first(lines: Sequence[Line], label: re.Pattern[str]) -> Money | None:
    return next(_amounts(lines, label), None)


def _last(lines: Sequence[Line], label: re.Pattern[str]) -> Money | None:
    return next(reversed([*_amounts(lines, label)]), None)


def _usual(lines: Sequence[Line], label: re.Pattern[str]) -> Money | None:
    """What is stated most often; of two the later."""
    found = Counter(reversed([*_amounts(lines, label)]))
    return max(found, key=lambda each: found[each]) if found else None


def _amounts(lines: Sequence[Line], label: re.Pattern[str]) -> Iterator[Money]:
    """The amount at each place of a label: what directly follows, else what stands below."""
    yield from (figures[0] for found in _places(lines, label) if (figures := _figures(found)))


def _candidates(lines: Sequence[Line], label: re.Pattern[str]) -> Sequence[Money]:
    """All amounts at each place of a label outside of rows: what the table states is never taken for another's."""
    return [amount for found in _places(lines, label) if not is_row(found.line) for amount in _figures(found)]


def _places(lines: Sequence[Line], label: re.Pattern[str]) -> Iterator[Labelled]:
    """Where a label stands. What goes from page to page is no balance of the statement's."""
    for found in labelled(lines, label) if _stands(lines, label) else wrapped_labels(lines, label):
        if not is_between_pages(lines, found.position):
            yield found


def _figures(found: Labelled) -> Sequence[Money]:
    """What may be meant at a place, the likeliest first: what directly follows, then what stands below."""
    below = next((each for cell in found.below if (each := _leading(cell))), None)
    return [amount for amount in (_following(found), below) if amount]


def _stands(lines: Sequence[Line], label: re.Pattern[str]) -> bool:
    return any(label.search(line.text) for line in lines)


def _following(found: Labelled) -> Money | None:
    """Behind the label, and a date perhaps. Of several amounts in a row the last is it: before a balance stand sums."""
    words = _behind_joins(found.beside)
    last = None
    amounts = printed_in(words)
    for amount, expected in zip(amounts, chain((0,), (each.stop for each in amounts)), strict=False):
        if amount.start != expected:
            break
        last = amount.money
    return last


def _behind_joins(words: Sequence[Word]) -> Sequence[Word]:
    """Without `as at 31 March 2025`, `:` and the like before an amount."""
    while words and not _leading(words):
        text = " ".join(word.text for word in words)
        joins, day = _JOINS.match(text), leading(text)
        taken = day[1] if day else joins.end() if joins else 0
        if not taken:
            return ()
        words = _after(words, taken)
    return words


def _after(words: Sequence[Word], taken: int) -> Sequence[Word]:
    offset = 0
    for number, word in enumerate(words):
        if offset >= taken:
            return words[number:]
        offset += len(word.text) + 1
    return ()


def _leading(words: Sequence[Word]) -> Money | None:
    """The amount that words begin with."""
    found = printed_in(words)
    return found[0].money if found and found[0].start == 0 else None
