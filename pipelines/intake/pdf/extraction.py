"""PDF bank statements in, reconciled transactions out.

    bytes → characters → words and lines, level and in order (`document`, `words`)
          → two pages of one sheet apart (`sheets`); pages of one document together and in order (`documents`)
          → numbers in one style (`number_styles`)
          → whose statement it is (`layouts`), and where each account's part begins (`sections`)
          → headings, columns, rows (`table`)
          → signs from evidence, dates with their years, oldest first, proved by the balances (`statements`)

Columns are learned from the page; there is no template for a bank. What a statement doesn't prove, its verdict says.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain

from pipelines.intake.pdf.document.document import LIMITS, Limits, Scanned, Unreadable, opened, pages_of
from pipelines.intake.pdf.document.documents import Document, documents_of
from pipelines.intake.pdf.document.scanned import ScannedWord
from pipelines.intake.pdf.document.sections import split
from pipelines.intake.pdf.layout.columns import Columns
from pipelines.intake.pdf.layout.layouts import recognise_layout
from pipelines.intake.pdf.page.file_facts import Facts, facts_of
from pipelines.intake.pdf.page.number_styles import in_one_style
from pipelines.intake.pdf.page.page import Page, Word
from pipelines.intake.pdf.page.result import Box, Extraction, Kind, Refusal, Statement, refused
from pipelines.intake.pdf.statement.details import Details, details_of
from pipelines.intake.pdf.statement.integrity import signals_of
from pipelines.intake.pdf.statement.statements import statement_of
from pipelines.intake.pdf.table.table import Table, read_table

__all__ = ["LIMITS", "Limits", "ScannedWord", "TracedPage", "extract", "traced"]

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
    """The statements in a file, or why there are none. Never raises for what a file holds.

    Args:
        content: the file.
        password: opens it.
        limits: beyond them it is refused.
        scanned: reads a page that is a picture (its number, and a PNG at 200 dpi); None where nothing can.
        on_page: told after each page how many of how many were read.
    """
    try:
        with opened(content, password) as document:
            number, facts = len(document), facts_of(document)
            documents = _read(pages_of(document, limits, scanned, on_page))
    except Unreadable as unreadable:
        return refused(unreadable.refusal, unreadable.message, unreadable.pages)
    statements = tuple(statement for each in documents for statement in statements_of(each, facts))
    signals = signals_of(content, facts, documents, statements)
    if statements:
        return Extraction(number, statements, signals)
    if scanned is None and any(page.is_picture for each in documents for page in each.pages):
        return refused(Refusal.IMAGE_ONLY, _NO_OCR, number, signals)
    return refused(Refusal.NOT_A_STATEMENT, _NOTHING, number, signals)


def _read(pages: Sequence[Page]) -> Sequence[Document]:
    """The documents of a file, each with numbers in its own style."""
    return [replace(document, pages=in_one_style(document.pages)) for document in documents_of(pages)]


def statements_of(document: Document, facts: Facts) -> Iterator[Statement]:
    """A statement for each account of a document that has a table."""
    layout = recognise_layout(document.pages)
    for section in split(document.pages, layout):
        table, details = read_table(section.lines, layout), details_of(section, document, layout)
        if table.rows or _stood_still(table, details):
            yield statement_of(table, details, section, document, _made(facts))


def _stood_still(table: Table, details: Details) -> bool:
    """A period without transactions: a table's heading, and one balance from first to last."""
    same = details.opening_balance is not None and details.opening_balance == details.closing_balance
    return bool(table.regions) and same and details.kind is Kind.STATEMENT


def _made(facts: Facts) -> date | None:
    return facts.created.date() if facts.created else None


@dataclass(frozen=True)
class TracedPage:
    """What the reading of a page went by, in points of the page as shown."""

    number: int
    words: tuple[Box, ...]
    columns: tuple[Box, ...]  # right edges of figures and left ends of texts, each a box without width
    rows: tuple[Box, ...]


def traced(content: bytes, password: str | None) -> Iterator[TracedPage]:
    """Words, column edges and rows of each page.

    Raises:
        Unreadable: the file can't be opened.
    """
    with opened(content, password) as document:
        documents = _read(pages_of(document))
    on_sheets: dict[int, list[TracedPage]] = {}
    for each in documents:
        layout = recognise_layout(each.pages)
        tables = [read_table(section.lines, layout) for section in split(each.pages, layout)]
        for page in each.pages:
            on_sheets.setdefault(page.sheet, []).append(_traced(page, tables))
    for number, pages in sorted(on_sheets.items()):
        yield _on_sheet(number, pages)


def _on_sheet(number: int, pages: Sequence[TracedPage]) -> TracedPage:
    """What the reading of all pages on a sheet went by."""
    return TracedPage(
        number,
        tuple(chain.from_iterable(page.words for page in pages)),
        tuple(chain.from_iterable(page.columns for page in pages)),
        tuple(chain.from_iterable(page.rows for page in pages)),
    )


def _traced(page: Page, tables: Sequence[Table]) -> TracedPage:
    shown = page.shown
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
        tuple(shown(_box(page.number, word)) for line in page.lines for word in line.words),
        tuple(shown(Box(page.number, edge, 0.0, edge, bottom)) for edge in sorted(set(edges))),
        tuple(shown(box) for box in boxes),
    )


def _box(page: int, word: Word) -> Box:
    return Box(page, word.left, word.top, word.right, word.bottom)


def _edges(columns: Columns) -> Iterator[float]:
    yield from (each.edge for each in columns.figures)
    yield from (column.left for column in columns.heading.columns if column not in columns.heading.figures)
