"""Summaries count alerts that nobody has acknowledged, closed or snoozed; an index finds snoozes that have ended."""

from alembic import op
from sqlalchemy import func, select, update

from storage.core.models import customer_summaries, work_items

revision = "tables_14"
down_revision = "tables_13"
branch_labels = None
depends_on = None


def upgrade() -> None:
    [ended] = (index for index in work_items.indexes if index.name == "ix_work_items_client_id_snoozed_until")
    ended.create(op.get_bind(), checkfirst=True)  # if migration 10 has just created the table, it exists
    is_mine = work_items.c.customer_number == customer_summaries.c.customer_number
    is_open = (work_items.c.kind == "alert", work_items.c.state == "open", work_items.c.snoozed_until.is_(None))
    count = select(func.count()).where(is_mine, *is_open).correlate(customer_summaries).scalar_subquery()
    op.execute(update(customer_summaries).values(open_alerts=count))
