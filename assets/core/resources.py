"""The resource of all assets: the store, opened once per process and shared by all of its runs."""

from functools import cache

from dagster import InitResourceContext, ResourceDefinition

from storage.core.settings import Settings
from storage.core.store import Store


@cache
def process_store() -> Store:
    """Return this process's store. Warm workers use it for one run after another."""
    return Store.open(Settings())


def _store(_context: InitResourceContext) -> Store:
    return process_store()


store_resource = ResourceDefinition(_store, description="Settings, SQL database and lake of this Tidemark.")
