"""Sheets with two pages, and sheets that only look like it."""

import pytest

from pipelines.intake.pdf.document.sheets import cut_of
from pipelines.intake.pdf.extraction import extract, trace_pages
from pipelines.intake.pdf.page.result import Box, Verdict
from pipelines.synthetic.pdf import statement_pdf
from tests.pipelines.intake.pdf.files import two_on_a_sheet
from tests.pipelines.intake.pdf.pages import CELL, page

TABLE = "Date | Details | Amount"
ROWS = ("02 Jan 2025 | Shop | 1.00", "03 Jan 2025 | Shop | 2.00")
ACROSS, DOWN = 6 * CELL + 40, 900.0  # a sheet of six cells, in landscape
PRINTED = statement_pdf("westpac", 71, rows=36)
TORN = [
    "Date | Details | | Debit | Credit | Balance",
    "02 Jan 2025 | Shop | | 1.00 | | 9.00",
    "03 Jan 2025 | | | | | 9.00",
]


def beside(*lines: str) -> bool:
    """Return whether a wide sheet of these lines is two pages, with six cells per line, three on each side."""
    return cut_of(page(1, *lines).lines, ACROSS, DOWN) is not None


def is_cut(upper: tuple[str, ...], lower: tuple[str, ...]) -> bool:
    lines = [*page(1, *upper).lines, *page(1, *lower, top=440.0).lines]
    return cut_of(lines, 595.0, 842.0) is not None


def both(left: str, right: str = "") -> str:
    """Return a line of two pages side by side."""
    cells = [*left.split("|"), "", ""][:3]
    return " | ".join([*cells, right or left])


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([both("Page 1 of 4", "Page 2 of 4"), both(TABLE), *map(both, ROWS)], True),
        ([both("Account 1"), both(TABLE), *map(both, ROWS)], True),
        ([both("Account 1", "Page 2 of 4"), both(TABLE), *map(both, ROWS)], True),
        ([both("Account 1", "Page 1 of 4"), both(TABLE), *map(both, ROWS)], False),  # no page comes before it
        ([TABLE, *ROWS, both("", "Please check all entries."), both("", "Call us."), both("", "Thank you.")], False),
        (
            [
                "Date | Details | | Debit | Credit | Balance",
                *(f"0{day} Jan 2025 | Shop | | 1.00 | | 9.00" for day in (2, 3)),
            ],
            False,
        ),
    ],
)
def test_a_wide_sheet_is_two_pages_if_each_side_looks_like_one(lines: list[str], expected: bool) -> None:
    assert beside(*lines) is expected


def test_a_sheet_with_text_across_the_middle_is_one_page() -> None:
    lines = [both("Page 1 of 4", "Page 2 of 4"), both(TABLE), *map(both, ROWS)]
    assert beside(*lines)
    assert not beside(*lines, "| | " + "Statement" * 6)  # from the left of the middle to the right of it
    assert cut_of(page(1, *lines).lines, 595.0, 842.0) is None  # too narrow for two


HEAD = ("Some Bank", "Account number 11112222", TABLE, *ROWS)


@pytest.mark.parametrize(
    ("upper", "lower", "expected"),
    [
        (("Page 1 of 2", *HEAD), ("Page 2 of 2", TABLE, *ROWS), True),
        (("Page 1 of 2", *HEAD), HEAD, True),
        (HEAD, ("Harbour Bank", *HEAD[1:]), True),
        (HEAD, (TABLE, *ROWS, "Page 2 of 3"), False),
        (HEAD, (*HEAD, "Page 1 of 3"), False),
        ((*HEAD, "Page 1 of 3"), ("Please check all entries.", "Call us.", "Thank you."), False),
        ((*HEAD,), (TABLE, *ROWS), False),
    ],
)
def test_a_tall_sheet_is_two_pages_if_the_lower_half_has_its_own_head(
    upper: tuple[str, ...], lower: tuple[str, ...], expected: bool
) -> None:
    assert is_cut(upper, lower) is expected


@pytest.mark.parametrize("is_beside", [True, False])
def test_two_pages_on_a_sheet_are_read_and_rows_have_their_places_on_it(is_beside: bool) -> None:
    content = two_on_a_sheet(PRINTED.content, beside=is_beside)
    (found,) = extract(content).statements
    (account,) = PRINTED.accounts
    assert [(entry.date, entry.amount) for entry in found.entries] == [(row.date, row.amount) for row in account.rows]
    assert found.verdict is Verdict.RECONCILED
    assert [reason.code for reason in found.reasons] == ["PagesOnOneSheet"]
    assert [entry.boxes[0].page for entry in found.entries] == [(row.page + 1) // 2 for row in account.rows]
    for entry, row in zip(found.entries, account.rows, strict=True):
        assert _is_second(entry.boxes[0], beside=is_beside) is (row.page % 2 == 0)
    (drawn,) = trace_pages(content, None)
    assert (drawn.number, set(drawn.rows)) == (1, {box for entry in found.entries for box in entry.boxes})


@pytest.mark.parametrize("turned", [90, 180])
def test_turned_sheets_are_split_as_read(turned: int) -> None:
    (found,) = extract(two_on_a_sheet(PRINTED.content, beside=True, turned=turned)).statements
    assert (found.verdict, found.reasons[-1].code) == (Verdict.RECONCILED, "PagesOnOneSheet")
    first, last = found.entries[0].boxes[0], found.entries[-1].boxes[0]
    assert last.top > 421 > first.bottom if turned == 90 else first.left > 421 > last.right


def _is_second(box: Box, *, beside: bool) -> bool:
    return box.left >= 421 if beside else box.top >= 421
