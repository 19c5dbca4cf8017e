"""Backtests of decision policies, and jobs that belong to no single customer."""

import sqlalchemy as sa
from alembic import op

from storage.core import column_types

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    with op.batch_alter_table("jobs") as jobs:
        jobs.alter_column("customer_number", existing_type=SERIAL, nullable=True)
    op.create_table(
        "backtests",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("policy_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("known_outcomes", sa.LargeBinary(), nullable=True),
        sa.Column("customers_total", sa.BigInteger(), nullable=True),
        sa.Column("customers_done", sa.BigInteger(), nullable=False),
        sa.Column("customers_failed", sa.BigInteger(), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_backtests_client_id")),
        sa.ForeignKeyConstraint(
            ["policy_id", "version"],
            ["policy_versions.policy_id", "policy_versions.version"],
            name=op.f("fk_backtests_policy_id"),
        ),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_backtests")),
    )
    op.create_index("ix_backtests_policy_id_created_at", "backtests", ["policy_id", "created_at"])
    op.create_table(
        "backtest_parts",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("segment_id", sa.Uuid(), nullable=False),
        sa.Column("outcome_changed", sa.BigInteger(), nullable=False),
        sa.Column("limits_changed", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["backtests.job_id"], name=op.f("fk_backtest_parts_job_id")),
        sa.ForeignKeyConstraint(["segment_id"], ["segments.segment_id"], name=op.f("fk_backtest_parts_segment_id")),
        sa.PrimaryKeyConstraint("job_id", "part", name=op.f("pk_backtest_parts")),
    )
