"""Several statements in one file, pages out of order, and missing pages."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from uuid import UUID

import pytest

from pipelines.intake.pdf.document.documents import documents_of
from pipelines.intake.pdf.extraction import extract
from pipelines.intake.pdf.page.page import Page
from pipelines.intake.pdf.page.page_numbers import printed_number
from pipelines.intake.pdf.page.result import Extraction, Verdict
from pipelines.intake.pdf.statement.overlaps import repeats_within
from pipelines.synthetic.pdf import PrintedAccount, statement_pdf
from tests.pipelines.intake.pdf.drawing import HEADING, four_rows, statement
from tests.pipelines.intake.pdf.files import merge_files
from tests.pipelines.intake.pdf.pages import page

TABLE = "Date | Details | Amount | Balance"
ROWS = ("02 Jan 2025 Shop | | 1.00 | 9.00", "03 Jan 2025 Shop | | 1.00 | 8.00")


def pages_by_document(*texts: str, account: str = "11112222") -> list[list[int]]:
    """Return the pages of each document, by the number that each page prints."""
    head = (f"Account number {account}",) if account else ()
    pages = [
        page(number, text, *head, "", TABLE, *ROWS, f"04 Jan 2025 Shop {number} | | 1.00 | 7.00")
        for number, text in enumerate(texts, start=1)
    ]
    return sheets(pages)


def sheets(pages: Sequence[Page]) -> list[list[int]]:
    return [[each.sheet for each in document.pages] for document in documents_of(pages)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Page 2 of 5", (2, 5)),
        ("Statement 12 (Page 2 of 5)", (2, 5)),
        ("page number: 2/5", (2, 5)),
        ("Account number 123 | Page | 2 of 5", (2, 5)),
        ("2/5", (2, 5)),
        ("- 2 of 5 -", (2, 5)),
        ("Interim statement - page 2", (2, None)),
        ("Fees are explained on page 2", None),
        ("02 Jan 2025 Instalment 2/5 | 9.00", None),
        ("Page 6 of 5", None),
        ("2/5/2025", None),
        ("Statement 2 of 5 of the year", None),
    ],
)
def test_a_page_number_is_read_in_several_forms(text: str, expected: tuple[int, int | None] | None) -> None:
    found = printed_number(page(1, "Some Bank", text, TABLE, *ROWS).lines)
    assert (found and (found.number, found.total)) == expected


def test_a_wrapped_line_of_a_row_is_not_a_page_number() -> None:
    assert printed_number(page(1, TABLE, *ROWS, "7/12", "| 9.00").lines) is None


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["Page 1 of 3", "Page 2 of 3", "Page 3 of 3"], [[1, 2, 3]]),
        (["Page 3 of 3", "Page 2 of 3", "Page 1 of 3"], [[3, 2, 1]]),
        (["Page 2", "Page 3", "Page 1"], [[3, 1, 2]]),
        (["3/3", "1/3", "2/3"], [[2, 3, 1]]),
        (["Page 1 of 2", "Page 2 of 2", "Page 1 of 2", "Page 2 of 2"], [[1, 2], [3, 4]]),
        (["Page 2 of 2", "Page 1 of 2", "Page 2 of 2", "Page 1 of 2"], [[2, 1], [4, 3]]),
        (["Page 1 of 1", "Page 1 of 1"], [[1], [2]]),
        (["Page 1 of 2", "Page 1 of 2"], [[1, 2]]),  # the same on every page, so it numbers nothing
        (["Page 1 of 5", "Page 2 of 5", "Page 4 of 5", "Page 5 of 5"], [[1, 2, 3, 4]]),
        (["", "", ""], [[1, 2, 3]]),
        (["Page 3 of 4", "", "Page 1 of 4"], [[3, 2, 1]]),  # one without a number stays
        (["", "Page 2 of 2", "", "Page 2 of 2"], [[1, 2], [3, 4]]),
    ],
)
def test_pages_are_ordered_by_their_numbers(texts: list[str], expected: list[list[int]]) -> None:
    assert pages_by_document(*texts) == expected
    assert pages_by_document(*texts, account="") == expected


def test_pages_are_numbered_in_reading_order() -> None:
    (document,) = documents_of([page(number, f"Page {4 - number} of 3", TABLE, *ROWS) for number in (1, 2, 3)])
    assert [(each.number, each.sheet, each.lines[0].page) for each in document.pages] == [
        (1, 3, 1),
        (2, 2, 2),
        (3, 1, 3),
    ]
    assert (document.is_restored, document.is_mixed) == (True, False)


def test_mixed_pages_of_two_accounts_are_separated() -> None:
    pages = [
        page(place, f"Page {number} of 2", f"Account number {account}", "", TABLE, *ROWS)
        for place, (number, account) in enumerate(
            [(1, "11112222"), (2, "33334444"), (2, "11112222"), (1, "33334444")], start=1
        )
    ]
    assert sheets(pages) == [[1, 3], [4, 2]]


def test_pages_of_two_accounts_are_separated_in_whatever_order_they_stand(subtests: pytest.Subtests) -> None:
    """The numbers of exchanged pages may rise in each half of a file, too: 1, 2, 1, 2."""
    papers = [(number, account) for account in ("11112222", "33334444") for number in (1, 2, 3)]
    for order in permutations([*papers[:2], *papers[3:5]]):
        with subtests.test(order=order):
            assert sorted(sheets(_sheets(order))) == _by_account(order)
    exchanged = [papers[nth] for nth in (0, 4, 5, 3, 1, 2)]
    assert sorted(sheets(_sheets(exchanged))) == _by_account(exchanged)


def _sheets(order: Sequence[tuple[int, str]]) -> list[Page]:
    return [
        page(place, f"Page {number} of {len(order) // 2}", f"Account number {account}", "", TABLE, *ROWS)
        for place, (number, account) in enumerate(order, start=1)
    ]


def _by_account(order: Sequence[tuple[int, str]]) -> list[list[int]]:
    """Return the places of each account's pages in the order of their numbers."""
    accounts = {account for _, account in order}
    places = [[(number, place) for place, (number, of) in enumerate(order, start=1) if of == each] for each in accounts]
    return sorted([place for _, place in sorted(each)] for each in places)


