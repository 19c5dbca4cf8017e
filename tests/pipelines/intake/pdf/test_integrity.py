"""Signs of manipulation in a file, and genuine files that have none."""

import io
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pikepdf
import pytest
from reportlab.pdfgen.canvas import Canvas

from pipelines.intake.pdf.document.document import open_document, pages_of
from pipelines.intake.pdf.document.documents import documents_of
from pipelines.intake.pdf.page.file_facts import Facts, facts_of
from pipelines.intake.pdf.page.page import Line, Page
from pipelines.intake.pdf.page.result import Box, Entry, Kind, Reason, Severity, Signal, Statement, Verdict
from pipelines.intake.pdf.statement.integrity import signals_of
from tests.pipelines.intake.pdf.pages import line

ENTRY = Entry(date(2025, 1, 2), None, "Shop", Decimal("-1.00"), Decimal("9.00"), balance_printed=True, boxes=())
STATEMENT = Statement(
    bank=None, bank_name=None, account_name=None, bsb=None, account_number=None, account_type=None,
    kind=Kind.STATEMENT, period_start=date(2025, 1, 1), period_end=date(2025, 1, 31), opening_balance=None,
    closing_balance=None, credit_limit=None, verdict=Verdict.RECONCILED, reasons=(), entries=(), first_page=1,
    last_page=1, read_by_ocr=False,
)  # fmt: skip


def print_pages(*pages: str) -> bytes:
    """Write a file with a line and an amount on each page, as a bank's program does."""
    content = io.BytesIO()
    canvas = Canvas(content, pagesize=(595, 842), invariant=1)
    canvas.setProducer("Letters by the million 7")
    canvas.setCreator("")
    for text in pages or ("Page 1 of 1",):
        canvas.drawString(40, 800, text)
        canvas.drawRightString(550, 700, "1,234.56")
        canvas.showPage()
    canvas.save()
    return content.getvalue()


def change_pdf(content: bytes, change: Callable[[pikepdf.Pdf], None], *, linearize: bool = False) -> bytes:
    with pikepdf.open(io.BytesIO(content)) as document:
        change(document)
        saved = io.BytesIO()
        document.save(saved, linearize=linearize)
    return saved.getvalue()


def signals(content: bytes, *statements: Statement) -> tuple[Signal, ...]:
    with open_document(content, None) as document:
        return signals_of(content, facts_of(document), documents_of(pages_of(document)), statements)


def codes(found: tuple[Signal, ...]) -> list[tuple[str, str, int | None]]:
    return [(signal.code, signal.severity.value, signal.page) for signal in found]


def codes_of(facts: Facts, *statements: Statement) -> list[tuple[str, str, int | None]]:
    return codes(signals_of(b"", facts, (), statements))


def test_a_banks_own_file_has_no_signals() -> None:
    of_old = replace(STATEMENT, period_end=date(1999, 12, 31))
    assert signals(print_pages("Page 1 of 2", "Page 2 of 2"), of_old) == ()


def test_a_web_optimised_file_is_not_reported_as_changed() -> None:
    content = change_pdf(print_pages(), lambda _: None, linearize=True)
    assert content.count(b"%%EOF") == 2
    assert signals(content) == ()


def test_a_file_saved_again_by_appending_is_reported() -> None:
    content = print_pages()
    start = content.rindex(b"startxref") + len(b"startxref")
    appended = b"\nxref\n0 0\ntrailer\n<< /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    again = content + appended % int(content[start:].split()[0])
    assert codes(signals_of(again, Facts(), (), ())) == [("IncrementalUpdate", "warning", None)]
    assert "2 times" in signals_of(again + appended % 9, Facts(), (), ())[0].message


@pytest.mark.parametrize(
    ("producer", "creator", "expected"),
    [
        ("iLovePDF", "", ("EditingProgram", "alert", None)),
        ("Adobe PDF Library 17.0", "Adobe Photoshop 25.0", ("EditingProgram", "alert", None)),
        ("Sejda 3.2.1 (sejda.com)", "", ("EditingProgram", "alert", None)),
        ("Microsoft® Word for Microsoft 365", "", ("OfficeProgram", "alert", None)),
        ("Skia/PDF m120", "Chromium", ("PrintedAgain", "warning", None)),
        ("jsPDF 2.5.1", "", ("GeneratedFile", "information", None)),
        ("CamScanner", "", ("Scanned", "information", None)),
        ("Smart Communications SC32", "", None),
        ("Swordfish Letters", "Passwords & Co", None),
    ],
)
def test_a_program_that_banks_do_not_use_is_reported(
    producer: str, creator: str, expected: tuple[str, str, None] | None
) -> None:
    assert codes_of(Facts(producer, creator), STATEMENT) == ([expected] if expected else [])


