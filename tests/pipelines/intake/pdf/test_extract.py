"""Small documents, each with one feature that banks use."""

import io
from collections.abc import Sequence
from decimal import Decimal

import pikepdf
import pytest
from PIL import Image
from reportlab.lib.utils import ImageReader

from pipelines.intake.pdf.extraction import Limits, ScannedWord, extract, trace_pages
from pipelines.intake.pdf.page.result import Refusal, Statement, Verdict
from tests.pipelines.intake.pdf.drawing import FOUR, HEADING, Drawing, four_rows, statement

Row = tuple[str, str, str | None]


def extract_only_statement(content: bytes) -> Statement:
    (found,) = extract(content).statements
    return found


def rows(found: Statement) -> list[Row]:
    return [
        (each.date.isoformat(), str(each.amount), str(each.balance) if each.balance_printed else None)
        for each in found.entries
    ]


def draw_and_extract(drawing: Drawing, *lines: tuple[tuple[float, str], ...]) -> Statement:
    return extract_only_statement(drawing.lines(*lines).finish())


def test_a_plain_statement_is_reconciled_and_rows_have_their_places() -> None:
    found = extract_only_statement(four_rows(statement().line(*HEADING)).finish())
    assert rows(found) == FOUR
    assert (found.verdict, found.reasons) == (Verdict.RECONCILED, ())
    assert all(entry.proved for entry in found.entries)
    assert (found.opening_balance, found.closing_balance) == (Decimal("100.00"), Decimal("1040.00"))
    assert [each.description for each in found.entries] == ["COFFEE", "SALARY ACME", "RENT", "ACCOUNT FEE"]
    (box,) = found.entries[0].boxes
    assert (box.page, round(box.left), round(box.right)) == (1, 45, 550)


@pytest.mark.parametrize("oldest", ["-749.03", "-9,749.03", "749.03"])
def test_a_listing_whose_oldest_row_is_unproved_is_not_reconciled(oldest: str) -> None:
    found = draw_and_extract(
        Drawing().line((45, "Transaction listing")).line((45, "BSB 123-456 Account number 12345678")),
        ((45, "Date"), (110, "Details"), (-470, "Amount"), (-550, "Balance")),
        ((45, "02 Mar 2024"), (110, "RENT"), (-470, oldest), (-550, "95.00")),
        ((45, "03 Mar 2024"), (110, "SALARY ACME"), (-470, "1,000.00"), (-550, "1,095.00")),
        ((45, "04 Mar 2024"), (110, "COFFEE"), (-470, "-50.00"), (-550, "1,045.00")),
    )
    assert found.verdict is Verdict.PARTIAL
    assert [reason.code for reason in found.reasons] == ["OldestRowUnproved"]
    assert [entry.proved for entry in found.entries] == [False, True, True]


@pytest.mark.parametrize("turned", [90, 180, 270])
def test_a_turned_page_is_read_and_its_boxes_are_on_the_page_as_shown(turned: int) -> None:
    drawing = Drawing(turned=turned).lines(
        ((45, "Statement period 1 Mar 2024 - 31 Mar 2024"),), ((45, "BSB 123-456 Account number 12345678"),)
    )
    found = extract_only_statement(four_rows(drawing.line(*HEADING)).finish())
    assert (rows(found), found.verdict, found.reasons) == (FOUR, Verdict.RECONCILED, ())
    (box,) = found.entries[0].boxes
    along, down = (round(box.left), round(box.right)), (round(box.top), round(box.bottom))
    assert (along if turned == 180 else down) == (45, 550)
    assert {90: along[0] > 842 - 140, 180: down[0] > 842 - 140, 270: along[1] < 140}[turned]


def test_a_skewed_page_is_read() -> None:
    drawing = statement()
    drawing.canvas.rotate(0.9)
    found = extract_only_statement(four_rows(drawing.line(*HEADING)).finish())
    assert (rows(found), found.verdict) == (FOUR, Verdict.RECONCILED)


