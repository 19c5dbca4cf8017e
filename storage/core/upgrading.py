"""Make a new database's tables, and run the migrations of an older one.

Apart from `database`, so that only a database that is not up to date imports Alembic.
"""

from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy.engine import Connection

from pipelines.vocabulary.errors import Unavailable
from storage.core import migrations
from storage.core.models import metadata

UNKNOWN_TABLES = (
    "The database's tables are of another version of Tidemark, before 0.2 or newer than this one: run that version,"
    " restore a backup, or begin with a new home."
)


def create(connection: Connection) -> None:
    """Make the tables as the models declare them, inside the connection's transaction.

    As https://alembic.sqlalchemy.org/en/latest/cookbook.html describes for new databases: no migration is run.
    """
    metadata.create_all(connection)
    command.stamp(_configuration(connection), "head")


def upgrade(connection: Connection) -> None:
    """Bring the tables to the newest revision, inside the connection's transaction.

    Raises:
        Unavailable: they are of a revision that this program doesn't know.
    """
    try:
        command.upgrade(_configuration(connection), "head")
    except CommandError as error:
        raise Unavailable("Service.Unavailable", UNKNOWN_TABLES) from error


def configuration() -> Config:
    config = Config()
    config.set_main_option("script_location", str(migrations.FOLDER))
    return config


def _configuration(connection: Connection) -> Config:
    config = configuration()
    config.attributes["connection"] = connection
    return config