def test_a_listing_printed_from_a_browser_is_normal() -> None:
    listing = replace(STATEMENT, kind=Kind.LISTING)
    assert codes_of(Facts("Skia/PDF m120"), listing) == [("PrintedAgain", "information", None)]


def test_a_producer_other_than_the_banks_usual_one_is_reported() -> None:
    of_up = replace(STATEMENT, bank="up")
    assert codes_of(Facts("Prawn"), of_up) == []
    assert codes_of(Facts("Letters 7"), of_up) == [("ProducerUnfamiliar", "information", None)]
    assert codes_of(Facts("iLovePDF"), of_up) == [("EditingProgram", "alert", None)]


def test_a_file_modified_later_or_made_too_early_is_reported() -> None:
    made, soon = datetime(2025, 2, 1, 9, tzinfo=UTC), datetime(2025, 2, 1, 9, 1, tzinfo=UTC)
    later = datetime(2025, 3, 1, tzinfo=UTC)
    assert codes_of(Facts(created=made, modified=soon), STATEMENT) == []
    assert codes_of(Facts(created=made, modified=later), STATEMENT) == [("ModifiedLater", "warning", None)]
    early = Facts(created=datetime(2025, 1, 20, tzinfo=UTC))
    assert codes_of(early, STATEMENT) == [("MadeBeforePeriodEnd", "warning", None)]


def facts_with(**entries: str | bytes) -> Facts:
    def say(document: pikepdf.Pdf) -> None:
        for key, text in entries.items():
            document.docinfo[f"/{key}"] = pikepdf.String(text)

    with open_document(change_pdf(print_pages(), say), None) as document:
        return facts_of(document)


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("D:20250201100000+10'30'", datetime(2025, 1, 31, 23, 30, tzinfo=UTC)),
        ("D:20250201100000Z", datetime(2025, 2, 1, 10, tzinfo=UTC)),
        ("D:20250201100000", datetime(2025, 2, 1, 10)),  # noqa: DTZ001  no zone is named
        ("D:20250199100000", None),
        ("D:00010101000000+10'00'", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=10)))),
        ("D:20250201100000+99'00'", None),
        ("yesterday", None),
    ],
)
def test_times_in_a_file_may_have_zones_or_be_invalid(written: str, moment: datetime | None) -> None:
    assert facts_with(CreationDate=written).created == moment


def test_times_with_and_without_a_zone_are_compared_with_tolerance() -> None:
    local, utc = datetime(2025, 2, 1, 9), datetime(2025, 1, 31, 22, 0, tzinfo=UTC)  # noqa: DTZ001
    assert codes_of(Facts(created=utc, modified=local)) == []
    assert codes_of(Facts(created=utc, modified=local + timedelta(days=2))) == [("ModifiedLater", "warning", None)]


def test_a_zone_on_the_other_side_of_the_world_is_within_the_tolerance() -> None:
    """Made at 9:00 in Los Angeles by a program that states no zone, and saved a minute later by one in Sydney."""
    local = datetime(2025, 2, 1, 9)  # noqa: DTZ001
    sydney = datetime(2025, 2, 2, 4, 1, tzinfo=timezone(timedelta(hours=11)))
    assert codes_of(Facts(created=local, modified=sydney)) == []
    assert codes_of(Facts(created=local, modified=sydney + timedelta(days=1))) == [("ModifiedLater", "warning", None)]


def test_a_producer_may_be_broken_text() -> None:
    facts = facts_with(Producer="Letters\u0000\n7", Creator=b"\xfe\xff\xd8\x3d\x00A")
    assert facts.producer == "Letters7"
    assert facts.creator == "A"


