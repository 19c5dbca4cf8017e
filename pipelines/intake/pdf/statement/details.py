"""Find a statement's account, its period and the balances that it states.

Details are found by words that all banks use, anywhere on the pages; a layout adds the bank and what its pages don't
say. A detail that is not printed is None: nothing is guessed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import chain

from pipelines.intake.pdf.document.documents import Document
from pipelines.intake.pdf.document.missing_pages import missing_page
from pipelines.intake.pdf.document.sections import Section
from pipelines.intake.pdf.layout.layouts import Layout
from pipelines.intake.pdf.page.account_numbers import AccountNumber, numbers_on
from pipelines.intake.pdf.page.dates import leading_date
from pipelines.intake.pdf.page.labels import cells, has_amount, is_row, text_of
from pipelines.intake.pdf.page.page import Line, Page
from pipelines.intake.pdf.page.periods import period_of
from pipelines.intake.pdf.page.result import Kind
from pipelines.intake.pdf.statement.account_names import account_name
from pipelines.intake.pdf.statement.account_types import account_type
from pipelines.intake.pdf.statement.currencies import currency_of
from pipelines.intake.pdf.statement.owing import has_two_columns, minus_of_rows
from pipelines.intake.pdf.statement.stated import stated_in
from pipelines.intake.pdf.table.rows import mark_kind

_HEAD = 40  # lines at the head of a section; fewer if its rows begin before
_LINES_OF_A_LOGO = 4
_BANK_ALONE = re.compile(
    r"(?:[A-Z][\w&.'’-]* ){0,4}(?:[A-Z]*Bank|Credit Union|Building Society|Mutual)(?: [A-Z][a-z]+)?"
)
_LEGAL_LINE = re.compile(
    r"(?:^|[©.|] )((?:[A-Z][\w&.'’-]*,? ){0,5}?(?:[A-Z]*Bank|Credit Union|Building Society|Mutual|Banking Group)\b"
    r"(?: (?:Australia|Limited|Ltd|Pty|of [A-Z]\w+))*)[ ,(].*\b(?:ABN|ACN|AFSL|Credit Licence)\b"
)
_INTERIM = re.compile(
    r"\binterim (?:statement|account)|\b(?:transactions|activity) since (?:your |the )?last statement|"
    r"\bunbilled|\bmini.?statement",
    re.IGNORECASE,
)
_LISTING = re.compile(
    r"\btransactions? (?:listing|list|history|search|summary|report|export)\b|\baccount (?:activity|history)\b|"
    r"\b(?:printed|generated|created|downloaded|exported|produced) (?:on|at|by|from)\b|"
    r"\binternet banking print|\brecent transactions\b|\bproof of balance|"
    r"\bnot an? (?:official |formal |bank )*statement",
    re.IGNORECASE,
)
_STATEMENT = re.compile(
    r"\bstatement (?:number|no\.?|period|of account|starts|ends|from|for|date|start date)\b|"
    r"\b(?:your|account|bank|electronic|card|loan|credit card|monthly) statement\b|\bstatement\b",
    re.IGNORECASE,
)


_HOLD_MONEY = ("transaction", "savings", "term_deposit")  # types of accounts that are no debts, whatever the rows say


@dataclass(frozen=True)
class Details:
    """What a statement says about an account outside its rows. Balances are the holder's: a debt is negative."""

    bank: str | None
    bank_name: str | None
    account_name: str | None
    bsb: str | None
    account_number: str | None
    account_type: str | None
    kind: Kind
    period_start: date | None
    period_end: date | None
    opening_balance: Decimal | None
    closing_balance: Decimal | None
    openings: tuple[Decimal, ...]  # all that may be the opening balance
    closings: tuple[Decimal, ...]  # all that may be the closing balance
    is_debt: bool  # a card or a loan, whatever marks its balances have
    balance_is_owing: bool  # a balance without a mark is a debt
    minus: int | None  # what a minus at an amount means by the words of rows: 1 money in, -1 money out
    signs_stated: bool  # the pages say whether it is a debt or an account with money
    credit_limit: Decimal | None
    currency: str | None  # ISO 4217; None if not stated
    missing_page: str | None  # why a page must be missing in the file


