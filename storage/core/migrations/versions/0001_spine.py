"""The spine: clients, customers, jobs, batches, segments, reports, webhooks"""

import sqlalchemy as sa
from alembic import op

from storage.core import column_types

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(length=40), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=True),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("resource", sa.JSON(), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.Column("request_id", sa.String(length=128), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_audit")),
    )
    op.create_index("ix_audit_client_id_number", "audit", ["client_id", "number"], unique=False)
    op.create_table(
        "batches",
        sa.Column("token", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("batch_id", sa.Uuid(), nullable=False),
        sa.Column("lane", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("partition_day", sa.Date(), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=True),
        sa.Column("worker", sa.Uuid(), nullable=True),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("lease_expires_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("token", name=op.f("pk_batches")),
        sa.UniqueConstraint("batch_id", name=op.f("uq_batches_batch_id")),
    )
    op.create_index(
        "ix_batches_open",
        "batches",
        ["lane", "lease_expires_at"],
        unique=False,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_table(
        "clients",
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("decision_policies", sa.Boolean(), nullable=False),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("knowledge_version", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("client_id", name=op.f("pk_clients")),
    )
    op.create_table(
        "peers",
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("metric", sa.String(length=64), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("customers", sa.BigInteger(), nullable=False),
        sa.Column("percentiles", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_peers_client_id")),
        sa.PrimaryKeyConstraint("client_id", "metric", "day", name=op.f("pk_peers")),
    )
    op.create_table(
        "damaged_files",
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("problem", sa.String(length=16), nullable=False),
        sa.Column("found_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("path", name=op.f("pk_damaged_files")),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("holder", sa.Uuid(), nullable=False),
        sa.Column("expires_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_table(
        "passes",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("position", sa.Text(), nullable=True),
        sa.Column("finished_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_passes")),
    )
    op.create_table(
        "segments",
        sa.Column("segment_id", sa.Uuid(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("segment_id", name=op.f("pk_segments")),
        sa.UniqueConstraint("path", name=op.f("uq_segments_path")),
    )
    op.create_table(
        "upkeep",
        sa.Column("task", sa.String(length=16), nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.Column("requested_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("started_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("beat_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("completed_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("total", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("done", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("changed", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("failed", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("error", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("task", "bucket", name=op.f("pk_upkeep")),
    )
    op.create_table(
        "api_keys",
        sa.Column("key_id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("key_hash", sa.LargeBinary(length=32), nullable=False),
        sa.Column("hint", sa.String(length=24), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("expires_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("rotated_to", sa.Uuid(), nullable=True),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_api_keys_client_id")),
        sa.ForeignKeyConstraint(["rotated_to"], ["api_keys.key_id"], name=op.f("fk_api_keys_rotated_to")),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_api_keys_key_hash")),
    )
    op.create_index(op.f("ix_api_keys_client_id"), "api_keys", ["client_id"], unique=False)
    op.create_table(
        "book_tables",
        sa.Column("segment_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("replaced_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["segment_id"], ["segments.segment_id"], name=op.f("fk_book_tables_segment_id")),
        sa.PrimaryKeyConstraint("segment_id", name=op.f("pk_book_tables")),
    )
    op.create_index(
        "uq_book_tables_current",
        "book_tables",
        ["name", "bucket"],
        unique=True,
        sqlite_where=sa.text("replaced_at IS NULL"),
        postgresql_where=sa.text("replaced_at IS NULL"),
    )
    op.create_table(
        "customers",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("customer_id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("abn", sa.String(length=11), nullable=False),
        sa.Column("abn_checksum_valid", sa.Boolean(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("reference", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=True),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("data_version", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("location_version", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("enriched_rows", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("enrichment_version", sa.Integer(), server_default="0", nullable=False),
        sa.Column("knowledge_version", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_customers_client_id")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_customers")),
        sa.UniqueConstraint("client_id", "abn", "reference", name=op.f("uq_customers_client_id_abn_reference")),
        sa.UniqueConstraint("customer_id", name=op.f("uq_customers_customer_id")),
    )
    op.create_index("ix_customers_client_id_abn", "customers", ["client_id", "abn"], unique=False)
    op.create_index("ix_customers_client_id_number", "customers", ["client_id", "number"], unique=False)
    op.create_table(
        "idempotency_keys",
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("key_hash", sa.LargeBinary(length=32), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(length=32), nullable=False),
        sa.Column("holder", sa.Uuid(), nullable=False),
        sa.Column("claimed_until", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("headers", sa.JSON(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_idempotency_keys_client_id")),
        sa.PrimaryKeyConstraint("client_id", "key_hash", name=op.f("pk_idempotency_keys")),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"], unique=False)
    op.create_table(
        "subscriptions",
        sa.Column("subscription_id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("event_type", sa.String(length=40), nullable=False),
        sa.Column("webhook_url", sa.Text(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_subscriptions_client_id")),
        sa.PrimaryKeyConstraint("subscription_id", name=op.f("pk_subscriptions")),
    )
    op.create_index("ix_subscriptions_client_id_event_type", "subscriptions", ["client_id", "event_type"], unique=False)
    op.create_table(
        "attributes",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("customer_number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("evidence_date", sa.Date(), nullable=True),
        sa.Column("expires_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("set_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("set_by", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(["customer_number"], ["customers.number"], name=op.f("fk_attributes_customer_number")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_attributes")),
    )
    op.create_index(
        "ix_attributes_customer_number_name", "attributes", ["customer_number", "name", "number"], unique=False
    )
    op.create_table(
        "events",
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("customer_number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("event_type", sa.String(length=40), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_events_client_id")),
        sa.ForeignKeyConstraint(["customer_number"], ["customers.number"], name=op.f("fk_events_customer_number")),
        sa.PrimaryKeyConstraint("event_id", name=op.f("pk_events")),
        sa.UniqueConstraint("job_id", "event_type", name=op.f("uq_events_job_id_event_type")),
    )
    op.create_table(
        "jobs",
        sa.Column("received_seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("customer_number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("flow", sa.String(length=24), nullable=False),
        sa.Column("status", sa.String(length=24), nullable=False),
        sa.Column("submission", sa.JSON(), nullable=True),
        sa.Column("withdraws", sa.Uuid(), nullable=True),
        sa.Column("landing_path", sa.Text(), nullable=True),
        sa.Column("landing_sha256", sa.LargeBinary(length=32), nullable=True),
        sa.Column("received_rows", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("batch_token", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("not_before", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("data_version", sa.BigInteger(), nullable=True),
        sa.Column("processed_rows", sa.BigInteger(), nullable=True),
        sa.Column("enriched_rows", sa.BigInteger(), nullable=True),
        sa.Column("duplicate_rows", sa.BigInteger(), nullable=True),
        sa.Column("rejected_rows", sa.BigInteger(), nullable=True),
        sa.Column("outcomes_path", sa.Text(), nullable=True),
        sa.Column("warnings", sa.JSON(), nullable=False),
        sa.Column("error", sa.JSON(), nullable=True),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("started_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("completed_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["batch_token"], ["batches.token"], name=op.f("fk_jobs_batch_token")),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_jobs_client_id")),
        sa.ForeignKeyConstraint(["customer_number"], ["customers.number"], name=op.f("fk_jobs_customer_number")),
        sa.PrimaryKeyConstraint("received_seq", name=op.f("pk_jobs")),
        sa.UniqueConstraint("job_id", name=op.f("uq_jobs_job_id")),
    )
    op.create_index(op.f("ix_jobs_batch_token"), "jobs", ["batch_token"], unique=False)
    op.create_index("ix_jobs_client_id_received_seq", "jobs", ["client_id", "received_seq"], unique=False)
    op.create_index(
        "ix_jobs_customer_live",
        "jobs",
        ["customer_number"],
        unique=False,
        sqlite_where=sa.text("status IN ('Queued', 'Running')"),
        postgresql_where=sa.text("status IN ('Queued', 'Running')"),
    )
    op.create_index("ix_jobs_customer_number_received_seq", "jobs", ["customer_number", "received_seq"], unique=False)
    op.create_index(
        "ix_jobs_landing_path",
        "jobs",
        ["landing_path"],
        unique=False,
        sqlite_where=sa.text("landing_path IS NOT NULL"),
        postgresql_where=sa.text("landing_path IS NOT NULL"),
    )
    op.create_index(
        "ix_jobs_pausing",
        "jobs",
        ["not_before"],
        unique=False,
        sqlite_where=sa.text("not_before IS NOT NULL"),
        postgresql_where=sa.text("not_before IS NOT NULL"),
    )
    op.create_index(
        "ix_jobs_queue",
        "jobs",
        ["flow", "received_seq"],
        unique=False,
        sqlite_where=sa.text("status = 'Queued'"),
        postgresql_where=sa.text("status = 'Queued'"),
    )
    op.create_index(
        "uq_jobs_one_live_refresh",
        "jobs",
        ["customer_number"],
        unique=True,
        sqlite_where=sa.text("flow = 'ReportRefresh' AND status IN ('Queued', 'Running')"),
        postgresql_where=sa.text("flow = 'ReportRefresh' AND status IN ('Queued', 'Running')"),
    )
    op.create_index(
        "uq_jobs_withdrawn_once",
        "jobs",
        ["withdraws"],
        unique=True,
        sqlite_where=sa.text("withdraws IS NOT NULL AND status <> 'Failed'"),
        postgresql_where=sa.text("withdraws IS NOT NULL AND status <> 'Failed'"),
    )
    op.create_table(
        "locations",
        sa.Column("customer_number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("data_version", sa.BigInteger(), nullable=False),
        sa.Column("location_version", sa.BigInteger(), nullable=False),
        sa.Column("segment_id", sa.Uuid(), nullable=False),
        sa.Column("first_row", sa.BigInteger(), nullable=False),
        sa.Column("row_count", sa.BigInteger(), nullable=False),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("replaced_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["customer_number"], ["customers.number"], name=op.f("fk_locations_customer_number")),
        sa.ForeignKeyConstraint(["segment_id"], ["segments.segment_id"], name=op.f("fk_locations_segment_id")),
        sa.PrimaryKeyConstraint("customer_number", "data_version", "location_version", name=op.f("pk_locations")),
    )
    op.create_index(
        "ix_locations_replaced_at",
        "locations",
        ["replaced_at"],
        unique=False,
        sqlite_where=sa.text("replaced_at IS NOT NULL"),
        postgresql_where=sa.text("replaced_at IS NOT NULL"),
    )
    op.create_index(op.f("ix_locations_segment_id"), "locations", ["segment_id"], unique=False)
    op.create_table(
        "related_abns",
        sa.Column("customer_number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("abn", sa.String(length=11), nullable=False),
        sa.ForeignKeyConstraint(
            ["customer_number"], ["customers.number"], name=op.f("fk_related_abns_customer_number")
        ),
        sa.PrimaryKeyConstraint("customer_number", "abn", name=op.f("pk_related_abns")),
    )
    op.create_index("ix_related_abns_abn", "related_abns", ["abn"], unique=False)
    op.create_table(
        "related_parties",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("customer_number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("parties", sa.JSON(), nullable=False),
        sa.Column("set_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("set_by", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["customer_number"], ["customers.number"], name=op.f("fk_related_parties_customer_number")
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_related_parties")),
    )
    op.create_index(
        "ix_related_parties_customer_number", "related_parties", ["customer_number", "number"], unique=False
    )
    op.create_table(
        "corrections",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("correction_id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("customer_number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("transaction_id", sa.Uuid(), nullable=True),
        sa.Column("counterparty", sa.Text(), nullable=True),
        sa.Column("words", sa.Text(), nullable=True),
        sa.Column("counterparty_group", sa.Text(), nullable=True),
        sa.Column("direction", sa.String(length=6), nullable=True),
        sa.Column("category", sa.String(length=64), nullable=True),
        sa.Column("counterparty_name", sa.Text(), nullable=True),
        sa.Column("made_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("made_by", sa.String(length=40), nullable=False),
        sa.Column("revoked_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("revoked_by", sa.String(length=40), nullable=True),
        sa.Column("revoking_job", sa.Uuid(), nullable=True),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_corrections_client_id")),
        sa.ForeignKeyConstraint(["customer_number"], ["customers.number"], name=op.f("fk_corrections_customer_number")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_corrections")),
        sa.UniqueConstraint("correction_id", name=op.f("uq_corrections_correction_id")),
    )
    op.create_index(
        "ix_corrections_client_id_customer_number",
        "corrections",
        ["client_id", "customer_number", "number"],
        unique=False,
    )
    op.create_table(
        "category_models",
        sa.Column("model_id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=True),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_category_models_client_id")),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_category_models")),
    )
    op.create_table(
        "category_model_uses",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=True),
        sa.Column("model_id", sa.Uuid(), nullable=True),
        sa.Column("used_from", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_category_model_uses_client_id")),
        sa.ForeignKeyConstraint(
            ["model_id"], ["category_models.model_id"], name=op.f("fk_category_model_uses_model_id")
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_category_model_uses")),
    )
    op.create_table(
        "reports",
        sa.Column("customer_number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("data", sa.Text(), nullable=True),
        sa.Column("data_version", sa.BigInteger(), nullable=True),
        sa.Column("report_version", sa.Integer(), nullable=True),
        sa.Column("as_of", sa.Date(), nullable=True),
        sa.Column("data_through", sa.Date(), nullable=True),
        sa.Column("generated_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("failed", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["customer_number"], ["customers.number"], name=op.f("fk_reports_customer_number")),
        sa.PrimaryKeyConstraint("customer_number", "kind", name=op.f("pk_reports")),
    )
    op.create_table(
        "subscription_customers",
        sa.Column("subscription_id", sa.Uuid(), nullable=False),
        sa.Column("customer_number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["customer_number"], ["customers.number"], name=op.f("fk_subscription_customers_customer_number")
        ),
        sa.ForeignKeyConstraint(
            ["subscription_id"],
            ["subscriptions.subscription_id"],
            name=op.f("fk_subscription_customers_subscription_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("subscription_id", "customer_number", name=op.f("pk_subscription_customers")),
    )
    op.create_index(
        op.f("ix_subscription_customers_customer_number"), "subscription_customers", ["customer_number"], unique=False
    )
    op.create_table(
        "deliveries",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("delivery_id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("subscription_id", sa.Uuid(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("due_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("lease_expires_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("lease_holder", sa.Uuid(), nullable=True),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_deliveries_client_id")),
        sa.ForeignKeyConstraint(["event_id"], ["events.event_id"], name=op.f("fk_deliveries_event_id")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("delivery_id", name=op.f("uq_deliveries_delivery_id")),
        sa.UniqueConstraint("event_id", "subscription_id", name=op.f("uq_deliveries_event_id_subscription_id")),
    )
    op.create_index(
        "ix_deliveries_open",
        "deliveries",
        ["status", "subscription_id", "number", "client_id", "due_at"],
        unique=False,
        sqlite_where=sa.text("status IN ('due', 'sending')"),
        postgresql_where=sa.text("status IN ('due', 'sending')"),
    )
    op.create_index(
        "ix_deliveries_failed",
        "deliveries",
        ["number"],
        unique=False,
        sqlite_where=sa.text("status = 'failed'"),
        postgresql_where=sa.text("status = 'failed'"),
    )
    op.create_index("ix_deliveries_subscription_id_number", "deliveries", ["subscription_id", "number"], unique=False)
    op.create_table(
        "attempts",
        sa.Column("attempt_id", sa.Uuid(), nullable=False),
        sa.Column("delivery_id", sa.Uuid(), nullable=False),
        sa.Column("started_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("duration_ms", sa.Integer(), nullable=False),
        sa.Column("status_code", sa.Integer(), nullable=True),
        sa.Column("error", sa.String(length=16), nullable=True),
        sa.Column("response_head", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["delivery_id"], ["deliveries.delivery_id"], name=op.f("fk_attempts_delivery_id")),
        sa.PrimaryKeyConstraint("attempt_id", name=op.f("pk_attempts")),
    )
    op.create_index(op.f("ix_attempts_delivery_id"), "attempts", ["delivery_id"], unique=False)
