"""Scanned pages, read by tesseract in a process of its own."""

import io
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pypdfium2 as pdfium
import pytest
from PIL import Image, ImageDraw, ImageFont

from isolation import LIMITS, ChildLimits, extract, ocr
from isolation.limits import MIB
from pipelines.intake.pdf.document.scanned import ScannedWord
from pipelines.intake.pdf.page.result import Refusal, Verdict
from pipelines.synthetic.pdf import statement_pdf

pytestmark = pytest.mark.service  # each test starts child processes

TESSERACT = ocr.find_tesseract()
needs_tesseract = pytest.mark.skipif(TESSERACT is None, reason="apt-get install tesseract-ocr to run this")


def picture(*lines: str) -> bytes:
    """Draw a page of A4 at 200 dpi, its first line 200 pixels from the left and the top."""
    page = Image.new("L", (1654, 2339), 255)
    for number, line in enumerate(lines):
        ImageDraw.Draw(page).text((200, 200 + 60 * number), line, 0, ImageFont.load_default(34))
    return png(page)


def png(image: Image.Image) -> bytes:
    content = io.BytesIO()
    image.save(content, "PNG")
    return content.getvalue()


def scan(*pictures: bytes) -> bytes:
    """Return a PDF file whose pages are these pictures."""
    first, *others = (Image.open(io.BytesIO(picture)) for picture in pictures)
    content = io.BytesIO()
    first.save(content, "PDF", resolution=200, save_all=True, append_images=others)
    return content.getvalue()


def scanned_pages(content: bytes) -> Iterator[bytes]:
    """Yield a file's pages as a scanner at 200 dpi sees them."""
    document = pdfium.PdfDocument(content)
    for page in document:
        yield png(page.render(scale=200 / 72, grayscale=True).to_pil())
        page.close()
    document.close()


def program(folder: Path, script: str) -> str:
    """Write a script that replaces tesseract, and return its path."""
    path = folder / "bin" / "tesseract"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def read_picture(png_: bytes, tesseract: str | None = TESSERACT, limits: ChildLimits = LIMITS) -> list[ScannedWord]:
    assert tesseract is not None
    return list(ocr.read_words(png_, limits, tesseract))


@needs_tesseract
def test_words_have_their_position_in_the_picture() -> None:
    lines = ("05 Feb 2025 Rent 1,200.00", "06 Feb 2025 Coffee 4.50")
    words = read_picture(picture(*lines))
    assert [word.text for word in words] == " ".join(lines).split()
    first = words[0]
    assert 195 < first.left < 210 < first.right < 260
    assert 195 < first.top < first.bottom < 250
    assert all(0 <= word.confidence <= 100 for word in words)


@needs_tesseract
@pytest.mark.parametrize(
    "content",
    [b"", b"\x89PNG\r\n\x1a\n", b"no picture", picture("Rent")[:3000], png(Image.new("L", (1654, 2339), 255))],
)
def test_a_page_without_text_has_no_words(content: bytes) -> None:
    assert read_picture(content) == []


@needs_tesseract
def test_without_memory_there_are_no_words() -> None:
    assert read_picture(picture("Rent"), limits=ChildLimits(memory_bytes=8 * MIB)) == []


def test_a_hanging_program_is_killed(tmp_path: Path) -> None:
    assert read_picture(picture("Rent"), program(tmp_path, "exec sleep 3600"), ChildLimits(scanned_page_s=1)) == []


@pytest.mark.parametrize(
    "script", ["exit 1", "echo garbage", "yes 5", "kill -9 $$", r"printf 'level\ttext\tleft\n5\tRent\tfar\n'"]
)
def test_invalid_output_yields_no_words(tmp_path: Path, script: str) -> None:
    assert read_picture(picture("Rent"), program(tmp_path, script)) == []


def test_tesseract_gets_only_the_environment_that_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_MASTER_KEY", "secret")
    monkeypatch.setenv("TESSDATA_PREFIX", "/usr/share/tessdata")
    head = r"printf 'level\tleft\ttop\twidth\theight\tconf\ttext\n'"
    row = r"printf '5\t1\t1\t1\t1\t9\t%s\n' OMP=$OMP_THREAD_LIMIT TESS=$TESSDATA_PREFIX KEY=$TIDEMARK_MASTER_KEY"
    texts = {word.text for word in read_picture(b"", program(tmp_path, f"{head}; {row}"))}
    assert texts == {"OMP=1", "TESS=/usr/share/tessdata", "KEY="}


def test_without_tesseract_the_refusal_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    refused = extract(scan(picture("05 Feb 2025 Rent 1,200.00")), None)
    assert refused.refusal is Refusal.IMAGE_ONLY
    assert "apt-get install tesseract-ocr" in (refused.message or "")


@needs_tesseract
def test_a_scanned_statement_is_read_and_never_reconciled() -> None:
    made = statement_pdf("westpac", 7, pages=2)
    reported: list[tuple[int, int]] = []
    answer = extract(
        scan(*scanned_pages(made.content)), None, on_progress=lambda done, total: reported.append((done, total))
    )
    (statement,) = answer.statements
    assert statement.read_by_ocr
    assert statement.verdict not in (Verdict.RECONCILED, Verdict.RECONCILED_DATES_DOUBTFUL)
    amounts = Counter(row.amount for row in made.rows)
    assert (Counter(entry.amount for entry in statement.entries) & amounts).total() > 0.9 * amounts.total()
    assert reported == [(1, 2), (2, 2)]


@needs_tesseract
def test_too_many_scanned_pages_are_refused() -> None:
    page = picture("05 Feb 2025 Rent 1,200.00")
    assert extract(scan(page, page), None, ChildLimits(scanned_pages=1)).refusal is Refusal.LIMITS_EXCEEDED