def details_of(section: Section, document: Document, layout: Layout | None) -> Details:
    """Find the details of a section. Details that it omits, such as the period, come from its document's first page."""
    lines, head = section.lines, _head_of(section.lines)
    cover = document.pages[0].lines
    account, kind_of_account = _account(lines, cover), account_type(head, layout)
    start, end = _period(lines, cover)
    minus = minus_of_rows(lines, is_debt=_is_debt(kind_of_account, layout))
    holds_money = kind_of_account in _HOLD_MONEY or account.bsb is not None or has_two_columns(lines)
    is_debt = _is_debt(kind_of_account, layout) or (minus == 1 and not holds_money)
    stated = stated_in(lines, is_debt=is_debt, minus=minus)
    is_framed = None not in (start, end, stated.opening, stated.closing)
    return Details(
        bank=layout.slug if layout else None,
        bank_name=layout.name if layout else _bank_name(document.pages),
        account_name=account_name(head, layout) or account_name(cover, layout),
        bsb=account.bsb,
        account_number=account.number,
        account_type=kind_of_account,
        kind=_kind(head, cover, layout, is_statement=is_framed or any(map(_closes, lines))),
        period_start=start,
        period_end=end,
        opening_balance=stated.opening,
        closing_balance=stated.closing,
        openings=stated.openings,
        closings=stated.closings,
        is_debt=stated.is_debt,
        balance_is_owing=stated.is_owing,
        minus=minus,
        signs_stated=stated.is_debt or kind_of_account is not None or account.bsb is not None,
        credit_limit=stated.credit_limit,
        currency=currency_of(lines, document.pages),
        missing_page=missing_page(lines, document, opens=stated.opening is not None, closes=stated.closing is not None),
    )


def _is_debt(kind_of_account: str | None, layout: Layout | None) -> bool:
    if kind_of_account is not None:
        return kind_of_account in ("loan", "credit_card")
    return layout is not None and layout.balance_owing


def _bank_name(pages: Sequence[Page]) -> str | None:
    """Return the name of a bank without a layout: in its legal line, else at the head of the first page."""
    lines = [line for page in pages[:2] for line in page.lines]
    legal = (match[1].strip() for line in lines if (match := _LEGAL_LINE.search(line.text)))
    heads = (text_of(cell) for line in lines[:_LINES_OF_A_LOGO] for cell in cells(line.words))
    return next(chain(legal, filter(_BANK_ALONE.fullmatch, heads)), None)


def _head_of(lines: Sequence[Line]) -> Sequence[Line]:
    """Return the lines before the rows, but at least six, because a section may begin with rows."""
    rows = (position for position, line in enumerate(lines) if is_row(line))
    return lines[: max(next(rows, _HEAD), 6)][:_HEAD]


def _period(lines: Sequence[Line], cover: Sequence[Line]) -> tuple[date | None, date | None]:
    own = period_of(lines)
    return own if any(own) else period_of(cover)


def _account(lines: Sequence[Line], cover: Sequence[Line]) -> AccountNumber:
    """Return the account's number and BSB: preferably printed together, else the number here and a BSB on the cover."""
    own, on_cover = list(numbers_on(lines)), list(numbers_on(cover))
    found = own or on_cover
    plain = next((account for account in found if account.number and not account.is_card), None)
    numbered = plain or next((account for account in found if account.number), None)
    number = numbered.number if numbered else None
    both = (*own, *on_cover)
    together = (account.bsb for account in both if number is not None and account.number == number and account.bsb)
    alone = (account.bsb for account in both if account.number is None and account.bsb)
    return AccountNumber(next(chain(together, alone), None), number)


def _closes(line: Line) -> bool:
    """Return whether a line is a row with the closing balance, which no listing from online banking has."""
    day = leading_date(line.text)
    return day is not None and has_amount(line.text) and mark_kind(line.text[day[1] :].strip()) == "closing"


def _kind(head: Sequence[Line], cover: Sequence[Line], layout: Layout | None, *, is_statement: bool) -> Kind:
    """Return the kind that the document calls itself at its head.

    If it doesn't say, it is a statement if it has a period and both balances, or a closing row. Otherwise it is what
    the layout says, or a listing if there is no layout.
    """
    texts = [line.text for line in chain(cover[:_HEAD], head) if not has_amount(line.text)]
    if any(_INTERIM.search(text) for text in texts):
        return Kind.INTERIM
    listing = sum(bool(_LISTING.search(text)) for text in texts)
    statement = sum(bool(_STATEMENT.search(text)) and not _LISTING.search(text) for text in texts)
    if listing != statement:
        return Kind.LISTING if listing > statement else Kind.STATEMENT
    return Kind.STATEMENT if is_statement else layout.kind if layout else Kind.LISTING
