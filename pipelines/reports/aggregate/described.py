"""The aggregate report's tables in words, from the same declarations that compute them.

`python -m pipelines.reports.aggregate.described` prints `docs/reference/report-tables.md`.
"""

import sys
from collections.abc import Sequence

from pipelines.figures.tables import Column, Derived, Table
from pipelines.reports.aggregate import TABLES

TITLE = """\
# Tables of the aggregate report

How they are meant to be read, and their units: [reports](../explanation/reports.md#aggregate).
"""


def as_markdown(tables: Sequence[Table] = TABLES) -> str:
    """A page with a section for each table: what it tells, and each column with its unit and its definition."""
    return "\n".join([TITLE, *map(_section, tables)])


def _section(table: Table) -> str:
    rows = [f"| `{column.name}` | {column.unit} | {_defined(column)} |" for column in table.columns]
    head = [f"## `{table.id}`: {table.name}", "", table.meaning, "", "| column | unit | definition |", "|---|---|---|"]
    return "\n".join([*head, *rows, ""])


def _defined(column: Column) -> str:
    parts = [column.meaning, column.words if isinstance(column, Derived) else ""]
    return ": ".join(part for part in parts if part).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(as_markdown())
