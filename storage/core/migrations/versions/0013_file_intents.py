"""Files that are being written to a bucket. On an older version's lake, a folder, there are none."""

from alembic import op

from storage.core.models import file_intents

revision = "tables_13"
down_revision = "tables_12"
branch_labels = None
depends_on = None


def upgrade() -> None:
    file_intents.create(op.get_bind())
