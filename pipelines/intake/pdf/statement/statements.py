"""Build one account's statement from its table: decide signs, dates and order (oldest first), and prove the rows.

After the proof, each step can only lower the verdict. A reason says why, if possible with the page.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from itertools import pairwise, product

from pipelines.intake.currencies import CURRENCY
from pipelines.intake.pdf.document.documents import Document
from pipelines.intake.pdf.document.missing_pages import gaps_in
from pipelines.intake.pdf.document.scanned import cap_verdict
from pipelines.intake.pdf.document.sections import Section
from pipelines.intake.pdf.page.dates import Resolved, resolve
from pipelines.intake.pdf.page.page import Page
from pipelines.intake.pdf.page.result import Entry, Kind, Reason, Statement, Verdict
from pipelines.intake.pdf.statement.details import Details
from pipelines.intake.pdf.statement.reconcile import Point, Posting, Proof, count_following, is_newest_first, prove
from pipelines.intake.pdf.table.rows import Mark, RawRow
from pipelines.intake.pdf.table.signs import AccountFacts, Signed, decide_signs, suggest_signs
from pipelines.intake.pdf.table.table import Table
from pipelines.intake.pdf.table.totals import contradiction_by_totals

_WORST = (Verdict.RECONCILED, Verdict.RECONCILED_DATES_DOUBTFUL, Verdict.PARTIAL, Verdict.UNRECONCILED)
# Reasons to doubt every amount of a statement: balances also agree if all signs are inverted.
_DOUBT_ALL = frozenset({"BalancesAmbiguous", "SignsUnproved", "SignsContradicted", "TotalsMismatch", "NeedsReview"})
_UNREADABLE_DATE = "A row's date couldn't be read; it has the date of the row above."
_AMBIGUOUS = Reason(
    "BalancesAmbiguous", "Several opening or closing balances are printed; which ones apply is not known."
)
_CHOSEN = Reason(
    "BalancesChosen", "Several opening or closing balances are printed; only one pair agrees with the rows."
)
_RESTORED = Reason(
    "PagesReordered", "The pages are out of order in the file; they were read in the order of their printed numbers."
)
_MIXED = Reason(
    "PageOrderUnknown", "Which statement a page belongs to is not known; the pages were left in the file's order."
)
_IN_ORDER = 0.95  # share of rows in order, from which the others are suspicious; our judgement


@dataclass(frozen=True)
class _Ordered:
    """A table's rows with their signs, oldest first."""

    rows: tuple[RawRow, ...]
    signed: Signed
    points: tuple[tuple[Mark, Point], ...]
    was_newest_first: bool


def statement_of(table: Table, details: Details, section: Section, document: Document, made: date | None) -> Statement:
    """Build the statement of a section whose table has been read.

    Args:
        table: the section's table.
        details: what the section states besides its rows.
        section: one account's part of the document.
        document: the document with the section.
        made: the day on which the file was created.
    """
    pages = [page for page in document.pages if section.first_page <= page.number <= section.last_page]
    ordered = _order_rows(_convert_to_sheets(table, pages), details, made)
    dates = _resolve_dates(ordered, details, made)
    details, proof = _choose_balances(ordered, details, dates)
    verdict, reasons = _judge(proof, ordered, dates, details, section, document, pages)
    others = tuple(_other_currency(row, details) for row in ordered.rows)
    proof = replace(proof, proved=_proved_rows(proof, ordered.signed, others, verdict, reasons))
    entries = tuple(_entries(ordered, dates, proof, others))
    opening, closing = _stated_balances(ordered, details)
    return Statement(
        bank=details.bank,
        bank_name=details.bank_name,
        account_name=details.account_name,
        bsb=details.bsb,
        account_number=details.account_number,
        account_type=details.account_type,
        kind=details.kind,
        period_start=details.period_start,
        period_end=details.period_end,
        opening_balance=opening,
        closing_balance=closing,
        credit_limit=details.credit_limit,
        verdict=verdict,
        reasons=reasons,
        entries=entries,
        first_page=min(page.sheet for page in pages),
        last_page=max(page.sheet for page in pages),
        read_by_ocr=any(page.read_by_ocr for page in pages),
        currency=details.currency,
    )


def _convert_to_sheets(table: Table, pages: Sequence[Page]) -> Table:
    """Convert the places of rows and balances to the sheets of the file as shown."""
    by_number = {page.number: page for page in pages}
    rows = tuple(
        replace(row, boxes=tuple(by_number[box.page].to_sheet(box) for box in row.boxes)) for row in table.rows
    )
    marks = tuple(replace(mark, page=by_number[mark.page].sheet) for mark in table.marks)
    return replace(table, rows=rows, marks=marks)


