"""Customers that the sandbox made."""

from alembic import op

from storage.core.models import sandbox_customers

revision = "tables_11"
down_revision = "tables_10"
branch_labels = None
depends_on = None


def upgrade() -> None:
    sandbox_customers.create(op.get_bind())
