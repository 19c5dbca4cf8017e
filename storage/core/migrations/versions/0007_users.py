"""Users of the console, their sessions and their sign-in links."""

from alembic import op

from storage.core.models import sessions, sign_in_links, users

revision = "tables_7"
down_revision = "tables_6"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in (users, sessions, sign_in_links):
        table.create(op.get_bind())
