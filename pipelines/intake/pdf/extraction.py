"""Read reconciled transactions from PDF bank statements.

    bytes → characters → words and lines, level and in order (`document`, `words`)
          → two pages of one sheet separated (`sheets`); pages grouped into documents and ordered (`documents`)
          → numbers in one style (`number_styles`)
          → the bank (`layouts`), and the section of each account (`sections`)
          → headings, columns, rows (`table`)
          → signs by evidence, dates with years, oldest first, proved by balances (`statements`)

Columns are found on the page; there are no templates for banks. A statement's verdict says how far its balances prove
its rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain

from pipelines.intake.pdf.document.document import LIMITS, Limits, Scanned, Unreadable, open_document, pages_of
from pipelines.intake.pdf.document.documents import Document, documents_of
from pipelines.intake.pdf.document.scanned import ScannedWord
from pipelines.intake.pdf.document.sections import split
from pipelines.intake.pdf.layout.columns import Columns
from pipelines.intake.pdf.layout.layouts import recognise_layout
from pipelines.intake.pdf.page.file_facts import Facts, facts_of
from pipelines.intake.pdf.page.number_styles import in_one_style
from pipelines.intake.pdf.page.page import Page, Word
from pipelines.intake.pdf.page.result import Box, Extraction, Kind, Refusal, Statement, refused_extraction
from pipelines.intake.pdf.statement.details import Details, details_of
from pipelines.intake.pdf.statement.integrity import signals_of
from pipelines.intake.pdf.statement.statements import statement_of
from pipelines.intake.pdf.table.table import Table, read_table

__all__ = ["LIMITS", "Limits", "ScannedWord", "TracedPage", "extract", "trace_pages"]

_NO_OCR = "The pages are pictures. Install tesseract (Debian package tesseract-ocr) to have scans read."
_NOTHING = "No table of transactions was found in the file."


def extract(
    content: bytes,
    password: str | None = None,
    *,
    limits: Limits = LIMITS,
    scanned: Scanned | None = None,
    on_page: Callable[[int, int], None] | None = None,
) -> Extraction:
    """Return the statements in a file, or why there are none. Never raises because of a file's contents.

    Args:
        content: the file.
        password: to open it.
        limits: beyond which the file is refused.
        scanned: reads a page that is a picture, given its number and a PNG at 200 dpi; None without OCR.
        on_page: called after each page with the number of pages read and the number of all pages.
    """
    try:
        with open_document(content, password) as document:
            page_count, facts = len(document), facts_of(document)
            documents = _read_documents(pages_of(document, limits, scanned, on_page))
    except Unreadable as unreadable:
        return refused_extraction(unreadable.refusal, unreadable.message, unreadable.pages)
    statements = tuple(statement for pages in documents for statement in statements_of(pages, facts))
    signals = signals_of(content, facts, documents, statements)
    if statements:
        return Extraction(page_count, statements, signals)
    if scanned is None and any(page.is_picture for document in documents for page in document.pages):
        return refused_extraction(Refusal.IMAGE_ONLY, _NO_OCR, page_count, signals)
    return refused_extraction(Refusal.NOT_A_STATEMENT, _NOTHING, page_count, signals)


def _read_documents(pages: Sequence[Page]) -> Sequence[Document]:
    """Return the documents of a file, with all amounts in one number style."""
    return [replace(document, pages=in_one_style(document.pages)) for document in documents_of(pages)]


def statements_of(document: Document, facts: Facts) -> Iterator[Statement]:
    """Yield a statement for each account of a document that has a table."""
    layout = recognise_layout(document.pages)
    for section in split(document.pages, layout):
        table, details = read_table(section.lines, layout), details_of(section, document, layout)
        if table.rows or _has_no_activity(table, details):
            yield statement_of(table, details, section, document, _creation_day(facts))


def _has_no_activity(table: Table, details: Details) -> bool:
    """Return whether a period has no transactions: a table's heading, and equal opening and closing balances."""
    same = details.opening_balance is not None and details.opening_balance == details.closing_balance
    return bool(table.regions) and same and details.kind is Kind.STATEMENT


def _creation_day(facts: Facts) -> date | None:
    return facts.created.date() if facts.created else None


@dataclass(frozen=True)
class TracedPage:
    """What was recognised on a page, in points of the page as shown."""

    number: int
    words: tuple[Box, ...]
    columns: tuple[Box, ...]  # right edges of figures and left edges of texts, each a box without width
    rows: tuple[Box, ...]


def trace_pages(content: bytes, password: str | None) -> Iterator[TracedPage]:
    """Yield the words, column edges and rows that were recognised on each page.

    Raises:
        Unreadable: the file can't be opened.
    """
    with open_document(content, password) as file:
        documents = _read_documents(pages_of(file))
    on_sheets: dict[int, list[TracedPage]] = {}
    for document in documents:
        layout = recognise_layout(document.pages)
        tables = [read_table(section.lines, layout) for section in split(document.pages, layout)]
        for page in document.pages:
            on_sheets.setdefault(page.sheet, []).append(_trace_page(page, tables))
    for number, pages in sorted(on_sheets.items()):
        yield _join_on_sheet(number, pages)


def _join_on_sheet(number: int, pages: Sequence[TracedPage]) -> TracedPage:
    """Join the traces of all pages on a sheet."""
    return TracedPage(
        number,
        tuple(chain.from_iterable(page.words for page in pages)),
        tuple(chain.from_iterable(page.columns for page in pages)),
        tuple(chain.from_iterable(page.rows for page in pages)),
    )


def _trace_page(page: Page, tables: Sequence[Table]) -> TracedPage:
    to_sheet = page.to_sheet
    edges = [
        edge
        for table in tables
        for columns, first, last in table.regions
        if first <= page.number <= last
        for edge in _edges(columns)
    ]
    bottom = max((line.box.bottom for line in page.lines), default=0.0)
    boxes = (box for table in tables for row in table.rows for box in row.boxes if box.page == page.number)
    return TracedPage(
        page.sheet,
        tuple(to_sheet(_box(page.number, word)) for line in page.lines for word in line.words),
        tuple(to_sheet(Box(page.number, edge, 0.0, edge, bottom)) for edge in sorted(set(edges))),
        tuple(to_sheet(box) for box in boxes),
    )


def _box(page: int, word: Word) -> Box:
    return Box(page, word.left, word.top, word.right, word.bottom)


def _edges(columns: Columns) -> Iterator[float]:
    yield from (figures.edge for figures in columns.figures)
    yield from (column.left for column in columns.heading.columns if column not in columns.heading.figures)
