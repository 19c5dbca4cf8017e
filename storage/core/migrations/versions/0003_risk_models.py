"""Fitted scorecards, and whose customers each of them scores."""

import sqlalchemy as sa
from alembic import op

from storage.core import column_types

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "risk_models",
        sa.Column("model_id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("calibration", sa.String(length=16), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_risk_models_client_id")),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_risk_models")),
    )
    op.create_table(
        "risk_model_uses",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("model_id", sa.Uuid(), nullable=True),
        sa.Column("used_from", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_risk_model_uses_client_id")),
        sa.ForeignKeyConstraint(["model_id"], ["risk_models.model_id"], name=op.f("fk_risk_model_uses_model_id")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_risk_model_uses")),
    )
