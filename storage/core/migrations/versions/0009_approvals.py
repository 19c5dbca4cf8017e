"""Actions that need a second person or key, and the requests for them."""

import sqlalchemy as sa
from alembic import op

from storage.core.models import approvals

revision = "tables_9"
down_revision = "tables_8"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("clients", sa.Column("four_eyes", sa.JSON(), nullable=False, server_default="[]"))
    approvals.create(op.get_bind())
