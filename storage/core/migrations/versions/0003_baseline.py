"""The tables as the models declare them: a new database gets them from there (`storage.core.upgrading`)."""

revision = "tables_3"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Do nothing: this revision is only ever stamped."""