def test_an_amount_on_the_last_line_of_a_description_is_read() -> None:
    found = draw_and_extract(
        statement().line(*HEADING),
        ((45, "01 Mar"), (110, "OPENING BALANCE"), (-550, "100.00")),
        ((45, "02 Mar"), (110, "COFFEE SHOP")),
        ((110, "Card xx1234"),),
        ((110, "Value Date: 01/03/2024"), (-400, "5.00"), (-550, "95.00")),
        ((45, "03 Mar"), (110, "TEA"), (-400, "5.00"), (-550, "90.00")),
        ((45, "31 Mar"), (110, "CLOSING BALANCE"), (-550, "90.00")),
    )
    assert rows(found) == [("2024-03-02", "-5.00", "95.00"), ("2024-03-03", "-5.00", "90.00")]
    assert found.entries[0].description == "COFFEE SHOP Card xx1234 Value Date: 01/03/2024"


def test_a_date_printed_once_a_day_applies_to_all_its_rows() -> None:
    found = draw_and_extract(
        statement().line(*HEADING),
        ((45, "01 Mar"), (110, "Brought forward"), (-550, "100.00 Cr")),
        ((45, "02 Mar"), (110, "COFFEE ........................................."), (-400, "5.00")),
        ((110, "RENT"), (-400, "50.00")),
        ((110, "to Mrs Landlord"),),
        ((110, "SALARY"), (-470, "1,000.00"), (-550, "1,045.00 Cr")),
        ((45, "31 Mar"), (110, "FEE"), (-400, "1,050.00"), (-550, "5.00 Dr")),
        ((110, "Closing balance"), (-550, "5.00 Dr")),
    )
    assert rows(found) == [
        ("2024-03-02", "-5.00", None),
        ("2024-03-02", "-50.00", None),
        ("2024-03-02", "1000.00", "1045.00"),
        ("2024-03-31", "-1050.00", "-5.00"),
    ]
    assert [each.balance for each in found.entries[:2]] == [Decimal("95.00"), Decimal("45.00")]
    assert found.entries[1].description == "RENT to Mrs Landlord"
    assert found.verdict is Verdict.RECONCILED


def test_a_year_row_applies_below_and_invisible_words_are_ignored() -> None:
    drawing = statement("20 Dec 2023 - 19 Jan 2024").line(*HEADING)
    drawing.line((45, "2023")).line((45, "20 DEC"), (110, "OPENING BALANCE"), (-550, "100.00"))
    drawing.canvas.setFillGray(1)
    drawing.line((-470, "blank"), step=0)
    drawing.canvas.setFillGray(0)
    found = draw_and_extract(
        drawing,
        ((45, "31 DEC"), (110, "FEE"), (-400, "5.00"), (-550, "95.00")),
        ((45, "2024"),),
        ((45, "02 JAN"), (110, "FEE"), (-400, "5.00"), (-550, "90.00")),
        ((110, "TOTALS AT END OF PERIOD"), (-400, "10.00"), (-470, "0.00"), (-550, "90.00")),
    )
    assert rows(found) == [("2023-12-31", "-5.00", "95.00"), ("2024-01-02", "-5.00", "90.00")]
    assert found.entries[0].description == "FEE"


def test_a_white_heading_on_a_dark_bar_is_a_heading() -> None:
    drawing = statement()
    drawing.canvas.rect(40, 842 - drawing.y - 3, 520, 14, fill=1)
    drawing.canvas.setFillGray(1)
    drawing.line(*HEADING)
    drawing.canvas.setFillGray(0)
    assert rows(extract_only_statement(four_rows(drawing).finish())) == FOUR


def test_a_heading_on_two_lines_and_letter_spaced_words_are_read() -> None:
    drawing = statement()
    drawing.line((-400, "M o n e y"), (-470, "M o n e y"))
    drawing.line((45, "D a t e"), (110, "D e t a i l s"), (-400, "o u t"), (-470, "i n"), (-550, "B a l a n c e"))
    assert rows(extract_only_statement(four_rows(drawing).finish())) == FOUR


