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
from storage.core.models import metadata
from storage.core.store import Store


def differences(r: Reading) -> list[object]:
    """Return what differs between the tables and the models, apart from what Alembic can't compare: the tables in which
    SQLite indexes text, and indexes with an order of nulls, which `test_tables` compares.
    """
    options = {"include_object": lambda _, name, *__: name is None or "customer_summaries_" not in name}
    return list(compare_metadata(MigrationContext.configure(r, opts=options), metadata))


def test_migrated_database_equals_the_models(store: Store) -> None:
    with store.db.reading() as r:
        assert differences(r) == []


def test_newest_revision_is_the_head_of_the_migrations() -> None:
    assert ScriptDirectory.from_config(upgrading.configuration()).get_current_head() == migrations.NEWEST


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
