"""Files of the lake are written once and verified when they are read."""

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipelines.vocabulary.errors import Corrupt
from storage.core.lake import Lake


def test_stored_frame_is_read_back(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    frame = pl.DataFrame({"amount": [1, 2, 3]})
    stored = lake.put_frame("transactions/2026-11-20/a.parquet", frame)
    assert_frame_equal(pl.read_parquet(lake.verified_path(stored.path, stored.sha256)), frame)


def test_path_is_written_once(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.put("landing/a", b"first")
    with pytest.raises(FileExistsError):
        lake.put("landing/a", b"second")
    assert (tmp_path / "landing/a").read_bytes() == b"first"


def test_no_draft_is_left_behind(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.put("landing/a", b"content")
    with pytest.raises(FileExistsError):
        lake.put("landing/a", b"content")
    assert [path.name for path in (tmp_path / "landing").iterdir()] == ["a"]


@pytest.mark.parametrize("position", [0, 100, -1])
def test_one_flipped_bit_is_found(tmp_path: Path, position: int) -> None:
    stored = Lake(tmp_path).put("a", bytes(range(256)))
    damaged = bytearray((tmp_path / "a").read_bytes())
    damaged[position] ^= 1
    (tmp_path / "a").write_bytes(damaged)
    with pytest.raises(Corrupt, match="not what was written"):
        Lake(tmp_path).verified_path("a", stored.sha256)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Corrupt, match=r"gone\.parquet"):
        Lake(tmp_path).verified_path("gone.parquet", b"")


def test_limited_number_of_verified_files_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.core.lake.MAX_REMEMBERED", 2)
    lake = Lake(tmp_path)
    files = [lake.put(name, b"right") for name in "abc"]
    for stored in files:
        lake.verified_path(stored.path, stored.sha256)
        (tmp_path / stored.path).write_bytes(b"wrong")
    for stored in files[1:]:
        lake.verified_path(stored.path, stored.sha256)
    with pytest.raises(Corrupt):
        lake.verified_path("a", files[0].sha256)