def test_a_heading_applies_to_pages_without_one_and_adverts_are_not_rows() -> None:
    drawing = four_rows(statement().line(*HEADING))
    content = drawing.finish()
    first = statement().line(*HEADING)
    first.lines(
        ((45, "01 Mar"), (110, "OPENING BALANCE"), (-550, "100.00")),
        ((45, "02 Mar"), (110, "COFFEE"), (-400, "5.00"), (-550, "95.00")),
        ((110, "CARRIED FORWARD"), (-550, "95.00")),
    ).line((60, "Save more with a Harbour Lane term deposit, from 4.50% p.a. on $5,000.00 or more."), step=30)
    first.line((45, "Page 1 of 2")).next_page().line((45, "Statement continued"), step=40)
    first.lines(
        ((110, "BROUGHT FORWARD"), (-550, "95.00")),
        ((45, "03 Mar"), (110, "SALARY ACME"), (-470, "1,000.00"), (-550, "1,095.00")),
        ((45, "03 Mar"), (110, "RENT"), (-400, "50.00"), (-550, "1,045.00")),
        ((45, "31 Mar"), (110, "ACCOUNT FEE"), (-400, "5.00"), (-550, "1,040.00")),
        ((45, "31 Mar"), (110, "CLOSING BALANCE"), (-550, "1,040.00")),
    )
    found = extract_only_statement(first.finish())
    assert (rows(found), found.verdict) == (rows(extract_only_statement(content)), Verdict.RECONCILED)
    assert [each.description for each in found.entries] == ["COFFEE", "SALARY ACME", "RENT", "ACCOUNT FEE"]


def test_letters_drawn_twice_to_look_bold_are_read_once() -> None:
    drawing = statement().line(*HEADING)
    four_rows(drawing)
    drawing.y -= 6 * 12
    drawing.canvas.translate(0.3, 0)
    assert rows(extract_only_statement(four_rows(drawing).finish())) == FOUR


def test_newest_first_is_turned_to_oldest_first() -> None:
    found = draw_and_extract(
        Drawing().line((45, "Transaction history printed on 05/03/2024 BSB 123-456 Account number 12345678")),
        ((45, "Date"), (110, "Description"), (-470, "Amount"), (-550, "Balance")),
        ((45, "04 Mar 2024"), (110, "TRANSFER"), (-470, "-$100.00"), (-550, "$350.00")),
        ((45, "04 Mar 2024"), (110, "DEPOSIT"), (-470, "+$300.00"), (-550, "$450.00")),
        ((45, "01 Mar 2024"), (110, "SHOP"), (-470, "-$50.00"), (-550, "$150.00")),
    )
    assert rows(found) == [
        ("2024-03-01", "-50.00", "150.00"),
        ("2024-03-04", "300.00", "450.00"),
        ("2024-03-04", "-100.00", "350.00"),
    ]


AMOUNTS_ONLY = ((45, "Date"), (110, "Description"), (-470, "Amount"), (-550, "Balance"))


def test_amounts_without_printed_signs_are_never_reconciled() -> None:
    found = draw_and_extract(
        statement().line(*AMOUNTS_ONLY),
        ((45, "01 Mar"), (110, "OPENING BALANCE"), (-550, "100.00")),
        ((45, "02 Mar"), (110, "SHOP"), (-470, "50.00"), (-550, "50.00")),
        ((45, "03 Mar"), (110, "PAY"), (-470, "100.00"), (-550, "150.00")),
        ((45, "31 Mar"), (110, "CLOSING BALANCE"), (-550, "150.00")),
    )
    assert rows(found) == [("2024-03-02", "-50.00", "50.00"), ("2024-03-03", "100.00", "150.00")]
    assert found.verdict is Verdict.PARTIAL
    assert "SignsUnproved" in {reason.code for reason in found.reasons}


