"""What assets are handed: the store, opened once per process however many runs it serves."""

from functools import cache

from dagster import InitResourceContext, ResourceDefinition

from storage.core.settings import Settings
from storage.core.store import Store


@cache
def process_store() -> Store:
    """This process's store. Warm workers keep it from run to run."""
    return Store.open(Settings())


def _store(_context: InitResourceContext) -> Store:
    return process_store()


store_resource = ResourceDefinition(_store, description="Settings, SQL database and lake of this Tidemark.")
