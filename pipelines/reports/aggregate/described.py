"""The tables in words, as `docs/reports.md` has them: from the same declarations that compute them.

python -m pipelines.reports.aggregate.described
"""

import sys
from collections.abc import Sequence

from pipelines.figures.tables import Column, Derived, Table
from pipelines.reports.aggregate import TABLES


def as_markdown(tables: Sequence[Table] = TABLES) -> str:
    """A section for each table: what it tells, and each column with its unit and its definition."""
    return "\n".join(_section(table) for table in tables)


def _section(table: Table) -> str:
    rows = [f"| `{column.name}` | {column.unit} | {_defined(column)} |" for column in table.columns]
    head = [f"### `{table.id}`: {table.name}", "", table.meaning, "", "| column | unit | definition |", "|---|---|---|"]
    return "\n".join([*head, *rows, ""])


def _defined(column: Column) -> str:
    parts = [column.meaning, column.words if isinstance(column, Derived) else ""]
    return ": ".join(part for part in parts if part).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(as_markdown())
