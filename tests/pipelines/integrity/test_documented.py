"""The documentation names every finding, and states correctly which ones true revenue leaves out."""

import re
from pathlib import Path

from pipelines.integrity import load_descriptions

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "integrity.md"


def test_the_page_names_every_finding_and_what_it_leaves_out() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| (yes|no)[^|]*\|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert dict(rows) == {code: "yes" if each.excludes else "no" for code, each in load_descriptions().items()}
