"""Customers and jobs name who created them."""

import sqlalchemy as sa
from alembic import op

revision = "tables_19"
down_revision = "tables_18"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("customers", "jobs"):
        op.add_column(table, sa.Column("created_by", sa.String(40)))
