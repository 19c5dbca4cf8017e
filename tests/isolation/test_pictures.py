"""Pages drawn as pictures by a child."""

import io

import pytest
from PIL import Image, ImageChops

from isolation import ChildLimits, draw_explained_pages, draw_page
from pipelines.intake.pdf.page.result import Box
from pipelines.synthetic.pdf import statement_pdf
from tests.isolation import hostile

pytestmark = pytest.mark.service  # each test starts child processes

MADE = statement_pdf("westpac", 7, pages=2)


def read_picture(png: bytes | None) -> Image.Image:
    assert png is not None
    return Image.open(io.BytesIO(png)).convert("RGB")


def test_only_the_given_area_is_highlighted() -> None:
    plain = read_picture(draw_page(MADE.content, None, 2))
    marked = read_picture(draw_page(MADE.content, None, 2, [Box(2, 100, 200, 300, 220), Box(1, 10, 10, 20, 20)]))
    changed = ImageChops.difference(plain, marked).getbbox()
    assert changed is not None
    scale = plain.width / 595
    assert [round(edge / scale) for edge in changed] == pytest.approx([100, 200, 300, 220], abs=3)


@pytest.mark.parametrize("page", [-1, 0, 3, 2**70])
def test_a_missing_page_is_none(page: int) -> None:
    assert draw_page(MADE.content, None, page) is None


def test_a_file_that_can_not_be_opened_is_none() -> None:
    locked = hostile.encrypt_pdf(MADE.content, owner="of the bank", user="19850612")
    assert draw_page(locked, None, 1) is None
    assert draw_page(locked, "wrong", 1) is None
    assert draw_page(locked, "\ud800", 1) is None
    assert draw_page(locked, "19850612", 1) is not None
    assert draw_page(b"", None, 1) is None


@pytest.mark.parametrize("kind", ["image_bomb", "endless_page", "billion_forms", "compression_bomb"])
def test_a_hostile_page_is_drawn_within_limits_or_not_at_all(kind: str) -> None:
    png = draw_page(hostile.BOMBS[kind](), None, 1)
    assert png is None or max(read_picture(png).size) <= 6_000


def test_every_page_is_explained() -> None:
    pictures = dict(draw_explained_pages(MADE.content, None))
    assert list(pictures) == [1, 2]
    assert (
        ImageChops.difference(read_picture(pictures[1]), read_picture(draw_page(MADE.content, None, 1))).getbbox()
        is not None
    )


def test_explaining_ends_when_closed_or_out_of_time() -> None:
    pictures = draw_explained_pages(MADE.content, None)
    assert next(pictures)[0] == 1
    pictures.close()
    assert list(draw_explained_pages(MADE.content, None, ChildLimits(wall_s=0.01))) == []