def _order_rows(table: Table, details: Details, made: date | None) -> _Ordered:
    """Order rows oldest first, whichever way they are printed."""
    rows, marks = _fill_in_days(table.rows), table.marks
    stated = AccountFacts(details.balance_is_owing, details.is_debt, details.minus, details.signs_stated)
    decided = decide_signs(rows, marks, stated, columns_known=not table.is_inferred)
    backwards = _runs_backwards(rows, marks, decided, details, made)
    if backwards:
        rows, marks = _reverse(rows, marks)
        decided = decide_signs(rows, marks, stated, columns_known=not table.is_inferred)
    points = tuple(
        (mark, Point(mark.before, balance, mark.page, f"the {mark.kind} balance"))
        for mark, balance in zip(marks, decided.marks, strict=True)
        if balance is not None
    )
    ordered = _Ordered(rows, decided, points, backwards)
    return replace(ordered, signed=suggest_signs(decided, rows, _stated_balances(ordered, details)[0]))


def _fill_in_days(rows: Sequence[RawRow]) -> tuple[RawRow, ...]:
    """Give each row its date, if a day's date is printed only once."""
    found: list[RawRow] = []
    for row in rows:
        above = found[-1] if found else None
        undated = row.date is None and above is not None
        found.append(replace(row, date=above.date, year=row.year or above.year) if undated and above else row)
    return tuple(found)


def _runs_backwards(
    rows: Sequence[RawRow], marks: Sequence[Mark], decided: Signed, details: Details, made: date | None
) -> bool:
    forwards, backwards = (
        count_following(decided.amounts, decided.balances),
        count_following(decided.amounts[::-1], decided.balances[::-1]),
    )
    if forwards != backwards:
        return backwards > forwards
    dates = _resolve_printed_dates(rows, details, made).dates
    if len(set(dates)) == 1:
        return _ends_with_opening(marks, len(rows)) or _begins_with_only_balance(rows)
    return is_newest_first(dates)


def _ends_with_opening(marks: Sequence[Mark], rows: int) -> bool:
    """Return whether the opening balance is below all rows, or the closing one above them."""
    places = {mark.kind: mark.before for mark in marks}
    return rows > 0 and (places.get("opening") == rows or places.get("closing") == 0)


def _begins_with_only_balance(rows: Sequence[RawRow]) -> bool:
    """Return whether only the first of several rows has a balance. As the balance at the end of the day, it belongs to
    the last transaction.
    """
    return len(rows) > 1 and [index for index, row in enumerate(rows) if row.balance] == [0]


def _reverse(rows: tuple[RawRow, ...], marks: Sequence[Mark]) -> tuple[tuple[RawRow, ...], tuple[Mark, ...]]:
    return rows[::-1], tuple(replace(mark, before=len(rows) - mark.before) for mark in reversed(marks))


def _resolve_dates(ordered: _Ordered, details: Details, made: date | None) -> Resolved:
    found = _resolve_printed_dates(ordered.rows, details, made)
    has_own_order = details.account_type == "credit_card" or any(row.title for row in ordered.rows)
    return found if has_own_order else Resolved(found.dates, (*found.doubts, *_find_dates_out_of_order(found.dates)))


def _resolve_printed_dates(rows: Sequence[RawRow], details: Details, made: date | None) -> Resolved:
    printed = [row.date for row in rows]
    period = (details.period_start, details.period_end)
    found = resolve(printed, [row.year for row in rows], period, made)
    return (
        Resolved(found.dates, (*found.doubts, _UNREADABLE_DATE))
        if any(row.is_date_unreadable for row in rows)
        else found
    )


def _find_dates_out_of_order(dates: Sequence[date | None]) -> Iterator[str]:
    """Yield a doubt if some rows are out of order but nearly all are in order: a date may have been changed."""
    known = [day for day in dates if day]
    steps = list(pairwise(known))
    back = [(one, two) for one, two in steps if two < one]
    if back and len(steps) - len(back) >= _IN_ORDER * len(steps):
        one, two = back[0]
        yield f"A row of {two:%d %B %Y} follows one of {one:%d %B %Y}, although nearly all others are in order."


