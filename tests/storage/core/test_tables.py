"""Triggers that refuse changes, and conditions of partial indexes, on SQLite and PostgreSQL.

`test_migrations` compares the tables with the models, but neither triggers nor the conditions of indexes.
"""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, Final
from uuid import UUID

import pytest
from sqlalchemy import Table, TypeDecorator, insert, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeEngine

from storage.core.models import metadata
from storage.core.postgres import Lock
from storage.core.store import Store

REFUSED: Final = (
    "UPDATE audit SET who = 'nobody'",
    "DELETE FROM audit",
    "UPDATE policy_versions SET document = '{}'",
    "UPDATE policy_versions SET fingerprint = 'other'",
    "UPDATE policy_versions SET acknowledged = '[]'",
    "UPDATE policy_versions SET created_by = 'nobody'",
    "DELETE FROM policy_versions",
    "UPDATE evaluations SET outcome = 'proceed'",
    "UPDATE decision_overrides SET reason = 'none'",
    "UPDATE monitoring_ruleset_versions SET document = '{}'",
    "DELETE FROM monitoring_ruleset_versions",
    "UPDATE rule_matches SET cause = 'time'",
    "UPDATE approvals SET request = '{}'",
    "UPDATE approvals SET requested_by = 'nobody'",
    "DELETE FROM approvals",
    "UPDATE work_actions SET reason = 'none'",
)
REFUSED_ON_POSTGRESQL: Final = ("TRUNCATE audit", "TRUNCATE monitoring_ruleset_versions CASCADE")
ALLOWED: Final = (
    "UPDATE policy_versions SET state = 'retired', retired_at = created_at",
    "UPDATE approvals SET status = 'declined', decided_by = 'nobody'",
    "DELETE FROM decision_overrides",
    "DELETE FROM evaluations",
    "DELETE FROM rule_matches",
    "DELETE FROM work_actions",
)
CONDITIONS: Final = {
    "ix_batches_open": "state = 'open'",
    "ix_deliveries_failed": "status = 'failed'",
    "ix_deliveries_failed_of": "status = 'failed'",
    "ix_deliveries_open": "status IN ('due', 'sending', 'retrying')",
    "ix_deliveries_open_tests": "is_test AND status IN ('due', 'sending')",
    "ix_deliveries_retrying": "status = 'retrying'",
    "ix_jobs_customer_live": "status IN ('Queued', 'Running')",
    "ix_jobs_landing_path": "landing_path IS NOT NULL",
    "ix_jobs_pausing": "not_before IS NOT NULL",
    "ix_jobs_queue": "status = 'Queued'",
    "ix_locations_replaced_at": "replaced_at IS NOT NULL",
    "uq_approvals_pending": "status = 'pending'",
    "ix_work_items_assigned": "state <> 'closed'",
    "ix_work_items_client_id_snoozed_until": "snoozed_until IS NOT NULL",
    "ix_work_items_waiting": "state <> 'closed'",
    "uq_attachments_path": "path IS NOT NULL",
    "uq_portfolio_tables_current": "replaced_at IS NULL",
    "uq_jobs_one_live_refresh": "flow = 'ReportRefresh' AND status IN ('Queued', 'Running')",
    "uq_jobs_retracts": "retracts IS NOT NULL AND status <> 'Failed'",
    "uq_policy_versions_published": "state = 'published'",
    "uq_statement_files_path": "path IS NOT NULL",
    "uq_vault_keys_in_use": "retired_at IS NULL",
}
ON_POSTGRESQL = """
SELECT relname, indisunique, pg_get_expr(indpred, indrelid) FROM pg_index
JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = 'public' AND indpred IS NOT NULL
"""
DEFINITIONS = "SELECT indexdef FROM pg_indexes WHERE tablename = 'customer_summaries'"
FACETS = "ix_customer_summaries_facets"  # of an expression, which is not reflected on SQLite
ON_SQLITE = """
SELECT name, sql LIKE 'CREATE UNIQUE%', substr(sql, instr(sql, ' WHERE ') + 7) FROM sqlite_master
WHERE type = 'index' AND instr(sql, ' WHERE ')
"""


