"""The homes that use the database."""

import sqlalchemy as sa
from alembic import op

from storage.core.column_types import UtcDateTime

revision = "tables_20"
down_revision = "tables_19"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "homes",
        sa.Column("identity", sa.String(16), nullable=False),
        sa.Column("machine", sa.String(255), nullable=False),
        sa.Column("opened_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("identity", name=op.f("pk_homes")),
    )