def _choose_balances(ordered: _Ordered, details: Details, dates: Resolved) -> tuple[Details, Proof]:
    """Choose the opening and closing balance among the candidates, and return the proof by them.

    Other candidates are tried only if the likeliest contradict the rows, and a pair counts only if it agrees exactly.
    If several pairs or none agree, it is unknown which pair applies. This is neither a contradiction nor a sign of
    manipulation.
    """
    proof = _proof(ordered, details, dates)
    pairs = list(
        product(details.openings or (details.opening_balance,), details.closings or (details.closing_balance,))
    )
    if not _is_contradicted(proof) or len(pairs) < 2:
        return details, proof
    tried = [replace(details, opening_balance=opening, closing_balance=closing) for opening, closing in pairs]
    agreeing = [(pair, found) for pair in tried if not _is_contradicted(found := _proof(ordered, pair, dates))]
    without = replace(details, opening_balance=None, closing_balance=None)
    if not agreeing:
        between_rows = _proof(ordered, without, dates).reasons
        certain = tuple(
            reason for reason in proof.reasons if reason.code != "BalanceMismatch" or reason in between_rows
        )
        return details, proof if certain == proof.reasons else replace(proof, reasons=(*certain, _AMBIGUOUS))
    chosen, found = agreeing[0]
    if len(agreeing) > 1:
        return without, replace(found, verdict=Verdict.PARTIAL, reasons=(*found.reasons, _AMBIGUOUS))
    return chosen, replace(found, reasons=(*found.reasons, _CHOSEN))


def _is_contradicted(proof: Proof) -> bool:
    return any(reason.code == "BalanceMismatch" for reason in proof.reasons)


def _proof(ordered: _Ordered, details: Details, dates: Resolved) -> Proof:
    rows, decided = ordered.rows, ordered.signed
    opening, closing = _stated_balances(ordered, details)
    between = _balances_between(ordered, details, opening, closing)
    postings = [
        Posting(amount, balance, row.boxes[-1].page)
        for row, amount, balance in zip(rows, decided.amounts, decided.balances, strict=True)
    ]
    known = [day for day in dates.dates if day]
    in_order = all(one <= two for one, two in pairwise(known))
    return prove(postings, opening, closing, between, details.kind, in_day_order=in_order)


def _stated_balances(ordered: _Ordered, details: Details) -> tuple[Decimal | None, Decimal | None]:
    """Return the opening and the closing balance: of the table, else of the summary."""
    count = len(ordered.rows)
    first = [point.balance for mark, point in ordered.points if mark.kind in ("opening", "brought") and not point.after]
    last = [point.balance for mark, point in ordered.points if mark.kind == "closing" and point.after == count]
    opening = first[0] if first else details.opening_balance
    return opening, last[-1] if last else _closing_of_summary(ordered, details)


def _closing_of_summary(ordered: _Ordered, details: Details) -> Decimal | None:
    """Return a summary's closing balance. A listing's may be of the day it was printed, so it counts only if it is the
    last row's, unless no row has a balance.
    """
    balances = ordered.signed.balances
    if details.kind is Kind.LISTING and any(balance is not None for balance in balances):
        return details.closing_balance if details.closing_balance == balances[-1] else None
    return details.closing_balance


def _balances_between(
    ordered: _Ordered, details: Details, opening: Decimal | None, closing: Decimal | None
) -> list[Point]:
    """Return the balances between rows, and those of the summary if the table states others."""
    count = len(ordered.rows)
    points = [point for _, point in ordered.points]
    if details.kind is not Kind.LISTING:
        for stated, used, after, name in (
            (details.opening_balance, opening, 0, "opening"),
            (details.closing_balance, closing, count, "closing"),
        ):
            if stated is not None and stated != used:
                points.append(Point(after, stated, None, f"the {name} balance of the summary"))
    return points


def _other_currency(row: RawRow, details: Details) -> str | None:
    """Return the currency printed at a row's amount if it is not the statement's."""
    printed = (money.currency for money in row.flows.values() if money.currency)
    return next((currency for currency in printed if currency != (details.currency or CURRENCY)), None)


def _proved_rows(
    proof: Proof, decided: Signed, others: Sequence[str | None], verdict: Verdict, reasons: Sequence[Reason]
) -> tuple[bool, ...]:
    """Return which rows the balances prove: none if there is a reason to doubt all of them."""
    if verdict is Verdict.UNRECONCILED or any(others) or any(reason.code in _DOUBT_ALL for reason in reasons):
        return (False,) * len(proof.proved)
    return tuple(is_proved and index not in decided.unreadable for index, is_proved in enumerate(proof.proved))


