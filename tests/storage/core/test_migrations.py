"""Tables equal the models' declarations, and tables of another version are refused."""

import warnings
from contextlib import closing
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Column, MetaData, String, Table, Uuid, text

from pipelines.vocabulary.errors import Unavailable
from storage.core import leases, migrations, upgrading
from storage.core.column_types import UtcDateTime
from storage.core.database import Database, Reading, Writing
from storage.core.models import customer_summaries, metadata
from storage.core.store import Store


def differences(r: Reading) -> list[object]:
    """Return what differs between the tables and the models, apart from what Alembic can't compare: the tables in which
    SQLite indexes text, and indexes with an order of nulls or of an expression, which `test_tables` compares.
    """
    options = {"include_object": lambda _, name, *__: name is None or "customer_summaries_" not in name}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* expression-based index")
        return list(compare_metadata(MigrationContext.configure(r, opts=options), metadata))


def test_migrated_database_equals_the_models(store: Store) -> None:
    with store.db.reading() as r:
        assert differences(r) == []


def test_newest_revision_is_the_head_of_the_migrations() -> None:
    assert ScriptDirectory.from_config(upgrading.configuration()).get_current_head() == migrations.NEWEST


ON_SQLITE = "SELECT name, sql FROM sqlite_master WHERE tbl_name = 'customer_summaries' AND type = 'index'"
ON_POSTGRESQL = "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'customer_summaries'"
INDEXED_IN_17 = (
    *("name_key", "rating", "risk_value", "completeness_score", "data_through", "open_alerts"),
    *("report_status", "outcome", "customer_number"),
)


def indexes_of_summaries(r: Reading) -> dict[str, str]:
    found = r.execute(text(ON_SQLITE if r.dialect.name == "sqlite" else ON_POSTGRESQL))
    return {name: " ".join(sql.split()) for name, sql in found if sql is not None}


def go_back_to_16(w: Writing) -> None:
    """Make the tables those of `tables_16`, with one row in `leases`. Indexes have only the names that they had."""
    for index in customer_summaries.indexes:
        index.drop(w)
    for column in INDEXED_IN_17:
        w.execute(text(f"CREATE INDEX ix_customer_summaries_{column} ON customer_summaries (client_id)"))
    for table in ("customers", "jobs"):
        w.execute(text(f"ALTER TABLE {table} DROP COLUMN created_by"))
    for table in ("leases", "homes"):
        w.execute(text(f"DROP TABLE {table}"))
    names = Column("name", String(32), primary_key=True)
    of_16 = Table(
        "leases",
        MetaData(),
        names,
        Column("holder", Uuid, nullable=False),
        Column("expires_at", UtcDateTime, nullable=False),
    )
    of_16.create(w)
    w.execute(of_16.insert().values(name=leases.PLATFORM, holder=uuid4(), expires_at=datetime(2100, 1, 1, tzinfo=UTC)))
    w.execute(text("UPDATE alembic_version SET version_num = 'tables_16'"))


def test_older_tables_are_upgraded_and_retain_their_rows(store: Store) -> None:
    with store.db.writing() as w:
        declared = indexes_of_summaries(w)
        go_back_to_16(w)
    with closing(Database(store.settings.database)) as db, db.writing() as w:
        assert differences(w) == []
        assert indexes_of_summaries(w) == declared
        assert leases.revoke(w, leases.PLATFORM)
        longest = "worker/fleet/" + "h" * 64 + "/4194304-abcd"
        assert leases.hold(w, longest, uuid4(), 10, leases.clock(store.db))


@pytest.mark.parametrize("found", ["0001", "0011", "tables_3", "tables_15", "tables_9999"])
def test_tables_of_another_version_are_refused_and_never_read(store: Store, found: str) -> None:
    with store.db.writing() as w:
        w.execute(text("UPDATE alembic_version SET version_num = :found"), {"found": found})
        w.execute(text("ALTER TABLE vault_keys RENAME TO others"))  # a process that read on would find it missing
    refused = pytest.raises(Unavailable, match=r"another version of Tidemark, older or newer")
    with refused, closing(Store.open(store.settings)) as again:
        again.db.migrate()
    with refused, closing(Database(store.settings.database)) as db, db.reading():
        raise AssertionError("nobody may read them")
    assert store.db.revisions()[0] == found
