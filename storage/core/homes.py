"""Homes: the folders that use one database. Each holds logs and copies of its own, which no other home can search.

A home is recorded when one of its processes first uses the database, unless the database is in it. It stays recorded
until an operator says that its folder is gone.
"""

import socket
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import uuid4

from sqlalchemy import delete, select

from storage.core import durable
from storage.core.database import Database, Reading, Writing, insert_into
from storage.core.models import homes
from storage.core.settings import Settings

IDENTITY_CHARACTERS: Final = 16
RECORD_AGAIN_AFTER: Final = timedelta(days=1)


@dataclass(frozen=True)
class Home:
    """A row of the table `homes`."""

    identity: str
    machine: str  # its host name when the home was last recorded
    opened_at: datetime  # when one of its processes last began to use the database, to the day


def identity(settings: Settings) -> str:
    """Return what tells this home from others on the same database, even on the same machine."""
    file = settings.home / "identity"
    if not file.exists():
        with suppress(FileExistsError):  # another process was first
            durable.create(file, uuid4().hex[:IDENTITY_CHARACTERS].encode())
    return file.read_text()


def record(settings: Settings, db: Database) -> None:
    """Record that this home uses the database, unless it was recorded within a day, or the database is in it."""
    if not settings.database_url:
        return
    own = Home(identity(settings), socket.gethostname(), datetime.now(UTC))
    with db.reading() as r:
        recorded = r.execute(select(homes).where(homes.c.identity == own.identity)).one_or_none()
    if recorded and recorded.machine == own.machine and own.opened_at - recorded.opened_at < RECORD_AGAIN_AFTER:
        return
    values = {"machine": own.machine, "opened_at": own.opened_at}
    with db.writing() as w:
        statement = insert_into(w, homes).values(identity=own.identity, **values)
        w.execute(statement.on_conflict_do_update(index_elements=[homes.c.identity], set_=values))


def list_others(r: Reading, settings: Settings) -> list[Home]:
    """Return the other homes that are recorded, by machine."""
    others = select(homes).where(homes.c.identity != identity(settings))
    return [Home(**row._asdict()) for row in r.execute(others.order_by(homes.c.machine, homes.c.identity))]


def forget(w: Writing, known: str) -> bool:
    """Delete the record of a home, by its identity. Return False if there is none."""
    return w.execute(delete(homes).where(homes.c.identity == known)).rowcount == 1
