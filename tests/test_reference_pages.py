"""The pages of docs/reference/ are what the code says today."""

import pytest

from docs import reference_pages
from tests.root import ROOT

REFERENCE = ROOT / "docs" / "reference"


def test_pages_are_up_to_date(subtests: pytest.Subtests) -> None:
    for name, text in reference_pages.pages().items():
        with subtests.test(name):
            assert (REFERENCE / name).read_text("utf-8") == text, "run `make generated`"


def test_no_page_is_left_of_what_is_gone() -> None:
    stored = {
        path.relative_to(REFERENCE).as_posix()
        for folder in reference_pages.FOLDERS
        for path in (REFERENCE / folder).iterdir()
    }
    assert stored <= reference_pages.pages().keys(), "run `make generated`"