def test_titles_above_rows_give_the_signs_on_a_debt() -> None:
    head = Drawing().lines(
        ((45, "Credit card statement"),),
        ((45, "Card number 4557 0123 4567 8901"),),
        ((45, "Statement period 1 Mar 2024 - 31 Mar 2024"),),
        ((45, "Credit limit"), (-300, "$5,000.00")),
        ((45, "Minimum payment"), (-300, "$25.00")),
        ((45, "Opening balance"), (-300, "$500.00")),
        ((45, "Closing balance"), (-300, "$65.00")),
    )
    found = draw_and_extract(
        head,
        ((45, "Date"), (110, "Details"), (-550, "Amount $")),
        ((45, "Payments and refunds"),),
        ((45, "05 Mar"), (110, "PAYMENT THANK YOU"), (-550, "500.00")),
        ((45, "Purchases"),),
        ((45, "03 Mar"), (110, "SHOP"), (-550, "60.00")),
        ((45, "Fees and interest charges"),),
        ((45, "31 Mar"), (110, "LATE FEE"), (-550, "5.00")),
    )
    assert [row[1] for row in rows(found)] == ["500.00", "-60.00", "-5.00"]
    assert (found.opening_balance, found.closing_balance) == (Decimal("-500.00"), Decimal("-65.00"))
    assert found.verdict is Verdict.RECONCILED


@pytest.mark.parametrize(("upper", "lower"), [("1,", "000.00"), ("$1,", "000.00"), ("1,000.", "00")])
def test_an_amount_wrapped_onto_the_next_line_is_one(upper: str, lower: str) -> None:
    found = draw_and_extract(
        statement().line(*HEADING),
        ((45, "01 Mar"), (110, "OPENING BALANCE"), (-550, "100.00")),
        ((45, "02 Mar"), (110, "SALARY"), (-470, upper), (-550, "1,100.00")),
        ((110, "ACME"), (-470, lower)),
        ((45, "31 Mar"), (110, "CLOSING BALANCE"), (-550, "1,100.00")),
    )
    assert rows(found) == [("2024-03-02", "1000.00", "1100.00")]
    assert found.entries[0].description == "SALARY ACME"


def test_cr_below_an_amount_is_its_mark() -> None:
    found = draw_and_extract(
        statement(),
        ((45, "Date"), (110, "Details"), (-550, "Amount $")),
        ((45, "02 Mar"), (110, "PAYMENT"), (-550, "50.00")),
        ((-550, "CR"),),
        ((45, "03 Mar"), (110, "SHOP"), (-550, "20.00")),
    )
    assert [row[1] for row in rows(found)] == ["50.00", "-20.00"]


def test_aligned_figures_without_a_heading_are_read_and_not_proved() -> None:
    drawing = statement().line((45, "Noted"), (110, "Story"), (-400, "Gone"), (-470, "Come"), (-550, "Left"))
    found = extract_only_statement(four_rows(drawing).finish())
    assert rows(found) == FOUR
    assert found.verdict is Verdict.PARTIAL
    assert "SignsUnproved" in {reason.code for reason in found.reasons}


@pytest.mark.parametrize("wrong", ["95.10", "96.00", "895.00"])
def test_a_changed_digit_is_named_with_its_page_and_difference(wrong: str) -> None:
    found = draw_and_extract(
        statement().line(*HEADING),
        ((45, "01 Mar"), (110, "OPENING BALANCE"), (-550, "100.00")),
        ((45, "02 Mar"), (110, "COFFEE"), (-400, "5.00"), (-550, wrong)),
        ((45, "03 Mar"), (110, "TEA"), (-400, "5.00"), (-550, "90.00")),
        ((45, "31 Mar"), (110, "CLOSING BALANCE"), (-550, "90.00")),
    )
    assert found.verdict in (Verdict.PARTIAL, Verdict.UNRECONCILED)
    difference = Decimal(wrong) - Decimal("95.00")
    assert any(reason.page == 1 and f"{difference:,.2f}" in reason.message for reason in found.reasons)


