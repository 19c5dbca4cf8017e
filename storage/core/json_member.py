"""Read a member of a JSON text in SQL, on both databases."""

from typing import Any

from sqlalchemy import ColumnElement, Text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class json_member(FunctionElement[str]):  # noqa: N801 - used like a function
    """The member of a JSON text at a path, as in `summary.completenessScore`, as text; null if there is none."""

    type = Text()
    inherit_cache = True

    def __init__(self, document: ColumnElement[Any], path: str) -> None:
        super().__init__(document, path)


@compiles(json_member, "sqlite")
def _on_sqlite(element: json_member, compiler: SQLCompiler, **options: Any) -> str:
    document, path = (compiler.process(clause, **options) for clause in element.clauses)
    return f"CAST(json_extract({document}, '$.' || {path}) AS TEXT)"


@compiles(json_member, "postgresql")
def _on_postgresql(element: json_member, compiler: SQLCompiler, **options: Any) -> str:
    document, path = (compiler.process(clause, **options) for clause in element.clauses)
    return f"(CAST({document} AS JSON) #>> string_to_array({path}, '.'))"
