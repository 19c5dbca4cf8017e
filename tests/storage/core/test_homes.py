"""A database knows the homes that use it."""

import shutil
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import select, update

from storage.core import homes, models
from storage.core.database import Database
from storage.core.settings import Settings, SettingsError
from storage.core.store import Store
from tests.storage.values import on_postgresql, on_sqlite

LONG_AGO = datetime.fromisoformat("2026-01-01T00:00+00:00")


def recorded(store: Store) -> dict[str, homes.Home]:
    with store.db.reading() as r:
        return {row.identity: homes.Home(**row._asdict()) for row in r.execute(select(models.homes))}


@pytest.fixture
def another(store: Store, tmp_path: Path) -> Settings:
    """A home with the same database and master key."""
    settings = store.settings.model_copy(update={"home": tmp_path / "another"})
    settings.home.mkdir()
    shutil.copy(store.settings.key_file, settings.key_file)
    return settings


def use(settings: Settings) -> None:
    with closing(Store.open(settings)) as opened, opened.db.reading():
        pass


@on_postgresql
def test_a_home_is_recorded_when_it_first_uses_the_database(store: Store, another: Settings) -> None:
    use(another)
    assert {*recorded(store)} == {homes.identity(store.settings), homes.identity(another)}
    with store.db.reading() as r:
        assert [home.identity for home in homes.list_others(r, store.settings)] == [homes.identity(another)]


@on_postgresql
def test_a_home_without_the_master_key_is_not_recorded(store: Store, another: Settings) -> None:
    use(another)
    another.key_file.unlink()
    with store.db.writing() as w:
        assert homes.forget(w, homes.identity(another))
    with pytest.raises(SettingsError):
        use(another)
    assert {*recorded(store)} == {homes.identity(store.settings)}


@on_postgresql
def test_the_day_of_the_last_opening_is_kept(store: Store, another: Settings) -> None:
    own = homes.identity(another)
    use(another)
    first = recorded(store)[own]
    use(another)
    assert recorded(store)[own] == first, "another opening on the same day writes nothing"
    for changes in ({"opened_at": LONG_AGO}, {"machine": "elsewhere"}):
        with store.db.writing() as w:
            w.execute(update(models.homes).where(models.homes.c.identity == own).values(changes))
        use(another)
        again = recorded(store)[own]
        assert (again.machine, again.opened_at >= first.opened_at) == (first.machine, True)


@on_sqlite
def test_a_home_with_a_database_of_its_own_is_not_recorded(store: Store) -> None:
    assert recorded(store) == {}


@on_postgresql
def test_a_database_that_was_away_knows_the_home_afterwards(store: Store) -> None:
    attempts = list[Database]()

    def is_away_at_first(db: Database) -> None:
        attempts.append(db)
        if len(attempts) == 1:
            raise ConnectionError
        with db.reading():  # which must not call this again
            pass

    with closing(Database(store.settings.database)) as db:
        db.before_next_use = is_away_at_first
        with pytest.raises(ConnectionError), db.reading():
            pass
        for _ in range(2):
            with db.writing():
                pass
        assert attempts == [db, db]
