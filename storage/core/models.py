"""All tables, declared in SQLAlchemy Core. Reads are by key and by set, and cost far less than the ORM's.

Ids are UUIDs. `customers.number` is the internal 64-bit key that frames sort and group by; `jobs.received_seq` is
the order of receipt. A customer's enriched transactions are a value in the lake that `locations` points to: the row
whose `data_version` and `location_version` equal the customer's is the current one.
"""

from enum import StrEnum
from typing import Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Date,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    false,
    text,
)

from pipelines.scorecards.expected import NAMES as EVIDENCE
from storage.core.column_types import UtcDateTime
from storage.core.guards import create_refuse_function, refuse_changes
from storage.core.text_search import index_parts, install_extension

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)
create_refuse_function(metadata)
install_extension(metadata)

Serial = BigInteger().with_variant(Integer, "sqlite")  # SQLite auto-increments only INTEGER PRIMARY KEY


class Flow(StrEnum):
    """What a job is for; equals its `jobType`."""

    ENRICHMENT = "Enrichment"
    EXTRACTION = "Extraction"  # read PDF statements, then enrich their rows
    RETRACTION = "Withdrawal"
    CORRECTION = "Correction"  # a correction was made or revoked
    REENRICHMENT = "Reenrichment"  # other knowledge about the customer changed
    REPORT_REFRESH = "ReportRefresh"
    POLICY_BACKTEST = "PolicyBacktest"  # concerns many customers
    RULESET_SIMULATION = "RulesetSimulation"  # concerns many customers


SUBMISSIONS = (Flow.ENRICHMENT, Flow.EXTRACTION)  # flows that add rows


class Stage(StrEnum):
    """The stage of an extraction: the one that waits or runs, or that ran last."""

    EXTRACTION = "extraction"
    ENRICHMENT = "enrichment"


class JobStatus(StrEnum):
    QUEUED = "Queued"
    RUNNING = "Running"
    COMPLETED = "Completed"
    COMPLETED_WITH_ERRORS = "CompletedWithErrors"
    FAILED = "Failed"


TERMINAL = (JobStatus.COMPLETED, JobStatus.COMPLETED_WITH_ERRORS, JobStatus.FAILED)
LIVE = (JobStatus.QUEUED, JobStatus.RUNNING)


class Queue(StrEnum):
    """Queues that never wait for each other."""

    ENRICHMENT = "enrichment"
    EXTRACTION = "extraction"  # locks no customer, so several jobs of one customer may run at once
    REFRESH = "refresh"
    PORTFOLIO = "portfolio"  # work on the whole portfolio: its runs wait in Dagster's queue, not in batches


QUEUE_OF = {
    Flow.ENRICHMENT: Queue.ENRICHMENT,
    Flow.EXTRACTION: Queue.EXTRACTION,  # until its rows have landed, then enrichment: see `storage.jobs.batches`
    Flow.RETRACTION: Queue.ENRICHMENT,  # in order of receipt with the submission that it takes back
    Flow.CORRECTION: Queue.ENRICHMENT,
    Flow.REENRICHMENT: Queue.ENRICHMENT,
    Flow.REPORT_REFRESH: Queue.REFRESH,
    Flow.POLICY_BACKTEST: Queue.PORTFOLIO,
    Flow.RULESET_SIMULATION: Queue.PORTFOLIO,
}


class BatchState(StrEnum):
    OPEN = "open"
    COMMITTED = "committed"
    RELEASED = "released"  # abandoned: its jobs went back to the queue


class PolicyState(StrEnum):
    """The state of a policy's version. States follow in this order; a version never returns to an earlier one."""

    DRAFT = "draft"
    PUBLISHED = "published"  # at most one version of a policy
    RETIRED = "retired"


class ApprovalKind(StrEnum):
    """An action that a second person or key approves: where a client requires it, and LIFT always."""

    PUBLISH = "publish"  # a version of a decision policy
    OVERRIDE = "override"  # a decision
    ACTIVATE = "activate"  # a ruleset: create or replace it with `active` true
    LIFT = "lift"  # this requirement, for some of the other actions


