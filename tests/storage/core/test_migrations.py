"""The migrations make exactly the tables that the models declare, and keep what is there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from sqlalchemy.exc import IntegrityError

from storage.core import migrations, upgrading
from storage.core.database import Database
from storage.core.models import metadata
from storage.core.store import Store
from tests.conftest import DATABASES, new_database


def test_a_migrated_database_is_what_the_models_say(store: Store) -> None:
    with store.db.reading() as r:
        assert compare_metadata(MigrationContext.configure(r), metadata) == []


def test_newest_revision_is_the_head_of_the_migrations() -> None:
    assert ScriptDirectory.from_config(upgrading.configuration()).get_current_head() == migrations.NEWEST


BEFORE_0007 = """
INSERT INTO clients VALUES (:client, 'Lender', true, '2026-01-01', 0);
INSERT INTO customers (number, customer_id, client_id, abn, abn_checksum_valid, created_at, data_version,
  location_version, enriched_rows, enrichment_version, knowledge_version)
  VALUES (1, :customer, :client, '51824753556', true, '2026-01-01', 0, 0, 0, 0, 0);
INSERT INTO events VALUES (:event, :client, 1, :job, 'job.completed', :body, '2026-01-01');
INSERT INTO deliveries (number, delivery_id, client_id, event_id, subscription_id, status, created_at, due_at)
  VALUES (1, :delivery, :client, :event, :subscription, 'failed', '2026-01-01', '2026-01-01');
INSERT INTO attempts (attempt_id, delivery_id, started_at, duration_ms, status_code)
  VALUES (:attempt, :delivery, '2026-01-01', 5, 500)
"""


@pytest.mark.parametrize("kind", DATABASES)
def test_deliveries_and_their_events_outlast_the_migration_to_retries(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    names = ("client", "customer", "event", "job", "delivery", "subscription", "attempt")
    ids = {name: UUID(int=number) for number, name in enumerate(names, 1)}
    with at_revision(request, tmp_path, kind, "0006") as db:
        values = {name: each.hex if db.is_sqlite else each for name, each in ids.items()} | {"body": b"\xe2\x98\xba"}
        with db.engine.begin() as connection:
            for statement in BEFORE_0007.split(";"):
                named = {name: value for name, value in values.items() if f":{name}" in statement}
                connection.execute(text(statement), named)
        db.migrate()
        with db.engine.begin() as connection:
            told = connection.execute(text("SELECT customer_number, body FROM events")).one()
            assert (told.customer_number, bytes(told.body)) == (1, b"\xe2\x98\xba")
            kept = connection.execute(text("SELECT status, attempt_count, is_test FROM deliveries")).one()
            assert tuple(kept) == ("failed", 0, False)
            whose = connection.execute(text("SELECT subscription_id FROM attempts")).scalar_one()
            assert whose == values["subscription"]
            columns = {each["name"]: each["nullable"] for each in inspect(connection).get_columns("events")}
            assert {name for name, nullable in columns.items() if nullable} == {"customer_number", "job_id"}
            if db.is_sqlite:
                assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
                assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
        twice = "INSERT INTO events SELECT :other, client_id, 1, job_id, event_type, body, created_at FROM events"
        other = {"other": UUID(int=99).hex if db.is_sqlite else UUID(int=99)}
        with pytest.raises(IntegrityError), db.engine.begin() as connection:
            connection.execute(text(twice), other)
        with db.engine.begin() as connection:
            connection.execute(text(twice.replace(" 1, job_id", " NULL, NULL")), other)


@contextmanager
def at_revision(request: pytest.FixtureRequest, folder: Path, kind: str, revision: str) -> Iterator[Database]:
    """A database as an older version left it."""
    url = new_database(request, kind) or f"sqlite:///{folder / 'old.db'}"
    db = Database(url)
    if not db.is_sqlite:
        with db.engine.begin() as connection:
            connection.exec_driver_sql("DROP SCHEMA public CASCADE")
            connection.exec_driver_sql("CREATE SCHEMA public")
    config = upgrading.configuration()
    with db._transaction() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    yield db
    db.close()
