"""Summaries of customers, filled for those that exist, and an index for lists of all evaluations."""

from alembic import op
from sqlalchemy import Connection, bindparam, insert, select, text

from storage.core.models import customer_summaries, customers, evaluations
from storage.core.text_search import PG_TRGM

revision = "tables_8"
down_revision = "tables_7"
branch_labels = None
depends_on = None

SLICE = 2_000
MEMBER = {"sqlite": "json_extract(data, '$.{0}')", "postgresql": "data::json #>> string_to_array('{0}', '.')"}
OF_REPORT = "SELECT {0} FROM reports r WHERE r.customer_number = s.customer_number AND kind = '{1}'"
MEMBERS = {
    "rating": ("risk", "rating", "{0}"),
    "risk_value": ("risk", "value", "CAST({0} AS FLOAT)"),
    "calibration": ("risk", "calibration", "{0}"),
    "completeness_score": ("completeness", "summary.completenessScore", "CAST({0} AS FLOAT)"),
    "completeness_tier": ("completeness", "summary.completenessTier", "{0}"),
}
REPORTS = "FROM reports r JOIN customers c ON c.number = r.customer_number WHERE r.customer_number = s.customer_number"
DECISION = (
    "FROM evaluations e WHERE e.customer_number = s.customer_number AND NOT what_if AND shadow_of IS NULL "
    "ORDER BY number DESC LIMIT 1"
)
OVERRIDE = (
    "SELECT o.outcome FROM decision_overrides o WHERE o.evaluation_id = e.evaluation_id ORDER BY o.number DESC LIMIT 1"
)
OTHERS = {
    "report_status": f"CASE WHEN (SELECT count(r.data_version) {REPORTS}) = 0 THEN 'pending' "
    f"WHEN (SELECT count(*) {REPORTS} AND r.data_version = c.data_version AND NOT failed) = 3 THEN 'ready' "
    "ELSE 'stale' END",
    "data_through": f"(SELECT max(data_through) {REPORTS})",
    "evaluation_number": f"(SELECT number {DECISION})",
    "outcome": f"(SELECT coalesce(({OVERRIDE}), e.outcome) {DECISION})",
    "open_alerts": "(SELECT count(*) FROM rule_states a WHERE a.customer_number = s.customer_number)",
}


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        op.execute(PG_TRGM)
    [by_time] = (index for index in evaluations.indexes if index.name == "ix_evaluations_client_id_at")
    by_time.create(connection)
    customer_summaries.create(connection)
    _fill(connection)


def _fill(connection: Connection) -> None:
    columns = (customers.c.number, customers.c.client_id, customers.c.name, customers.c.abn, customers.c.reference)
    of_slice = select(*columns).where(customers.c.number > bindparam("last")).order_by(customers.c.number).limit(SLICE)
    last = 0
    while some := connection.execute(of_slice, {"last": last}).all():
        connection.execute(insert(customer_summaries), [_row(*each) for each in some])
        last = some[-1].number
    member = MEMBER[connection.dialect.name]
    of_reports = {
        name: f"({OF_REPORT.format(written.format(member.format(path)), kind)})"
        for name, (kind, path, written) in MEMBERS.items()
    }
    changes = ", ".join(f"{name} = {value}" for name, value in {**of_reports, **OTHERS}.items())
    connection.execute(text(f"UPDATE customer_summaries AS s SET {changes}".replace(":", r"\:")))


def _row(number: int, client_id: object, name: str | None, abn: str, reference: str | None) -> dict[str, object]:
    searched = "\n".join(each for each in (name, abn, reference) if each is not None).casefold()
    return {
        "customer_number": number,
        "client_id": client_id,
        "name_key": None if name is None else name.casefold(),
        "search_text": searched,
        "report_status": "pending",
        "open_alerts": 0,
    }
