"""Counts of transactions by day. They start empty and are made when they are first needed."""

from alembic import op

from storage.core.models import client_day_counts, customer_day_counts

revision = "tables_6"
down_revision = "tables_5"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in (customer_day_counts, client_day_counts):
        table.create(op.get_bind())
