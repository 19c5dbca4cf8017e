"""Find the balances and limits that a statement states, and whether a balance without a sign is money or a debt."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain

from pipelines.intake.pdf.document.missing_pages import is_between_pages
from pipelines.intake.pdf.page.amounts import Money, printed_in
from pipelines.intake.pdf.page.dates import leading_date
from pipelines.intake.pdf.page.labels import Labelled, find_label, is_row, text_of, wrapped_labels
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
_OTHER_CLOSING = re.compile(r"\b(?:current balance|account balance|carried forward|c/f(?:wd)?)\b", re.IGNORECASE)
_OWING = re.compile(
    r"\b(?:(?:total |amount |(?<!opening )balance )(?:amount )?(?:owing|owed|outstanding)|you owe|"
    r"outstanding balance|payout (?:figure|amount))\b",
    re.IGNORECASE,
)
_LIMIT = re.compile(r"\b(?:credit|overdraft|account|approved|facility|card|loan) limit\b", re.IGNORECASE)
_MINIMUM = re.compile(r"\bmin(?:imum|\.)? (?:monthly )?(?:payment|repayment|amount)(?: due)?\b", re.IGNORECASE)
_WHOLE_DOLLARS = re.compile(r"[: ]*\$ ?([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?![0-9.,])")
_MAX_CANDIDATES = 6
_JOINING_WORDS = re.compile(
    r"^(?:[:=*$+()]+|(?:as )?(?:at|on|of|is|for|from|to|owing|owed|statement|period|your|the|this|last|date|blank|"
    r"aud)\b[:,]?)\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Stated:
    """Balances from the holder's point of view: a debt is negative. None if not stated.

    `openings`, `closings`: all candidates in reading order. A label may have several figures if panels are side by side
    or a page has several accounts.
    """

    opening: Decimal | None
    closing: Decimal | None
    openings: tuple[Decimal, ...]
    closings: tuple[Decimal, ...]
    is_debt: bool  # the account is a debt, whatever marks its balances have
    is_owing: bool  # a balance without a mark is a debt
    credit_limit: Decimal | None


def stated_in(lines: Sequence[Line], *, is_debt: bool, minus: int | None) -> Stated:
    """Find what the lines of one account state.

    Args:
        lines: of the account.
        is_debt: the account is a loan or a card by other words.
        minus: what a minus at an amount means by the words of the rows: 1 money in, -1 money out.
    """
    opening = _first(lines, _OPENING) or _first(lines, _BROUGHT)
    owed = _first(lines, _OWING)
    closing = _most_frequent(lines, _CLOSING) or owed or _last(lines, _OTHER_CLOSING)
    is_debt = is_debt or owed is not None
    is_owing = is_debt and _is_owing(lines, opening, closing, minus)
    openings = _candidates(lines, _OPENING) or _candidates(lines, _BROUGHT)
    closings = _candidates(lines, _CLOSING) or _candidates(lines, _OWING) or _candidates(lines, _OTHER_CLOSING)
    return Stated(
        opening=_with_sign(opening, is_owing),
        closing=_with_sign(closing, is_owing),
        openings=_distinct_with_signs(openings, is_owing),
        closings=_distinct_with_signs(closings, is_owing),
        is_debt=is_debt,
        is_owing=is_owing,
        credit_limit=_limit(lines),
    )


def _is_owing(lines: Sequence[Line], opening: Money | None, closing: Money | None, minus: int | None) -> bool:
    """Return whether balances without a mark are debts, and those with CR or a minus are in credit; False: the reverse.

    A minus alone proves nothing. If it means money in at an amount, it means in credit at a balance. Else the minimum
    payment shows whether the closing balance is a debt. Else, if all balances have a minus, they are debts: a card is
    rarely in credit for a whole period.
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


