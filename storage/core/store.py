"""The storage that a process uses: settings, database, lake and vault, opened once."""

from dataclasses import dataclass
from typing import Self

from storage.core import vault_keys
from storage.core.database import Database
from storage.core.lake import Lake
from storage.core.settings import Settings
from storage.core.vault import Vault


@dataclass(frozen=True)
class Store:
    settings: Settings
    db: Database
    lake: Lake
    vault: Vault

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Prepare the home and open everything. If PostgreSQL is down, the first use raises, not this.

        Raises:
            SettingsError: home, lake or master key can't be used.
        """
        settings.prepared()
        db = Database(settings.database)
        try:
            if db.is_sqlite:
                db.migrate()
            vault_keys.check(db, settings)
        except BaseException:
            db.close()
            raise
        return cls(settings, db, Lake(settings.lake), vault_keys.open_vault(db, settings))

    def close(self) -> None:
        self.db.close()
