"""Find rows by any part of a text, of at least three characters.

PostgreSQL has an index of trigrams (pg_trgm), SQLite a table of FTS5 that triggers keep equal to the text. The text is
stored casefolded, so that case makes no difference.
"""

from itertools import pairwise
from typing import Any, Final, TypeAlias

from sqlalchemy import DDL, ColumnElement, Connection, MetaData, Select, Table, column, event, func, table

from storage.core.index_choice import without_index

_Query: TypeAlias = Select[*tuple[Any, ...]]
_PG_TRGM: Final = "CREATE EXTENSION IF NOT EXISTS pg_trgm"
SHORTEST: Final = 3  # characters of a part: a trigram

_INFO: Final = "text_search"  # a table's key and text
_ON_SQLITE: Final = (
    "CREATE VIRTUAL TABLE {index} USING fts5({text}, content='{table}', content_rowid='{key}', tokenize='trigram')",
    "CREATE TRIGGER {index}_insert AFTER INSERT ON {table} BEGIN {add}; END",
    "CREATE TRIGGER {index}_delete AFTER DELETE ON {table} BEGIN {remove}; END",
    "CREATE TRIGGER {index}_update AFTER UPDATE OF {text} ON {table} BEGIN {remove}; {add}; END",
)
_ON_POSTGRESQL: Final = "CREATE INDEX {index} ON {table} USING gin ({text} gin_trgm_ops)"
_ADD: Final = "INSERT INTO {index}(rowid, {text}) VALUES (new.{key}, new.{text})"
_REMOVE: Final = "INSERT INTO {index}({index}, rowid, {text}) VALUES ('delete', old.{key}, old.{text})"


def install_extension(metadata: MetaData) -> None:
    """Install PostgreSQL's extension, before any table is created."""
    event.listen(metadata, "before_create", DDL(_PG_TRGM).execute_if(dialect="postgresql"))


def index_parts(indexed: Table, key: str, text: str) -> None:
    """Index the parts of a column's text. `key` is the table's integer key."""
    indexed.info[_INFO] = (key, text)
    names = {"table": indexed.name, "key": key, "text": text, "index": _index_name(indexed)}
    changes = {"add": _ADD.format(**names), "remove": _REMOVE.format(**names)}
    for statement in _ON_SQLITE:
        event.listen(indexed, "after_create", DDL(statement.format(**names, **changes)).execute_if(dialect="sqlite"))
    event.listen(indexed, "after_drop", DDL(f"DROP TABLE {_index_name(indexed)}").execute_if(dialect="sqlite"))
    event.listen(indexed, "after_create", DDL(_ON_POSTGRESQL.format(**names)).execute_if(dialect="postgresql"))


def filter_by_part(r: Connection, query: _Query, indexed: Table, part: str) -> _Query:
    """Limit a query of an indexed table to the rows whose text contains the casefolded part, found by the index."""
    key, text = indexed.info[_INFO]
    if r.dialect.name == "postgresql":
        searched = _searched_trigrams(part)
        whole = () if searched == [part] else (contains(r, indexed, part),)
        return query.where(*(indexed.c[text].contains(words, autoescape=True) for words in searched), *whole)
    name = _index_name(indexed)
    parts = table(name, column("rowid"), column(name))
    phrase = '"' + part.replace('"', '""') + '"'
    # With the index of the rowid, SQLite may look for the phrase once for each row of the table instead of once.
    return query.join(parts, without_index(r, parts.c.rowid) == indexed.c[key]).where(parts.c[name].op("MATCH")(phrase))


def _searched_trigrams(part: str) -> list[str]:
    """Return the texts to search PostgreSQL's index for.

    For several words these are only the joints of neighbouring words: the last three letters of one and the first three
    of the next. Most rows with a joint also have the whole words, and each further trigram would take time.
    """
    return [f"{word[-SHORTEST:]} {following[:SHORTEST]}" for word, following in pairwise(part.split(" "))] or [part]


def contains(r: Connection, indexed: Table, part: str) -> ColumnElement[bool]:
    """Return the condition that a row's indexed text contains the casefolded part, to be checked without the index."""
    _, text = indexed.info[_INFO]
    find = func.strpos if r.dialect.name == "postgresql" else func.instr
    # PostgreSQL assumes that most rows fulfil `!= 0`. Therefore it scans the index that gives the list's order.
    return find(indexed.c[text], part) != 0


def _index_name(indexed: Table) -> str:
    return f"{indexed.name}_parts"
