"""A damaged database file, or one that was not closed, is noticed."""

import logging
import shutil
from pathlib import Path

import pytest

from assets.service import up
from storage.core.store import Store
from storage.operations.sqlite_check import Checked, database_file, quick_check, was_left_open
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
    assert quick_check(tmp_path / "whole.db", 30) == Checked(complete=True)


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


def test_after_an_unclean_stop_damage_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "flipped.db").write_bytes(with_flipped_pages(migrated_file()))
    with caplog.at_level(logging.INFO, logger="assets.service.up"):
        up.check(tmp_path / "flipped.db")
    assert [(record.levelno, "is damaged" in record.getMessage()) for record in caplog.records] == [
        (logging.ERROR, True)
    ]
