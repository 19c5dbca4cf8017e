"""Scores of readings against the truth: of a perfect one, and with each fault."""

from dataclasses import replace
from decimal import Decimal

import pytest

from benchmarks.statement_truth import Reading, Total, reading
from pipelines.intake.pdf.page.result import Box, Entry, Extraction, Reason, Severity, Signal, Statement, Verdict
from pipelines.synthetic.pdf import PrintedAccount, PrintedRow, PrintedStatement, statement_pdf


@pytest.fixture
def made() -> PrintedStatement:
    return statement_pdf("nab", 3, rows=20)


def perfect(made: PrintedStatement) -> Extraction:
    return Extraction(made.pages, tuple(statement(account) for account in made.accounts), ())


def statement(account: PrintedAccount) -> Statement:
    return Statement(
        bank="nab",
        bank_name=account.bank_name,
        account_name=account.account_name,
        bsb=account.bsb,
        account_number=account.account_number,
        account_type=account.account_type,
        kind=account.kind,
        period_start=account.period_start,
        period_end=account.period_end,
        opening_balance=account.opening,
        closing_balance=account.closing,
        credit_limit=None,
        verdict=Verdict.RECONCILED,
        reasons=(),
        entries=tuple(entry(row) for row in account.rows),
        first_page=1,
        last_page=account.rows[-1].page,
        read_by_ocr=False,
    )


def entry(row: PrintedRow) -> Entry:
    box = Box(row.page, 40, 100, 550, 110)
    return Entry(row.date, row.value_date, row.description, row.amount, row.balance, row.balance is not None, (box,))


def with_entries(found: Extraction, entries: tuple[Entry, ...]) -> Extraction:
    return replace(found, statements=(replace(found.statements[0], entries=entries),))


def shares(scored: Reading) -> dict[str, float]:
    total = Total([scored])
    wholes = {"right": "read", "exact": "true", "worded": "true", "placed": "true", "details_right": "details"}
    return {part: total.share(part, whole) for part, whole in wholes.items()}


def test_a_perfect_reading_has_everything_right(made: PrintedStatement) -> None:
    scored = reading(made, perfect(made))
    assert set(shares(scored).values()) == {1.0}
    assert (scored.reconciled, scored.wrongly_proved, scored.flagged) == (1, 0, False)


def test_a_missing_row_in_a_reconciled_statement_is_wrong(made: PrintedStatement) -> None:
    found = perfect(made)
    scored = reading(made, with_entries(found, found.statements[0].entries[1:]))
    assert (scored.read, scored.true, scored.right, scored.wrongly_proved) == (19, 20, 19, 1)


def test_a_row_with_a_wrong_balance_is_right_but_not_exact(made: PrintedStatement) -> None:
    found = perfect(made)
    *others, last = found.statements[0].entries
    scored = reading(made, with_entries(found, (*others, replace(last, balance=Decimal("0.01")))))
    assert (scored.right, scored.exact) == (20, 19)


def test_a_computed_balance_is_not_a_fault_if_none_is_printed(made: PrintedStatement) -> None:
    found = perfect(made)
    known = tuple(replace(each, balance=each.balance or Decimal(1)) for each in found.statements[0].entries)
    assert reading(made, with_entries(found, known)).exact == 20


def test_doubtful_dates_may_be_wrong_and_amounts_may_not(made: PrintedStatement) -> None:
    found = perfect(made)
    first, *rest = found.statements[0].entries
    doubtful = replace(found.statements[0], verdict=Verdict.RECONCILED_DATES_DOUBTFUL)
    late = replace(first, date=first.date.replace(year=1999))
    dearer = replace(first, amount=first.amount + 1)
    for changed, wrongly in ((late, 0), (dearer, 1)):
        reread = replace(found, statements=(replace(doubtful, entries=(changed, *rest)),))
        assert reading(made, reread).wrongly_proved == wrongly


def test_a_forgery_is_flagged_by_verdict_or_by_signal(made: PrintedStatement) -> None:
    believed = perfect(made)
    doubted = replace(believed, statements=(replace(believed.statements[0], verdict=Verdict.UNRECONCILED),))
    signalled = replace(believed, signals=(Signal("MixedFonts", Severity.WARNING, "Two fonts."),))
    noted = replace(believed, signals=(Signal("ProducerUnfamiliar", Severity.INFORMATION, "Unknown."),))
    scored = [reading(made, found, forged=True) for found in (believed, doubted, signalled, noted)]
    assert [each.flagged for each in scored] == [False, True, True, False]
    assert [each.wrongly_proved for each in scored] == [1, 0, 1, 1]


def test_a_listing_counts_as_proved_with_only_its_oldest_row_unproved(
    made: PrintedStatement,
) -> None:
    found, oldest = perfect(made), Reason("OldestRowUnproved", "No balance before it.")
    for reasons, reconciled in (((oldest,), 1), ((oldest, Reason("PageMissing", "Page 2.")), 0)):
        partial = replace(found.statements[0], verdict=Verdict.PARTIAL, reasons=reasons)
        scored = reading(made, replace(found, statements=(partial,)))
        assert (scored.reconciled, scored.doubtful, scored.flagged) == (reconciled, 0, not reconciled)


def test_only_printed_details_count() -> None:
    made = statement_pdf("cba_netbank", 1, rows=12)
    found = perfect(made)
    bare = replace(found.statements[0], opening_balance=None, closing_balance=None, bsb=None)
    scored = reading(made, replace(found, statements=(bare,)))
    assert (scored.details, scored.details_right) == (5, 4)
