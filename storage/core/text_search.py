"""Find rows by any part of a text, of at least three characters, by way of the index of `storage.core.text_index`."""

from typing import Final

from sqlalchemy import ColumnElement, Table, column, func, table

from storage.core.database import AnySelect, Reading
from storage.core.text_index import index_name, indexed_key_and_text

SHORTEST: Final = 3  # characters of a part: a trigram


def with_part(r: Reading, query: AnySelect, of: Table, part: str) -> AnySelect:
    """Limit a query of an indexed table to the rows whose text contains the casefolded part, by way of the index."""
    if r.dialect.name == "postgresql":
        return query.where(contains(r, of, part))
    name = index_name(of)
    parts = table(name, column("rowid"), column(name))
    key, _ = indexed_key_and_text(of)
    phrase = '"' + part.replace('"', '""') + '"'
    return query.join(parts, parts.c.rowid == of.c[key]).where(parts.c[name].op("MATCH")(phrase))


def contains(r: Reading, of: Table, part: str) -> ColumnElement[bool]:
    """Return the condition that a row's indexed text contains the casefolded part, for a query in another order."""
    _, text = indexed_key_and_text(of)
    return (
        of.c[text].contains(part, autoescape=True)
        if r.dialect.name == "postgresql"
        else func.instr(of.c[text], part) > 0
    )
