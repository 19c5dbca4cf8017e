"""The migrations make exactly the tables that the models declare."""

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from storage.models import metadata
from storage.store import Store


def test_a_migrated_database_is_what_the_models_say(store: Store) -> None:
    with store.db.reading() as r:
        assert compare_metadata(MigrationContext.configure(r), metadata) == []
