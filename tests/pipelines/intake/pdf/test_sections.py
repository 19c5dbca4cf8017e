"""Sections of the accounts in a file."""

from collections.abc import Sequence

from pipelines.intake.pdf.document.sections import split
from pipelines.intake.pdf.page.page import Page
from tests.pipelines.intake.pdf.pages import page

TABLE = "Date | Details | Amount | Balance"


def account(number: str, name: str = "Everyday Account") -> tuple[str, ...]:
    return ("", name, f"Account number {number}", "", TABLE, "01 Jan 2025 Opening balance | | | 10.00")


def rows(count: int, says: str = "Shop") -> tuple[str, ...]:
    return tuple(f"{day:02} Jan 2025 {says} | | 1.00 | 9.00" for day in range(2, 2 + count))


def first_lines(*pages: Page) -> Sequence[str]:
    return [section.lines[0].text for section in split(pages, None)]


def test_one_account_is_one_section_on_all_pages() -> None:
    head = ("Some Bank", "Account number 12345678", "Page {} of 2", "", TABLE)
    pages = [page(number, *(text.format(number) for text in head), *rows(3)) for number in (1, 2)]
    sections = split(pages, None)
    assert [(section.first_page, section.last_page) for section in sections] == [(1, 2)]
    assert sum(len(section.lines) for section in sections) == sum(len(each.lines) for each in pages)


def test_a_new_account_number_above_rows_begins_a_section_with_its_title() -> None:
    one = page(1, "Some Bank", *account("11112222"), *rows(2), "", *account("33334444", "Online Saver"), *rows(2))
    assert first_lines(one) == ["Some Bank", "Online Saver"]


def test_accounts_in_a_summary_or_a_row_do_not_begin_a_section() -> None:
    summary = ("Everyday 062-000 11112222 | 9.00", "Your card account number 99998888")
    described = ("02 Jan 2025 | Transfer to | 1.00 | 9.00", "| account number 55556666", "", TABLE)
    assert first_lines(page(1, *summary, *account("11112222"), *described, *rows(3))) == [
        "Everyday 062-000 11112222 9.00"
    ]


def test_a_number_at_the_head_of_every_page_is_ignored_if_accounts_have_their_own_headings() -> None:
    pages = [
        page(1, "Account number 11112222", "", TABLE, *rows(2), "", *account("33334444", "Saver"), *rows(1)),
        page(2, "Account number 11112222", "", TABLE, *rows(3)),
        page(3, "Account number 11112222", "", TABLE, *rows(3)),
    ]
    assert first_lines(*pages) == ["Account number 11112222", "Saver"]


def test_a_second_card_of_one_account_is_not_a_separate_section() -> None:
    lines = (
        "Account number 4111 0000 0000 1111", "Opening balance | | | 10.00", "", TABLE, *rows(2), "",
        "Card number xxxx xxxx xxxx 2222", "", TABLE, *rows(2),
    )  # fmt: skip
    assert len(split([page(1, *lines)], None)) == 1


def test_a_file_without_text_has_no_section() -> None:
    assert split([page(1)], None) == ()
