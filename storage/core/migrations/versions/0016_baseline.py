"""Baseline: the tables as the models declare them. A new database is created from the models, not by this file."""

revision = "tables_16"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Do nothing: `storage.core.upgrading` only stamps this revision."""
