"""Alembic's entry point. It runs inside the transaction that `Database.migrate` opened."""

from alembic import context

from storage.core.models import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, user_module_prefix="column_types.")
context.run_migrations()
