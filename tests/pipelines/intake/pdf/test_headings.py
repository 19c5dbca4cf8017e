"""Headings of tables are recognised in the words of many banks, and no other line is taken for one."""

import pytest

from pipelines.intake.pdf.layout.headings import Vocabulary, heading_at, plain, synonyms
from pipelines.intake.pdf.page.page import Line, Word

KNOWN = Vocabulary.of(None)


def line(top: float, *cells: tuple[float, str]) -> Line:
    words = []
    for x, text in cells:
        left = x
        for each in text.split():
            words.append(Word(each, left, top, left + 5 * len(each), top + 9, "", 8))
            left += 5 * len(each) + 2.3
    return Line(1, tuple(words))


def roles(*lines: Line) -> list[str]:
    found = heading_at(lines, 0, KNOWN)
    return [column.role for column in found[0].columns] if found else []


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ("Date|Transaction|Debit|Credit|Balance", ["date", "description", "debit", "credit", "balance"]),
        (
            "Date|Transaction Details|Withdrawals ($)|Deposits ($)|Balance ($)",
            ["date", "description", "debit", "credit", "balance"],
        ),
        ("DATE|PARTICULARS|DEBITS|CREDITS|BALANCE", ["date", "description", "debit", "credit", "balance"]),
        ("Date|Details|Money out $|Money in $|Balance", ["date", "description", "debit", "credit", "balance"]),
        ("Date|Description|Debits/Charges|Credits/Payments", ["date", "description", "debit", "credit"]),
        ("Date|Description|Amount (A$)", ["date", "description", "amount"]),
        (
            "Date Processed|Date of Transaction|Card Used|Transaction Details|Amount ($A)|Running Balance",
            ["date", "value_date", "reference", "description", "amount", "balance"],
        ),
        (
            "Date|Description|Interest Rate|Debit|Credit|Balance",
            ["date", "description", "other", "debit", "credit", "balance"],
        ),
    ],
)
def test_headings_of_many_banks_are_recognised(cells: str, expected: list[str]) -> None:
    assert roles(line(100, *((40 + 120 * n, text) for n, text in enumerate(cells.split("|"))))) == expected


def test_a_heading_on_two_lines_is_joined() -> None:
    upper = line(100, (40, "Transaction"), (300, "Money"), (400, "Money"))
    lower = line(110, (40, "date"), (130, "Details"), (305, "out"), (405, "in"), (480, "Balance"))
    assert roles(upper, lower) == ["date", "description", "debit", "credit", "balance"]


def test_a_title_below_a_heading_is_not_part_of_it() -> None:
    upper = line(100, (40, "Date"), (130, "Details"), (480, "Amount"))
    assert roles(upper, line(112, (40, "Payments and refunds"))) == ["date", "description", "amount"]


@pytest.mark.parametrize(
    "cells",
    [
        "The date and amount of each transaction and your balance are shown below",
        "Opening balance|Total credits|Total debits|Closing balance",
        "Date|Description",
        "Balance",
        "Date|Details|100.00|Balance",
    ],
)
def test_sentences_summaries_and_rows_are_not_headings(cells: str) -> None:
    assert roles(line(100, *((40 + 120 * n, text) for n, text in enumerate(cells.split("|"))))) == []


def test_every_synonym_is_in_the_compared_form() -> None:
    assert [each for known in synonyms().values() for each in known if plain(each) != each] == []