def test_a_different_balance_in_the_summary_is_reported() -> None:
    drawing = statement().line((45, "Opening balance"), (-300, "$200.00"), step=40)
    found = extract_only_statement(four_rows(drawing.line(*HEADING)).finish())
    assert found.verdict is not Verdict.RECONCILED
    assert any("summary" in reason.message for reason in found.reasons)


def test_a_year_from_the_files_date_makes_dates_doubtful() -> None:
    drawing = Drawing().line((45, "BSB 123-456 Account number 12345678"), step=40)
    found = extract_only_statement(four_rows(drawing.line(*HEADING)).finish())
    assert found.verdict is Verdict.RECONCILED_DATES_DOUBTFUL
    assert [reason.code for reason in found.reasons] == ["DatesDoubtful"]


TWO = [("2024-03-02", "-5.00", "95.00"), ("2024-03-03", "1000.00", "1095.00")]


def test_dates_without_a_heading_are_read() -> None:
    found = draw_and_extract(
        statement(),
        ((90, "transaction"), (190, "description"), (-400, "debits"), (-470, "credits"), (-550, "balance")),
        ((45, "01.03.24"), (190, "OPENING BALANCE"), (-550, "100.00")),
        ((45, "02.03.24"), (90, "Card"), (190, "COFFEE"), (-400, "5.00"), (-550, "95.00")),
        ((45, "03.03.24"), (90, "Deposit"), (190, "SALARY"), (-470, "1,000.00"), (-550, "1,095.00")),
        ((190, "CLOSING BALANCE AS AT 31 MAR 24"), (-400, "5.00"), (-470, "1,000.00"), (-550, "1,095.00")),
    )
    assert (rows(found), found.verdict) == (TWO, Verdict.RECONCILED)


def test_separate_dollar_signs_and_stray_brackets_are_not_part_of_rows() -> None:
    found = draw_and_extract(
        statement().line(*HEADING),
        ((45, "01 Mar"), (110, "BALANCE B/F"), (500, "$"), (-550, "100.00")),
        ((45, "02 Mar"), (110, "COFFEE"), (-400, "5.00"), (404, "("), (500, "$"), (-550, "95.00 CR")),
        ((45, "03 Mar"), (110, "SALARY"), (420, "$"), (-470, "1,000.00"), (-550, "$1,095.00 CR")),
        ((45, "31 Mar"), (110, "CLOSING BALANCE"), (500, "$"), (-550, "1,095.00")),
    )
    assert (rows(found), found.verdict) == (TWO, Verdict.RECONCILED)
    assert [each.description for each in found.entries] == ["COFFEE", "SALARY"]


def test_tables_of_fees_and_rates_are_not_rows() -> None:
    found = draw_and_extract(
        statement().lines(((45, "Opening balance"), (-300, "$100.00")), ((45, "Closing balance"), (-300, "$1,095.00"))),
        HEADING,
        ((45, "02 Mar"), (110, "COFFEE"), (-400, "5.00"), (-550, "95.00")),
        ((45, "03 Mar"), (110, "SALARY"), (-470, "1,000.00"), (-550, "1,095.00")),
        ((45, "Fee summary"),),
        ((45, "Date"), (110, "Fee"), (-400, "Amount")),
        ((45, "02 Mar"), (110, "ATM fee"), (-400, "2.50")),
        ((45, "Total interest earned this financial year"), (-400, "12.34")),
    )
    assert (rows(found), found.verdict) == (TWO, Verdict.RECONCILED)


def test_an_advert_with_an_amount_below_a_column_is_not_a_row() -> None:
    found = draw_and_extract(
        statement().line(*HEADING),
        ((45, "01 Mar"), (110, "OPENING BALANCE"), (-550, "100.00")),
        ((45, "02 Mar"), (110, "COFFEE"), (-400, "5.00"), (-550, "95.00")),
        ((-402.5, "Earn more interest with a Harbour Lane deposit on balances over $5,000.00"),),
        ((45, "03 Mar"), (110, "SALARY"), (-470, "1,000.00"), (-550, "1,095.00")),
        ((45, "31 Mar"), (110, "CLOSING BALANCE"), (-550, "1,095.00")),
    )
    assert (rows(found), found.verdict) == (TWO, Verdict.RECONCILED)