def _entries(ordered: _Ordered, dates: Resolved, proof: Proof, others: Sequence[str | None]) -> Iterator[Entry]:
    decided = ordered.signed
    for row, day, amount, printed, balance, is_proved, other in zip(
        ordered.rows, dates.dates, decided.amounts, decided.balances, proof.balances, proof.proved, others, strict=True
    ):
        if day is not None:
            yield Entry(
                date=day,
                value_date=_value_date(row, day),
                description=row.description,
                amount=amount,
                balance=balance,
                balance_printed=printed is not None,
                boxes=row.boxes,
                proved=is_proved,
                currency=other,
            )


def _value_date(row: RawRow, day: date) -> date | None:
    """Return a row's value date; without a year, it is the one nearest to the row's date."""
    if row.value_date is None:
        return None
    if row.value_date.year is not None:
        return row.value_date.full
    near = (row.value_date.on(year) for year in (day.year - 1, day.year, day.year + 1))
    return min((date for date in near if date), key=lambda date: abs(date - day), default=None)


def _judge(
    proof: Proof,
    ordered: _Ordered,
    dates: Resolved,
    details: Details,
    section: Section,
    document: Document,
    pages: Sequence[Page],
) -> tuple[Verdict, tuple[Reason, ...]]:
    """Lower the proof's verdict for everything that balances can't prove, with reasons."""
    verdict, reasons = proof.verdict, list(proof.reasons)
    page = ordered.rows[0].page if ordered.rows else pages[0].sheet
    if not ordered.signed.is_evident:
        verdict = _lower(verdict, Verdict.PARTIAL)
        message = "Nothing printed shows which amounts are money in and which are money out."
        reasons.append(Reason("SignsUnproved", message, page))
    if ordered.signed.is_contradicted:
        verdict = _lower(verdict, Verdict.PARTIAL)
        message = "Most descriptions contradict the columns and marks of their amounts: money in may be money out."
        reasons.append(Reason("SignsContradicted", message, page))
    for row in ordered.rows:
        if other := _other_currency(row, details):
            verdict = _lower(verdict, Verdict.PARTIAL)
            message = f"An amount is in {other}, the statement in {details.currency or CURRENCY}."
            reasons.append(Reason("OtherCurrency", message, row.page))
    for index in ordered.signed.unreadable:
        verdict = _lower(verdict, Verdict.PARTIAL)
        message = "A row has amounts or marks that contradict each other."
        reasons.append(Reason("RowUnreadable", message, ordered.rows[index].page))
    against = contradiction_by_totals(section.lines, ordered.signed.amounts, *_stated_balances(ordered, details))
    if against is not None:
        verdict = _lower(verdict, Verdict.PARTIAL)
        reasons.append(Reason("TotalsMismatch", against, page))
    if details.missing_page:
        verdict = _lower(verdict, Verdict.PARTIAL)
        reasons.append(Reason("PageMissing", details.missing_page, page))
    if document.is_mixed:
        verdict = _lower(verdict, Verdict.PARTIAL)
        reasons.append(_MIXED)
    reasons.extend(_reasons_of_pages(document, pages))
    if any(day is None for day in dates.dates):
        verdict = _lower(verdict, Verdict.PARTIAL if any(dates.dates) else Verdict.UNRECONCILED)
    for doubt in dates.doubts:
        verdict = _lower(verdict, Verdict.RECONCILED_DATES_DOUBTFUL)
        reasons.append(Reason("DatesDoubtful", doubt, page))
    if any(page.read_by_ocr for page in pages):
        return cap_verdict(verdict, tuple(reasons), page)
    return verdict, tuple(reasons)


def _reasons_of_pages(document: Document, pages: Sequence[Page]) -> Iterator[Reason]:
    """Yield notes on a statement's pages. Only balances can show whether rows are missing with a page."""
    if document.is_restored:
        yield _RESTORED
    numbers = {page.number for page in pages}
    yield from (Reason("PageMissing", gap, page.sheet) for page, gap in gaps_in(document) if page.number in numbers)
    sheets = {page.sheet for page in pages}
    for copy, original in document.repeats.items():
        if original in sheets:
            yield Reason("PageRepeated", f"Page {copy} of the file repeats page {original}; it was left out.", copy)
    if cut := next((page for page in pages if page.is_half), None):
        yield Reason("PagesOnOneSheet", "Two pages are on one sheet; each was read separately.", cut.sheet)


def _lower(verdict: Verdict, most: Verdict) -> Verdict:
    return max(verdict, most, key=_WORST.index)
