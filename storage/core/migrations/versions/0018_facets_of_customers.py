"""Index customers' summaries: one index for all filters together, and one for each order that includes the filters."""

import sqlalchemy as sa
from alembic import op

revision = "tables_18"
down_revision = "tables_17"
branch_labels = None
depends_on = None

TABLE = "customer_summaries"
ORDERS = ("name_key", "rating", "risk_value", "completeness_score", "data_through", "open_alerts")
FILTERED = ("rating", "outcome", "report_status", "open_alerts")
FACETS = """(
coalesce(rating, '') || ' ' || coalesce(outcome, '') || ' ' || report_status
|| CASE WHEN open_alerts > 0 THEN ' alerts' ELSE '' END
)"""


def upgrade() -> None:
    for name in (*ORDERS, "report_status", "outcome", "customer_number"):
        op.drop_index(f"ix_{TABLE}_{name}", TABLE)
    for name in ORDERS:
        columns = ["client_id", name, "customer_number", *(column for column in FILTERED if column != name)]
        op.create_index(f"ix_{TABLE}_{name}", TABLE, columns, postgresql_ops={name: "NULLS FIRST"})
    op.create_index(f"ix_{TABLE}_customer_number", TABLE, ["client_id", "customer_number", *FILTERED])
    op.create_index(f"ix_{TABLE}_facets", TABLE, ["client_id", sa.text(FACETS), "customer_number"])