def annotate_statement(kind: str, rectangle: list[int], rotated: int = 0) -> bytes:
    def annotate(document: pikepdf.Pdf) -> None:
        annotation = pikepdf.Dictionary(
            Type=pikepdf.Name.Annot, Subtype=pikepdf.Name(f"/{kind}"), Rect=rectangle, Contents="1,334.56"
        )
        document.pages[0].Annots = document.make_indirect(pikepdf.Array([annotation]))
        document.pages[0].Rotate = rotated

    return change_pdf(print_pages(), annotate)


@pytest.mark.parametrize(
    ("kind", "severity"),
    [("FreeText", "alert"), ("Stamp", "alert"), ("Redact", "alert"), ("Square", "alert"), ("Highlight", "information")],
)
def test_an_overlay_over_an_amount_is_more_severe_than_a_readers_mark(kind: str, severity: str) -> None:
    assert codes(signals(annotate_statement(kind, [500, 690, 560, 715]))) == [("OverlayAnnotation", severity, 1)]


def test_an_overlay_beside_amounts_is_a_warning_and_a_link_is_ignored() -> None:
    assert codes(signals(annotate_statement("Stamp", [40, 40, 140, 90]))) == [("OverlayAnnotation", "warning", 1)]
    assert signals(annotate_statement("Link", [500, 690, 560, 715])) == ()


def test_an_overlays_place_is_on_the_page_as_shown() -> None:
    with open_document(annotate_statement("Stamp", [40, 742, 140, 802], rotated=90), None) as document:
        assert facts_of(document).overlays[0].box == Box(1, 742.0, 40.0, 802.0, 140.0)


def row(top: float, amount: str, font: str = "Helvetica", size: float = 9.0, text_font: str = "Helvetica") -> Line:
    text = line("02 Jan Shop", 1, top, text_font)
    figures = line(amount, 1, top, font, size).words
    width = figures[-1].right - figures[0].left
    moved = [replace(word, left=word.left + 500 - width, right=word.right + 500 - width) for word in figures]
    return Line(1, (*text.words, *moved))


def fonts_of(*lines: Line) -> list[tuple[str, str, int | None]]:
    boxes = [Box(1, 0.0, each.box.top, 560.0, each.box.bottom) for each in lines]
    entries = tuple(replace(ENTRY, boxes=(box,)) for box in boxes)
    pages = [Page(1, 595.0, 842.0, lines, is_picture=False, read_by_ocr=False)]
    return codes(signals_of(b"", Facts(), documents_of(pages), [replace(STATEMENT, entries=entries)]))


def test_an_amount_in_another_font_or_size_than_its_column_is_reported() -> None:
    plain = [row(40.0 + 14 * number, "12.50") for number in range(9)]
    assert fonts_of(*plain) == []
    assert fonts_of(*plain, row(300, "19.99", "ABCDEF+Arial")) == [("MixedDigitFonts", "warning", 1)]
    assert fonts_of(*plain, row(300, "19.99", size=9.8)) == [("MixedDigitFonts", "warning", 1)]


def test_a_bold_row_and_a_column_of_many_fonts_are_not_reported() -> None:
    plain = [row(40.0 + 14 * number, "12.50") for number in range(9)]
    assert fonts_of(*plain, row(300, "19.99", "Helvetica-Bold", text_font="Helvetica-Bold")) == []
    mixed = [row(40.0 + 14 * number, "12.50", ("Courier", "Times")[number % 2]) for number in range(10)]
    assert fonts_of(*mixed) == []


@pytest.mark.parametrize("font", ["Helvetica", "Times-Roman", "Courier"])
def test_a_figure_over_another_is_reported_and_one_printed_twice_is_bold(font: str) -> None:
    def twice(second: str) -> bytes:
        content = io.BytesIO()
        canvas = Canvas(content, pagesize=(595, 842))
        canvas.setFont("Helvetica", 9)
        canvas.drawRightString(550, 700, "1,234.56")
        canvas.setFont(font, 9)
        canvas.drawRightString(550, 700, second)
        canvas.drawString(40, 650, "Version 1.2.3, 2,4.5 and 1.000.000")
        canvas.save()
        return content.getvalue()

    assert ("FigureOverFigure", "alert", 1) in codes(signals(twice("9,876.01")))
    assert "FigureOverFigure" not in {code for code, _, _ in codes(signals(twice("1,234.56")))} or font != "Helvetica"


