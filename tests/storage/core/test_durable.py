"""A new file's content is synced before it gets its name, and its folder before the call returns."""

import base64
import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.core import durable
from storage.core.lake import Lake
from storage.core.settings import Settings
from storage.core.store import Store


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path]]:
    """Record what is synced and renamed, in order."""
    seen: list[tuple[str, Path]] = []
    fsync, link = os.fsync, os.link

    def record_sync(descriptor: int) -> None:
        seen.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    def record_link(source: Path, target: Path, **options: Any) -> None:
        seen.append(("name", target))
        link(source, target, **options)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "link", record_link)
    return seen


def assert_durable(steps: list[tuple[str, Path]], file: Path) -> None:
    named = steps.index(("name", file))
    before, after = steps[:named], steps[named + 1 :]
    assert [path for step, path in before if step == "sync" and path.name.startswith(("." + file.name, file.name))]
    assert ("sync", file.parent) in after


def test_data_file_is_durable(tmp_path: Path, steps: list[tuple[str, Path]]) -> None:
    Lake(tmp_path).put("landing/2026-11-20/rows.parquet", b"rows")
    assert_durable(steps, tmp_path / "landing/2026-11-20/rows.parquet")
    assert ("sync", tmp_path / "landing") in steps  # the file's folder is new, too


def test_master_key_is_durable(tmp_path: Path, steps: list[tuple[str, Path]]) -> None:
    """Values sealed with it may be durable at once, and would be lost without it."""
    Settings(home=tmp_path / "home").prepare()
    assert_durable(steps, tmp_path / "home" / "master.key")


def test_master_key_made_by_another_process_is_synced(tmp_path: Path, steps: list[tuple[str, Path]]) -> None:
    (tmp_path / "master.key").write_bytes(base64.b64encode(bytes(32)))
    (tmp_path / "master.key").chmod(0o600)
    assert Settings(home=tmp_path).master_key_bytes == bytes(32)
    assert steps == [("sync", tmp_path)]


def test_home_and_lake_and_their_parents_are_durable(tmp_path: Path, steps: list[tuple[str, Path]]) -> None:
    Settings(home=tmp_path / "srv" / "home", lake_url=str(tmp_path / "data" / "lake")).prepare()
    for folder in ("", "srv", "data"):
        assert ("sync", tmp_path / folder) in steps
    assert stat.S_IMODE((tmp_path / "srv" / "home").stat().st_mode) == 0o700


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_umask")
def test_files_are_private_even_in_a_readable_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(0o755)
    store = Store.open(Settings(home=home))
    with store.db.writing() as w:
        w.exec_driver_sql("SELECT 1")
    store.lake.put("landing/2026/some.json", b"rows")
    modes = {str(path.relative_to(home)): oct(stat.S_IMODE(path.stat().st_mode)) for path in home.rglob("*")}
    store.close()
    assert {"lake", "lake/landing", "tidemark.db", "tidemark.db-wal", "tidemark.db-shm"} <= modes.keys()
    assert set(modes.values()) == {"0o700", "0o600"}


def test_folder_made_by_another_process_is_synced(tmp_path: Path, steps: list[tuple[str, Path]]) -> None:
    (tmp_path / "landing").mkdir()
    Lake(tmp_path).put("landing/1", b"rows")
    Lake(tmp_path).put("landing/2", b"rows")
    assert steps.count(("sync", tmp_path)) == 1, "once in a process"


def test_removed_folder_is_created_again(tmp_path: Path) -> None:
    for _ in range(2):
        durable.make_folder(tmp_path / "landing")
        (tmp_path / "landing").rmdir()
    durable.make_folder(tmp_path / "landing")
    assert (tmp_path / "landing").is_dir()


def break_disk(monkeypatch: pytest.MonkeyPatch, is_broken: Callable[[int], bool], failure: int) -> None:
    """Make syncs of such files fail from now on."""
    fsync = os.fsync

    def failing(descriptor: int) -> None:
        if is_broken(os.fstat(descriptor).st_mode):
            raise OSError(failure, os.strerror(failure))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)


@pytest.mark.parametrize("failure", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("is_broken", [stat.S_ISREG, stat.S_ISDIR])
def test_file_that_could_not_be_synced_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_broken: Callable[[int], bool], failure: int
) -> None:
    durable.make_folder(tmp_path / "landing")
    break_disk(monkeypatch, is_broken, failure)
    with pytest.raises(OSError, match=os.strerror(failure)):
        Lake(tmp_path).put("landing/rows.parquet", b"rows")
    assert list((tmp_path / "landing").iterdir()) == []


def test_folder_that_could_not_be_synced_is_synced_by_the_next_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[tuple[str, Path]]
) -> None:
    with monkeypatch.context() as broken:
        break_disk(broken, stat.S_ISDIR, errno.EIO)
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            durable.make_folder(tmp_path / "landing")
    steps.clear()
    durable.make_folder(tmp_path / "landing")
    assert ("sync", tmp_path) in steps


def test_file_on_a_full_disk_does_not_exist(tmp_path: Path) -> None:
    """The disk becomes full while the file is written."""
    code = (
        "import resource, signal, sys; from pathlib import Path; from storage.core import durable;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
        "durable.create(Path(sys.argv[1]), bytes(5000))"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "rows"], capture_output=True, text=True, check=False)
    assert "File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_broken", [stat.S_ISREG, stat.S_ISDIR])
def test_replacement_that_cannot_be_synced_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_broken: Callable[[int], bool]
) -> None:
    durable.replace(tmp_path / "settings", b"old")
    break_disk(monkeypatch, is_broken, errno.EIO)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        durable.replace(tmp_path / "settings", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["settings"]


def test_replacement_is_durable(tmp_path: Path, steps: list[tuple[str, Path]]) -> None:
    for content in (b"old", b"new"):
        durable.replace(tmp_path / "settings", content)
    assert (tmp_path / "settings").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "settings").stat().st_mode) == 0o600
    synced = [path.name.startswith(".settings.") or path == tmp_path for step, path in steps if step == "sync"]
    assert synced == [True] * 4
