"""The rules of stored rulesets have `repeatAfterDays` in place of `rearmAfterDays`, and documents a new SHA-256."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import sqlalchemy as sa
from alembic import op

from storage.core.models import ApprovalKind, approvals, monitoring_ruleset_versions, portfolio_jobs

revision = "tables_15"
down_revision = "tables_14"
branch_labels = None
depends_on = None

OLD, NEW = "rearmAfterDays", "repeatAfterDays"


def upgrade() -> None:
    _rename_in_versions(op.get_bind())
    _rename_in_approvals(op.get_bind())
    _rename_in_simulations(op.get_bind())


def _rename_in_versions(connection: sa.Connection) -> None:
    table = monitoring_ruleset_versions
    key = (table.c.ruleset_id, table.c.version)
    found = connection.execute(sa.select(*key, table.c.document).where(table.c.document.contains(OLD))).all()
    with _changeable(connection, table):
        for ruleset_id, version, document in found:
            text = _canonical(_renamed(json.loads(document)))
            mine = sa.update(table).where(table.c.ruleset_id == ruleset_id, table.c.version == version)
            connection.execute(mine.values(document=text, sha256=sha256(text.encode()).digest()))


def _rename_in_approvals(connection: sa.Connection) -> None:
    number, request = approvals.c.number, approvals.c.request
    found = connection.execute(sa.select(number, request).where(approvals.c.kind == ApprovalKind.ACTIVATE)).all()
    with _changeable(connection, approvals):
        for mine, sent in found:
            changed = {**sent, "document": _renamed(sent["document"])}
            connection.execute(sa.update(approvals).where(number == mine).values(request=changed))


def _rename_in_simulations(connection: sa.Connection) -> None:
    job_id, request = portfolio_jobs.c.job_id, portfolio_jobs.c.request
    found = connection.execute(sa.select(job_id, request).where(request.contains(OLD))).all()
    for mine, sent in found:
        parsed = json.loads(sent)
        if parsed.get("document"):  # a backtest has none
            parsed["document"] = _canonical(_renamed(json.loads(parsed["document"])))
            connection.execute(sa.update(portfolio_jobs).where(job_id == mine).values(request=json.dumps(parsed)))


def _renamed(document: dict[str, Any]) -> dict[str, Any]:
    rules = [{NEW if name == OLD else name: value for name, value in rule.items()} for rule in document["rules"]]
    return {**document, "rules": rules}


def _canonical(document: dict[str, Any]) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@contextmanager
def _changeable(connection: sa.Connection, table: sa.Table) -> Iterator[None]:
    """Switch off the trigger that refuses changes of the table's rows. SQLite can only drop it and create it again."""
    trigger = f"{table.name}_rows_are_never_changed"
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"ALTER TABLE {table.name} DISABLE TRIGGER {trigger}")
        yield
        connection.exec_driver_sql(f"ALTER TABLE {table.name} ENABLE TRIGGER {trigger}")
        return
    statement = sa.text("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = :name")
    create = connection.execute(statement, {"name": trigger}).scalar_one()
    connection.exec_driver_sql(f"DROP TRIGGER {trigger}")
    yield
    connection.exec_driver_sql(create)
