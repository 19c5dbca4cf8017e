"""Monitoring: rulesets, which rules hold, what is to be looked at, what matched, and simulations.

The database itself refuses to change what a version of a ruleset says, or a match; and to remove a version. Matches can
be removed, for they are of customers.
"""

import sqlalchemy as sa
from alembic import op

from storage.core import column_types

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REFUSED = (
    ("ruleset_versions_are_never_rewritten", "UPDATE", "monitoring_ruleset_versions"),
    ("ruleset_versions_are_never_removed", "DELETE", "monitoring_ruleset_versions"),
    ("rule_matches_are_never_changed", "UPDATE", "rule_matches"),
)


def upgrade() -> None:
    _rulesets()
    _ruleset_versions()
    _rule_states()
    _look_requests()
    _rule_counts()
    _rule_matches()
    _simulations()
    for statement in _sqlite() if op.get_bind().dialect.name == "sqlite" else _postgres():
        op.execute(statement)


def _rulesets() -> None:
    op.create_table(
        "monitoring_rulesets",
        sa.Column("ruleset_id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("slug", sa.String(length=63), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("archived_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("updated_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_monitoring_rulesets_client_id")),
        sa.PrimaryKeyConstraint("ruleset_id", name=op.f("pk_monitoring_rulesets")),
        sa.UniqueConstraint("client_id", "slug", name=op.f("uq_monitoring_rulesets_client_id_slug")),
    )


def _ruleset_versions() -> None:
    op.create_table(
        "monitoring_ruleset_versions",
        sa.Column("ruleset_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["ruleset_id"],
            ["monitoring_rulesets.ruleset_id"],
            name=op.f("fk_monitoring_ruleset_versions_ruleset_id"),
        ),
        sa.PrimaryKeyConstraint("ruleset_id", "version", name=op.f("pk_monitoring_ruleset_versions")),
    )


def _rule_states() -> None:
    op.create_table(
        "rule_states",
        sa.Column("customer_number", SERIAL, nullable=False),
        sa.Column("ruleset_id", sa.Uuid(), nullable=False),
        sa.Column("rule", sa.String(length=64), nullable=False),
        sa.Column("fired_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("match_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(["customer_number"], ["customers.number"], name=op.f("fk_rule_states_customer_number")),
        sa.ForeignKeyConstraint(
            ["ruleset_id"], ["monitoring_rulesets.ruleset_id"], name=op.f("fk_rule_states_ruleset_id")
        ),
        sa.PrimaryKeyConstraint("customer_number", "ruleset_id", "rule", name=op.f("pk_rule_states")),
    )
    op.create_index(op.f("ix_rule_states_ruleset_id"), "rule_states", ["ruleset_id"])


def _look_requests() -> None:
    op.create_table(
        "look_requests",
        sa.Column("number", SERIAL, nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=True),
        sa.Column("customer_number", SERIAL, nullable=True),
        sa.Column("requested_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_look_requests_client_id")),
        sa.ForeignKeyConstraint(
            ["customer_number"], ["customers.number"], name=op.f("fk_look_requests_customer_number")
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_look_requests")),
        sa.UniqueConstraint("client_id", "bucket", name=op.f("uq_look_requests_client_id_bucket")),
        sa.UniqueConstraint("customer_number", name=op.f("uq_look_requests_customer_number")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_look_requests_bucket"), "look_requests", ["bucket"])


def _rule_counts() -> None:
    op.create_table(
        "rule_counts",
        sa.Column("ruleset_id", sa.Uuid(), nullable=False),
        sa.Column("rule", sa.String(length=64), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("observed", sa.BigInteger(), nullable=False),
        sa.Column("held", sa.BigInteger(), nullable=False),
        sa.Column("unknown", sa.BigInteger(), nullable=False),
        sa.Column("fired", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["ruleset_id"], ["monitoring_rulesets.ruleset_id"], name=op.f("fk_rule_counts_ruleset_id")
        ),
        sa.PrimaryKeyConstraint("ruleset_id", "rule", "day", name=op.f("pk_rule_counts")),
    )


def _rule_matches() -> None:
    op.create_table(
        "rule_matches",
        sa.Column("number", SERIAL, nullable=False),
        sa.Column("match_id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("ruleset_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("customer_number", SERIAL, nullable=False),
        sa.Column("at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("as_of", sa.Date(), nullable=False),
        sa.Column("data_version", sa.BigInteger(), nullable=False),
        sa.Column("cause", sa.String(length=8), nullable=False),
        sa.Column("rules", sa.JSON(), nullable=False),
        sa.Column("record", sa.LargeBinary(), nullable=False),
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=False),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_rule_matches_client_id")),
        sa.ForeignKeyConstraint(
            ["customer_number"], ["customers.number"], name=op.f("fk_rule_matches_customer_number")
        ),
        sa.ForeignKeyConstraint(
            ["ruleset_id", "version"],
            ["monitoring_ruleset_versions.ruleset_id", "monitoring_ruleset_versions.version"],
            name=op.f("fk_rule_matches_ruleset_id"),
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_rule_matches")),
        sa.UniqueConstraint("match_id", name=op.f("uq_rule_matches_match_id")),
    )
    for owner in ("client_id", "customer_number", "ruleset_id"):
        op.create_index(f"ix_rule_matches_{owner}_number", "rule_matches", [owner, "number"])
    op.create_index("ix_rule_matches_client_id_at", "rule_matches", ["client_id", "at"])


def _simulations() -> None:
    op.create_table(
        "simulations",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("ruleset_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("segment_id", sa.Uuid(), nullable=True),
        sa.Column("customers_total", sa.BigInteger(), nullable=True),
        sa.Column("customers_done", sa.BigInteger(), nullable=False),
        sa.Column("customers_failed", sa.BigInteger(), nullable=False),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_simulations_client_id")),
        sa.ForeignKeyConstraint(
            ["ruleset_id", "version"],
            ["monitoring_ruleset_versions.ruleset_id", "monitoring_ruleset_versions.version"],
            name=op.f("fk_simulations_ruleset_id"),
        ),
        sa.ForeignKeyConstraint(["segment_id"], ["segments.segment_id"], name=op.f("fk_simulations_segment_id")),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_simulations")),
    )
    op.create_index("ix_simulations_ruleset_id_created_at", "simulations", ["ruleset_id", "created_at"])


def _sqlite() -> list[str]:
    return [
        f"CREATE TRIGGER {name} BEFORE {change} ON {table} BEGIN SELECT RAISE(ABORT, '{_told(name)}'); END"
        for name, change, table in REFUSED
    ]


def _postgres() -> list[str]:
    function = """
        CREATE FUNCTION refuse_to_change_monitoring() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation'; END $$
    """
    return [function] + [
        f"CREATE TRIGGER {name} BEFORE {change} ON {table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_monitoring('{_told(name)}')"
        for name, change, table in REFUSED
    ]


def _told(name: str) -> str:
    return name.replace("_", " ")