def _with_sign(balance: Money | None, is_owing: bool) -> Decimal | None:
    if balance is None:
        return None
    if balance.is_worded or not is_owing:
        return balance.value * (balance.sign or 1)
    return -balance.value * (balance.sign or 1)


def _distinct_with_signs(balances: Sequence[Money], is_owing: bool) -> tuple[Decimal, ...]:
    """Return the distinct balances, at most _MAX_CANDIDATES."""
    with_signs = (_with_sign(balance, is_owing) for balance in balances)
    return tuple(dict.fromkeys(balance for balance in with_signs if balance is not None))[:_MAX_CANDIDATES]


def _limit(lines: Sequence[Line]) -> Decimal | None:
    """Return the credit limit, which may be printed in whole dollars."""
    found = _first(lines, _LIMIT)
    return found.value if found else next(_dollars(lines, _LIMIT), None)


def _dollars(lines: Sequence[Line], label: re.Pattern[str]) -> Iterator[Decimal]:
    for found in find_label(lines, label):
        for text in (found.text_after, *map(text_of, found.below)):
            if match := _WHOLE_DOLLARS.match(text):
                yield Decimal(match[1].replace(",", "") + ".00")


def _first(lines: Sequence[Line], label: re.Pattern[str]) -> Money | None:
    return next(_amounts(lines, label), None)


def _last(lines: Sequence[Line], label: re.Pattern[str]) -> Money | None:
    return next(reversed([*_amounts(lines, label)]), None)


def _most_frequent(lines: Sequence[Line], label: re.Pattern[str]) -> Money | None:
    """Return the amount that is stated most often; of several such amounts, the last."""
    found = Counter(reversed([*_amounts(lines, label)]))
    return max(found, key=lambda money: found[money]) if found else None


def _amounts(lines: Sequence[Line], label: re.Pattern[str]) -> Iterator[Money]:
    """Yield the amount at each occurrence of a label: directly after it, else below it."""
    yield from (figures[0] for found in _places(lines, label) if (figures := _figures(found)))


def _candidates(lines: Sequence[Line], label: re.Pattern[str]) -> Sequence[Money]:
    """Return all amounts at each occurrence of a label outside rows."""
    return [amount for found in _places(lines, label) if not is_row(found.line) for amount in _figures(found)]


def _places(lines: Sequence[Line], label: re.Pattern[str]) -> Iterator[Labelled]:
    """Yield the occurrences of a label, except balances carried between pages, which are not the statement's."""
    for found in find_label(lines, label) if _has_label(lines, label) else wrapped_labels(lines, label):
        if not is_between_pages(lines, found.position):
            yield found


def _figures(found: Labelled) -> Sequence[Money]:
    """Return the candidates at a label, the likeliest first: directly after it, then below it."""
    below = next((money for cell in found.below if (money := _leading_amount(cell))), None)
    return [amount for amount in (_following_amount(found), below) if amount]


def _has_label(lines: Sequence[Line], label: re.Pattern[str]) -> bool:
    return any(label.search(line.text) for line in lines)


def _following_amount(found: Labelled) -> Money | None:
    """Return the amount after a label and perhaps a date; of several, the last, because totals precede a balance."""
    words = _skip_joining_words(found.beside)
    last = None
    amounts = printed_in(words)
    for amount, expected in zip(amounts, chain((0,), (before.stop for before in amounts)), strict=False):
        if amount.start != expected:
            break
        last = amount.money
    return last


def _skip_joining_words(words: Sequence[Word]) -> Sequence[Word]:
    """Skip words such as `as at 31 March 2025` or `:` before an amount."""
    while words and not _leading_amount(words):
        text = " ".join(word.text for word in words)
        joining, day = _JOINING_WORDS.match(text), leading_date(text)
        taken = day[1] if day else joining.end() if joining else 0
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


def _leading_amount(words: Sequence[Word]) -> Money | None:
    """Return the amount that words begin with."""
    found = printed_in(words)
    return found[0].money if found and found[0].start == 0 else None
