"""The storage that a process uses: settings, database, lake and vault, opened once."""

from dataclasses import dataclass
from functools import partial
from typing import Self

from storage.core import homes, vault_keys
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
        settings.prepare()
        db = Database(settings.database)
        try:
            if db.is_sqlite:
                db.migrate()
            vault_keys.check_master_key(db, settings)
        except BaseException:
            db.close()
            raise
        db.before_next_use = partial(homes.record, settings)
        return cls(settings, db, open_lake(settings, db), vault_keys.open_vault(db, settings))

    def close(self) -> None:
        self.db.close()


def open_lake(settings: Settings, db: Database) -> Lake:
    """Return the lake that the settings name: a folder, or a bucket. Only a bucket needs the modules imported here."""
    if not settings.has_bucket:
        return Lake(settings.lake)
    from storage.core.bucket import Bucket  # noqa: PLC0415
    from storage.core.bucket_lake import BucketLake  # noqa: PLC0415
    from storage.core.file_cache import FileCache  # noqa: PLC0415

    return BucketLake(Bucket.of(settings), FileCache(settings.lake, settings.lake_cache_bytes), db)
