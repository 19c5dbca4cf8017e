"""PDF statements: extraction jobs with two stages, the files that were sent, and the statements read from them."""

import sqlalchemy as sa
from alembic import op

from storage.core import column_types

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
STORED = sa.text("path IS NOT NULL")


def upgrade() -> None:
    op.add_column("jobs", sa.Column("stage", sa.String(length=16), nullable=True))
    op.add_column("jobs", sa.Column("pages_total", sa.Integer(), nullable=True))
    op.add_column("jobs", sa.Column("pages_done", sa.Integer(), nullable=True))
    op.add_column("jobs", sa.Column("refused_files", sa.Integer(), server_default="0", nullable=False))
    op.add_column("jobs", sa.Column("repeated_rows", sa.BigInteger(), nullable=True))
    op.add_column("jobs", sa.Column("statement_rows_path", sa.Text(), nullable=True))
    op.add_column("jobs", sa.Column("landed_at", column_types.UtcDateTime(timezone=True), nullable=True))
    op.add_column("jobs", sa.Column("stage_started_at", column_types.UtcDateTime(timezone=True), nullable=True))
    op.drop_index("ix_jobs_client_id_received_seq", "jobs")
    op.create_index("ix_jobs_client_id_created_at", "jobs", ["client_id", "created_at", "received_seq"])
    op.create_table(
        "statement_files",
        sa.Column("file_id", sa.Uuid(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("customer_number", SERIAL, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("file_name", sa.String(length=255), nullable=False),
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("path", sa.Text(), nullable=True),
        sa.Column("stored_sha256", sa.LargeBinary(length=32), nullable=True),
        sa.Column("password", sa.LargeBinary(), nullable=True),
        sa.Column("had_password", sa.Boolean(), nullable=False),
        sa.Column("repeats", sa.Uuid(), nullable=True),
        sa.Column("refusal", sa.String(length=32), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("pages", sa.Integer(), nullable=True),
        sa.Column("signals", sa.JSON(), nullable=True),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["customer_number"], ["customers.number"], name=op.f("fk_statement_files_customer_number")
        ),
        sa.PrimaryKeyConstraint("file_id", name=op.f("pk_statement_files")),
        sa.UniqueConstraint("job_id", "position", name=op.f("uq_statement_files_job_id_position")),
    )
    op.create_index("ix_statement_files_customer_number_sha256", "statement_files", ["customer_number", "sha256"])
    op.create_index(
        "uq_statement_files_path",
        "statement_files",
        ["path"],
        unique=True,
        sqlite_where=STORED,
        postgresql_where=STORED,
    )
    op.create_table(
        "statements",
        sa.Column("statement_id", sa.Uuid(), nullable=False),
        sa.Column("file_id", sa.Uuid(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("customer_number", SERIAL, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("account_id", sa.Uuid(), nullable=False),
        sa.Column("bank", sa.Text(), nullable=True),
        sa.Column("bank_name", sa.Text(), nullable=True),
        sa.Column("account_name", sa.Text(), nullable=True),
        sa.Column("bsb", sa.Text(), nullable=True),
        sa.Column("account_number", sa.Text(), nullable=True),
        sa.Column("account_type", sa.String(length=16), nullable=True),
        sa.Column("credit_limit", sa.Text(), nullable=True),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("period_start", sa.Date(), nullable=True),
        sa.Column("period_end", sa.Date(), nullable=True),
        sa.Column("opening_balance", sa.Text(), nullable=True),
        sa.Column("closing_balance", sa.Text(), nullable=True),
        sa.Column("verdict", sa.String(length=32), nullable=False),
        sa.Column("reasons", sa.JSON(), nullable=False),
        sa.Column("row_count", sa.BigInteger(), nullable=False),
        sa.Column("first_page", sa.Integer(), nullable=False),
        sa.Column("last_page", sa.Integer(), nullable=False),
        sa.Column("read_by_ocr", sa.Boolean(), nullable=False),
        sa.Column("extracted_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["customer_number"], ["customers.number"], name=op.f("fk_statements_customer_number")),
        sa.ForeignKeyConstraint(["file_id"], ["statement_files.file_id"], name=op.f("fk_statements_file_id")),
        sa.PrimaryKeyConstraint("statement_id", name=op.f("pk_statements")),
    )
    op.create_index("ix_statements_customer_number_extracted_at", "statements", ["customer_number", "extracted_at"])
    op.create_index("ix_statements_file_id", "statements", ["file_id"])
    op.create_index("ix_statements_job_id", "statements", ["job_id"])
