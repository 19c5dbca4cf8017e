"""Triggers that make the database refuse to change or remove rows; `models` declares them with the tables."""

from typing import Literal

from sqlalchemy import DDL, MetaData, Table, event

REFUSALS = {"UPDATE": "changed", "DELETE": "removed"}
REFUSE = DDL(
    """
    CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION '%%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation'; END $$
    """
)


def create_refuse_function(metadata: MetaData) -> None:
    """Create the function that PostgreSQL's triggers call, before any table is created."""
    event.listen(metadata, "before_create", REFUSE.execute_if(dialect="postgresql"))


def refuse_changes(table: Table, change: Literal["UPDATE", "DELETE"], columns: str = "") -> None:
    """Add a trigger that refuses to change a table's rows (or only these columns), or to remove rows."""
    message = f"{table.name} rows are never {REFUSALS[change]}"
    name = message.replace(" ", "_")
    event_on_sqlite = f"{change} OF {columns}" if columns else change
    event_on_postgresql = "DELETE OR TRUNCATE" if change == "DELETE" else event_on_sqlite
    on_sqlite = (
        f"CREATE TRIGGER {name} BEFORE {event_on_sqlite} ON %(table)s BEGIN SELECT RAISE(ABORT, '{message}'); END"
    )
    on_postgresql = (
        f"CREATE TRIGGER {name} BEFORE {event_on_postgresql} ON %(fullname)s "
        f"FOR EACH STATEMENT EXECUTE FUNCTION refuse('{message}')"
    )
    event.listen(table, "after_create", DDL(on_sqlite).execute_if(dialect="sqlite"))
    event.listen(table, "after_create", DDL(on_postgresql).execute_if(dialect="postgresql"))
