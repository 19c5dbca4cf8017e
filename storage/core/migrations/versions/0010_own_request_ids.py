"""Beside the id that a caller gives its request, one of ours in the audit trail."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE audit ADD COLUMN own_request_id VARCHAR(36)")
