"""The documentation of the tables is generated from the declarations that compute them."""

import pytest

from pipelines.figures.tables import Derived, Table
from pipelines.reports.aggregate import TABLES
from pipelines.reports.aggregate.described import as_markdown
from tests.root import ROOT

PAGE = ROOT / "docs" / "reference" / "report-tables.md"


def test_the_documentation_of_the_tables_is_current() -> None:
    assert as_markdown() == PAGE.read_text("utf-8"), "run `make generated`"


@pytest.mark.parametrize("table", TABLES, ids=[table.id for table in TABLES])
def test_every_table_and_figure_has_a_meaning(table: Table) -> None:
    undescribed = [c.name for c in table.columns if c.is_number and not (c.meaning or isinstance(c, Derived))]
    assert table.meaning
    assert undescribed == []
