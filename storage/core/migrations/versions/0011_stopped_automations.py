"""Schedules and sensors that should run and don't."""

import sqlalchemy as sa
from alembic import op

from storage.core import column_types

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "stopped_automations",
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("found_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("kind", "name", name=op.f("pk_stopped_automations")),
    )
