"""Index the parts of a column's text, of at least three characters; `storage.core.text_search` uses the index.

PostgreSQL has an index of trigrams (pg_trgm), SQLite a table of FTS5 that triggers keep equal to the text. The text is
stored casefolded, so that case makes no difference.
"""

from typing import Final

from sqlalchemy import DDL, MetaData, Table, event

PG_TRGM: Final = "CREATE EXTENSION IF NOT EXISTS pg_trgm"

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


def install(metadata: MetaData) -> None:
    """Install PostgreSQL's extension, before any table is created."""
    event.listen(metadata, "before_create", DDL(PG_TRGM).execute_if(dialect="postgresql"))


def index_parts(of: Table, key: str, text: str) -> None:
    """Index the parts of a column's text. `key` is the table's integer key."""
    of.info[_INFO] = (key, text)
    names = {"table": of.name, "key": key, "text": text, "index": index_name(of)}
    changes = {"add": _ADD.format(**names), "remove": _REMOVE.format(**names)}
    for statement in _ON_SQLITE:
        event.listen(of, "after_create", DDL(statement.format(**names, **changes)).execute_if(dialect="sqlite"))
    event.listen(of, "after_drop", DDL(f"DROP TABLE {index_name(of)}").execute_if(dialect="sqlite"))
    event.listen(of, "after_create", DDL(_ON_POSTGRESQL.format(**names)).execute_if(dialect="postgresql"))


def index_name(of: Table) -> str:
    return f"{of.name}_parts"


def indexed_key_and_text(of: Table) -> tuple[str, str]:
    """Return the names of the columns that `index_parts` was called with."""
    found: tuple[str, str] = of.info[_INFO]
    return found
