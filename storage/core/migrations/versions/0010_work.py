"""Work of people on customers. Existing matches are open alerts; the latest decisions wait for people if they must."""

from alembic import op
from sqlalchemy import func, insert, literal, null, select, union_all

from storage.core.models import (
    attachments,
    attributes,
    corrections,
    decision_overrides,
    evaluations,
    jobs,
    notes,
    rule_matches,
    work_actions,
    work_items,
)

revision = "tables_10"
down_revision = "tables_9"
branch_labels = None
depends_on = None

OF_THE_TIMELINE = {
    "ix_attributes_customer_number_set_at",
    "ix_corrections_customer_number_made_at",
    "ix_evaluations_customer_number_at",
    "ix_jobs_customer_number_completed_at",
    "ix_jobs_customer_number_created_at",
    "ix_rule_matches_customer_number_at",
}
COLUMNS = ("item_id", "kind", "client_id", "customer_number", "subject_id", "at", "state")


def upgrade() -> None:
    for table in (work_items, work_actions, notes, attachments):
        table.create(op.get_bind())
    for table in (attributes, corrections, evaluations, jobs, rule_matches):
        for index in table.indexes:
            if index.name in OF_THE_TIMELINE:
                index.create(op.get_bind())
    match, made = rule_matches.c, evaluations.c
    alerts = select(
        *(match.match_id, literal("alert"), match.client_id, match.customer_number, match.ruleset_id),
        *(match.at.label("at"), literal("open")),
    )
    latest = (
        select(func.max(made.number))
        .where(~made.what_if, made.shadow_of.is_(null()))
        .group_by(made.customer_number, made.policy_id)
    )
    decisions = select(
        *(made.evaluation_id, literal("decision"), made.client_id, made.customer_number, made.policy_id),
        *(made.at, literal("open")),
    ).where(
        made.number.in_(latest),
        made.outcome.in_(("conditional", "indeterminate")),
        made.evaluation_id.not_in(select(decision_overrides.c.evaluation_id)),
    )
    both = union_all(alerts, decisions).subquery()
    op.execute(insert(work_items).from_select(COLUMNS, select(both).order_by(both.c.at)))
