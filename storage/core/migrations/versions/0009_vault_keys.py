"""The keys under which secrets are sealed, themselves wrapped under the master key."""

import sqlalchemy as sa
from alembic import op

from storage.core import column_types

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

IN_USE = sa.text("retired_at IS NULL")


def upgrade() -> None:
    op.create_table(
        "vault_keys",
        sa.Column("key_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("wrapped", sa.LargeBinary(), nullable=False),
        sa.Column("wrapped_by", sa.String(length=16), nullable=False),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("retired_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_vault_keys")),
    )
    op.create_index(
        "uq_vault_keys_in_use",
        "vault_keys",
        ["purpose"],
        unique=True,
        sqlite_where=IN_USE,
        postgresql_where=IN_USE,
    )
    # in both databases' own words: Alembic would copy the whole table on SQLite
    op.execute(
        "ALTER TABLE statement_files ADD COLUMN data_key INTEGER "
        "CONSTRAINT fk_statement_files_data_key REFERENCES vault_keys (key_id)"
    )
