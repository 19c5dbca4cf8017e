"""The audit trail is append-only: the database itself refuses to change or remove an entry."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

POSTGRES = (
    """
    CREATE FUNCTION refuse_to_change_audit() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'audit entries are never changed' USING ERRCODE = 'integrity_constraint_violation'; END $$
    """,
    """
    CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_audit()
    """,
)
SQLITE = tuple(
    f"""
    CREATE TRIGGER audit_is_append_only_on_{change.lower()} BEFORE {change} ON audit
    BEGIN SELECT RAISE(ABORT, 'audit entries are never changed'); END
    """
    for change in ("UPDATE", "DELETE")
)


def upgrade() -> None:
    for statement in SQLITE if op.get_bind().dialect.name == "sqlite" else POSTGRES:
        op.execute(statement)
