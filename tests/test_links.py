"""Links of the documentation to other pages and to files are valid."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.root import ROOT

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PAGES = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def anchors(page: Path) -> set[str]:
    """Return explicit anchors, and those that forges make of headings: lower case, hyphens for spaces, no
    punctuation.
    """
    text = page.read_text()
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in HEADING.findall(text))
    return set(re.findall(r'<a id="([^"]+)"', text)) | {
        re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in plain
    }


def test_links_are_valid(subtests: pytest.Subtests) -> None:
    assert len(PAGES) > 40
    for name in PAGES:
        page = ROOT / name
        links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
        with subtests.test(name):
            assert [link for link in links if not is_valid(page, link)] == []


def is_valid(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or target.suffix != ".md" or anchor in anchors(target))
