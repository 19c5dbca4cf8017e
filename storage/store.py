"""What a process needs to remember things: settings, database, lake and vault, opened once."""

from dataclasses import dataclass
from typing import Self

from storage.database import Database
from storage.lake import Lake
from storage.settings import Settings
from storage.vault import Vault


@dataclass(frozen=True)
class Store:
    settings: Settings
    db: Database
    lake: Lake
    vault: Vault

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Prepare the home and open everything. A PostgreSQL that is down for now is found out by whoever needs it."""
        settings.prepared()
        db = Database(settings.database)
        if db.is_sqlite:
            db.migrate()
        return cls(settings, db, Lake(settings.lake), Vault(settings.master_key_bytes))

    def close(self) -> None:
        self.db.close()
