"""Names of leases may be as long as a machine's name."""

import sqlalchemy as sa
from alembic import op

revision = "tables_17"
down_revision = "tables_16"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("leases") as table:
        table.alter_column("name", existing_type=sa.String(32), type_=sa.String(255), existing_nullable=False)
