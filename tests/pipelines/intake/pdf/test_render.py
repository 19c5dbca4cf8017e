"""Pages drawn as pictures with places marked."""

import io

import pikepdf
import pytest
from PIL import Image
from reportlab.pdfgen.canvas import Canvas

from pipelines.intake.pdf.document.document import Unreadable
from pipelines.intake.pdf.page.result import Box
from pipelines.intake.pdf.render import draw_explained_pages, draw_page

ROWS = ("02 Jan 2025", "Shop", "1.00", "9.00"), ("03 Jan 2025", "Salary", "5.00", "14.00")
WHITE = (255, 255, 255)


def statement(size: tuple[int, int] = (595, 842), pages: int = 1) -> bytes:
    content = io.BytesIO()
    canvas = Canvas(content, pagesize=size)
    for page in range(1, pages + 1):
        canvas.drawString(40, 800, f"Page {page} of {pages}")  # a copy of a page would be left out
        for number, cells in enumerate((("Date", "Details", "Debit", "Balance"), *ROWS)):
            for text, left in zip(cells, (40, 140, 400, 500), strict=True):
                canvas.drawString(left, 700 - 20 * number, text)
        canvas.showPage()
    canvas.save()
    return content.getvalue()


def picture(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png)).convert("RGB")


def colour(image: Image.Image, x: float, y: float) -> tuple[int, ...]:
    found = image.getpixel((round(x), round(y)))
    assert isinstance(found, tuple)
    return found


def test_a_page_is_drawn_at_its_scale_and_its_boxes_are_marked() -> None:
    box = Box(1, 40.0, 300.0, 540.0, 320.0)
    plain, marked = (picture(draw_page(statement(), None, 1, boxes)) for boxes in ((), (box,)))
    assert plain.size == marked.size == (1190, 1684)
    assert colour(plain, 600, 620) == WHITE
    red, green, blue = colour(marked, 600, 620)
    assert red > 200
    assert green > 200 > blue
    assert colour(marked, 600, 660) == WHITE


def test_boxes_of_other_pages_are_not_marked() -> None:
    other = Box(2, 40.0, 300.0, 540.0, 320.0)
    content = statement(pages=2)
    assert draw_page(content, None, 1, (other,)) == draw_page(content, None, 1)
    assert draw_page(content, None, 2, (other,)) != draw_page(content, None, 2)


def test_boxes_are_in_points_of_the_page_as_shown() -> None:
    with pikepdf.open(io.BytesIO(statement())) as document:
        document.pages[0].Rotate = 90
        turned = io.BytesIO()
        document.save(turned)
    image = picture(draw_page(turned.getvalue(), None, 1, (Box(1, 800.0, 10.0, 830.0, 40.0),), scale=1.0))
    assert image.size == (842, 595)
    assert colour(image, 815, 25) != WHITE
    assert colour(image, 25, 570) == WHITE


def test_the_picture_of_a_huge_page_is_limited_in_size() -> None:
    assert max(picture(draw_page(statement((14_000, 900)), None, 1)).size) <= 6_000


@pytest.mark.parametrize("page", [0, 2, -1])
def test_a_page_that_does_not_exist_is_refused(page: int) -> None:
    with pytest.raises(IndexError, match="1 pages"):
        draw_page(statement(), None, page)


def test_a_file_that_cannot_be_opened_is_refused() -> None:
    with pytest.raises(Unreadable):
        draw_page(b"%PDF-1.7 and no more", None, 1)


def test_a_page_that_cannot_be_drawn_is_refused() -> None:
    with pikepdf.open(io.BytesIO(statement(pages=2))) as document:
        document.Root.Pages.Kids[1] = document.make_indirect(pikepdf.Dictionary(Type=pikepdf.Name.Nonsense))
        broken = io.BytesIO()
        document.save(broken)
    assert draw_page(broken.getvalue(), None, 1)
    with pytest.raises(Unreadable, match="Page 2"):
        draw_page(broken.getvalue(), None, 2)


def test_each_page_is_drawn_with_its_words_rows_and_columns() -> None:
    explained = list(draw_explained_pages(statement(pages=2), None))
    assert [number for number, _ in explained] == [1, 2]
    plain = picture(draw_page(statement(pages=2), None, 1))
    colours = {found for _, found in picture(explained[0][1]).getcolors(2**20) or ()}
    assert (220, 0, 0) in colours
    assert colours - {found for _, found in plain.getcolors(2**20) or ()}
