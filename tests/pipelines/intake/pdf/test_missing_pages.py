"""Missing pages, as the other pages show them."""

import pytest

from pipelines.intake.pdf.document.documents import documents_of
from pipelines.intake.pdf.document.missing_pages import missing_page
from tests.pipelines.intake.pdf.pages import page

ROW = "02 Jan 2025 Shop | 1.00 | 9.00"
HEAD = ("Date | Debit | Balance", ROW)


def has_missing_page(*pages: tuple[str, ...], opens: bool = True, closes: bool = True) -> bool:
    read = [page(number, *texts) for number, texts in enumerate(pages, start=1)]
    lines = [line for each in read for line in each.lines]
    return missing_page(lines, documents_of(read)[0], opens=opens, closes=closes) is not None


CARRIED = ("SUB TOTAL CARRIED FORWARD TO | 1.00 | 9.00", "NEXT PAGE")
BROUGHT = ("SUB TOTAL BROUGHT FORWARD | 1.00 | 9.00", "FROM PREVIOUS PAGE")


def test_a_balance_carried_forward_needs_a_next_page() -> None:
    assert has_missing_page((*HEAD, *CARRIED))
    assert has_missing_page((*HEAD, *CARRIED, "Please check all entries."))
    assert not has_missing_page((*HEAD, *CARRIED), (*BROUGHT, ROW))
    assert not has_missing_page((*HEAD, *CARRIED), ("Closing balance | | 9.00",))
    assert not has_missing_page((*HEAD, "31 Jan BALANCE CARRIED FORWARD | | 9.00"))


def test_a_balance_brought_forward_needs_a_previous_page() -> None:
    assert has_missing_page((*BROUGHT, *HEAD))
    assert has_missing_page(("Brought forward from last page | | 9.00", *HEAD))
    assert not has_missing_page(("Brought forward | | 9.00", *HEAD))
    assert not has_missing_page((*HEAD,), (*BROUGHT, ROW))


@pytest.mark.parametrize(
    ("number", "opens", "closes", "expected"),
    [
        ("Page 2 of 2", False, True, True),
        ("Page 2", False, True, True),
        ("Page 2 of 2", True, True, False),
        ("Page 1 of 2", True, False, True),
        ("Page 1 of 2", True, True, False),
        ("Page 1 of 1", False, False, False),
        ("Fees are explained on page 2", False, True, False),
    ],
)
def test_page_numbers_count_if_a_balance_is_missing(number: str, opens: bool, closes: bool, expected: bool) -> None:
    assert has_missing_page((*HEAD, number), opens=opens, closes=closes) is expected