def test_two_statements_with_pages_of_several_accounts_stay_as_they_stand() -> None:
    order = [(1, "11112222"), (2, "33334444"), (1, "11112222"), (2, "33334444")]
    assert sheets(_sheets(order)) == [[1, 2], [3, 4]]


def test_if_a_pages_document_is_unclear_nothing_is_moved_and_that_is_reported() -> None:
    pages = [page(place, f"Page {number} of 2", TABLE, *ROWS) for place, number in enumerate((1, 1, 2, 2), start=1)]
    documents = documents_of(pages)
    assert any(document.is_mixed for document in documents)
    assert not any(document.is_restored for document in documents if document.is_mixed)


def test_a_repeated_page_is_left_out() -> None:
    head, numbers = "Account number 11112222", (1, 2, 2, 3)
    pages = [page(place, f"Page {number} of 3", head, TABLE, *ROWS) for place, number in enumerate(numbers, start=1)]
    assert sheets(pages) == [[1, 2, 4]]
    assert documents_of(pages)[0].repeats == {3: 2}


def test_a_repeated_page_without_rows_stays() -> None:
    terms = [page(number, "Page 3 of 3", "Account number 11112222", "Terms") for number in (1, 2)]
    assert sheets(terms) == [[1, 2]]


@pytest.mark.parametrize("order", [[0, 1, 1], [0, 0, 1], [0, 1, 0, 1], [1, 0, 1]])
def test_rows_of_a_repeated_page_count_once(order: Sequence[int], subtests: pytest.Subtests) -> None:
    """On a page scanned twice, a statement's rows would count twice."""
    drawing = four_rows(statement().line(*HEADING)).next_page().line((45, "Account number 12345678")).line(*HEADING)
    drawing.line((45, "31 Mar"), (110, "INTEREST"), (-470, "1.00"), (-550, "1,041.00"))
    for name, content in {"numbered": WESTPAC.content, "unnumbered": drawing.finish()}.items():
        with subtests.test(name):
            (once,), twice = extract(content).statements, extract(merge_files(content, order=order)).statements
            left = [
                (entry.date, entry.amount, entry.balance)
                for read, repeated in zip(twice, repeats_within([(UUID(int=1), read) for read in twice]), strict=True)
                for place, entry in enumerate(read.entries)
                if place not in repeated
            ]
            assert sorted(left, key=str) == sorted(((e.date, e.amount, e.balance) for e in once.entries), key=str)


def read_of_account(found: Extraction, account: PrintedAccount) -> list[object]:
    """Return what was read of an account, to compare with what is printed."""
    (read,) = [each for each in found.statements if each.account_number == account.account_number]
    rows = [(entry.date, entry.amount) for entry in read.entries] == [(row.date, row.amount) for row in account.rows]
    ends = (read.opening_balance, read.closing_balance) == (account.opening, account.closing)
    return [rows, ends, read.verdict, read.bank, read.bsb == account.bsb]


WESTPAC, ANZ = (statement_pdf(layout, 61, rows=36) for layout in ("westpac", "anz"))
SEVERAL = {
    "behind each other": None,
    "second page first": [1, 0, 2, 3],
    "back to front": [3, 2, 1, 0],
    "in turn": [0, 2, 1, 3],
}


def test_each_account_of_a_file_has_its_own_bank_balances_rows_and_verdict(subtests: pytest.Subtests) -> None:
    for name, order in SEVERAL.items():
        with subtests.test(name):
            found = extract(merge_files(WESTPAC.content, ANZ.content, order=order))
            assert len(found.statements) == 2
            assert read_of_account(found, WESTPAC.accounts[0]) == [True, True, Verdict.RECONCILED, "westpac", True]
            assert read_of_account(found, ANZ.accounts[0]) == [True, True, Verdict.RECONCILED, "anz", True]
            codes = {reason.code for statement in found.statements for reason in statement.reasons}
            assert codes == (set() if order is None else {"PagesReordered"})


def test_rows_refer_to_the_pages_of_the_file() -> None:
    (found,) = extract(merge_files(WESTPAC.content, order=[1, 0])).statements
    (read,) = extract(WESTPAC.content).statements
    turned = {1: 2, 2: 1}
    as_they_stood = [[replace(box, page=turned[box.page]) for box in entry.boxes] for entry in found.entries]
    assert as_they_stood == [list(entry.boxes) for entry in read.entries]
    assert (found.first_page, found.last_page, found.verdict) == (1, 2, Verdict.RECONCILED)


def test_a_missing_page_number_is_reported() -> None:
    drawing = statement().line((45, "Page 2 of 5")).line(*HEADING)
    four_rows(drawing).next_page().line((45, "Page 4 of 5")).line(*HEADING)
    found = extract(drawing.line((45, "05 Apr"), (110, "COFFEE"), (-400, "5.00"), (-550, "9.00")).finish())
    (read,) = found.statements
    missing = [(reason.message, reason.page) for reason in read.reasons if reason.code == "PageMissing"]
    assert [page for _, page in missing] == [1, 2]
    assert "numbered 4 but follows number 2" in missing[1][0]
    assert [signal.page for signal in found.signals if signal.code == "PageMissing"] == [1, 2, 2]
    assert read.verdict is Verdict.PARTIAL
