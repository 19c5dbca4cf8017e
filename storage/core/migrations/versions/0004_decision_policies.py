"""Decision policies with their versions, and what was decided by them.

The database itself refuses to change what a version says, an evaluation or an override; and to remove a version.
Evaluations and overrides can be removed: they go with an erased customer.
"""

import sqlalchemy as sa
from alembic import op

from storage.core import column_types

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
SAID = "policy_id, version, document, fingerprint, acknowledged, created_at, created_by"
REFUSED = (
    ("policy_versions_are_never_rewritten", f"UPDATE OF {SAID}", "policy_versions"),
    ("policy_versions_are_never_removed", "DELETE", "policy_versions"),
    ("evaluations_are_never_changed", "UPDATE", "evaluations"),
    ("decision_overrides_are_never_changed", "UPDATE", "decision_overrides"),
)


def upgrade() -> None:
    _policies()
    _policy_versions()
    _evaluations()
    _decision_overrides()
    for statement in _sqlite() if op.get_bind().dialect.name == "sqlite" else _postgres():
        op.execute(statement)


def _policies() -> None:
    op.create_table(
        "policies",
        sa.Column("policy_id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("slug", sa.String(length=63), nullable=False),
        sa.Column("is_archived", sa.Boolean(), nullable=False),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("challenger_version", sa.Integer(), nullable=True),
        sa.Column("challenger_percent", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_policies_client_id")),
        sa.PrimaryKeyConstraint("policy_id", name=op.f("pk_policies")),
        sa.UniqueConstraint("client_id", "slug", name=op.f("uq_policies_client_id_slug")),
    )


def _policy_versions() -> None:
    op.create_table(
        "policy_versions",
        sa.Column("policy_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("acknowledged", sa.JSON(), nullable=False),
        sa.Column("created_at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("published_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("published_by", sa.String(length=40), nullable=True),
        sa.Column("retired_at", column_types.UtcDateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["policy_id"], ["policies.policy_id"], name=op.f("fk_policy_versions_policy_id")),
        sa.PrimaryKeyConstraint("policy_id", "version", name=op.f("pk_policy_versions")),
    )
    op.create_index(
        "uq_policy_versions_published",
        "policy_versions",
        ["policy_id"],
        unique=True,
        sqlite_where=sa.text("state = 'published'"),
        postgresql_where=sa.text("state = 'published'"),
    )


def _evaluations() -> None:
    op.create_table(
        "evaluations",
        sa.Column("number", SERIAL, nullable=False),
        sa.Column("evaluation_id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("customer_number", SERIAL, nullable=False),
        sa.Column("policy_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(length=40), nullable=False),
        sa.Column("what_if", sa.Boolean(), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("data_version", sa.BigInteger(), nullable=False),
        sa.Column("as_of", sa.Date(), nullable=False),
        sa.Column("shadow_of", sa.Uuid(), nullable=True),
        sa.Column("record", sa.LargeBinary(), nullable=False),
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=False),
        sa.ForeignKeyConstraint(["client_id"], ["clients.client_id"], name=op.f("fk_evaluations_client_id")),
        sa.ForeignKeyConstraint(["customer_number"], ["customers.number"], name=op.f("fk_evaluations_customer_number")),
        sa.ForeignKeyConstraint(
            ["policy_id", "version"],
            ["policy_versions.policy_id", "policy_versions.version"],
            name=op.f("fk_evaluations_policy_id"),
        ),
        sa.ForeignKeyConstraint(["shadow_of"], ["evaluations.evaluation_id"], name=op.f("fk_evaluations_shadow_of")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_evaluations")),
        sa.UniqueConstraint("evaluation_id", name=op.f("uq_evaluations_evaluation_id")),
    )
    for owner in ("client_id", "customer_number", "policy_id"):
        op.create_index(f"ix_evaluations_{owner}_number", "evaluations", [owner, "number"])
    op.create_index(op.f("ix_evaluations_shadow_of"), "evaluations", ["shadow_of"])


def _decision_overrides() -> None:
    op.create_table(
        "decision_overrides",
        sa.Column("number", SERIAL, nullable=False),
        sa.Column("evaluation_id", sa.Uuid(), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("decided_by", sa.Text(), nullable=False),
        sa.Column("at", column_types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluations.evaluation_id"], name=op.f("fk_decision_overrides_evaluation_id")
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_decision_overrides")),
    )
    op.create_index(op.f("ix_decision_overrides_evaluation_id"), "decision_overrides", ["evaluation_id"])


def _sqlite() -> list[str]:
    return [
        f"CREATE TRIGGER {name} BEFORE {change} ON {table} BEGIN SELECT RAISE(ABORT, '{_told(name)}'); END"
        for name, change, table in REFUSED
    ]


def _postgres() -> list[str]:
    function = """
        CREATE FUNCTION refuse_to_change_decisions() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation'; END $$
    """
    return [function] + [
        f"CREATE TRIGGER {name} BEFORE {change} ON {table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_decisions('{_told(name)}')"
        for name, change, table in REFUSED
    ]


def _told(name: str) -> str:
    return name.replace("_", " ")
