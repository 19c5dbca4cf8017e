"""Indexes for listing a client's audit trail by time, by who and by action."""

from alembic import op

revision = "tables_12"
down_revision = "tables_11"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_audit_client_id_at", "audit", ["client_id", "at", "number"])
    for column in ("who", "action"):
        op.create_index(f"ix_audit_client_id_{column}", "audit", ["client_id", column, "at", "number"])