def test_columns_may_be_shifted_from_page_to_page() -> None:
    drawing = statement().lines(HEADING, ((45, "01 Mar"), (110, "OPENING BALANCE"), (-550, "100.00")))
    drawing.line((45, "02 Mar"), (110, "COFFEE"), (-400, "5.00"), (-550, "95.00")).next_page()
    shifted = tuple((x + 20 if x > 0 else x - 20, text) for x, text in HEADING)
    found = draw_and_extract(
        drawing,
        shifted,
        ((65, "03 Mar"), (130, "SALARY"), (-490, "1,000.00"), (-570, "1,095.00")),
        ((65, "31 Mar"), (130, "CLOSING BALANCE"), (-570, "1,095.00")),
    )
    assert (rows(found), found.verdict) == (TWO, Verdict.RECONCILED)


def test_a_period_without_transactions_is_a_statement_without_rows() -> None:
    found = draw_and_extract(
        statement().line(*HEADING),
        ((45, "01 Mar"), (110, "OPENING BALANCE"), (-550, "100.00")),
        ((45, "31 Mar"), (110, "CLOSING BALANCE"), (-550, "100.00")),
    )
    assert (found.entries, found.verdict) == ((), Verdict.RECONCILED)


# Refusals


def encrypt_statement(password: str) -> bytes:
    target = io.BytesIO()
    with pikepdf.open(io.BytesIO(four_rows(statement().line(*HEADING)).finish())) as pdf:
        pdf.save(target, encryption=pikepdf.Encryption(user=password, owner="owner"))
    return target.getvalue()


@pytest.mark.parametrize(
    ("password", "expected"), [(None, Refusal.ENCRYPTED), ("wrong", Refusal.WRONG_PASSWORD), ("right", None)]
)
def test_a_protected_file_is_opened_only_by_its_password(password: str | None, expected: Refusal | None) -> None:
    found = extract(encrypt_statement("right"), password)
    assert found.refusal == expected
    assert bool(found.statements) == (expected is None)


def test_a_file_with_only_an_owners_password_is_read() -> None:
    assert extract(encrypt_statement("")).statements


WHOLE = four_rows(statement().line(*HEADING)).finish()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", Refusal.CORRUPT),
        (b"PK\x03\x04 not a PDF", Refusal.CORRUPT),
        (b"%PDF-1.7\n" + bytes(3_000), Refusal.CORRUPT),
        (Drawing().line((45, "Dear customer, nothing happened.")).finish(), Refusal.NOT_A_STATEMENT),
        (Drawing().finish(), Refusal.NOT_A_STATEMENT),
    ],
)
def test_other_files_are_refused_with_the_reason(content: bytes, expected: Refusal) -> None:
    found = extract(content)
    assert found.refusal is expected
    assert found.message


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_truncated_file_is_refused_or_read_and_never_raises(share: float) -> None:
    found = extract(WHOLE[: int(len(WHOLE) * share)])
    assert found.refusal or found.statements


def test_more_pages_or_characters_than_the_limits_are_refused() -> None:
    two = four_rows(statement().line(*HEADING)).next_page().line((45, "end")).finish()
    assert extract(two, limits=Limits(max_pages=1)).refusal is Refusal.TOO_MANY_PAGES
    assert extract(two, limits=Limits(max_characters=100)).refusal is Refusal.LIMITS_EXCEEDED
    assert extract(two, limits=Limits(max_pages=2)).statements


def test_progress_is_reported_after_each_page() -> None:
    described: list[tuple[int, int]] = []
    extract(
        four_rows(statement().line(*HEADING)).next_page().line((45, "end")).finish(),
        on_page=lambda done, total: described.append((done, total)),
    )
    assert described == [(1, 2), (2, 2)]