def test_database_refuses_to_change_records(store: Store, subtests: pytest.Subtests) -> None:
    fill(store, {"audit", "policy_versions", "evaluations", "decision_overrides"})
    fill(store, {"monitoring_ruleset_versions", "rule_matches", "approvals", "work_actions"})
    for statement in (*REFUSED, *(() if store.db.is_sqlite else REFUSED_ON_POSTGRESQL)):
        with (
            subtests.test(statement),
            pytest.raises(DBAPIError, match=r"never (changed|removed)"),
            store.db.writing() as w,
        ):
            w.execute(text(statement))
    for statement in ALLOWED:
        with subtests.test(statement), store.db.writing() as w:
            assert w.execute(text(statement)).rowcount == 1


def test_indexes_keep_their_conditions(store: Store) -> None:
    with store.db.reading() as r:
        found = r.execute(text(ON_SQLITE if store.db.is_sqlite else ON_POSTGRESQL)).all()
    assert {name: terms(condition) for name, _, condition in found} == {
        name: terms(condition) for name, condition in CONDITIONS.items()
    }
    assert {name for name, is_unique, _ in found if is_unique} == {
        name for name in CONDITIONS if name.startswith("uq_")
    }


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
def test_summaries_are_indexed_in_each_order_that_lists_have(store: Store) -> None:
    """Missing values come first on both databases. Alembic can't compare the order of nulls."""
    table = metadata.tables["customer_summaries"]
    with store.db.reading() as r:
        found = {index["name"]: index["column_names"] for index in inspect(r).get_indexes(table.name)}
        definitions = [] if store.db.is_sqlite else r.execute(text(DEFINITIONS)).scalars().all()
    orders = {index.name: [column.name for column in index.columns] for index in table.indexes if index.name != FACETS}
    assert {name: columns for name, columns in found.items() if name in orders} == orders
    for name in ("name_key", "rating", "risk_value", "completeness_score", "data_through"):
        assert store.db.is_sqlite or any(
            f"{name} NULLS FIRST" in definition.replace(' COLLATE "C"', "") for definition in definitions
        )


def test_lock_numbers_never_change() -> None:
    """Processes of two versions may use one database, so a lock's number must never change its meaning."""
    assert {lock.name: int(lock) for lock in Lock} == {
        "CLAIMING": 7460001,
        "MIGRATION": 7460002,
        "PREPARATION": 7460003,
        "RECEIPT": 7460004,
    }


def terms(condition: str) -> list[str]:
    """Return an SQL condition's columns, values and signs, however the database spells it.

    PostgreSQL stores `status IN ('due')` as `(status)::text = ANY ((ARRAY['due'::character varying])::text[])`.
    """
    plain = re.sub(r"::(text|character varying)(\[\])?", "", condition).replace("= ANY", "IN").replace("ARRAY", "")
    return re.findall(r"'[^']*'|\w+|<>|=", plain)


def fill(store: Store, tables: set[str]) -> None:
    """Put a row into each of these tables, without the rows that it refers to."""
    without_keys = "PRAGMA foreign_keys = OFF" if store.db.is_sqlite else "SET session_replication_role = replica"
    with store.db.engine.connect() as connection:
        connection.connection.cursor().execute(without_keys)  # SQLite ignores it in a transaction
        for name in sorted(tables):
            connection.execute(insert(metadata.tables[name]).values(any_row(metadata.tables[name])))
        connection.commit()
        connection.invalidate()  # nobody gets a connection without foreign keys


def any_row(table: Table) -> Mapping[str, object]:
    values: dict[type, object] = {
        UUID: UUID(int=1),
        int: 1,
        str: "text",
        bytes: b"bytes",
        bool: False,
        date: date(2026, 11, 20),
        datetime: datetime(2026, 11, 20, tzinfo=UTC),
    }
    needed = (column for column in table.columns if not column.nullable)
    return {column.name: values.get(python_type(column.type), []) for column in needed}


def python_type(kind: TypeEngine[Any]) -> type:
    return (kind.impl_instance if isinstance(kind, TypeDecorator) else kind).python_type
