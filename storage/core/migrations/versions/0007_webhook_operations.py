"""Webhooks: retries and pauses of subscriptions, tests, and how long each part of an attempt took."""

import sqlalchemy as sa
from alembic import op

from storage.core import column_types

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

OPEN = sa.text("status IN ('due', 'sending', 'retrying')")
RETRYING = sa.text("status = 'retrying'")
OPEN_TESTS = sa.text("is_test AND status IN ('due', 'sending')")
FAILED = sa.text("status = 'failed'")


def upgrade() -> None:
    _subscriptions()
    _events()
    _deliveries()
    _attempts()


def _subscriptions() -> None:
    op.add_column("subscriptions", sa.Column("max_retries", sa.Integer(), server_default="0", nullable=False))
    op.add_column("subscriptions", sa.Column("pause_after", sa.Integer(), nullable=True))
    op.add_column("subscriptions", sa.Column("paused_at", column_types.UtcDateTime(timezone=True), nullable=True))
    op.add_column("subscriptions", sa.Column("paused_by", sa.String(length=16), nullable=True))
    op.add_column("subscriptions", sa.Column("failure_streak", sa.Integer(), server_default="0", nullable=False))
    op.add_column(
        "subscriptions", sa.Column("last_delivered_at", column_types.UtcDateTime(timezone=True), nullable=True)
    )
    op.add_column("subscriptions", sa.Column("last_failed_at", column_types.UtcDateTime(timezone=True), nullable=True))


def _events() -> None:
    """Events of rules have no job, and a test has no customer."""
    if op.get_context().dialect.name == "sqlite":
        _allow_null_on_sqlite("events", ("customer_number INTEGER", "job_id CHAR(32)"))
    else:
        op.alter_column("events", "customer_number", nullable=True)
        op.alter_column("events", "job_id", nullable=True)
    op.create_index("ix_events_customer_number", "events", ["customer_number"])


def _allow_null_on_sqlite(table: str, columns: tuple[str, ...]) -> None:
    """Take NOT NULL out of the stored text, as https://www.sqlite.org/lang_altertable.html describes for it.

    A copy under another name can't take the table's place: deliveries refer to it, and dropping it breaks that.
    """
    shape = sa.text("SELECT sql FROM sqlite_master WHERE name = :table")
    sql = op.get_bind().execute(shape, {"table": table}).scalar_one()
    for column in columns:
        if sql.count(f"{column} NOT NULL") != 1:
            raise RuntimeError(f"{table} is not as migration 0001 made it")
        sql = sql.replace(f"{column} NOT NULL", column)
    version = op.get_bind().execute(sa.text("PRAGMA schema_version")).scalar_one()
    op.execute("PRAGMA writable_schema = ON")
    stored = sa.text("UPDATE sqlite_master SET sql = :sql WHERE type = 'table' AND name = :table")
    op.get_bind().execute(stored, {"sql": sql, "table": table})
    op.execute(f"PRAGMA schema_version = {version + 1}")
    op.execute("PRAGMA writable_schema = OFF")


def _deliveries() -> None:
    op.add_column("deliveries", sa.Column("attempt_count", sa.Integer(), server_default="0", nullable=False))
    op.add_column("deliveries", sa.Column("retry_at", column_types.UtcDateTime(timezone=True), nullable=True))
    op.add_column("deliveries", sa.Column("is_test", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.drop_index("ix_deliveries_open", "deliveries")
    op.create_index(
        "ix_deliveries_open",
        "deliveries",
        ["status", "subscription_id", "number", "client_id", "due_at"],
        sqlite_where=OPEN,
        postgresql_where=OPEN,
    )
    op.create_index(
        "ix_deliveries_retrying",
        "deliveries",
        ["attempt_count", "retry_at"],
        sqlite_where=RETRYING,
        postgresql_where=RETRYING,
    )
    op.create_index(
        "ix_deliveries_open_tests",
        "deliveries",
        ["subscription_id", "status", "number", "client_id"],
        sqlite_where=OPEN_TESTS,
        postgresql_where=OPEN_TESTS,
    )
    op.create_index(
        "ix_deliveries_failed_of",
        "deliveries",
        ["subscription_id", "created_at"],
        sqlite_where=FAILED,
        postgresql_where=FAILED,
    )
    op.create_index("ix_deliveries_client_id_number", "deliveries", ["client_id", "number"])


def _attempts() -> None:
    op.add_column("attempts", sa.Column("subscription_id", sa.Uuid(), nullable=True))
    op.add_column("attempts", sa.Column("is_test", sa.Boolean(), server_default=sa.false(), nullable=False))
    for step in ("dns_ms", "connect_ms", "tls_ms", "first_byte_ms"):
        op.add_column("attempts", sa.Column(step, sa.Integer(), nullable=True))
    op.execute(
        "UPDATE attempts SET subscription_id ="
        " (SELECT subscription_id FROM deliveries WHERE deliveries.delivery_id = attempts.delivery_id)"
    )
    op.create_index("ix_attempts_started_at", "attempts", ["started_at", "status_code", "error"])
    op.create_index(
        "ix_attempts_subscription_id_started_at",
        "attempts",
        ["subscription_id", "is_test", "started_at", "status_code", "error", "duration_ms"],
    )
