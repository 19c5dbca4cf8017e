"""Create the tables of a new database, and migrate an older one.

Separate from `database`, so that Alembic is imported only if the database is not up to date.
"""

from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy.engine import Connection

from pipelines.vocabulary.errors import Unavailable
from storage.core import migrations
from storage.core.models import metadata

UNKNOWN_TABLES = (
    "The database was created by another version of Tidemark, older or newer than this one: run that version,"
    " restore a backup, or start with a new home."
)


def create(connection: Connection) -> None:
    """Create the tables as the models declare them, inside the connection's transaction.

    No migration is run, as https://alembic.sqlalchemy.org/en/latest/cookbook.html recommends for new databases.
    """
    metadata.create_all(connection)
    command.stamp(_configuration_for(connection), "head")


def upgrade(connection: Connection) -> None:
    """Migrate the tables to the newest revision, inside the connection's transaction.

    Raises:
        Unavailable: this program doesn't know the tables' revision.
    """
    try:
        command.upgrade(_configuration_for(connection), "head")
    except CommandError as error:
        raise Unavailable("Service.Unavailable", UNKNOWN_TABLES) from error


def configuration() -> Config:
    """Return Alembic's configuration, without a connection."""
    config = Config()
    config.set_main_option("script_location", str(migrations.FOLDER))
    return config


def _configuration_for(connection: Connection) -> Config:
    config = configuration()
    config.attributes["connection"] = connection
    return config
