"""What the documentation says of the tables is what computes them."""

import pytest

from pipelines.figures.tables import Derived, Table
from pipelines.reports.aggregate import TABLES
from pipelines.reports.aggregate.described import as_markdown
from tests.root import ROOT

REPORTS = ROOT / "docs" / "reports.md"


def test_the_documentation_of_the_tables_is_current() -> None:
    """If not: put what `python -m pipelines.reports.aggregate.described` prints in its place."""
    assert as_markdown() in REPORTS.read_text("utf-8")


@pytest.mark.parametrize("table", TABLES, ids=[table.id for table in TABLES])
def test_every_table_and_figure_says_what_it_means(table: Table) -> None:
    unsaid = [c.name for c in table.columns if c.is_number and not (c.meaning or isinstance(c, Derived))]
    assert table.meaning
    assert unsaid == []
