"""Keep SQLite, which has no statistics of the tables, from choosing an index that makes a query slow.

`Select.with_hint(table, "INDEXED BY …", "sqlite")` names the index of a table.
"""

from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, FromClause
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.sql.expression import UnaryExpression
from sqlalchemy.sql.operators import custom_op

_PLUS: Final = custom_op[Any]("+")


def without_index(r: Connection, column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return the column so that SQLite finds no rows by an index of it; see https://www.sqlite.org/optoverview.html."""
    return column if r.dialect.name == "postgresql" else UnaryExpression(column, operator=_PLUS, type_=column.type)


class HintingCompiler(SQLiteCompiler):
    """A compiler that writes hints, which SQLAlchemy has for other databases only."""

    def get_from_hint_text(self, table: FromClause, text: str | None) -> str | None:
        return text
