"""Run the migrations. Apart from `database`, so that only a database that is behind imports Alembic."""

from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy.engine import Connection

from pipelines.vocabulary.errors import Unavailable
from storage.core import migrations

NEWER_TABLES = "The database's tables are of a newer version of Tidemark: run that one, or restore a backup."


def upgrade(connection: Connection) -> None:
    """Bring the tables to the newest revision, inside the connection's transaction.

    Raises:
        Unavailable: they are of a revision that this program doesn't know.
    """
    config = configuration()
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise Unavailable("Service.Unavailable", NEWER_TABLES) from error


def configuration() -> Config:
    config = Config()
    config.set_main_option("script_location", str(migrations.FOLDER))
    return config