# Scans


def picture() -> bytes:
    drawing = Drawing()
    drawing.canvas.drawImage(ImageReader(Image.new("L", (60, 85), 200)), 0, 0, 595, 842)
    return drawing.finish()


def ocr(words: Sequence[tuple[float, float, str]]) -> list[ScannedWord]:
    """Convert words with places in points to pixels at 200 dpi; a negative place is a right edge."""
    found, scale = list[ScannedWord](), 200 / 72
    for x, y, text in words:
        width = 4.5 * len(text)
        left = x if x >= 0 else -x - width
        found.append(
            ScannedWord(text, left * scale, y * scale, (left + width) * scale, (y + 8) * scale, confidence=90.0)
        )
    return found


SCANNED = [
    (45, 60, "Statement"), (95, 60, "period"), (130, 60, "01/03/2024"), (190, 60, "to"), (205, 60, "31/03/2024"),
    (45, 90, "Date"), (110, 90, "Details"), (-400, 90, "Debit"), (-470, 90, "Credit"), (-550, 90, "Balance"),
    (45, 110, "01/03/2024"), (110, 110, "Opening"), (150, 110, "balance"), (-550, 110, "100.00"),
    (45, 125, "02/03/2024"), (110, 125, "COFFEE"), (-400, 125, "5.00"), (-550, 125, "95.00"),
    (45, 140, "03/03/2024"), (110, 140, "SALARY"), (-470, 140, "10.00"), (-550, 140, "105.00"),
    (45, 155, "31/03/2024"), (110, 155, "Closing"), (150, 155, "balance"), (-550, 155, "105.00"),
]  # fmt: skip


def test_a_scan_is_refused_without_ocr() -> None:
    found = extract(picture())
    assert found.refusal is Refusal.IMAGE_ONLY
    assert "tesseract" in (found.message or "")


def test_a_scan_is_read_by_ocr_and_needs_review() -> None:
    seen: list[tuple[int, tuple[int, int]]] = []

    def reader(page: int, png: bytes) -> list[ScannedWord]:
        seen.append((page, Image.open(io.BytesIO(png)).size))
        return ocr(SCANNED)

    (found,) = extract(picture(), scanned=reader).statements
    assert seen == [(1, (1653, 2339))]
    assert rows(found) == [("2024-03-02", "-5.00", "95.00"), ("2024-03-03", "10.00", "105.00")]
    assert (found.verdict, found.read_by_ocr) == (Verdict.PARTIAL, True)
    assert "NeedsReview" in {reason.code for reason in found.reasons}


def test_a_scan_of_two_pages_is_read_as_two() -> None:
    numbered = [(45, 30, "Page"), (75, 30, "1"), (85, 30, "of"), (100, 30, "1"), *SCANNED]
    words = ocr([*numbered, *((x, y + 421, text) for x, y, text in numbered)])
    found = extract(picture(), scanned=lambda _page, _png: words)
    both = [rows(each) for each in found.statements]
    assert both == [[("2024-03-02", "-5.00", "95.00"), ("2024-03-03", "10.00", "105.00")]] * 2
    upper, lower = (each.entries[0].boxes[0] for each in found.statements)
    assert (upper.page, lower.page, round(lower.top - upper.top)) == (1, 1, 421)


def test_more_scanned_pages_than_the_limit_are_refused() -> None:
    found = extract(picture(), scanned=lambda _page, _png: [], limits=Limits(max_scanned_pages=0))
    assert found.refusal is Refusal.LIMITS_EXCEEDED


def test_recognised_words_columns_and_rows_can_be_drawn() -> None:
    (page,) = trace_pages(WHOLE, None)
    assert page.number == 1
    assert len(page.rows) == 4
    assert {400, 470, 550} <= {round(box.left) for box in page.columns}
    assert any(round(box.left) == 110 for box in page.words)
