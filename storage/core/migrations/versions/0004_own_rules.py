"""Clients' own rules, and which version is used."""

from alembic import op

from storage.core.models import own_rule_uses, own_rules

revision = "tables_4"
down_revision = "tables_3"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in (own_rules, own_rule_uses):
        table.create(op.get_bind())
