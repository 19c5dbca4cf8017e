"""Keep SQLite, which has no statistics of the tables, from choosing an index that makes a query slow."""

from typing import Any, Final

from sqlalchemy import ColumnElement, Connection
from sqlalchemy.sql.expression import UnaryExpression
from sqlalchemy.sql.operators import custom_op

_PLUS: Final = custom_op[Any]("+")


def without_index(r: Connection, column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return the column so that SQLite finds no rows by an index of it; see https://www.sqlite.org/optoverview.html."""
    return column if r.dialect.name == "postgresql" else UnaryExpression(column, operator=_PLUS, type_=column.type)
