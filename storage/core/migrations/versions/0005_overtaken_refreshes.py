"""Refreshes that are live while what they read changes."""

import sqlalchemy as sa
from alembic import op

revision = "tables_5"
down_revision = "tables_4"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("is_overtaken", sa.Boolean(), nullable=False, server_default=sa.false()))
