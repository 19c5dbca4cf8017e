"""A damaged database file, or one that was not closed, is noticed."""

import logging
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from assets.service import up
from storage.core.store import Store
from storage.operations.sqlite_check import QuickCheck, count_lost_commits, database_file, quick_check, was_left_open
from tests.conftest import migrated_file
from tests.storage.values import on_sqlite

PAGE_BYTES = 4096
FLIPPED_PAGES = (4, 6, 9, 12)


def with_flipped_pages(content: bytes) -> bytes:
    """Flip the first bytes of some pages, which hold the page's type."""
    flipped = bytearray(content)
    for page in FLIPPED_PAGES:
        for at in range(page * PAGE_BYTES, page * PAGE_BYTES + 8):
            flipped[at] ^= 0xFF
    return bytes(flipped)


def test_an_intact_file_has_no_damage(tmp_path: Path) -> None:
    (tmp_path / "whole.db").write_bytes(migrated_file())
    assert quick_check(tmp_path / "whole.db", 30) == QuickCheck(complete=True)


def test_flipped_pages_are_found(tmp_path: Path) -> None:
    (tmp_path / "flipped.db").write_bytes(with_flipped_pages(migrated_file()))
    assert quick_check(tmp_path / "flipped.db", 30).damage


def test_a_file_that_is_not_a_database_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "other.db").write_bytes(b"no database" * 1000)
    assert quick_check(tmp_path / "other.db", 30).damage


@on_sqlite
def test_a_database_that_was_not_closed_is_recognised_by_its_log(store: Store, tmp_path: Path) -> None:
    with store.db.writing() as w:
        w.exec_driver_sql("CREATE TABLE one (number INTEGER)")
    file = database_file(store.settings)
    assert file is not None
    killed = shutil.copytree(file.parent, tmp_path / "killed") / file.name
    store.close()
    assert (was_left_open(killed), was_left_open(file)) == (True, False)


def leave_open(folder: Path, commits: int) -> Path:
    """Write a database with that many transactions in its log, as it is after its process was killed."""
    folder.mkdir(exist_ok=True)
    with closing(sqlite3.connect(folder / "open.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE one (text TEXT)")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for number in range(commits):
            connection.execute("INSERT INTO one VALUES (?)", (f"row {number}",))
        for end in ("", "-wal"):
            shutil.copy(folder / f"open.db{end}", folder / f"killed.db{end}")
    return folder / "killed.db"


def count_rows(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        return int(connection.execute("SELECT count(*) FROM one").fetchone()[0])


FRAME_BYTES = PAGE_BYTES + 24
# For each damaged place in a log of ten transactions: the offset of the flipped bit, how many transactions SQLite
# drops, and how many of these `count_lost_commits` counts.
IN_THE_LOG = {
    "page of the third": (32 + 2 * FRAME_BYTES + 2000, 8, 7),
    "salt of the third": (32 + 2 * FRAME_BYTES + 9, 8, 6),
    "salt of the log": (17, 10, 9),
    "version of the log": (5, 10, 9),
    "last page but one": (32 + 8 * FRAME_BYTES + 2000, 2, 1),
}


def test_commits_behind_a_damaged_page_of_the_log_are_missed(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for place, (at, dropped, found) in IN_THE_LOG.items():
        with subtests.test(place):
            database = leave_open(tmp_path / place, 10)
            flip(tmp_path / place / "killed.db-wal", at)
            assert count_lost_commits(database) == found
            assert quick_check(database, 30) == QuickCheck(complete=True)  # it doesn't see the log
            assert count_rows(database) == 10 - dropped


def flip(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)


def test_an_intact_or_unfinished_log_has_lost_nothing(tmp_path: Path) -> None:
    database, log = leave_open(tmp_path, 10), tmp_path / "killed.db-wal"
    assert count_lost_commits(database) == 0
    log.write_bytes(log.read_bytes()[:-100])
    assert count_lost_commits(database) == 0
    log.write_bytes(log.read_bytes()[:20])
    assert count_lost_commits(database) == 0


def test_frames_of_an_earlier_round_of_the_log_are_not_lost(tmp_path: Path) -> None:
    leave_open(tmp_path, 10)
    with closing(sqlite3.connect(tmp_path / "killed.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        connection.execute("INSERT INTO one VALUES ('first of the next round')")
        for end in ("", "-wal"):
            shutil.copy(tmp_path / f"killed.db{end}", tmp_path / f"again.db{end}")
    assert (tmp_path / "again.db-wal").stat().st_size > 5 * FRAME_BYTES
    assert count_lost_commits(tmp_path / "again.db") == 0


def test_a_damaged_log_is_kept_and_reported_before_sqlite_overwrites_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = leave_open(tmp_path, 10)
    flip(tmp_path / "killed.db-wal", 32 + 2 * FRAME_BYTES + 2000)
    damaged = (tmp_path / "killed.db-wal").read_bytes()
    up.check_log(database)
    assert (tmp_path / "killed.db-wal-damaged").read_bytes() == damaged
    assert "at least 7 commits" in caplog.text


def test_after_an_unclean_stop_damage_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "flipped.db").write_bytes(with_flipped_pages(migrated_file()))
    with caplog.at_level(logging.INFO, logger="assets.service.up"):
        up.check_database(tmp_path / "flipped.db")
    assert [(record.levelno, "is damaged" in record.getMessage()) for record in caplog.records] == [
        (logging.ERROR, True)
    ]