class ApprovalStatus(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DECLINED = "declined"
    SUPERSEDED = "superseded"  # by a later request for the same subject
    WITHDRAWN = "withdrawn"  # by whoever requested it


class DeliveryStatus(StrEnum):
    DUE = "due"
    SENDING = "sending"
    DELIVERED = "delivered"
    RETRYING = "retrying"  # failed, and due again at `retry_at`
    FAILED = "failed"
    CANCELLED = "cancelled"  # the subscription was deleted before the send


clients = Table(
    "clients",
    metadata,
    Column("client_id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    Column("decision_policies", Boolean, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("knowledge_version", BigInteger, nullable=False, server_default="0"),  # counts changes for all customers
    Column("expected_evidence", Text, nullable=False, server_default=" ".join(EVIDENCE)),  # names, in their order
    Column("four_eyes", JSON, nullable=False, server_default="[]"),  # kinds of actions that need an approval
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_id", Uuid, primary_key=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False, index=True),
    Column("key_hash", LargeBinary(32), nullable=False, unique=True),  # SHA-256 of the key's whole text
    Column("hint", String(24), nullable=False),  # prefix and last four: enough to recognise, not to use
    Column("scopes", JSON, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("revoked_at", UtcDateTime),
    Column("rotated_to", ForeignKey("api_keys.key_id")),  # its successor; both are valid until `expires_at`
)

# People who sign in to the console. A user belongs to one client.
users = Table(
    "users",
    metadata,
    Column("user_id", Uuid, primary_key=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False, index=True),
    Column("email", String(254), nullable=False, unique=True),  # in lower case
    Column("name", Text, nullable=False),
    Column("role", String(16), nullable=False),
    Column("password_hash", Text),  # Argon2id; null: no password
    Column("failures", Integer, nullable=False, server_default="0"),  # wrong passwords since the last right one
    Column("locked_until", UtcDateTime),  # after too many wrong passwords
    Column("created_at", UtcDateTime, nullable=False),
    Column("disabled_at", UtcDateTime),
)

# Sessions of signed-in users.
sessions = Table(
    "sessions",
    metadata,
    Column("token_hash", LargeBinary(32), primary_key=True),  # SHA-256 of the cookie's token
    Column("user_id", ForeignKey("users.user_id"), nullable=False, index=True),
    Column("created_at", UtcDateTime, nullable=False),
    Column("seen_at", UtcDateTime, nullable=False),  # the last request, to within a minute
    Column("expires_at", UtcDateTime, nullable=False, index=True),
)

# Links that sign a user in, each usable once.
sign_in_links = Table(
    "sign_in_links",
    metadata,
    Column("token_hash", LargeBinary(32), primary_key=True),  # SHA-256 of the link's token
    Column("user_id", ForeignKey("users.user_id"), nullable=False, index=True),
    Column("expires_at", UtcDateTime, nullable=False, index=True),
)

customers = Table(
    "customers",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("customer_id", Uuid, nullable=False, unique=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
    Column("abn", String(11), nullable=False),
    Column("abn_checksum_valid", Boolean, nullable=False),
    Column("name", Text),
    Column("reference", Text),
    Column("state", Text),
    Column("created_at", UtcDateTime, nullable=False),
    Column("created_by", String(40)),  # as in the audit trail; null: not recorded, by an earlier version
    Column("data_version", BigInteger, nullable=False, server_default="0"),  # 0: no enriched transactions yet
    Column("location_version", BigInteger, nullable=False, server_default="0"),
    Column("enriched_rows", BigInteger, nullable=False, server_default="0"),  # current rows in the value
    Column("enrichment_version", Integer, nullable=False, server_default="0"),  # of the code that made the value
    Column(
        "knowledge_version", BigInteger, nullable=False, server_default="0"
    ),  # counts changes to related parties and corrections
    Index("ix_customers_client_id_number", "client_id", "number"),
    Index("ix_customers_client_id_abn", "client_id", "abn"),
    UniqueConstraint("client_id", "abn", "reference"),
)

# What a client knows about a customer. Nothing is overwritten: the last entry of a name applies.
attributes = Table(
    "attributes",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("customer_number", ForeignKey("customers.number"), nullable=False),
    Column("name", String(64), nullable=False),
    Column("value", Text),  # as JSON, so that a number keeps its digits; null: the attribute was removed
    Column("source", Text),
    Column("evidence_date", Date),
    Column("expires_at", UtcDateTime),  # from then on the value is unavailable
    Column("set_at", UtcDateTime, nullable=False),
    Column("set_by", String(40), nullable=False),  # as in the audit trail
    Index("ix_attributes_customer_number_name", "customer_number", "name", "number"),
    Index("ix_attributes_customer_number_set_at", "customer_number", "set_at", "number"),
)

# A customer's related parties. Every change stores a complete new list; the last one applies.
related_parties = Table(
    "related_parties",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("customer_number", ForeignKey("customers.number"), nullable=False),
    Column("parties", JSON, nullable=False),
    Column("set_at", UtcDateTime, nullable=False),
    Column("set_by", String(40), nullable=False),  # as in the audit trail
    Index("ix_related_parties_customer_number", "customer_number", "number"),
)

# The ABNs in the lists that apply, to find a customer's related parties, and the customers it is a related party of.
related_abns = Table(
    "related_abns",
    metadata,
    Column("customer_number", ForeignKey("customers.number"), primary_key=True),
    Column("abn", String(11), primary_key=True),
    Index("ix_related_abns_abn", "abn"),
)

# Customers that the sandbox made. The same profile, seed, months and last day of the history give the same rows.
sandbox_customers = Table(
    "sandbox_customers",
    metadata,
    Column("customer_number", ForeignKey("customers.number"), primary_key=True),
    Column("profile", String(32), nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("months", Integer, nullable=False),  # of the history
    Column("until", Date, nullable=False),  # the last day of the history
    Column("sent_through", Date, nullable=False, index=True),  # the last day whose rows were sent
)

# Clients' corrections of the enrichment: for one customer's transactions or, without a customer, for all those of the
# client. Nothing is overwritten: a revoked correction stays, marked. `number` is the order of creation; the latest
# correction wins.
corrections = Table(
    "corrections",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("correction_id", Uuid, nullable=False, unique=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
    Column("customer_number", ForeignKey("customers.number")),  # null: all customers of the client
    Column("transaction_id", Uuid),  # exactly one of these three selects the transactions
    Column("counterparty", Text),  # as sent
    Column("words", Text),  # as sent
    Column("counterparty_group", Text),  # the group that the counterparty is matched by
    Column("direction", String(6)),  # null: both
    Column("category", String(64)),  # null: unchanged
    Column("counterparty_name", Text),  # null: unchanged
    Column("made_at", UtcDateTime, nullable=False),
    Column("made_by", String(40), nullable=False),  # as in the audit trail
    Column("revoked_at", UtcDateTime),
    Column("revoked_by", String(40)),
    Column("revoking_job", Uuid),
    Index("ix_corrections_client_id_customer_number", "client_id", "customer_number", "number"),
    Index("ix_corrections_customer_number_made_at", "customer_number", "made_at", "number"),
)

# Findings, and events that limit the rating, that a person resolved. The key is a digest of the code and the
# transactions. Nothing is overwritten: the last entry of a key applies.
resolutions = Table(
    "resolutions",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("customer_number", ForeignKey("customers.number"), nullable=False),
    Column("kind", String(8), nullable=False),  # `finding` or `event`
    Column("key", String(32), nullable=False),
    Column("reason", Text),  # null: the resolution was revoked
    Column("made_at", UtcDateTime, nullable=False),
    Column("made_by", String(40), nullable=False),  # as in the audit trail
    Index("ix_resolutions_customer_number_key", "customer_number", "key", "number"),
)

segments = Table(
    "segments",
    metadata,
    Column("segment_id", Uuid, primary_key=True),
    Column("path", Text, nullable=False, unique=True),  # relative to the lake's root
    Column("sha256", LargeBinary(32), nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

# Files that are being written to a bucket, and that no row names yet (storage.core.bucket_lake).
file_intents = Table(
    "file_intents",
    metadata,
    Column("path", Text, primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    Column("at", UtcDateTime, nullable=False, index=True),
    Column("condemned_at", UtcDateTime, index=True),  # from then on no row may name it
)

locations = Table(
    "locations",
    metadata,
    Column("customer_number", ForeignKey("customers.number"), primary_key=True),
    Column("data_version", BigInteger, primary_key=True),
    Column("location_version", BigInteger, primary_key=True),
    Column("segment_id", ForeignKey("segments.segment_id"), nullable=False, index=True),
    Column("first_row", BigInteger, nullable=False),
    Column("row_count", BigInteger, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("replaced_at", UtcDateTime),  # from then on it is retained for the retention time
    Index("ix_locations_replaced_at", "replaced_at", sqlite_where=text("replaced_at IS NOT NULL"),
          postgresql_where=text("replaced_at IS NOT NULL")),
)  # fmt: skip

# Counts of current transactions by day, to find a page of all of a client's transactions without reading the lake. They
# are derived, and counted again if they are lost or wrong (`storage.enrichment.day_counts`). Those of a customer are
# packed into one value; those of a client are a tree.
customer_day_counts = Table(
    "customer_day_counts",
    metadata,
    Column("customer_number", ForeignKey("customers.number"), primary_key=True),
    Column("data_version", BigInteger, nullable=False),  # the customer's when its rows were counted
    Column("counts", LargeBinary, nullable=False),
)

client_day_counts = Table(
    "client_day_counts",
    metadata,
    Column("client_id", ForeignKey("clients.client_id"), primary_key=True),
    Column("level", Integer, primary_key=True, autoincrement=False),  # 0: all; 1: by day; 2: by day and block
    Column("day", Integer, primary_key=True, autoincrement=False),  # days since 1970-01-01; level 0: 0
    Column("block", BigInteger, primary_key=True, autoincrement=False),  # block of customers; levels 0 and 1: 0
    Column("batch_token", BigInteger, primary_key=True, autoincrement=False),  # 0: the count; else a batch's change
    Column("rows", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

batches = Table(
    "batches",
    metadata,
    Column("token", Serial, primary_key=True),  # the fencing token: grows with every claim
    Column("batch_id", Uuid, nullable=False, unique=True),
    Column("queue", String(16), nullable=False),
    Column("state", String(16), nullable=False),
    Column("partition_day", Date, nullable=False),  # UTC day of receipt
    Column("run_id", String(64)),  # Dagster's run
    Column("worker", Uuid),  # the worker that has the run
    Column("created_at", UtcDateTime, nullable=False),
    Column("lease_expires_at", UtcDateTime, nullable=False),
    Index("ix_batches_open", "queue", "lease_expires_at", sqlite_where=text("state = 'open'"),
          postgresql_where=text("state = 'open'")),
)  # fmt: skip

jobs = Table(
    "jobs",
    metadata,
    Column("received_seq", Serial, primary_key=True),
    Column("job_id", Uuid, nullable=False, unique=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
    Column("customer_number", ForeignKey("customers.number")),  # null: concerns many customers
    Column("flow", String(24), nullable=False),
    Column("stage", String(16)),  # stage of an extraction; null for other flows
    Column("status", String(24), nullable=False),
    Column("submission", JSON),  # the account as identified on receipt, and the mode
    Column("retracts", Uuid),  # retraction: the job of the submission that it takes back
    Column("landing_path", Text),
    Column("landing_sha256", LargeBinary(32)),
    Column("received_rows", BigInteger, nullable=False, server_default="0"),
    Column("pages_total", Integer),  # pages of the files opened so far
    Column("pages_done", Integer),
    Column("refused_files", Integer, nullable=False, server_default="0"),
    Column("repeated_rows", BigInteger),  # rows that another statement of the submission holds, too
    Column("statement_rows_path", Text),  # the statements' rows with their places, in schema STATEMENT_ROWS
    Column("batch_token", ForeignKey("batches.token"), index=True),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("not_before", UtcDateTime),  # queued again after interruptions: when the next attempt may begin
    Column("is_overtaken", Boolean, nullable=False, server_default=false()),  # what a live refresh reads has changed
    Column("data_version", BigInteger),  # refresh: the version covered; enrichment: the version in force at the end
    Column("processed_rows", BigInteger),
    Column("enriched_rows", BigInteger),
    Column("duplicate_rows", BigInteger),
    Column("rejected_rows", BigInteger),
    Column("outcomes_path", Text),  # the batch's rejected and duplicate rows, sorted by job
    Column("warnings", JSON, nullable=False),
    Column("error", JSON),  # {code, message}
    Column("created_at", UtcDateTime, nullable=False),
    Column("created_by", String(40)),  # as in the audit trail; null: the service, or a portfolio job
    Column("landed_at", UtcDateTime),  # an extraction's rows count as received from here on, with a new received_seq
    Column("started_at", UtcDateTime),
    Column("stage_started_at", UtcDateTime),  # the second stage
    Column("completed_at", UtcDateTime),
    Index("ix_jobs_queue", "flow", "received_seq", sqlite_where=text("status = 'Queued'"),
          postgresql_where=text("status = 'Queued'")),
    Index("ix_jobs_client_id_created_at", "client_id", "created_at", "received_seq"),
    Index("ix_jobs_customer_number_received_seq", "customer_number", "received_seq"),
    Index("ix_jobs_customer_number_created_at", "customer_number", "created_at", "received_seq"),
    Index("ix_jobs_customer_number_completed_at", "customer_number", "completed_at", "received_seq"),
    Index("ix_jobs_landing_path", "landing_path", sqlite_where=text("landing_path IS NOT NULL"),
          postgresql_where=text("landing_path IS NOT NULL")),
    Index("ix_jobs_customer_live", "customer_number", sqlite_where=text("status IN ('Queued', 'Running')"),
          postgresql_where=text("status IN ('Queued', 'Running')")),
    Index("ix_jobs_pausing", "not_before", sqlite_where=text("not_before IS NOT NULL"),
          postgresql_where=text("not_before IS NOT NULL")),
    Index("uq_jobs_one_live_refresh", "customer_number", unique=True,
          sqlite_where=text("flow = 'ReportRefresh' AND status IN ('Queued', 'Running')"),
          postgresql_where=text("flow = 'ReportRefresh' AND status IN ('Queued', 'Running')")),
    Index("uq_jobs_retracts", "retracts", unique=True,
          sqlite_where=text("retracts IS NOT NULL AND status <> 'Failed'"),
          postgresql_where=text("retracts IS NOT NULL AND status <> 'Failed'")),
)  # fmt: skip

# PDF files as clients sent them, sealed, and the result of reading each.
statement_files = Table(
    "statement_files",
    metadata,
    Column("file_id", Uuid, primary_key=True),
    Column("job_id", Uuid, nullable=False),
    Column("customer_number", ForeignKey("customers.number"), nullable=False),
    Column("position", Integer, nullable=False),  # in the request, from 1
    Column("file_name", String(255), nullable=False),  # only for display, never used as a path; may be empty
    Column("sha256", LargeBinary(32), nullable=False),  # of the file as sent
    Column("bytes", BigInteger, nullable=False),
    Column("path", Text),  # the sealed original in the lake; null: refused on receipt
    Column("stored_sha256", LargeBinary(32)),  # of the sealed file
    Column("data_key", ForeignKey("vault_keys.key_id")),  # the key it is sealed with
    Column("password", LargeBinary),  # AES-GCM, bound to the file; null once the file has been read
    Column("had_password", Boolean, nullable=False),
    Column("repeats", Uuid),  # the same file, read before: its statements were taken over
    Column("refusal", String(32)),  # why it gave no statement
    Column("message", Text),
    Column("pages", Integer),
    Column("signals", JSON),
    Column("created_at", UtcDateTime, nullable=False),
    UniqueConstraint("job_id", "position"),
    Index("ix_statement_files_customer_number_sha256", "customer_number", "sha256"),
    Index("uq_statement_files_path", "path", unique=True, sqlite_where=text("path IS NOT NULL"),
          postgresql_where=text("path IS NOT NULL")),
)  # fmt: skip

# Statements read from these files: one account's part of a file each. Money is exact text.
statements = Table(
    "statements",
    metadata,
    Column("statement_id", Uuid, primary_key=True),
    Column("file_id", ForeignKey("statement_files.file_id"), nullable=False),
    Column("job_id", Uuid, nullable=False),
    Column("customer_number", ForeignKey("customers.number"), nullable=False),
    Column("position", Integer, nullable=False),  # in the submission, from 1
    Column("account_id", Uuid, nullable=False),
    Column("bank", Text),  # slug of a layout
    Column("bank_name", Text),
    Column("account_name", Text),
    Column("bsb", Text),
    Column("account_number", Text),  # a card's number is masked
    Column("account_type", String(16)),
    Column("credit_limit", Text),
    Column("kind", String(16), nullable=False),
    Column("period_start", Date),
    Column("period_end", Date),
    Column("opening_balance", Text),
    Column("closing_balance", Text),
    Column("verdict", String(32), nullable=False),
    Column("reasons", JSON, nullable=False),
    Column("row_count", BigInteger, nullable=False),
    Column("first_page", Integer, nullable=False),
    Column("last_page", Integer, nullable=False),
    Column("read_by_ocr", Boolean, nullable=False),
    Column("extracted_at", UtcDateTime, nullable=False),
    Index("ix_statements_customer_number_extracted_at", "customer_number", "extracted_at"),
    Index("ix_statements_file_id", "file_id"),
    Index("ix_statements_job_id", "job_id"),
)

REPORT_KINDS = ("completeness", "risk", "aggregate")

reports = Table(
    "reports",
    metadata,
    Column("customer_number", ForeignKey("customers.number"), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("data", Text),  # exact JSON bytes of the last good data; null before the first
    Column("data_version", BigInteger),
    Column("report_version", Integer),
    Column("as_of", Date),
    Column("data_through", Date),
    Column("generated_at", UtcDateTime),
    Column("failed", Boolean, nullable=False),  # the most recent attempt errored
)

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("subscription_id", Uuid, primary_key=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
    Column("event_type", String(40), nullable=False),
    Column("webhook_url", Text, nullable=False),
    Column("secret", LargeBinary, nullable=False),  # AES-GCM, bound to the subscription
    Column("created_at", UtcDateTime, nullable=False),
    Column("max_retries", Integer, nullable=False, server_default="0"),
    Column("pause_after", Integer),  # failures in a row; null: never
    Column("paused_at", UtcDateTime),  # while set, deliveries wait
    Column("paused_by", String(16)),  # what paused it: failures, client or operator
    Column("failure_streak", Integer, nullable=False, server_default="0"),  # since the last success or resumption
    Column("last_delivered_at", UtcDateTime),
    Column("last_failed_at", UtcDateTime),
    Index("ix_subscriptions_client_id_event_type", "client_id", "event_type"),
)

subscription_customers = Table(
    "subscription_customers",
    metadata,
    Column("subscription_id", ForeignKey("subscriptions.subscription_id", ondelete="CASCADE"), primary_key=True),
    Column("customer_number", ForeignKey("customers.number"), primary_key=True, index=True),
)

events = Table(
    "events",
    metadata,
    Column("event_id", Uuid, primary_key=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
    Column("customer_number", ForeignKey("customers.number"), index=True),  # null: a test, of no customer
    Column("job_id", Uuid),  # null: a test, or a rule that fired
    Column("event_type", String(40), nullable=False),
    Column("body", LargeBinary, nullable=False),  # the exact bytes that are signed and sent
    Column("created_at", UtcDateTime, nullable=False),
    UniqueConstraint("job_id", "event_type"),
)

# The outbox: one row per event and subscription. The subscription may be gone by the time of the send.
deliveries = Table(
    "deliveries",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("delivery_id", Uuid, nullable=False, unique=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
    Column("event_id", ForeignKey("events.event_id"), nullable=False),
    Column("subscription_id", Uuid, nullable=False),
    Column("status", String(16), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("due_at", UtcDateTime, nullable=False),  # when it was created, or resent by hand
    Column("lease_expires_at", UtcDateTime),
    Column("lease_holder", Uuid),
    Column("attempt_count", Integer, nullable=False, server_default="0"),  # since it was created, or resent by hand
    Column("retry_at", UtcDateTime),  # when a retrying delivery is due
    Column("is_test", Boolean, nullable=False, server_default=false()),  # a test: sent even while paused
    UniqueConstraint("event_id", "subscription_id"),
    Index("ix_deliveries_open", "status", "subscription_id", "number", "client_id", "due_at",
          sqlite_where=text("status IN ('due', 'sending', 'retrying')"),
          postgresql_where=text("status IN ('due', 'sending', 'retrying')")),
    Index("ix_deliveries_retrying", "attempt_count", "retry_at",
          sqlite_where=text("status = 'retrying'"), postgresql_where=text("status = 'retrying'")),
    Index("ix_deliveries_open_tests", "subscription_id", "status", "number", "client_id",
          sqlite_where=text("is_test AND status IN ('due', 'sending')"),
          postgresql_where=text("is_test AND status IN ('due', 'sending')")),
    Index("ix_deliveries_failed_of", "subscription_id", "created_at",
          sqlite_where=text("status = 'failed'"), postgresql_where=text("status = 'failed'")),
    Index("ix_deliveries_failed", "number",
          sqlite_where=text("status = 'failed'"), postgresql_where=text("status = 'failed'")),
    Index("ix_deliveries_subscription_id_number", "subscription_id", "number"),
    Index("ix_deliveries_client_id_number", "client_id", "number"),
)  # fmt: skip

attempts = Table(
    "attempts",
    metadata,
    Column("attempt_id", Uuid, primary_key=True),
    Column("delivery_id", ForeignKey("deliveries.delivery_id"), nullable=False, index=True),
    Column("started_at", UtcDateTime, nullable=False),
    Column("duration_ms", Integer, nullable=False),
    Column("status_code", Integer),
    Column("error", String(16)),  # class: dns, connect, tls, timeout, refused, reset, protocol, secret
    Column("response_head", LargeBinary),  # first 16 KiB of the response's body, as received
    Column("subscription_id", Uuid),  # the delivery's
    Column("is_test", Boolean, nullable=False, server_default=false()),  # the delivery's
    Column("dns_ms", Integer),  # the parts of duration_ms; null for a step that was not reached
    Column("connect_ms", Integer),
    Column("tls_ms", Integer),
    Column("first_byte_ms", Integer),
    Index("ix_attempts_started_at", "started_at", "status_code", "error"),
    Index("ix_attempts_subscription_id_started_at",
          "subscription_id", "is_test", "started_at", "status_code", "error", "duration_ms"),
)  # fmt: skip

leases = Table(
    "leases",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("holder", Uuid, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
)

# The homes that use this database: see `storage.core.homes`.
homes = Table(
    "homes",
    metadata,
    Column("identity", String(16), primary_key=True),
    Column("machine", String(255), nullable=False),
    Column("opened_at", UtcDateTime, nullable=False),
)

# Schedules and sensors that should run but don't, as the dispatcher last found them.
stopped_automations = Table(
    "stopped_automations",
    metadata,
    Column("kind", String(16), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("found_at", UtcDateTime, nullable=False),  # the first time
)

# When the integrity pass and the sweep last ended. An interrupted integrity pass continues from its position.
passes = Table(
    "passes",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("position", Text),  # the last file checked; null between passes, and for sweeps
    Column("finished_at", UtcDateTime),  # when a pass last ended
)

# Files that an integrity pass found missing or changed, until a pass finds them correct again.
damaged_files = Table(
    "damaged_files",
    metadata,
    Column("path", Text, primary_key=True),
    Column("problem", String(16), nullable=False),
    Column("found_at", UtcDateTime, nullable=False),  # the first time
)

# Responses to POST requests with an Idempotency-Key. A row without a response is a request in progress.
idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("client_id", ForeignKey("clients.client_id"), primary_key=True),
    Column("key_hash", LargeBinary(32), primary_key=True),  # SHA-256, since a client's key may contain personal data
    Column("fingerprint", LargeBinary(32), nullable=False),  # SHA-256 of method, path and the body's raw bytes
    Column("holder", Uuid, nullable=False),  # the request that may write the response
    Column("claimed_until", UtcDateTime, nullable=False),  # a request that died loses its key then
    Column("status", Integer),  # null: in progress
    Column("headers", JSON),
    Column("body", LargeBinary),
    Column("created_at", UtcDateTime, nullable=False),
    Index("ix_idempotency_keys_created_at", "created_at"),
)

# Append-only. No foreign keys: an entry outlives the resources that it names.
audit = Table(
    "audit",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("who", String(40), nullable=False),
    Column("client_id", Uuid),
    Column("action", String(64), nullable=False),
    Column("resource", JSON, nullable=False),  # ids by name
    Column("outcome", String(16), nullable=False),
    Column("times", Integer, nullable=False),
    Column("request_id", String(128)),
    Column("own_request_id", String(36)),
    Index("ix_audit_client_id_number", "client_id", "number"),
    Index("ix_audit_client_id_at", "client_id", "at", "number"),
    Index("ix_audit_client_id_who", "client_id", "who", "at", "number"),
    Index("ix_audit_client_id_action", "client_id", "action", "at", "number"),
)
refuse_changes(audit, "UPDATE")
refuse_changes(audit, "DELETE")

# The portfolio's report tables: one Parquet file per table and bucket. The current row has no `replaced_at`.
portfolio_tables = Table(
    "portfolio_tables",
    metadata,
    Column("segment_id", ForeignKey("segments.segment_id"), primary_key=True),
    Column("name", String(32), nullable=False),
    Column("bucket", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("replaced_at", UtcDateTime),  # from then on it is retained for the retention time
    Index("uq_portfolio_tables_current", "name", "bucket", unique=True, sqlite_where=text("replaced_at IS NULL"),
          postgresql_where=text("replaced_at IS NULL")),
)  # fmt: skip

# Distribution of a metric over a client's customers, computed each night: percentiles 0 to 100, ascending.
peers = Table(
    "peers",
    metadata,
    Column("client_id", ForeignKey("clients.client_id"), primary_key=True),
    Column("metric", String(64), primary_key=True),
    Column("day", Date, primary_key=True),  # in the service's time zone
    Column("customers", BigInteger, nullable=False),
    Column("percentiles", JSON, nullable=False),  # decimals as text
)

# Long work on the portfolio, a row for each kind and bucket: the request and its progress.
maintenance = Table(
    "maintenance",
    metadata,
    Column("task", String(16), primary_key=True),
    Column("bucket", Integer, primary_key=True),
    Column("requested_at", UtcDateTime),  # by `tidemark backfill`; null if only Dagster requested it
    Column("started_at", UtcDateTime),
    Column("beat_at", UtcDateTime),  # when the run last made progress
    Column("completed_at", UtcDateTime),
    Column("total", BigInteger, nullable=False, server_default="0"),  # customers, as counted at the start
    Column("done", BigInteger, nullable=False, server_default="0"),
    Column("changed", BigInteger, nullable=False, server_default="0"),
    Column("failed", BigInteger, nullable=False, server_default="0"),
    Column("error", String(64)),  # class of the error that ended the last run early
)

# Portfolio jobs: what was requested, and the result. Kind, client and status are in `jobs`.
portfolio_jobs = Table(
    "portfolio_jobs",
    metadata,
    Column("job_id", ForeignKey("jobs.job_id"), primary_key=True),
    Column("subject_id", Uuid, nullable=False, index=True),  # the policy or the ruleset that is tried
    Column("version", Integer, nullable=False),  # of the subject
    Column("request", Text, nullable=False),  # JSON; its form depends on the kind of job
    Column("attachment", LargeBinary),  # further data of the request: Parquet, by kind of job
    Column("result", Text),  # JSON; null until it is done
    Column("created_by", String(40), nullable=False),  # as in the audit trail
)

# Slices of portfolio jobs, listed when a job begins: the client's customers by ranges of their numbers.
portfolio_job_slices = Table(
    "portfolio_job_slices",
    metadata,
    Column("job_id", ForeignKey("portfolio_jobs.job_id"), primary_key=True),
    Column("slice", Integer, primary_key=True),  # from 0
    Column("first_customer", BigInteger, nullable=False),  # customers' numbers, both included
    Column("last_customer", BigInteger, nullable=False),
    Column("customers", BigInteger, nullable=False),  # as counted when the slices were listed
    Column("completed_at", UtcDateTime),  # null: not computed yet; then the columns below are null, too
    Column("done", BigInteger),  # customers
    Column("failed", BigInteger),  # customers that are left out
    Column("tallies", LargeBinary),  # frames that can be added up; removed once the job has its result
    Column("segment_id", ForeignKey("segments.segment_id")),  # its rows in the lake; null: there are none
    Column("row_counts", JSON),  # rows to be listed, by kind of row
)

# Learned models of categories. The content is the model's file; the fingerprint, its SHA-256, identifies it.
category_models = Table(
    "category_models",
    metadata,
    Column("model_id", Uuid, primary_key=True),
    Column("client_id", ForeignKey("clients.client_id")),  # the client whose labels it was trained on; null: for all
    Column("fingerprint", String(64), nullable=False),
    Column("facts", JSON, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

# Which model is used for which client. Nothing is overwritten: the last entry of a client, or for all (null), applies.
category_model_uses = Table(
    "category_model_uses",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("client_id", ForeignKey("clients.client_id")),
    Column("model_id", ForeignKey("category_models.model_id")),  # null: no model of its own any more
    Column("used_from", UtcDateTime, nullable=False),
    Column("who", String(40), nullable=False),  # as in the audit trail
)

# Clients' own rules, as `OwnRules.content` writes them. A version never changes.
own_rules = Table(
    "own_rules",
    metadata,
    Column("client_id", ForeignKey("clients.client_id"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),  # from 1
    Column("fingerprint", String(64), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("created_by", String(40), nullable=False),  # as in the audit trail
    Column("content", LargeBinary, nullable=False),
)

# Which version is used for which client. Nothing is overwritten: the last entry of a client applies.
own_rule_uses = Table(
    "own_rule_uses",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
    Column("version", Integer),  # null: the shipped rules alone
    Column("used_from", UtcDateTime, nullable=False),
    Column("who", String(40), nullable=False),  # as in the audit trail
)

# Scorecards fitted to outcomes. The content is the scorecard's file; the fingerprint identifies it.
risk_models = Table(
    "risk_models",
    metadata,
    Column("model_id", Uuid, primary_key=True),
    Column(
        "client_id", ForeignKey("clients.client_id")
    ),  # the client whose outcomes it was fitted to; null: outcomes from a file
    Column("name", Text, nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("calibration", String(16), nullable=False),
    Column("facts", JSON, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

# Which scorecard is used for which client. Nothing is overwritten: the last entry of a client applies.
risk_model_uses = Table(
    "risk_model_uses",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
    Column("model_id", ForeignKey("risk_models.model_id")),  # null: Tidemark's own scorecard
    Column("used_from", UtcDateTime, nullable=False),
    Column("who", String(40), nullable=False),  # as in the audit trail
)

# Decision policies. The documents are in `policy_versions`; this table has what changes apart from them.
policies = Table(
    "policies",
    metadata,
    Column("policy_id", Uuid, primary_key=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
    Column("slug", String(63), nullable=False),
    Column("is_archived", Boolean, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("challenger_version", Integer),  # evaluated in shadow of the published one; null: none
    Column("challenger_percent", Integer),  # share of customers, 1 to 100
    UniqueConstraint("client_id", "slug"),
)

# A version's document is immutable; its state is not.
policy_versions = Table(
    "policy_versions",
    metadata,
    Column("policy_id", ForeignKey("policies.policy_id"), primary_key=True),
    Column("version", Integer, primary_key=True),  # counted from 1
    Column("state", String(16), nullable=False),
    Column("document", Text, nullable=False),  # canonical JSON
    Column("fingerprint", String(64), nullable=False),  # SHA-256 of the document
    Column("acknowledged", JSON, nullable=False),  # warnings that the author accepted: [{pointer, code, message}]
    Column("created_at", UtcDateTime, nullable=False),
    Column("created_by", String(40), nullable=False),  # as in the audit trail
    Column("published_at", UtcDateTime),
    Column("published_by", String(40)),
    Column("retired_at", UtcDateTime),
    Index("uq_policy_versions_published", "policy_id", unique=True, sqlite_where=text("state = 'published'"),
          postgresql_where=text("state = 'published'")),
)  # fmt: skip
refuse_changes(
    policy_versions, "UPDATE", "policy_id, version, document, fingerprint, acknowledged, created_at, created_by"
)
refuse_changes(policy_versions, "DELETE")

# Evaluations, which are never changed.
evaluations = Table(
    "evaluations",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("evaluation_id", Uuid, nullable=False, unique=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
    Column("customer_number", ForeignKey("customers.number"), nullable=False),
    Column("policy_id", Uuid, nullable=False),
    Column("version", Integer, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("who", String(40), nullable=False),  # as in the audit trail
    Column("what_if", Boolean, nullable=False),  # with overrides, or of a version that is not published
    Column("outcome", String(16), nullable=False),
    Column("data_version", BigInteger, nullable=False),
    Column("as_of", Date, nullable=False),  # the service's day
    Column("shadow_of", ForeignKey("evaluations.evaluation_id"), index=True),  # null: the client got this evaluation
    Column("record", LargeBinary, nullable=False),  # exact bytes of the record: readings, trace and answer
    Column("sha256", LargeBinary(32), nullable=False),  # of the record
    ForeignKeyConstraint(["policy_id", "version"], ["policy_versions.policy_id", "policy_versions.version"]),
    Index("ix_evaluations_client_id_number", "client_id", "number"),
    Index("ix_evaluations_client_id_at", "client_id", "at", "number", "policy_id", "outcome", "what_if", "shadow_of"),
    Index("ix_evaluations_customer_number_number", "customer_number", "number"),
    Index("ix_evaluations_policy_id_number", "policy_id", "number"),
    Index("ix_evaluations_customer_number_at", "customer_number", "at", "number"),
)
refuse_changes(evaluations, "UPDATE")

# Decisions that a person made instead, which are never changed.
decision_overrides = Table(
    "decision_overrides",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("evaluation_id", ForeignKey("evaluations.evaluation_id"), nullable=False, index=True),
    Column("outcome", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("decided_by", Text, nullable=False),  # the person, as the client names them
    Column("at", UtcDateTime, nullable=False),
    Column("who", String(40), nullable=False),  # as in the audit trail
)
refuse_changes(decision_overrides, "UPDATE")

# Requests for actions that need a second person or key, and what became of them.
approvals = Table(
    "approvals",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("approval_id", Uuid, nullable=False, unique=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("subject_id", String(63), nullable=False),  # of the policy, evaluation or ruleset; a new ruleset's slug
    Column("subject", JSON, nullable=False),  # its ids by name, as shown; none of LIFT, whose subject_id is the kind
    Column("request", JSON, nullable=False),  # what was sent; its form depends on the kind
    Column("requested_by", String(40), nullable=False),  # as in the audit trail
    Column("requested_at", UtcDateTime, nullable=False),
    Column("status", String(16), nullable=False),
    Column("decided_by", String(40)),  # null: pending
    Column("decided_at", UtcDateTime),
    Column("reason", Text),  # why it was declined
    Index("ix_approvals_client_id_number", "client_id", "number"),
    Index("uq_approvals_pending", "client_id", "kind", "subject_id", unique=True,
          sqlite_where=text("status = 'pending'"), postgresql_where=text("status = 'pending'")),
)  # fmt: skip
refuse_changes(
    approvals, "UPDATE", "approval_id, client_id, kind, subject_id, subject, request, requested_by, requested_at"
)
refuse_changes(approvals, "DELETE")

# Monitoring rulesets. The documents are in their versions; this table says which version applies, and what is queried
# often.
monitoring_rulesets = Table(
    "monitoring_rulesets",
    metadata,
    Column("ruleset_id", Uuid, primary_key=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
    Column("slug", String(63), nullable=False),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),  # the newest, which applies
    Column("active", Boolean, nullable=False),
    Column("archived_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("created_by", String(40), nullable=False),  # as in the audit trail
    UniqueConstraint("client_id", "slug"),
)

# Immutable versions of rulesets.
monitoring_ruleset_versions = Table(
    "monitoring_ruleset_versions",
    metadata,
    Column("ruleset_id", ForeignKey("monitoring_rulesets.ruleset_id"), primary_key=True),
    Column("version", Integer, primary_key=True),  # counted from 1
    Column("document", Text, nullable=False),  # canonical JSON
    Column("sha256", LargeBinary(32), nullable=False),  # of the document
    Column("created_at", UtcDateTime, nullable=False),
    Column("created_by", String(40), nullable=False),  # as in the audit trail
)
refuse_changes(monitoring_ruleset_versions, "UPDATE")
refuse_changes(monitoring_ruleset_versions, "DELETE")

# Rules that have fired for a customer and whose condition has not been false since. Other rules have no row.
rule_states = Table(
    "rule_states",
    metadata,
    Column("customer_number", ForeignKey("customers.number"), primary_key=True),
    Column("ruleset_id", ForeignKey("monitoring_rulesets.ruleset_id"), primary_key=True, index=True),
    Column("rule", String(64), primary_key=True),
    Column("fired_at", UtcDateTime, nullable=False),  # the last time
    Column("match_id", Uuid, nullable=False),  # its match of the last time
)

# Ruleset evaluations that a change requires: a row for one customer, or for a client's customers in one bucket.
# A repeated request gives the row a new, higher number, so an evaluation that read the older one doesn't clear it.
ruleset_evaluation_requests = Table(
    "ruleset_evaluation_requests",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("bucket", Integer, nullable=False, index=True),
    Column("client_id", ForeignKey("clients.client_id")),  # all of its customers in the bucket
    Column(
        "customer_number", ForeignKey("customers.number"), unique=True
    ),  # or this customer; exactly one of the two is set
    Column("requested_at", UtcDateTime, nullable=False),  # the first time
    UniqueConstraint("client_id", "bucket"),
    sqlite_autoincrement=True,
)

# How each rule's condition came out, by day (the service's). Each evaluation of a customer counts once.
rule_counts = Table(
    "rule_counts",
    metadata,
    Column("ruleset_id", ForeignKey("monitoring_rulesets.ruleset_id"), primary_key=True),
    Column("rule", String(64), primary_key=True),
    Column("day", Date, primary_key=True),
    Column("observed", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("unknown", BigInteger, nullable=False),  # the condition was unknown because data was unavailable
    Column("fired", BigInteger, nullable=False),
)

# Matches, which are never changed. `match_id` is also the event's id.
rule_matches = Table(
    "rule_matches",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("match_id", Uuid, nullable=False, unique=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
    Column("ruleset_id", Uuid, nullable=False),
    Column("version", Integer, nullable=False),
    Column("customer_number", ForeignKey("customers.number"), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("as_of", Date, nullable=False),  # the service's day
    Column("data_version", BigInteger, nullable=False),
    Column("cause", String(8), nullable=False),  # why it was evaluated: `data` or `time`
    Column("rules", JSON, nullable=False),  # codes
    Column("record", LargeBinary, nullable=False),  # exact bytes of the record: each rule's readings, and the trace
    Column("sha256", LargeBinary(32), nullable=False),  # of the record
    ForeignKeyConstraint(
        ["ruleset_id", "version"],
        ["monitoring_ruleset_versions.ruleset_id", "monitoring_ruleset_versions.version"],
    ),
    Index("ix_rule_matches_client_id_number", "client_id", "number"),
    Index("ix_rule_matches_customer_number_number", "customer_number", "number"),
    Index("ix_rule_matches_ruleset_id_number", "ruleset_id", "number"),
    Index("ix_rule_matches_client_id_at", "client_id", "at"),
    Index("ix_rule_matches_customer_number_at", "customer_number", "at", "number"),
)
refuse_changes(rule_matches, "UPDATE")

# What waits for people: an alert for each match, and decisions that a person has to complete. This is the current state
# of each; what people did with it is in `work_actions`.
work_items = Table(
    "work_items",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("item_id", Uuid, nullable=False, unique=True),  # of the match or the evaluation
    Column("kind", String(8), nullable=False),  # `alert` or `decision`
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
    Column("customer_number", ForeignKey("customers.number"), nullable=False),
    Column("subject_id", Uuid, nullable=False),  # the ruleset or the policy
    Column("at", UtcDateTime, nullable=False),  # of the match or the evaluation
    Column("state", String(12), nullable=False),  # `open`, `acknowledged` or `closed`
    Column("snoozed_until", UtcDateTime),  # an open item is snoozed until then
    Column("assignee", String(40)),  # as in the audit trail
    Index("ix_work_items_waiting", "client_id", "number", "kind", "assignee", "snoozed_until",
          sqlite_where=text("state <> 'closed'"), postgresql_where=text("state <> 'closed'")),
    Index("ix_work_items_assigned", "client_id", "assignee", "number", "kind", "snoozed_until",
          sqlite_where=text("state <> 'closed'"), postgresql_where=text("state <> 'closed'")),
    Index("ix_work_items_client_id_kind_state", "client_id", "kind", "state", "number", "snoozed_until"),
    Index("ix_work_items_client_id_kind_number", "client_id", "kind", "number"),
    Index("ix_work_items_customer_number_subject_id", "customer_number", "subject_id", "number"),
    Index("ix_work_items_subject_id_number", "subject_id", "number"),
    Index("ix_work_items_client_id_snoozed_until", "client_id", "snoozed_until",
          sqlite_where=text("snoozed_until IS NOT NULL"), postgresql_where=text("snoozed_until IS NOT NULL")),
)  # fmt: skip

# What people did with work items. The last action of each kind applies.
work_actions = Table(
    "work_actions",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("item_id", ForeignKey("work_items.item_id"), nullable=False),
    Column("customer_number", ForeignKey("customers.number"), nullable=False),
    Column("action", String(12), nullable=False),
    Column("until", UtcDateTime),  # of a snooze
    Column("reason", Text),
    Column("assignee", String(40)),  # of an assignment; null: to nobody
    Column("at", UtcDateTime, nullable=False),
    Column("who", String(40), nullable=False),  # as in the audit trail
    Index("ix_work_actions_item_id_number", "item_id", "number"),
    Index("ix_work_actions_customer_number_at", "customer_number", "at", "number"),
)
refuse_changes(work_actions, "UPDATE")

# People's notes on customers. A deleted note keeps its row, without the text.
notes = Table(
    "notes",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("note_id", Uuid, nullable=False, unique=True),
    Column("customer_number", ForeignKey("customers.number"), nullable=False),
    Column("evaluation_id", Uuid),  # what it is about; both null: the customer
    Column("match_id", Uuid),
    Column("text", Text),  # null: deleted
    Column("created_at", UtcDateTime, nullable=False),
    Column("created_by", String(40), nullable=False),  # as in the audit trail
    Column("deleted_at", UtcDateTime),
    Column("deleted_by", String(40)),
    Index("ix_notes_customer_number_created_at", "customer_number", "created_at", "number"),
)

# Files that people attached to customers, sealed in the lake. A deleted one keeps its row, without name and file.
attachments = Table(
    "attachments",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("attachment_id", Uuid, nullable=False, unique=True),
    Column("customer_number", ForeignKey("customers.number"), nullable=False),
    Column("file_name", String(255)),  # only for display, never used as a path; may be empty; null: deleted
    Column("sha256", LargeBinary(32), nullable=False),  # of the file as sent
    Column("size", BigInteger, nullable=False),  # in bytes
    Column("path", Text),  # the sealed file in the lake; null: deleted
    Column("stored_sha256", LargeBinary(32)),  # of the sealed file
    Column("data_key", ForeignKey("vault_keys.key_id")),  # the key it is sealed with
    Column("created_at", UtcDateTime, nullable=False),
    Column("created_by", String(40), nullable=False),  # as in the audit trail
    Column("deleted_at", UtcDateTime),
    Column("deleted_by", String(40)),
    Index("ix_attachments_customer_number_created_at", "customer_number", "created_at", "number"),
    Index("uq_attachments_path", "path", unique=True, sqlite_where=text("path IS NOT NULL"),
          postgresql_where=text("path IS NOT NULL")),
)  # fmt: skip

# Data keys, which secrets are sealed with. They are wrapped with the master key, each bound to its id and purpose.
vault_keys = Table(
    "vault_keys",
    metadata,
    Column("key_id", Integer, primary_key=True, autoincrement=False),
    Column("purpose", String(16), nullable=False),
    Column("wrapped", LargeBinary, nullable=False),  # AES-GCM
    Column("wrapped_by", String(16), nullable=False),  # the master key's fingerprint
    Column("created_at", UtcDateTime, nullable=False),
    Column("retired_at", UtcDateTime),  # null: in use for its purpose; otherwise it seals no new values
    Index("uq_vault_keys_in_use", "purpose", unique=True, sqlite_where=text("retired_at IS NULL"),
          postgresql_where=text("retired_at IS NULL")),
)  # fmt: skip

# All that a list of customers filters by, in one text: an index of it finds few customers among many by any filters.
FACETS: Final = """(
coalesce(rating, '') || ' ' || coalesce(outcome, '') || ' ' || report_status
|| CASE WHEN open_alerts > 0 THEN ' alerts' ELSE '' END
)"""
_FILTERED = ("rating", "outcome", "report_status", "open_alerts")

# What a list of customers shows, sorts and filters by. Derived, and changed in the transactions that change what it
# follows from (`storage.customers.summaries`). Values that are missing come before all others. An index in an order of
# the list ends with what is filtered, so that customers who don't fit are passed over without reading their rows.
customer_summaries = Table(
    "customer_summaries",
    metadata,
    Column("customer_number", ForeignKey("customers.number"), primary_key=True),
    Column("client_id", ForeignKey("clients.client_id"), nullable=False),
    Column("name_key", Text().with_variant(Text(collation="C"), "postgresql")),  # for sorting
    Column("search_text", Text, nullable=False),  # name, ABN and reference, without differences of case
    Column("rating", String(1)),  # of the stored risk report, as the two next
    Column("risk_value", Float),
    Column("calibration", String(16)),
    Column("completeness_score", Float),  # of the stored completeness report, as the next
    Column("completeness_tier", String(16)),
    Column("report_status", String(8), nullable=False),  # of the three together, apart from unfinished jobs
    Column("data_through", Date),  # of the newest stored report
    Column("evaluation_number", ForeignKey("evaluations.number")),  # the last decision; no what-if, no challenger's
    Column("outcome", String(16)),  # of that, or of its last override
    Column("open_alerts", Integer, nullable=False),  # neither acknowledged, closed nor snoozed
    *(
        Index(f"ix_customer_summaries_{name}", "client_id", name, "customer_number",
              *(column for column in _FILTERED if column != name),
              postgresql_ops={name: "NULLS FIRST"})  # as SQLite sorts
        for name in ("name_key", "rating", "risk_value", "completeness_score", "data_through", "open_alerts")
    ),
    Index("ix_customer_summaries_customer_number", "client_id", "customer_number", *_FILTERED),
    Index("ix_customer_summaries_facets", "client_id", text(FACETS), "customer_number"),
)  # fmt: skip
index_parts(customer_summaries, "customer_number", "search_text")
