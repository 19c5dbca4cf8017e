"""The aggregate report's tables described in words, from the declarations that compute them.

`python -m pipelines.reports.aggregate.described` prints `docs/reference/report-tables.md`.
"""

import sys
from collections.abc import Sequence

from pipelines.figures.tables import Column, Derived, Table
from pipelines.reports.aggregate import TABLES

TITLE = """\
# Tables of the aggregate report

[Reports](../explanation/reports.md#aggregate) explains how to read them, and their units.
"""


def as_markdown(tables: Sequence[Table] = TABLES) -> str:
    """Return a page with a section for each table: its meaning, and each column with its unit and definition."""
    return "\n".join([TITLE, *map(_section, tables)])


def _section(table: Table) -> str:
    rows = [f"| `{column.name}` | {column.unit} | {_definition(column)} |" for column in table.columns]
    head = [f"## `{table.id}`: {table.name}", "", table.meaning, "", "| column | unit | definition |", "|---|---|---|"]
    return "\n".join([*head, *rows, ""])


def _definition(column: Column) -> str:
    parts = [column.meaning, column.words if isinstance(column, Derived) else ""]
    return ": ".join(part for part in parts if part).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(as_markdown())