def test_a_balance_that_contradicts_the_rows_is_an_alert_on_its_page() -> None:
    reasons = (Reason("BalanceMismatch", "The balance printed is 5.00.", 2), Reason("NoBalances", "None."))
    partial = replace(STATEMENT, verdict=Verdict.PARTIAL, reasons=reasons)
    alert = Signal("BalanceContradicted", Severity.ALERT, "The balance printed is 5.00.", 2)
    assert signals_of(b"", Facts(), (), [partial]) == (alert,)


def test_many_contradictions_are_one_warning_about_the_reading() -> None:
    reasons = (Reason("BalanceMismatch", "One.", 2), Reason("BalanceMismatch", "Another.", 3))
    unproved = replace(STATEMENT, verdict=Verdict.UNRECONCILED, reasons=reasons)
    assert codes_of(Facts(), unproved) == [("BalanceContradicted", "warning", 2)]


@pytest.mark.parametrize(
    ("page_labels", "expected"),
    [
        (["Page 1 of 3", "Page 2 of 3", "Page 3 of 3"], []),
        (["Page 1 of 2", "Page 2 of 2", "Page 1 of 1"], []),
        (["Page 1 of 3", "Page 3 of 3", "Page 2 of 3"], ["PageOutOfSequence 3"]),
        (["Page 3 of 3", "Page 2 of 3", "Page 1 of 3"], ["PageOutOfSequence 2", "PageOutOfSequence 3"]),
        (["Page 1 of 3", "Page 3 of 3"], ["PageMissing 2"]),
        (["Page 2 of 3", "Page 3 of 3"], ["PageMissing 1"]),
        (["Statement", "Page 2 of 3", "Page 3 of 3"], []),
        (["Page 1 of 3", "Page 2 of 3"], ["PageMissing 2"]),
        (["Statement", "Balance 1 of 3"], []),
    ],
)
def test_pages_out_of_order_are_reported(page_labels: list[str], expected: list[str]) -> None:
    assert [f"{signal.code} {signal.page}" for signal in signals(print_pages(*page_labels))] == expected


def running(*days: int, proved: bool = True) -> Statement:
    """Build a statement with a page for each day."""
    boxes = [Box(page, 0.0, 0.0, 1.0, 1.0) for page in range(1, len(days) + 1)]
    entries = (
        replace(ENTRY, date=date(2025, 1, day), boxes=(box,), proved=proved)
        for day, box in zip(days, boxes, strict=True)
    )
    return replace(STATEMENT, entries=tuple(entries))


def test_a_page_with_dates_against_the_order_is_reported_less_severely_if_balances_agree() -> None:
    assert codes_of(Facts(), running(1, 8, 15, 22)) == []
    assert codes_of(Facts(), running(22, 15, 8, 1)) == []
    assert codes_of(Facts(), running(1, 15, 8, 22)) == [("DatesOutOfSequence", "information", 3)]
    assert codes_of(Facts(), running(1, 15, 8, 22, proved=False)) == [("DatesOutOfSequence", "warning", 3)]


def test_scripts_and_attachments_are_reported_and_not_opened() -> None:
    def fill(document: pikepdf.Pdf) -> None:
        document.attachments["other.txt"] = b"other"
        script = pikepdf.Dictionary(S=pikepdf.Name.JavaScript, JS="app.alert(1)")
        document.Root.Names.JavaScript = pikepdf.Dictionary(Names=["run", document.make_indirect(script)])

    found = codes(signals(change_pdf(print_pages(), fill)))
    assert found == [("Script", "information", None), ("Attachment", "information", None)]


def test_a_script_that_runs_on_opening_is_reported() -> None:
    def open_with_script(document: pikepdf.Pdf) -> None:
        document.Root.OpenAction = pikepdf.Dictionary(S=pikepdf.Name.JavaScript, JS="app.alert(1)")

    assert codes(signals(change_pdf(print_pages(), open_with_script))) == [("Script", "information", None)]


def test_the_most_severe_signal_comes_first() -> None:
    facts = Facts(
        "iLovePDF", created=datetime(2025, 2, 1, tzinfo=UTC), modified=datetime(2025, 3, 1, tzinfo=UTC), scripts=1
    )
    assert [severity for _, severity, _ in codes_of(facts, STATEMENT)] == ["alert", "warning", "information"]
