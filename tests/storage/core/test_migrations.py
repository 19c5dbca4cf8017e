"""Tables equal the models' declarations, and tables of another version are refused."""

from contextlib import closing

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from pipelines.vocabulary.errors import Unavailable
from storage.core import migrations, upgrading
from storage.core.database import Database, Reading
from storage.core.models import (
    approvals,
    attachments,
    client_day_counts,
    customer_day_counts,
    customer_summaries,
    file_intents,
    metadata,
    notes,
    own_rule_uses,
    own_rules,
    sandbox_customers,
    sessions,
    sign_in_links,
    users,
    work_actions,
    work_items,
)
from storage.core.store import Store

# What migrations since the baseline have added; tables in an order in which they can be dropped.
NEW_TABLES = (
    *(client_day_counts, customer_day_counts, own_rule_uses, own_rules),
    *(sessions, sign_in_links, users),
    customer_summaries,
    approvals,
    *(attachments, notes, work_actions, work_items),
    sandbox_customers,
    file_intents,
)
NEW_COLUMNS = ("jobs.is_overtaken", "clients.four_eyes")
NEW_INDEXES = (
    "ix_evaluations_client_id_at",
    *("ix_audit_client_id_at", "ix_audit_client_id_who", "ix_audit_client_id_action"),
    "ix_attributes_customer_number_set_at",
    "ix_corrections_customer_number_made_at",
    "ix_evaluations_customer_number_at",
    "ix_jobs_customer_number_completed_at",
    "ix_jobs_customer_number_created_at",
    "ix_rule_matches_customer_number_at",
)


def differences(r: Reading) -> list[object]:
    """Return what differs between the tables and the models, apart from what Alembic can't compare: the tables in which
    SQLite indexes text, and indexes with an order of nulls, which `test_tables` compares.
    """
    options = {"include_object": lambda _, name, *__: name is None or "customer_summaries_" not in name}
    return list(compare_metadata(MigrationContext.configure(r, opts=options), metadata))


def test_migrated_database_equals_the_models(store: Store) -> None:
    with store.db.reading() as r:
        assert differences(r) == []


def test_a_database_of_the_baseline_becomes_equal_to_the_models(store: Store) -> None:
    with store.db.writing() as w:
        for table in NEW_TABLES:
            table.drop(w)
        for name in NEW_INDEXES:
            w.execute(text(f"DROP INDEX {name}"))
        for table_name, column in (name.split(".") for name in NEW_COLUMNS):
            w.execute(text(f"ALTER TABLE {table_name} DROP COLUMN {column}"))
        w.execute(text("UPDATE alembic_version SET version_num = 'tables_3'"))
    with closing(Store.open(store.settings)) as again, again.db.reading() as r:
        assert differences(r) == []
        assert again.db.revisions()[0] == migrations.NEWEST


def test_newest_revision_is_the_head_of_the_migrations() -> None:
    assert ScriptDirectory.from_config(upgrading.configuration()).get_current_head() == migrations.NEWEST


@pytest.mark.parametrize("found", ["0001", "0011", "tables_9999"])
def test_tables_of_another_version_are_refused_and_never_read(store: Store, found: str) -> None:
    with store.db.writing() as w:
        w.execute(text("UPDATE alembic_version SET version_num = :found"), {"found": found})
        w.execute(text("ALTER TABLE vault_keys RENAME TO others"))  # a process that read on would find it missing
    refused = pytest.raises(Unavailable, match=r"another version of Tidemark, before 0.2 or newer")
    with refused, closing(Store.open(store.settings)) as again:
        again.db.migrate()
    with refused, closing(Database(store.settings.database)) as db, db.reading():
        raise AssertionError("nobody may read them")
    assert store.db.revisions()[0] == found
