"""Summaries of customers, filled for those that exist, and an index for lists of all evaluations."""

from alembic import op

from storage.core.database import Reading, Writing
from storage.core.models import customer_summaries, evaluations
from storage.core.text_index import PG_TRGM
from storage.customers import summaries

revision = "tables_8"
down_revision = "tables_7"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        op.execute(PG_TRGM)
    [by_time] = (index for index in evaluations.indexes if index.name == "ix_evaluations_client_id_at")
    by_time.create(connection)
    customer_summaries.create(connection)
    summaries.fill(Writing(Reading(connection)))
